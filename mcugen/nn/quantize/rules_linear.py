"""How convolutions and dense layers become integer kernels."""

from __future__ import annotations

from dataclasses import replace
from math import prod

import numpy as np

from mcugen.core.types import Array, QParams
from mcugen.nn.estimate import instructions
from mcugen.nn.ops.qconv import QConv
from mcugen.nn.ops.qdense import QDense
from mcugen.nn.ops.qdepthwise import QDepthwise
from mcugen.nn.quantize.lower import CHW, HWC, Lowering, shape3
from mcugen.nn.quantize.params import quantize_bias, quantize_weight
from mcugen.nn.quantize.scheme import Fused
from mcugen.nn.quantize.stored import Stored, plain
from mcugen.nn.requant import Requant, requant_of
from mcugen.nn.source import Conv, Dense


def clamp_of(step: Fused, q: QParams) -> tuple[int, int]:
    """The fused clamp in quantized numbers."""
    low = -128 if np.isneginf(step.low) else int(np.clip(np.rint(step.low / q.scale) + q.zero_point, -128, 127))
    high = 127 if np.isposinf(step.high) else int(np.clip(np.rint(step.high / q.scale) + q.zero_point, -128, 127))
    return low, high


#: A product of int32 and a factor below this rounds to 0.
_NOTHING = 2.0**-32
#: Steps of the bias in one step of the output, for channels that have nothing but a bias.
_BIAS_STEPS = 65536.0
#: Biases are held below this, so that products can be added in int32.
_MOST_BIAS = 2.0**29


def _weights(op: Conv | Dense, in_scale: float, out_scale: float) -> tuple[Array, Array, Array]:
    """int8 weights, their scales (OC,) and the int32 bias: those of the file where it brings them."""
    if op.weight_q is not None and op.weight_scale is not None:
        count = len(op.weight)
        scale = np.broadcast_to(np.asarray(op.weight_scale, np.float64).reshape(-1), (count,))
        weight = np.asarray(op.weight_q, np.int8)
    else:
        made = quantize_weight(op.weight, np.abs(op.bias.astype(np.float64)) / (in_scale * _MOST_BIAS))
        weight = made.q
        dead = ~weight.reshape(len(weight), -1).any(axis=1)
        scale = np.where(dead, out_scale / in_scale / _BIAS_STEPS, made.scale)
    silent = in_scale * scale / out_scale < _NOTHING
    if silent.any():
        # Whatever they add up to is less than half a step: they give the zero point.
        weight = np.where(silent.reshape(-1, *(1,) * (weight.ndim - 1)), 0, weight).astype(np.int8)
    bias_q = op.bias_q
    if bias_q is not None and np.allclose(np.asarray(op.bias_scale, np.float64), in_scale * scale, rtol=1e-5, atol=0.0):
        return weight, scale, np.where(silent, 0, bias_q).astype(np.int32)
    return weight, scale, np.where(silent, 0, quantize_bias(op.bias, in_scale, scale)).astype(np.int32)


def _requant(step: Fused, q_in: QParams, q_out: QParams, scale: Array) -> Requant:
    low, high = clamp_of(step, q_out)
    factor = q_in.scale * scale / q_out.scale
    factor = np.where(factor < _NOTHING, 0.0, factor)
    return requant_of(factor, q_out.zero_point, low, high, where=str(step.op.loc))


def lower_conv(to: Lowering, step: Fused) -> None:
    """Depthwise on planes, grouped and ordinary convolutions as matrix products over patches."""
    op = step.op
    assert isinstance(op, Conv)
    channels = op.weight.shape[1] * op.groups
    if op.groups > 1 and op.weight.shape[1] == 1 and op.weight.shape[0] % op.groups == 0:
        _depthwise(to, step, op)
        return
    source = to.stored[op.inputs[0]]
    q_in, q_out = to.q(op.inputs[0]), to.q(step.result)
    weight, scale, bias = _weights(op, q_in.scale, q_out.scale)
    dense = _ungrouped(weight, op.groups, channels)
    out_shape = shape3(to.model.types[step.result].shape)
    planar = step.result in to.planar
    out = Stored(step.result, out_shape, out_shape, CHW if planar else HWC)
    layer = QConv(
        (source.name,),
        (out.name,),
        op.loc,
        in_shape=shape3(to.model.types[op.inputs[0]].shape),
        out_shape=out_shape,
        weight=np.ascontiguousarray(dense.transpose(0, 2, 3, 1)),
        bias=bias,
        in_zp=q_in.zero_point,
        requant=_requant(step, q_in, q_out, scale),
        stride=op.stride,
        pads=op.pads,
        dilation=op.dilation,
        in_planar=source.name in to.model.inputs and source.is_plain,
        out_planar=planar,
    )
    if layer.in_planar and not to.interleaved and _copy_pays(layer):
        layer = replace(layer, in_planar=False)
    x = to.arranged(op.inputs[0], CHW if layer.in_planar else HWC)
    to.new_value(step.result, out)
    to.add(replace(layer, inputs=(x.name,)))


