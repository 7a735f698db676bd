"""Handlers of what makes images larger or smaller: Resize, Upsample, DepthToSpace, SpaceToDepth, ConvTranspose."""

from __future__ import annotations

from math import ceil, floor, prod

import numpy as np

from mcugen.core.types import Array
from mcugen.frontends.onnx.call import Call
from mcugen.frontends.onnx.ops_linear import give_window, quantized_bias, quantized_weights, read_only
from mcugen.frontends.onnx.ops_move import picked
from mcugen.frontends.onnx.shapes import Shape
from mcugen.frontends.onnx.values import Activated, as_float32
from mcugen.nn.source import Conv, Dense, DepthToSpace, Reshape, Slice, Transpose, no_bias

_IN_THE_APPLICATION = "resize by whole numbers with mode nearest, or with mode linear"


def resize(c: Call) -> None:
    """nearest: each element of the result is one of x. linear: a product along each axis."""
    x = c.x(0)
    sizes, scales = _targets(c, x)
    mode = c.get_str("mode", "nearest")
    if mode not in ("nearest", "linear"):
        c.refuse(f"resizes with mode {mode}", _IN_THE_APPLICATION)
    if c.get_int("antialias", 0) and mode == "linear" and any(s < 1 for s in scales):
        c.refuse("resizes with antialias", "leave antialias at 0")
    if c.get_str("keep_aspect_ratio_policy", "stretch") != "stretch":
        c.refuse("keeps an aspect ratio", "give the sizes of the result")
    for axis, (n, scale) in enumerate(zip(sizes, scales, strict=True)):
        if n == x.shape[axis] and scale == 1.0:
            continue
        at = _coordinates(c, x.shape[axis], n, scale)
        if mode == "nearest":
            x = picked(c, x, axis, _nearest(c, at, x.shape[axis]))
        else:
            x = _weighted(c, x, axis, _linear(at, x.shape[axis]))
    c.give(x)


def _targets(c: Call, x: Activated) -> tuple[Shape, tuple[float, ...]]:
    """The size of each axis of the result, and its scale."""
    rank = len(x.shape)
    given = c.get_ints("axes") if c.opset >= 18 else None
    axes = tuple(range(rank)) if given is None else c.axes(given, rank)
    place = 1 if c.node.op == "Upsample" or c.opset < 11 else 2
    row: Array | tuple[int, ...]
    if c.node.op == "Upsample" and c.opset < 9:
        row = np.array(c.attribute("scales") or (), np.float64)
    elif c.has(3) and place == 2:
        row = c.integers(3, "the sizes")
        if len(row) != len(axes) or min(row, default=1) < 1:
            c.broken(f"sizes {list(row)} for {len(axes)} axes")
        to = dict(zip(axes, row, strict=True))
        sizes = tuple(to.get(a, n) for a, n in enumerate(x.shape))
        return sizes, tuple(m / n for m, n in zip(sizes, x.shape, strict=True))
    else:
        row = c.weights(place, "the scales").reshape(-1).astype(np.float64)
    if len(row) != len(axes) or not (np.asarray(row) > 0).all():
        c.broken(f"scales {[float(v) for v in row]} for {len(axes)} axes")
    by = dict(zip(axes, (float(v) for v in row), strict=True))
    scales = tuple(by.get(a, 1.0) for a in range(rank))
    return tuple(floor(n * s) for n, s in zip(x.shape, scales, strict=True)), scales


def _coordinates(c: Call, size: int, n: int, scale: float) -> list[float]:
    """Where in x each of ``n`` elements lies, by the formulas of the operator's page."""
    default = "asymmetric" if c.node.op == "Upsample" or c.opset < 11 else "half_pixel"
    how = c.get_str("coordinate_transformation_mode", default)
    i = np.arange(n, dtype=np.float64)
    if how == "asymmetric":
        at = i / scale
    elif how == "half_pixel" or (how == "pytorch_half_pixel" and n > 1):
        at = (i + 0.5) / scale - 0.5
    elif how == "half_pixel_symmetric":
        shift = size / 2 * (1 - n / (scale * size))
        at = shift + (i + 0.5) / scale - 0.5
    elif how == "align_corners" and n > 1:
        at = i * (size - 1) / (n - 1)
    elif how in ("pytorch_half_pixel", "align_corners"):
        at = np.zeros(n)
    elif how == "tf_half_pixel_for_nn":
        at = (i + 0.5) / scale
    else:
        c.refuse(f"resizes with {how}", "use half_pixel, asymmetric or align_corners")
    return [float(v) for v in at]


def _nearest(c: Call, at: list[float], size: int) -> list[int]:
    how = c.get_str("nearest_mode", "floor" if c.node.op == "Upsample" or c.opset < 11 else "round_prefer_floor")
    rounded = {
        "floor": floor,
        "ceil": ceil,
        "round_prefer_floor": lambda v: ceil(v - 0.5),
        "round_prefer_ceil": lambda v: floor(v + 0.5),
    }.get(how)
    if rounded is None:
        c.broken(f"nearest_mode is {how}")
    return [min(max(rounded(v), 0), size - 1) for v in at]


