"""How Repeat and DepthToSpace become copies: in the order in which the image lies."""

from __future__ import annotations

from mcugen.core.types import DType
from mcugen.nn.ops.spread import depth_to_space, repeated_elements
from mcugen.nn.quantize.lower import CHW, HWC, Lowering, shape3
from mcugen.nn.quantize.scheme import Fused
from mcugen.nn.quantize.stored import Stored, same_order
from mcugen.nn.source import DepthToSpace, Repeat


def lower_repeat(to: Lowering, step: Fused) -> None:
    """Elements are read again and again, axes stay where they lie."""
    op = step.op
    assert isinstance(op, Repeat)
    x = to.stored[op.inputs[0]]
    if x.logical != x.shape:
        x = to.in_sequence(op.inputs[0])
    shape = to.model.types[step.result].shape
    stored = Stored(step.result, shape, shape, x.order)
    to.new_value(step.result, stored, q=to.q(op.inputs[0]))
    values = ((x.name,), (stored.name,), op.loc)
    to.add(repeated_elements(values, x.physical, tuple(op.factors[a] for a in x.order), DType.I8))
    to.alias(step.result, stored)


def lower_depth_to_space(to: Lowering, step: Fused) -> None:
    """Planes or interleaved channels, whichever x has."""
    op = step.op
    assert isinstance(op, DepthToSpace)
    source = to.stored[op.inputs[0]]
    order = CHW if source.logical == source.shape and same_order(source, CHW) else HWC
    x = to.arranged(op.inputs[0], order)
    shape = to.model.types[step.result].shape
    stored = Stored(step.result, shape, shape, order)
    to.new_value(step.result, stored, q=to.q(op.inputs[0]))
    to.add(depth_to_space(((x.name,), (stored.name,), op.loc), shape3(x.shape), op.block, order, DType.I8))
    to.alias(step.result, stored)
