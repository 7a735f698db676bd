"""Ops that move elements and compute nothing: Reshape, Transpose, Concat, Slice, Pad."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mcugen.core.types import Array
from mcugen.nn.source.base import NetOp, Shape, count, require, require_axis


@dataclass(frozen=True, slots=True, eq=False)
class Reshape(NetOp):
    """The same elements in the same order, as ``shape``."""

    shape: Shape

    def result_shapes(self, *shapes: Shape) -> tuple[Shape, ...]:
        (x,) = shapes
        require(count(x) == count(self.shape), f"{x} as {self.shape}")
        return (self.shape,)

    def eval(self, *args: Array) -> tuple[Array, ...]:
        return (np.asarray(args[0]).reshape(len(args[0]), *self.shape),)


@dataclass(frozen=True, slots=True, eq=False)
class Transpose(NetOp):
    """Axis i of the result is axis ``perm[i]`` of x."""

    perm: tuple[int, ...]

    def result_shapes(self, *shapes: Shape) -> tuple[Shape, ...]:
        (x,) = shapes
        require(sorted(self.perm) == list(range(len(x))), f"permutation {self.perm} of {x}")
        return (tuple(x[p] for p in self.perm),)

    def eval(self, *args: Array) -> tuple[Array, ...]:
        return (np.asarray(args[0]).transpose(0, *(p + 1 for p in self.perm)),)


@dataclass(frozen=True, slots=True, eq=False)
class Concat(NetOp):
    """All operands one after the other along ``axis``."""

    axis: int

    def result_shapes(self, *shapes: Shape) -> tuple[Shape, ...]:
        require(len(shapes) > 0, "nothing to concatenate")
        first = shapes[0]
        require_axis(self.axis, first)
        for s in shapes:
            same = len(s) == len(first) and all(a == self.axis or s[a] == first[a] for a in range(len(first)))
            require(same, f"{first} with {s} along axis {self.axis}")
        return ((*first[: self.axis], sum(s[self.axis] for s in shapes), *first[self.axis + 1 :]),)

    def eval(self, *args: Array) -> tuple[Array, ...]:
        return (np.concatenate(args, axis=self.axis + 1),)


@dataclass(frozen=True, slots=True, eq=False)
class Slice(NetOp):
    """Element ``starts + index * steps`` of x for each index of ``shape``, per axis; steps may be negative."""

    starts: tuple[int, ...]
    steps: tuple[int, ...]
    shape: Shape

    def result_shapes(self, *shapes: Shape) -> tuple[Shape, ...]:
        (x,) = shapes
        require(len(x) == len(self.starts) == len(self.steps) == len(self.shape), f"slice of {x} to {self.shape}")
        for size, start, step, n in zip(x, self.starts, self.steps, self.shape, strict=True):
            inside = 0 <= start < size and 0 <= start + step * (n - 1) < size
            require(inside and n >= 1 and step != 0, f"slice {start}, step {step}, {n} elements of {size}")
        return (self.shape,)

    def eval(self, *args: Array) -> tuple[Array, ...]:
        indices = [s + d * np.arange(n) for s, d, n in zip(self.starts, self.steps, self.shape, strict=True)]
        return (np.asarray(args[0])[np.ix_(np.arange(len(args[0])), *indices)],)


@dataclass(frozen=True, slots=True, eq=False)
class Pad(NetOp):
    """x with ``pads`` ((before, after) per axis, none negative) filled with ``value``."""

    pads: tuple[tuple[int, int], ...]
    value: float = 0.0

    def result_shapes(self, *shapes: Shape) -> tuple[Shape, ...]:
        (x,) = shapes
        require(len(self.pads) == len(x) and all(min(p) >= 0 for p in self.pads), f"pads {self.pads} of {x}")
        return (tuple(n + a + b for n, (a, b) in zip(x, self.pads, strict=True)),)

    def eval(self, *args: Array) -> tuple[Array, ...]:
        return (np.pad(np.asarray(args[0], np.float32), ((0, 0), *self.pads), constant_values=self.value),)
