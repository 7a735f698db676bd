"""How everything but layers with weights, pools and repetitions becomes integer kernels."""

from __future__ import annotations

from math import prod

import numpy as np

from mcugen.core.types import Array, DType, TensorType
from mcugen.nn.ops.move import padded_copy, repeated_copy, strided_slice
from mcugen.nn.ops.qadd import QAdd, add_of
from mcugen.nn.ops.qargmax import QArgMax
from mcugen.nn.ops.qconcat import QConcat
from mcugen.nn.ops.qgate import QGate
from mcugen.nn.ops.qlogsoftmax import QLogSoftmax, log_softmax_of
from mcugen.nn.ops.qmul import QMul
from mcugen.nn.ops.qnormalize import QNormalize, normalize_of
from mcugen.nn.ops.qscale import QScale, scale_of
from mcugen.nn.ops.qsoftmax import SOFTMAX_PARAMS, QSoftmax, softmax_table, softmax_units
from mcugen.nn.ops.qtable import QTable, table_of
from mcugen.nn.quantize.lower import Lowering
from mcugen.nn.quantize.rules_linear import clamp_of
from mcugen.nn.quantize.scheme import Fused
from mcugen.nn.quantize.stored import Stored, plain, same_order
from mcugen.nn.requant import requant_of
from mcugen.nn.source import (
    Activation,
    Affine,
    ArgMax,
    Binary,
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


def lower_binary(to: Lowering, step: Fused) -> None:
    """Sum, difference or product of two values; one of another shape is repeated first, if it is no gate."""
    op = step.op
    assert isinstance(op, Binary)
    if op.kind == "mul" and _lower_gate(to, step):
        return
    a, b = (to.stored[v] for v in op.inputs)
    if a.logical != b.logical:
        order = _common_order(to, step)
        a, b = (_repeated(to, v, step, order) for v in op.inputs)
    elif (a.shape, a.order) != (b.shape, b.order) and not (a.logical == a.shape and same_order(a, b.order)):
        a, b = to.in_sequence(op.inputs[0]), to.in_sequence(op.inputs[1])
    q_a, q_b, q_out = to.q(op.inputs[0]), to.q(op.inputs[1]), to.q(step.result)
    low, high = clamp_of(step, q_out)
    stored = Stored(step.result, a.logical, a.shape, a.order)
    to.new_value(step.result, stored)
    count = prod(a.shape)
    if op.kind == "mul":
        requant = requant_of(np.array([q_a.scale * q_b.scale / q_out.scale]), q_out.zero_point, low, high)
        args = ((a.name, b.name), (stored.name,), op.loc, count, q_a.zero_point, q_b.zero_point, requant)
        to.add(QMul(*args))
        return
    sign = -1 if op.kind == "sub" else 1
    swap, table, requant = add_of(q_a, q_b, q_out, low, high, sign)
    first, second, q_first = (b, a, q_b) if swap else (a, b, q_a)
    negate = swap and sign < 0
    to.add(QAdd((first.name, second.name), (stored.name,), op.loc, count, table, q_first.zero_point, requant, negate))


def _lower_gate(to: Lowering, step: Fused) -> bool:
    """A product whose one operand is repeated along all axes before and behind its own, as they lie in memory."""
    shape = to.model.types[step.result].shape
    whole = [v for v in step.op.inputs if to.stored[v].logical == shape]
    if len(whole) != 1:
        return False
    (value,) = whole
    (other,) = (v for v in step.op.inputs if v != value)
    order = _common_order(to, step)
    small = to.stored[other].logical
    if len(small) != len(shape):
        return False
    own = [i for i, axis in enumerate(order) if small[axis] > 1]
    first, end = (own[0], own[-1] + 1) if own else (0, 0)
    if any(small[axis] != shape[axis] for axis in order[first:end]):
        return False
    x, g = to.arranged(value, order), to.arranged(other, order)
    q_x, q_g, q_out = to.q(value), to.q(other), to.q(step.result)
    requant = requant_of(np.array([q_x.scale * q_g.scale / q_out.scale]), q_out.zero_point, *clamp_of(step, q_out))
    stored = Stored(step.result, x.logical, x.shape, x.order)
    to.new_value(step.result, stored)
    parts = (prod(x.physical[:first]), prod(x.physical[first:end]), prod(x.physical[end:]))
    to.add(QGate((x.name, g.name), (stored.name,), step.op.loc, *parts, q_x.zero_point, q_g.zero_point, requant))
    return True


def lower_select(to: Lowering, step: Fused) -> None:
    """Choices by and of functions of one value are tables already; of others there is no kernel."""
    raise to.unsupported(step, "a choice that depends on several values", "choose between functions of one value")


def _common_order(to: Lowering, step: Fused) -> tuple[int, ...]:
    """The order of the axes of an operand that has all elements of the result already, else that of the file."""
    shape = to.model.types[step.result].shape
    whole = [s for s in (to.stored[v] for v in step.op.inputs) if s.logical == s.shape == shape]
    return whole[0].order if whole else tuple(range(len(shape)))


def _repeated(to: Lowering, value: str, step: Fused, order: tuple[int, ...]) -> Stored:
    """A value with its axes in ``order``, those of length 1 repeated to the shape of the result."""
    source, shape = to.arranged(value, order), to.model.types[step.result].shape
    if source.logical == shape:
        return source
    wide = Stored(f"{step.result}_wide_{step.op.inputs.index(value)}", shape, shape, order)
    to.types[wide.name] = TensorType(wide.physical, DType.I8, to.q(value))
    to.add(repeated_copy((source.name,), (wide.name,), step.op.loc, source.physical, wide.physical))
    return wide


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
