"""Layers with int16 activations and int8 weights, for values that 8 bits are too coarse for (--int16 LAYER).

A layer takes int16 where the one before gives it; other inputs are widened, exactly. It gives int16, and an int8 copy
beside it, which falls away where nobody reads it.
"""

from __future__ import annotations

import re
from difflib import get_close_matches
from math import prod

import numpy as np

from mcugen.core.types import Array, DType, QParams, TensorType
from mcugen.errors import InputError
from mcugen.nn.ops.qadd16 import QAdd16, add16_of
from mcugen.nn.ops.qconv16 import QConv16
from mcugen.nn.ops.qdense16 import QDense16
from mcugen.nn.ops.qrescale import QRescale, rescale_of
from mcugen.nn.quantize.lower import CHW, HWC, Lowering, shape3
from mcugen.nn.quantize.params import quantize_weight
from mcugen.nn.quantize.scheme import Fused
from mcugen.nn.quantize.stored import Stored, same_order
from mcugen.nn.requant import requant_of
from mcugen.nn.source import Binary, Conv, Dense

#: An int8 step is so many int16 steps after widening: 255 * 128 fits.
_WIDER = 128.0


def layer_names(step: Fused) -> set[str]:
    """The names by which a user may call a layer: its node, its results."""
    words = set(re.split(r"[\s'()]+", step.op.loc.item)) - {"", "node", "+", type(step.op).__name__}
    return words | {step.op.outputs[0], step.result}


def choose_wide(steps: tuple[Fused, ...], layers: tuple[str, ...]) -> set[str]:
    """The results of the layers that the user named; InputError for a name that no layer has."""
    chosen = set()
    able = [s for s in steps if isinstance(s.op, Conv | Dense) or (isinstance(s.op, Binary) and s.op.kind != "mul")]
    for layer in layers:
        found = [s for s in able if layer in layer_names(s)]
        if not found:
            known = sorted({n for s in able for n in layer_names(s)})
            near = get_close_matches(layer, known, 1)
            others = ", ".join([s.result for s in able][:12]) or "no layer of this net"
            hint = f"did you mean '{near[0]}'?" if near else f"known: {others}"
            raise InputError("--int16", f"no convolution, dense layer or sum is called '{layer}'", hint)
        chosen |= {s.result for s in found}
    return chosen


def lower_wide(to: Lowering, step: Fused, q_out: QParams) -> None:
    """One layer in int16; ``q_out`` is the scale of its result."""
    if isinstance(step.op, Conv):
        stored = _conv(to, step, step.op, q_out)
    elif isinstance(step.op, Dense):
        stored = _dense(to, step, step.op, q_out)
    else:
        assert isinstance(step.op, Binary)
        stored = _sum(to, step, step.op, q_out)
    to.wide[step.result] = stored
    narrow = Stored(step.result, stored.logical, stored.shape, stored.order)
    to.new_value(step.result, narrow)
    parts = rescale_of(q_out, to.q(step.result), DType.I8)
    to.add(QRescale((stored.name,), (narrow.name,), step.op.loc, prod(stored.shape), DType.I16, DType.I8, *parts))


def _result(to: Lowering, step: Fused, shape: tuple[int, ...], order: tuple[int, ...], q: QParams) -> Stored:
    stored = Stored(f"{step.result}_16", shape, shape, order)
    to.types[stored.name] = TensorType(stored.physical, DType.I16, q)
    return stored


def _widened(to: Lowering, value: str, stored: Stored) -> tuple[Stored, QParams]:
    """An int8 value as int16, exactly."""
    q = to.types[stored.name].q
    assert q is not None
    wide = QParams(q.scale / _WIDER, 0)
    name = f"{stored.name}_up"
    if name not in to.types:
        to.types[name] = TensorType(to.types[stored.name].shape, DType.I16, wide)
        parts = rescale_of(q, wide, DType.I16)
        to.add(QRescale((stored.name,), (name,), to.loc_of(value), prod(stored.shape), DType.I8, DType.I16, *parts))
    return Stored(name, stored.logical, stored.shape, stored.order), wide


