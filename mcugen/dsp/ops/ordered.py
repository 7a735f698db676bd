"""Samples as integers that can be ordered, and the windows of the last of them."""

from __future__ import annotations

import numpy as np

from mcugen.core.types import Array, DType

#: The name of a type in the runtime's functions.
SUFFIX = {DType.I16: "q15", DType.I32: "q31", DType.F32: "f32"}


def keys(x: Array) -> Array:
    """Integers as they are; float32 as int32 in the order -NaN, -inf, ..., -0, +0, ..., +inf, NaN."""
    if x.dtype.kind != "f":
        return x
    bits = np.ascontiguousarray(x, np.float32).view(np.int32)
    return np.asarray(bits ^ ((bits >> 31) & 0x7FFFFFFF))


def values(k: Array, dtype: DType) -> Array:
    """What ``keys`` came from."""
    if not dtype.is_float:
        return k.astype(dtype.np)
    bits = np.ascontiguousarray(k ^ ((k >> 31) & 0x7FFFFFFF), np.int32)
    return bits.view(np.float32)


def last_samples(x: Array, length: int) -> Array:
    """(T, C) -> (T, C, length): the window of each instant; the first sample stands for all before it."""
    before = np.repeat(x[:1], length - 1, axis=0)
    return np.lib.stride_tricks.sliding_window_view(np.concatenate([before, x]), length, axis=0)
