"""What the integer features of windows are made of, for all windows at once, exactly.

Samples are int64 arrays (..., T); results (..., T') have one value for each window of N samples, ``step`` apart. Sums
are differences of running sums, which may wrap: modulo 2^64 the difference is right, and it fits by the bounds that
``feature_plan`` proves.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mcugen.core.types import Array

#: The sines of a band's tables have this amplitude. Even, so that cos(60 degrees) is no tie.
WAVE = 32766
#: Samples that are copied out of overlapping windows at a time.
_ELEMENTS = 1 << 20


@dataclass(frozen=True, slots=True, eq=False)
class Windows:
    """The windows of one channel. x: (..., T) int64, T >= length."""

    x: Array
    length: int
    step: int

    def sum_of(self, v: Array, terms: int) -> Array:
        """Sums of ``terms`` neighbours in v (..., T or T - 1), from the start of each window."""
        total = np.zeros((*v.shape[:-1], v.shape[-1] + 1), np.int64)
        np.cumsum(v, axis=-1, out=total[..., 1:])
        every = total[..., terms:] - total[..., : total.shape[-1] - terms]
        return np.asarray(every[..., : self.x.shape[-1] - self.length + 1 : self.step])

    def total(self, pre: int = 0) -> Array:
        """Sum of ``x >> pre``."""
        return self.sum_of(self.x >> pre, self.length)

    def squares(self, pre: int) -> Array:
        """Sum of ``(x >> pre)^2``."""
        u = self.x >> pre
        return self.sum_of(u * u, self.length)

    def ramp(self) -> Array:
        """Sum of ``i * x``, i = 0 for the oldest sample."""
        at = np.arange(self.x.shape[-1], dtype=np.int64)
        starts = at[: len(at) - self.length + 1 : self.step]
        return self.sum_of(self.x * at, self.length) - starts * self.total()

    def extreme(self, largest: bool) -> Array:
        """The largest or the smallest sample, by windows of 1, 2, 4, ... samples."""
        pick = np.maximum if largest else np.minimum
        m, k = self.x, 1
        while 2 * k <= self.length:
            m = pick(m[..., :-k], m[..., k:])
            k *= 2
        count = self.x.shape[-1] - self.length + 1
        rest = self.length - k
        return np.asarray(pick(m[..., :count], m[..., rest : rest + count])[..., :: self.step])

    def travel(self) -> Array:
        """Sum of ``|x[i] - x[i - 1]|``."""
        return self.sum_of(np.abs(np.diff(self.x, axis=-1)), self.length - 1)

    def crossings(self, level: int) -> Array:
        """How many neighbours there are of which one is below ``level`` and one is not."""
        below = self.x < level
        return self.sum_of((below[..., 1:] != below[..., :-1]).astype(np.int64), self.length - 1)

    def lag(self, lag: int) -> Array:
        """The sample ``lag`` before the newest."""
        start = self.length - 1 - lag
        count = self.x.shape[-1] - self.length + 1
        return np.asarray(self.x[..., start : start + count : self.step])

    def dot(self, waves: Array) -> Array:
        """(..., T', R) int64: the products of each window with waves (R, N), |waves| <= WAVE.

        By float64 matrix products on 16 bits of the samples at a time, exact: each sum stays below 2^31 * N < 2^53.
        """
        every = np.lib.stride_tricks.sliding_window_view(self.x, self.length, -1)[..., :: self.step, :]
        table = waves.T.astype(np.float64)
        out = np.empty((*every.shape[:-1], len(waves)), np.int64)
        rows = max(1, _ELEMENTS // self.length)
        for at in range(0, every.shape[-2], rows):
            part = every[..., at : at + rows, :]
            high = ((part >> 16).astype(np.float64) @ table).astype(np.int64)
            low = ((part & 0xFFFF).astype(np.float64) @ table).astype(np.int64)
            out[..., at : at + rows, :] = (high << 16) + low
        return out


def isqrt(v: Array) -> Array:
    """The floor of the square root of 0 <= v < 2^62, int64."""
    r = np.sqrt(v.astype(np.float64)).astype(np.int64)
    r -= r * r > v  # float64 may be one off either way
    r += (r + 1) * (r + 1) <= v
    return np.asarray(r)


def shifted(v: Array, shift: int) -> Array:
    """``v / 2^shift`` rounded, ties up."""
    return np.asarray((v + (1 << (shift - 1))) >> shift) if shift else v


def angles(length: int, first: int, last: int) -> Array:
    """(K, N): the angle of bin k at sample i, reduced to one turn before it is rounded."""
    k = np.arange(first, last + 1, dtype=np.int64)[:, None]
    i = np.arange(length, dtype=np.int64)
    return np.asarray((k * i % length) * (2 * np.pi / length))


def waves_of(length: int, first: int, last: int) -> Array:
    """(2 K, N) int16: cosine and sine of each bin, ``round(WAVE * cos(2 pi k i / N))``."""
    a = angles(length, first, last)
    both = np.stack([np.cos(a), np.sin(a)], axis=1)
    return np.asarray(np.rint(both * WAVE).astype(np.int16).reshape(-1, length))


def bin_weights(length: int, first: int, last: int) -> Array:
    """(K,) int64: 1 for the bins 0 and N/2, 2 for the others, which stand for a pair."""
    k = np.arange(first, last + 1)
    return np.asarray(np.where((k == 0) | (2 * k == length), 1, 2), np.int64)
