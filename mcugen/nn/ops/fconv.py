"""FConv: convolution in float32, any number of groups."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf
from typing import ClassVar

import numpy as np

from mcugen.core.op import Cost, Item, MachineOp, Names, OpText
from mcugen.core.types import Array, DType, TensorType
from mcugen.errors import InternalError
from mcugen.nn.ops.float_math import clamp_f32, finite, in_fours, limit_text, quiet
from mcugen.nn.ops.plain_call import described_call, misfit, plain_table
from mcugen.nn.ops.wide_conv import WIDE_FIELDS, Shape3, WideConv


@dataclass(frozen=True, slots=True, eq=False)
class FConv(WideConv, MachineOp):
    """float32 (C, H, W) -> (OC, OH, OW), planar unless ``in_planar`` or ``out_planar`` says (H, W, C).

    ``weight``: float32 (OC, KH, KW, C / groups); depthwise is groups = C. ``bias``: float32 (OC,). A sum starts with
    its bias; products are added row by row, column by column, channel by channel; then the clamp to ``low``, ``high``.
    """

    kernel: ClassVar[tuple[str, str]] = ("mcg_conv_f32", "src/mcg_nn_float_conv.c")

    in_shape: Shape3
    out_shape: Shape3
    weight: Array
    bias: Array
    stride: tuple[int, int]
    pads: tuple[int, int, int, int]
    dilation: tuple[int, int]
    groups: int = 1
    low: float = -inf
    high: float = inf
    in_planar: bool = True
    out_planar: bool = True

    def check(self, types: Mapping[str, TensorType]) -> None:
        problem = (
            misfit(types, self.inputs[0], int(np.prod(self.in_shape)), DType.F32, "FConv")
            or misfit(types, self.outputs[0], int(np.prod(self.out_shape)), DType.F32, "FConv")
            or self.geometry_problem()
        )
        if not problem and not (finite(self.weight, self.bias) and self.bias.shape == self.out_shape[:1]):
            problem = f"weights {self.weight.dtype}, bias {self.bias.dtype} {self.bias.shape}, or not finite"
        if problem:
            raise InternalError(str(self.loc), f"FConv: {problem}")

    @quiet
    def eval(self, *args: Array) -> tuple[Array, ...]:
        """(N, *physical in) -> (N, *physical out)."""
        x = self.image(args[0].astype(np.float32))
        # Padding is left out of a sum, not added as zero: that would turn -0.0 into 0.0.
        inside = [view for _, _, view in self.taps(np.ones((1, *self.in_shape), np.float32))]
        acc = np.tile(self.bias[:, None, None], (len(x), 1, *self.out_shape[1:]))
        for (kh, kw, view), mask in zip(self.taps(x), inside, strict=True):
            here = mask[:, :1] > 0
            for k in range(self.weight.shape[3]):
                product = self.of_group(view, k) * self.weight[:, kh, kw, k][:, None, None]
                acc = np.where(here, acc + product, acc)
        return (self.layout(clamp_f32(acc, self.low, self.high)),)

    @property
    def _depthwise(self) -> bool:
        """Whether each output reads one channel."""
        return int(self.weight.shape[3]) == 1

    def items(self, prefix: str) -> tuple[Item, ...]:
        pixels = self.out_shape[1] * self.out_shape[2]
        table, about = self.weight, "weights, output by output"
        if not self._depthwise:
            of_group = self.weight.reshape(self.groups, len(self.weight) // self.groups, -1)
            table, about = np.concatenate([in_fours(w) for w in of_group]), "weights, four outputs side by side"
        weights = plain_table(f"{prefix}_weights", table, pixels * self.weight.size, about)
        return weights, plain_table(f"{prefix}_bias", self.bias, pixels * self.bias.size, "where the sums start")

    def emit(self, prefix: str, args: tuple[str, ...], results: tuple[str, ...], names: Names) -> OpText:
        shape = ("mcg_wide_conv_t", f"{prefix}_shape", WIDE_FIELDS, self.conv_values())
        tables = (names.table[f"{prefix}_weights"], names.table[f"{prefix}_bias"])
        limits = (limit_text(self.low), limit_text(self.high))
        function = "mcg_depthwise_f32" if self._depthwise else "mcg_conv_f32"
        return described_call("mcg_nn_float.h", function, shape, (*tables, *limits, args[0], results[0]))

    def cost(self) -> Cost:
        return self.conv_cost()
