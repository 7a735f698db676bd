"""SumLeaves: the sum is that of plain recursion; the packing of leaves keeps its promises, in exact arithmetic."""

from __future__ import annotations

import warnings
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tree_models import (
    Leaf,
    Split,
    exact_sum,
    forest_of,
    leaves_of,
    lower,
    model_of,
    naive_leaf,
    rank_and_sum,
    spec_of,
    trees,
)

from mcugen.core.types import Array, DType
from mcugen.errors import McugenError, UnsupportedError
from mcugen.trees.leaves import LeafSource, PackedLeaves, pack_leaves
from mcugen.trees.ops import SumLeaves

FIXED = (DType.I16, DType.I32)
LEAVES = (*FIXED, DType.F32, DType.F64)
magnitudes = st.sampled_from([5e-324, 1e-310, 1e-300, 1e-38, 1e-6, 1.0, 3e4, 1e9, 1e30, 1e300])
plain = st.floats(-2.0, 2.0)
hostile = st.one_of(
    plain,
    st.just(0.0),
    st.builds(lambda m, f: m * f, magnitudes, plain),
    st.builds(lambda m, f: m + f, magnitudes, plain),
)


@pytest.mark.parametrize("leaf_type", LEAVES)
@settings(max_examples=60, deadline=None)
@given(
    forest_trees=st.lists(trees(2, plain, cuts=st.integers(-3, 3).map(float)), min_size=1, max_size=6),
    outputs=st.integers(1, 3),
    rows=st.lists(st.tuples(st.integers(-4, 4), st.integers(-4, 4)), min_size=1, max_size=8),
)
def test_equals_recursion(
    leaf_type: DType, forest_trees: list[Split | Leaf], outputs: int, rows: list[tuple[int, int]]
) -> None:
    """Within the bound of the exact sum; float64 exactly as the library adds."""
    base = [0.25, -3.0, 1e-3][:outputs]
    machine = lower(model_of(forest_of(forest_trees, 2, outputs), base=base), spec_of(DType.I8, 2), leaf=leaf_type)
    rank, total = rank_and_sum(machine)
    assert isinstance(total, SumLeaves)
    score = total.eval(rank.eval(np.array(rows, np.int8))[0])[0]
    assert score.dtype == total.sum_dtype.np
    for row, found in zip(rows, score.tolist(), strict=True):
        leaf = [naive_leaf(t, row) for t in forest_trees]
        exact = exact_sum(forest_trees, leaf, base)
        for k in range(outputs):
            real = Fraction(found[k]) * Fraction(total.leaves.unit)
            if leaf_type is DType.F64:
                assert found[k] == _library_sum(forest_trees, leaf, base, outputs)[k]
            else:
                assert abs(real - exact[k]) <= Fraction(total.leaves.bound.error)


def _library_sum(forest_trees: list[Split | Leaf], leaf: list[int], base: list[float], outputs: int) -> list[float]:
    """float64, tree after tree."""
    total = list(base)
    for t, tree in enumerate(forest_trees):
        value = leaves_of(tree)[leaf[t]].value
        assert isinstance(value, float)
        total[t % outputs] += value
    return total


@pytest.mark.parametrize("leaf_type", LEAVES)
def test_leaves_with_a_value_for_each_output(leaf_type: DType) -> None:
    """One tree adds to all sums, as the forests of scikit-learn do."""
    tree = Split(0, 0.0, Leaf((0.25, 0.5, -0.25)), Split(0, 5.0, Leaf((1.0, 0.0, 2.0)), Leaf((0.0, -1.0, 0.5))))
    machine = lower(model_of(forest_of([tree, tree], 1, 3), base=[1.0, 2.0, 3.0]), spec_of(DType.I8, 1), leaf=leaf_type)
    rank, total = rank_and_sum(machine)
    assert isinstance(total, SumLeaves)
    score = total.eval(rank.eval(np.array([[-1], [3], [9]], np.int8))[0])[0] * total.leaves.unit
    assert np.abs(score - [[1.5, 3.0, 2.5], [3.0, 2.0, 7.0], [1.0, 0.0, 4.0]]).max() <= total.leaves.bound.error


# Packing


def _source(tables: list[list[float]], base: list[float]) -> LeafSource:
    first = np.cumsum([0, *map(len, tables)])
    value = np.array([v for t in tables for v in t], np.float64)[:, None]
    return LeafSource(value, first, np.array(base, np.float64))


def _worst_gaps(source: LeafSource, packed: PackedLeaves) -> list[Fraction]:
    """The largest distance of a packed score from the real-number score, over all choices of leaves. Exact."""
    k = source.outputs
    unit = Fraction(packed.unit)
    shift = [Fraction(int(b)) * unit - Fraction(float(s)) for b, s in zip(packed.base, source.base, strict=True)]
    low, high = list(shift), list(shift)
    for t, (a, b) in enumerate(zip(source.first[:-1].tolist(), source.first[1:].tolist(), strict=True)):
        gaps = [Fraction(int(packed.leaf[i, 0])) * unit - Fraction(float(source.value[i, 0])) for i in range(a, b)]
        low[t % k] += min(gaps)
        high[t % k] += max(gaps)
    return [max(abs(lo), abs(hi)) for lo, hi in zip(low, high, strict=True)]


leaf_tables = st.lists(st.lists(hostile, min_size=1, max_size=6), min_size=1, max_size=6)


