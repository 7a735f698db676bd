"""Windows of pools: what each one covers and counts. Unlike convolutions, a window may reach beyond the padding."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from mcugen.core.op import Cost
from mcugen.core.types import Array
from mcugen.nn.ops.kernel_call import Fields

Shape3 = tuple[int, int, int]

_UNSIGNED = ("in_channel", "in_row", "in_col", "out_channel", "out_row", "out_col", "channels")
_SIZES = ("in_h", "in_w", "out_h", "out_w", "kernel_h", "kernel_w", "stride_h", "stride_w", "dilation_h", "dilation_w")
_SIGNED = (*_SIZES, "pad_top", "pad_left", "count_top", "count_left", "count_bottom", "count_right")
#: mcg_pool_t
POOL_FIELDS: Fields = (
    *((n, "<u4") for n in _UNSIGNED),
    *((n, "<i4") for n in _SIGNED),
    ("counts", "<u4"),
    *((n, "<i4") for n in ("zp_in", "zp", "low", "high")),
)


@dataclass(frozen=True, slots=True)
class Windows:
    """Where the windows of a pool stand, and what their padding counts. ``pads``: top, left, bottom, right."""

    in_shape: Shape3
    out_shape: Shape3
    kernel_size: tuple[int, int]
    stride: tuple[int, int] = (1, 1)
    pads: tuple[int, int, int, int] = (0, 0, 0, 0)
    dilation: tuple[int, int] = (1, 1)
    count_include_pad: bool = False


class PoolWindow:
    """The geometry of a pool."""

    __slots__ = ()

    if TYPE_CHECKING:  # declared as fields by the ops, in the order of their own
        kind: str
        in_shape: Shape3
        out_shape: Shape3
        kernel_size: tuple[int, int]
        stride: tuple[int, int]
        pads: tuple[int, int, int, int]
        dilation: tuple[int, int]
        count_include_pad: bool
        planar: bool

    def window_problem(self) -> str:
        """Why the windows do not fit the shapes; empty if they do."""
        sizes = (*self.in_shape, *self.out_shape, *self.kernel_size, *self.stride, *self.dilation)
        if self.kind not in ("max", "avg") or min(sizes) < 1 or min(self.pads) < 0:
            return "sizes, strides and dilations must be 1 or more, pads 0 or more"
        if self.in_shape[0] != self.out_shape[0]:
            return f"{self.in_shape[0]} channels to {self.out_shape[0]}"
        counts_pads = self.kind == "avg" and self.count_include_pad
        return "" if counts_pads or self.elements(False).min() > 0 else "a window that holds padding only"

    def elements(self, include_pad: bool | None = None) -> Array:
        """(OH, OW) int64: how many elements each window counts."""
        include = self.count_include_pad if include_pad is None else include_pad
        return self.elements_of(
            self.in_shape, self.out_shape, self.kernel_size, self.stride, self.pads, self.dilation, include
        )

    @staticmethod
    def elements_of(
        in_shape: Shape3,
        out_shape: Shape3,
        kernel: tuple[int, int],
        stride: tuple[int, int],
        pads: tuple[int, int, int, int],
        dilation: tuple[int, int],
        include_pad: bool,
    ) -> Array:
        """(OH, OW) int64: how many elements each window counts."""
        per_axis = []
        for i in (0, 1):
            first = np.arange(out_shape[1 + i]) * stride[i] - pads[i]
            taps = first[:, None] + np.arange(kernel[i]) * dilation[i]
            low, high = (-pads[i], in_shape[1 + i] + pads[2 + i]) if include_pad else (0, in_shape[1 + i])
            per_axis.append(((taps >= low) & (taps < high)).sum(axis=1))
        return np.asarray(per_axis[0][:, None] * per_axis[1][None, :], np.int64)

    def image(self, x: Array) -> Array:
        """(N, *physical) to (N, C, H, W)."""
        c, h, w = self.in_shape
        if self.planar:
            return x.reshape(-1, c, h, w)
        return x.reshape(-1, h, w, c).transpose(0, 3, 1, 2)

    def layout(self, y: Array) -> Array:
        """(N, C, OH, OW) to (N, *physical)."""
        return np.ascontiguousarray(y if self.planar else y.transpose(0, 2, 3, 1))

    def taps(self, x: Array, outside: float) -> list[Array]:
        """For each kernel row and column the view (N, C, OH, OW) of x (N, C, H, W); ``outside`` beyond it."""
        spans = [
            (o - 1) * s + (k - 1) * d + 1
            for o, s, k, d in zip(self.out_shape[1:], self.stride, self.kernel_size, self.dilation, strict=True)
        ]
        far = [max(span - p - n, 0) for span, p, n in zip(spans, self.pads[:2], self.in_shape[1:], strict=True)]
        sides = ((0, 0), (0, 0), (self.pads[0], far[0]), (self.pads[1], far[1]))
        wide = np.pad(x, sides, constant_values=outside)
        views = []
        for i in range(self.kernel_size[0]):
            for j in range(self.kernel_size[1]):
                y, z = i * self.dilation[0], j * self.dilation[1]
                rows = slice(y, y + (self.out_shape[1] - 1) * self.stride[0] + 1, self.stride[0])
                cols = slice(z, z + (self.out_shape[2] - 1) * self.stride[1] + 1, self.stride[1])
                views.append(wide[:, :, rows, cols])
        return views

    def maximum(self, x: Array, outside: float) -> Array:
        """(N, C, H, W) to the largest of each window; ``outside`` must be no larger than any element."""
        views = self.taps(x, outside)
        out = views[0].copy()
        for view in views[1:]:
            np.maximum(out, view, out=out)
        return out

    def sums(self, x: Array) -> Array:
        """(N, C, H, W) to the sum of each window, row by row, in the dtype of x."""
        out = np.zeros((len(x), *self.out_shape), x.dtype)
        for view in self.taps(x, 0):
            out += view
        return out

    def window_cost(self) -> Cost:
        """Additions or comparisons of one inference."""
        c, oh, ow = self.out_shape
        steps = c * oh * ow * self.kernel_size[0] * self.kernel_size[1]
        return Cost(4.0 * oh * ow, steps, float(steps), steps)


def pool_values(op: PoolWindow, counts: int, in_zp: int, numbers: tuple[int, int, int]) -> dict[str, int]:
    """The fields of mcg_pool_t; ``numbers``: zero point and clamps of the result."""
    (c, h, w), (_, oh, ow) = op.in_shape, op.out_shape
    top, left, bottom, right = op.pads if op.count_include_pad else (0, 0, 0, 0)
    strides = (h * w, w, 1, oh * ow, ow, 1) if op.planar else (1, w * c, c, 1, ow * c, c)
    signed = (h, w, oh, ow, *op.kernel_size, *op.stride, *op.dilation, *op.pads[:2])
    values = dict(zip((*_UNSIGNED, *_SIGNED), (*strides, c, *signed, -top, -left, h + bottom, w + right), strict=True))
    zp, low, high = numbers
    return {**values, "counts": counts, "zp_in": in_zp, "zp": zp, "low": low, "high": high}
