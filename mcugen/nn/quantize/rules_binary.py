"""How sums, differences and products of two values become integer kernels."""

from __future__ import annotations

from math import prod

import numpy as np

from mcugen.core.types import DType, TensorType
from mcugen.nn.ops.move import repeated_copy
from mcugen.nn.ops.qadd import QAdd, add_of
from mcugen.nn.ops.qgate import QGate
from mcugen.nn.ops.qmul import QMul
from mcugen.nn.quantize.lower import Lowering
from mcugen.nn.quantize.rules_linear import clamp_of
from mcugen.nn.quantize.scheme import Fused
from mcugen.nn.quantize.stored import Stored, same_order
from mcugen.nn.requant import requant_of
from mcugen.nn.source import Binary


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
