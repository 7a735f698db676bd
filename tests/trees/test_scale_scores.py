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
@given(
    x=st.integers(-(2**31), 2**31 - 1), exponent=st.integers(-90, 60), count=st.sampled_from([1, 3, 7, 63, 100, 255])
)
@example(x=2**31 - 1, exponent=0, count=1)
@example(x=2**24 + 1, exponent=-10, count=1)
@example(x=28329391, exponent=0, count=7)  # 1.57 units
@example(x=267327800, exponent=0, count=255)  # 1.98 units
@example(x=-1047781856, exponent=-90, count=63)  # 1.97 units
def test_fixed_point(x: int, exponent: int, count: int) -> None:
    """As docs/numerics.md proves. Scale a power of two: half a unit in the last place, exact where x has 24 bits.

    Else three roundings: less than two units, and 3 * 2^-24 of the exact value.
    """
    scale = 2.0**exponent / count
    got = ScaleScores(("x",), ("y",), LOC, DType.I32, scale, 1, 1).eval(np.array([[x]], np.int32))[0][0, 0]
    assert got.dtype == np.float32
    exact = Fraction(x) * Fraction(scale)
    error = abs(Fraction(float(got)) - exact)
    unit = Fraction(float(np.spacing(np.abs(got))))
    if count == 1:
        assert error <= unit / 2
        assert error == 0 or abs(x) > 2**24
    else:
        assert error < 2 * unit or x == 0
        assert error <= abs(exact) * 3 / 2**24


@settings(max_examples=200, deadline=None)
@given(x=st.integers(-(2**31), 2**31 - 1), exponent=st.integers(-151, -120), count=st.sampled_from([1, 3, 7, 255]))
@example(x=2**31 - 1, exponent=-126, count=255)
@example(x=1, exponent=-149, count=1)
def test_below_the_normal_range(x: int, exponent: int, count: int) -> None:
    """A scale without all its bits loses up to 2^-150 of itself, a result as much: absolute, on top of the relative."""
    scale = 2.0**exponent / count
    got = ScaleScores(("x",), ("y",), LOC, DType.I32, scale, 1, 1).eval(np.array([[x]], np.int32))[0][0, 0]
    exact = Fraction(x) * Fraction(scale)
    relative = (abs(exact) + abs(x) * Fraction(1, 2**150)) * 3 / 2**24
    assert abs(Fraction(float(got)) - exact) <= relative + (abs(x) + 1) * Fraction(1, 2**150)


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
