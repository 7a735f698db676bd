"""What the source ops of filters share: which channels they treat, and the check of their operands."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from mcugen.core.op import SourceOp
from mcugen.core.passes import value_type
from mcugen.core.types import Array, DType, TensorType
from mcugen.errors import InternalError


@dataclass(frozen=True, slots=True, eq=False)
class FilterSource(SourceOp):
    """A filter on ``channels`` of a float64 signal (C,); the other channels pass unchanged.

    The leading axis of ``eval`` is time, from a fresh state. ``rest``: what each of the channels showed all the time
    before, zeros where it is empty. A device filters integers, whose zero is a channel's offset: it starts from there.
    """

    channels: tuple[int, ...]
    rest: tuple[float, ...] = field(default=(), kw_only=True)

    def check(self, types: Mapping[str, TensorType]) -> None:
        name = type(self).__name__
        x, y = (value_type(types, v, name) for v in (self.inputs[0], self.outputs[0]))
        if x.dtype is not DType.F64 or y.dtype is not DType.F64 or len(x.shape) != 1 or x.shape != y.shape:
            raise InternalError(str(self.loc), f"{name}: {x.dtype.label} {x.shape} to {y.dtype.label} {y.shape}")
        if not self.channels or len(set(self.channels)) < len(self.channels):
            raise InternalError(str(self.loc), f"{name}: channels {self.channels}")
        if not all(0 <= c < x.shape[0] for c in self.channels):
            raise InternalError(str(self.loc), f"{name}: channels {self.channels} of {x.shape[0]}")

    def eval(self, *args: Array) -> tuple[Array, ...]:
        """(T, C) -> (T, C)."""
        y = np.array(args[0], np.float64)
        columns = list(self.channels)
        if any(self.rest):
            rest = np.array(self.rest)
            y[:, columns] = self.filtered(y[:, columns] - rest) + rest * self.dc_gain()
        else:
            y[:, columns] = self.filtered(y[:, columns])
        return (y,)

    @abstractmethod
    def filtered(self, x: Array) -> Array:
        """(T, channels) float64 -> (T, channels), from zeros."""

    def dc_gain(self) -> float:
        """What a constant is multiplied by in the end."""
        return 1.0


@dataclass(frozen=True, slots=True, eq=False)
class LinearSource(FilterSource):
    """A linear filter: its transfer function as second-order sections, or as taps."""

    @abstractmethod
    def dc_gain(self) -> float:
        """What a constant is multiplied by in the end."""
