"""RealSamples: integers to the real values that they mean, in float32."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mcugen.core.op import Cost, Item, MachineOp, Names, OpText
from mcugen.core.passes import value_type
from mcugen.core.types import Array, DType, TensorType, frozen_array
from mcugen.errors import InternalError

_KERNELS = {DType.I16: "mcg_reals_i16_f32", DType.I32: "mcg_reals_i32_f32"}
#: mcg_real_t
_REAL = np.dtype([("scale", "<f4"), ("offset", "<f4")])


@dataclass(frozen=True, slots=True, eq=False)
class RealSamples(MachineOp):
    """``float32(scale * float32(x)) + offset``, element by element; ``scales``, ``offsets``: float32 (width,)."""

    kernel: ClassVar[tuple[str, str]] = ("mcg_reals_i32_f32", "src/mcg_chain.c")

    source: DType
    scales: Array
    offsets: Array

    def check(self, types: Mapping[str, TensorType]) -> None:
        x, y = (value_type(types, v, "RealSamples") for v in (self.inputs[0], self.outputs[0]))
        ok = x.dtype is self.source and self.source in _KERNELS and y.dtype is DType.F32
        ok = ok and x.count == y.count == len(self.scales) and self.scales.shape == self.offsets.shape
        ok = ok and self.scales.dtype == self.offsets.dtype == np.float32
        if not ok or not (np.isfinite(self.scales).all() and np.isfinite(self.offsets).all()):
            raise InternalError(str(self.loc), f"RealSamples: {x} to {y}, scales {self.scales}")

    def eval(self, *args: Array) -> tuple[Array, ...]:
        x = args[0].reshape(len(args[0]), len(self.scales)).astype(np.float32)
        return (np.asarray(self.scales * x + self.offsets),)

    def items(self, prefix: str) -> tuple[Item, ...]:
        rows = list(zip(self.scales.tolist(), self.offsets.tolist(), strict=True))
        data, n = frozen_array(np.array(rows, _REAL)), len(self.scales)
        about = "scale and offset by element"
        return (Item(f"{prefix}_reals", "table", "mcg_real_t", n, data.nbytes, 4, float(n), about, data),)

    def emit(self, prefix: str, args: tuple[str, ...], results: tuple[str, ...], names: Names) -> OpText:
        function = _KERNELS[self.source]
        call = f"{function}({names.table[f'{prefix}_reals']}, {args[0]}, {results[0]}, {len(self.scales)}u);"
        return OpText(("mcg_chain.h",), "", call)

    def cost(self) -> Cost:
        n = len(self.scales)
        return Cost(2 * n, n, 6 * n, 6 * n)
