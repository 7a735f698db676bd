"""ScaleScores: fixed-point or float64 scores to float32."""

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
class ScaleScores(TreeOp):
    """int32 (K,): ``(float)x * scale``; float64 (K,): ``(float)(x / divisor)``. Gives float32 (K,)."""

    kernel: ClassVar[tuple[str, str]] = ("mcg_scale_i32_f32", "src/mcg_scores.c")

    source: DType
    scale: float
    divisor: int
    count: int

    def check(self, types: Mapping[str, TensorType]) -> None:
        x, y = (value_type(types, v, "ScaleScores") for v in (self.inputs[0], self.outputs[0]))
        ok = x.dtype is self.source and self.source in (DType.I32, DType.F64) and y.dtype is DType.F32
        if not (ok and x.shape == y.shape == (self.count,) and np.isfinite(np.float32(self.scale))):
            raise InternalError(str(self.loc), "ScaleScores: wrong operands")

    def eval(self, *args: Array) -> tuple[Array, ...]:
        """(N, K) -> (N, K) float32."""
        with np.errstate(over="ignore"):
            if self.source is DType.I32:
                return (args[0].astype(np.float32) * np.float32(self.scale),)
            return ((args[0] / np.float64(self.divisor)).astype(np.float32),)

    def items(self, prefix: str) -> tuple[Item, ...]:
        return ()

    def emit(self, prefix: str, args: tuple[str, ...], results: tuple[str, ...], names: Names) -> OpText:
        if self.source is DType.I32:
            scale = float32_literal(float(np.float32(self.scale)))
            call = f"mcg_scale_i32_f32({args[0]}, {scale}, {results[0]}, {self.count}u);"
        else:
            call = (
                f"mcg_divide_f64_f32({args[0]}, {float64_literal(float(self.divisor))}, {results[0]}, {self.count}u);"
            )
        return OpText(("mcg_scores.h",), "", call)

    def cost(self) -> Cost:
        return Cost(0.0, self.count, float(self.count), self.count)
