"""Leaves of fewer bits, with a unit for each tree: what a small node or a short instruction can hold.

In a boosted forest the first trees have wide leaves and the rest narrow ones. One unit for all would be that of the
widest tree; here tree t has ``2**shift[t]`` units of the whole, as its own range needs. The proven bound is the sum of
the trees' own roundings, and trees take turns to become finer until it is as small as wanted.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mcugen.core.types import Array, DType
from mcugen.trees.leaves import (
    EPS,
    INT32,
    LeafSource,
    PackedLeaves,
    base_error,
    bound_of,
    rounding_of_sums,
    tree_peak,
)

#: Half of what the leaves of the widest tree span is above this, and below its reciprocal, where there is a unit.
LEAST_HALF = 1e-200
#: The largest constant that one instruction adds.
SHORT_LEAF = 4095
_MOST_OCTAVES = 10  # between the coarsest and the finest unit
_FEW_OCTAVES = (0, 1, 2, 3)
_FINER = 400  # tries
#: Units within an octave: one, then more, as long as the bound asks for them.
_STEPS = (0, 1, 2, 3, 4)


@dataclass(frozen=True, slots=True)
class Narrow:
    """``most``: the largest magnitude of a leaf that is free; ``strict``: none may be larger, but units need not be

    powers of two. ``error``: the bound of the score that is wanted (None: as the largest magnitude gives it). No unit
    need be finer than ``floor``.
    """

    most: int
    strict: bool
    error: float | None
    floor: float = 0.0


def score_spread(source: LeafSource, count: Array) -> float:
    """About what the scores of the training rows span: twice the deviations of the trees' leaves, added up.

    ``count`` (L,): training rows of each leaf. On seven models the scores of the data spanned 0.8 to 1.7 times as much.
    """
    weight = np.maximum(count, 1e-300)[:, None]
    first = source.first[:-1]
    total = np.add.reduceat(weight, first, axis=0)
    with np.errstate(over="ignore", invalid="ignore"):
        mean = np.add.reduceat(weight * source.value, first, axis=0) / total
        gap = source.value - np.repeat(mean, np.diff(source.first), axis=0)
        deviation = np.sqrt(np.add.reduceat(weight * gap * gap, first, axis=0) / total)
        spread = 2.0 * float(source.per_output(deviation).max())
    return spread if np.isfinite(spread) else float("inf")


def narrow_leaves(source: LeafSource, wanted: Narrow) -> PackedLeaves | None:
    """Leaves as ``wanted``; None where int32 sums, or the bound, cannot be had (or a leaf has several values)."""
    if source.value.shape[1] != 1:
        return None
    half = (source.high() / 2 - source.low() / 2)[:, 0]
    if not np.isfinite(half).all() or not LEAST_HALF < half.max(initial=0.0) < 1 / LEAST_HALF:
        return None
    own = np.maximum(half / (wanted.most - 0.5), wanted.floor)
    unit = np.maximum(own, own.max() / 2.0**_MOST_OCTAVES)
    found: PackedLeaves | None = None
    if wanted.strict:
        # Few units make few groups of trees: those are taken where they keep half of the bound.
        for octaves in _FEW_OCTAVES if wanted.error is not None else ():
            found = _try(source, np.maximum(own, own.max() / 2.0**octaves), 0, wanted.most)
            if found is not None and wanted.error is not None and found.bound.error <= wanted.error / 2:
                return found
        for bits in _STEPS:
            found = _try(source, unit, bits, wanted.most)
            if found is not None and (wanted.error is None or found.bound.error <= wanted.error):
                return found
        return found if wanted.error is None else None
    for _ in range(_FINER):
        found = _try(source, unit, 0, None)
        if found is None or wanted.error is None or found.bound.error <= wanted.error:
            return found
        # The trees that cost most become finer by one bit; their leaves take a longer instruction.
        unit = np.where(unit >= np.quantile(unit, 0.9, method="lower"), unit / 2, unit)
    return None


def _units(least: Array, bits: int) -> tuple[float, Array]:
    """A unit of the whole, a power of two, and the factor of each tree: at least ``least``, of ``bits`` + 1 bits."""
    fine = np.floor(np.log2(least.min())) - bits
    factor = np.ceil(least / 2.0**fine)
    step = 2.0 ** np.maximum(np.floor(np.log2(factor)) - bits, 0)
    factor = np.ceil(factor / step) * step
    whole = factor.astype(np.int64)
    common = int(np.gcd.reduce(whole))
    power = common & -common
    return float(2.0**fine * power), whole // power


def _try(source: LeafSource, least: Array, bits: int, most: int | None) -> PackedLeaves | None:
    """Leaves with tree t in units of about ``least[t]``, or None if something does not fit."""
    unit, factor = _units(least, bits)
    sizes = np.diff(source.first)
    scale = unit * factor  # exact: few bits
    middle = (source.low() / 2 + source.high() / 2)[:, 0]
    steps = np.rint(middle / scale)
    leaf_scale = np.repeat(scale, sizes)
    real = source.value[:, 0] / leaf_scale - np.repeat(steps, sizes)
    q = np.rint(real)
    if most is not None and np.abs(q).max(initial=0) > most:
        return None
    offset = (steps * factor)[:, None]
    base = np.rint(source.base / unit + source.per_output(offset))
    peak = tree_peak(np.abs(q), source.first)[:, None] * factor[:, None]
    # No prefix of the int32 sum overflows, in any order: the base and all magnitudes together fit.
    if (np.abs(base) + source.per_output(peak)).max() > INT32 or np.abs(offset).max() > 2.0**52:
        return None
    rounded = 2.0**-52 * (np.abs(source.value[:, 0] / leaf_scale) + np.abs(real))  # the division, and the difference
    gap = np.abs(real - q) * (1 + 2.0**-20) + rounded
    worst = np.maximum.reduceat(gap * leaf_scale, source.first[:-1])[:, None]
    bases = np.array([base_error(source, offset, base, k, unit) for k in range(source.outputs)])
    error = source.per_output(worst) + bases + rounding_of_sums(source, EPS[DType.F64])
    dtype = DType.I16 if np.abs(q).max(initial=0) <= DType.I16.max else DType.I32
    if np.abs(q).max(initial=0) > DType.I32.max:
        return None
    return PackedLeaves(
        dtype, q.astype(dtype.np)[:, None], base.astype(np.int32), unit, bound_of(source, error), factor
    )
