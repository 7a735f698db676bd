"""FirQ15: a FIR filter on int16 with int16 taps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mcugen.core.types import Array, DType
from mcugen.dsp.ops.base import saturate
from mcugen.dsp.ops.fir_line import FirOp, shape_text, taps_sum


@dataclass(frozen=True, slots=True, eq=False)
class FirQ15(FirOp):
    """``sat16((sum of taps[k] * x[n - k]) >> 15)``: the sum is exact in 64 bits, as CMSIS-DSP's arm_fir_q15."""

    kernel: ClassVar[tuple[str, str]] = ("mcg_fir_q15_block", "src/mcg_filter_fir.c")

    @property
    def dtype(self) -> DType:
        return DType.I16

    @property
    def narrow(self) -> bool:
        """Whether no sum can leave int32: then the kernel keeps 32 bits, with the same result."""
        return taps_sum(self.taps) <= 65535

    def filtered(self, x: Array) -> Array:
        total = np.zeros(x.shape, np.int64)
        for k, tap in enumerate(self.taps[: len(x)].tolist()):
            total[k:] += tap * x[: len(x) - k].astype(np.int64)
        return saturate(total >> 15, DType.I16)

    def shape(self) -> str:
        return shape_text(self._padded, self._room, self.narrow)
