"""Leaves in fixed point or float, with a proven bound on the score.

Fixed point: a leaf is ``base part + q * unit`` with ``unit`` a power of two. From each tree a multiple of the unit
near the middle of its range is taken away and added to one base per output: it costs no accuracy, and the unit then
depends on the widest tree, not on where boost_from_average put the mean.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import frexp

import numpy as np

from mcugen.core.types import Array, Bound, DType
from mcugen.errors import UnsupportedError

INT32 = 2**31 - 1
EPS = {DType.F64: 2.0**-53, DType.F32: 2.0**-24}


@dataclass(frozen=True, slots=True, eq=False)
class PackedLeaves:
    """``leaf`` (L, V) of ``dtype``; ``base`` (K,) int32 or the float type; ``unit`` is 1.0 for floats.

    ``factor`` (T,): the leaves of tree t count ``factor`` units (``narrow_leaves``); all ones otherwise.
    """

    dtype: DType
    leaf: Array
    base: Array
    unit: float
    bound: Bound
    factor: Array


@dataclass(frozen=True, slots=True, eq=False)
class LeafSource:
    """Float leaves in layout order: ``value`` (L, V) float64, ``first`` (T + 1,) the first leaf of each tree,

    ``base`` (K,) float64. With V = 1 tree t adds to output ``t % K``.
    """

    value: Array
    first: Array
    base: Array

    @property
    def outputs(self) -> int:
        return int(self.base.size)

    def low(self) -> Array:
        """(T, V) the smallest leaf of each tree."""
        return np.minimum.reduceat(self.value, self.first[:-1], axis=0)

    def high(self) -> Array:
        """(T, V) the largest leaf of each tree."""
        return np.maximum.reduceat(self.value, self.first[:-1], axis=0)

    def per_output(self, per_tree: Array) -> Array:
        """(T, V) figures of trees, added up for each output: (K,)."""
        if per_tree.shape[1] > 1:
            return np.asarray(per_tree.sum(axis=0))
        k = self.outputs
        padded = np.zeros(-(-per_tree.shape[0] // k) * k)
        padded[: per_tree.shape[0]] = per_tree[:, 0]
        return np.asarray(padded.reshape(-1, k).sum(axis=0))


def pack_leaves(source: LeafSource, dtype: DType, where: str) -> PackedLeaves:
    """Leaves of type ``dtype`` (int16, int32, float32, float64)."""
    return _pack_float(source, dtype, where) if dtype.is_float else _pack_fixed(source, dtype, where)


def _same_unit(source: LeafSource) -> Array:
    return np.ones(source.first.size - 1, np.int64)


def rounding_of_sums(source: LeafSource, eps: float) -> Array:
    """(K,) an upper bound on the rounding of a float sum in any order: (n + 1) * eps * sum of magnitudes."""
    magnitude = np.maximum(np.abs(source.low()), np.abs(source.high()))
    total = source.per_output(magnitude) + np.abs(source.base)
    return np.asarray((source.first.size + 1) * eps * total * (1 + 2.0**-20))


def bound_of(source: LeafSource, error: Array) -> Bound:
    """The range goes outward by what a float sum may round, so that the library's own sums lie inside."""
    with np.errstate(over="ignore", invalid="ignore"):  # sums of leaves near 1e308: no limit is known
        slack = rounding_of_sums(source, EPS[DType.F64])
        low = (source.per_output(source.low()) + source.base - slack).min()
        high = (source.per_output(source.high()) + source.base + slack).max()
    low, high = (end if np.isfinite(end) else far for end, far in ((low, -np.inf), (high, np.inf)))
    return Bound(float(error.max()), float(low), float(high))


