"""Softmax: probabilities of float32 within a few units in the last place of float64's."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tree_models import LOC

from mcugen.core.types import Array
from mcugen.trees.ops import Softmax


def softmax(x: Array) -> Array:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return np.asarray(Softmax(("x",), ("y",), LOC, x.shape[1]).eval(x)[0])


@settings(max_examples=300, deadline=None)
@given(
    row=st.lists(
        st.floats(allow_nan=False, allow_infinity=False, width=32) | st.floats(-20, 20, width=32),
        min_size=1,
        max_size=12,
    )
)
def test_error(row: list[float]) -> None:
    """Relative: the rounding of x - max times its size (below 104), 1 ulp of exp, the sum, the quotient."""
    x = np.array([row], np.float32)
    got = softmax(x)[0]
    z = x[0].astype(np.float64) - x[0].max()
    exact = np.exp(z) / np.exp(z).sum()
    limit = exact * (np.minimum(np.abs(z), 104.0) + len(row) + 4) * 2.0**-24 * 2 + 2.0**-148
    assert (np.abs(got - exact) <= limit).all()
    assert got.dtype == np.float32
    assert abs(float(got.sum(dtype=np.float64)) - 1.0) <= len(row) * 2.0**-22
    assert got[x.argmax()] == got.max()


@pytest.mark.parametrize("count", [1, 2, 10])
def test_equal_scores(count: int) -> None:
    for value in (0.0, 3e38, -3e38, 1e-45):
        assert softmax(np.full((1, count), value, np.float32)).tolist() == [
            [float(np.float32(1) / np.float32(count))] * count
        ]


def test_far_apart() -> None:
    assert softmax(np.array([[3e38, -3e38, 0.0]], np.float32)).tolist() == [[1.0, 0.0, 0.0]]
    assert softmax(np.array([[-3e38, -3e38 / 2]], np.float32)).tolist() == [[0.0, 1.0]]


def test_nan_spreads() -> None:
    """A NaN makes every probability NaN, wherever it stands."""
    for place in range(3):
        x = np.zeros((1, 3), np.float32)
        x[0, place] = np.nan
        assert np.isnan(softmax(x)).all()
