"""What the caller of the generated C passes: one element type, and for each feature its map to the model's value.

The value meant is the one that Python computes, ``fl(fl(scale * x) + offset)``, in float64 or, where the user trained
so, in float32. It is monotone in x, which is all that the folding of thresholds needs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mcugen.core.types import Array, DType


@dataclass(frozen=True, slots=True)
class Signal:
    """One feature as the sensor delivers it.

    ``scale`` None: x is the model's value. ``missing``: the integer that stands for NaN.
    """

    scale: float | None = None
    offset: float = 0.0
    missing: int | None = None
    single: bool = False

    def value(self, x: Array) -> Array:
        """The model's value (float64) of inputs x; ``missing`` becomes NaN."""
        x = np.asarray(x)
        out = x.astype(np.float64)
        if self.scale is not None:
            out = self._map(out)
        if self.missing is not None:
            out = np.where(x == self.missing, np.nan, out)
        return out

    def _map(self, count: Array) -> Array:
        assert self.scale is not None
        if self.single:
            with np.errstate(over="ignore"):
                product = np.float32(self.scale) * count.astype(np.float32)
                return (product + np.float32(self.offset)).astype(np.float64)
        product64: Array = self.scale * count
        return product64 + self.offset


@dataclass(frozen=True, slots=True)
class InputSpec:
    """The type of every input element and the signal of each feature."""

    dtype: DType
    signals: tuple[Signal, ...]

    def values(self, x: Array) -> Array:
        """(N, F) inputs of ``dtype`` -> (N, F) float64 values of the model."""
        if all(s == Signal() for s in self.signals):
            with np.errstate(invalid="ignore"):  # signalling NaNs
                return np.asarray(x, np.float64)
        return np.stack([s.value(x[:, i]) for i, s in enumerate(self.signals)], axis=1)