#: Instructions of a strided copy for each element. How many times faster a layer has to be with one: it takes memory.
_COPY, _PAYS = 15.0, 1.2
#: Bytes of an input that may lie twice, even where the layer's result is smaller.
_SMALL = 4096


def _copy_pays(layer: QConv) -> bool:
    """Whether a layer that reads the planes of the net's input is better off with a copy of it: with many channels and
    narrow kernels planes make many short runs, each padded to four."""
    if layer.in_shape[0] == 1 or prod(layer.in_shape) > max(prod(layer.out_shape), _SMALL):
        return False
    copy = _COPY * prod(layer.in_shape)
    return instructions(layer) > _PAYS * (instructions(replace(layer, in_planar=False)) + copy)


def _ungrouped(weight: Array, groups: int, channels: int) -> Array:
    """(OC, IC, KH, KW) of a grouped convolution, with zeros where a group does not look."""
    if groups == 1:
        return weight
    out, inside = weight.shape[:2]
    full = np.zeros((out, channels, *weight.shape[2:]), weight.dtype)
    per = out // groups
    for g in range(groups):
        full[g * per : (g + 1) * per, g * inside : (g + 1) * inside] = weight[g * per : (g + 1) * per]
    return full


def _depthwise(to: Lowering, step: Fused, op: Conv) -> None:
    source = to.stored[op.inputs[0]]
    planes = not to.interleaved or (source.name in to.model.inputs and source.is_plain)
    x = to.arranged(op.inputs[0], CHW if planes else HWC)
    q_in, q_out = to.q(op.inputs[0]), to.q(step.result)
    weight, scale, bias = _weights(op, q_in.scale, q_out.scale)
    out_shape = shape3(to.model.types[step.result].shape)
    planar = step.result in to.planar
    out = Stored(step.result, out_shape, out_shape, CHW if planar else HWC)
    to.new_value(step.result, out)
    to.add(
        QDepthwise(
            (x.name,),
            (out.name,),
            op.loc,
            in_shape=shape3(x.shape),
            out_shape=out_shape,
            weight=np.ascontiguousarray(weight[:, 0]),
            multiplier=weight.shape[0] // op.groups,
            bias=bias,
            in_zp=q_in.zero_point,
            requant=_requant(step, q_in, q_out, scale),
            stride=op.stride,
            pads=op.pads,
            dilation=op.dilation,
            in_planar=planes,
            out_planar=planar,
        )
    )


def lower_dense(to: Lowering, step: Fused) -> None:
    """One vector, or one a row: rows are the pixels of a pointwise convolution."""
    op = step.op
    assert isinstance(op, Dense)
    q_in, q_out = to.q(op.inputs[0]), to.q(step.result)
    weight, scale, bias = _weights(op, q_in.scale, q_out.scale)
    requant = _requant(step, q_in, q_out, scale)
    shape = to.model.types[op.inputs[0]].shape
    result = plain(step.result, to.model.types[step.result].shape)
    if len(shape) == 1:
        x = to.stored[op.inputs[0]]
        weight = np.ascontiguousarray(weight[:, x.sequence()])
        to.new_value(step.result, result)
        to.add(QDense((x.name,), (result.name,), op.loc, weight, bias, q_in.zero_point, requant))
        return
    x = to.in_sequence(op.inputs[0])
    rows, k = int(np.prod(shape[:-1])), shape[-1]
    to.new_value(step.result, result)
    to.add(
        QConv(
            (x.name,),
            (result.name,),
            op.loc,
            in_shape=(k, 1, rows),
            out_shape=(len(weight), 1, rows),
            weight=np.ascontiguousarray(weight[:, None, None, :]),
            bias=bias,
            in_zp=q_in.zero_point,
            requant=requant,
            stride=(1, 1),
            pads=(0, 0, 0, 0),
            dilation=(1, 1),
            in_planar=False,
            out_planar=False,
        )
    )
