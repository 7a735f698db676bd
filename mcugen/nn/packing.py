"""Weights as the int8 kernels read them: 16-bit lanes, proofs that no accumulator overflows, four words a channel.

The arithmetic of the lanes is explained in runtime_c/include/mcg_nn_inline.h; here are its tables and its bounds.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mcugen.core.types import Array
from mcugen.nn.requant import Requant, requantize

#: The packed form accumulates 256 times the sum: it needs final sums in [-2^23, 2^23).
_SCALE_BITS = 8
_PACKED_SUM = 1 << (31 - _SCALE_BITS)
#: Shifts that the packed form holds: below, c has no rounding bit; above, the zero point leaves int32.
_PACKED_SHIFTS = (33 - _SCALE_BITS, 55 - _SCALE_BITS)
_INT32 = (-(1 << 31), (1 << 31) - 1)


@dataclass(frozen=True, slots=True)
class Range:
    """Smallest and largest accumulator of each channel, bias included: int64 arrays (N,)."""

    low: Array
    high: Array

    @property
    def fits(self) -> bool:
        """Whether no accumulator leaves int32."""
        return bool((self.low >= _INT32[0]).all() and (self.high <= _INT32[1]).all())


def accumulator_range(weight: Array, bias: Array, in_zp: int) -> Range:
    """Exact range of ``bias + sum(w * (x - in_zp))`` over all int8 x. weight: (N, ...) int8; bias: (N,) int32.

    Each x can take both ends whatever the others do, so the range is reached. Padding (x = in_zp) lies inside it.
    Partial sums may leave int32: the kernels wrap, and only the final sum must fit.
    """
    w = weight.reshape(len(weight), -1).astype(np.int64)
    at_low, at_high = w * (-128 - in_zp), w * (127 - in_zp)
    b = bias.astype(np.int64)
    return Range(b + np.minimum(at_low, at_high).sum(1), b + np.maximum(at_low, at_high).sum(1))


def folded_bias(weight: Array, bias: Array, in_zp: int) -> Array:
    """int64 (N,): the bias for sums over x instead of x - in_zp; it fits int32 where the range does and x may be 0."""
    sums: Array = weight.reshape(len(weight), -1).astype(np.int64).sum(1)
    folded: Array = bias.astype(np.int64) - in_zp * sums
    return folded


def packable(rows: Array) -> bool:
    """Whether weights (N, K), K a multiple of 4, in kernel order, fit 16-bit lanes."""
    w = rows.astype(np.int64)
    return bool((256 * w[:, 1::2] + w[:, 0::2] >= -32768).all())


def lanes(rows: Array) -> Array:
    """Weights (N, K) to words (N, K / 4): ``256 * w1 + w0`` in the lower half, ``256 * w3 + w2`` in the upper."""
    w = rows.astype(np.int64)
    half = (256 * w[:, 1::2] + w[:, 0::2]) & 0xFFFF
    return (half[:, 0::2] | (half[:, 1::2] << 16)).astype(np.uint32)


def plain_words(rows: Array) -> Array:
    """Weights (N, K) to words (N, K / 4) of four bytes, little-endian."""
    return np.ascontiguousarray(rows.astype(np.int8)).view("<u4")


def odd_sums(rows: Array) -> Array:
    """127 * sum(w_odd) of each row: what the packed form adds to the bias."""
    sums: Array = rows[:, 1::2].astype(np.int64).sum(1)
    return 127 * sums


@dataclass(frozen=True, slots=True, eq=False)
class RequantWords:
    """The words {m, c, shift} that end a channel: int64 (N,)."""

    multiplier: Array
    c: Array
    shift: Array

    def rows(self) -> Array:
        """uint32 (N, 3)."""
        words = np.stack([self.multiplier, self.c, self.shift], axis=1)
        return (words & 0xFFFFFFFF).astype(np.uint32)


def packed_requant(r: Requant, reach: Range) -> RequantWords | None:
    """The words that requantize 256 times a sum, clamped at -128 and 127; None where a channel has none.

    A channel whose output is the same at both ends of its range is constant (requantizing is monotonic): it takes m = 0
    and the value in c, whatever its shift and clamps. A shift too long takes fewer bits of m, if that changes nothing.
    """
    n = len(reach.low)
    m, s = r.per_channel(n)
    low, high = requantize(reach.low, r, 0), requantize(reach.high, r, 0)
    constant = low == high
    small = (reach.low >= -_PACKED_SUM) & (reach.high < _PACKED_SUM)
    if not (constant | (small & (s >= _PACKED_SHIFTS[0]))).all():
        return None
    shift = np.where(constant, 33, np.minimum(s, _PACKED_SHIFTS[1]) + _SCALE_BITS)
    c = np.where(constant, low << 1, (np.int64(1) << (shift - 33)) + (np.int64(r.zero_point) << (shift - 32)))
    m = np.where(constant, 0, m)
    for i in np.flatnonzero(~constant & (s > _PACKED_SHIFTS[1])):
        found = _fewer_bits(int(m[i]), int(s[i]), r.zero_point, int(reach.low[i]), int(reach.high[i]))
        if found is None:
            return None
        m[i], c[i] = found
    return RequantWords(m, c, shift - 32)


def _fewer_bits(m: int, s: int, zero_point: int, low: int, high: int) -> tuple[int, int] | None:
    """m and c for the longest shift that the packed form holds with the results of m and s for every sum in low..high.

    Results are steps of the sum, few for so long a shift: the first sum of a step must reach it and the sum before
    must not, nor may the ends of the range leave their steps. Each bounds c; any c between the bounds will do. Steps
    beyond -128 and 127 are clamped away.
    """
    short, half = _PACKED_SHIFTS[1], 1 << (s - 1)
    fewer = (m + (1 << (s - short - 1))) >> (s - short)

    def upper(total: int) -> int:  # what SMMLA adds to c
        return (total * fewer) >> (32 - _SCALE_BITS)

    def step(y: int) -> int:  # what the sum of both must reach for the result y
        return y << (short + _SCALE_BITS - 32)

    first = max(((low * m + half) >> s) + zero_point, -128)
    last = min(((high * m + half) >> s) + zero_point, 127)
    least = step(first) - upper(low) if first > -128 else -(1 << 30)
    most = step(last + 1) - 1 - upper(high) if last < 127 else 1 << 30
    for y in range(first + 1, last + 1):
        reaches = -((half - ((y - zero_point) << s)) // m)  # the smallest sum with sum * m + half >= (y - zp) << s
        least = max(least, step(y) - upper(reaches))
        most = min(most, step(y) - 1 - upper(reaches - 1))
    return (fewer, (least + most) >> 1) if least <= most else None


def any_requant(r: Requant, n: int) -> RequantWords:
    """The words of the form "any"; zero point and clamps go into the descriptor."""
    m, s = r.per_channel(n)
    return RequantWords(m, np.where(s >= 33, np.int64(1) << np.maximum(s - 33, 0), 0), s)


def _words(values: Array) -> Array:
    return (values & 0xFFFFFFFF).astype(np.uint32)


@dataclass(frozen=True, slots=True, eq=False)
class Stream:
    """A weight table: its words, and which form of the kernel reads it."""

    words: Array
    packed: bool


def matmul_stream(rows: Array, bias: Array, in_zp: int, r: Requant, together: int) -> Stream:
    """Rows of weights (N, K) for kernels that compute ``together`` outputs at a time; K is padded to a multiple of 4.

    For each ``together`` outputs: where their sums start, word by word of all of them, then {m, c, shift} of each.
    Missing outputs are zeros.
    """
    n = len(rows)
    w = np.zeros((n, -(-rows.shape[1] // 4) * 4), np.int8)
    w[:, : rows.shape[1]] = rows
    quick = packed_requant(r, accumulator_range(rows, bias, in_zp)) if packable(w) else None
    start = folded_bias(rows, bias, in_zp)
    if quick is None:
        body, start, ends = plain_words(w), _words(start), any_requant(r, n).rows()
    else:
        body, start, ends = lanes(w), _words((start + odd_sums(w)) << _SCALE_BITS), quick.rows()
    missing = -n % together
    body = np.concatenate([body, np.zeros((missing, body.shape[1]), np.uint32)])
    start = np.concatenate([start, np.zeros(missing, np.uint32)])
    ends = np.concatenate([ends, np.tile(np.array([0, 0, 1], np.uint32), (missing, 1))])
    parts = []
    for i in range(0, n + missing, together):
        block = slice(i, i + together)
        parts += [start[block], body[block].T.reshape(-1), ends[block].reshape(-1)]
    return Stream(np.concatenate(parts).astype(np.uint32), quick is not None)


def halves(low: Array, high: Array) -> Array:
    """uint32: pairs of int16 values in a word."""
    return ((low.astype(np.int64) & 0xFFFF) | ((high.astype(np.int64) & 0xFFFF) << 16)).astype(np.uint32)


def depthwise_stream(weight: Array, bias: Array, in_zp: int, r: Requant, three_by_three: bool) -> Stream:
    """Weights (N, KH, KW) of a depthwise convolution; ``three_by_three``: in the order of that kernel."""
    n, quick = len(weight), packed_requant(r, accumulator_range(weight, bias, in_zp))
    start = folded_bias(weight, bias, in_zp)
    if quick is None:
        w, words = weight.astype(np.int64), any_requant(r, n)
    else:
        w, words, start = weight.astype(np.int64) << _SCALE_BITS, quick, start << _SCALE_BITS
    if three_by_three:
        body = halves(w[:, :, :2], w[:, :, 1:])
    else:
        w = np.pad(w, ((0, 0), (0, 0), (0, w.shape[2] % 2)))
        body = halves(w[:, :, 0::2], w[:, :, 1::2])
    parts = [_words(start)[:, None], body.reshape(n, -1), words.rows()]
    return Stream(np.concatenate(parts, axis=1).reshape(-1), quick is not None)
