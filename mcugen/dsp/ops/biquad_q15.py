"""BiquadQ15: second-order sections on int16."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mcugen.core.types import Array, DType
from mcugen.dsp.ops.biquad import BiquadOp, memory_of_inputs, negated


@dataclass(frozen=True, slots=True, eq=False)
class BiquadQ15(BiquadOp):
    """Direct form 1: ``sat16(sum >> (15 - post_shift))`` a section, the sum of five products exact: as
    arm_biquad_cascade_df1_q15."""

    kernel: ClassVar[tuple[str, str]] = ("mcg_biquad_q15_block", "src/mcg_filter_biquad.c")
    words: ClassVar[tuple[int, int]] = (1, 1)

    @property
    def dtype(self) -> DType:
        return DType.I16

    def most_shift(self) -> int:
        """Up to here CMSIS-DSP gives the same bits: its shifted sum is cut to 32 bits before it saturates."""
        return 12

    @property
    def narrow(self) -> bool:
        """Whether no sum can leave int32: then the kernel keeps 32 bits, with the same result."""
        return int(np.abs(self.coefficients.astype(np.int64)).sum(axis=1).max()) <= 65535

    def filtered(self, x: Array) -> Array:
        y = x.astype(np.int64)
        for row, post in zip(self.coefficients.tolist(), self.post_shift, strict=True):
            for c in range(y.shape[1]):
                y[:, c] = _section(memory_of_inputs(y[:, c], row[:3]), -row[3], -row[4], 15 - post)
        return y.astype(np.int16)

    def words_of(self) -> Array:
        words = np.zeros((len(self.coefficients), 4), np.uint32)
        for word, row, post in zip(words, negated(self.coefficients).tolist(), self.post_shift, strict=True):
            b0, b1, b2, a1, a2 = (v & 0xFFFF for v in row)
            word[:] = [b1 | b0 << 16, b2 | b1 << 16, a2 | a1 << 16, 15 - post]
        return words

    def function(self) -> str:
        return "mcg_biquad_q15_narrow_block" if self.narrow else self.kernel[0]


def _section(sums: list[int], a1: int, a2: int, shift: int) -> list[int]:
    y1 = y2 = 0
    for n, partial in enumerate(sums):
        y1, y2 = (partial + a1 * y1 + a2 * y2) >> shift, y1
        y1 = -32768 if y1 < -32768 else 32767 if y1 > 32767 else y1
        sums[n] = y1
    return sums
