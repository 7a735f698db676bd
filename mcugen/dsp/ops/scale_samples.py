"""ScaleSamples: integers to float32, times a scale for each channel."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mcugen.core.op import Cost, Item, MachineOp, Names, OpText
from mcugen.core.passes import value_type
from mcugen.core.types import Array, DType, TensorType
from mcugen.dsp.ops.base import table
from mcugen.errors import InternalError

_KERNELS = {DType.I16: "mcg_samples_i16_f32", DType.I32: "mcg_samples_i32_f32"}


@dataclass(frozen=True, slots=True, eq=False)
class ScaleSamples(MachineOp):
    """``float32(x) * scale``, each rounded; ``scales`` (width,) float32."""

    kernel: ClassVar[tuple[str, str]] = ("mcg_samples_i16_f32", "src/mcg_filter_first.c")

    source: DType
    scales: Array

    def check(self, types: Mapping[str, TensorType]) -> None:
        x, y = (value_type(types, v, "ScaleSamples") for v in (self.inputs[0], self.outputs[0]))
        ok = x.dtype is self.source and self.source in _KERNELS and y.dtype is DType.F32
        ok = ok and x.shape == y.shape == self.scales.shape and self.scales.dtype == np.float32
        if not ok or not np.isfinite(self.scales).all():
            raise InternalError(str(self.loc), f"ScaleSamples: {x} to {y}, scales {self.scales}")

    def eval(self, *args: Array) -> tuple[Array, ...]:
        return (np.asarray(args[0].astype(np.float32) * self.scales),)

    def items(self, prefix: str) -> tuple[Item, ...]:
        return (table(f"{prefix}_scales", self.scales, self.scales.size, "scale of each channel"),)

    def emit(self, prefix: str, args: tuple[str, ...], results: tuple[str, ...], names: Names) -> OpText:
        scales = names.table[f"{prefix}_scales"]
        text = f"{_KERNELS[self.source]}({scales}, {args[0]}, {results[0]}, {self.scales.size}u);"
        return OpText(("mcg_filter_first.h",), "", text)

    def cost(self) -> Cost:
        return Cost(self.scales.size, self.scales.size, self.scales.size, self.scales.size)
