"""QuantizeReals: float32 values to the integers of a net's input."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mcugen.core.op import Cost, Item, MachineOp, Names, OpText
from mcugen.core.passes import value_type
from mcugen.core.types import Array, DType, TensorType
from mcugen.ctext.literals import float32_literal
from mcugen.errors import InternalError

_KERNELS = {DType.I8: "mcg_quantize_i8", DType.I16: "mcg_quantize_i16"}


@dataclass(frozen=True, slots=True, eq=False)
class QuantizeReals(MachineOp):
    """``saturate(round_half_even(x / scale) + zero_point)``, the quotient rounded to float32; NaN is the zero point."""

    kernel: ClassVar[tuple[str, str]] = ("mcg_quantize_i8", "src/mcg_quantize.c")

    target: DType
    width: int
    scale: float
    zero_point: int

    def check(self, types: Mapping[str, TensorType]) -> None:
        x, y = (value_type(types, v, "QuantizeReals") for v in (self.inputs[0], self.outputs[0]))
        ok = x.dtype is DType.F32 and y.dtype is self.target and self.target in _KERNELS
        ok = ok and x.count == y.count == self.width and self.target.min <= self.zero_point <= self.target.max
        if not ok or not (np.isfinite(self.scale) and float(np.float32(self.scale)) == self.scale > 0):
            raise InternalError(str(self.loc), f"QuantizeReals: {x} to {y}, scale {self.scale}")

    def eval(self, *args: Array) -> tuple[Array, ...]:
        with np.errstate(over="ignore", invalid="ignore"):
            ratio = args[0].reshape(len(args[0]), self.width) / np.float32(self.scale)
        # Beyond 2^17 every result saturates.
        whole = np.rint(np.clip(np.nan_to_num(ratio, nan=0.0), -131072.0, 131072.0)).astype(np.int64)
        y = np.clip(whole + self.zero_point, self.target.min, self.target.max)
        return (y.astype(self.target.np),)

    def items(self, prefix: str) -> tuple[Item, ...]:
        return ()

    def emit(self, prefix: str, args: tuple[str, ...], results: tuple[str, ...], names: Names) -> OpText:
        numbers = f"{float32_literal(self.scale)}, {self.zero_point}"
        call = f"{_KERNELS[self.target]}({args[0]}, {numbers}, {results[0]}, {self.width}u);"
        return OpText(("mcg_quantize.h",), "", call)

    def cost(self) -> Cost:
        return Cost(0, self.width, 30 * self.width, 30 * self.width)
