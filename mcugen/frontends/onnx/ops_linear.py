"""Handlers of Conv, Gemm, MatMul and BatchNormalization: what has weights."""

from __future__ import annotations

from typing import Any

import numpy as np

from mcugen.core.types import Array
from mcugen.frontends.onnx.call import Call
from mcugen.frontends.onnx.shapes import Shape, same_pads, sample_shape
from mcugen.frontends.onnx.values import Activated, as_float32
from mcugen.nn.source import Affine, Binary, Conv, Dense, Transpose, no_bias

Quantized = dict[str, Any]  # fields of Conv and Dense


def window(c: Call, x: Activated, kernel: Shape) -> tuple[Shape, dict[str, Any]]:
    """The sample (C, H, W) that a window op works on, and stride, dilation and pads; 1-D nets get H = 1."""
    spatial = x.shape[2:]
    rank = len(spatial)
    if rank not in (1, 2) or x.shape[0] != 1:
        if rank not in (1, 2):
            c.refuse(f"works on {len(x.shape)} axes", "only 1-D and 2-D windows are supported: (N,C,L) and (N,C,H,W)")
        c.refuse(f"works on a batch of {x.shape[0]}", "export the model with batch 1")
    if len(kernel) != rank:
        c.broken(f"a kernel of {len(kernel)} axes on {rank}")
    strides = c.get_ints("strides", (1,) * rank) or ()
    dilations = c.get_ints("dilations", (1,) * rank) or ()
    pads = c.get_ints("pads", (0,) * (2 * rank)) or ()
    if len(strides) != rank or len(dilations) != rank or len(pads) != 2 * rank:
        c.broken("strides, dilations or pads do not fit the kernel")
    if min(*strides, *dilations, *kernel) < 1:
        c.broken("a kernel, stride or dilation below 1")
    auto = c.get_str("auto_pad", "NOTSET")
    if auto in ("SAME_UPPER", "SAME_LOWER"):
        pairs = [
            same_pads(n, k, s, d, auto == "SAME_UPPER")
            for n, k, s, d in zip(spatial, kernel, strides, dilations, strict=True)
        ]
        pads = (*(p[0] for p in pairs), *(p[1] for p in pairs))
    elif auto == "VALID":
        pads = (0,) * (2 * rank)
    elif auto != "NOTSET":
        c.broken(f"auto_pad {auto}")
    if min(pads) < 0:
        c.refuse(f"negative pads {list(pads)}", "cut the input with Slice instead")
    if rank == 1:
        fields = {"stride": (1, *strides), "dilation": (1, *dilations), "pads": (0, pads[0], 0, pads[1])}
        return (x.shape[1], 1, x.shape[2]), fields
    return x.shape[1:], {"stride": strides, "dilation": dilations, "pads": pads}


def give_window(c: Call, x: Activated, name: str) -> None:
    """The result (C, OH, OW) of a window op, in the file's shape."""
    channels, height, width = c.program.types[name].shape
    spatial = (height, width) if len(x.shape) == 4 else (width,)
    c.give_raw(name, (1, channels, *spatial))


def quantized_weights(c: Call, index: int, axis: int) -> Quantized:
    """weight_q (int8) and weight_scale (per channel along ``axis``) of a weight that was dequantized, if they fit."""
    found = c.constant(index, "the weights").quantized
    if found is None:
        return {}
    offset = {"int8": 0, "uint8": 128}.get(found.q.dtype.name)
    if offset is None or (found.zero_point != offset).any() or found.axis not in (None, axis):
        kind = "asymmetric" if offset is not None and found.axis in (None, axis) else f"{found.q.dtype} of another form"
        c.program.notes.append(f"{c.where}: its weights are {kind}; they are quantized anew")
        return {}
    q = (found.q.astype(np.int16) - offset).astype(np.int8)
    return {"weight_q": q, "weight_scale": np.broadcast_to(found.scale.reshape(-1), (found.q.shape[axis],)).copy()}


def quantized_bias(c: Call, index: int, channels: int) -> Quantized:
    """bias_q (int32) and bias_scale of a bias that was dequantized, if they fit."""
    found = c.constant(index, "the bias").quantized
    if found is None or found.q.dtype != np.int32 or found.zero_point.any() or found.q.size != channels:
        return {}
    return {
        "bias_q": found.q.reshape(-1),
        "bias_scale": np.broadcast_to(found.scale.reshape(-1), (channels,)).astype(np.float32),
    }


