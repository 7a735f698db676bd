"""How pools and reductions become integer kernels."""

from __future__ import annotations

from math import prod

from mcugen.nn.ops.pool_window import Windows
from mcugen.nn.ops.qpool import pool_of
from mcugen.nn.quantize.lower import CHW, HWC, Lowering, shape3
from mcugen.nn.quantize.scheme import Fused
from mcugen.nn.quantize.stored import Stored, plain, same_order
from mcugen.nn.source import GlobalPool, Pool, Reduce


def lower_pool(to: Lowering, step: Fused) -> None:
    """Windows of max or average."""
    op = step.op
    assert isinstance(op, Pool)
    before, after = (shape3(to.model.types[v].shape) for v in (op.inputs[0], step.result))
    _pool(to, step, op.kind, Windows(before, after, op.kernel, op.stride, op.pads, op.dilation, op.count_include_pad))


def lower_global_pool(to: Lowering, step: Fused) -> None:
    """One window over everything."""
    op = step.op
    assert isinstance(op, GlobalPool)
    shape = to.model.types[op.inputs[0]].shape
    if len(shape) != 3:
        raise to.unsupported(step, f"an operand of shape {shape}")
    c, h, w = shape
    _pool(to, step, op.kind, Windows((c, h, w), (c, 1, 1), (h, w)))


def lower_reduce(to: Lowering, step: Fused) -> None:
    """One value of whole axes behind the channels is a global pool."""
    op = step.op
    assert isinstance(op, Reduce)
    shape = to.model.types[op.inputs[0]].shape
    axes = tuple(a % len(shape) for a in op.axes)
    kept = tuple(a for a in range(len(shape)) if a not in axes)
    x = to.arranged(op.inputs[0], (*kept, *sorted(axes)))
    rows, many = prod(shape[a] for a in kept), prod(shape[a] for a in axes)
    # As an image of `rows` channels, 1 x many pixels each.
    result = plain(step.result, to.model.types[step.result].shape)
    kind, q_in = "max" if op.kind == "max" else "avg", to.q(op.inputs[0])
    q_out = q_in if kind == "max" else to.q(step.result)
    to.new_value(step.result, result, q=q_out)
    windows = Windows((rows, 1, many), (rows, 1, 1), (1, many))
    to.add(pool_of(((x.name,), (result.name,), op.loc), kind, windows, True, q_in, q_out))
    to.alias(step.result, result)


def _pool(to: Lowering, step: Fused, kind: str, windows: Windows) -> None:
    value = step.op.inputs[0]
    source = to.stored[value]
    planar = source.logical == source.shape and same_order(source, CHW)
    x = to.arranged(value, CHW if planar else HWC)
    q_in, q_out = to.q(value), to.q(step.result)
    layout = (windows.out_shape, windows.out_shape, CHW if planar else HWC)
    # A maximum is one of its elements: where the result has another scale, a table changes it afterwards.
    rescale = kind == "max" and q_out != q_in
    name, q = (f"{step.result}_max", q_in) if rescale else (step.result, q_out)
    to.new_value(step.result, Stored(name, *layout), q=q)
    to.add(pool_of(((x.name,), (name,), step.op.loc), kind, windows, planar, q_in, q))
    if rescale:
        to.stored[step.result] = to.rescaled(to.stored[step.result], q_in, q_out, step.op.loc)
