"""Frames: the last samples as they are, what a net reads that makes its features itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from mcugen.core.op import SourceOp
from mcugen.core.passes import value_type
from mcugen.core.types import Array, TensorType
from mcugen.dsp.source.features import due_pushes, windows_of
from mcugen.errors import InternalError


@dataclass(frozen=True, slots=True, eq=False)
class Frames(SourceOp):
    """x (C,) -> the last ``length`` samples, the oldest first; again ``step`` samples later.

    The result is (length, C), or (C, length) where ``planar``.
    """

    length: int
    step: int
    planar: bool

    def check(self, types: Mapping[str, TensorType]) -> None:
        x, y = value_type(types, self.inputs[0], "Frames"), value_type(types, self.outputs[0], "Frames")
        if len(x.shape) != 1 or y.shape != frame_shape(x.count, self.length, self.planar):
            raise InternalError(str(self.loc), f"Frames: {x.shape} to {y.shape}, {self.length} samples")

    def due(self, pushes: int) -> Array:
        """Which pushes complete a window: (pushes,) bool."""
        return due_pushes(pushes, self.length, self.step)

    def eval(self, *args: Array) -> tuple[Array, ...]:
        """x (T, C) -> (T', length, C) or (T', C, length), of the type of x."""
        return (frames_of(args[0], self.length, self.step, self.planar),)


def frame_shape(channels: int, length: int, planar: bool) -> tuple[int, int]:
    """The shape of one result."""
    return (channels, length) if planar else (length, channels)


def frames_of(x: Array, length: int, step: int, planar: bool) -> Array:
    """(..., T, C) -> (..., T', length, C) or (..., T', C, length); T' may be 0."""
    found = np.moveaxis(windows_of(np.moveaxis(x, -1, -2), length, step), -3, -2)
    return np.ascontiguousarray(found if planar else np.moveaxis(found, -1, -2))