def read_only(fields: Quantized) -> Quantized:
    """The same arrays, which a source op may hold."""
    for a in fields.values():
        a.flags.writeable = False
    return fields


def conv(c: Call) -> None:
    x = c.x(0)
    weight = c.weights(1, "the weights")
    if weight.ndim != len(x.shape) or weight.ndim < 3:
        c.broken(f"weights of shape {list(weight.shape)} on an input of shape {list(x.shape)}")
    kernel = c.get_ints("kernel_shape", weight.shape[2:])
    if kernel != weight.shape[2:]:
        c.broken(f"kernel_shape {kernel} and weights of shape {list(weight.shape)}")
    sample, fields = window(c, x, weight.shape[2:])
    groups, oc = c.get_int("group", 1), weight.shape[0]
    quantized = quantized_weights(c, 1, 0)
    bias = c.weights(2, "the bias") if c.has(2) else no_bias(oc)
    if c.has(2):
        quantized |= quantized_bias(c, 2, oc)
    if weight.ndim == 3:
        weight = weight[:, :, None, :]
        if "weight_q" in quantized:
            quantized["weight_q"] = quantized["weight_q"][:, :, None, :]
    if groups < 1 or weight.shape[1] * groups != sample[0]:
        c.broken(f"{sample[0]} channels, the weights are for {weight.shape[1]} in each of {groups} groups")
    name = c.program.view(x, sample, c.loc)
    out = c.add(Conv, name, weight=weight, bias=bias, groups=groups, **fields, **read_only(quantized))
    give_window(c, x, out)


def gemm(c: Call) -> None:
    alpha, beta = c.get_float("alpha", 1.0), c.get_float("beta", 1.0)
    x = c.x(0)
    if len(x.shape) != 2:
        c.broken(f"the first operand has {len(x.shape)} axes, not 2")
    weight = c.weights(1, "the weights")
    if weight.ndim != 2:
        c.broken(f"the weights have {weight.ndim} axes, not 2")
    transposed = bool(c.get_int("transB", 0))
    quantized = quantized_weights(c, 1, 0 if transposed else 1)
    if not transposed:
        weight = np.ascontiguousarray(weight.T)
        if quantized:
            quantized["weight_q"] = np.ascontiguousarray(quantized["weight_q"].T)
    if alpha != 1.0:
        weight = as_float32(weight.astype(np.float64) * alpha, c.where)
        quantized = _scaled(quantized, "weight", alpha)
    n = weight.shape[0]
    rows = x.shape[1] if c.get_int("transA", 0) else x.shape[0]
    bias, quantized_bias, added = _gemm_bias(c, (rows, n), beta)
    name = _gemm_rows(c, x)
    fields = {"weight": weight, "bias": bias, **read_only(quantized | quantized_bias)}
    out = c.add(Dense, name, hint="product" if added else "", **fields)
    if added is not None:
        other = c.program.view(added, c.program.types[out].shape, c.loc)
        out = c.add(Binary, out, other, kind="add")
    c.give_raw(out, (rows, n))


def _gemm_rows(c: Call, x: Activated) -> str:
    """The first operand as (K,), or (M, K) for more than one row."""
    if not c.get_int("transA", 0):
        return c.program.view(x, sample_shape(x.shape), c.loc)
    if 1 in x.shape:
        return c.program.view(x, sample_shape(x.shape[::-1]), c.loc)
    return c.add(Transpose, c.program.view(x, x.shape, c.loc), hint="transposed", perm=(1, 0))


def _scaled(quantized: Quantized, what: str, factor: float) -> Quantized:
    """Integers and scales of weights times ``factor``; a negative factor would turn -128 to 128: forget them then."""
    if factor <= 0:
        return {}
    return {k: (v * factor).astype(np.float32) if k == f"{what}_scale" else v for k, v in quantized.items()}


