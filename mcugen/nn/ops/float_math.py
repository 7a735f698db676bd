"""float32 in numpy, operation by operation in the order of runtime_c/src/mcg_nn_float*.c."""

from __future__ import annotations

from math import inf

import numpy as np

from mcugen.core.float_math import exp_f32
from mcugen.core.types import Array
from mcugen.ctext.literals import float32_literal

_F = np.float32
_TANH = [_F(float.fromhex(c)) for c in ("-0x1.901808p-8", "0x1.581fa8p-6", "-0x1.b928e0p-5", "0x1.110e2ep-3")]
_TANH += [_F(float.fromhex("-0x1.555552p-2"))]

#: Overflow to infinity and NaN are results here, as in C, and no news for the user.
quiet = np.errstate(over="ignore", under="ignore", invalid="ignore", divide="ignore")


def clamp_f32(v: Array, low: float, high: float) -> Array:
    """``clamp``: NaN passes."""
    return np.where(v < _F(low), _F(low), np.where(v > _F(high), _F(high), v)).astype(np.float32)


@quiet
def tanh_f32(x: Array) -> Array:
    """mcg_tanh_f32."""
    s = x * x
    p = np.full_like(s, _TANH[0])
    for c in _TANH[1:]:
        p = p * s + c
    near = (p * s) * x + x
    a = np.where(x < 0, -x, x)
    t = _F(1.0) - _F(2.0) / (exp_f32(a + a) + _F(1.0))
    return np.where(a < _F(0.625), near, np.where(x < 0, -t, t)).astype(np.float32)


_ERF = [_F(float.fromhex(c)) for c in ("0x1.4ae4c4p-14", "-0x1.a485e8p-11", "0x1.5419f4p-8", "-0x1.b7fbb4p-6")]
_ERF += [_F(float.fromhex(c)) for c in ("0x1.ce2d2p-4", "-0x1.81273ep-2", "0x1.20dd74p+0")]
_LOG_ERFC = [_F(float.fromhex(c)) for c in ("0x1.0dddfp-22", "-0x1.a8b6acp-16", "0x1.e6514cp-12", "-0x1.18a67ep-8")]
_LOG_ERFC += [_F(float.fromhex(c)) for c in ("0x1.9fb86cp-6", "-0x1.bcfc4p-4", "-0x1.441dc4p-1", "-0x1.21317ap+0")]
_LOG_ERFC += [_F(float.fromhex("0x1.ac931p-13"))]


_ATANH = [_F(float.fromhex(c)) for c in ("0x1.c71c72p-4", "0x1.24924ap-3", "0x1.99999ap-3", "0x1.555556p-2")]
_LN2_HIGH, _LN2_LOW = (_F(float.fromhex(c)) for c in ("0x1.62e4p-1", "0x1.7f7d1cp-20"))


def _horner(coefficients: list[np.float32], x: Array) -> Array:
    p = np.full_like(x, coefficients[0])
    for c in coefficients[1:]:
        p = p * x + c
    return p


@quiet
def log_f32(x: Array) -> Array:
    """mcg_log_f32."""
    tiny = x < _F(2.0**-100)
    v = np.where(tiny, x * _F(2.0**48), x).astype(np.float32)
    good = (v > 0) & (v < _F(np.inf))
    bits = np.where(good, v, _F(1.0)).view(np.uint32)
    k = (bits >> np.uint32(23)).astype(np.float32) - np.where(tiny, _F(175.0), _F(127.0))
    m = ((bits & np.uint32(0x7FFFFF)) | np.uint32(0x3F800000)).view(np.float32)
    high = m > _F(float.fromhex("0x1.6a09e6p+0"))
    m, k = np.where(high, _F(0.5) * m, m), np.where(high, k + _F(1.0), k)
    s = (m - _F(1.0)) / (m + _F(1.0))
    square = s * s
    p = (_horner(_ATANH, square) * square) * s + s
    y = k * _LN2_HIGH + (_F(2.0) * p + k * _LN2_LOW)
    return np.where(good, y, np.where(x < 0, _F(np.nan), np.where(x == 0, _F(-np.inf), x))).astype(np.float32)


@quiet
def erf_f32(x: Array) -> Array:
    """mcg_erf_f32: below 1 a polynomial, else 1 - exp of one. Both were fitted by weighted least squares to erf(x) / x
    in x^2, and to log(erfc(x)) from 1 to 4."""
    a = np.where(x < 0, -x, x)
    near = _horner(_ERF, x * x) * x
    far = _F(1.0) - exp_f32(_horner(_LOG_ERFC, np.where(a > _F(4.0), _F(4.0), a)))
    return np.where(a < _F(1.0), near, np.where(x < 0, -far, far)).astype(np.float32)


@quiet
def dot_f32(start: Array, weight: Array, x: Array) -> Array:
    """``start`` (..., N) plus ``weight`` (N, K) times x (..., K), product by product in the order of K."""
    total = np.broadcast_to(start, (*x.shape[:-1], len(weight))).astype(np.float32)
    for k in range(weight.shape[1]):
        total = total + x[..., k, None] * weight[:, k]
    return total


def in_fours(rows: Array) -> Array:
    """float32 weights (N, K) as mcg_conv_f32 reads them: (ceil(N / 4), K, 4), flat; missing ones 0."""
    n, k = rows.shape
    w = np.zeros((n + -n % 4, k), np.float32)
    w[:n] = rows
    return np.ascontiguousarray(w.reshape(-1, 4, k).transpose(0, 2, 1)).reshape(-1)


def limit_text(value: float) -> str:
    """A clamp as C: infinity has no literal."""
    if value in (inf, -inf):
        return "MCG_INFINITY_F32" if value > 0 else "-MCG_INFINITY_F32"
    return float32_literal(float(_F(value)))


def finite(*arrays: Array) -> bool:
    """Whether all are float32 and have a literal in C."""
    return all(a.dtype == np.float32 and bool(np.isfinite(a).all()) for a in arrays)
