"""QConv: int8 convolution over all input channels, requantized to int8."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from mcugen.core.op import Cost, Item, MachineOp, Names, OpText
from mcugen.core.types import Array, TensorType
from mcugen.errors import InternalError
from mcugen.nn.ops.kernel_call import (
    Fields,
    kernel_text,
    operand_problem,
    record,
    shift_of,
    weight_item,
    weight_problem,
)
from mcugen.nn.ops.window import padded_windows, physical, window_problem
from mcugen.nn.packing import Stream, accumulator_range, matmul_stream
from mcugen.nn.requant import Requant, requantize

#: Weights that a data cache keeps while the next pixels are packed. With more, patches take more memory.
_CACHED_WEIGHTS = 8192
_TILE_SCRATCH, _LARGE_TILE_SCRATCH = 768, 4096
#: Pixels of a tile that pay: each tile reads the weights and starts the loop over channels anew.
_TILE_PIXELS = 48
#: MCG_CONV_MOST_THREES
_MOST_THREES = 32

_WORDS = ("in_bytes", "in_plane", "in_row", "in_col", "out_channel", "out_pixel", "groups")
_HALVES = ("in_h", "in_w", "out_h", "out_w", "out_c", "planes", "kernel_h", "col_runs", "cols", "unit", "run_groups")
_STEPS = ("col_step", "stride_h", "stride_w", "dilation_h", "dilation_w", "pad_top", "pad_left", "tile")
_SIGNED = ("in_zp", "out_zp", "low", "high")
#: mcg_conv_t
_FIELDS: Fields = (
    *((n, "<u4") for n in _WORDS),
    *((n, "<u2") for n in (*_HALVES, *_STEPS)),
    *((n, "<i2") for n in _SIGNED),
)


@dataclass(frozen=True, slots=True)
class _Runs:
    """How a patch is read: see mcg_conv_t."""

    planes: int
    col_runs: int
    cols: int
    unit: int
    col_step: int

    #: Runs of three bytes lie side by side, so that no group has a hole.
    threes: int = 0

    @property
    def groups(self) -> int:
        """Groups of four in a run; 0 where runs are not padded."""
        return 0 if self.threes else -(-self.cols * self.unit // 4)


@dataclass(frozen=True, slots=True, eq=False)
class QConv(MachineOp):
    """int8 (H, W, C) or, if ``in_planar``, (C, H, W) -> int8 (OH, OW, OC) or, if ``out_planar``, (OC, OH, OW).

    ``in_shape`` and ``out_shape`` are (C, H, W) whatever the layout. ``weight``: int8 (OC, KH, KW, C). ``bias``: int32
    (OC,), with scale s_in * s_w and without the input zero point. ``pads``: top, left, bottom, right. The accumulator
    of every output must fit int32 for every input (``accumulator_range``).
    """

    kernel: ClassVar[tuple[str, str]] = ("mcg_conv_s8", "src/mcg_nn_matmul.c")

    in_shape: tuple[int, int, int]
    out_shape: tuple[int, int, int]
    weight: Array
    bias: Array
    in_zp: int
    requant: Requant
    stride: tuple[int, int]
    pads: tuple[int, int, int, int]
    dilation: tuple[int, int]
    in_planar: bool
    out_planar: bool
    #: Pixels that are packed before the weights are read, in fours; 0: as many as pay.
    tile: int = 0

    @property
    def in_physical(self) -> tuple[int, ...]:
        return physical(self.in_shape, self.in_planar)

    @property
    def out_physical(self) -> tuple[int, ...]:
        return physical(self.out_shape, self.out_planar)

    def check(self, types: Mapping[str, TensorType]) -> None:
        problem = (
            operand_problem(types, self.inputs[0], self.in_physical, self.in_zp, "QConv")
            or operand_problem(types, self.outputs[0], self.out_physical, self.requant.zero_point, "QConv")
            or weight_problem(self.weight, self.bias, self.requant, self._weight_shape)
            or window_problem(
                self.in_shape, self.out_shape, self.weight.shape[1:3], self.stride, self.pads, self.dilation
            )
        )
        if not problem and not accumulator_range(self.weight, self.bias, self.in_zp).fits:
            problem = "an accumulator leaves int32"
        if problem:
            raise InternalError(str(self.loc), f"QConv: {problem}")

    @property
    def _weight_shape(self) -> tuple[int, ...]:
        return (self.out_shape[0], self.weight.shape[1], self.weight.shape[2], self.in_shape[0])

    def eval(self, *args: Array) -> tuple[Array, ...]:
        """(N, *physical in) -> (N, *physical out)."""
        x = args[0].reshape(len(args[0]), *physical(self.in_shape, self.in_planar))
        x = x if self.in_planar else x.transpose(0, 3, 1, 2)
        windows = padded_windows(shift_of(x, self.in_zp), self.weight.shape[1:3], self)
        acc = np.zeros((len(x), *self.out_shape[1:], self.out_shape[0]))
        for kh, kw, view in windows:
            acc += view.transpose(0, 2, 3, 1) @ self.weight[:, kh, kw].astype(np.float64).T
        y = requantize(acc.astype(np.int64) + self.bias, self.requant, -1).astype(np.int8)
        return (np.ascontiguousarray(y.transpose(0, 3, 1, 2)) if self.out_planar else y,)

    @property
    def _runs(self) -> _Runs:
        _, kw, channels = self.weight.shape[1:]
        if self.in_planar:
            count = channels * int(self.weight.shape[1])
            merge = kw == 3 and self.dilation[1] == 1 and count <= _MOST_THREES and -(-3 * count // 4) < count
            step = self.dilation[1] if kw > 1 else 1  # bytes at a distance are packed one by one
            return _Runs(channels, 1, kw, 1, step, count if merge else 0)
        if self.dilation[1] > 1 and kw > 1:
            return _Runs(1, kw, 1, channels, 1)
        return _Runs(1, 1, kw, channels, 1)

    @property
    def _groups(self) -> int:
        r = self._runs
        return -(-3 * r.threes // 4) if r.threes else r.planes * int(self.weight.shape[1]) * r.col_runs * r.groups

    @property
    def _tile(self) -> int:
        """Pixels that are packed at once: more where the weights would be fetched from flash again for each three."""
        pixels = self.out_shape[1] * self.out_shape[2]
        if self.tile:
            return self.tile
        large = self.weight.size > _CACHED_WEIGHTS
        room = (_LARGE_TILE_SCRATCH if large else _TILE_SCRATCH) // (8 * self._groups)
        return max(4, min(pixels // 4 * 4, room // 4 * 4, _TILE_PIXELS))

    def with_room(self, scratch: int) -> QConv:
        """The same layer with larger tiles, as far as they pay and need at most so much scratch."""
        pixels = self.out_shape[1] * self.out_shape[2]
        tile = min(scratch // (8 * self._groups) // 4 * 4, pixels // 4 * 4, _TILE_PIXELS)
        return replace(self, tile=tile) if tile > self._tile else self

    @property
    def lag(self) -> int | None:
        """Interleaved pixels are written from front to back, tile by tile, and what a tile reads lies behind what those
        before it read: of planes that holds for the first, and the others lie behind it."""
        if self.out_planar:
            return None
        (channels, height, width), (outputs, rows, cols) = self.in_shape, self.out_shape
        pixels, step = rows * cols, 1 if self.in_planar else channels
        y, x = (
            np.maximum(np.arange(n) * s - p, 0)
            for n, s, p in zip((rows, cols), self.stride, self.pads[:2], strict=True)
        )
        reads = (np.minimum(y, height)[:, None] * width + np.minimum(x, width)[None, :]).reshape(-1) * step
        behind = np.append(np.minimum.accumulate(reads[::-1])[::-1], height * width * step)
        most, at = 0, 0
        while at < pixels:
            left = pixels - at
            n = self._tile if left >= self._tile else left // 4 * 4
            if n == 0:  # the last four are packed together, or one by one if there are no more
                at, n = (at, 1) if pixels < 4 else (pixels - 4, 4)
            at += n
            again = at if pixels < 4 or (pixels - at) % 4 == 0 else min(at, pixels - 4)
            most = max(most, at * outputs - int(behind[again]) if at < pixels else 0)
        return most

    @property
    def scratch_bytes(self) -> int:
        return self._tile * self._groups * 8

    def stream(self) -> Stream:
        """The weight table, in the order in which the kernel reads patches, every run padded to whole groups."""
        r, (oc, kh) = self._runs, self.weight.shape[:2]
        w = self.weight.transpose(0, 3, 1, 2) if self.in_planar else self.weight
        if r.threes:
            return matmul_stream(side_by_side(w.reshape(oc, -1, 3)), self.bias, self.in_zp, self.requant, 2)
        runs = w.reshape(oc, r.planes * kh * r.col_runs, r.cols * r.unit)
        rows = np.zeros((*runs.shape[:2], 4 * r.groups), np.int8)
        rows[:, :, : runs.shape[2]] = runs
        return matmul_stream(rows.reshape(oc, -1), self.bias, self.in_zp, self.requant, 2)

    def descriptor(self) -> Array:
        """The record mcg_conv_t."""
        r = self._runs
        (c, h, w), (oc, oh, ow) = self.in_shape, self.out_shape
        row, col = (w, 1) if self.in_planar else (w * c, c)
        channel, pixel = (oh * ow, 1) if self.out_planar else (1, oc)
        values = {"in_bytes": c * h * w, "in_plane": h * w if self.in_planar else 0, "in_row": row, "in_col": col}
        values |= {"out_channel": channel, "out_pixel": pixel, "groups": self._groups, "in_h": h, "in_w": w}
        values |= {"out_h": oh, "out_w": ow, "out_c": oc, "planes": r.planes, "kernel_h": self.weight.shape[1]}
        values |= {
            "col_runs": r.col_runs,
            "cols": r.cols,
            "unit": r.unit,
            "run_groups": r.groups,
            "col_step": r.col_step,
        }
        values |= {"stride_h": self.stride[0], "stride_w": self.stride[1], "tile": self._tile}
        values |= {"dilation_h": self.dilation[0], "dilation_w": self.dilation[1]}
        values |= {"pad_top": self.pads[0], "pad_left": self.pads[1], "in_zp": self.in_zp}
        values |= {"out_zp": self.requant.zero_point, "low": self.requant.low, "high": self.requant.high}
        return record(_FIELDS, values)

    def function(self, stream: Stream) -> str:
        """The kernel that reads this table."""
        if not stream.packed:
            return "mcg_conv_s8_any"
        return "mcg_conv_nx3_s8" if self._shares_columns else "mcg_conv_s8"

    @property
    def _shares_columns(self) -> bool:
        """Neighbouring pixels read mostly the same columns, and these are whole groups."""
        r = self._runs
        return not self.in_planar and (r.col_runs, r.cols, self.stride[1]) == (1, 3, 1) and r.unit % 4 == 0

    def items(self, prefix: str) -> tuple[Item, ...]:
        times = -(-self.out_shape[1] * self.out_shape[2] // 4)
        about = f"convolution {'x'.join(map(str, self.weight.shape))}: pairs of channels, four weights a word"
        return (weight_item(prefix, self.stream().words, times, about),)

    def emit(self, prefix: str, args: tuple[str, ...], results: tuple[str, ...], names: Names) -> OpText:
        scratch = (f"MCG_CONV_SCRATCH({self._tile}u, {self._groups}u)", self.scratch_bytes, "uint32_t")
        function = self.function(self.stream())
        return kernel_text(prefix, function, "mcg_conv_t", self.descriptor(), scratch, (args[0], results[0]), names)

    @property
    def floor(self) -> float:
        """23 instructions for 32 products, 4 an output, 5 for each four bytes of a patch, 3 if pixels share columns."""
        pixels = self.out_shape[1] * self.out_shape[2]
        packing = (3.0 if self._shares_columns else 5.0) * self._groups
        return pixels * (23.0 / 32.0 * self.weight.size + 4.0 * self.out_shape[0] + packing)

    def cost(self) -> Cost:
        pixels, macs = self.out_shape[1] * self.out_shape[2], self.out_shape[1] * self.out_shape[2] * self.weight.size
        groups = self._groups * (pixels + -(-self.out_shape[0] // 2) * -(-pixels // 4))
        return Cost(macs / 16, macs, groups, groups)


def side_by_side(runs: Array) -> Array:
    """Runs of three weights (OC, N, 3) to whole groups (OC, 4 * ceil(3 * N / 4)), as mcg_nn_patch.h packs threes."""
    oc, n = runs.shape[:2]
    middle = np.pad(runs[:, :, 1], ((0, 0), (0, n % 2))).reshape(oc, -1, 2)
    pairs = np.concatenate([runs[:, :, ::2], middle], axis=1)
    pairs = np.pad(pairs, ((0, 0), (0, pairs.shape[1] % 2), (0, 0))).reshape(oc, -1, 2, 2)
    return np.ascontiguousarray(pairs[:, :, ::-1].transpose(0, 1, 3, 2)).reshape(oc, -1)
