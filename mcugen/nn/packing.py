"""Weights as the int8 kernels read them: 16-bit lanes, proofs that no accumulator overflows, four words a channel.

The arithmetic of the lanes is explained in runtime_c/include/mcg_nn_inline.h; here are its tables and its bounds.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mcugen.core.types import Array
from mcugen.nn.requant import Requant, requantize

#: Shifts that the packed form holds: below, c has no rounding bit; above, the zero point leaves int32.
_PACKED_SHIFTS = (33, 55)
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
    """Whether weights (N, K), K a multiple of 4, in kernel order, fit the packed form.

    Lanes must fit int16, and the final ``256 * (dot - 127 * sum(w_odd))`` int32: with activations in [-128, 127] and
    a_odd - 127 in [-255, 0], |...| <= sum(128 |w_even| + 255 |w_odd|) < 2^23.
    """
    w = rows.astype(np.int64)
    pairs = 256 * w[:, 1::2] + w[:, 0::2]
    reach = (128 * np.abs(w[:, 0::2]) + 255 * np.abs(w[:, 1::2])).sum(1)
    return bool((pairs >= -32768).all() and (reach < 1 << 23).all())


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
    """Of the words {bias, m, c, shift} that end a channel all but the bias: int64 (N,)."""

    multiplier: Array
    c: Array
    shift: Array


def packed_requant(r: Requant, reach: Range) -> RequantWords | None:
    """The words of the packed form; None where a channel needs the form "any".

    A channel whose output is the same at both ends of its range is constant (requantizing is monotonic): it takes m = 0
    and the value in c, whatever its shift and clamps.
    """
    n = len(reach.low)
    m, s = r.per_channel(n)
    low, high = requantize(reach.low, r, 0), requantize(reach.high, r, 0)
    constant = low == high
    plain = (s >= _PACKED_SHIFTS[0]) & (s <= _PACKED_SHIFTS[1]) & (r.low == -128) & (r.high == 127)
    if not (constant | plain).all():
        return None
    s = np.where(constant, 33, s)
    c = np.where(constant, low << 1, (np.int64(1) << (s - 33)) + (np.int64(r.zero_point) << (s - 32)))
    return RequantWords(np.where(constant, 0, m), c, s - 32)


def any_requant(r: Requant, n: int) -> RequantWords:
    """The words of the form "any"; zero point and clamps go into the descriptor."""
    m, s = r.per_channel(n)
    return RequantWords(m, np.where(s >= 33, np.int64(1) << np.maximum(s - 33, 0), 0), s)


def channel_words(bias: Array, q: RequantWords) -> Array:
    """uint32 (N, 4): {bias, m, c, shift}."""
    words = np.stack([bias, q.multiplier, q.c, q.shift], axis=1)
    return (words & 0xFFFFFFFF).astype(np.uint32)


@dataclass(frozen=True, slots=True, eq=False)
class Stream:
    """A weight table: its words, and which form of the kernel reads it."""

    words: Array
    packed: bool


def matmul_stream(rows: Array, bias: Array, in_zp: int, r: Requant, together: int) -> Stream:
    """Rows of weights (N, K) for kernels that compute ``together`` outputs at a time; K is padded to a multiple of 4.

    For each ``together`` outputs: word by word of all of them, then their four words. Missing outputs are zeros.
    """
    n = len(rows)
    w = np.zeros((n, -(-rows.shape[1] // 4) * 4), np.int8)
    w[:, : rows.shape[1]] = rows
    quick = packed_requant(r, accumulator_range(rows, bias, in_zp)) if packable(w) else None
    if quick is None:
        body, ends = plain_words(w), channel_words(folded_bias(rows, bias, in_zp), any_requant(r, n))
    else:
        body, ends = lanes(w), channel_words(folded_bias(rows, bias, in_zp) + odd_sums(w), quick)
    missing = -n % together
    body = np.concatenate([body, np.zeros((missing, body.shape[1]), np.uint32)])
    filler = np.tile(np.array([0, 0, 0, 1], np.uint32), (missing, 1))
    ends = np.concatenate([ends, filler])
    blocks = range(0, n + missing, together)
    parts = [p for i in blocks for p in (body[i : i + together].T.reshape(-1), ends[i : i + together].reshape(-1))]
    return Stream(np.concatenate(parts).astype(np.uint32), quick is not None)


def halves(low: Array, high: Array) -> Array:
    """uint32: pairs of int16 values in a word."""
    return ((low.astype(np.int64) & 0xFFFF) | ((high.astype(np.int64) & 0xFFFF) << 16)).astype(np.uint32)


def depthwise_stream(weight: Array, bias: Array, in_zp: int, r: Requant, three_by_three: bool) -> Stream:
    """Weights (N, KH, KW) of a depthwise convolution; ``three_by_three``: it is one for that kernel."""
    n = len(weight)
    sums = folded_bias(weight, bias, in_zp)
    quick = packed_requant(r, accumulator_range(weight, bias, in_zp)) if three_by_three else None
    if quick is not None:
        body = halves(weight[:, :, :2], weight[:, :, 1:]).reshape(n, -1)
        return Stream(np.concatenate([body, channel_words(sums, quick)], axis=1).reshape(-1), True)
    w = np.zeros((n, weight.shape[1], weight.shape[2] + weight.shape[2] % 2), np.int8)
    w[:, :, : weight.shape[2]] = weight
    body = halves(w[:, :, 0::2], w[:, :, 1::2]).reshape(n, -1)
    return Stream(np.concatenate([body, channel_words(sums, any_requant(r, n))], axis=1).reshape(-1), False)
