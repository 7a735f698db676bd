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
from mcugen.nn.ops.wide_call import HEADER, RANGE_FIELDS, channel_item, i16_misfit, range_values, wide_problem
from mcugen.nn.ops.wide_conv import WIDE_FIELDS, Shape3, WideConv
from mcugen.nn.requant import Requant
from mcugen.nn.requant64 import requantize64


@dataclass(frozen=True, slots=True, eq=False)
class QConv16(WideConv, MachineOp):
    """int16 (H, W, C) or, if ``in_planar``, (C, H, W) -> int16 (OH, OW, OC) or, if ``out_planar``, (OC, OH, OW).

    ``weight``: int8 (OC, KH, KW, C / groups); depthwise is groups = C. ``bias``: int64 (OC,) with scale s_in * s_w.
    ``in_zp`` is 0. Every sum stays below 2^47.
    """

    kernel: ClassVar[tuple[str, str]] = ("mcg_conv_s16", "src/mcg_nn_wide.c")

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

    def items(self, prefix: str) -> tuple[Item, ...]:
        pixels = self.out_shape[1] * self.out_shape[2]
        weights = plain_table(f"{prefix}_weights", self.weight, pixels * self.weight.size, "weights, output by output")
        return weights, channel_item(prefix, self.bias, self.requant, pixels * len(self.bias))

    def emit(self, prefix: str, args: tuple[str, ...], results: tuple[str, ...], names: Names) -> OpText:
        limits = record_text("mcg_wide_range_t", f"{prefix}_range", record(RANGE_FIELDS, range_values(self.requant)))
        shape = ("mcg_wide_conv_t", f"{prefix}_shape", WIDE_FIELDS, self.conv_values())
        tables = (names.table[f"{prefix}_weights"], names.table[f"{prefix}_channels"], f"&{prefix}_range")
        text = described_call(HEADER, "mcg_conv_s16", shape, (*tables, args[0], results[0]))
        return OpText(text.includes, limits + text.definitions, text.call)

    def cost(self) -> Cost:
        return self.conv_cost()
