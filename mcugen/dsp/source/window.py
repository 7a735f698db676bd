"""Filters that choose among the last samples: Median, Extreme, Decimate."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mcugen.core.types import Array
from mcugen.dsp.source.base import FilterSource


def last_samples(x: Array, length: int) -> Array:
    """(T, C) -> (T, C, length): the window of each instant; the first sample stands for all before it."""
    before = np.repeat(x[:1], length - 1, axis=0)
    return np.lib.stride_tricks.sliding_window_view(np.concatenate([before, x]), length, axis=0)


@dataclass(frozen=True, slots=True, eq=False)
class Median(FilterSource):
    """The median of the last ``length`` samples, odd; the first sample stands for those before it."""

    length: int

    def filtered(self, x: Array) -> Array:
        return np.asarray(np.median(last_samples(x, self.length), axis=2)) if len(x) else x


@dataclass(frozen=True, slots=True, eq=False)
class Extreme(FilterSource):
    """The ``kind`` ("min" or "max") of the last ``length`` samples, of fewer at the start."""

    length: int
    kind: str

    def filtered(self, x: Array) -> Array:
        if not len(x):
            return x
        w = last_samples(x, self.length)
        return np.asarray(w.min(axis=2) if self.kind == "min" else w.max(axis=2))


@dataclass(frozen=True, slots=True, eq=False)
class Decimate(FilterSource):
    """Samples 0, factor, 2 factor... of all channels: (T, C) -> (ceil(T / factor), C). Filters nothing itself."""

    factor: int

    def eval(self, *args: Array) -> tuple[Array, ...]:
        """Every factor-th row."""
        return (np.asarray(args[0], np.float64)[:: self.factor],)

    def filtered(self, x: Array) -> Array:
        return x[:: self.factor]
