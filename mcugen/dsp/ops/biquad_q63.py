"""BiquadQ63: second-order sections on int32 whose results are remembered in 64 bits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mcugen.core.types import Array, DType
from mcugen.dsp.ops.biquad import BiquadOp, memory_of_inputs, negated

_WORD = 1 << 32


@dataclass(frozen=True, slots=True, eq=False)
class BiquadQ63(BiquadOp):
    """Direct form 1 with a memory of 64 bits: as arm_biquad_cas_df1_32x64_q31, for poles close to 1.

    ``y64 = sum << (1 + post_shift)``, of which the upper word goes on; a product of y64 is taken without its lowest 32
    bits. Nothing saturates.
    """

    kernel: ClassVar[tuple[str, str]] = ("mcg_biquad_q63_block", "src/mcg_filter_biquad.c")
    words: ClassVar[tuple[int, int]] = (2, 4)

    @property
    def dtype(self) -> DType:
        return DType.I32

    def most_shift(self) -> int:
        return 30

    def filtered(self, x: Array) -> Array:
        y = x.astype(np.int64)
        for row, post in zip(self.coefficients.tolist(), self.post_shift, strict=True):
            for c in range(y.shape[1]):
                y[:, c] = _section(memory_of_inputs(y[:, c], row[:3]), -row[3], -row[4], 1 + post)
        return y.astype(np.int32)

    def words_of(self) -> Array:
        shift = np.array([1 + p for p in self.post_shift], np.int32)
        return np.column_stack([negated(self.coefficients), shift])


def _section(sums: list[int], a1: int, a2: int, shift: int) -> list[int]:
    y1 = y2 = 0
    for n, partial in enumerate(sums):
        total = partial + ((y1 * a1) >> 32) + ((y2 * a2) >> 32)
        total = (total << shift) & (_WORD * _WORD - 1)
        y1, y2 = total - ((total >> 63) << 64), y1
        sums[n] = y1 >> 32
    return sums
