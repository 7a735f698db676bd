"""Normalize: layer, instance and group normalization."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np

from mcugen.core.types import Array
from mcugen.nn.source.base import NetOp, Shape, require


@dataclass(frozen=True, slots=True, eq=False)
class Normalize(NetOp):
    """x in the order of the file as ``rows`` rows, each minus its mean, over the root of its variance plus ``epsilon``;
    then times ``scale`` plus ``offset``, float32 (C,): element i of all takes number ``i // inner`` modulo C.

    Rows are the vectors of a layer normalization, the channels of an instance one, the groups of a group one.
    """

    rows: int
    epsilon: float
    scale: Array
    offset: Array
    inner: int = 1

    def result_shapes(self, *shapes: Shape) -> tuple[Shape, ...]:
        (x,) = shapes
        require(self.scale.ndim == 1 and self.scale.shape == self.offset.shape, "scale and offset of two shapes")
        require(self.rows > 0 and prod(x) % self.rows == 0, f"{self.rows} rows of {x}")
        row = prod(x) // self.rows
        require(self.inner > 0 and row % self.inner == 0, f"parts of {self.inner} in rows of {row}")
        parts = prod(x) // self.inner
        require(self.scale.size > 0 and parts % self.scale.size == 0, f"{self.scale.size} scales for {parts} parts")
        require(0 <= self.epsilon < np.inf, f"epsilon {self.epsilon}")
        return (x,)

    def eval(self, *args: Array) -> tuple[Array, ...]:
        x = np.asarray(args[0], np.float64).reshape(len(args[0]), self.rows, -1)
        d = x - x.mean(axis=2, keepdims=True)
        root = np.sqrt((d * d).mean(axis=2, keepdims=True) + self.epsilon)
        # Without an epsilon and without a variance every element is the mean.
        n = np.divide(d, root, out=np.zeros_like(d), where=root > 0).reshape(len(x), -1, self.scale.size, self.inner)
        y = n * self.scale.astype(np.float64)[:, None] + self.offset.astype(np.float64)[:, None]
        return (y.reshape(args[0].shape).astype(np.float32),)
