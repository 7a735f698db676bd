"""Sliding windows: what convolutions and pools share. Shapes are (C, H, W) whatever the layout in memory."""

from __future__ import annotations

from math import prod
from typing import Protocol

import numpy as np

from mcugen.core.types import Array


class Window(Protocol):
    """An op whose window slides over rows and columns."""

    @property
    def out_shape(self) -> tuple[int, int, int]: ...
    @property
    def stride(self) -> tuple[int, int]: ...
    @property
    def pads(self) -> tuple[int, int, int, int]: ...
    @property
    def dilation(self) -> tuple[int, int]: ...


def physical(shape: tuple[int, int, int], planar: bool) -> tuple[int, ...]:
    """(C, H, W) as it lies in memory."""
    return shape if planar else (shape[1], shape[2], shape[0])


def same_memory(found: tuple[int, ...], expected: tuple[int, ...]) -> bool:
    """Whether a value of shape ``found`` may be read as ``expected``.

    Axes of length 1 do not matter, and a Reshape may have split or joined axes; but the same axes in another order are
    another memory: planes for interleaved channels.
    """
    a, b = [n for n in found if n != 1], [n for n in expected if n != 1]
    return prod(a) == prod(b) and (a == b or len(a) != len(b))


def window_problem(
    in_shape: tuple[int, int, int],
    out_shape: tuple[int, int, int],
    window: tuple[int, ...],
    stride: tuple[int, int],
    pads: tuple[int, int, int, int],
    dilation: tuple[int, int],
) -> str:
    """Why a sliding window does not give ``out_shape``; empty if it does."""
    if min(*in_shape, *out_shape, *window, *stride, *dilation) < 1 or min(pads) < 0:
        return "sizes, strides and dilations must be 1 or more, pads 0 or more"
    for i in (0, 1):
        room = in_shape[1 + i] + pads[i] + pads[2 + i] - (window[i] - 1) * dilation[i] - 1
        if room < 0 or room // stride[i] + 1 != out_shape[1 + i]:
            return f"axis {i}: {in_shape} and {out_shape} do not fit window {window}, stride {stride}, pads {pads}"
    return ""


def padded_windows(x: Array, window: tuple[int, ...], op: Window) -> list[tuple[int, int, Array]]:
    """For each kernel row and column the view (N, C, OH, OW) of ``x`` (N, C, H, W) that it meets; padding is 0."""
    top, left, bottom, right = op.pads
    wide = np.pad(x, ((0, 0), (0, 0), (top, bottom), (left, right)))
    rows, cols = ((o - 1) * s + 1 for o, s in zip(op.out_shape[1:], op.stride, strict=True))
    views = []
    for kh in range(window[0]):
        for kw in range(window[1]):
            y, z = kh * op.dilation[0], kw * op.dilation[1]
            views.append((kh, kw, wide[:, :, y : y + rows : op.stride[0], z : z + cols : op.stride[1]]))
    return views
