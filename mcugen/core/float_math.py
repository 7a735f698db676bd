"""The runtime's float32 functions in numpy, operation by operation in the order of runtime_c/src/mcg_scores.c."""

from __future__ import annotations

import numpy as np

from mcugen.core.types import Array

_F = np.float32
_EXP = [_F(float.fromhex(c)) for c in ("0x1.a01a02p-13", "0x1.6c16c2p-10", "0x1.111112p-7", "0x1.555556p-5")]
_EXP += [_F(float.fromhex(c)) for c in ("0x1.555556p-3", "0x1p-1")]
_LOG = [_F(float.fromhex(c)) for c in ("0x1.3b13b2p-4", "0x1.745d18p-4", "0x1.c71c72p-4", "0x1.24924ap-3")]
_LOG += [_F(float.fromhex(c)) for c in ("0x1.99999ap-3", "0x1.555556p-2", "0x1p0")]
_LOG2_E, _LN2_HIGH, _LN2_LOW = (_F(float.fromhex(c)) for c in ("0x1.715476p+0", "0x1.62e4p-1", "0x1.7f7d1cp-20"))
_ROUND = _F(float.fromhex("0x1.8p+23"))


#: Overflow to infinity and NaN are results here, as in C, and no news for the user.
_quiet = np.errstate(over="ignore", under="ignore", invalid="ignore")


def _power_of_two(k: Array) -> Array:
    return ((k + 127).astype(np.uint32) << np.uint32(23)).view(np.float32)


@_quiet
def exp_f32(x: Array) -> Array:
    """mcg_exp_f32."""
    x = x.astype(np.float32)
    inside = (x >= _F(-104.0)) & (x < _F(88.75))
    z = np.where(inside, x, _F(0.0))
    k = (z * _LOG2_E + _ROUND) - _ROUND
    r = (z - k * _LN2_HIGH) - k * _LN2_LOW
    p = np.full_like(r, _EXP[0])
    for c in _EXP[1:]:
        p = p * r + c
    p = p * (r * r) + r + _F(1.0)
    whole = k.astype(np.int32)
    half = np.trunc(k / _F(2.0)).astype(np.int32)
    p = p * _power_of_two(half) * _power_of_two(whole - half)
    big = np.where(np.isnan(x), x, _F(np.inf))
    return np.where(inside, p, np.where(x < _F(-104.0), _F(0.0), big)).astype(np.float32)


def log1p_f32(x: Array) -> Array:
    """mcg_log1p_f32."""
    s = x / (_F(2.0) + x)
    square = s * s
    p = np.full_like(s, _LOG[0])
    for c in _LOG[1:]:
        p = p * square + c
    p = p * s
    return np.asarray(p + p)


@_quiet
def sigmoid_f32(x: Array, slope: float) -> Array:
    """mcg_sigmoid_f32."""
    z = _F(slope) * x
    e = exp_f32(np.where(z < 0, z, -z))
    return np.asarray(np.where(z < 0, e, _F(1.0)) / (_F(1.0) + e))


@_quiet
def log1p_exp_f32(x: Array) -> Array:
    """mcg_log1p_exp_f32."""
    tail = log1p_f32(exp_f32(np.where(x < 0, x, -x)))
    return np.asarray(np.where(x < 0, _F(0.0), x) + tail)


@_quiet
def signed_square_f32(x: Array) -> Array:
    """mcg_signed_square_f32."""
    square = x * x
    return np.asarray(np.where(x < 0, -square, square))


@_quiet
def softmax_f32(x: Array) -> Array:
    """mcg_softmax_f32 on rows (N, K)."""
    e = exp_f32(x - x.max(axis=1, keepdims=True))
    total = np.zeros((len(x), 1), np.float32)
    for k in range(x.shape[1]):
        total[:, 0] = total[:, 0] + e[:, k]
    return np.asarray(e / total)
