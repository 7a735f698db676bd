"""Above: the limit of the machine op decides as the exact real threshold does."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tree_models import LOC, Leaf, Split, forest_of, lower, model_of, spec_of

from mcugen.core.types import DType, Model
from mcugen.trees.ops import Above

TYPES = (DType.I32, DType.F32, DType.F64)


def _machine(values: tuple[float, float], threshold: float, leaf: DType, average: int | None = None) -> Model:
    forest = forest_of([Split(0, 0.0, Leaf(values[0]), Leaf(values[1]))], 1)
    model = model_of(forest, labels=("no", "yes"), class_above=threshold, average=average)
    return lower(model, spec_of(DType.I8, 1), "class", leaf)


def _above(machine: Model) -> Above:
    op = machine.ops[-1]
    assert isinstance(op, Above)
    return op


thresholds = st.sampled_from([0.0, -5e-324, 5e-324, 0.5, -0.5, 0.1, 1e300, -1e300, float("inf"), 1e-30, 3.5e38])
values = st.floats(-1e6, 1e6)


@pytest.mark.parametrize("leaf", [DType.I16, DType.I32])
@settings(max_examples=60, deadline=None)
@given(ends=st.tuples(values, values), threshold=thresholds, average=st.sampled_from([None, 3, 10, 49]))
@example(ends=(-3e5, 3e5), threshold=-5e-324, average=None)
@example(ends=(-1e8, 1e8), threshold=-5e-324, average=None)
def test_fixed_point_limit(leaf: DType, ends: tuple[float, float], threshold: float, average: int | None) -> None:
    """``q > limit`` exactly where ``q * scale > threshold``, for every q of int32."""
    machine = _machine(ends, threshold, leaf, average)
    op = _above(machine)
    q = machine.types[op.inputs[0]].q
    assert q is not None
    limit = int(op.limit)
    assert -(2**31) <= limit < 2**31
    if threshold == float("inf"):
        assert limit == 2**31 - 1
        return
    exact = Fraction(threshold) / Fraction(q.scale)
    for score in (limit, limit + 1):
        if -(2**31) < score < 2**31:  # no sum reaches -2^31: see test_sum_leaves.py
            assert (score > limit) == (score > exact)


@pytest.mark.parametrize("leaf", [DType.F32, DType.F64])
@settings(max_examples=100, deadline=None)
@given(threshold=thresholds, score=st.one_of(st.floats(allow_nan=True, width=32), thresholds))
def test_float_limit(leaf: DType, threshold: float, score: float) -> None:
    """A score of the type lies above the limit exactly where it lies above the threshold."""
    op = _above(_machine((-1.0, 1.0), threshold, leaf))
    assert np.isfinite(leaf.np.type(op.limit))
    with np.errstate(over="ignore"):
        x = leaf.np.type(score)
    want = float(x) > threshold
    if not (np.isinf(x) and threshold > float(np.finfo(leaf.np).max)):  # no score overflows: the bound says so
        assert op.eval(np.array([[x]]))[0].tolist() == [[int(want)]]


@pytest.mark.parametrize("dtype", TYPES)
def test_zero_is_not_above_zero(dtype: DType) -> None:
    """Zeros of both signs, NaN and infinities."""
    op = Above(("x",), ("y",), LOC, dtype, 0.0)
    x = [0.0, -0.0, 1.0, -1.0] + ([float("nan"), float("inf"), float("-inf"), 5e-324] if dtype is DType.F64 else [])
    got = op.eval(np.array(x, dtype.np)[:, None])[0]
    assert got.dtype == np.int32
    assert got[:, 0].tolist() == [0, 0, 1, 0] + ([0, 1, 0, 1] if dtype is DType.F64 else [])
