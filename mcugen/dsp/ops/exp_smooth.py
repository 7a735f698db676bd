"""ExpSmooth: exponential smoothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mcugen.core.op import Names, OpText, StateMember
from mcugen.core.types import Array, DType
from mcugen.dsp.fused import fma_f32
from mcugen.dsp.ops.first_order import STATE, FirstOrderOp, part


@dataclass(frozen=True, slots=True, eq=False)
class ExpSmooth(FirstOrderOp):
    """``s += round(factor * (x - s))``, ``y = round(s)``, ties up; s has 15 (int16) or 30 (int32) bits below the unit.

    float32: ``y = fma(factor, x - y, y)``.
    """

    kernel: ClassVar[tuple[str, str]] = ("mcg_smooth_q15_block", "src/mcg_filter_first.c")

    def filtered(self, x: Array) -> Array:
        if self.kind is DType.F32:
            return self._floats(x)
        bits, y = 15 if self.kind is DType.I16 else 30, np.empty(x.shape, x.dtype)
        for c in range(x.shape[1]):
            s, column = 0, x[:, c].tolist()
            for n, v in enumerate(column):
                s += part((v << bits) - s, int(self.factor))
                column[n] = (s + (1 << (bits - 1))) >> bits
            y[:, c] = column
        return y

    @np.errstate(over="ignore", under="ignore", invalid="ignore")
    def _floats(self, x: Array) -> Array:
        y, s, factor = np.empty_like(x), np.zeros(x.shape[1], np.float32), np.float32(self.factor)
        for n, row in enumerate(x):
            y[n] = s = fma_f32(factor, row - s, s)
        return y

    @property
    def state(self) -> tuple[StateMember, ...]:
        (ctype, size), n = STATE[self.kind], len(self.channels)
        return (StateMember("memory", ctype, n, n * size, size, "the smoothed value, by channel"),)

    def emit(self, prefix: str, args: tuple[str, ...], results: tuple[str, ...], names: Names) -> OpText:
        return self.text_of("smooth", prefix, args, results, names)
