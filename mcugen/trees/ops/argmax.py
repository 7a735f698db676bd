"""ArgMax: scores to the index of the largest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mcugen.core.op import Cost, Item, Names, OpText
from mcugen.core.passes import value_type
from mcugen.core.types import Array, DType, TensorType
from mcugen.errors import InternalError
from mcugen.trees.support import TreeOp, short_type


@dataclass(frozen=True, slots=True, eq=False)
class ArgMax(TreeOp):
    """x (K,) -> int32 (1,): the index of the largest, the lowest such index on ties."""

    kernel: ClassVar[tuple[str, str]] = ("mcg_argmax_i32", "src/mcg_scores.c")

    dtype: DType
    count: int

    def check(self, types: Mapping[str, TensorType]) -> None:
        x, y = (value_type(types, v, "ArgMax") for v in (self.inputs[0], self.outputs[0]))
        known = self.dtype in (DType.I32, DType.F32, DType.F64)
        if not (known and x.dtype is self.dtype and x.shape == (self.count,) and y == TensorType((1,), DType.I32)):
            raise InternalError(str(self.loc), "ArgMax: wrong operands")

    def eval(self, *args: Array) -> tuple[Array, ...]:
        """(N, K) -> (N, 1) int32."""
        return (args[0].argmax(axis=1).astype(np.int32)[:, None],)

    def items(self, prefix: str) -> tuple[Item, ...]:
        return ()

    def emit(self, prefix: str, args: tuple[str, ...], results: tuple[str, ...], names: Names) -> OpText:
        call = f"{results[0]}[0] = mcg_argmax_{short_type(self.dtype)}({args[0]}, {self.count}u);"
        return OpText(("mcg_scores.h",), "", call)

    def cost(self) -> Cost:
        return Cost(0.0, 0, float(self.count), self.count)
