"""Profiles: instructions by op, bounds over all inputs, traffic by memory, and the verb on a small export."""

from __future__ import annotations

import json
from pathlib import Path

import lightgbm
import numpy as np
import pytest

import mcugen
from mcugen.emulate.elf import Elf, Symbol
from mcugen.emulate.isa import Decoder
from mcugen.emulate.recorder import Execution
from mcugen.emulate.toolchain import find_cross_compiler
from mcugen.errors import InputError
from mcugen.report.attribution import Owners, worst_case
from mcugen.report.profile import Profile, profile_json, profile_lines

pytest.importorskip("unicorn")
pytest.importorskip("capstone")

NOP = bytes.fromhex("00bf")


def elf_of(*symbols: tuple[str, int, int]) -> Elf:
    ordered = tuple(Symbol(n, a, s, True) for n, a, s in sorted(symbols, key=lambda t: t[1]))
    return Elf(b"", (), (), {s.name: s for s in ordered}, ordered)


def run_of(*addresses: int) -> Execution:
    return Execution(tuple((a, 2) for a in addresses), ())


def test_blocks_belong_to_their_op_and_helpers_to_the_caller() -> None:
    elf = elf_of(("m_rank.constprop.0", 100, 20), ("m_sum", 120, 40), ("m_run", 200, 20), ("memcpy", 300, 20))
    owners = Owners(elf, (("m_rank",), ("m_sum",), ("m_run", "m_compute")))
    rank, total, call = owners.split([run_of(200, 400, 100, 110, 300, 118, 202, 120, 300, 158, 210)])
    assert [b[0] for b in rank[0]] == [100, 110, 300, 118]
    assert [b[0] for b in total[0]] == [120, 300, 158]
    assert [b[0] for b in call[0]] == [200, 400, 202, 210]  # 400: a veneer


def bound(runs: list[tuple[int, ...]], lengths: dict[int, int], steps: int) -> int | None:
    """``worst_case`` of blocks named by their address, with that many instructions."""
    decoder = Decoder(((0, NOP * 4096),))
    return worst_case([tuple((a, 2 * lengths[a]) for a in run) for run in runs], decoder, steps)


def test_worst_case_of_straight_code_is_what_it_takes() -> None:
    assert bound([(0, 64), (0, 64)], {0: 3, 64: 4}, 5) == 7


def test_worst_case_takes_the_longest_way_round_the_inner_loop() -> None:
    """0: start; 64: head; 128 or 192: the two ways round; 256: outer loop, twice in each run; 320: end."""
    lengths = {0: 5, 64: 2, 128: 3, 192: 4, 256: 7, 320: 1}

    def run(*trees: str) -> tuple[int, ...]:
        ways = {"l": (64, 128), "r": (64, 192)}
        return (0, *(a for tree in trees for a in (*(b for w in tree for b in ways[w]), 256)), 320)

    runs = [run("l", "lr"), run("rl", "lll"), run("l", "l"), run("rr", "l")]
    # Four steps at most, six instructions the longer way, and the rest of the op.
    truth = 5 + 1 + 2 * 7 + 5 * 6
    found = bound(runs, lengths, 5)
    assert found is not None
    assert truth <= found <= truth + 2 * 6  # the last step of each tree is not seen as a way round


def test_no_bound_where_no_loop_explains_the_difference() -> None:
    assert bound([(0, 64), (0, 128)], {0: 1, 64: 2, 128: 3}, 0) is None
    assert bound([(0, 64), (0, 128)], {0: 1, 64: 2, 128: 3}, 4) is None


# -- the verb


@pytest.fixture(scope="module")
def export(tmp_path_factory: pytest.TempPathFactory) -> Path:
    try:
        find_cross_compiler()
    except InputError:
        pytest.skip("no cross compiler")
    rng = np.random.default_rng(3)
    x = rng.normal(size=(600, 5)).astype(np.float32)
    x[rng.random(x.shape) < 0.05] = np.nan
    y = np.nan_to_num(x[:, 0]) ** 2 + np.nan_to_num(x[:, 1]) * 3 + rng.normal(size=600) * 0.1
    parameters = {"num_leaves": 12, "verbose": -1, "num_threads": 1, "min_data_in_leaf": 5}
    booster = lightgbm.train(parameters, lightgbm.Dataset(x, y), 8)
    folder = tmp_path_factory.mktemp("profile")
    booster.save_model(str(folder / "small.txt"))
    mcugen.export(folder / "small.txt", folder / "out", ways="search+tables")
    return folder / "out"


@pytest.fixture(scope="module")
def profile(export: Path) -> Profile:
    return mcugen.profile(export)


def test_profile_says_what_was_promised(profile: Profile) -> None:
    found = json.loads(json.dumps(profile_json(profile)))
    assert found["flash_bytes"] > 0
    assert found["ram_bytes"] > 0
    assert 0 < found["stack_bytes"] < 1000
    assert 0 < found["instructions"]["mean"] <= found["instructions"]["max"] <= found["instructions"]["worst"]
    assert 0 < found["cycles"]["low"] <= found["cycles"]["high"] <= found["cycles"]["max"]
    assert all({"name", "instructions", "macs"} <= op.keys() for op in found["ops"])
    assert found["memory"]["flash"] == found["flash_bytes"]


