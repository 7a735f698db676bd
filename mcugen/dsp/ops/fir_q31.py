"""FirQ31: a FIR filter on int32 with int32 taps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mcugen.core.types import Array, DType
from mcugen.dsp.ops.base import low_word
from mcugen.dsp.ops.fir_line import FirOp, shape_text


@dataclass(frozen=True, slots=True, eq=False)
class FirQ31(FirOp):
    """The low word of ``(sum of taps[k] * x[n - k]) >> 31``, sum modulo 2^64: as CMSIS-DSP's arm_fir_q31.

    Nothing saturates: the lowering proves that the result fits.
    """

    kernel: ClassVar[tuple[str, str]] = ("mcg_fir_q31_block", "src/mcg_filter_fir.c")

    @property
    def dtype(self) -> DType:
        return DType.I32

    @np.errstate(over="ignore")
    def filtered(self, x: Array) -> Array:
        total = np.zeros(x.shape, np.int64)
        for k, tap in enumerate(self.taps[: len(x)].astype(np.int64)):
            total[k:] += tap * x[: len(x) - k].astype(np.int64)
        return low_word(total >> 31)

    def shape(self) -> str:
        return shape_text(self._padded, self._room, False)
