"""DcRemove: a DC blocker."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mcugen.core.op import Names, OpText, StateMember
from mcugen.core.types import Array, DType
from mcugen.dsp.fused import fma_f32
from mcugen.dsp.ops.first_order import STATE, FirstOrderOp, part


@dataclass(frozen=True, slots=True, eq=False)
class DcRemove(FirstOrderOp):
    """``s += (x - last x) - round(factor * s)``, ``y = round(s)`` clamped; s has 14 (int16) or 29 (int32) bits below
    the unit, and ``factor`` is 1 - pole.

    float32: ``y = fma(factor, y, x - last x)`` with the pole for factor.
    """

    kernel: ClassVar[tuple[str, str]] = ("mcg_dc_block_q15_block", "src/mcg_filter_first.c")

    def own_problem(self) -> str:
        slow = not self.kind.is_float and self.factor < 1 << 16
        return FirstOrderOp.own_problem(self) or (f"the factor {self.factor} is too small" if slow else "")

    def filtered(self, x: Array) -> Array:
        if self.kind is DType.F32:
            return self._floats(x)
        bits, y = 14 if self.kind is DType.I16 else 29, np.empty(x.shape, x.dtype)
        for c in range(x.shape[1]):
            s, last, column = 0, 0, x[:, c].tolist()
            for n, v in enumerate(column):
                s = s - part(s, int(self.factor)) + ((v - last) << bits)
                last = v
                out = (s + (1 << (bits - 1))) >> bits
                column[n] = min(max(out, self.kind.min), self.kind.max)
            y[:, c] = column
        return y

    @np.errstate(over="ignore", under="ignore", invalid="ignore")
    def _floats(self, x: Array) -> Array:
        y, s, last = np.empty_like(x), np.zeros(x.shape[1], np.float32), np.zeros(x.shape[1], np.float32)
        factor = np.float32(self.factor)
        for n, row in enumerate(x):
            y[n] = s = fma_f32(factor, s, row - last)
            last = row
        return y

    @property
    def state(self) -> tuple[StateMember, ...]:
        (ctype, size), n = STATE[self.kind], 2 * len(self.channels)
        return (StateMember("memory", ctype, n, n * size, size, "the sum and the last sample, by channel"),)

    def emit(self, prefix: str, args: tuple[str, ...], results: tuple[str, ...], names: Names) -> OpText:
        return self.text_of("dc_block", prefix, args, results, names)
