"""The C of docs/on_your_board.md compiles without warnings, and what a board dumps is what ``compare`` reads."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from board_models import H743, HAVE_GCC, board, vectors_of

from mcugen.build import compare
from mcugen.emulate.run import run_on_board
from mcugen.emulate.toolchain import compile_objects, find_cross_compiler
from mcugen.errors import DiffersError

pytest.importorskip("unicorn")
pytestmark = pytest.mark.skipif(not HAVE_GCC, reason="no arm-none-eabi-gcc")

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "on_your_board.md").read_text(encoding="utf-8")
Exported = Callable[[str], Path]


def block_with(word: str) -> str:
    """The indented block of the page that holds ``word``."""
    blocks = re.findall(r"(?:^ {4}.*\n|^\n(?= {4}))+", PAGE, re.MULTILINE)
    (found,) = (b for b in blocks if word in b)
    return re.sub(r"^ {4}", "", found, flags=re.MULTILINE)


def test_the_c_of_the_page(exported: Exported, tmp_path: Path) -> None:
    model, _, _ = vectors_of(exported("float32"))
    for path, content in model.files.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_bytes(content)
    run = block_with("void golden_run(void)").replace("NAME_run", "float32_run").replace("NAME_", "FLOAT32_")
    swo = '#include <stdint.h>\n#pragma GCC diagnostic ignored "-Wunused-function"\n' + block_with("swo_init(void)")
    (tmp_path / "run.c").write_text("void golden_run(void);\n" + run.replace("NAME", "float32"))
    (tmp_path / "swo.c").write_text(swo)
    compiler = find_cross_compiler("arm-none-eabi-gcc")
    assert len(compile_objects(tmp_path, ["run.c", "swo.c"], compiler, board(H743), "-O2", ["-I."])) == 2


def test_a_dump_of_the_outputs_is_what_compare_reads(exported: Exported, tmp_path: Path) -> None:
    model, x, _ = vectors_of(exported("multiclass"))
    y = run_on_board(model, x, board(H743), find_cross_compiler()).y
    golden = exported("multiclass") / "golden" / "multiclass.golden.bin"
    device = tmp_path / "device.bin"
    device.write_bytes(y.tobytes())
    assert "equal, every bit" in compare(golden, device)
    y = y.copy()
    y[1, 2] ^= 1
    device.write_bytes(y.tobytes())
    with pytest.raises(DiffersError, match=r"vector 1 element 2"):
        compare(golden, device)
