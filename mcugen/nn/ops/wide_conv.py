"""Convolutions and pools of wide elements: geometry that int16 and float32 ops share with one C struct."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mcugen.core.op import Cost
from mcugen.core.types import Array
from mcugen.nn.ops.kernel_call import Fields
from mcugen.nn.ops.window import padded_windows, physical, window_problem

Shape3 = tuple[int, int, int]

_UNSIGNED = ("in_channel", "in_row", "in_col", "out_channel", "out_row", "out_col", "groups", "group_in", "group_out")
_SIZES = ("in_h", "in_w", "out_h", "out_w", "kernel_h", "kernel_w", "stride_h", "stride_w", "dilation_h", "dilation_w")
_SIGNED = (*_SIZES, "pad_top", "pad_left")
#: mcg_wide_conv_t
WIDE_FIELDS: Fields = (*((n, "<u4") for n in _UNSIGNED), *((n, "<i4") for n in _SIGNED))


def strides_of(shape: Shape3, planar: bool) -> tuple[int, int, int]:
    """Elements from one channel, row, column of (C, H, W) to the next, as it lies in memory."""
    c, h, w = shape
    return (h * w, w, 1) if planar else (1, w * c, c)


class WideConv:
    """The geometry of a convolution with ``weight`` (OC, KH, KW, C / groups)."""

    __slots__ = ()

    if TYPE_CHECKING:  # declared as fields by the ops
        in_shape: Shape3
        out_shape: Shape3
        weight: Array
        bias: Array
        stride: tuple[int, int]
        pads: tuple[int, int, int, int]
        dilation: tuple[int, int]
        in_planar: bool
        out_planar: bool
        groups: int

    @property
    def in_physical(self) -> tuple[int, ...]:
        """The shape of the input in memory."""
        return physical(self.in_shape, self.in_planar)

    @property
    def out_physical(self) -> tuple[int, ...]:
        """The shape of the output in memory."""
        return physical(self.out_shape, self.out_planar)

    def geometry_problem(self) -> str:
        """Why shapes, weights and windows do not fit together; empty if they do."""
        channels, out = self.in_shape[0], self.out_shape[0]
        if self.groups < 1 or channels % self.groups or out % self.groups or self.weight.ndim != 4:
            return f"{channels} to {out} channels in {self.groups} groups, weights {self.weight.shape}"
        if self.weight.shape[0] != out or self.weight.shape[3] * self.groups != channels:
            return f"weights {self.weight.shape} for {channels} to {out} channels in {self.groups} groups"
        window = (self.in_shape, self.out_shape, self.weight.shape[1:3])
        return window_problem(*window, self.stride, self.pads, self.dilation)

    def image(self, x: Array) -> Array:
        """(N, ...) as in memory to (N, C, H, W)."""
        y = x.reshape(len(x), *self.in_physical)
        return y if self.in_planar else y.transpose(0, 3, 1, 2)

    def layout(self, y: Array) -> Array:
        """(N, OC, OH, OW) to the shape in memory."""
        return np.ascontiguousarray(y if self.out_planar else y.transpose(0, 2, 3, 1))

    def taps(self, x: Array) -> list[tuple[int, int, Array]]:
        """Kernel row, kernel column and the view (N, C, OH, OW) that they meet; padding is 0."""
        return padded_windows(x, self.weight.shape[1:3], self)

    def of_group(self, view: Array, channel: int) -> Array:
        """(N, C, OH, OW) to (N, OC, OH, OW): for each output channel the input ``channel`` of its group."""
        inside, out = self.weight.shape[3], self.out_shape[0]
        group = np.arange(out) // (out // self.groups)
        return view[:, group * inside + channel]

    def conv_values(self) -> dict[str, int]:
        """The fields of mcg_wide_conv_t."""
        (c, h, w), (out, oh, ow) = self.in_shape, self.out_shape
        strides = (*strides_of(self.in_shape, self.in_planar), *strides_of(self.out_shape, self.out_planar))
        unsigned = (*strides, self.groups, c // self.groups, out // self.groups)
        signed = (h, w, oh, ow, *self.weight.shape[1:3], *self.stride, *self.dilation, *self.pads[:2])
        return dict(zip((*_UNSIGNED, *_SIGNED), (*unsigned, *signed), strict=True))

    def conv_cost(self) -> Cost:
        """Multiply-accumulates of one inference."""
        macs = int(self.weight.size) * self.out_shape[1] * self.out_shape[2]
        return Cost(float(macs), macs, float(macs), macs)
