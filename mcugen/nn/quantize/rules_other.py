"""How everything but layers with weights, pools and repetitions becomes integer kernels."""

from __future__ import annotations

from math import prod

import numpy as np

from mcugen.core.types import Array, DType
from mcugen.nn.ops.move import padded_copy, strided_slice
from mcugen.nn.ops.qargmax import QArgMax
from mcugen.nn.ops.qconcat import QConcat
from mcugen.nn.ops.qlogsoftmax import QLogSoftmax, log_softmax_of
from mcugen.nn.ops.qnormalize import QNormalize, normalize_of
from mcugen.nn.ops.qscale import QScale, scale_of
from mcugen.nn.ops.qsoftmax import SOFTMAX_PARAMS, QSoftmax, softmax_table, softmax_units
from mcugen.nn.ops.qtable import QTable, table_of
from mcugen.nn.quantize.lower import Lowering
from mcugen.nn.quantize.scheme import Fused
from mcugen.nn.quantize.stored import Stored, plain
from mcugen.nn.source import (
    Activation,
    Affine,
    ArgMax,
    Concat,
    FakeQuant,
    Function,
    LogSoftmax,
    Normalize,
    Pad,
    Reshape,
    Slice,
    Softmax,
    Transpose,
)


def lower_reshape(to: Lowering, step: Fused) -> None:
    """Only the reading changes."""
    op = step.op
    assert isinstance(op, Reshape)
    to.alias(step.result, to.stored[op.inputs[0]].reshaped(op.shape))
    if op.inputs[0] in to.wide:
        to.wide[step.result] = to.wide[op.inputs[0]].reshaped(op.shape)


def lower_transpose(to: Lowering, step: Fused) -> None:
    """Only the reading changes."""
    op = step.op
    assert isinstance(op, Transpose)
    stored = to.stored[op.inputs[0]].transposed(op.perm)
    if stored is None:
        stored = to.in_sequence(op.inputs[0]).transposed(op.perm)
    assert stored is not None
    to.alias(step.result, stored)


def lower_fake_quant(to: Lowering, step: Fused) -> None:
    """The producer has written this scale already, or a table makes it."""
    op = step.op
    assert isinstance(op, FakeQuant)
    to.alias(step.result, to.stored[op.inputs[0]])


def lower_activation(to: Lowering, step: Fused) -> None:
    """256 answers in a table."""
    op = step.op
    assert isinstance(op, Activation | Function)
    q_in, q_out = to.q(op.inputs[0]), to.q(step.result)

    def function(x: Array) -> Array:
        return _filled(np.asarray(op.eval(x.astype(np.float32))[0], np.float64))

    _table(to, step, op.inputs[0], table_of(function, q_in, q_out))


def _filled(y: Array) -> Array:
    """Without NaN: where a function has no value (the root of a negative number), that of the nearest that has one."""
    places = np.flatnonzero(~np.isnan(y))
    if not places.size:
        return np.zeros_like(y)
    nearest = places[np.abs(np.arange(len(y))[:, None] - places).argmin(axis=1)]
    return np.asarray(y[nearest])


def _table(to: Lowering, step: Fused, value: str, table: Array) -> None:
    source = to.stored[value]
    stored = Stored(step.result, source.logical, source.shape, source.order)
    to.new_value(step.result, stored)
    to.add(QTable((source.name,), (stored.name,), step.op.loc, prod(source.shape), table))


def lower_affine(to: Lowering, step: Fused) -> None:
    """One scale for all: a table. One a channel: a multiply and an add."""
    op = step.op
    assert isinstance(op, Affine)
    q_in, q_out = to.q(op.inputs[0]), to.q(step.result)
    scale, offset = (np.asarray(v, np.float64).reshape(-1) for v in (op.scale, op.offset))
    if (scale == scale[0]).all() and (offset == offset[0]).all():
        _table(to, step, op.inputs[0], table_of(lambda x: x * scale[0] + offset[0], q_in, q_out))
        return
    source = to.stored[op.inputs[0]]
    if source.logical != source.shape:
        source = to.in_sequence(op.inputs[0])
    place, shape = source.order.index(op.axis), source.physical
    outer, inner = prod(shape[:place]), prod(shape[place + 1 :])
    stored = Stored(step.result, source.logical, source.shape, source.order)
    to.new_value(step.result, stored)
    multiplier, add, requant = scale_of(scale, offset, q_in, q_out)
    to.add(
        QScale(
            (source.name,),
            (stored.name,),
            op.loc,
            outer,
            shape[place],
            inner,
            q_in.zero_point,
            multiplier,
            add,
            requant,
        )
    )


def lower_select(to: Lowering, step: Fused) -> None:
    """Choices by and of functions of one value are tables already; of others there is no kernel."""
    raise to.unsupported(step, "a choice that depends on several values", "choose between functions of one value")


def lower_softmax(to: Lowering, step: Fused) -> None:
    """Rows of the last axis."""
    op = step.op
    assert isinstance(op, Softmax)
    x, sizes = _rows(to, op.inputs[0], op.axis)
    q_in, q_out = to.q(op.inputs[0]), to.q(step.result)
    units = softmax_units(q_out)
    name, q = (step.result, q_out) if units is not None else (f"{step.result}_256", SOFTMAX_PARAMS)
    to.new_value(step.result, Stored(name, x.logical, x.shape, x.order), q=q)
    to.add(QSoftmax((x.name,), (name,), op.loc, *sizes, softmax_table(q_in), units or 256))
    if units is None:
        to.stored[step.result] = to.rescaled(to.stored[step.result], q, q_out, op.loc)


