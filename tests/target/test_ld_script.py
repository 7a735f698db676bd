"""The reader of linker scripts. GNU ld itself says what an expression is worth and what is a syntax error."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
import target_image as ti
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mcugen.doctor.ld_expr import Scope, evaluate
from mcugen.doctor.ld_script import Script, load_script, parse_script
from mcugen.errors import InputError

LD = "arm-none-eabi-ld"
needs_gcc = pytest.mark.skipif(not ti.have_cross_compiler(), reason="no arm-none-eabi-ld")


def memory(lines: str, *definitions: str) -> Script:
    return parse_script(f"MEMORY {{\n{lines}\n}}\n", "s.ld", definitions)


def length(text: str, *definitions: str) -> int:
    return memory(f"A (rwx) : ORIGIN = 0, LENGTH = {text}", *definitions).memories[0].length


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("64K", 65536),
        ("1m", 2**20),
        ("0x10k", 0x4000),
        ("0X20", 32),
        ("$10", 16),
        ("10H", 16),
        ("010", 8),
        ("17O", 15),
        ("101B", 5),
        ("12D", 12),
        ("4K+1", 4097),
        ("1K-1", 1023),
        ("(1 << 19)", 2**19),
        ("2 * 3 + 4 * 5", 26),
        ("1 + 2 == 3 ? 1K : 2K", 1024),
        ("DEFINED(nothing) ? 1K : 2K", 2048),
        ("MAX(1, 2) * 1K", 2048),
        ("MIN(1, 2)", 1),
        ("LOG2CEIL(1000)", 10),
        ("ALIGN(5, 8)", 8),
        ("~0 & 0xff", 0xFF),
        ("!0*7", 7),
        ("7 % 4", 3),
        ("2M - 128K /* boot */", 2**21 - 2**17),
        ("ABSOLUTE(16)", 16),
    ],
)
def test_numbers(text: str, value: int) -> None:
    assert length(text) == value


atoms = st.one_of(
    st.integers(0, 2**20).map(str),
    st.integers(0, 2**20).map(hex),
    st.integers(1, 64).map(lambda n: f"{n}K"),
    st.sampled_from(["1M", "ORIGIN(B)", "LENGTH(B)", "$1f"]),
)
expressions = st.recursive(
    atoms,
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from("+ - * & | < > <= >= == != && ||".split()), inner).map(" ".join),
        inner.map(lambda e: f"({e})"),
        # ld divides before it knows ORIGIN and LENGTH.
        st.tuples(inner, st.sampled_from("/%"), st.integers(1, 2**20).map(str)).map(" ".join),
        st.tuples(inner, st.sampled_from(["<<", ">>"]), st.integers(0, 40).map(str)).map(" ".join),
        st.tuples(st.sampled_from("~!-"), inner).map(lambda p: f"{p[0]}({p[1]})"),
        st.tuples(inner, inner, inner).map(lambda p: f"({p[0]} ? {p[1]} : {p[2]})"),
        st.tuples(inner, inner).map(lambda p: f"MAX({p[0]}, {p[1]})"),
    ),
    max_leaves=6,
)


@needs_gcc
@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(expressions, min_size=25, max_size=40))
def test_expressions_are_worth_what_ld_says(tmp_path_factory: pytest.TempPathFactory, texts: list[str]) -> None:
    scope = Scope({"B": (0x40, 0x1000)})
    known = [(text, evaluate(text, scope, "test")) for text in texts]
    folder = tmp_path_factory.mktemp("ld")
    lines = [f"  M{i} : ORIGIN = 0x40, LENGTH = ({text}) & 0xffffffff" for i, (text, _) in enumerate(known)]
    script = "MEMORY { B : ORIGIN = 0x40, LENGTH = 0x1000\n" + "\n".join(lines) + "\n}\n"
    (folder / "s.ld").write_text(script + "SECTIONS { .text : { *(*) } > B }\n")
    (folder / "a.s").write_text(".text\nnop\n")
    subprocess.run(["arm-none-eabi-as", "a.s", "-o", "a.o"], cwd=folder, check=True)
    words = [LD, "a.o", "-T", "s.ld", "-Map=m.map", "-e", "0"]
    done = subprocess.run(words, cwd=folder, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr + script
    found = dict(re.findall(r"^(M\d+)\s+0x0*40\s+(0x[0-9a-f]+)", (folder / "m.map").read_text(), re.MULTILINE))
    for i, (text, value) in enumerate(known):
        assert value is not None
        assert int(found[f"M{i}"], 16) == value & 0xFFFF_FFFF, text


def test_memory_in_all_spellings() -> None:
    found = memory(
        """
        A (rx!w) : ORIGIN = 0x08000000, LENGTH = 2048K  /* a comment, with : and = */
        b        : org = 0x20000000, len = 0
        c        : o = 0x24000000, l = 1k
        "d-1"    : ORIGIN = ORIGIN(A) + LENGTH(A) LENGTH = LENGTH(c) * 2
        # a comment of another kind
        """
    )
    assert [(m.name, m.origin, m.length) for m in found.memories] == [
        ("A", 0x0800_0000, 2**21),
        ("b", 0x2000_0000, 0),
        ("c", 0x2400_0000, 1024),
        ("d-1", 0x0820_0000, 2048),
    ]


def test_definitions_and_symbols() -> None:
    assert length("SIZE - 8", "SIZE=64K") == 65528
    assert length("SIZE", "SIZE=1K*2") == 2048
    script = parse_script(
        "_top = ORIGIN(R) + LENGTH(R); X = 4; PROVIDE(X = 5); PROVIDE(Y = X); Y += 1;"
        'MEMORY { R : ORIGIN = X * 4, LENGTH = 16 } ASSERT(X == 4, "no")',
    )
    assert script.symbols["_top"] == 32  # computed from what is declared below
    assert script.symbols["X"] == 4
    assert script.symbols["Y"] is None


def test_aliases_and_sections() -> None:
    script = parse_script(
        """
        MEMORY { ram0 : org = 0x20000000, len = 1k  flash : org = 0x08000000, len = 1M }
        REGION_ALIAS("DATA", ram0) REGION_ALIAS("MORE", DATA);
        SECTIONS
        {
          . = 0x10; here = .;
          .one 0x100 (NOLOAD) : ALIGN(8) SUBALIGN(4)
          { . = ALIGN(4); a = .; *(.a .a.*) KEEP(*(SORT(.b.*))) b = .; } > MORE AT> flash =0xff
          .two : AT(0x8000)
          { lib.a:x.o(.text) *(EXCLUDE_FILE(*x.o) .c .d) *(COMMON) LONG(1) FILL(0) } > flash :text
          .three ALIGN(4) : { *(SORT_BY_ALIGNMENT(.e*)) *libm.a:(.f) }
          /DISCARD/ : { libc.a ( * ) }
        }
        INSERT AFTER .bss;
        """
    )
    assert script.aliases == {"DATA": "ram0", "MORE": "ram0"}
    one, two, three, discard = script.sections
    assert (one.name, one.address, one.region, one.load) == (".one", 0x100, "ram0", "flash")
    assert [i.pattern for i in one.inputs] == [".a", ".a.*", ".b.*"]
    assert one.symbols == ("a", "b")
    assert (two.region, two.load) == ("flash", "")
    assert [(i.pattern, i.every_file) for i in two.inputs if i.every_file] == [
        (".c", True),
        (".d", True),
        ("COMMON", True),
    ]
    assert [(i.pattern, i.every_file) for i in three.inputs] == [(".e*", True), (".f", False)]
    assert discard.inputs[0].every_file is False


def test_included_files_are_found(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "main.ld").write_text("MEMORY { INCLUDE lines.ld }\nSECTIONS { INCLUDE sections.ld }\n")
    (tmp_path / "lines.ld").write_text("A : ORIGIN = 0, LENGTH = 1K")
    (tmp_path / "sub" / "sections.ld").write_text(".text : { INCLUDE inside.ld } > A")
    (tmp_path / "sub" / "inside.ld").write_text("*(.text*)")
    found = load_script(tmp_path / "main.ld", [tmp_path / "sub"])
    assert found.included == ("lines.ld", "sections.ld", "inside.ld")
    assert [i.pattern for i in found.sections[0].inputs] == [".text*"]
    with pytest.raises(InputError, match=r"main.ld:2: INCLUDE sections.ld: no such file \(name its folder with -L\)"):
        load_script(tmp_path / "main.ld")


def test_a_file_that_includes_itself(tmp_path: Path) -> None:
    (tmp_path / "a.ld").write_text("INCLUDE a.ld\n")
    with pytest.raises(InputError, match="nested too deeply"):
        load_script(tmp_path / "a.ld")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("MEMORY { A : ORIGIN = 0x0, LENGTH = }", "a number or a name is expected"),
        ("MEMORY { A : ORIGIN=0x0, LENGTH = 1K }", "write ORIGIN = VALUE, with blanks"),
        ("MEMORY { A : org=0x0 len = 1K }", "with blanks"),
        ("MEMORY { A : ORIGIN = 0, LENGTH = 5/0 }", "division by zero"),
        ("MEMORY { A : ORIGIN = 0, LENGTH = SIZE }", "SIZE, which the script does not define"),
        ("MEMORY { A : ORIGIN = 0, LENGTH = 1K", "'}' is expected"),
        ("MEMORY { A : ORIGIN = 0, LENGTH = 1G }", "not '1G"),
        ("MEMORY { A : ORIGIN = LENGTH(Z), LENGTH = 1 }", "there is no such memory"),
        ("SECTIONS { .text : { *(.text) } > NOWHERE }", "which MEMORY does not declare"),
        ("SECTIONS { .text : { *(.text }", "is missing"),
        ("SECTIONS { .text { } }", "':' is expected"),
        ('REGION_ALIAS("A", b)', "there is no memory b"),
        ("hello world", "is not a statement"),
        ("/* no end", "a comment has no end"),
        ("SECTIONS { OVERLAY : { .a { *(.a) } } }", "OVERLAY is not supported"),
        ("}", "'}'"),
        ("MEMORY { A : ORIGIN = " + "(" * 5000, "nested too deeply"),
    ],
)
def test_errors_name_the_line(text: str, message: str) -> None:
    with pytest.raises(InputError) as e:
        parse_script("\n\n" + text, "my.ld")
    assert message in str(e.value)
    assert "my.ld:3" in str(e.value)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"\x7fELF\0\0", "check-elf reads linked programs"),
        (b"#include <config.h>\nMEMORY { }", "gcc -E -P"),
        (b"MEMORY { A : ORIGIN = 0, LENGTH = 1 }\n#ifdef X\n#endif\n", "gcc -E -P"),
    ],
)
def test_files_that_are_no_scripts(tmp_path: Path, data: bytes, message: str) -> None:
    (tmp_path / "x.ld").write_bytes(data)
    with pytest.raises(InputError, match=re.escape(message)):
        load_script(tmp_path / "x.ld")


@given(st.text(alphabet=st.sampled_from(list('MEMORY{}():;=,.*/ \n"KABC0x1<>SECTIONS'))))
@settings(max_examples=150, deadline=None)
def test_nonsense_is_an_input_error(text: str) -> None:
    try:
        parse_script(text)
    except InputError as e:
        assert "\n" not in str(e)  # noqa: PT017
