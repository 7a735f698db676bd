"""Ops that make images larger without computing: Repeat, DepthToSpace."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mcugen.core.types import Array
from mcugen.nn.source.base import NetOp, Shape, require


@dataclass(frozen=True, slots=True, eq=False)
class Repeat(NetOp):
    """Each element ``factors`` times in a row, per axis: element i of the result is element i // factor of x."""

    factors: tuple[int, ...]

    def result_shapes(self, *shapes: Shape) -> tuple[Shape, ...]:
        (x,) = shapes
        require(len(self.factors) == len(x) and min(self.factors, default=1) >= 1, f"factors {self.factors} of {x}")
        return (tuple(n * f for n, f in zip(x, self.factors, strict=True)),)

    def eval(self, *args: Array) -> tuple[Array, ...]:
        y = np.asarray(args[0])
        for axis, f in enumerate(self.factors):
            y = y.repeat(f, axis=axis + 1)
        return (y,)


@dataclass(frozen=True, slots=True, eq=False)
class DepthToSpace(NetOp):
    """x (C * BH * BW, H, W) -> (C, H * BH, W * BW): channel (c * BH + i) * BW + j is pixel (i, j) of each block of
    channel c. ``block`` (BH, BW). (ONNX's mode CRD.)"""

    block: tuple[int, int]

    def result_shapes(self, *shapes: Shape) -> tuple[Shape, ...]:
        (x,) = shapes
        rows, columns = self.block
        require(len(x) == 3 and min(self.block) >= 1 and x[0] % (rows * columns) == 0, f"blocks {self.block} of {x}")
        return ((x[0] // (rows * columns), x[1] * rows, x[2] * columns),)

    def eval(self, *args: Array) -> tuple[Array, ...]:
        x = np.asarray(args[0])
        n, _, h, w = x.shape
        rows, columns = self.block
        y = x.reshape(n, -1, rows, columns, h, w).transpose(0, 1, 4, 2, 5, 3)
        return (y.reshape(n, -1, h * rows, w * columns),)
