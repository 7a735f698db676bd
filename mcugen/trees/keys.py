"""Thresholds as keys: integers in the order of the input type, so that one comparison of integers decides a node.

An integer input is its own key. The key of a float is its bit pattern, with the negative half mirrored, as a signed
integer: the order of keys is the order of numbers, -0.0 stands directly below +0.0, and NaN lies outside of the
infinities. Comparing keys needs no FPU and does not care for -ffast-math or flush-to-zero.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mcugen.core.types import Array, DType
from mcugen.trees.signals import Signal

_FLOAT_BITS: dict[DType, tuple[str, int]] = {
    DType.F32: ("<i4", 0x7FFFFFFF),
    DType.F64: ("<i8", 0x7FFFFFFFFFFFFFFF),
}


def key_code(dtype: DType) -> str:
    """The numpy type of the keys of an input type, as a type string."""
    return _FLOAT_BITS[dtype][0] if dtype.is_float else str(dtype.np.str)


def key_ctype(dtype: DType) -> str:
    """The C type of the keys of an input type."""
    return {DType.F32: "int32_t", DType.F64: "int64_t"}.get(dtype, dtype.ctype)


def keys_of(x: Array, dtype: DType) -> Array:
    """int64 keys of inputs x of type ``dtype``."""
    if not dtype.is_float:
        return x.astype(np.int64)
    integer, mask = _FLOAT_BITS[dtype]
    bits: Array = np.ascontiguousarray(x, dtype.np).view(np.dtype(integer)).astype(np.int64)
    return np.where(bits < 0, bits ^ mask, bits)


def values_of(keys: Array, dtype: DType) -> Array:
    """The inputs of type ``dtype`` whose keys are given (the inverse of keys_of)."""
    if not dtype.is_float:
        return keys.astype(dtype.np)
    integer, mask = _FLOAT_BITS[dtype]
    bits: Array = np.where(keys < 0, keys ^ mask, keys).astype(integer)
    return bits.view(dtype.np)


def infinity_key(dtype: DType) -> int:
    """The key of +infinity; keys above it, or below ``-infinity_key - 1``, are NaN."""
    return int(keys_of(np.array([np.inf]), dtype)[0])


def key_range(dtype: DType) -> tuple[int, int]:
    """The smallest and the largest key of a number (NaN excluded)."""
    if dtype.is_float:
        top = infinity_key(dtype)
        return -top - 1, top
    return dtype.min, dtype.max


@dataclass(frozen=True, slots=True, eq=False)
class KeyedThresholds:
    """``x <= threshold`` as ``key(x) <= key`` (or its opposite, where ``swap``), for every x of the type.

    A key below the type's range means never, one at its upper end means always.
    """

    key: Array
    swap: bool


def threshold_keys(threshold: Array, dtype: DType, signal: Signal, zero_band: float) -> KeyedThresholds:
    """Keys of float64 thresholds of one feature, rounded down into the type of the input."""
    t = _clear_band(threshold, dtype, zero_band)
    if signal.scale is not None:
        return _mapped_keys(threshold, dtype, signal, zero_band)
    if not dtype.is_float:
        whole = np.floor(np.clip(t, dtype.min - 1.0, float(dtype.max)))
        return KeyedThresholds(whole.astype(np.int64), False)
    return KeyedThresholds(keys_of(_round_down(t, dtype), dtype), False)


def _round_down(t: Array, dtype: DType) -> Array:
    """The largest number of the type that is <= t."""
    with np.errstate(over="ignore"):
        near = t.astype(dtype.np)
        below = np.nextafter(near, dtype.np.type(-np.inf))
    return np.where(near > t, below, near)


def _clear_band(t: Array, dtype: DType, band: float) -> Array:
    """Thresholds that act on unflushed inputs as t acts on inputs whose zero band was turned into +0.0."""
    t = t + 0.0  # -0.0 becomes +0.0
    below = float(np.nextafter(dtype.np.type(-band), dtype.np.type(-np.inf))) if dtype.is_float else -1.0
    t = np.where((t >= -band) & (t < 0.0), below, t)
    return np.where((t >= 0.0) & (t < band), band, t)


def _flushed(x: Array, signal: Signal, band: float) -> Array:
    value = Signal(signal.scale, signal.offset, None, signal.single).value(x)
    return np.where(np.abs(value) <= band, 0.0, value)


def _mapped_keys(t: Array, dtype: DType, signal: Signal, band: float) -> KeyedThresholds:
    """Bisects for the last count on the left: exact real arithmetic would disagree at data values."""
    assert signal.scale is not None
    falling = signal.scale < 0
    low = np.full(t.shape, dtype.min - 1, np.int64)
    high = np.full(t.shape, dtype.max, np.int64)
    # Rising map: the last count whose value is <= t. Falling: the last count whose value is > t, and children swap.
    while np.any(low < high):
        middle = (low + high + 1) >> 1
        value = _flushed(middle.astype(np.float64), signal, band)
        ok = value > t if falling else value <= t
        low = np.where(ok, middle, low)
        high = np.where(ok, high, middle - 1)
    return KeyedThresholds(low, falling)


def zero_interval(dtype: DType, signal: Signal, band: float) -> tuple[int, int] | None:
    """Keys of the inputs whose value counts as zero, from and to inclusive; None if no input does."""
    if dtype.is_float:
        low, high = keys_of(np.array([-band, band]), dtype)
        return int(low), int(high)
    if signal.scale is None:
        return (0, 0) if dtype.min <= 0 <= dtype.max else None
    edges = _mapped_keys(np.array([np.nextafter(-band, -np.inf), band]), dtype, signal, 0.0)
    before, last = sorted(int(k) for k in edges.key)
    return (before + 1, last) if last > before else None
