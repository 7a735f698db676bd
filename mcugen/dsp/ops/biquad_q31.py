"""BiquadQ31: second-order sections on int32."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mcugen.core.types import Array, DType
from mcugen.dsp.ops.biquad import BiquadOp, memory_of_inputs, negated


@dataclass(frozen=True, slots=True, eq=False)
class BiquadQ31(BiquadOp):
    """Direct form 1: the low word of ``sum >> (31 - post_shift)`` a section, the sum modulo 2^64: as
    arm_biquad_cascade_df1_q31. Nothing saturates: the lowering proves that the result fits."""

    kernel: ClassVar[tuple[str, str]] = ("mcg_biquad_q31_block", "src/mcg_filter_biquad.c")
    words: ClassVar[tuple[int, int]] = (2, 2)

    @property
    def dtype(self) -> DType:
        return DType.I32

    def most_shift(self) -> int:
        return 30

    def filtered(self, x: Array) -> Array:
        y = x.astype(np.int64)
        for row, post in zip(self.coefficients.tolist(), self.post_shift, strict=True):
            for c in range(y.shape[1]):
                y[:, c] = _section(memory_of_inputs(y[:, c], row[:3]), -row[3], -row[4], 31 - post)
        return y.astype(np.int32)

    def words_of(self) -> Array:
        shift = np.array([31 - p for p in self.post_shift], np.int32)
        return np.column_stack([negated(self.coefficients), shift])


def _section(sums: list[int], a1: int, a2: int, shift: int) -> list[int]:
    y1 = y2 = 0
    for n, partial in enumerate(sums):
        # Bits shift .. shift + 31 of the sum, which lie below 2^63: what wraps above does not show.
        low = ((partial + a1 * y1 + a2 * y2) >> shift) & 0xFFFFFFFF
        y1, y2 = low - ((low & 0x80000000) << 1), y1
        sums[n] = y1
    return sums
