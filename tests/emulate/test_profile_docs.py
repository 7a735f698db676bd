"""docs/profile.md shows what `mcugen profile` prints for the example, and names what is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from board_models import HAVE_GCC

import mcugen
from mcugen.emulate.toolchain import find_cross_compiler
from mcugen.report.places import places_lines
from mcugen.target.board import load_board

pytest.importorskip("unicorn")
pytestmark = pytest.mark.skipif(not HAVE_GCC, reason="no arm-none-eabi-gcc")

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "profile.md").read_text(encoding="utf-8")


def test_the_table_of_places_is_that_of_the_example(tmp_path: Path) -> None:
    compiler = find_cross_compiler("arm-none-eabi-gcc")
    if "12.2" not in compiler.version:
        pytest.skip("the page has the bytes of GCC 12.2")
    mcugen.export(ROOT / "examples" / "ecg" / "ecg.toml", tmp_path / "ecg")
    found = mcugen.profile(tmp_path / "ecg")
    block = re.search(r"^    placement .*\n(?:    .*\n)+", PAGE, re.MULTILINE)
    assert block is not None
    assert [line[4:] for line in block[0].splitlines()] == places_lines(found.places)
    low, high = (f"{n:,.0f}" for n in (found.cycles.low, found.cycles.high))
    assert f"a push of {low} to {high} cycles" in PAGE
    flash = f"{found.cycles.high + found.places.together[1]:,.0f}"
    assert f"it would be {low} to {flash}" in PAGE


def test_the_share_is_that_of_the_board_file() -> None:
    share = f"{100 * load_board('stm32h743').min_saved_share:g} %"
    assert f"at least {share} of its run (`min_saved_share` in board.toml)" in PAGE
    assert f"at least {share} of a run" in (ROOT / "docs" / "embedding.md").read_text(encoding="utf-8")
