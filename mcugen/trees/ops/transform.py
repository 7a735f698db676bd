"""Transform: the objective's link function, element by element, in float32."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mcugen.core.float_math import exp_f32, log1p_exp_f32, sigmoid_f32, signed_square_f32
from mcugen.core.op import Cost, Item, Names, OpText
from mcugen.core.passes import value_type
from mcugen.core.types import Array, DType, TensorType
from mcugen.ctext.literals import float32_literal
from mcugen.errors import InternalError
from mcugen.trees.support import TreeOp

_KERNELS = {
    "sigmoid": "mcg_sigmoid_f32",
    "exp": "mcg_exponential_f32",
    "log1p_exp": "mcg_log1p_exp_f32",
    "signed_square": "mcg_signed_square_f32",
}


@dataclass(frozen=True, slots=True, eq=False)
class Transform(TreeOp):
    """x (K,) float32 -> link(x); ``slope`` is the k of sigmoid(k * x)."""

    kernel: ClassVar[tuple[str, str]] = ("mcg_sigmoid_f32", "src/mcg_scores.c")

    kind: str
    slope: float
    count: int

    def check(self, types: Mapping[str, TensorType]) -> None:
        x, y = (value_type(types, v, "Transform") for v in (self.inputs[0], self.outputs[0]))
        if not (x.dtype is y.dtype is DType.F32 and x.shape == y.shape == (self.count,) and self.kind in _KERNELS):
            raise InternalError(str(self.loc), "Transform: wrong operands")

    def eval(self, *args: Array) -> tuple[Array, ...]:
        """(N, K) float32 -> (N, K) float32."""
        if self.kind == "sigmoid":
            return (sigmoid_f32(args[0], self.slope),)
        function = {"exp": exp_f32, "log1p_exp": log1p_exp_f32, "signed_square": signed_square_f32}[self.kind]
        return (function(args[0]),)

    def items(self, prefix: str) -> tuple[Item, ...]:
        return ()

    def emit(self, prefix: str, args: tuple[str, ...], results: tuple[str, ...], names: Names) -> OpText:
        slope = f" {float32_literal(float(np.float32(self.slope)))}," if self.kind == "sigmoid" else ""
        call = f"{_KERNELS[self.kind]}({args[0]},{slope} {results[0]}, {self.count}u);"
        return OpText(("mcg_scores.h",), "", call)

    def cost(self) -> Cost:
        return Cost(0.0, 10 * self.count, 40.0 * self.count, 40 * self.count)