def _linear(at: list[float], size: int) -> Array:
    """(n, size) float64: the weight of each element of x in each of the result."""
    out = np.zeros((len(at), size))
    for k, v in enumerate(at):
        low = floor(v)
        for i, share in ((low, 1.0 - (v - low)), (low + 1, v - low)):
            out[k, min(max(i, 0), size - 1)] += share
    return out


def _weighted(c: Call, x: Activated, axis: int, weight: Array) -> Activated:
    """Sums along ``axis``: a dense layer on it as the last axis."""
    shape = tuple(len(weight) if a == axis else n for a, n in enumerate(x.shape))
    rank = len(x.shape)
    perm = (*(a for a in range(rank) if a != axis), axis)
    back = tuple(perm.index(a) for a in range(rank))
    name = c.program.view(x, x.shape, c.loc)
    name = c.add(Transpose, name, hint="rows", perm=perm)
    fields = {"weight": as_float32(weight, c.where), "bias": no_bias(len(weight))}
    name = c.add(Dense, name, hint="resized", **fields)
    name = c.add(Transpose, name, perm=back)
    return Activated(name, c.program.types[name].shape, shape)


def _image(c: Call, x: Activated) -> tuple[str, Shape]:
    if len(x.shape) != 4 or x.shape[0] != 1:
        c.refuse(f"works on shape {list(x.shape)}", "only (1,C,H,W) is supported")
    return c.program.view(x, x.shape[1:], c.loc), x.shape[1:]


def depth_to_space(c: Call) -> None:
    x, block, mode = c.x(0), c.get_int("blocksize", 1), c.get_str("mode", "DCR")
    name, (channels, height, width) = _image(c, x)
    if block < 1 or channels % (block * block) or mode not in ("DCR", "CRD"):
        c.broken(f"blocks of {block} of {channels} channels, mode {mode}")
    deep = channels // (block * block)
    if mode == "DCR" and deep > 1 and block > 1:  # channels in the order of CRD
        name = c.add(Reshape, name, hint="blocks", shape=(block * block, deep, height, width))
        name = c.add(Transpose, name, hint="ordered", perm=(1, 0, 2, 3))
        name = c.add(Reshape, name, hint="deep", shape=(channels, height, width))
    out = c.add(DepthToSpace, name, block=(block, block))
    c.give_raw(out, (1, deep, height * block, width * block))


def space_to_depth(c: Call) -> None:
    x, block = c.x(0), c.get_int("blocksize", 1)
    name, (channels, height, width) = _image(c, x)
    if block < 1 or height % block or width % block:
        c.broken(f"blocks of {block} of {height} x {width}")
    rows, columns = height // block, width // block
    # Height apart from channels, then pixels of a block to the front: two transposes of at most five axes.
    name = c.add(Reshape, name, hint="blocks", shape=(channels * rows, block, columns, block))
    name = c.add(Transpose, name, hint="ordered", perm=(1, 3, 0, 2))
    shape = (1, channels * block * block, rows, columns)
    c.give_raw(c.add(Reshape, name, shape=shape[1:]), shape)


# Transposed convolution: a convolution that gives a block of pixels for each of its own, as channels.


