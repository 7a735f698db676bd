"""The float32 mode: source ops of a net to float32 machine ops, every value in the order of the file (C, H, W)."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

import numpy as np

from mcugen.core.types import DType, Loc, Model
from mcugen.errors import UnsupportedError
from mcugen.nn.floats_lower import Floats, Shape, float32, same_sequence, shape3
from mcugen.nn.ops.factivation import FActivation, is_known
from mcugen.nn.ops.fbinary import FBinary
from mcugen.nn.ops.fconv import FConv
from mcugen.nn.ops.fdense import FDense
from mcugen.nn.ops.flogsoftmax import FLogSoftmax
from mcugen.nn.ops.fnormalize import FNormalize
from mcugen.nn.ops.fpool import FPool
from mcugen.nn.ops.frecurrent import FGru, FLstm
from mcugen.nn.ops.fscale import FScale
from mcugen.nn.ops.fsoftmax import FSoftmax
from mcugen.nn.ops.move import MAX_DIMS, Move, fill_bits, padded_copy, strided_slice
from mcugen.nn.ops.qargmax import QArgMax
from mcugen.nn.ops.qconcat import QConcat
from mcugen.nn.ops.spread import depth_to_space, repeated_elements
from mcugen.nn.quantize.scheme import Fused, fuse
from mcugen.nn.source import (
    Activation,
    Affine,
    ArgMax,
    Binary,
    Concat,
    Conv,
    Dense,
    DepthToSpace,
    FakeQuant,
    GlobalPool,
    Gru,
    LogSoftmax,
    Lstm,
    Normalize,
    Pad,
    Pool,
    Reduce,
    Repeat,
    Reshape,
    Slice,
    Softmax,
    Transpose,
)


def lower_floats(model: Model) -> Model:
    """A float net to float32 machine ops, ReLU and Clip inside the layer before.

    Raises UnsupportedError for a net that comes quantized, and for a copy in too many dimensions.
    """
    for op in model.ops:
        if isinstance(op, FakeQuant):
            raise UnsupportedError(str(op.loc), "the file is quantized, --float32 is not", "leave out --float32")
    to = Floats(model)
    for step in fuse(model):
        rule = _RULES.get(type(step.op))
        if rule is None:
            raise UnsupportedError(
                str(step.op.loc), f"{type(step.op).__name__} has no float32 form", "leave out --float32"
            )
        rule(to, step)
    return to.finish()


# Products.


def _conv(to: Floats, step: Fused) -> None:
    op = step.op
    assert isinstance(op, Conv)
    in_shape, out_shape = (shape3(to.shape(v)) for v in (op.inputs[0], step.result))
    to.ops.append(
        FConv(
            (to.at[op.inputs[0]],),
            (to.new(step.result),),
            op.loc,
            in_shape=in_shape,
            out_shape=out_shape,
            weight=float32(op.weight.transpose(0, 2, 3, 1)),
            bias=float32(op.bias),
            stride=op.stride,
            pads=op.pads,
            dilation=op.dilation,
            groups=op.groups,
            low=step.low,
            high=step.high,
        )
    )


def _dense(to: Floats, step: Fused) -> None:
    """One vector, or one a row: rows are the pixels of a pointwise convolution."""
    op = step.op
    assert isinstance(op, Dense)
    x, shape = to.at[op.inputs[0]], to.shape(op.inputs[0])
    weight, bias = float32(op.weight), float32(op.bias)
    y = to.new(step.result)
    rows = prod(shape[:-1])
    if rows == 1:
        to.ops.append(FDense((x,), (y,), op.loc, weight, bias, step.low, step.high))
        return
    to.ops.append(
        FConv(
            (x,),
            (y,),
            op.loc,
            in_shape=(shape[-1], 1, rows),
            out_shape=(len(weight), 1, rows),
            weight=float32(weight[:, None, None, :]),
            bias=bias,
            stride=(1, 1),
            pads=(0, 0, 0, 0),
            dilation=(1, 1),
            low=step.low,
            high=step.high,
            in_planar=False,
            out_planar=False,
        )
    )


def _lstm(to: Floats, step: Fused) -> None:
    op = step.op
    assert isinstance(op, Lstm)
    wanted = tuple(v in to.read for v in op.outputs)
    names = tuple(to.new(v) for v in op.outputs if v in to.read)
    start = float32(np.concatenate([op.h0, op.c0]))
    steps = to.shape(op.inputs[0])[0]
    tables = (float32(op.w), float32(op.r), float32(op.b), start)
    to.ops.append(FLstm((to.at[op.inputs[0]],), names, op.loc, steps, *tables, wanted))


def _gru(to: Floats, step: Fused) -> None:
    op = step.op
    assert isinstance(op, Gru)
    wanted = tuple(v in to.read for v in op.outputs)
    names = tuple(to.new(v) for v in op.outputs if v in to.read)
    steps = to.shape(op.inputs[0])[0]
    tables = (float32(op.w), float32(op.r), float32(op.bw), float32(op.br), float32(op.h0))
    to.ops.append(FGru((to.at[op.inputs[0]],), names, op.loc, steps, *tables, op.linear_before_reset, wanted))


# Single elements.


def _activation(to: Floats, step: Fused) -> None:
    op = step.op
    assert isinstance(op, Activation)
    if not is_known(op.kind, op.alpha):
        raise UnsupportedError(str(op.loc), f"{op.kind} has no float32 form", "leave out --float32")
    values = (op.kind, prod(to.shape(step.result)), op.alpha, op.beta, op.low, op.high)
    to.ops.append(FActivation((to.at[op.inputs[0]],), (to.new(step.result),), op.loc, *values))


def _affine(to: Floats, step: Fused) -> None:
    op = step.op
    assert isinstance(op, Affine)
    shape = to.shape(step.result)
    channel = (prod(shape[: op.axis]), shape[op.axis], prod(shape[op.axis + 1 :]))
    sizes = (1, 1, prod(shape)) if op.per_tensor else channel
    tables = (float32(op.scale), float32(op.offset))
    to.ops.append(FScale((to.at[op.inputs[0]],), (to.new(step.result),), op.loc, *sizes, *tables))


def _binary(to: Floats, step: Fused) -> None:
    op = step.op
    assert isinstance(op, Binary)
    shape = to.shape(step.result)
    a, b = (_repeated(to, v, shape, op.loc) for v in op.inputs)
    values = (op.kind, prod(shape), step.low, step.high)
    to.ops.append(FBinary((a, b), (to.new(step.result),), op.loc, *values))


def _repeated(to: Floats, value: str, shape: Shape, loc: Loc) -> str:
    """A value with its axes of length 1 repeated to ``shape``: a copy that reads them with stride 0."""
    have = to.shape(value)
    if have == shape:
        return to.at[value]
    if len(shape) > MAX_DIMS:
        hint = f"at most {MAX_DIMS} can be repeated"
        raise UnsupportedError(str(loc), f"operands of shapes {have} and {shape}", hint)
    name = to.between(value, "wide", shape)
    ins = tuple(0 if have[a] == 1 else prod(have[a + 1 :]) for a in range(len(shape)))
    outs = tuple(prod(shape[a + 1 :]) for a in range(len(shape)))
    to.ops.append(Move((to.at[value],), (name,), loc, prod(have), prod(shape), shape, ins, outs, dtype=DType.F32))
    return name


# Many elements to one.


def _pool(to: Floats, step: Fused) -> None:
    op = step.op
    assert isinstance(op, Pool)
    in_shape, out_shape = (shape3(to.shape(v)) for v in (op.inputs[0], step.result))
    window = (in_shape, out_shape, op.kernel, op.stride, op.pads, op.dilation, op.count_include_pad)
    to.ops.append(FPool((to.at[op.inputs[0]],), (to.new(step.result),), op.loc, op.kind, *window))


def _global_pool(to: Floats, step: Fused) -> None:
    op = step.op
    assert isinstance(op, GlobalPool)
    c, h, w = to.shape(op.inputs[0])
    _mean(to, step, op.kind, to.at[op.inputs[0]], c, h * w)


def _reduce(to: Floats, step: Fused) -> None:
    op = step.op
    assert isinstance(op, Reduce)
    shape = to.shape(op.inputs[0])
    kept = tuple(a for a in range(len(shape)) if a not in op.axes)
    x = to.arranged(op.inputs[0], (*kept, *sorted(op.axes)), op.loc)
    kind = "max" if op.kind == "max" else "avg"
    _mean(to, step, kind, x, prod(shape[a] for a in kept), prod(shape[a] for a in op.axes))


def _mean(to: Floats, step: Fused, kind: str, x: str, rows: int, count: int) -> None:
    """Each of ``rows`` rows to one element: an image of that many channels, 1 x count pixels each."""
    window = ((rows, 1, count), (rows, 1, 1), (1, count), (1, 1), (0, 0, 0, 0), (1, 1))
    to.ops.append(FPool((x,), (to.new(step.result),), step.op.loc, kind, *window))


def _softmax(to: Floats, step: Fused) -> None:
    """Rows of the last axis: another axis is moved there and back."""
    op = step.op
    assert isinstance(op, Softmax | LogSoftmax)
    kind = FSoftmax if isinstance(op, Softmax) else FLogSoftmax
    shape = to.shape(op.inputs[0])
    perm = (*(a for a in range(len(shape)) if a != op.axis), op.axis)
    x = to.arranged(op.inputs[0], perm, op.loc)
    sizes = (prod(shape) // shape[op.axis], shape[op.axis])
    y = to.new(step.result)
    if same_sequence(shape, perm):
        to.ops.append(kind((x,), (y,), op.loc, *sizes))
        return
    physical = tuple(shape[a] for a in perm)
    rows = to.between(step.result, "rows", physical)
    to.ops.append(kind((x,), (rows,), op.loc, *sizes))
    to.permuted(rows, physical, tuple(perm.index(a) for a in range(len(shape))), y, op.loc)


def _normalize(to: Floats, step: Fused) -> None:
    op = step.op
    assert isinstance(op, Normalize)
    sizes = (op.rows, prod(to.shape(step.result)) // op.rows, op.inner)
    values = ((to.at[op.inputs[0]],), (to.new(step.result),), op.loc)
    to.ops.append(FNormalize(*values, *sizes, op.epsilon, float32(op.scale), float32(op.offset)))


def _argmax(to: Floats, step: Fused) -> None:
    op = step.op
    assert isinstance(op, ArgMax)
    shape = to.shape(op.inputs[0])
    sizes = (prod(shape[: op.axis]), shape[op.axis], prod(shape[op.axis + 1 :]))
    to.ops.append(QArgMax((to.at[op.inputs[0]],), (to.new(step.result),), op.loc, *sizes, DType.F32))


# Moves.


def _reshape(to: Floats, step: Fused) -> None:
    to.at[step.result] = to.at[step.op.inputs[0]]


def _transpose(to: Floats, step: Fused) -> None:
    op = step.op
    assert isinstance(op, Transpose)
    shape = to.shape(op.inputs[0])
    if same_sequence(shape, op.perm):
        _reshape(to, step)
        return
    to.permuted(to.at[op.inputs[0]], shape, op.perm, to.new(step.result), op.loc)


def _concat(to: Floats, step: Fused) -> None:
    op = step.op
    assert isinstance(op, Concat)
    outer = prod(to.shape(step.result)[: op.axis])
    inners = tuple(prod(to.shape(v)[op.axis :]) for v in op.inputs)
    parts = tuple(to.at[v] for v in op.inputs)
    to.ops.append(QConcat(parts, (to.new(step.result),), op.loc, outer, inners, DType.F32))


def _slice(to: Floats, step: Fused) -> None:
    op = step.op
    assert isinstance(op, Slice)
    box = (to.shape(op.inputs[0]), op.starts, op.steps, op.shape)
    to.ops.append(strided_slice((to.at[op.inputs[0]],), (to.new(step.result),), op.loc, *box, DType.F32))


def _pad(to: Floats, step: Fused) -> None:
    op = step.op
    assert isinstance(op, Pad)
    shapes = (to.shape(op.inputs[0]), to.shape(step.result))
    before = tuple(p[0] for p in op.pads)
    x, y = (to.at[op.inputs[0]],), (to.new(step.result),)
    to.ops.append(padded_copy(x, y, op.loc, *shapes, before, fill_bits(op.value), DType.F32))


def _repeat(to: Floats, step: Fused) -> None:
    op = step.op
    assert isinstance(op, Repeat)
    values = ((to.at[op.inputs[0]],), (to.new(step.result),), op.loc)
    to.ops.append(repeated_elements(values, to.shape(op.inputs[0]), op.factors, DType.F32))


def _depth_to_space(to: Floats, step: Fused) -> None:
    op = step.op
    assert isinstance(op, DepthToSpace)
    values = ((to.at[op.inputs[0]],), (to.new(step.result),), op.loc)
    to.ops.append(depth_to_space(values, shape3(to.shape(op.inputs[0])), op.block, (0, 1, 2), DType.F32))


_RULES: dict[type, Callable[[Floats, Fused], None]] = {
    Conv: _conv,
    Dense: _dense,
    Lstm: _lstm,
    Gru: _gru,
    Activation: _activation,
    Affine: _affine,
    Binary: _binary,
    Pool: _pool,
    GlobalPool: _global_pool,
    Reduce: _reduce,
    Softmax: _softmax,
    LogSoftmax: _softmax,
    Normalize: _normalize,
    ArgMax: _argmax,
    Reshape: _reshape,
    Transpose: _transpose,
    Concat: _concat,
    Slice: _slice,
    Pad: _pad,
    Repeat: _repeat,
    DepthToSpace: _depth_to_space,
}
