"""Which files of the runtime a model needs: calls in C, in inline functions of headers, and definitions of any form."""

from __future__ import annotations

from mcugen.emit.sources import sources_of

FILES = {
    "m.c": '#include "mcugen/mcg_a.h"\nvoid m_run(void) { mcg_one(1); }\n',
    "mcugen/mcg_sections.c": "void mcg_sections_init(void) {}\n",
    "mcugen/mcg_a.h": "void mcg_one(int a);\nvoid mcg_four(int a,\n              int b);\n",
    "mcugen/mcg_a.c": '#include "mcg_a.h"\n#include "mcg_in.h"\nvoid mcg_one(int a) { inside(a); }\n',
    "mcugen/mcg_in.h": "void mcg_two(int a);\nstatic inline void inside(int a)\n{\n    mcg_two(a);\n}\n",
    "mcugen/mcg_b.c": 'MCG_SECTION(".text.b") void\nmcg_two(int a,\n        int b)\n{\n    mcg_three(a);\n}\n',
    "mcugen/mcg_c.c": "static int mcg_three_of(int a);\nconst int *mcg_three(int a)\n{\n    return 0;\n}\n",
    "mcugen/mcg_d.c": "void mcg_four(int a, int b) {}\n",
}


def test_what_is_called_and_no_more() -> None:
    """A declaration is no call: mcg_d.c stays out."""
    expected = ["m.c", *(f"mcugen/mcg_{n}.c" for n in ("a", "b", "c", "sections"))]
    assert sources_of(FILES) == expected


def test_nothing_but_the_sections() -> None:
    files = {**FILES, "m.c": '#include "mcugen/mcg_a.h"\nint m = 0;\n'}
    assert sources_of(files) == ["m.c", "mcugen/mcg_sections.c"]
