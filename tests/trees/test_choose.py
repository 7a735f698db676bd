"""The choice between ways: goals keep their promises, obstacles are told, and bounds are those of what is stored."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tree_models import Leaf, Split, forest_of, lower, model_of, spec_of

from mcugen import build
from mcugen.core.types import DType
from mcugen.emulate.toolchain import find_cross_compiler
from mcugen.errors import InputError
from mcugen.trees.choose import GOALS, Choices, choose, explain_lines
from mcugen.trees.costs import Estimate, Features, Memory, estimate
from mcugen.trees.leaves import LeafSource, PackedLeaves
from mcugen.trees.narrow import Narrow, narrow_leaves
from mcugen.trees.parts import Parts

MODELS = Path(__file__).parents[1] / "goldens" / "models"
COSTS = Path(__file__).parents[2] / "benchmarks" / "results" / "tree_costs.json"


def _full(depth: int, at: int = 0) -> Split | Leaf:
    if depth == 0:
        return Leaf((at % 17) / 7 - 1.0)
    cut = float((at * 37) % 101)
    return Split(at % 5, cut, _full(depth - 1, 2 * at + 1), _full(depth - 1, 2 * at + 2))


def _decide(goal: str, some: list[Split | Leaf], leaf: DType = DType.I16, **options: object) -> Choices:
    seen: list[Choices] = []

    def keep(parts: Parts) -> Choices:
        seen.append(choose(parts, goal, Memory(code=49152, data=65536), **options))  # type: ignore[arg-type]
        return seen[-1]

    lower(model_of(forest_of(some, 5)), spec_of(DType.F32, 5), leaf=leaf, choose=keep)
    return seen[0]


FOREST: list[Split | Leaf] = [_full(4, i) for i in range(40)]


def test_goals() -> None:
    """speed: no candidate has fewer cycles; size: near the smallest flash; balanced: below twice the flash of size."""
    speed, size, balanced = (_decide(g, FOREST) for g in ("speed", "size", "balanced"))
    costs = {(c.ranking, c.summing): c.cost for c in speed.candidates if c.cost is not None}
    assert len(costs) == 9
    won = {g: costs[c.ranking, c.summing] for g, c in (("speed", speed), ("size", size))}
    assert won["speed"].cycles == min(c.cycles for c in costs.values())
    assert won["size"].flash <= 1.2 * min(c.flash for c in costs.values())
    costs |= {(c.ranking, c.summing): c.cost for c in balanced.candidates if c.cost is not None}
    won["balanced"] = costs[balanced.ranking, balanced.summing]
    assert won["balanced"].flash < 2 * won["size"].flash
    assert won["balanced"].cycles == min(c.cycles for c in costs.values() if c.flash < 2 * won["size"].flash)
    assert (speed.summing, size.summing) == ("branches", "packed")


@pytest.mark.parametrize("goal", GOALS)
@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=10, deadline=None)
def test_only_size_pays_with_accuracy(goal: str, seed: int) -> None:
    """Bounds of int16 leaves stay below 0.03 % of the span of the scores, 0.1 % for size, whatever words can hold."""
    rng = np.random.default_rng(seed)
    values = rng.standard_cauchy(16) * 10.0 ** rng.integers(-3, 4)

    def full(depth: int, at: int = 0) -> Split | Leaf:
        if depth == 0:
            return Leaf(float(values[at % 16]))
        return Split(at % 5, float((at * 37) % 101), full(depth - 1, 2 * at + 1), full(depth - 1, 2 * at + 2))

    some = [full(int(rng.integers(2, 6)), i) for i in range(30)]
    found = _decide(goal, some)
    bound = found.leaves.bound
    share = bound.error / (bound.range_high - bound.range_low)
    assert share <= (1e-3 if goal == "size" else 3e-4)


def test_balanced_is_between_size_and_speed() -> None:
    """Fewer cycles than size and less flash than speed, with the finer leaves: trees as code beside trees as words."""
    some = [_full(5, i) for i in range(150)]
    speed, size, balanced = (_decide(g, some) for g in ("speed", "size", "balanced"))
    assert balanced.summing == "mixed"
    split = balanced.split
    assert split is not None
    assert sorted([*split.trees[0].tolist(), *split.trees[1].tolist()]) == list(range(len(some)))
    cost = {g: _cost(c) for g, c in (("speed", speed), ("size", size), ("balanced", balanced))}
    assert cost["size"].cycles > cost["balanced"].cycles > cost["speed"].cycles
    assert cost["size"].flash < cost["balanced"].flash < cost["speed"].flash
    bound = balanced.leaves.bound
    assert bound.error <= 3e-4 * (bound.range_high - bound.range_low)


def _cost(found: Choices) -> Estimate:
    return next(c.cost for c in found.candidates if (c.ranking, c.summing) == (found.ranking, found.summing) and c.cost)


@pytest.mark.parametrize("goal", GOALS)
def test_the_same_choice_twice(goal: str) -> None:
    a, b = (_decide(goal, FOREST) for _ in range(2))
    assert explain_lines(a) == explain_lines(b)
    assert np.array_equal(a.leaves.leaf, b.leaves.leaf)


def test_obstacles_are_told() -> None:
    """Each candidate has a cost or a reason; the chosen one says why."""
    some = [*FOREST, Split(1, 0.0, Leaf(0.0), Leaf(1.0), categories=(1, 2))]
    found = _decide("size", some)
    assert all((c.cost is None) == bool(c.obstacle) for c in found.candidates)
    lines = "\n".join(explain_lines(found))
    assert lines.count("not possible: categorical nodes") == 3
    assert lines.count("chosen: ") == 1


def test_limit_on_short_leaves() -> None:
    """A bound that short leaves cannot keep sends a model to the tables; --leaf int32 keeps its leaves."""
    loose, tight = _decide("size", FOREST, limit=1.0), _decide("size", FOREST, limit=1e-6)
    assert loose.summing == "packed"
    assert loose.leaves.bound.error <= 1.0
    assert tight.summing != "packed"
    speed = _decide("speed", FOREST, limit=1e-3)
    assert speed.summing == "branches"
    assert speed.leaves.bound.error <= 1e-3
    exact = _decide("speed", FOREST, DType.I32)
    assert exact.leaves.bound.error < 1e-5


@pytest.mark.parametrize("goal", GOALS)
@pytest.mark.parametrize("limit", [1e-2, 1e-3, 1e-4, 1e-5, 1e-6])
def test_a_limit_that_some_way_keeps_is_kept(goal: str, limit: float) -> None:
    """Whatever the goal likes best otherwise: ways whose leaves are too coarse are no candidates."""
    found = _decide(goal, FOREST, limit=limit)
    assert found.leaves.bound.error <= limit
    for c in found.candidates:
        if c.summing == "tables":
            whole = _decide("size", FOREST).leaves if c.cost is None else None
            assert whole is None or "not exact enough" in c.obstacle


def test_a_limit_that_nothing_keeps() -> None:
    found = _decide("balanced", FOREST, limit=0.0)
    assert (found.ranking, found.summing) == ("search", "tables")
    assert all("not exact enough" in c.obstacle for c in found.candidates)


def _furnace() -> Path:
    return Path(__file__).parents[2] / "examples" / "quickstart" / "furnace.txt"


def test_hints_name_what_keeps_a_limit(tmp_path: Path) -> None:
    """Each option that the hint names works; those that it leaves out are refused."""

    def hint(limit: float, **options: str) -> str | None:
        try:
            build.export(_furnace(), tmp_path / "m", name="m", max_error=limit, verify=False, force=True, **options)
        except InputError as e:
            return f"{e.where}: {e.hint}"
        return None

    for limit in (1e-2, 1e-5, 1e-8, 0.0):
        for leaf in ("int16", "int32", "float32"):
            told = hint(limit, leaf=leaf)
            if told is not None:
                for other in ("int32", "float32", "float64"):
                    assert (other in told) == (hint(limit, leaf=other) is None), (limit, leaf, told)
    assert hint(0.0) == "--max-error: use --leaf float64"


def test_the_limit_of_a_mean_is_not_that_of_the_sum() -> None:
    """The score of a forest is a mean: its sum may be off by as many times more, and the leaves may be as short."""
    some: list[Split | Leaf] = [_full(4, i) for i in range(32)]
    seen: list[Choices] = []

    def keep(parts: Parts) -> Choices:
        seen.append(choose(parts, "size", Memory(), 1e-3))
        return seen[-1]

    machine = lower(model_of(forest_of(some, 5), average=32), spec_of(DType.F32, 5), leaf=DType.I16, choose=keep)
    assert seen[0].summing == "packed"
    assert 1e-3 < seen[0].leaves.bound.error <= 32e-3
    assert machine.bounds["score"].error <= 1e-3


def test_command_options(tmp_path: Path) -> None:
    """Through export: the goal is recorded, --explain has the table, a bound that nothing keeps is refused."""
    for goal in GOALS:
        done = build.export(MODELS / "nan.txt", tmp_path / goal, name="m", optimize=goal, board="none")
        assert any("chosen: " in line for line in done.report.details)
    with pytest.raises(InputError, match="--max-error"):
        build.export(MODELS / "nan.txt", tmp_path / "bound", name="m", max_error=1e-12, board="none")
    with pytest.raises(InputError, match="ways"):
        build.export(MODELS / "nan.txt", tmp_path / "ways", name="m", ways="magic+tables", board="none")


def test_explain_measures(tmp_path: Path) -> None:
    """Every possible candidate is built and run where a cross compiler is found; without a board none is."""
    done = build.export(MODELS / "nan.txt", tmp_path / "none", name="m", explain=True, board="none")
    assert done.report.details[-1] == "not measured: no board"
    try:
        find_cross_compiler()
    except InputError:
        pytest.skip("no cross compiler")
    pytest.importorskip("unicorn")
    done = build.export(MODELS / "nan.txt", tmp_path / "board", name="m", explain=True)
    measured = [line for line in done.report.details if line.endswith("cycles (estimated)")]
    assert len(measured) == 9 + 3  # trees as code and as words together
    assert all(int(line.split(" bytes")[0].split()[-1].replace(",", "")) < 2000 for line in measured)


def test_estimates_agree_with_measurements() -> None:
    """The constants are those that the committed measurements give: instructions and bytes within a fifth,

    from one stump to 500 trees.
    """
    rows = json.loads(COSTS.read_text(encoding="utf-8"))
    assert len(rows) >= 20
    for row in rows:
        found = Features({row["ranking"]: row["rank_features"]}, {row["summing"]: row["sum_features"]})
        cost = estimate(found, row["ranking"], row["summing"], Memory(code=49152, data=65536))
        # Of a handful of stumps a few instructions are a large part.
        assert cost.instructions == pytest.approx(row["instructions"], rel=0.2, abs=110), row["model"]
        assert cost.flash == pytest.approx(row["memory"]["flash"], rel=0.2), row["model"]


# Short leaves


def _source(tables: list[list[float]], base: list[float]) -> LeafSource:
    first = np.cumsum([0, *map(len, tables)])
    value = np.array([v for t in tables for v in t], np.float64)[:, None]
    return LeafSource(value, first, np.array(base, np.float64))


def _worst_gap(source: LeafSource, packed: PackedLeaves) -> Fraction:
    """The largest distance of a packed score from the real-number score, over all choices of leaves. Exact."""
    k, unit = source.outputs, Fraction(packed.unit)
    low = [Fraction(int(b)) * unit - Fraction(float(s)) for b, s in zip(packed.base, source.base, strict=True)]
    high = list(low)
    for t, (a, b) in enumerate(zip(source.first[:-1].tolist(), source.first[1:].tolist(), strict=True)):
        one = unit * int(packed.factor[t])
        gaps = [Fraction(int(packed.leaf[i, 0])) * one - Fraction(float(source.value[i, 0])) for i in range(a, b)]
        low[t % k] += min(gaps)
        high[t % k] += max(gaps)
    return max(max(abs(a), abs(b)) for a, b in zip(low, high, strict=True))


values = st.one_of(
    st.floats(-2.0, 2.0),
    st.builds(lambda m, f: m * f, st.sampled_from([1e-30, 1e-6, 1.0, 3e4, 1e9, 1e30]), st.floats(-2.0, 2.0)),
    st.builds(lambda m, f: m + f, st.sampled_from([1e-6, 1.0, 3e4, 1e9]), st.floats(-2.0, 2.0)),
)


@settings(max_examples=300, deadline=None)
@given(
    tables=st.lists(st.lists(values, min_size=1, max_size=6), min_size=1, max_size=6),
    base=st.lists(values, min_size=1, max_size=3),
    most=st.sampled_from([127, 2047, 4095]),
    strict=st.booleans(),
    error=st.sampled_from([None, 1e-3, 1.0]),
)
@example(tables=[[1e300, -1e300], [1e-300, 2e-300]], base=[0.0], most=127, strict=True, error=None)
@example(tables=[[5e-324, -5e-324]], base=[0.0], most=127, strict=False, error=None)
@example(tables=[[0.0]], base=[0.0], most=127, strict=True, error=None)
@example(tables=[[-1.7e308, 1.7e308]], base=[0.0], most=127, strict=False, error=1.0)
def test_narrow_leaves(
    tables: list[list[float]], base: list[float], most: int, strict: bool, error: float | None
) -> None:
    """The bound is never understated and never above what was wanted, the int32 sum never overflows."""
    source = _source(tables, base)
    packed = narrow_leaves(source, Narrow(most, strict, error))
    if packed is None:
        return
    assert _worst_gap(source, packed) <= Fraction(packed.bound.error)
    assert error is None or packed.bound.error <= error
    if strict:
        assert np.abs(packed.leaf).max() <= most
    reach = [abs(int(b)) for b in packed.base]
    for t, (a, b) in enumerate(zip(source.first[:-1].tolist(), source.first[1:].tolist(), strict=True)):
        reach[t % source.outputs] += max(abs(int(v)) for v in packed.leaf[a:b, 0]) * int(packed.factor[t])
    assert max(reach) < 2**31
    assert packed.factor.min() >= 1
    assert strict or all(f & (f - 1) == 0 for f in packed.factor.tolist())


def test_units_follow_the_trees() -> None:
    """Narrow trees do not pay for a wide one."""
    source = _source([[-1000.0, 0.0, 777.7]] + [[-1.0, 0.3, 0.9]] * 20, [0.0])
    found = narrow_leaves(source, Narrow(2047, True, None))
    assert found is not None
    assert found.factor[0] >= 512
    assert found.bound.error < 0.6
