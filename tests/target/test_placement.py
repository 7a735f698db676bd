"""Placement: wishes, rights, capacities, and the choice against brute force."""

from __future__ import annotations

import itertools
import random

import pytest
import target_image as ti
from hypothesis import given, settings
from hypothesis import strategies as st

from mcugen.core.op import Item
from mcugen.errors import DoesNotFitError, InputError, InternalError
from mcugen.target.board import load_board
from mcugen.target.knapsack import EXACT, Candidate, choose
from mcugen.target.placement import place
from mcugen.target.plan import PlanDoesNotFitError
from mcugen.target.stalls import Traffic, expected_distinct, stall_cycles

BOARD = load_board("stm32h743")
DTCM = BOARD.region("dtcm")
FLASH = BOARD.home
assert DTCM is not None


def regions(plan_items: list[Item], **kwargs: object) -> dict[str, str]:
    plan = place(plan_items, BOARD, **kwargs)  # type: ignore[arg-type]
    return {a.item.symbol: a.region for a in plan.assignments}


def test_without_a_board_the_linker_decides() -> None:
    plan = place([ti.table("m_t", 3, 5.0), ti.code("m_f"), ti.arena("m_a", 8, 1.0)], None)
    assert [a.section for a in plan.assignments] == [".rodata.mcugen.m_t", ".text.mcugen.m_f", ".bss.mcugen.m_a"]
    assert {a.region for a in plan.assignments} == {"default"}
    assert not any(a.copied or a.needs_fragment for a in plan.assignments)
    assert plan.usage == ()
    with pytest.raises(InputError, match="--board"):
        place([ti.table("m_t", 3, 5.0)], None, {"m_t": "dtcm"})


def test_hot_tables_and_code_move_and_cold_ones_stay() -> None:
    items = [ti.table("m_hot", 1000, 500.0), ti.table("m_cold", 1000, 0.001), ti.code("m_f")]
    plan = place(items, BOARD)
    assert {a.item.symbol: (a.region, a.section, a.copied) for a in plan.assignments} == {
        "m_hot": ("dtcm", ".bss.mcugen.dtcm.m_hot", True),
        "m_cold": ("flash", ".rodata.mcugen.m_cold", False),
        "m_f": ("itcm", ".text.mcugen.itcm.m_f", True),
    }
    usage = {u.region: u.used for u in plan.usage}
    assert usage["flash"] == 4000 + 4000 + 64  # images of what moved count
    assert usage["dtcm"] == 4000
    assert usage["itcm"] == 64
    assert "saves about" in plan.of("m_hot").reason
    assert "too few" in plan.of("m_cold").reason
    assert all("\n" not in a.explain() for a in plan.assignments)


