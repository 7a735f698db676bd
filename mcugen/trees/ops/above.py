"""Above: one score to class 0 or 1."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mcugen.core.op import Cost, Item, Names, OpText
from mcugen.core.passes import value_type
from mcugen.core.types import Array, DType, TensorType
from mcugen.ctext.literals import float32_literal, float64_literal, int_literal
from mcugen.errors import InternalError
from mcugen.trees.support import TreeOp, short_type


@dataclass(frozen=True, slots=True, eq=False)
class Above(TreeOp):
    """x (1,) -> int32 (1,): 1 where ``x > limit``, else 0. ``limit`` is a finite value of ``dtype``."""

    kernel: ClassVar[tuple[str, str]] = ("mcg_above_i32", "src/mcg_scores.c")

    dtype: DType
    limit: float

    def check(self, types: Mapping[str, TensorType]) -> None:
        x, y = (value_type(types, v, "Above") for v in (self.inputs[0], self.outputs[0]))
        if not (x == TensorType((1,), self.dtype, x.q) and y == TensorType((1,), DType.I32)):
            raise InternalError(str(self.loc), "Above: wrong operands")

    def eval(self, *args: Array) -> tuple[Array, ...]:
        """(N, 1) -> (N, 1) int32."""
        limit = self.dtype.np.type(self.limit)
        return ((args[0] > limit).astype(np.int32),)

    def items(self, prefix: str) -> tuple[Item, ...]:
        return ()

    def emit(self, prefix: str, args: tuple[str, ...], results: tuple[str, ...], names: Names) -> OpText:
        literal = {
            DType.I32: lambda: int_literal(int(self.limit)),
            DType.F32: lambda: float32_literal(self.limit),
            DType.F64: lambda: float64_literal(self.limit),
        }[self.dtype]()
        call = f"{results[0]}[0] = mcg_above_{short_type(self.dtype)}({args[0]}[0], {literal});"
        return OpText(("mcg_scores.h",), "", call)

    def cost(self) -> Cost:
        return Cost(0.0, 0, 1.0, 1)
