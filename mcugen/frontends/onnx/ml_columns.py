"""Columns of a table of floats before they reach a tree ensemble, and thresholds folded through what happens to them.

A column is a feature of the user's x with float32 steps after it (Scaler, Imputer, arithmetic with constants). Each
step is monotone in float32, roundings included, so ``f(x) <= t`` is ``x <= t'`` (or ``x > t'`` where f falls) with t'
the last float32 on that side: found by bisection over the keys of all float32, since solving for x in real numbers
would disagree with the rounded steps at some inputs.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum

import numpy as np

from mcugen.core.types import Array, DType
from mcugen.frontends.sklearn_trees import through_float32
from mcugen.trees.keys import key_range, values_of


class Kind(Enum):
    """The element type of a column: WIDENED is a float32 that was cast to double."""

    SINGLE = "float32"
    DOUBLE = "float64"
    INTEGER = "integers"
    WIDENED = "float64, cast from float32"


@dataclass(frozen=True, slots=True)
class Step:
    """One operation in float32: ``x + c``, ``x - c``, ``c - x`` (rsub), ``x * c``, ``x / c``, or NaN to c (impute)."""

    kind: str
    constant: float

    @property
    def falls(self) -> bool:
        """Whether a larger x gives a smaller result."""
        return self.kind == "rsub" or (self.kind in ("mul", "div") and self.constant < 0)

    def apply(self, x: Array) -> Array:
        """float32 to float32."""
        c = np.float32(self.constant)
        match self.kind:
            case "add":
                return np.asarray(x + c)
            case "sub":
                return np.asarray(x - c)
            case "rsub":
                return np.asarray(c - x)
            case "mul":
                return np.asarray(x * c)
            case "div":
                return np.asarray(x / c)
        return np.where(np.isnan(x), c, x)


@dataclass(frozen=True, slots=True)
class Column:
    """Feature number ``feature`` of x, as elements of type ``kind``, with ``steps`` done."""

    feature: int
    kind: Kind
    steps: tuple[Step, ...] = ()

    @property
    def plain(self) -> bool:
        """Whether it is the user's value as it came, but for a cast."""
        return not self.steps

    def then(self, *steps: Step) -> Column:
        """With more steps."""
        return replace(self, steps=self.steps + steps)

    def value(self, x: Array) -> Array:
        """float32 x -> float32, as the file computes it."""
        out = np.asarray(x, np.float32)
        with np.errstate(all="ignore"):
            for step in self.steps:
                out = step.apply(out)
        return out

    @property
    def of_nan(self) -> float:
        """What becomes of NaN: NaN, or a number after an Imputer."""
        return float(self.value(np.array([np.nan], np.float32))[0])


@dataclass(frozen=True, slots=True, eq=False)
class Cuts:
    """``x <= threshold`` (float64), or its opposite where ``opposite``, for every x but NaN."""

    threshold: Array
    opposite: Array


def cuts(column: Column, t: Array, strict: bool) -> Cuts:
    """``f(x) <= t``, or ``f(x) < t`` where ``strict``, for float64 thresholds t of one column; never for t NaN."""
    found = _bisected(column, t, strict) if column.steps else _direct(column, t, strict)
    never = np.isnan(t)
    return Cuts(np.where(never, np.inf, found.threshold), found.opposite | never)


def _direct(column: Column, t: Array, strict: bool) -> Cuts:
    never = np.isneginf(t) if strict else np.zeros(t.shape, np.bool_)
    with np.errstate(under="ignore"):
        last = np.nextafter(t, -np.inf) if strict else t
    last = np.where(never | np.isnan(last), np.inf, last)
    # The user's x may be wider than the float32 that the file compares: the cast is folded in.
    return Cuts(last if column.kind is Kind.DOUBLE else through_float32(last), never)


def _bisected(column: Column, t: Array, strict: bool) -> Cuts:
    """The last x on the lower side of each threshold; none is told by the opposite of "always"."""
    falls = sum(step.falls for step in column.steps) % 2 == 1
    first, top = key_range(DType.F32)
    low, high = np.full(t.shape, first - 1, np.int64), np.full(t.shape, top, np.int64)
    while np.any(low < high):
        middle = (low + high + 1) >> 1
        value = column.value(values_of(middle, DType.F32)).astype(np.float64)
        below = value < t if strict else value <= t
        ok = ~below if falls else below
        low, high = np.where(ok, middle, low), np.where(ok, high, middle - 1)
    none = low < first
    last = values_of(np.maximum(low, first), DType.F32).astype(np.float64)
    return Cuts(through_float32(np.where(none, np.inf, last)), none != falls)
