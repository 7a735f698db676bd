"""Conv and Dense: products with constant weights. The last ops here that know weights; recurrent ones are apart."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mcugen.core.types import Array, frozen_array
from mcugen.nn.source.base import NetOp, Shape, require


@dataclass(frozen=True, slots=True, eq=False)
class Conv(NetOp):
    """x (C, H, W) -> (OC, OH, OW): cross-correlation with zero padding.

    ``weight`` float32 (OC, C / groups, KH, KW), ``bias`` float32 (OC,), ``stride`` and ``dilation`` (rows, columns),
    ``pads`` (top, left, bottom, right), none negative. A 1-D convolution has KH = 1 on (C, 1, L).

    A net that comes quantized keeps what its file says: ``weight_q`` int8 (shape of ``weight``) with ``weight_scale``
    float32 (OC,), ``weight = weight_q * weight_scale``; ``bias_q`` int32 (OC,) with ``bias_scale`` float32 (OC,).
    Each pair is None or complete; the bias may lack where the weights are quantized.
    """

    weight: Array
    bias: Array
    stride: tuple[int, int] = (1, 1)
    dilation: tuple[int, int] = (1, 1)
    pads: tuple[int, int, int, int] = (0, 0, 0, 0)
    groups: int = 1
    weight_q: Array | None = None
    weight_scale: Array | None = None
    bias_q: Array | None = None
    bias_scale: Array | None = None

    def result_shapes(self, *shapes: Shape) -> tuple[Shape, ...]:
        (x,) = shapes
        require(self.weight.ndim == 4 and len(x) == 3, f"a convolution of {x} with weights {self.weight.shape}")
        oc, ic, *kernel = self.weight.shape
        require(self.bias.shape == (oc,), f"bias {self.bias.shape} for {oc} output channels")
        require(self.groups >= 1 and oc % self.groups == 0, f"{oc} output channels in {self.groups} groups")
        require(x[0] == ic * self.groups, f"{x[0]} input channels, the weights are for {ic * self.groups}")
        require(min(self.pads) >= 0 and min(self.stride) >= 1 and min(self.dilation) >= 1, "negative pads or strides")
        _check_quantized(self.weight, self.weight_q, self.weight_scale, self.bias_q, self.bias_scale)
        spatial = []
        for axis, (size, k) in enumerate(zip(x[1:], kernel, strict=True)):
            room = size + self.pads[axis] + self.pads[axis + 2] - self.dilation[axis] * (k - 1) - 1
            require(room >= 0, f"the kernel is larger than the padded input {x}")
            spatial.append(room // self.stride[axis] + 1)
        return ((oc, *spatial),)

    def eval(self, *args: Array) -> tuple[Array, ...]:
        """x (N, C, H, W) -> (N, OC, OH, OW)."""
        x = np.asarray(args[0], np.float64)
        n, c = x.shape[:2]
        oc, ic, kh, kw = self.weight.shape
        ((_, oh, ow),) = self.result_shapes(x.shape[1:])
        top, left, bottom, right = self.pads
        x = np.pad(x, ((0, 0), (0, 0), (top, bottom), (left, right)))
        weight = self.weight.astype(np.float64).reshape(self.groups, oc // self.groups, ic, kh, kw)
        out = np.zeros((n, self.groups, oc // self.groups, oh * ow))
        for i, j in np.ndindex(kh, kw):  # one tap after the other: no patch buffer, and plain to read
            row, column = i * self.dilation[0], j * self.dilation[1]
            rows = slice(row, row + self.stride[0] * (oh - 1) + 1, self.stride[0])
            columns = slice(column, column + self.stride[1] * (ow - 1) + 1, self.stride[1])
            tap = x[:, :, rows, columns].reshape(n, self.groups, c // self.groups, oh * ow)
            w = weight[..., i, j]
            out += w * tap if ic == 1 else w @ tap
        y = out.reshape(n, oc, oh, ow) + self.bias.astype(np.float64)[:, None, None]
        return (y.astype(np.float32),)

    @property
    def macs(self) -> int:
        """Multiply-accumulates per output pixel."""
        return self.weight.size


@dataclass(frozen=True, slots=True, eq=False)
class Dense(NetOp):
    """x (..., K) -> (..., N): ``x @ weight.T + bias`` on the last axis.

    ``weight`` float32 (N, K), ``bias`` float32 (N,). The quantized fields are as in Conv, scales (N,).
    """

    weight: Array
    bias: Array
    weight_q: Array | None = None
    weight_scale: Array | None = None
    bias_q: Array | None = None
    bias_scale: Array | None = None

    def result_shapes(self, *shapes: Shape) -> tuple[Shape, ...]:
        (x,) = shapes
        require(self.weight.ndim == 2 and len(x) >= 1, f"a product of {x} with weights {self.weight.shape}")
        n, k = self.weight.shape
        require(x[-1] == k, f"{x[-1]} values, the weights are for {k}")
        require(self.bias.shape == (n,), f"bias {self.bias.shape} for {n} outputs")
        _check_quantized(self.weight, self.weight_q, self.weight_scale, self.bias_q, self.bias_scale)
        return ((*x[:-1], n),)

    def eval(self, *args: Array) -> tuple[Array, ...]:
        """x (batch, ..., K) -> (batch, ..., N)."""
        y = np.asarray(args[0], np.float64) @ self.weight.astype(np.float64).T + self.bias.astype(np.float64)
        return (y.astype(np.float32),)


def _check_quantized(
    weight: Array, weight_q: Array | None, weight_scale: Array | None, bias_q: Array | None, bias_scale: Array | None
) -> None:
    channels = weight.shape[0]
    require((weight_q is None) == (weight_scale is None), "quantized weights without scales, or scales without weights")
    require((bias_q is None) == (bias_scale is None), "a quantized bias without scales, or scales without a bias")
    if weight_q is not None and weight_scale is not None:
        require(weight_q.shape == weight.shape and weight_q.dtype == np.int8, "quantized weights of another shape")
        require(weight_scale.shape == (channels,), f"{weight_scale.shape} weight scales for {channels} channels")
    if bias_q is not None and bias_scale is not None:
        require(bias_q.shape == (channels,) and bias_q.dtype == np.int32, "a quantized bias of another shape")
        require(bias_scale.shape == (channels,), f"{bias_scale.shape} bias scales for {channels} channels")


def no_bias(channels: int) -> Array:
    """A bias of zeros, float32 (channels,)."""
    return frozen_array(np.zeros(channels, np.float32))
