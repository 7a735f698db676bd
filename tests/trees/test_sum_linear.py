"""SumLinear: the same doubles as adding term by term in Python."""

from __future__ import annotations

import warnings
from math import isnan

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tree_models import (
    BAND,
    Leaf,
    Split,
    forest_of,
    leaves_of,
    lower,
    model_of,
    naive_leaf,
    rank_and_sum,
    spec_of,
    value_of,
)

from mcugen.core.types import DType
from mcugen.trees.forest import Missing
from mcugen.trees.ops import SumLinear
from mcugen.trees.signals import InputSpec, Signal

number = st.one_of(st.floats(-10, 10), st.sampled_from([0.0, 1e300, -1e-300, 0.1]))
terms = st.lists(st.tuples(st.integers(0, 1), number), max_size=3).map(tuple)
leaf = st.builds(lambda v, c, t: Leaf(v, (c, t)), number, number, terms)
cuts = st.sampled_from([-2.0, 0.0, 0.5, 3.0])
tree = st.recursive(
    leaf,
    lambda c: st.builds(Split, st.integers(0, 1), cuts, c, c, st.sampled_from(list(Missing)), st.booleans()),
    max_leaves=5,
)
inputs = st.sampled_from(
    [0.0, -0.0, BAND, -BAND, 2e-35, -2.0, 0.5, 0.1, 3.0, 1e30, float("nan"), float("inf"), float("-inf")]
)


def _plain(trees: list[Split | Leaf], values: list[float], outputs: int) -> list[float]:
    """Term by term, tree by tree, in Python's doubles."""
    total = [0.5, -1.0][:outputs]
    flat = [0.0 if abs(v) <= BAND else v for v in values]
    for t, each in enumerate(trees):
        chosen = leaves_of(each)[naive_leaf(each, values)]
        assert chosen.linear is not None
        assert isinstance(chosen.value, float)
        sum_, used = chosen.linear[0], False
        for f, k in chosen.linear[1]:
            used |= isnan(flat[f])
            sum_ += k * flat[f]
        total[t % outputs] += chosen.value if used else sum_
    return total


@pytest.mark.parametrize("dtype", [DType.F64, DType.F32])
@settings(max_examples=150, deadline=None)
@given(
    trees=st.lists(tree, min_size=1, max_size=4),
    outputs=st.integers(1, 2),
    rows=st.lists(st.tuples(inputs, inputs), min_size=1, max_size=6),
)
def test_floats(dtype: DType, trees: list[Split | Leaf], outputs: int, rows: list[tuple[float, float]]) -> None:
    x = np.array(rows, dtype.np)
    _check(trees, spec_of(dtype, 2), x, outputs)


@settings(max_examples=150, deadline=None)
@given(
    trees=st.lists(tree, min_size=1, max_size=4),
    scale=st.sampled_from([0.1, -0.3, 1e-36]),
    missing=st.sampled_from([None, -32768, 0]),
    rows=st.lists(st.tuples(*[st.sampled_from([-32768, -1, 0, 1, 5, 30, 32767])] * 2), min_size=1, max_size=6),
)
def test_counts(trees: list[Split | Leaf], scale: float, missing: int | None, rows: list[tuple[int, int]]) -> None:
    """int16 inputs, one with a map and a sentinel, one without."""
    spec = InputSpec(DType.I16, (Signal(scale, 0.1 if scale > 1e-30 else 0.0, missing), Signal()))
    _check(trees, spec, np.array(rows, np.int16), 1)


def _check(trees: list[Split | Leaf], spec: InputSpec, x: np.ndarray, outputs: int) -> None:
    model = model_of(forest_of(trees, 2, outputs), base=[0.5, -1.0][:outputs])
    rank, total = rank_and_sum(lower(model, spec))
    assert isinstance(total, SumLinear)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        got = total.eval(rank.eval(x)[0], x)[0]
    for row, found in zip(x.tolist(), got, strict=True):
        values = [value_of(v, s) for v, s in zip(row, spec.signals, strict=True)]
        np.testing.assert_array_equal(found, _plain(trees, values, outputs))
