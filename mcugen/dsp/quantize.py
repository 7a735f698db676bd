"""Coefficients as integers: post-shifts instead of clipping, the order and scaling of sections, proofs of ranges."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import permutations
from math import floor, inf, log2

import numpy as np

from mcugen.core.types import Array
from mcugen.dsp.checks import pole_text, stable
from mcugen.dsp.gains import impulse, l1, l2, poles, settle_steps

#: All orders of sections are tried up to so many sections and steps of the impulse response.
_MOST_SECTIONS, _MOST_STEPS = 4, 1500
_LONGEST = 30_000


class RefusedError(ValueError):
    """A type that cannot hold the filter; the text says why."""


@dataclass(frozen=True, slots=True, eq=False)
class Sections:
    """Quantized sections. ``coefficients`` (S, 5) int64 in units of 2^-bits of ``2^post_shift``.

    ``order``: the places of the sections in the user's sos; ``scales``: what the result of each section is multiplied
    by, powers of two; ``gains``: largest result of each section for inputs of at most 1, so scaled. ``noise``: a bound
    on what the roundings of all sections add to the result, and ``noise_rms`` their expected deviation, both in units
    of the result's last place.
    """

    bits: int
    coefficients: Array
    post_shift: tuple[int, ...]
    order: tuple[int, ...]
    scales: tuple[float, ...]
    gains: tuple[float, ...]
    noise: float
    noise_rms: float

    def rows(self) -> Array:
        """The sections that the integers stand for, (S, 5) float64."""
        unit = np.array([2.0 ** (p - self.bits) for p in self.post_shift])
        return np.asarray(self.coefficients * unit[:, None])


def quantize_sections(rows: Array, bits: int, ratio: float, most_shift: int, wide: bool, last: float = 1.0) -> Sections:
    """``rows`` (S, 5) as integers of ``bits`` fraction bits, in the order with the least rounding noise.

    ``ratio``: how far results may exceed the largest input, as a factor. ``wide``: results are remembered in 64 bits,
    so that their roundings are not fed back. ``last``: a power of two that the result is multiplied by. RefusedError
    where a post-shift beyond ``most_shift`` would be needed, or where a quantized section is unstable.
    """
    found = _best(np.ascontiguousarray(rows, np.float64).tobytes(), bits, ratio, most_shift, wide, last)
    if isinstance(found, str):
        raise RefusedError(found)
    return found


@lru_cache(maxsize=64)
def _best(data: bytes, bits: int, ratio: float, most_shift: int, wide: bool, last: float) -> Sections | str:
    """The best order, or why there is none."""
    rows = np.frombuffer(data, np.float64).reshape(-1, 5)
    steps = min(_LONGEST, settle_steps(rows, 1e-7))
    best: Sections | None = None
    refused = ""
    for order in _orders(len(rows), steps):
        try:
            found = _quantized(rows, order, bits, (ratio, most_shift, last), (steps, wide))
        except RefusedError as e:
            refused = str(e)
            continue
        # An order has to be better by more than the noise of computing it.
        if best is None or found.noise_rms < best.noise_rms * (1 - 1e-6):
            best = found
    return best or refused


def _orders(count: int, steps: int) -> list[tuple[int, ...]]:
    natural = tuple(range(count))
    if count <= _MOST_SECTIONS and steps <= _MOST_STEPS:
        return list(permutations(natural))
    return [natural, natural[::-1]]


def _quantized(
    rows: Array, order: tuple[int, ...], bits: int, limits: tuple[float, int, float], response: tuple[int, bool]
) -> Sections:
    (ratio, most_shift, last), (steps, wide) = limits, response
    ordered = np.asarray(rows, np.float64)[list(order)]
    gains = [l1(impulse(ordered[: k + 1], steps)) for k in range(len(ordered))]
    scales = [*_scales(ordered, gains, ratio, bits), last]
    scaled = ordered.copy()
    scaled[:, :3] *= (np.array(scales) / np.array([1.0, *scales[:-1]]))[:, None]
    integers, post = [], []
    for i, row in enumerate(scaled):
        p = post_shift(row, bits)
        if p > most_shift:
            raise RefusedError(f"section {order[i] + 1} needs a post-shift of {p}, more than {most_shift}")
        q = np.rint(row * 2.0 ** (bits - p)).astype(np.int64)
        _require_stable(q, p, bits, order[i])
        integers.append(q)
        post.append(p)
    bound, variance = 0.0, 0.0
    for k in range(len(scaled)):
        path = impulse(_noise_path(scaled, k, wide), steps)
        bound += l1(path)
        variance += l2(path) ** 2 / 12
    top = tuple(g * s for g, s in zip(gains, scales, strict=True))
    return Sections(bits, np.array(integers), tuple(post), order, tuple(scales), top, bound, variance**0.5)


def _scales(rows: Array, gains: list[float], ratio: float, bits: int) -> list[float]:
    """Powers of two that bring the results of all sections but the last close to their limit."""
    scales, before = [], 1.0
    for row, gain in zip(rows[:-1], gains[:-1], strict=True):
        largest = float(np.abs(row[:3]).max())
        if gain > 0.0 and largest > 0.0:
            feedback = np.array([0.0, 0.0, 0.0, row[3], row[4]])
            room = 2.0 ** post_shift(feedback, bits) * (1 - 2.0**-bits) / largest
            before = 2.0 ** floor(min(log2(ratio / gain), log2(before * room)))
        scales.append(before)
    return scales


def _noise_path(scaled: Array, k: int, wide: bool) -> Array:
    """What the rounding of section k passes: its own feedback (not where that has 64 bits), then the sections after."""
    own = scaled[k].copy()
    own[:3] = [1.0, 0.0, 0.0]
    if wide:
        own[3:] = 0.0
    return np.vstack([own[None], scaled[k + 1 :]])


def post_shift(row: Array, bits: int) -> int:
    """The smallest p >= 0 for which all coefficients, rounded to units of 2^(p - bits), lie within +-(2^bits - 1)."""
    largest, p = float(np.abs(row).max()), 0
    while round(largest * 2.0 ** (bits - p)) > 2**bits - 1:
        p += 1
    return p


def _require_stable(q: Array, p: int, bits: int, section: int) -> None:
    """RefusedError unless the quantized section is stable; exact, in integers."""
    if not stable(int(q[3]), int(q[4]), 2 ** (bits - p)):
        pole = poles(np.asarray(q * 2.0 ** (p - bits)))[0]
        raise RefusedError(f"section {section + 1} is unstable once quantized: pole {pole_text(pole)}")


@dataclass(frozen=True, slots=True, eq=False)
class Taps:
    """Quantized taps: ``tap = integer * 2^(shift - bits)``; results are in units of 2^shift."""

    bits: int
    integers: Array
    shift: int
    gain: float


def quantize_taps(taps: Array, bits: int, least: int = 0) -> Taps:
    """Taps (N,) as integers; larger ones than 1 make the unit of the result larger, they are never clipped.

    ``least``: log2 of the unit of the result, at least.
    """
    values = np.asarray(taps, np.float64)
    p = max(least, post_shift(values, bits))
    integers = np.rint(values * 2.0 ** (bits - p)).astype(np.int64)
    return Taps(bits, integers, p, float(np.abs(integers).sum()) * 2.0**-bits)


def spare_bits(peak: float, limit: float) -> float:
    """Guard bits: how many times a peak can be doubled before it passes the limit."""
    return log2(limit / peak) if peak > 0 else inf