@pytest.mark.parametrize("leaf_type", FIXED)
@settings(max_examples=400, deadline=None)
@given(tables=leaf_tables, base=st.lists(hostile, min_size=1, max_size=3))
@example(tables=[[1e9, 1e9 + 1e-3]], base=[0.0])
@example(tables=[[1e300, -1e300], [1e-300, 2e-300]], base=[0.0])
@example(tables=[[5e-324, -5e-324]], base=[0.0])
@example(tables=[[0.0]], base=[0.0])
@example(tables=[[0.1]] * 4, base=[1e9])
@example(tables=[[3.0, 3.0, 3.0]], base=[-3.0])
@example(tables=[[-1.7e308, 1.7e308]], base=[0.0])
@example(tables=[[1.0, 0.0], [1.0e9], [-1.0e9]], base=[0.0])
def test_fixed_point(leaf_type: DType, tables: list[list[float]], base: list[float]) -> None:
    """The bound is never understated, the int32 sum never overflows, and no leaf is clipped."""
    source = _source(tables, base)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        packed = pack_leaves(source, leaf_type, "test")
    assert packed.leaf.dtype == leaf_type.np
    assert packed.base.dtype == np.int32
    assert max(_worst_gaps(source, packed)) <= Fraction(packed.bound.error)
    reach = [abs(int(b)) for b in packed.base]
    for t, (a, b) in enumerate(zip(source.first[:-1].tolist(), source.first[1:].tolist(), strict=True)):
        reach[t % source.outputs] += max(abs(int(v)) for v in packed.leaf[a:b, 0])
    assert max(reach) < 2**31
    _check_range(source, packed)


def _check_range(source: LeafSource, packed: PackedLeaves) -> None:
    """range_low and range_high enclose every score, also the float64 sum that the library forms."""
    k = source.outputs
    for pick, end, sign in ((min, packed.bound.range_low, 1), (max, packed.bound.range_high, -1)):
        exact = [Fraction(float(b)) for b in source.base]
        real = source.base.astype(np.float64).copy()
        for t, (a, b) in enumerate(zip(source.first[:-1].tolist(), source.first[1:].tolist(), strict=True)):
            v = float(pick(source.value[a:b, 0]))
            exact[t % k] += Fraction(v)
            real[t % k] += v
        extreme = pick(exact)
        assert end in (np.inf, -np.inf) or sign * (extreme - Fraction(end)) >= 0
        assert sign * (pick(real.tolist()) - end) >= 0


@settings(max_examples=200, deadline=None)
@given(tables=leaf_tables, base=st.lists(hostile, min_size=1, max_size=3))
@example(tables=[[16777217.0], [1.0]], base=[0.1])
@example(tables=[[1e-40, 1e-46]], base=[0.0])
@example(tables=[[3e38, 0.0], [3e38, 0.0]], base=[0.0])
def test_float32(tables: list[list[float]], base: list[float]) -> None:
    """The bound holds for float32 sums in the order of the trees, against exact arithmetic."""
    source = _source(tables, base)
    try:
        packed = pack_leaves(source, DType.F32, "test")
    except UnsupportedError:
        assert sum(np.abs(source.value).max(axis=1, initial=0.0)) + np.abs(source.base).max() > 3.4e38
        return
    rng = np.random.default_rng(0)
    for _ in range(8):
        pick = [int(rng.integers(a, b)) for a, b in zip(source.first[:-1], source.first[1:], strict=True)]
        total = packed.base.copy()
        exact = [Fraction(float(b)) for b in source.base]
        for t, i in enumerate(pick):
            total[t % source.outputs] += packed.leaf[i, 0]
            exact[t % source.outputs] += Fraction(float(source.value[i, 0]))
        if np.isfinite(total).all():
            gap = max(abs(Fraction(float(v)) - e) for v, e in zip(total, exact, strict=True))
            assert gap <= Fraction(packed.bound.error)
    _check_range(source, packed)


@pytest.mark.parametrize("leaf_type", FIXED)
def test_precision_is_used(leaf_type: DType) -> None:
    """A unit is not coarser than what the widest tree needs, wherever the mean lies."""
    for offset in (0.0, 1.0, 1000.0):
        source = _source([[offset - 1.0, offset + 1.0], [-0.5, 0.5]], [0.0])
        packed = pack_leaves(source, leaf_type, "test")
        assert np.abs(packed.leaf).max() > leaf_type.max // 4 or leaf_type is DType.I32
        assert packed.bound.error <= 4 * max(2.0 / leaf_type.max, 2 * (offset + 1.0) / 2**31)


@pytest.mark.parametrize("leaf_type", [*FIXED, DType.F32])
@pytest.mark.parametrize("bad", [float("inf"), float("nan"), float("-inf")])
def test_leaves_that_are_no_numbers(leaf_type: DType, bad: float) -> None:
    """A readable error, not a crash and not a silent number."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(McugenError) as caught:
            pack_leaves(_source([[0.5, bad]], [0.0]), leaf_type, "test")
    assert caught.value.exit_code == UnsupportedError.exit_code


@pytest.mark.parametrize("leaf_type", FIXED)
def test_many_trees_stay_inside_int32(leaf_type: DType) -> None:
    """70,000 trees at full swing: the unit grows until the sum fits."""
    source = LeafSource(np.tile([[-1.0], [1.0]], (70_000, 1)), np.arange(0, 140_001, 2), np.zeros(1))
    packed = pack_leaves(source, leaf_type, "test")
    peak: Array = np.abs(packed.leaf.astype(np.int64)).max()
    assert peak * 70_000 < 2**31
    assert peak * 70_000 > 2**29