def _gemm_bias(c: Call, shape: Shape, beta: float) -> tuple[Array, Quantized, Activated | None]:
    """The bias (N,), its integers, and what is added apart because it is not constant."""
    n = shape[1]
    if not c.has(2) or beta == 0.0:
        return no_bias(n), {}, None
    if not c.is_constant(2):
        added = c.x(2)
        if beta != 1.0 or np.prod(added.shape) != shape[0] * n:
            c.refuse("the third operand is neither constant nor of the result's shape", "add it with an Add node")
        return no_bias(n), {}, added
    bias = c.weights(2, "the bias")
    if bias.size not in (1, n) or (bias.size == n > 1 and bias.shape[-1] != n):
        c.refuse(f"a bias of shape {list(bias.shape)} for {n} outputs", "use a bias with one value an output")
    quantized = quantized_bias(c, 2, n)
    bias = np.broadcast_to(bias.reshape(-1), (n,))
    if beta != 1.0:
        bias, quantized = bias.astype(np.float64) * beta, _scaled(quantized, "bias", beta)
    return as_float32(bias, c.where), quantized, None


def matmul(c: Call) -> None:
    if c.is_constant(0):
        _matmul_from_left(c)
        return
    if not c.is_constant(1):
        c.refuse("multiplies two activations", "one operand must be constant: attention is not supported")
    x, weight = c.x(0), c.weights(1, "the weights")
    quantized = quantized_weights(c, 1, weight.ndim - 1)
    if weight.ndim > 2 and np.prod(weight.shape[:-2]) == 1:
        weight = weight.reshape(weight.shape[-2:])
        quantized = {k: v.reshape(weight.shape) if k == "weight_q" else v for k, v in quantized.items()}
    if weight.ndim != 2 or not x.shape:
        c.refuse(f"weights of shape {list(weight.shape)}", "only products with a matrix of two axes are supported")
    if x.shape[-1] != weight.shape[0]:
        c.broken(f"{x.shape[-1]} values, the weights are for {weight.shape[0]}")
    if quantized:
        quantized["weight_q"] = np.ascontiguousarray(quantized["weight_q"].T)
    name = c.program.view(x, sample_shape(x.shape), c.loc)
    weight = as_float32(weight.T, c.where)
    out = c.add(Dense, name, weight=weight, bias=no_bias(weight.shape[0]), **read_only(quantized))
    c.give_raw(out, (*x.shape[:-1], weight.shape[0]))


def _matmul_from_left(c: Call) -> None:
    """weight @ x: a dense layer on the columns of x."""
    x, weight = c.x(1), c.weights(0, "the weights")
    if weight.ndim > 2 and np.prod(weight.shape[:-2]) == 1:
        weight = weight.reshape(weight.shape[-2:])
    if weight.ndim != 2 or len(x.shape) < 2:
        what = f"weights of shape {list(weight.shape)} times shape {list(x.shape)}"
        c.refuse(what, "only products with a matrix of two axes are supported")
    if x.shape[-2] != weight.shape[1]:
        c.broken(f"{x.shape[-2]} values, the weights are for {weight.shape[1]}")
    rank = len(x.shape)
    perm = (*range(rank - 2), rank - 1, rank - 2)
    name = c.add(Transpose, c.program.view(x, x.shape, c.loc), hint="columns", perm=perm)
    name = c.add(Dense, name, hint="product", weight=weight, bias=no_bias(weight.shape[0]))
    c.give_raw(c.add(Transpose, name, perm=perm), (*x.shape[:-2], weight.shape[0], x.shape[-1]))


def batch_normalization(c: Call) -> None:
    x = c.x(0)
    if c.get_int("training_mode", 0) or not c.get_int("spatial", 1):
        c.refuse("is in training mode, or not per channel", "call model.eval() before the export")
    if len(x.shape) < 2:
        c.broken("an input without a channel axis")
    names = ("the scale", "the offset", "the mean", "the variance")
    gamma, beta, mean, variance = (c.weights(i + 1, what).astype(np.float64) for i, what in enumerate(names))
    channels = x.shape[1]
    if any(a.shape != (channels,) for a in (gamma, beta, mean, variance)):
        c.broken(f"statistics that do not fit {channels} channels")
    epsilon = c.get_float("epsilon", 1e-5)
    if (variance + epsilon <= 0).any():
        c.broken("a variance that is negative, or zero without an epsilon")
    scale = gamma / np.sqrt(variance + epsilon)
    fields: dict[str, Any] = {"scale": as_float32(scale, c.where), "offset": as_float32(beta - mean * scale, c.where)}
    axis = c.program.located(x, (1,), c.loc)[2][0] if channels != 1 else 0
    c.give_raw(c.add(Affine, x.name, axis=axis, **fields), x.shape)