def _pack_float(source: LeafSource, dtype: DType, where: str) -> PackedLeaves:
    with np.errstate(over="ignore"):
        leaf = source.value.astype(dtype.np)
        base = source.base.astype(dtype.np)
    if dtype is DType.F64:
        # The library adds the same doubles in the same order: the same bits.
        return PackedLeaves(dtype, leaf, base, 1.0, bound_of(source, np.zeros(source.outputs)), _same_unit(source))
    if not np.isfinite(leaf).all() or not np.isfinite(base).all():
        raise UnsupportedError(where, "a leaf is too large for float32", "use --leaf float64")
    largest = np.maximum(np.abs(source.low()), np.abs(source.high()))
    if (source.per_output(largest) + np.abs(source.base)).max() >= float(np.finfo(np.float32).max):
        raise UnsupportedError(where, "sums of leaves are too large for float32", "use --leaf float64")
    gap = np.abs(leaf.astype(np.float64) - source.value)
    worst = np.maximum.reduceat(gap, source.first[:-1], axis=0)
    error = source.per_output(worst) + np.abs(base.astype(np.float64) - source.base)
    error = error * (1 + 2.0**-20) + rounding_of_sums(source, EPS[dtype]) + rounding_of_sums(source, EPS[DType.F64])
    return PackedLeaves(dtype, leaf, base, 1.0, bound_of(source, error), _same_unit(source))


def _pack_fixed(source: LeafSource, dtype: DType, where: str) -> PackedLeaves:
    low, high = source.low(), source.high()
    exponent = _first_exponent(low, high, source, dtype)
    for e in range(exponent, exponent + 64):
        packed = _try_unit(source, low, high, dtype, e)
        if packed is not None:
            return packed
    raise UnsupportedError(where, f"the leaves do not fit {dtype.label}", "use --leaf float64")


def _first_exponent(low: Array, high: Array, source: LeafSource, dtype: DType) -> int:
    """A unit that is surely not too coarse: what the widest tree, the base and the offsets need at least."""
    middle = low / 2 + high / 2
    half = float(np.max(high / 2 - low / 2)) / dtype.max
    base = float(np.max(np.abs(source.base + source.per_output(middle)))) / 2**32
    offset = float(np.max(np.abs(middle))) / 2**52
    return max(frexp(max(half, base, offset, 2.0**-1000))[1] - 2, -1000)


def _try_unit(source: LeafSource, low: Array, high: Array, dtype: DType, exponent: int) -> PackedLeaves | None:
    """Leaves in units of 2**exponent, or None if something does not fit."""
    unit = 2.0**exponent
    with np.errstate(over="ignore", invalid="ignore"):  # tried, and refused below
        offset = np.rint((low / 2 + high / 2) / unit)
        per_leaf = np.repeat(offset, np.diff(source.first), axis=0)
        q = np.rint(source.value / unit - per_leaf)
    if not np.isfinite(q).all() or np.abs(q).max() > dtype.max or np.abs(offset).max() > 2.0**52:
        return None
    base_parts = source.base / unit + source.per_output(offset)
    base = np.rint(base_parts)
    # Proof that no prefix of the int32 sum overflows: the base and all magnitudes together fit.
    reach = np.abs(base) + source.per_output(tree_peak(np.abs(q), source.first))
    if reach.max() > INT32:
        return None
    gap = np.abs((source.value / unit - per_leaf) - q) * unit
    worst = np.maximum.reduceat(gap, source.first[:-1], axis=0)
    bases = np.array([base_error(source, offset, base, k, unit) for k in range(source.outputs)])
    error = source.per_output(worst) * (1 + 2.0**-20) + bases + rounding_of_sums(source, EPS[DType.F64])
    leaf = q.astype(dtype.np)
    return PackedLeaves(dtype, leaf, base.astype(np.int32), unit, bound_of(source, error), _same_unit(source))


def tree_peak(q: Array, first: Array) -> Array:
    return np.maximum.reduceat(q, first[:-1], axis=0)


def base_error(source: LeafSource, offset: Array, base: Array, k: int, unit: float) -> float:
    """``|base * unit - (source base + offsets * unit)|`` of output k, exactly, rounded up."""
    column = offset[:, k] if offset.shape[1] > 1 else offset[k :: source.outputs, 0]
    total = sum(int(v) for v in column.tolist())
    exact = Fraction(float(source.base[k])) + total * Fraction(unit)
    gap = abs(Fraction(float(base[k])) * Fraction(unit) - exact)
    return float(gap) * (1 + 2.0**-50)
