"""``--target`` on the command line: what is printed, and one line where it fails."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from board_models import H743, HAVE_GCC

from mcugen.cli import main

pytest.importorskip("unicorn")
pytestmark = pytest.mark.skipif(not HAVE_GCC, reason="no arm-none-eabi-gcc")
Exported = Callable[[str], Path]


def call(*words: object) -> int:
    with pytest.raises(SystemExit) as end:
        main([str(w) for w in words])
    return int(end.value.code or 0)


def test_verify_on_a_board(exported: Exported, capsys: pytest.CaptureFixture[str]) -> None:
    assert call("verify", exported("float32"), "--target", H743, "--cc", "arm-none-eabi-gcc", "--opt", "-Os") == 0
    first, second = capsys.readouterr().out.splitlines()
    assert first.startswith("stm32h743: ")
    assert " -Os: bytes flash " in second


def test_run_on_a_board(exported: Exported, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    np.save(tmp_path / "x.npy", np.zeros((3, 4), np.float32))
    words = ["run", exported("proba"), "--input", tmp_path / "x.npy", "--output", tmp_path / "y.npy"]
    assert call(*words, "--target", H743) == 0
    assert capsys.readouterr().out.startswith("3 rows to ")
    assert np.load(tmp_path / "y.npy").dtype == np.float32


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--target", "h7"), "mcugen: --target: there is no target 'h7' (known: host, mps2_an500, stm32h743)"),
        (("--target", H743, "--opt", "fast"), "mcugen: --opt: 'fast' is no optimization level (known: -O0,"),
        (("--target", H743, "--cc", "/nowhere/gcc"), "mcugen: /nowhere/gcc: this cross compiler cannot be started"),
        (("--target", H743, "--cc", "cc"), "builds nothing for cortex-m7"),
    ],
)
def test_one_line(exported: Exported, words: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert call("verify", exported("float32"), *words) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert message in line


def test_a_changed_export(exported: Exported, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A difference is told as such; C that no longer builds is not called our fault."""
    folder = tmp_path / "out"
    for path in exported("float32").rglob("*"):
        if path.is_file():
            (folder / path.relative_to(exported("float32"))).parent.mkdir(parents=True, exist_ok=True)
            (folder / path.relative_to(exported("float32"))).write_bytes(path.read_bytes())
    source = folder / "float32.c"
    text = source.read_text()
    source.write_text(text.replace("return MCG_OK;", "y[0] ^= 1;\n    return MCG_OK;", 1))
    assert call("verify", folder, "--target", H743) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert "vector 0" in line
    source.write_text(text + "nonsense;\n")
    assert call("verify", folder, "--target", H743) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "float32.c: was changed after the export, and the C does not build" in line
