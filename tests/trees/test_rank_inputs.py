"""RankInputs: the side that every node takes is the one that Python's comparison takes, for every kind of input."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tree_models import (
    BAND,
    CATEGORIES,
    INPUT_TYPES,
    Known,
    Leaf,
    Split,
    forest_of,
    leaf_names,
    lower,
    model_of,
    naive_leaf,
    neighbours,
    nodes_of,
    rank_and_sum,
    spec_of,
    trees,
    value_of,
)

from mcugen.core.types import Array, DType
from mcugen.trees.forest import Missing
from mcugen.trees.keys import key_range, keys_of, values_of
from mcugen.trees.signals import InputSpec, Signal

INTEGERS = tuple(t for t in INPUT_TYPES if not t.is_float)
small = st.floats(-4.0, 4.0)


def _check(
    forest_trees: list[Split | Leaf], spec: InputSpec, x: Array, band: float = BAND, known: Known | None = None
) -> None:
    """Every row of x reaches the leaves that recursion finds."""
    machine = lower(model_of(forest_of(forest_trees, x.shape[1], band=band, known=known)), spec)
    found = leaf_names(machine, x)
    for row, leaf in zip(x, found, strict=True):
        values = [value_of(v.item(), s) for v, s in zip(row, spec.signals, strict=True)]
        assert leaf.tolist() == [naive_leaf(t, values, band, known) for t in forest_trees], (row, values)


def _rows(dtype: DType, forest_trees: list[Split | Leaf], spec: InputSpec, rng: np.random.Generator) -> Array:
    """Rows of hostile inputs: each feature near its own thresholds, mixed at random."""
    columns = []
    for f, signal in enumerate(spec.signals):
        points = [n.threshold for t in forest_trees for n in nodes_of(t) if n.feature == f and np.isfinite(n.threshold)]
        points += [float(c) for t in forest_trees for n in nodes_of(t) if n.feature == f for c in n.categories or ()]
        columns.append(neighbours(dtype, points, signal))
    longest = max(map(len, columns))
    return np.stack([rng.permutation(np.resize(c, longest)) for c in columns], axis=1)


@pytest.mark.parametrize("dtype", INPUT_TYPES)
@settings(max_examples=40, deadline=None)
@given(
    forest_trees=st.lists(trees(2, small), min_size=1, max_size=3),
    seed=st.integers(0, 9),
    band=st.sampled_from([0.0, BAND]),
)
@example(forest_trees=[Split(0, -0.0, Leaf(0.0), Leaf(1.0), Missing.ZERO)], seed=0, band=0.0)
@example(forest_trees=[Split(0, float("inf"), Leaf(0.0), Leaf(1.0), Missing.NAN)], seed=0, band=BAND)
@example(forest_trees=[Split(0, float("-inf"), Leaf(0.0), Leaf(1.0), Missing.NONE)], seed=0, band=BAND)
def test_plain_inputs(dtype: DType, forest_trees: list[Split | Leaf], seed: int, band: float) -> None:
    spec = spec_of(dtype, 2)
    _check(forest_trees, spec, _rows(dtype, forest_trees, spec, np.random.default_rng(seed)), band)


@pytest.mark.parametrize("dtype", INTEGERS)
@settings(max_examples=40, deadline=None)
@given(
    forest_trees=st.lists(trees(2, small), min_size=1, max_size=3),
    place=st.sampled_from(["min", "max", "zero", "one"]),
    seed=st.integers(0, 9),
)
def test_sentinels(dtype: DType, forest_trees: list[Split | Leaf], place: str, seed: int) -> None:
    missing = {"min": dtype.min, "max": dtype.max, "zero": 0, "one": 1}[place]
    spec = InputSpec(dtype, (Signal(missing=missing), Signal()))
    _check(forest_trees, spec, _rows(dtype, forest_trees, spec, np.random.default_rng(seed)))


awkward = st.sampled_from([0.1, 0.01, -0.3, 1 / 3, -1e-3, 0.0625, 7.0, -1e20, 1e-30, 3e-36, 1e-38])


@pytest.mark.parametrize("single", [False, True])
@pytest.mark.parametrize("dtype", INTEGERS)
@settings(max_examples=40, deadline=None)
@given(
    data=st.data(),
    scale=awkward,
    offset=st.sampled_from([0.0, -0.0, -40.0, 0.1, 273.15, 1e-35, -1e-36]),
    missing=st.sampled_from([None, "min", "zero"]),
)
def test_sensor_maps(
    dtype: DType, single: bool, data: st.DataObject, scale: float, offset: float, missing: str | None
) -> None:
    """Thresholds are values that the map itself gives, where a real-number inversion would err."""
    mark = {None: None, "min": dtype.min, "zero": 0}[missing]
    signal = Signal(scale, offset, mark, single)
    counts = st.integers(dtype.min, dtype.max).map(lambda c: value_of(c, Signal(scale, offset, None, single)))
    cuts = st.one_of(counts, counts.map(lambda v: float(np.nextafter(v, np.inf))), st.sampled_from([0.0, BAND, offset]))
    forest_trees = data.draw(st.lists(trees(1, small, cuts=cuts), min_size=1, max_size=3))
    spec = spec_of(dtype, 1, signal)
    _check(forest_trees, spec, _rows(dtype, forest_trees, spec, np.random.default_rng(0)))


@pytest.mark.parametrize(("scale", "offset"), [(0.1, 0.0), (0.01, -40.0), (-0.3, 0.1), (1 / 3, 1e-9)])
@pytest.mark.parametrize("single", [False, True])
@pytest.mark.parametrize("dtype", [DType.I8, DType.U8])
def test_every_count_of_a_byte(dtype: DType, single: bool, scale: float, offset: float) -> None:
    """All 256 inputs against all 256 thresholds that equal a value of the map."""
    signal = Signal(scale, offset, None, single)
    counts = np.arange(dtype.min, dtype.max + 1).astype(dtype.np)
    cuts = [value_of(int(c), signal) for c in counts]
    forest_trees: list[Split | Leaf] = [Split(0, c, Leaf(0.0), Leaf(1.0)) for c in cuts]
    machine = lower(model_of(forest_of(forest_trees, 1, band=0.0)), spec_of(dtype, 1, signal))
    right = leaf_names(machine, counts[:, None])
    want = np.array([[v > c for c in cuts] for v in cuts])
    assert np.array_equal(right.astype(bool), want)


@pytest.mark.parametrize("dtype", [DType.F64, DType.F32, DType.I16, DType.U8])
@pytest.mark.parametrize("exact", [False, True])
@settings(max_examples=40, deadline=None)
@given(data=st.data(), missing=st.sampled_from([None, 0, 31, 33, 127]), seed=st.integers(0, 9))
def test_categories(dtype: DType, exact: bool, data: st.DataObject, missing: int | None, seed: int) -> None:
    """Truncated and any (LightGBM), or whole and from a list (scikit-learn), where the rest may also go left."""
    tree = trees(2, small, categorical=True, defaults=exact)
    forest_trees = data.draw(st.lists(tree, min_size=1, max_size=3))
    known = (None, CATEGORIES[1:]) if exact else None
    spec = InputSpec(dtype, (Signal(), Signal(missing=None if dtype.is_float else missing)))
    x = _rows(dtype, forest_trees, spec, np.random.default_rng(seed))
    if dtype.is_float:
        odd = np.array([0.5, 1.99, -0.5, -0.999999, -1.0, -1.5, 31.5, 2147483647.0, 2147483648.0, 1e30], dtype.np)
        x = np.concatenate([x, np.stack([np.zeros_like(odd), odd], axis=1)])
    _check(forest_trees, spec, x, known=known)


@pytest.mark.parametrize("dtype", [DType.F64, DType.F32])
def test_keys_order_numbers(dtype: DType) -> None:
    """Ascending numbers have ascending keys, NaNs lie outside, and no key is lost on the way back."""
    values = np.unique(neighbours(dtype, [1.5, 2.5e-310, 1e30]))
    numbers = values[~np.isnan(values)]
    keys = keys_of(numbers, dtype)
    assert np.all(np.diff(keys) > 0)
    assert np.array_equal(values_of(keys, dtype), numbers)
    low, high = key_range(dtype)
    assert (keys.min(), keys.max()) == (low, high)
    nan = neighbours(dtype, [])
    outside = keys_of(nan[np.isnan(nan)], dtype)
    assert np.all((outside < low) | (outside > high))
    assert keys_of(np.array([-0.0]), dtype)[0] + 1 == keys_of(np.array([0.0]), dtype)[0]


def test_wide_columns() -> None:
    """More than 65,535 thresholds in one column: ranks of 32 bits."""
    cuts = np.arange(65_600, dtype=np.float64)
    forest_trees: list[Split | Leaf] = [Split(0, float(c), Leaf(0.0), Leaf(1.0)) for c in cuts]
    machine = lower(model_of(forest_of(forest_trees, 1)), spec_of(DType.I32, 1))
    rank, total = rank_and_sum(machine)
    assert rank.columns.rank_dtype is DType.U32
    ctypes = {i.symbol: i.ctype for i in rank.items("m")}
    assert ctypes["m_columns"] == "mcg_column32_t"
    x = np.array([[-1], [0], [1], [65_534], [65_535], [65_536], [65_599], [65_600]], np.int32)
    score = total.leaf_names(rank.eval(x)[0]).sum(axis=1)
    assert score.tolist() == [int((c < v).sum()) for (v,) in x.tolist() for c in [cuts]]


def test_input_numbers_above_16_bits() -> None:
    """A feature's number does not fit 16 bits: the column's struct must be the wide one."""
    tree = Split(70_000, 0.5, Leaf(0.0), Leaf(1.0))
    machine = lower(model_of(forest_of([tree], 70_001)), spec_of(DType.I8, 70_001))
    rank, _ = rank_and_sum(machine)
    columns = next(i for i in rank.items("m") if i.symbol == "m_columns")
    assert columns.data is not None
    assert columns.data[0].tolist()[0] == 70_000
