"""Transform: the link functions in float32, held against float64; errors in units of the last place (ulp)."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tree_models import LOC, nans

from mcugen.core.float_math import exp_f32, log1p_f32
from mcugen.core.types import Array, DType
from mcugen.trees.ops import Transform

# 65,536 upper halves of the bit pattern, with three lower halves: every exponent, 7 bits of fraction, both signs.
PATTERNS = (
    np.arange(1 << 16, dtype=np.uint32)[:, None] << np.uint32(16) | np.array([0, 0x5555, 0xFFFF], np.uint32)
).view(np.float32)
NUMBERS = PATTERNS[np.isfinite(PATTERNS)]


def transform(kind: str, x: Array, slope: float = 1.0) -> Array:
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # the user sees numpy's warnings
        return np.asarray(Transform(("x",), ("y",), LOC, kind, slope, 1).eval(x.reshape(-1, 1))[0].reshape(-1))


def ulps(got: Array, exact: Array) -> Array:
    """Distance from the exact float64 result in ulps of float32 there; results below the normal range count from it."""
    with np.errstate(over="ignore"):
        near = np.maximum(np.abs(exact), float(np.finfo(np.float32).tiny)).astype(np.float32)
    inside = near < np.finfo(np.float32).max
    return np.abs(got[inside].astype(np.float64) - exact[inside]) / np.spacing(near[inside])


def exact_of(kind: str, x: Array) -> Array:
    z = x.astype(np.float64)
    with np.errstate(over="ignore"):
        return {
            "exp": lambda: np.exp(z),
            "sigmoid": lambda: np.where(z < 0, np.exp(np.minimum(z, 0)), 1.0) / (1.0 + np.exp(-np.abs(z))),
            "log1p_exp": lambda: np.where(z > 0, z, 0) + np.log1p(np.exp(-np.abs(z))),
            "signed_square": lambda: np.sign(z) * z * z,
        }[kind]()


#: The largest error in ulps that each function may have; measured below 1, 2.5, 3 and 0.5.
LIMITS = {"exp": 1.0, "sigmoid": 2.5, "log1p_exp": 3.0, "signed_square": 0.5}


@pytest.mark.parametrize("kind", LIMITS)
def test_error(kind: str) -> None:
    assert ulps(transform(kind, NUMBERS), exact_of(kind, NUMBERS)).max() <= LIMITS[kind]


@pytest.mark.parametrize("kind", LIMITS)
@settings(max_examples=200, deadline=None)
@given(x=st.floats(-110.0, 90.0, width=32))
def test_error_anywhere(kind: str, x: float) -> None:
    one = np.array([x], np.float32)
    assert ulps(transform(kind, one), exact_of(kind, one)).max(initial=0.0) <= LIMITS[kind]


@pytest.mark.parametrize("kind", LIMITS)
def test_ends(kind: str) -> None:
    inf = np.float32(np.inf)
    low, high = {
        "exp": (0.0, inf),
        "sigmoid": (0.0, 1.0),
        "log1p_exp": (0.0, float(np.float32(3e38))),
        "signed_square": (-inf, inf),
    }[kind]
    got = transform(kind, np.array([-3e38, 3e38, -inf, inf], np.float32))
    assert got.tolist() == [low, high, low, inf if kind == "log1p_exp" else high]
    assert np.isnan(transform(kind, nans(DType.F32))).all()


@pytest.mark.parametrize("kind", LIMITS)
def test_monotone(kind: str) -> None:
    """Over dense points, steps down are within the error: no cliff at a change of exponent or of branch."""
    x = np.concatenate([np.linspace(-105, 89.5, 400_001), np.linspace(-1, 1, 100_001), np.linspace(88.6, 88.8, 10_001)])
    x = np.unique(x.astype(np.float32))
    y = transform(kind, x)
    y = y[np.isfinite(y)]
    drop = y[:-1].astype(np.float64) - y[1:]
    assert (drop / np.spacing(np.maximum(np.abs(y[:-1]), np.finfo(np.float32).tiny))).max() <= 2 * LIMITS[kind]


def test_exp_around_overflow_and_underflow() -> None:
    """The last finite result, and subnormal results within one step."""
    edge = np.float32(88.72283)
    assert np.isfinite(transform("exp", np.array([edge]))[0])
    assert np.isinf(transform("exp", np.array([np.nextafter(edge, np.float32(100))]))[0])
    x = np.linspace(-104.5, -87.0, 20_001).astype(np.float32)
    exact = np.exp(x.astype(np.float64))
    assert (np.abs(exp_f32(x) - exact) <= 2.0**-149 + exact * 2.0**-23).all()


def test_log1p() -> None:
    x = np.linspace(0, 1, 200_001).astype(np.float32)
    assert ulps(log1p_f32(x), np.log1p(x.astype(np.float64))).max() <= 3.0
    assert log1p_f32(np.array([0.0, 1e-30], np.float32)).tolist() == [0.0, float(np.float32(1e-30))]


@settings(max_examples=100, deadline=None)
@given(x=st.floats(allow_nan=False, width=32), slope=st.sampled_from([1.0, 2.0, 0.5, 0.3, 1e-3, 1e3, 1e38]))
def test_slope(x: float, slope: float) -> None:
    """One more rounding, of slope * x: its relative error times |z| is what the result may move."""
    got = transform("sigmoid", np.array([x], np.float32), slope)[0]
    assert 0.0 <= got <= 1.0
    with np.errstate(over="ignore"):
        z = np.float32(np.float64(np.float32(slope)) * x)
    assert got == transform("sigmoid", np.array([z], np.float32))[0]
