"""ArgMax: the lowest index of the largest score."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tree_models import LOC

from mcugen.core.types import DType
from mcugen.trees.ops import ArgMax

few = st.sampled_from([-(2**31), -1, 0, 1, 2**31 - 1])
reals = st.sampled_from([0.0, -0.0, 1.0, float("inf"), float("-inf"), 1e-40, -1e-40])


@pytest.mark.parametrize("dtype", [DType.I32, DType.F32, DType.F64])
@settings(max_examples=100, deadline=None)
@given(data=st.data(), count=st.integers(1, 6))
def test_lowest_on_ties(dtype: DType, data: st.DataObject, count: int) -> None:
    """Zeros of both signs are equal; infinities are numbers."""
    row = data.draw(st.lists(reals if dtype.is_float else few, min_size=count, max_size=count))
    x = np.array([row], dtype.np)
    got = ArgMax(("x",), ("y",), LOC, dtype, count).eval(x)[0]
    assert (got.dtype, got.shape) == (np.int32, (1, 1))
    assert got[0, 0] == row.index(max(row))


def test_nan_comes_first_as_in_numpy() -> None:
    """The libraries take numpy's argmax: the first NaN wins. test_scores.py holds the C to the same."""
    x = np.array([[1.0, np.nan, 3.0, np.nan], [np.nan, 2.0, 1.0, 0.0]])
    assert ArgMax(("x",), ("y",), LOC, DType.F64, 4).eval(x)[0].tolist() == [[1], [0]]
