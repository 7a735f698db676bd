"""FDense: matrix times vector in float32."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf
from typing import ClassVar

import numpy as np

from mcugen.core.op import Cost, Item, MachineOp, Names, OpText
from mcugen.core.types import Array, DType, TensorType
from mcugen.errors import InternalError
from mcugen.nn.ops.float_math import clamp_f32, dot_f32, finite, in_fours, limit_text
from mcugen.nn.ops.plain_call import misfit, plain_call, plain_table


@dataclass(frozen=True, slots=True, eq=False)
class FDense(MachineOp):
    """float32 (K,) -> (N,): bias (N,), plus products with ``weight`` (N, K) in the order of K, clamped."""

    kernel: ClassVar[tuple[str, str]] = ("mcg_dense_f32", "src/mcg_nn_float_conv.c")

    weight: Array
    bias: Array
    low: float = -inf
    high: float = inf

    def check(self, types: Mapping[str, TensorType]) -> None:
        if self.weight.ndim != 2 or self.bias.shape != self.weight.shape[:1] or not finite(self.weight, self.bias):
            raise InternalError(str(self.loc), f"FDense: weights {self.weight.shape}, bias {self.bias.shape}")
        n, k = self.weight.shape
        problem = misfit(types, self.inputs[0], k, DType.F32, "FDense")
        problem = problem or misfit(types, self.outputs[0], n, DType.F32, "FDense")
        if problem:
            raise InternalError(str(self.loc), f"FDense: {problem}")

    def eval(self, *args: Array) -> tuple[Array, ...]:
        """(B, K) -> (B, N)."""
        x = args[0].astype(np.float32).reshape(len(args[0]), -1)
        return (clamp_f32(dot_f32(self.bias, self.weight, x), self.low, self.high),)

    def items(self, prefix: str) -> tuple[Item, ...]:
        weights = plain_table(
            f"{prefix}_weights", in_fours(self.weight), self.weight.size, "weights, four outputs side by side"
        )
        return weights, plain_table(f"{prefix}_bias", self.bias, self.bias.size, "where the sums start")

    def emit(self, prefix: str, args: tuple[str, ...], results: tuple[str, ...], names: Names) -> OpText:
        n, k = self.weight.shape
        tables = (names.table[f"{prefix}_weights"], names.table[f"{prefix}_bias"])
        limits = (limit_text(self.low), limit_text(self.high))
        return plain_call("mcg_nn_float.h", "mcg_dense_f32", (*tables, *limits, n, k, args[0], results[0]))

    def cost(self) -> Cost:
        macs = int(self.weight.size)
        return Cost(float(macs), macs, float(macs), macs)
