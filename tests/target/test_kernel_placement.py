"""Functions of the runtime in the placement: what a share of a run decides, and one place for several models."""

from __future__ import annotations

from dataclasses import replace

import pytest
import target_image as ti

from mcugen.core.op import Item
from mcugen.emit.kernels import HEADER, kernels, placement_header
from mcugen.errors import InputError, InternalError
from mcugen.target.board import load_board
from mcugen.target.placement import Group, place_together
from mcugen.target.plan import PlanDoesNotFitError
from mcugen.target.stalls import Traffic, stall_cycles

BOARD = load_board("stm32h743")
FIR, CONV = "mcg_fir_q15_block", "mcg_conv_s8"


def kernel(symbol: str = FIR, size: int | None = None) -> Item:
    size = size or kernels()[symbol].size
    return Item(symbol, "code", "function", 1, size, 4, size / 32, "", shared=True)


def saving(*items: Item) -> float:
    return sum(stall_cycles(i, BOARD.home, BOARD, Traffic.of(items)) for i in items)


@pytest.mark.parametrize(("factor", "region"), [(0.99, "itcm"), (1.01, "flash")])
def test_a_share_of_the_run_decides(factor: float, region: str) -> None:
    """The misses of a cold cache, against the cycles of a run; what they are of it stands in the reason."""
    limit = saving(kernel()) / BOARD.min_saved_share
    (plan,) = place_together([Group((kernel(),), cycles=limit * factor)], BOARD)
    assert plan.of(FIR).region == region
    assert ("5 % of a run: too few" in plan.of(FIR).reason) == (region == "flash")
    assert plan.of(FIR).section == (f".text.mcugen.{'' if region == 'flash' else 'itcm.'}{FIR}")


def test_all_that_a_model_calls_counts_together() -> None:
    """Each alone would be too little."""
    items = (kernel(), replace(kernel(), symbol="mcg_fir_q31_block"))
    cycles = saving(*items) / BOARD.min_saved_share * 0.9
    (both,) = place_together([Group(items, cycles=cycles)], BOARD)
    (alone,) = place_together([Group(items[:1], cycles=cycles)], BOARD)
    assert {a.region for a in both.assignments} == {"itcm"}
    assert alone.of(FIR).region == "flash"


def test_wishes_come_first() -> None:
    slow = Group((kernel(),), cycles=1e9)
    assert place_together([slow], BOARD, {FIR: "itcm"})[0].of(FIR).region == "itcm"
    fast = Group((kernel(),), cycles=10.0)
    assert place_together([fast], BOARD, {FIR: "flash"})[0].of(FIR).region == "flash"
    with pytest.raises(InputError, match="cannot hold"):
        place_together([fast], BOARD, {FIR: "dtcm"})
    with pytest.raises(InputError, match="did you mean mcg_fir_q15_block"):
        place_together([fast], BOARD, {"mcg_fir_q15_blok": "itcm"})


def test_a_model_that_saves_ram_leaves_them_in_flash() -> None:
    group = Group((kernel(), ti.code("m_f")), spend_ram=False, move_kernels=False, cycles=10.0)
    (plan,) = place_together([group], BOARD)
    assert {a.region for a in plan.assignments} == {"flash"}


def test_two_models_have_one_copy() -> None:
    """It moves if it is worth it for one of them, stands in both plans, and its bytes count once."""
    short = Group((ti.table("a_t", 9, 5.0), kernel()), cycles=100.0)
    long = Group((ti.table("b_t", 9, 5.0), kernel(), kernel(CONV)), cycles=1e9)
    plans = place_together([short, long], BOARD)
    assert [p.of(FIR).region for p in plans] == ["itcm", "itcm"]
    assert plans[1].of(CONV).region == "flash"
    itcm = [next(u.used for u in p.usage if u.region == "itcm") for p in plans]
    assert itcm == [kernel().size, 0]
    assert [sorted(a.item.symbol for a in p.kernels) for p in plans] == [sorted([FIR, CONV])] * 2
    assert placement_header(plans[0]) == placement_header(plans[1])
    backward = place_together([long, short], BOARD)
    assert [p.of(FIR).region for p in backward] == ["itcm", "itcm"]


def test_only_the_runtime_is_shared() -> None:
    with pytest.raises(InternalError, match="two objects"):
        place_together([Group((ti.code("m_f"),)), Group((ti.code("m_f"),))], BOARD)


def test_the_budget_is_that_of_all_code() -> None:
    """ITCM leaves 49,144 bytes to models: of two that do not fit together the denser one moves, and both stay right."""
    large = replace(ti.code("m_f"), size=48_900, reads_per_run=1e6)
    (plan,) = place_together([Group((large, kernel()), cycles=10.0)], BOARD)
    assert sorted(a.region for a in plan.assignments) == ["flash", "itcm"]
    with pytest.raises(PlanDoesNotFitError):
        place_together([Group((replace(large, size=65_400), kernel()))], BOARD, {"m_f": "itcm", FIR: "itcm"})


def test_the_header_has_a_line_for_each_function_that_moves() -> None:
    (plan,) = place_together([Group((kernel(CONV), kernel()), cycles=1e9)], BOARD, {CONV: "itcm"})
    lines = [line for line in placement_header(plan).splitlines() if line.startswith("#define MCG_AT_")]
    assert f'#define MCG_AT_{CONV} 0, MCG_SECTION(".text.mcugen.itcm.{CONV}")' in lines
    assert len(lines) == 1 + len(kernels()[CONV].helpers)
    assert not [line for line in lines if "fir" in line]
    assert HEADER == "mcugen/mcg_placement.h"


def test_without_a_board_nothing_moves() -> None:
    (plan,) = place_together([Group((kernel(),), cycles=1.0)], None)
    assert (plan.of(FIR).section, plan.of(FIR).copied) == (f".text.mcugen.{FIR}", False)
    (placed,) = place_together([Group((kernel(),), cycles=1e9)], BOARD)
    assert placement_header(plan) == placement_header(placed)
    assert "#define MCG_AT_m" not in placement_header(plan)