def test_ops_add_up_and_tables_are_read_where_they_stand(profile: Profile) -> None:
    assert [o.kind for o in profile.ops] == ["RankInputs", "SumLeaves", "call"]
    if profile.recorded == profile.rows:
        assert sum(o.instructions for o in profile.ops) == pytest.approx(profile.mean)
    loads = {t.region: t.loads for t in profile.traffic}
    assert loads["dtcm"] > 8  # a node and a leaf a tree at least
    assert all(o.worst is not None and o.worst >= o.instructions for o in profile.ops)


@pytest.mark.parametrize("ways", ["lookup+packed", "coarse+branches"])
def test_other_ways_have_profiles(export: Path, ways: str, tmp_path: Path) -> None:
    """Ops add up whatever they are; code without a loop has no bound, and none is claimed."""
    mcugen.export(export.parent / "small.txt", tmp_path / "out", ways=ways)
    found = mcugen.profile(tmp_path / "out")
    assert [o.kind for o in found.ops][1:] == ["SumPacked" if "packed" in ways else "SumBranches", "call"]
    assert sum(o.instructions for o in found.ops) == pytest.approx(found.mean, rel=0.05)
    assert (found.worst is None) == ("branches" in ways)
    if found.worst is not None:
        rng = np.random.default_rng(5)
        x = (rng.normal(size=(200, 5)) * 3).astype(np.float32)
        np.save(tmp_path / "x.npy", x)
        assert mcugen.profile(tmp_path / "out", tmp_path / "x.npy").largest <= found.worst


def test_profiles_repeat_exactly(export: Path, profile: Profile) -> None:
    assert profile_json(mcugen.profile(export)) == profile_json(profile)


def test_no_input_takes_more_than_the_worst_case(export: Path, profile: Profile, tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    x = (rng.normal(size=(300, 5)) * 3).astype(np.float32)
    x[rng.random(x.shape) < 0.2] = np.nan
    np.save(tmp_path / "x.npy", x)
    other = mcugen.profile(export, tmp_path / "x.npy")
    assert other.rows == 300
    assert profile.worst is not None
    assert other.largest <= profile.worst


def test_places_are_told_with_what_they_save(export: Path, profile: Profile) -> None:
    """Every object of the plan that has left flash, none that has not; a warm cache loses less than a cold one."""
    manifest = json.loads((export / "manifest.json").read_text())
    moved = {s["symbol"]: s["region"] for s in manifest["symbols"] if s["region"] != "flash"}
    assert {p.symbol: p.region for p in profile.places.placed} == moved
    assert all(p.other == "flash" and 0 <= p.low <= p.high for p in profile.places.placed)
    assert not {p.symbol for p in profile.places.next} & set(moved)
    found = profile_json(profile)["placement"]
    assert found["placed"][0].keys() == {"symbol", "role", "region", "bytes", "saves_cycles", "against"}
    text = "\n".join(profile_lines(profile))
    assert all(f"{s} " in text for s in moved)


def test_what_places_save_is_what_flash_costs(export: Path, profile: Profile, tmp_path: Path) -> None:
    """The same model with everything in flash: its cycles are higher by what the places were said to save, and what a
    move would gain there is the same. Not to the letter: objects lie otherwise in lines and sets."""
    wishes = {p.symbol: "flash" for p in profile.places.placed}
    mcugen.export(export.parent / "small.txt", tmp_path / "out", ways="search+tables", place=wishes)
    slow = mcugen.profile(tmp_path / "out")
    low, high = profile.places.together
    assert slow.cycles.high - profile.cycles.high == pytest.approx(high, rel=0.25)
    assert slow.cycles.low - profile.cycles.low == pytest.approx(low, abs=20)
    assert max(p.high for p in profile.places.placed) <= high <= sum(p.high for p in profile.places.placed)
    assert not slow.places.placed
    gains = {p.symbol: -p.high for p in slow.places.next}
    largest = sorted(profile.places.placed, key=lambda p: -p.high)[:3]
    for p in largest:
        assert gains[p.symbol] == pytest.approx(p.high, rel=0.35, abs=100)
    ordered = [-p.high for p in slow.places.next]
    assert ordered == sorted(ordered, reverse=True)


def test_lines_say_that_cycles_are_estimated(profile: Profile) -> None:
    lines = profile_lines(profile)
    assert sum("estimated, not measured" in line for line in lines) >= 2
    assert all(len(line.splitlines()) <= 1 for line in lines)


@pytest.mark.parametrize("target", ["host", "mps2_an500", "stm32h734"])
def test_targets_that_do_not_count_are_refused(export: Path, target: str) -> None:
    with pytest.raises(InputError, match="--target"):
        mcugen.profile(export, target=target)


def test_an_unknown_level_is_refused(export: Path) -> None:
    with pytest.raises(InputError, match="--opt"):
        mcugen.profile(export, opt="-O9")
