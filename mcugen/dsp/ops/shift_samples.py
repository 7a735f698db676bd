"""ShiftSamples: integers of one width to another, times a power of two."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mcugen.core.op import Cost, Item, MachineOp, Names, OpText
from mcugen.core.passes import value_type
from mcugen.core.types import Array, DType, TensorType
from mcugen.dsp.ops.base import saturate, table
from mcugen.errors import InternalError

_KERNELS = {
    (DType.I16, DType.I32): "mcg_shift_i16_i32",
    (DType.I32, DType.I16): "mcg_shift_i32_i16",
    (DType.I32, DType.I32): "mcg_shift_i32_i32",
}


@dataclass(frozen=True, slots=True, eq=False)
class ShiftSamples(MachineOp):
    """``y = x * 2^shift``: to the left x is clamped to what 32 bits hold after it, to the right it is rounded to the
    nearest, ties up; then clamped to the type of y.

    ``lows``: for each channel the least sample l that was promised, (width,) int32: others than l..-l are clamped
    before; None: any sample of the type.
    """

    kernel: ClassVar[tuple[str, str]] = ("mcg_shift_i16_i32", "src/mcg_filter_first.c")

    width: int
    source: DType
    target: DType
    shift: int
    lows: Array | None = None

    @property
    def in_place(self) -> tuple[int, ...]:
        return (0,) if self.source is self.target else ()

    def check(self, types: Mapping[str, TensorType]) -> None:
        x, y = (value_type(types, v, "ShiftSamples") for v in (self.inputs[0], self.outputs[0]))
        ok = (x.dtype, y.dtype) == (self.source, self.target) and x.shape == y.shape == (self.width,)
        if not ok or (x.dtype, y.dtype) not in _KERNELS or not -31 <= self.shift <= 30 or not self._lows_fit():
            raise InternalError(str(self.loc), f"ShiftSamples: {x} to {y} by {self.shift}")

    def _lows_fit(self) -> bool:
        lows = self.lows
        return lows is None or (lows.dtype == np.int32 and lows.shape == (self.width,) and bool((lows < 0).all()))

    def eval(self, *args: Array) -> tuple[Array, ...]:
        x, s = args[0].astype(np.int64), self.shift
        if self.lows is not None:
            low = self.lows.astype(np.int64)
            x = np.clip(x, low, -low)
        if s < 0:
            return (saturate((x + (1 << (-s - 1))) >> -s, self.target),)
        return (saturate(np.clip(x, DType.I32.min >> s, DType.I32.max >> s) << s, self.target),)

    def items(self, prefix: str) -> tuple[Item, ...]:
        if self.lows is None:
            return ()
        return (table(f"{prefix}_lows", self.lows, self.width, "least sample of each channel"),)

    def emit(self, prefix: str, args: tuple[str, ...], results: tuple[str, ...], names: Names) -> OpText:
        function = _KERNELS[self.source, self.target]
        lows = "NULL" if self.lows is None else names.table[f"{prefix}_lows"]
        text = f"{function}({lows}, {args[0]}, {results[0]}, {self.width}u, {self.shift});"
        return OpText(("mcg_filter_first.h",), "", text)

    def cost(self) -> Cost:
        return Cost(0, 0, self.width, self.width)
