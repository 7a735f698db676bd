"""QConv16: convolution of int16 activations with int8 weights, any number of groups."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mcugen.core.op import Cost, Item, MachineOp, Names, OpText
from mcugen.core.types import Array, TensorType
from mcugen.errors import InternalError
from mcugen.nn.ops.kernel_call import record, record_text
from mcugen.nn.ops.plain_call import described_call, plain_table
from mcugen.nn.ops.wide_call import (
    HEADER,
    RANGE_FIELDS,
    channel_item,
    i16_misfit,
    range_values,
    wide_problem,
    wide_words,
)
from mcugen.nn.ops.wide_conv import WIDE_FIELDS, Shape3, WideConv
from mcugen.nn.packing import halves
from mcugen.nn.requant import Requant
from mcugen.nn.requant64 import requantize64

#: Padded rows of a channel are kept below this, by computing a few output rows at a time.
_STRIP_SCRATCH = 4096
#: Products of int8 and int16 that fit int32.
_STRETCH = 256


@dataclass(frozen=True, slots=True, eq=False)
class QConv16(WideConv, MachineOp):
    """int16 (H, W, C) or, if ``in_planar``, (C, H, W) -> int16 (OH, OW, OC) or, if ``out_planar``, (OC, OH, OW).

    ``weight``: int8 (OC, KH, KW, C / groups); depthwise is groups = C. ``bias``: int64 (OC,) with scale s_in * s_w.
    ``in_zp`` is 0. Every sum stays below 2^47.
    """

    kernel: ClassVar[tuple[str, str]] = ("mcg_conv_s16", "src/mcg_nn_wide_conv.c")

    in_shape: Shape3
    out_shape: Shape3
    weight: Array
    bias: Array
    in_zp: int
    requant: Requant
    stride: tuple[int, int]
    pads: tuple[int, int, int, int]
    dilation: tuple[int, int]
    in_planar: bool
    out_planar: bool
    groups: int = 1

    def check(self, types: Mapping[str, TensorType]) -> None:
        problem = (
            i16_misfit(types, self.inputs[0], self.in_physical, "QConv16")
            or i16_misfit(types, self.outputs[0], self.out_physical, "QConv16")
            or self.geometry_problem()
            or wide_problem(self.weight, self.bias, self.in_zp, self.requant)
        )
        if problem:
            raise InternalError(str(self.loc), f"QConv16: {problem}")

    def eval(self, *args: Array) -> tuple[Array, ...]:
        """(N, *physical in) -> (N, *physical out)."""
        x = self.image(args[0]).astype(np.int64)
        acc = np.zeros((len(x), *self.out_shape), np.int64)
        for kh, kw, view in self.taps(x):
            for k in range(self.weight.shape[3]):
                acc += self.of_group(view, k) * self.weight[:, kh, kw, k].astype(np.int64)[:, None, None]
        acc += self.bias[:, None, None]
        return (self.layout(requantize64(acc, self.requant, 1).astype(np.int16)),)

    @property
    def _depthwise(self) -> bool:
        """Whether each output reads one channel."""
        return self.weight.shape[3] == 1 and int(self.weight[0].size) <= _STRETCH

    @property
    def _pitch(self) -> int:
        """Elements of a padded row: all that is read, in pairs of columns."""
        pairs = -(-int(self.weight.shape[2]) // 2)
        span = (self.out_shape[2] - 1) * self.stride[1] + (2 * pairs - 1) * self.dilation[1] + 1
        return max(span + span % 2, self.pads[1])

    def _rows(self, strip: int) -> int:
        return (strip - 1) * self.stride[0] + (int(self.weight.shape[1]) - 1) * self.dilation[0] + 1

    @property
    def _strip(self) -> int:
        """Output rows that are computed from one copy of their input rows."""
        most = _STRIP_SCRATCH // (2 * self._pitch)
        return min(max((most - self._rows(1)) // self.stride[0] + 1, 1), self.out_shape[1])

    @property
    def scratch_bytes(self) -> int:
        if self._depthwise:
            return self._rows(self._strip) * self._pitch * 2
        return -(-int(self.weight[0].size) // 4) * 16

    def _words(self) -> Array:
        """The weight table of the kernel."""
        if not self._depthwise:
            of_group = self.weight.reshape(self.groups, len(self.weight) // self.groups, -1)
            return np.concatenate([wide_words(rows) for rows in of_group])
        w = self.weight[:, :, :, 0]
        w = np.pad(w, ((0, 0), (0, 0), (0, w.shape[2] % 2)))
        return halves(w[:, :, 0::2], w[:, :, 1::2]).reshape(-1)

    def items(self, prefix: str) -> tuple[Item, ...]:
        pixels, words = self.out_shape[1] * self.out_shape[2], self._words()
        about = "weights: pairs of columns" if self._depthwise else "weights: pairs of outputs, four a word"
        weights = plain_table(f"{prefix}_weights", words, pixels * len(words) / 2, about)
        return weights, channel_item(prefix, self.bias, self.requant, pixels * len(self.bias))

    def emit(self, prefix: str, args: tuple[str, ...], results: tuple[str, ...], names: Names) -> OpText:
        limits = record_text(
            "mcg_wide_range_t",
            f"{prefix}_range",
            record(RANGE_FIELDS, range_values(self.requant, self.weight, self.bias)),
        )
        shape = ("mcg_wide_conv_t", f"{prefix}_shape", WIDE_FIELDS, self.conv_values())
        tables = (names.table[f"{prefix}_weights"], names.table[f"{prefix}_channels"], f"&{prefix}_range")
        function, size = "mcg_conv_s16", f"MCG_CONV_S16_SCRATCH({self.weight[0].size}u)"
        rows: tuple[str, ...] = ()
        if self._depthwise:
            function, size = (
                "mcg_depthwise_s16",
                f"MCG_DEPTHWISE_S16_SCRATCH({self._rows(self._strip)}u, {self._pitch}u)",
            )
            rows = (f"{self._pitch}u", f"{self._strip}u")
        pointer = f"(int16_t *)(void *){names.scratch}"
        arguments = (*tables, *rows, pointer, args[0], results[0])
        text = described_call(HEADER, function, shape, arguments, (size, self.scratch_bytes))
        return OpText(text.includes, limits + text.definitions, text.call)

    def cost(self) -> Cost:
        return self.conv_cost()
