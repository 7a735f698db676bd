"""Ops that look at many elements together: Pool, GlobalPool, Reduce, Softmax, LogSoftmax, ArgMax."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mcugen.core.types import Array, DType
from mcugen.nn.source.base import NetOp, Shape, require, require_axis

POOLS = ("max", "avg")


@dataclass(frozen=True, slots=True, eq=False)
class Pool(NetOp):
    """x (C, H, W) -> (C, OH, OW): maximum or mean of a window; fields per axis (rows, columns).

    ``pads`` (top, left, bottom, right). Padding is minus infinity for max. For avg it is not counted, or counted as
    zeros with ``count_include_pad``. With ``ceil_mode`` a window may reach beyond the padded input (what is there
    counts in neither kind), unless it would start there.
    """

    kind: str
    kernel: tuple[int, int]
    stride: tuple[int, int] = (1, 1)
    pads: tuple[int, int, int, int] = (0, 0, 0, 0)
    dilation: tuple[int, int] = (1, 1)
    count_include_pad: bool = False
    ceil_mode: bool = False

    def result_shapes(self, *shapes: Shape) -> tuple[Shape, ...]:
        (x,) = shapes
        require(self.kind in POOLS, f"unknown kind {self.kind}")
        require(len(x) == 3, f"a pool over {x}")
        require(min(*self.kernel, *self.stride, *self.dilation) >= 1 and min(self.pads) >= 0, "a size below 1")
        out = x[0], self._windows(x, 0), self._windows(x, 1)
        if self.kind == "max" or not self.count_include_pad:
            require(all(self._all_reach(x, a, out[a + 1]) for a in (0, 1)), "a window that holds padding only")
        return (out,)

    def _windows(self, x: Shape, axis: int) -> int:
        size, stride = x[axis + 1], self.stride[axis]
        reach = self.dilation[axis] * (self.kernel[axis] - 1) + 1
        room = size + self.pads[axis] + self.pads[axis + 2] - reach
        require(room >= 0, f"the window is larger than the padded input {x}")
        if not self.ceil_mode:
            return room // stride + 1
        windows = -(-room // stride) + 1
        return windows - 1 if (windows - 1) * stride >= size + self.pads[axis] else windows

    def _all_reach(self, x: Shape, axis: int, windows: int) -> bool:
        """Whether every window has an element of x under one of its taps."""
        first = np.arange(windows) * self.stride[axis] - self.pads[axis]
        taps = first[:, None] + np.arange(self.kernel[axis]) * self.dilation[axis]
        return bool(((taps >= 0) & (taps < x[axis + 1])).any(axis=1).all())

    def eval(self, *args: Array) -> tuple[Array, ...]:
        """x (N, C, H, W) -> (N, C, OH, OW)."""
        x = np.asarray(args[0], np.float64)
        n, c = x.shape[:2]
        ((_, oh, ow),) = self.result_shapes(x.shape[1:])
        outside = -np.inf if self.kind == "max" else 0.0
        x, counted = self._extended(x, (oh, ow), outside)
        out = np.full((n, c, oh, ow), outside)
        elements = np.zeros((oh, ow))
        for i, j in np.ndindex(*self.kernel):
            row, column = i * self.dilation[0], j * self.dilation[1]
            rows = slice(row, row + self.stride[0] * (oh - 1) + 1, self.stride[0])
            columns = slice(column, column + self.stride[1] * (ow - 1) + 1, self.stride[1])
            if self.kind == "max":
                np.maximum(out, x[:, :, rows, columns], out=out)
            else:
                out += x[:, :, rows, columns]
                elements += counted[rows, columns]
        return ((out if self.kind == "max" else out / elements).astype(np.float32),)

    def elements(self, x: Shape) -> Array:
        """(OH, OW) int: how many elements each window of an average over ``x`` (C, H, W) divides by."""
        ((_, oh, ow),) = self.result_shapes(x)
        _, counted = self._extended(np.zeros((1, *x)), (oh, ow), 0.0)
        out = np.zeros((oh, ow), np.int64)
        for i, j in np.ndindex(*self.kernel):
            row, column = i * self.dilation[0], j * self.dilation[1]
            out += counted[row :: self.stride[0], column :: self.stride[1]][:oh, :ow].astype(np.int64)
        return out

    def _extended(self, x: Array, windows: tuple[int, int], outside: float) -> tuple[Array, Array]:
        """x with padding and all that the windows reach; and which rows and columns of it count (1.0) in a mean."""
        top, left, bottom, right = self.pads
        height, width = x.shape[2:]
        reach = [self.stride[a] * (windows[a] - 1) + self.dilation[a] * (self.kernel[a] - 1) + 1 for a in (0, 1)]
        below, after = max(reach[0] - height - top, 0), max(reach[1] - width - left, 0)
        counted = np.zeros((top + height + below, left + width + after))
        if self.count_include_pad:
            counted[: top + height + bottom, : left + width + right] = 1.0
        else:
            counted[top : top + height, left : left + width] = 1.0
        return np.pad(x, ((0, 0), (0, 0), (top, below), (left, after)), constant_values=outside), counted


@dataclass(frozen=True, slots=True, eq=False)
class GlobalPool(NetOp):
    """x (C, H, W) -> (C, 1, 1): mean (``kind`` avg) or maximum (max) of each channel."""

    kind: str

    def result_shapes(self, *shapes: Shape) -> tuple[Shape, ...]:
        (x,) = shapes
        require(self.kind in POOLS and len(x) == 3, f"a {self.kind} pool over {x}")
        return ((x[0], 1, 1),)

    def eval(self, *args: Array) -> tuple[Array, ...]:
        x = np.asarray(args[0], np.float64)
        y = x.max(axis=(2, 3), keepdims=True) if self.kind == "max" else x.mean(axis=(2, 3), keepdims=True)
        return (y.astype(np.float32),)


@dataclass(frozen=True, slots=True, eq=False)
class Reduce(NetOp):
    """Mean or maximum (``kind`` mean, max) over ``axes``, which stay with size 1 with ``keepdims``.

    At least one axis is left.
    """

    kind: str
    axes: tuple[int, ...]
    keepdims: bool

    def result_shapes(self, *shapes: Shape) -> tuple[Shape, ...]:
        (x,) = shapes
        require(self.kind in ("mean", "max"), f"unknown kind {self.kind}")
        require(len(set(self.axes)) == len(self.axes) > 0, f"axes {self.axes}")
        for axis in self.axes:
            require_axis(axis, x)
        if self.keepdims:
            return (tuple(1 if a in self.axes else n for a, n in enumerate(x)),)
        out = tuple(n for a, n in enumerate(x) if a not in self.axes)
        require(bool(out), "a result without axes needs keepdims")
        return (out,)

    def eval(self, *args: Array) -> tuple[Array, ...]:
        axes = tuple(a + 1 for a in self.axes)
        x = np.asarray(args[0], np.float64)
        y = (
            x.max(axis=axes, keepdims=self.keepdims)
            if self.kind == "max"
            else x.mean(axis=axes, keepdims=self.keepdims)
        )
        return (y.astype(np.float32),)


@dataclass(frozen=True, slots=True, eq=False)
class Softmax(NetOp):
    """exp(x) over its sum along ``axis``."""

    axis: int

    def result_shapes(self, *shapes: Shape) -> tuple[Shape, ...]:
        (x,) = shapes
        require_axis(self.axis, x)
        return (x,)

    def eval(self, *args: Array) -> tuple[Array, ...]:
        x = np.asarray(args[0], np.float64)
        e = np.exp(x - x.max(axis=self.axis + 1, keepdims=True))
        return ((e / e.sum(axis=self.axis + 1, keepdims=True)).astype(np.float32),)


@dataclass(frozen=True, slots=True, eq=False)
class LogSoftmax(NetOp):
    """x minus the logarithm of the sum of exp(x) along ``axis``."""

    axis: int

    def result_shapes(self, *shapes: Shape) -> tuple[Shape, ...]:
        (x,) = shapes
        require_axis(self.axis, x)
        return (x,)

    def eval(self, *args: Array) -> tuple[Array, ...]:
        x = np.asarray(args[0], np.float64)
        d = x - x.max(axis=self.axis + 1, keepdims=True)
        return ((d - np.log(np.exp(d).sum(axis=self.axis + 1, keepdims=True))).astype(np.float32),)


@dataclass(frozen=True, slots=True, eq=False)
class ArgMax(NetOp):
    """The index of the largest value along ``axis``, the lowest on ties, int32.

    The axis stays with size 1 with ``keepdims``; it must where it is the only one.
    """

    result = DType.I32

    axis: int
    keepdims: bool

    def result_shapes(self, *shapes: Shape) -> tuple[Shape, ...]:
        (x,) = shapes
        require_axis(self.axis, x)
        require(self.keepdims or len(x) > 1, "an index over the only axis needs keepdims")
        kept = (1,) if self.keepdims else ()
        return ((*x[: self.axis], *kept, *x[self.axis + 1 :]),)

    def eval(self, *args: Array) -> tuple[Array, ...]:
        return (np.argmax(args[0], axis=self.axis + 1, keepdims=self.keepdims).astype(np.int32),)
