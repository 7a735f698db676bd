"""DivideScores: float sums to means."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mcugen.core.op import Cost, Item, Names, OpText
from mcugen.core.passes import value_type
from mcugen.core.types import Array, DType, TensorType
from mcugen.ctext.literals import float32_literal, float64_literal
from mcugen.errors import InternalError
from mcugen.trees.support import TreeOp


@dataclass(frozen=True, slots=True, eq=False)
class DivideScores(TreeOp):
    """x (K,) -> x / divisor, in float32 or float64."""

    kernel: ClassVar[tuple[str, str]] = ("mcg_divide_f64", "src/mcg_scores.c")

    dtype: DType
    divisor: int
    count: int

    def check(self, types: Mapping[str, TensorType]) -> None:
        x, y = (value_type(types, v, "DivideScores") for v in (self.inputs[0], self.outputs[0]))
        if not (x.dtype is y.dtype is self.dtype and self.dtype.is_float and x.shape == y.shape == (self.count,)):
            raise InternalError(str(self.loc), "DivideScores: wrong operands")

    def eval(self, *args: Array) -> tuple[Array, ...]:
        """(N, K) -> (N, K)."""
        return (args[0] / self.dtype.np.type(self.divisor),)

    def items(self, prefix: str) -> tuple[Item, ...]:
        return ()

    def emit(self, prefix: str, args: tuple[str, ...], results: tuple[str, ...], names: Names) -> OpText:
        if self.dtype is DType.F64:
            function, divisor = "mcg_divide_f64", float64_literal(float(self.divisor))
        else:
            function, divisor = "mcg_divide_f32", float32_literal(float(np.float32(self.divisor)))
        call = f"{function}({args[0]}, {divisor}, {results[0]}, {self.count}u);"
        return OpText(("mcg_scores.h",), "", call)

    def cost(self) -> Cost:
        return Cost(0.0, 0, float(self.count), self.count)
