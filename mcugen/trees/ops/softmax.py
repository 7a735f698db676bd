"""Softmax in float32."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from mcugen.core.float_math import softmax_f32
from mcugen.core.op import Cost, Item, Names, OpText
from mcugen.core.passes import value_type
from mcugen.core.types import Array, DType, TensorType
from mcugen.errors import InternalError
from mcugen.trees.support import TreeOp


@dataclass(frozen=True, slots=True, eq=False)
class Softmax(TreeOp):
    """x (K,) float32 -> ``exp(x - max)`` over its sum."""

    kernel: ClassVar[tuple[str, str]] = ("mcg_softmax_f32", "src/mcg_scores.c")

    count: int

    def check(self, types: Mapping[str, TensorType]) -> None:
        x, y = (value_type(types, v, "Softmax") for v in (self.inputs[0], self.outputs[0]))
        if not (x.dtype is y.dtype is DType.F32 and x.shape == y.shape == (self.count,)):
            raise InternalError(str(self.loc), "Softmax: wrong operands")

    def eval(self, *args: Array) -> tuple[Array, ...]:
        """(N, K) float32 -> (N, K) float32."""
        return (softmax_f32(args[0]),)

    def items(self, prefix: str) -> tuple[Item, ...]:
        return ()

    def emit(self, prefix: str, args: tuple[str, ...], results: tuple[str, ...], names: Names) -> OpText:
        return OpText(("mcg_scores.h",), "", f"mcg_softmax_f32({args[0]}, {results[0]}, {self.count}u);")

    def cost(self) -> Cost:
        return Cost(0.0, 10 * self.count, 45.0 * self.count, 45 * self.count)
