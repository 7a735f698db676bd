"""Linear filters: Fir, Iir, MovingAverage, WeightedAverage, Smooth, DcBlock. SciPy's signs; they start from zeros."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mcugen.core.types import Array
from mcugen.dsp.source.base import LinearSource


def fir(taps: Array, x: Array) -> Array:
    """``y[n] = sum of taps[k] * x[n - k]``, x (T, C) float64, zeros before the first sample."""
    y = np.zeros_like(x, np.float64)
    for k, tap in enumerate(taps[: len(x)]):
        y[k:] += tap * x[: len(x) - k]
    return y


def sections(sos: Array, x: Array) -> Array:
    """Second-order sections (S, 6) in SciPy's convention on x (T, C) float64, direct form 2 transposed."""
    y = np.array(x, np.float64)
    for b0, b1, b2, a0, a1, a2 in np.asarray(sos, np.float64):
        b, a = (np.array([b0, b1, b2]) / a0, np.array([a1, a2]) / a0)
        for c in range(y.shape[1]):
            d1 = d2 = 0.0
            column = y[:, c].tolist()
            for n, v in enumerate(column):
                out = b[0] * v + d1
                d1 = b[1] * v - a[0] * out + d2
                d2 = b[2] * v - a[1] * out
                column[n] = out
            y[:, c] = column
    return y


@dataclass(frozen=True, slots=True, eq=False)
class Fir(LinearSource):
    """``y[n] = sum of taps[k] * x[n - k]``; ``taps`` (N,) float64 in time order."""

    taps: Array

    def filtered(self, x: Array) -> Array:
        return fir(self.taps, x)

    def dc_gain(self) -> float:
        return float(np.sum(self.taps))


@dataclass(frozen=True, slots=True, eq=False)
class Iir(LinearSource):
    """Second-order sections, ``sos`` (S, 6): b0, b1, b2, a0, a1, a2 as SciPy has them."""

    sos: Array

    def filtered(self, x: Array) -> Array:
        return sections(self.sos, x)

    def dc_gain(self) -> float:
        return float(np.prod(self.sos[:, :3].sum(axis=1) / self.sos[:, 3:].sum(axis=1)))


@dataclass(frozen=True, slots=True, eq=False)
class MovingAverage(LinearSource):
    """The mean of the last ``length`` samples; those before the first are zeros."""

    length: int

    def filtered(self, x: Array) -> Array:
        return fir(np.full(self.length, 1.0 / self.length), x)

    def dc_gain(self) -> float:
        return 1.0


@dataclass(frozen=True, slots=True, eq=False)
class WeightedAverage(LinearSource):
    """The mean of the last samples with ``weights`` (N,), the newest first; their sum is what it is divided by."""

    weights: Array

    @property
    def taps(self) -> Array:
        return np.asarray(self.weights, np.float64) / float(np.sum(self.weights))

    def filtered(self, x: Array) -> Array:
        return fir(self.taps, x)

    def dc_gain(self) -> float:
        return 1.0


@dataclass(frozen=True, slots=True, eq=False)
class Smooth(LinearSource):
    """Exponential smoothing: ``y[n] = y[n-1] + alpha * (x[n] - y[n-1])``, 0 < alpha <= 1, from y = 0."""

    alpha: float

    @property
    def sos(self) -> Array:
        return np.array([[self.alpha, 0.0, 0.0, 1.0, self.alpha - 1.0, 0.0]])

    def filtered(self, x: Array) -> Array:
        return sections(self.sos, x)

    def dc_gain(self) -> float:
        return 1.0


@dataclass(frozen=True, slots=True, eq=False)
class DcBlock(LinearSource):
    """``y[n] = x[n] - x[n-1] + pole * y[n-1]``, 0 < pole < 1: what is constant vanishes."""

    pole: float

    @property
    def sos(self) -> Array:
        return np.array([[1.0, -1.0, 0.0, 1.0, -self.pole, 0.0]])

    def filtered(self, x: Array) -> Array:
        return sections(self.sos, x)

    def dc_gain(self) -> float:
        return 0.0
