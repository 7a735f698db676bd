"""Requantize sums that leave int32: int16 activations, and products of them. The formula of requant.py."""

from __future__ import annotations

import numpy as np

from mcugen.core.types import Array
from mcugen.errors import InternalError
from mcugen.nn.requant import Requant, requantize

#: Sums beyond this have no kernel.
ACC_BITS = 47


def requantize64(acc: Array, r: Requant, axis: int = -1) -> Array:
    """``acc`` (int64, |acc| < 2^47, checked) to int64 values in [r.low, r.high]; channels along ``axis``. Exact."""
    a = np.asarray(acc, dtype=np.int64)
    small = (a >= -(1 << 31)) & (a < 1 << 31)
    inside = requantize(np.clip(a, -(1 << 31), (1 << 31) - 1), r, axis)
    if small.all():
        return inside
    if int(np.abs(a).max()) >= 1 << ACC_BITS:
        raise InternalError("requantize", f"an accumulator left {ACC_BITS} bits that was proven not to")
    shape = [1] * a.ndim
    if r.multiplier.size > 1:
        shape[axis] = r.multiplier.size
    m, s = (v.astype(np.int64).reshape(shape) for v in (r.multiplier, r.shift))
    # floor((a * m + 2^(s-1)) / 2^s) by way of floor(. / 2^16); below shift 17 a clamp at int32 decides already.
    low = (a & 0xFFFF) * m + (np.int64(1) << (s - 1))
    wide = (((a >> 16) * m + (low >> 16)) >> np.maximum(s - 16, 0)) + r.zero_point
    return np.where(small | (s < 17), inside, np.clip(wide, r.low, r.high))