def lower_log_softmax(to: Lowering, step: Fused) -> None:
    """Rows of the last axis; the kernel writes any scale."""
    op = step.op
    assert isinstance(op, LogSoftmax)
    x, sizes = _rows(to, op.inputs[0], op.axis)
    q_in, q_out = to.q(op.inputs[0]), to.q(step.result)
    stored = Stored(step.result, x.logical, x.shape, x.order)
    to.new_value(step.result, stored)
    to.add(QLogSoftmax((x.name,), (stored.name,), op.loc, *sizes, softmax_table(q_in), *log_softmax_of(q_in, q_out)))


def _rows(to: Lowering, value: str, axis: int) -> tuple[Stored, tuple[int, int]]:
    """A value whose memory is rows along ``axis``; how many rows, and how long they are."""
    shape = to.model.types[value].shape
    axis %= len(shape)
    x = to.arranged(value, (*(a for a in range(len(shape)) if a != axis), axis))
    return x, (prod(shape) // shape[axis], shape[axis])


def lower_normalize(to: Lowering, step: Fused) -> None:
    """Rows in the sequence of the file."""
    op = step.op
    assert isinstance(op, Normalize)
    x, shape = to.in_sequence(op.inputs[0]), to.model.types[step.result].shape
    k = prod(shape) // op.rows
    tables = (op.epsilon, op.scale, op.offset)
    up, epsilon, scale, offset, shift = normalize_of(
        k, *tables, to.q(op.inputs[0]), to.q(step.result), where=str(op.loc)
    )
    stored = plain(step.result, shape)
    to.new_value(step.result, stored)
    to.add(QNormalize((x.name,), (stored.name,), op.loc, op.rows, k, op.inner, up, epsilon, scale, offset, shift))


def lower_argmax(to: Lowering, step: Fused) -> None:
    """The lowest index on ties."""
    op = step.op
    assert isinstance(op, ArgMax)
    shape = to.model.types[op.inputs[0]].shape
    axis = op.axis % len(shape)
    x = to.in_sequence(op.inputs[0])
    result = plain(step.result, to.model.types[step.result].shape)
    to.new_value(step.result, result, DType.I32)
    rows, inner = prod(shape[:axis]), prod(shape[axis + 1 :])
    to.add(QArgMax((x.name,), (result.name,), op.loc, rows, shape[axis], inner))


def lower_concat(to: Lowering, step: Fused) -> None:
    """Parts side by side along an axis, each with the scale of the whole."""
    op = step.op
    assert isinstance(op, Concat)
    shape = to.model.types[step.result].shape
    axis = op.axis % len(shape)
    first = to.stored[op.inputs[0]]
    orders = {(s.order if s.logical == s.shape else None) for s in (to.stored[v] for v in op.inputs)}
    order = first.order if len(orders) == 1 and None not in orders else tuple(range(len(shape)))
    parts = []
    for value in op.inputs:
        part = to.stored[value] if order != tuple(range(len(shape))) else to.in_sequence(value)
        parts.append(to.rescaled(part, to.q(value), to.q(step.result), op.loc))
    place = order.index(axis)
    outer = prod(shape[a] for a in order[:place])
    inner = tuple(prod(to.model.types[v].shape[a] for a in order[place:]) for v in op.inputs)
    stored = Stored(step.result, shape, shape, order)
    to.new_value(step.result, stored)
    # The largest part that nobody reads afterwards comes first: the result may take over its memory.
    later = _read_after(to, step)
    free = [part.name != to.stored[v].name or v not in later for part, v in zip(parts, op.inputs, strict=True)]
    ranked = sorted(range(len(parts)), key=lambda i: (not free[i], -inner[i], i))
    names, sizes = tuple(parts[i].name for i in ranked), tuple(inner[i] for i in ranked)
    order = tuple(ranked.index(i) for i in range(len(parts)))
    to.add(QConcat(names, (stored.name,), op.loc, outer, sizes, order=order))


def _read_after(to: Lowering, step: Fused) -> set[str]:
    """The values of the source that are read after a step."""
    place = next(i for i, op in enumerate(to.model.ops) if op.outputs == step.op.outputs)
    return {v for op in to.model.ops[place + 1 :] for v in op.inputs} | set(to.model.outputs)


def lower_slice(to: Lowering, step: Fused) -> None:
    """Every so manyth element of a box."""
    op = step.op
    assert isinstance(op, Slice)
    source = to.stored[op.inputs[0]]
    if source.logical != source.shape:
        source = to.in_sequence(op.inputs[0])
    stored = Stored(step.result, op.shape, op.shape, source.order)
    to.new_value(step.result, stored, q=to.q(op.inputs[0]))
    move = strided_slice(
        (source.name,),
        (stored.name,),
        op.loc,
        source.physical,
        _in_order(op.starts, source),
        _in_order(op.steps, source),
        stored.physical,
    )
    to.add(move)
    to.alias(step.result, stored)  # as a part of a Concat it has the scale of the whole


def _in_order(values: tuple[int, ...], stored: Stored) -> tuple[int, ...]:
    return tuple(values[a] for a in stored.order)


def lower_pad(to: Lowering, step: Fused) -> None:
    """A border of one value."""
    op = step.op
    assert isinstance(op, Pad)
    source = to.stored[op.inputs[0]]
    if source.logical != source.shape:
        source = to.in_sequence(op.inputs[0])
    q_in, q_out = to.q(op.inputs[0]), to.q(step.result)
    source = to.rescaled(source, q_in, q_out, op.loc)
    shape = to.model.types[step.result].shape
    stored = Stored(step.result, shape, shape, source.order)
    to.new_value(step.result, stored)
    before = tuple(op.pads[a][0] for a in source.order)
    fill = int(np.clip(np.rint(op.value / q_out.scale) + q_out.zero_point, -128, 127))
    to.add(padded_copy((source.name,), (stored.name,), op.loc, source.physical, stored.physical, before, fill))