def _input(to: Lowering, value: str, orders: tuple[tuple[int, ...], ...]) -> tuple[Stored, QParams, tuple[int, ...]]:
    """A value in int16 with its axes in one of ``orders``."""
    wide = to.wide.get(value)
    for order in orders:
        if wide is not None and same_order(wide, order):
            q = to.types[wide.name].q
            assert q is not None
            return wide, q, order
    stored = to.stored[value]
    order = next((o for o in orders if stored.logical == stored.shape and same_order(stored, o)), orders[0])
    up, q = _widened(to, value, to.arranged(value, order))
    return up, q, order


def _clamp(step: Fused, q: QParams) -> tuple[int, int]:
    low = -32768 if np.isneginf(step.low) else int(np.clip(np.rint(step.low / q.scale), -32768, 32767))
    high = 32767 if np.isposinf(step.high) else int(np.clip(np.rint(step.high / q.scale), -32768, 32767))
    return low, high


def _parts(step: Fused, op: Conv | Dense, q_in: QParams, q_out: QParams) -> tuple[Array, Array, Array]:
    """int8 weights, int64 bias, and the factor of each output."""
    made = quantize_weight(op.weight, np.abs(op.bias.astype(np.float64)) / (q_in.scale * 2.0**45))
    dead = ~made.q.reshape(len(made.q), -1).any(axis=1)
    scale = np.where(dead, q_out.scale / q_in.scale / 65536.0, made.scale)
    bias = np.rint(op.bias.astype(np.float64) / (q_in.scale * scale)).astype(np.int64)
    return made.q, bias, q_in.scale * scale / q_out.scale


def _conv(to: Lowering, step: Fused, op: Conv, q_out: QParams) -> Stored:
    x, q_in, order = _input(to, op.inputs[0], (HWC, CHW))
    weight, bias, factor = _parts(step, op, q_in, q_out)
    out_shape = shape3(to.model.types[step.result].shape)
    planar = step.result in to.model.outputs
    out = _result(to, step, out_shape, CHW if planar else HWC, q_out)
    to.add(
        QConv16(
            (x.name,),
            (out.name,),
            op.loc,
            in_shape=shape3(x.shape),
            out_shape=out_shape,
            weight=np.ascontiguousarray(weight.transpose(0, 2, 3, 1)),
            bias=bias,
            in_zp=0,
            requant=requant_of(factor, 0, *_clamp(step, q_out), where=str(op.loc)),
            stride=op.stride,
            pads=op.pads,
            dilation=op.dilation,
            in_planar=order == CHW,
            out_planar=planar,
            groups=op.groups,
        )
    )
    return out


def _dense(to: Lowering, step: Fused, op: Dense, q_out: QParams) -> Stored:
    shape = to.model.types[op.inputs[0]].shape
    if len(shape) != 1:
        raise to.unsupported(step, "int16 for a dense layer over rows", "leave it out of --int16")
    value = op.inputs[0]
    if value in to.wide:
        x = to.wide[value]
        q_in = to.types[x.name].q
        assert q_in is not None
    else:
        x, q_in = _widened(to, value, to.stored[value])
    weight, bias, factor = _parts(step, op, q_in, q_out)
    weight = np.ascontiguousarray(weight[:, x.sequence()])
    out = _result(to, step, to.model.types[step.result].shape, (0,), q_out)
    requant = requant_of(factor, 0, *_clamp(step, q_out), where=str(op.loc))
    to.add(QDense16((x.name,), (out.name,), op.loc, weight, bias, 0, requant))
    return out


def _sum(to: Lowering, step: Fused, op: Binary, q_out: QParams) -> Stored:
    shape = to.model.types[op.inputs[0]].shape
    if shape != to.model.types[op.inputs[1]].shape:
        raise to.unsupported(step, "operands of two shapes", "make the shapes equal")
    first = to.wide.get(op.inputs[0], to.stored[op.inputs[0]])
    order = first.order if first.logical == first.shape else tuple(range(len(shape)))
    (a, q_a, _), (b, q_b, _) = (_input(to, v, (order,)) for v in op.inputs)
    out = _result(to, step, shape, order, q_out)
    parts = add16_of(q_a, q_b, q_out, *_clamp(step, q_out), sign=-1 if op.kind == "sub" else 1)
    to.add(QAdd16((a.name, b.name), (out.name,), op.loc, prod(shape), *parts))
    return out


__all__ = ["choose_wide", "layer_names", "lower_wide"]
