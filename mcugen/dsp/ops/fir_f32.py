"""FirF32: a FIR filter on float32."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mcugen.core.types import Array, DType
from mcugen.dsp.fused import fma_f32
from mcugen.dsp.ops.fir_line import FirOp, shape_text


@dataclass(frozen=True, slots=True, eq=False)
class FirF32(FirOp):
    """``y = fma(taps[k], x[n - k], y)`` from y = 0, the oldest sample first: one rounding a tap."""

    kernel: ClassVar[tuple[str, str]] = ("mcg_fir_f32_block", "src/mcg_filter_fir.c")

    @property
    def dtype(self) -> DType:
        return DType.F32

    def own_problem(self) -> str:
        # super() without arguments does not know the class that slots made.
        return FirOp.own_problem(self) or ("" if np.isfinite(self.taps).all() else "taps that are not finite")

    def filtered(self, x: Array) -> Array:
        n = self.taps.size
        line = np.concatenate([np.zeros((n - 1, x.shape[1]), np.float32), x])
        total = np.zeros(x.shape, np.float32)
        for k in range(n - 1, -1, -1):
            start = n - 1 - k
            total = fma_f32(self.taps[k], line[start : start + len(x)], total)
        return total

    def shape(self) -> str:
        return shape_text(self._padded, self._room, False)