def conv_transpose(c: Call) -> None:
    """Pixel ``q * stride + r`` of the result is a sum over the pixels near q of x with every stride-th weight: a plain
    convolution for each r in range(stride), all of them side by side as channels, then DepthToSpace."""
    x, weight = c.x(0), c.weights(1, "the weights")
    rank = len(x.shape) - 2
    if rank not in (1, 2) or x.shape[0] != 1:
        c.refuse(f"works on shape {list(x.shape)}", "only (1,C,L) and (1,C,H,W) are supported")
    if weight.ndim != rank + 2 or weight.shape[0] != x.shape[1]:
        c.broken(f"weights of shape {list(weight.shape)} on an input of shape {list(x.shape)}")
    strides, dilations, begins, sizes = _transposed_window(c, x.shape[2:], weight.shape[2:])
    groups = c.get_int("group", 1)
    if groups < 1 or x.shape[1] % groups:
        c.broken(f"{x.shape[1]} channels in {groups} groups")
    channels = weight.shape[1] * groups
    bias = c.weights(2, "the bias") if c.has(2) else no_bias(channels)
    quantized = quantized_weights(c, 1, 1)
    if c.has(2):
        quantized |= quantized_bias(c, 2, channels)
    if rank == 1:
        strides, dilations, begins, sizes = (1, *strides), (1, *dilations), (0, *begins), (1, *sizes)
    sample = (x.shape[1], *((1, x.shape[2]) if rank == 1 else x.shape[2:]))
    name = c.program.view(x, sample, c.loc)
    geometry = (strides, begins, sizes, sample[1:], groups)
    kernel, pads = _phases(c, _with_holes(weight, dilations), *geometry)
    along = prod(strides)
    if "weight_q" in quantized:
        quantized["weight_q"], _ = _phases(c, _with_holes(quantized["weight_q"], dilations), *geometry)
        quantized["weight_scale"] = np.tile(quantized["weight_scale"], groups)  # of the channels of each group
    repeated = {k: v if k == "weight_q" else v.repeat(along) for k, v in quantized.items()}
    name = c.add(
        Conv,
        name,
        hint="phases",
        weight=as_float32(kernel, c.where),
        bias=as_float32(bias.repeat(along), c.where),
        pads=pads,
        groups=groups,
        **read_only(repeated),
    )
    if along > 1:
        name = c.add(DepthToSpace, name, hint="spread", block=strides)
    shape = (len(kernel) // along, *sizes)
    if c.program.types[name].shape != shape:
        name = c.add(Slice, name, starts=(0, 0, 0), steps=(1, 1, 1), shape=shape)
    give_window(c, x, name)


def _with_holes(weight: Array, dilations: Shape) -> Array:
    """Weights (IC, OC, KH, KW), or (IC, OC, K) as of one row, with the zeros between them that dilations mean."""
    w = weight if weight.ndim == 4 else weight[:, :, None, :]
    dense = np.zeros((*w.shape[:2], *(d * (k - 1) + 1 for k, d in zip(w.shape[2:], dilations, strict=True))), w.dtype)
    dense[:, :, :: dilations[0], :: dilations[1]] = w
    return dense


def _transposed_window(c: Call, spatial: Shape, kernel: Shape) -> tuple[Shape, Shape, Shape, Shape]:
    """strides, dilations, what is cut at the front, and the sizes of the result."""
    rank = len(spatial)
    strides = c.get_ints("strides", (1,) * rank) or ()
    dilations = c.get_ints("dilations", (1,) * rank) or ()
    pads = c.get_ints("pads", (0,) * (2 * rank)) or ()
    extra = c.get_ints("output_padding", (0,) * rank) or ()
    if not len(strides) == len(dilations) == len(extra) == rank == len(pads) // 2:
        c.broken("strides, dilations, pads or output_padding do not fit the kernel")
    if min(*strides, *dilations, *kernel) < 1 or min(*pads, *extra) < 0:
        c.broken("a kernel, stride or dilation below 1, or negative pads")
    reach = [d * (k - 1) + 1 for k, d in zip(kernel, dilations, strict=True)]
    whole = [s * (n - 1) + e + r for n, s, e, r in zip(spatial, strides, extra, reach, strict=True)]
    auto, wanted = c.get_str("auto_pad", "NOTSET"), c.get_ints("output_shape")
    if auto == "VALID":
        pads = (0,) * (2 * rank)
    if auto.startswith("SAME") and wanted is None:
        wanted = tuple(n * s for n, s in zip(spatial, strides, strict=True))
    if wanted is not None:
        wanted = wanted[-rank:]
        total = [max(n - m, 0) for n, m in zip(whole, wanted, strict=True)]
        begins = tuple(t // 2 if auto == "SAME_UPPER" else t - t // 2 for t in total)
        return strides, dilations, begins, wanted
    sizes = tuple(n - pads[a] - pads[a + rank] for a, n in enumerate(whole))
    if min(sizes) < 1:
        c.broken(f"a result of size {list(sizes)}")
    return strides, dilations, pads[:rank], sizes


def _phases(
    c: Call, weight: Array, strides: Shape, begins: Shape, sizes: Shape, spatial: Shape, groups: int
) -> tuple[Array, tuple[int, int, int, int]]:
    """The kernel (OC * SH * SW, IC / groups, MH, MW) of the convolution, and its pads.

    Element ``q * s + r`` of the result is element j = q * s + r + begin before the cut; x[q - m] has the weight
    r + begin + m * s in it, for every m that gives one.
    """
    taps, pads = [], []
    for axis in (0, 1):
        k, s, begin = weight.shape[2 + axis], strides[axis], begins[axis]
        first, last = -((s - 1 + begin) // s), (k - 1 - begin) // s
        blocks = -(-sizes[axis] // s)
        before, after = last, blocks - spatial[axis] - first
        if before < 0 or after < 0:
            c.refuse("its pads cut whole pixels of the input", "use pads below the kernel, and Slice")
        at = np.arange(s)[:, None] + begin + s * np.arange(last, first - 1, -1)  # (S, M): which weight
        taps.append(np.where((at >= 0) & (at < k), at, k))
        pads.append((before, after))
    padded = np.pad(weight, ((0, 0), (0, 0), (0, 1), (0, 1)))  # weights that are not there are zeros
    ic, oc = weight.shape[:2]
    rows, columns = taps
    picked_weights = padded[:, :, rows[:, None, :, None], columns[None, :, None, :]]  # (IC, OC/g, SH, SW, MH, MW)
    by_group = picked_weights.reshape(groups, ic // groups, oc, *picked_weights.shape[2:])
    kernel = by_group.transpose(0, 2, 3, 4, 1, 5, 6).reshape(-1, ic // groups, rows.shape[1], columns.shape[1])
    return kernel, (pads[0][0], pads[1][0], pads[0][1], pads[1][1])
