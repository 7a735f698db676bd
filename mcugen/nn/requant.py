"""Requantize: an int32 accumulator to int8 or int16, in one rounding. The same formula in every integer op.

``y = clamp(((acc * m + 2^(s-1)) >> s) + zero_point, low, high)`` on 64 bits, ties up. (Rounding twice, as a saturating
doubling high multiply and a rounding shift do, is another function; a model that wants it needs another class.)
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mcugen.core.types import Array, frozen_array
from mcugen.errors import InternalError, UnsupportedError

MIN_SHIFT, MAX_SHIFT = 1, 62
_ACC_LIMIT = 1 << 31


@dataclass(frozen=True, slots=True, eq=False)
class Requant:
    """``multiplier`` and ``shift``: int32 arrays (C,) per channel, or (1,) for all.

    A multiplier is in [2^30, 2^31), or 0 for a channel that is constant: its output is the zero point, clamped. A shift
    is in 1..62. ``low`` and ``high`` are the clamps: the range of the output type, or what a folded activation leaves.
    """

    multiplier: Array
    shift: Array
    zero_point: int
    low: int
    high: int

    def problem(self, channels: int) -> str:
        """What is wrong with the fields for so many channels; empty if nothing."""
        m, s = self.multiplier.astype(np.int64), self.shift.astype(np.int64)
        if m.shape != s.shape or m.shape not in {(1,), (channels,)}:
            return f"{m.shape} multipliers and {s.shape} shifts for {channels} channels"
        if not (((m >= 1 << 30) & (m < 1 << 31)) | (m == 0)).all():
            return "a multiplier is neither 0 nor in [2^30, 2^31)"
        if not ((s >= MIN_SHIFT) & (s <= MAX_SHIFT)).all():
            return f"a shift is outside {MIN_SHIFT}..{MAX_SHIFT}"
        if not -32768 <= self.low <= self.high <= 32767:
            return f"clamps {self.low} and {self.high}"
        return "" if -32768 <= self.zero_point <= 32767 else f"zero point {self.zero_point}"

    def per_channel(self, channels: int) -> tuple[Array, Array]:
        """Multipliers and shifts as int64 arrays (channels,)."""
        shape = (channels,)
        return np.broadcast_to(self.multiplier, shape).astype(np.int64), np.broadcast_to(self.shift, shape).astype(
            np.int64
        )


def requant_of(
    factors: npt.ArrayLike, zero_point: int = 0, low: int = -128, high: int = 127, *, where: str = "requantize"
) -> Requant:
    """The Requant for real factors ``s_in * s_w / s_out`` (float64, one per channel or one).

    ``factor = q * 2^e`` with q in [0.5, 1); m = round(q * 2^31), s = 31 - e. A factor of 0 makes a constant channel,
    and so does one below 2^-32, by which every int32 rounds to 0. UnsupportedError for a factor that is negative, not
    finite, or 2^30 or more.
    """
    pairs = [_multiplier(float(f), where) for f in np.atleast_1d(np.asarray(factors, dtype=np.float64))]
    multiplier, shift = np.array(pairs, dtype=np.int64).T
    return Requant(frozen_array(multiplier, np.int32), frozen_array(shift, np.int32), zero_point, low, high)


def _multiplier(factor: float, where: str) -> tuple[int, int]:
    if factor == 0.0:
        return 0, MIN_SHIFT
    if not (math.isfinite(factor) and factor > 0.0):
        raise UnsupportedError(where, f"scales give the factor {factor}", "scales must be positive and finite")
    q, exponent = math.frexp(factor)
    m, shift = math.floor(math.ldexp(q, 31) + 0.5), 31 - exponent
    if m == 1 << 31:
        m, shift = m >> 1, shift - 1
    if shift > MAX_SHIFT:
        # Below 2^-32: no int32 accumulator comes to half a unit, so every output is the zero point.
        return 0, MIN_SHIFT
    if shift < MIN_SHIFT:
        what = f"scales give the factor {factor:.3g}, which no shift of 1 to 62 holds"
        raise UnsupportedError(where, what, "the output scale is too small")
    return m, shift


def requantize(acc: Array, r: Requant, axis: int = -1) -> Array:
    """``acc`` (integers within int32, checked) to int64 values in [r.low, r.high]; channels along ``axis``.

    Exact: with |acc| <= 2^31 and m < 2^31 the product and the rounding term stay below 2^63.
    """
    a = np.asarray(acc, dtype=np.int64)
    if a.size and (int(a.max()) >= _ACC_LIMIT or int(a.min()) < -_ACC_LIMIT):
        raise InternalError("requantize", "an accumulator left int32 that was proven not to")
    shape = [1] * a.ndim
    if r.multiplier.size > 1:
        shape[axis] = r.multiplier.size
    m = r.multiplier.astype(np.int64).reshape(shape)
    s = r.shift.astype(np.int64).reshape(shape)
    scaled = (a * m + (np.int64(1) << (s - 1))) >> s
    y: Array = np.clip(scaled + r.zero_point, r.low, r.high)
    return y
