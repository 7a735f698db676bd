"""Handlers of what looks at many elements together: pools, means, Softmax, LogSoftmax, ArgMax."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from mcugen.core.types import DType
from mcugen.frontends.onnx.call import Call
from mcugen.frontends.onnx.ops_functions import scaled
from mcugen.frontends.onnx.ops_linear import give_window, window
from mcugen.frontends.onnx.shapes import Shape, sample_shape
from mcugen.frontends.onnx.values import Activated
from mcugen.nn.source import Activation, ArgMax, Binary, GlobalPool, LogSoftmax, Pool, Reduce, Softmax


def pool(kind: str) -> Callable[[Call], None]:
    """A handler of MaxPool or AveragePool."""

    def handle(c: Call) -> None:
        x = c.x(0)
        kernel = c.get_ints("kernel_shape")
        if kernel is None:
            c.broken("attribute kernel_shape is missing")
        sample, fields = window(c, x, kernel)
        flags: dict[str, Any] = {
            "ceil_mode": bool(c.get_int("ceil_mode", 0)),
            "count_include_pad": bool(c.get_int("count_include_pad", 0)),
        }
        if c.get_str("auto_pad", "NOTSET").startswith("SAME"):
            flags["ceil_mode"] = False  # the padding is made for a whole number of windows
        name = c.program.view(x, sample, c.loc)
        full = kernel if len(kernel) == 2 else (1, *kernel)
        give_window(c, x, c.add(Pool, name, kind=kind, kernel=full, **flags, **fields))

    return handle


def global_pool(kind: str) -> Callable[[Call], None]:
    """A handler of GlobalAveragePool or GlobalMaxPool."""

    def handle(c: Call) -> None:
        x = c.x(0)
        if len(x.shape) < 3 or x.shape[0] != 1:
            c.refuse(f"works on shape {list(x.shape)}", "only (1,C,L) and (1,C,H,W) are supported")
        rest = x.shape[2:]
        sample = (x.shape[1], *rest) if len(rest) == 2 else (x.shape[1], 1, prod(rest))
        out = c.add(GlobalPool, c.program.view(x, sample, c.loc), kind=kind)
        c.give_raw(out, (*x.shape[:2], *(1 for _ in rest)))

    return handle


def reduce(kind: str) -> Callable[[Call], None]:
    """A handler of ReduceMean, ReduceMax, ReduceMin, ReduceSum, ReduceSumSquare, ReduceL1 or ReduceL2 (by its end)."""

    def handle(c: Call) -> None:
        x = c.x(0)
        axes = _reduced_axes(c, len(x.shape))
        if axes is None:
            c.give(x)
            return
        if c.get_int("keepdims", 1):
            shape = tuple(1 if a in axes else n for a, n in enumerate(x.shape))
        else:
            shape = tuple(n for a, n in enumerate(x.shape) if a not in axes)
        name = _before(c, x.name, kind)
        real = tuple(a for a in axes if x.shape[a] != 1)
        if real:
            inner = Activated(name, x.raw, x.shape)
            hint = "" if kind in ("mean", "max") else "reduced"
            name = _reduced(c, inner, real, "max" if kind in ("max", "min") else "mean", hint)
        name = _after(c, name, kind, prod(x.shape[a] for a in axes))
        c.give_raw(name, shape)

    return handle


def _reduced_axes(c: Call, rank: int) -> tuple[int, ...] | None:
    """The axes that go; None if the node does nothing."""
    found = c.get_ints("axes")
    if c.opset >= (13 if c.node.op == "ReduceSum" else 18) and c.has(1):
        found = c.integers(1, "the axes")
    if not found:
        if c.get_int("noop_with_empty_axes", 0):
            return None
        found = tuple(range(rank))
    return c.axes(found, rank)


def _before(c: Call, name: str, kind: str) -> str:
    """What is reduced instead of x."""
    if kind in ("sum_square", "l2"):
        return c.add(Binary, name, name, hint="square", kind="mul")
    if kind == "l1":
        return c.add(Activation, name, hint="abs", kind="abs")
    return scaled(c, name, -1.0, hint="negated") if kind == "min" else name


def _reduced(c: Call, x: Activated, axes: tuple[int, ...], kind: str, hint: str) -> str:
    """Mean or maximum over ``axes``, which have sizes above 1."""
    name, raw, places = c.program.located(x, axes, c.loc)
    planes = _planes(raw, places)
    if planes is not None:
        pool_kind = "avg" if kind == "mean" else "max"
        return c.add(GlobalPool, c.program.reshape(name, planes, c.loc), hint=hint, kind=pool_kind)
    return c.add(Reduce, name, hint=hint, kind=kind, axes=tuple(sorted(places)), keepdims=True)


def _after(c: Call, name: str, kind: str, count: int) -> str:
    """From the mean of ``count`` elements to the result."""
    if kind == "min":
        return scaled(c, name, -1.0)
    if kind in ("mean", "max"):
        return name
    total = scaled(c, name, float(count), hint="total")
    return c.add(Activation, total, kind="sqrt") if kind == "l2" else total


def _planes(shape: Shape, axes: tuple[int, ...]) -> Shape | None:
    """(C, H, W) if a mean over ``axes`` is one over planes: all axes that are not 1, apart from the first of them."""
    real = [a for a, n in enumerate(shape) if n != 1]
    if sorted(axes) != real[1:] or len(real) > 3:
        return None
    if len(shape) == 3 and real[0] == 0:
        return shape
    return (shape[real[0]], *(1,) * (3 - len(real)), *(shape[a] for a in real[1:]))


def softmax(kind: type[Softmax] | type[LogSoftmax]) -> Callable[[Call], None]:
    """A handler of Softmax or LogSoftmax."""

    def handle(c: Call) -> None:
        x = c.x(0)
        rank = len(x.shape)
        if c.opset >= 13:
            axis = c.axis(c.get_int("axis", -1), rank)
            last = axis + 1
        else:  # all axes from this one on are one
            axis, last = c.axis(c.get_int("axis", 1), rank), rank
        real = [a for a in range(axis, last) if x.shape[a] != 1]
        if len(real) > 1:
            row = prod(x.shape[axis:])
            flat = c.program.view(x, sample_shape((prod(x.shape[:axis]), row)), c.loc)
            c.give_raw(c.add(kind, flat, hint="flat", axis=len(c.program.types[flat].shape) - 1), x.shape)
            return
        name, _, places = c.program.located(x, (real[0] if real else axis,), c.loc)
        c.give_raw(c.add(kind, name, axis=places[0]), x.shape)

    return handle


def argmax(c: Call) -> None:
    x = c.x(0)
    rank = len(x.shape)
    if c.get_int("select_last_index", 0):
        c.refuse("takes the last of equal values", "leave select_last_index at 0")
    axis = c.axis(c.get_int("axis", 0), rank)
    if rank > 1 and axis == 0 and x.shape[0] == 1:
        c.refuse("works along the batch axis", "use axis=1, or axis=-1")
    keep = bool(c.get_int("keepdims", 1))
    sample = sample_shape(x.shape)
    place = axis - (rank - len(sample))
    shape = tuple(n for a, n in enumerate(x.shape) if a != axis or keep)
    shape = tuple(1 if keep and a == axis else n for a, n in enumerate(shape))
    keep = len(sample_shape(shape)) == len(sample)  # as the model's output will have it
    out = c.add(ArgMax, c.program.view(x, sample, c.loc), axis=place, keepdims=keep)
    c.give(Activated(out, c.program.types[out].shape, shape, DType.I32))


def shape_of(c: Call) -> None:
    """Shape: known, because all shapes are."""
    shape = c.operand(0).shape
    start, end = c.get_int("start", 0), c.get_int("end", len(shape))
    c.give_constant(np.array(shape[slice(start, end)], np.int64))


def size_of(c: Call) -> None:
    c.give_constant(np.array(prod(c.operand(0).shape), np.int64))