def test_the_reserve_is_left_to_the_user_unless_asked_for() -> None:
    assert DTCM is not None
    big = ti.table("m_big", (DTCM.available + 4) // 4, 1e6)
    assert regions([big]) == {"m_big": "flash"}
    assert regions([big], overrides={"m_big": "dtcm"}) == {"m_big": "dtcm"}
    too_big = ti.table("m_big", DTCM.usable // 4 + 1, 1e6)
    with pytest.raises(DoesNotFitError, match="dtcm"):
        place([too_big], BOARD, {"m_big": "dtcm"})


def test_a_wish_over_the_reserve_leaves_nothing_for_others() -> None:
    assert DTCM is not None
    items = [ti.table("m_big", DTCM.available // 4 + 9, 1.0), ti.table("m_hot", 10, 1e6)]
    assert regions(items, overrides={"m_big": "dtcm"}) == {"m_big": "dtcm", "m_hot": "flash"}


def test_code_that_is_too_large_for_itcm_stays_in_flash() -> None:
    assert regions([ti.code("m_f", 50_000), ti.code("m_g", 100)]) == {"m_f": "flash", "m_g": "itcm"}
    # 64 KiB less the reserve less the first 8 bytes
    assert regions([ti.code("m_f", 65_536 - 16_384 - 8)]) == {"m_f": "itcm"}
    assert regions([ti.code("m_f", 65_536 - 16_384 - 4)]) == {"m_f": "flash"}
    with pytest.raises(DoesNotFitError):
        place([ti.code("m_f", 65_536 - 4)], BOARD, {"m_f": "itcm"})


def test_code_without_known_traffic_moves_too() -> None:
    assert regions([ti.code("m_f", 100, 0.0)]) == {"m_f": "itcm"}


def test_nothing_moves_when_ram_is_to_be_saved() -> None:
    items = [ti.table("m_t", 100, 1e6), ti.code("m_f"), ti.arena("m_a", 100, 5.0)]
    assert regions(items, spend_ram=False) == {"m_t": "flash", "m_f": "flash", "m_a": "dtcm"}


def test_arenas() -> None:
    assert regions([ti.arena("m_a", 1000, 1e4)]) == {"m_a": "dtcm"}
    assert regions([ti.arena("m_a", 100_000, 1e4)]) == {"m_a": "axi"}
    dma = place([ti.arena("m_a", 1000, 1e4, dma=True)], BOARD).of("m_a")
    assert dma.region == "axi"
    assert dma.needs_fragment
    assert "align to 32" in dma.reason
    # Together they need both memories.
    both = regions([ti.arena("m_a", 390_000, 1.0), ti.arena("m_b", 60_000, 1.0)])
    assert both == {"m_a": "axi", "m_b": "dtcm"}
    with pytest.raises(PlanDoesNotFitError) as e:
        place([ti.arena("m_a", 600_000, 1.0)], BOARD)
    assert e.value.exit_code == 4


WISHES = {
    "unknown symbol": ({"m_tt": "dtcm"}, r"no object 'm_tt' \(did you mean m_t\?"),
    "unknown region": ({"m_t": "dtmc"}, r"no memory 'dtmc' \(did you mean dtcm\?"),
    "code into data memory": ({"m_f": "dtcm"}, r"its role is code \(possible: flash, itcm\)"),
    "table into code memory": ({"m_t": "itcm"}, r"its role is table"),
    "arena into flash": ({"m_a": "flash"}, r"its role is arena"),
    "no place for anything": ({"m_t": "backup"}, r"backup cannot hold"),
    "DMA": ({"m_d": "dtcm"}, r"dma1 does not reach dtcm.*possible: axi, sram1, sram2, sram3, sram4"),
}


@pytest.mark.parametrize("case", WISHES)
def test_wishes_that_cannot_be_met(case: str) -> None:
    items = [ti.table("m_t", 3, 5.0), ti.code("m_f"), ti.arena("m_a", 8, 1.0), ti.arena("m_d", 8, 1.0, dma=True)]
    wish, pattern = WISHES[case]
    with pytest.raises(InputError, match=pattern) as e:
        place(items, BOARD, wish)
    assert str(e.value).startswith("--place m_")
    assert "\n" not in str(e.value)


def test_wishes_are_met_and_say_so() -> None:
    items = [ti.table("m_t", 3, 0.0), ti.code("m_f")]
    plan = place(items, BOARD, {"m_t": "sram2", "m_f": "flash"})
    assert [a.section for a in plan.assignments] == [".bss.mcugen.sram2.m_t", ".text.mcugen.m_f"]
    assert {a.reason for a in plan.assignments} == {"asked for with --place"}


def test_a_model_of_100_megabytes_does_not_fit_into_flash() -> None:
    items = [ti.table(f"m_{i}", 10, 5.0) for i in range(30)]
    items.append(Item("m_huge", "table", "uint32_t", 25_000_000, 100_000_000, 4, 3.0, "leaves"))
    with pytest.raises(PlanDoesNotFitError) as e:
        place(items, BOARD, fixed_usage={"flash": 512})
    assert "\n" not in str(e.value)
    assert "100,001,712 bytes are needed in flash, 2,064,384 are available" in str(e.value)
    assert "m_huge" in str(e.value)
    assert "m_huge: leaves" in e.value.table[0]
    assert "fixed parts of the export" in e.value.table[1]
    assert any("smaller objects" in line for line in e.value.table)


def test_flash_is_full_to_the_byte() -> None:
    size = FLASH.available
    place([Item("m_t", "table", "uint32_t", size // 4, size, 4, 1.0, "")], BOARD)
    for fixed in (4, 1):
        with pytest.raises(PlanDoesNotFitError):
            place([Item("m_t", "table", "uint32_t", size // 4, size, 4, 1.0, "")], BOARD, {}, {"flash": fixed})
    hot = Item("m_h", "table", "uint32_t", 1, 4, 4, 1e6, "")
    with pytest.raises(PlanDoesNotFitError):  # what moves to RAM keeps its image
        place([Item("m_t", "table", "uint32_t", size // 4, size, 4, 1.0, ""), hot], BOARD)


def test_faults_of_our_own() -> None:
    with pytest.raises(InternalError, match="two objects"):
        place([ti.code("m_f"), ti.code("m_f")], BOARD)
    with pytest.raises(InternalError, match="unknown region"):
        place([], BOARD, {}, {"ram": 3})
    with pytest.raises(InternalError, match="not a placeable"):
        place([ti.code("m.f")], BOARD)


# -- against brute force


def best_gain(candidates: list[Candidate], capacity: int) -> float:
    subsets = itertools.product((False, True), repeat=len(candidates))
    sums = ([c for c, use in zip(candidates, s, strict=True) if use] for s in subsets)
    return max(sum(c.gain for c in s) for s in sums if sum(c.size for c in s) <= capacity)


def total(candidates: list[Candidate], names: frozenset[str]) -> tuple[int, float]:
    taken = [c for c in candidates if c.name in names]
    return sum(c.size for c in taken), sum(c.gain for c in taken)


SOME = st.lists(st.tuples(st.integers(1, 60), st.integers(1, 60)), max_size=9)


@given(SOME, st.integers(-5, 150), st.randoms())
@settings(max_examples=150, deadline=None)
def test_few_candidates_are_chosen_optimally(sizes: list[tuple[int, int]], capacity: int, rng: random.Random) -> None:
    candidates = [Candidate(f"c{i}", size, float(gain)) for i, (size, gain) in enumerate(sizes)]
    chosen = choose(candidates, capacity)
    used, gain = total(candidates, chosen)
    assert used <= max(capacity, 0)
    if capacity >= 0:
        assert gain == best_gain(candidates, capacity)
    shuffled = list(candidates)
    rng.shuffle(shuffled)
    assert choose(shuffled, capacity) == chosen


@given(st.integers(0, 2**32))
@settings(max_examples=40, deadline=None)
def test_many_candidates_reach_half_of_the_optimum(seed: int) -> None:
    rng = random.Random(seed)
    count, capacity = rng.randint(EXACT + 1, 40), rng.randint(10, 200)
    candidates = [Candidate(f"c{i}", rng.randint(1, 120), float(rng.randint(1, 1000))) for i in range(count)]
    used, gain = total(candidates, choose(candidates, capacity))
    best = [0.0] * (capacity + 1)  # dynamic programming over bytes
    for c in candidates:
        for room in range(capacity, c.size - 1, -1):
            best[room] = max(best[room], best[room - c.size] + c.gain)
    assert used <= capacity
    assert gain * 2 >= best[capacity]


def test_greedy_alone_would_fail_here() -> None:
    small = [Candidate(f"s{i:02}", 1, 1.1) for i in range(EXACT + 1)]
    assert choose([*small, Candidate("large", 1000, 1000.0)], 1000) == {"large"}


def test_the_slowest_choice_is_still_quick() -> None:
    equal = [Candidate(f"c{i}", 2, 2.0) for i in range(EXACT)]
    assert len(choose(equal, EXACT | 1)) == EXACT // 2


@given(st.lists(st.tuples(st.integers(1, 9000), st.floats(0, 1e5)), min_size=1, max_size=7), st.randoms())
@settings(max_examples=60, deadline=None)
def test_tables_in_dtcm_save_as_much_as_any_choice(sizes: list[tuple[int, float]], rng: random.Random) -> None:
    assert DTCM is not None
    items = [ti.table(f"m_t{i}", count, reads) for i, (count, reads) in enumerate(sizes)]
    traffic = Traffic.of(items)
    saved = {i.symbol: stall_cycles(i, FLASH, BOARD, traffic) for i in items}
    chosen = {s for s, r in regions(items).items() if r == "dtcm"}
    worth = [Candidate(i.symbol, i.size, saved[i.symbol]) for i in items if saved[i.symbol] >= 1.0]
    assert sum(saved[s] for s in chosen) == pytest.approx(best_gain(worth, DTCM.available))
    assert sum(i.size for i in items if i.symbol in chosen) <= DTCM.available
    shuffled = list(items)
    rng.shuffle(shuffled)
    assert {s for s, r in regions(shuffled).items() if r == "dtcm"} == chosen


# -- latency model


@given(st.integers(0, 10**6), st.floats(0, 1e7), st.integers(0, 10**7))
def test_stalls_are_sane(size: int, reads: float, others: int) -> None:
    item = Item("m_t", "table", "uint8_t", size, size, 1, reads, "")
    traffic = Traffic(data=size + others, code=0)
    assert DTCM is not None
    assert stall_cycles(item, DTCM, BOARD, traffic) == 0.0
    cycles = stall_cycles(item, FLASH, BOARD, traffic)
    assert 0.0 <= cycles <= reads * FLASH.fill * (1 + 1e-12)
    more = stall_cycles(item, FLASH, BOARD, Traffic(data=size + others + 10**6, code=0))
    assert more >= cycles * (1 - 1e-12)
    assert 0.0 <= expected_distinct(max(1, size), reads) <= max(1, size) * (1 + 1e-12)
