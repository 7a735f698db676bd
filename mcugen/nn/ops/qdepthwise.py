"""QDepthwise: int8 convolution of each channel with filters of its own, requantized to int8."""

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
from mcugen.nn.packing import Stream, accumulator_range, depthwise_stream, packed_requant
from mcugen.nn.requant import Requant, requantize

#: Expanded rows of a channel are kept below this, by computing a few output rows at a time.
_STRIP_SCRATCH = 2048

#: Pitches that 3 x 3 kernels exist for.
_FIXED_PITCHES = (16, 32, 64)

_WORDS = ("in_channel", "in_row", "in_col", "out_channel", "out_row", "out_col")
_HALVES = ("channels", "multiplier", "in_h", "in_w", "out_h", "out_w", "kernel_h", "kernel_w", "stride_h", "stride_w")
_STEPS = ("dilation_h", "dilation_w", "pad_top", "pad_left", "pitch", "strip")
_SIGNED = ("in_zp", "out_zp", "low", "high")
#: mcg_depthwise_t
_FIELDS: Fields = (
    *((n, "<u4") for n in _WORDS),
    *((n, "<u2") for n in (*_HALVES, *_STEPS)),
    *((n, "<i2") for n in _SIGNED),
)


@dataclass(frozen=True, slots=True, eq=False)
class QDepthwise(MachineOp):
    """int8 (C, H, W) -> int8 (C * m, OH, OW), each in memory planar or interleaved (H, W, C), as in QConv.

    ``weight``: int8 (C * m, KH, KW); output channel c * m + j reads input channel c. ``bias``: int32 (C * m,), without
    the input zero point. ``pads``: top, left, bottom, right. The accumulator of every output must fit int32 for every
    input (``accumulator_range``).
    """

    kernel: ClassVar[tuple[str, str]] = ("mcg_depthwise_s8", "src/mcg_nn_depthwise.c")

    in_shape: tuple[int, int, int]
    out_shape: tuple[int, int, int]
    weight: Array
    bias: Array
    in_zp: int
    requant: Requant
    stride: tuple[int, int]
    pads: tuple[int, int, int, int]
    dilation: tuple[int, int]
    multiplier: int
    in_planar: bool
    out_planar: bool
    #: All rows of a channel are expanded at once, so that the output may take the place of the input.
    whole: bool = False

    @property
    def in_physical(self) -> tuple[int, ...]:
        return physical(self.in_shape, self.in_planar)

    @property
    def out_physical(self) -> tuple[int, ...]:
        return physical(self.out_shape, self.out_planar)

    def check(self, types: Mapping[str, TensorType]) -> None:
        problem = (
            operand_problem(types, self.inputs[0], self.in_physical, self.in_zp, "QDepthwise")
            or operand_problem(types, self.outputs[0], self.out_physical, self.requant.zero_point, "QDepthwise")
            or weight_problem(self.weight, self.bias, self.requant, (self.out_shape[0], *self.weight.shape[1:]))
            or window_problem(
                self.in_shape, self.out_shape, self.weight.shape[1:], self.stride, self.pads, self.dilation
            )
        )
        if not problem and (self.multiplier < 1 or self.in_shape[0] * self.multiplier != self.out_shape[0]):
            problem = f"{self.in_shape[0]} channels times {self.multiplier} are not {self.out_shape[0]}"
        if not problem and not accumulator_range(self.weight, self.bias, self.in_zp).fits:
            problem = "an accumulator leaves int32"
        if problem:
            raise InternalError(str(self.loc), f"QDepthwise: {problem}")

    def eval(self, *args: Array) -> tuple[Array, ...]:
        """(N, *physical in) -> (N, *physical out)."""
        x = args[0].reshape(len(args[0]), *physical(self.in_shape, self.in_planar))
        x = x if self.in_planar else x.transpose(0, 3, 1, 2)
        each = np.repeat(shift_of(x, self.in_zp), self.multiplier, axis=1)
        acc = np.zeros((len(x), *self.out_shape))
        for kh, kw, view in padded_windows(each, self.weight.shape[1:], self):
            acc += view * self.weight[:, kh, kw].astype(np.float64)[:, None, None]
        exact = acc.astype(np.int64) + self.bias[:, None, None]
        y = requantize(exact, self.requant, 1).astype(np.int8)
        return (y if self.out_planar else np.ascontiguousarray(y.transpose(0, 2, 3, 1)),)

    @property
    def _three_by_three(self) -> int:
        """The pitch of the 3 x 3 kernel that takes the layer, or 0. It reads four elements of a row for one or two
        outputs; its rows are computed in twos."""
        shape = (self.weight.shape[1:], self.dilation, self.stride)
        if shape not in (((3, 3), (1, 1), (1, 1)), ((3, 3), (1, 1), (2, 2))) or min(self.out_shape[1:]) < 2:
            return 0
        outputs, step = self.out_shape[2], self.stride[1]
        last = outputs - 2 + outputs % 2 if step == 1 else (outputs - 1) * step
        pitch = next((p for p in _FIXED_PITCHES if p >= last + 4), 0)
        reach = accumulator_range(self.weight, self.bias, self.in_zp)
        return pitch if packed_requant(self.requant, reach) is not None else 0

    @property
    def _pitch(self) -> int:
        """int16 elements of an expanded row: all that the kernels read, and even. Most read pairs of columns."""
        pairs = -(-int(self.weight.shape[2]) // 2)
        span = (self.out_shape[2] - 1) * self.stride[1] + (2 * pairs - 1) * self.dilation[1] + 1
        return self._three_by_three or span + span % 2

    def _rows(self, strip: int) -> int:
        return (strip - 1) * self.stride[0] + (int(self.weight.shape[1]) - 1) * self.dilation[0] + 1

    @property
    def _strip(self) -> int:
        """Output rows that are computed from one expansion: all, or as many as keep the scratch small."""
        rows, most = self.out_shape[1], _STRIP_SCRATCH // (2 * self._pitch)
        if self.whole:
            return rows
        strip = min(max((most - self._rows(1)) // self.stride[0] + 1, 1), rows)
        return -(-rows // -(-rows // strip))  # as many strips, of one size

    @property
    def in_place(self) -> tuple[int, ...]:
        """A channel is read before it is written, and its bytes are its own: each so many apart, or a plane."""
        same = self.multiplier == 1 and self.in_planar == self.out_planar and self._strip == self.out_shape[1]
        smaller = self.out_shape[1] * self.out_shape[2] <= self.in_shape[1] * self.in_shape[2]
        return (0,) if same and (smaller or not self.in_planar) else ()

    def with_room(self, scratch: int) -> QDepthwise:
        """The same layer, expanded at once if that needs at most so much scratch: strips read some rows twice."""
        whole = replace(self, whole=True)
        return whole if whole.scratch_bytes <= scratch else self

    @property
    def scratch_bytes(self) -> int:
        return self._rows(self._strip) * self._pitch * 2

    def stream(self) -> Stream:
        """The weight table: pairs of neighbouring columns a word."""
        return depthwise_stream(self.weight, self.bias, self.in_zp, self.requant, self._three_by_three > 0)

    def descriptor(self) -> Array:
        """The record mcg_depthwise_t."""
        (c, h, w), (oc, oh, ow) = self.in_shape, self.out_shape
        source = (h * w, w, 1) if self.in_planar else (1, w * c, c)
        target = (oh * ow, ow, 1) if self.out_planar else (1, ow * oc, oc)
        values = dict(zip(_WORDS, (*source, *target), strict=True))
        values |= {"channels": c, "multiplier": self.multiplier, "in_h": h, "in_w": w, "out_h": oh, "out_w": ow}
        values |= {"kernel_h": self.weight.shape[1], "kernel_w": self.weight.shape[2]}
        values |= {"stride_h": self.stride[0], "stride_w": self.stride[1]}
        values |= {"dilation_h": self.dilation[0], "dilation_w": self.dilation[1]}
        values |= {"pad_top": self.pads[0], "pad_left": self.pads[1], "pitch": self._pitch, "strip": self._strip}
        r = self.requant
        values |= {"in_zp": self.in_zp, "out_zp": r.zero_point, "low": r.low, "high": r.high}
        return record(_FIELDS, values)

    def function(self, stream: Stream) -> str:
        """The kernel that reads this table."""
        if self._three_by_three:
            return f"mcg_depthwise_3x3_s8_p{self._pitch}"
        return "mcg_depthwise_s8" if stream.packed else "mcg_depthwise_s8_any"

    def items(self, prefix: str) -> tuple[Item, ...]:
        about = f"depthwise convolution {'x'.join(map(str, self.weight.shape))}: pairs of columns a word"
        return (weight_item(prefix, self.stream().words, self.out_shape[1], about),)

    def emit(self, prefix: str, args: tuple[str, ...], results: tuple[str, ...], names: Names) -> OpText:
        rows = f"MCG_DEPTHWISE_ROWS({self._strip}u, {self.stride[0]}u, {self.weight.shape[1]}u, {self.dilation[0]}u)"
        scratch = (f"MCG_DEPTHWISE_SCRATCH({rows}, {self._pitch}u)", self.scratch_bytes, "int16_t")
        function = self.function(self.stream())
        return kernel_text(
            prefix, function, "mcg_depthwise_t", self.descriptor(), scratch, (args[0], results[0]), names
        )

    @property
    def floor(self) -> float:
        """Two products an instruction where columns pair up, a load for each two pairs, 4 an output, 7 for each four
        bytes of input."""
        outputs = self.out_shape[0] * self.out_shape[1] * self.out_shape[2]
        pairs = int(self.weight.shape[1]) * -(-int(self.weight.shape[2]) // 2)
        return (
            outputs * (pairs + pairs / 6.0 + 4.0) + 7.0 / 4.0 * self.in_shape[0] * self.in_shape[1] * self.in_shape[2]
        )

    def cost(self) -> Cost:
        outputs = self.out_shape[0] * self.out_shape[1] * self.out_shape[2]
        macs = outputs * int(self.weight.shape[1]) * int(self.weight.shape[2])
        return Cost(macs / 2, macs, macs, macs)
