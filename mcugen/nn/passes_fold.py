"""Rules that put constants into the weights of a neighbour: Affine and Pad into Conv, Dense and Pool.

All sums and products in float64, rounded once to float32. Weights that came quantized keep their integers: an Affine
that would change their values stays an op of its own.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from mcugen.core.op import Op
from mcugen.core.types import Array, frozen_array
from mcugen.nn.passes_edit import Editor, joined
from mcugen.nn.source import (
    Activation,
    Affine,
    Conv,
    Dense,
    FakeQuant,
    Pad,
    Pool,
    Reshape,
    ShapeError,
    Slice,
)


def _round(a: Array) -> Array | None:
    """Read-only float32, or None where that overflows."""
    with np.errstate(over="ignore"):
        out = a.astype(np.float32)
    return frozen_array(out) if np.isfinite(out).all() else None


def fold_affine_pair(e: Editor, place: int, op: Op) -> bool:
    """Affine of Affine, along one axis or the whole tensor."""
    found = e.writer(op.inputs[0])
    if not isinstance(op, Affine) or found is None or not isinstance(found[1], Affine):
        return False
    first = found[1]
    if not e.read_once(op.inputs[0]) or (first.axis != op.axis and not first.per_tensor and not op.per_tensor):
        return False
    s1, o1, s2, o2 = (a.astype(np.float64) for a in (first.scale, first.offset, op.scale, op.offset))
    scale, offset = _round(s1 * s2), _round(o1 * s2 + o2)
    if scale is None or offset is None:
        return False
    axis = first.axis if op.per_tensor else op.axis
    loc = joined(first.loc, op.loc)
    e.put(place, replace(op, inputs=first.inputs, loc=loc, scale=scale, offset=offset, axis=axis))
    return True


def _channels(op: Affine, count: int) -> tuple[Array, Array]:
    """scale and offset, float64 (count,)."""
    scale, offset = (np.broadcast_to(a.astype(np.float64), (count,)) for a in (op.scale, op.offset))
    return scale, offset


def fold_affine_after(e: Editor, place: int, op: Op) -> bool:
    """Affine of a layer along its output channels: into weights and bias."""
    found = e.writer(op.inputs[0])
    if not isinstance(op, Affine) or found is None or not e.read_once(op.inputs[0]):
        return False
    where, layer = found
    if not isinstance(layer, Conv | Dense):
        return False
    channel_axis = 0 if isinstance(layer, Conv) else len(e.types[layer.outputs[0]].shape) - 1
    if not op.per_tensor and op.axis != channel_axis:
        return False
    scale, offset = _channels(op, layer.weight.shape[0])
    only_offset = bool((scale == 1).all())
    if layer.weight_q is not None and not only_offset:
        return False
    along = scale.reshape(-1, *(1,) * (layer.weight.ndim - 1))
    weight = layer.weight if only_offset else _round(layer.weight.astype(np.float64) * along)
    bias = _round(layer.bias.astype(np.float64) * scale + offset)
    if weight is None or bias is None:
        return False
    fields: dict[str, Any] = {"weight": weight, "bias": bias, "bias_q": None, "bias_scale": None}
    e.remove(place)
    e.put(where, replace(layer, outputs=op.outputs, loc=joined(layer.loc, op.loc), **fields))
    return True


def fold_affine_before(e: Editor, place: int, op: Op) -> bool:
    """A layer of an Affine along its input channels: into weights and bias, unless zeros are padded to an offset."""
    found = e.writer(op.inputs[0]) if isinstance(op, Conv | Dense) else None
    if not isinstance(op, Conv | Dense) or found is None or not e.read_once(op.inputs[0]):
        return False
    affine = found[1]
    if not isinstance(affine, Affine) or op.weight_q is not None:
        return False
    shape = e.types[op.inputs[0]].shape
    if not affine.per_tensor and affine.axis != (0 if isinstance(op, Conv) else len(shape) - 1):
        return False
    if isinstance(op, Conv):
        if any(op.pads) and affine.offset.any():
            return False
        scale, offset = _of_groups(affine, op)
    else:
        scale, offset = (a[None, :] for a in _channels(affine, shape[-1]))
    old = op.weight.astype(np.float64)
    weight = _round(old * scale)
    bias = _round(op.bias.astype(np.float64) + (old * offset).reshape(len(old), -1).sum(axis=1))
    if weight is None or bias is None:
        return False
    fields: dict[str, Any] = {"weight": weight, "bias": bias, "bias_q": None, "bias_scale": None}
    e.put(place, replace(op, inputs=affine.inputs, loc=joined(affine.loc, op.loc), **fields))
    return True


def fold_affine_before_flat(e: Editor, place: int, op: Op) -> bool:
    """A dense layer of a flattened Affine along any axis: into weights and bias, element by element."""
    flat = e.writer(op.inputs[0]) if isinstance(op, Dense) else None
    if not isinstance(op, Dense) or op.weight_q is not None or flat is None or not isinstance(flat[1], Reshape):
        return False
    found = e.writer(flat[1].inputs[0])
    if found is None or not isinstance(found[1], Affine) or len(flat[1].shape) != 1:
        return False
    affine = found[1]
    if not e.read_once(op.inputs[0]) or not e.read_once(flat[1].inputs[0]):
        return False
    shape = e.types[affine.outputs[0]].shape
    along = [1 if affine.per_tensor or a != affine.axis else n for a, n in enumerate(shape)]
    every = (
        np.broadcast_to(a.astype(np.float64).reshape(along), shape).reshape(-1) for a in (affine.scale, affine.offset)
    )
    scale, offset = every
    old = op.weight.astype(np.float64)
    weight, bias = _round(old * scale), _round(op.bias.astype(np.float64) + old @ offset)
    if weight is None or bias is None:
        return False
    e.put(flat[0], replace(flat[1], inputs=affine.inputs))
    e.put(place, replace(op, loc=joined(affine.loc, op.loc), weight=weight, bias=bias, bias_q=None, bias_scale=None))
    return True


def fold_slice_conv(e: Editor, place: int, op: Op) -> bool:
    """The middle of what a convolution gives, ops on single elements in between: less padding (causal convolutions).

    Rows and columns that are cut off at the ends must all have come from padding.
    """
    if not isinstance(op, Slice) or any(step != 1 for step in op.steps):
        return False
    values, value = [op.inputs[0]], op.inputs[0]
    found = e.writer(value)
    while found is not None and _is_elementwise(found[1]) and e.read_once(value):
        value = found[1].inputs[0]
        values.append(value)
        found = e.writer(value)
    conv = None if found is None else found[1]
    if found is None or not isinstance(conv, Conv) or not e.read_once(value):
        return False
    pads = _pads_without(conv, e.types[conv.inputs[0]].shape, op)
    if pads is None:
        return False
    e.put(found[0], replace(conv, loc=joined(conv.loc, op.loc), pads=pads))
    for v in values:
        e.retype(v, op.shape)
    return e.bypass(place, op) or _as_reshape(e, place, op)


def _as_reshape(e: Editor, place: int, op: Slice) -> bool:
    """What cuts nothing any more, where its name must stay."""
    e.put(place, Reshape(op.inputs, op.outputs, op.loc, op.shape))
    return True


def _is_elementwise(op: Op) -> bool:
    return isinstance(op, Activation | FakeQuant) or (isinstance(op, Affine) and op.per_tensor)


def _pads_without(conv: Conv, x: tuple[int, ...], cut: Slice) -> tuple[int, int, int, int] | None:
    """The pads that give only what ``cut`` leaves; None if there are none."""
    if cut.starts[0] != 0 or cut.shape[0] != len(conv.weight):
        return None
    both = []
    for axis in (0, 1):
        stride, n = conv.stride[axis], cut.shape[axis + 1]
        reach = conv.dilation[axis] * (conv.weight.shape[2 + axis] - 1) + 1
        before = conv.pads[axis] - cut.starts[axis + 1] * stride
        after = max((n - 1) * stride + reach - x[axis + 1] - before, 0)
        room = x[axis + 1] + before + after - reach
        if before < 0 or after > conv.pads[axis + 2] or room < 0 or room // stride + 1 != n:
            return None
        both.append((before, after))
    return both[0][0], both[1][0], both[0][1], both[1][1]


def _of_groups(affine: Affine, op: Conv) -> tuple[Array, Array]:
    """scale and offset of the input channel that each weight (OC, IC / groups, 1, 1) reads."""
    oc, ic = op.weight.shape[:2]
    both = []
    for a in _channels(affine, ic * op.groups):
        both.append(np.repeat(a.reshape(op.groups, ic), oc // op.groups, axis=0)[:, :, None, None])
    return both[0], both[1]


def _pads(e: Editor, op: Op) -> tuple[Pad, tuple[int, int, int, int]] | None:
    """The Pad before ``op``, if it pads planes only and nothing else reads its result: (top, left, bottom, right)."""
    found = e.writer(op.inputs[0])
    if found is None or not isinstance(found[1], Pad) or not e.read_once(op.inputs[0]):
        return None
    pad = found[1]
    if len(pad.pads) != 3 or any(pad.pads[0]):
        return None
    return pad, (pad.pads[1][0], pad.pads[2][0], pad.pads[1][1], pad.pads[2][1])


def _sum(a: tuple[int, int, int, int], b: tuple[int, int, int, int]) -> tuple[int, int, int, int]:
    return a[0] + b[0], a[1] + b[1], a[2] + b[2], a[3] + b[3]


def fold_pad_conv(e: Editor, place: int, op: Op) -> bool:
    """Zeros round the input of a convolution: its own padding."""
    found = _pads(e, op) if isinstance(op, Conv) else None
    if not isinstance(op, Conv) or found is None or found[0].value != 0:
        return False
    pad, pads = found
    e.put(place, replace(op, inputs=pad.inputs, loc=joined(pad.loc, op.loc), pads=_sum(op.pads, pads)))
    return True


def quantize_before_pad(e: Editor, place: int, op: Op) -> bool:
    """FakeQuant of padding with zeros: first quantized, then padded. Zero is exact in every scale."""
    found = e.writer(op.inputs[0]) if isinstance(op, FakeQuant) else None
    if found is None or not isinstance(found[1], Pad) or found[1].value != 0 or not e.read_once(op.inputs[0]):
        return False
    where, pad = found
    between = pad.outputs[0]
    e.put(where, replace(op, inputs=pad.inputs, outputs=(between,)))
    e.put(place, replace(pad, inputs=(between,), outputs=op.outputs))
    e.retype(between, e.types[pad.inputs[0]].shape)
    return True


def fold_pad_pool(e: Editor, place: int, op: Op) -> bool:
    """Padding round the input of a pool, where the pool's own padding means the same."""
    found = _pads(e, op) if isinstance(op, Pool) else None
    if not isinstance(op, Pool) or found is None:
        return False
    pad, pads = found
    if op.kind == "max":
        # The pool's padding is minus infinity: zeros do the same where no element is below zero.
        zeros = pad.value == 0 and _never_negative(e, pad.inputs[0])
        if not zeros and pad.value > -3.4e38:
            return False
        new = replace(op, pads=_sum(op.pads, pads))
    else:
        counted = op.count_include_pad or not any(op.pads)
        if pad.value != 0 or not counted or op.ceil_mode:
            return False
        new = replace(op, pads=_sum(op.pads, pads), count_include_pad=True)
    new = replace(new, inputs=pad.inputs, loc=joined(pad.loc, op.loc))
    try:
        if new.result_shapes(e.types[pad.inputs[0]].shape) != (e.types[op.outputs[0]].shape,):
            return False
    except ShapeError:  # a window would hold padding only
        return False
    e.put(place, new)
    return True


def _never_negative(e: Editor, value: str) -> bool:
    found = e.writer(value)
    if found is None or not isinstance(found[1], Activation):
        return False
    a = found[1]
    return a.kind in ("relu", "sigmoid", "hard_sigmoid") or (a.kind == "clip" and a.low >= 0)
