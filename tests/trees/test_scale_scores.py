"""ScaleScores: fixed point and float64 to float32, two roundings at most."""

from __future__ import annotations

import warnings
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tree_models import LOC, Leaf, Split, forest_of, lower, model_of, spec_of

from mcugen.core.types import DType
from mcugen.errors import UnsupportedError
from mcugen.trees.ops import ScaleScores


@settings(max_examples=300, deadline=None)
@given(x=st.integers(-(2**31), 2**31 - 1), exponent=st.integers(-90, 60), count=st.sampled_from([1, 3, 7, 100]))
@example(x=2**31 - 1, exponent=0, count=1)
@example(x=2**24 + 1, exponent=-10, count=1)
def test_fixed_point(x: int, exponent: int, count: int) -> None:
    """Within one unit in the last place; exact where x has 24 bits and the scale is a power of two."""
    scale = 2.0**exponent / count
    got = ScaleScores(("x",), ("y",), LOC, DType.I32, scale, 1, 1).eval(np.array([[x]], np.int32))[0][0, 0]
    assert got.dtype == np.float32
    exact = Fraction(x) * Fraction(scale)
    assert abs(Fraction(float(got)) - exact) <= Fraction(float(np.spacing(np.abs(got)))) * Fraction(3, 2)
    if abs(x) <= 2**24 and count == 1:
        assert Fraction(float(got)) == exact


@settings(max_examples=300, deadline=None)
@given(x=st.floats(allow_nan=False), divisor=st.sampled_from([1, 3, 10, 49]))
@example(x=1e300, divisor=1)
@example(x=1e-46, divisor=1)
def test_float64(x: float, divisor: int) -> None:
    """Rounded twice, overflow to infinity without a warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        got = ScaleScores(("x",), ("y",), LOC, DType.F64, 1.0, divisor, 1).eval(np.array([[x]]))[0][0, 0]
    with np.errstate(over="ignore"):
        assert got == np.float32(x / divisor)


def test_scores_above_float32() -> None:
    """A unit that float32 cannot hold is the user's to know, not a fault of ours."""
    model = model_of(forest_of([Split(0, 0.0, Leaf(-1e60), Leaf(1e60))], 1), link=("sigmoid", 1.0))
    with pytest.raises(UnsupportedError, match="beyond the float32"):
        lower(model, spec_of(DType.I8, 1), "proba", DType.I16)


def test_scales_below_float32() -> None:
    """Leaves of 1e-300: the product is zero, no error."""
    op = ScaleScores(("x",), ("y",), LOC, DType.I32, 2.0**-1000, 1, 1)
    assert op.eval(np.array([[2**31 - 1]], np.int32))[0][0, 0] == 0.0
