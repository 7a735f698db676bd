"""BiquadF64: second-order sections on float32 samples, computed and remembered in float64."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mcugen.core.op import StateMember
from mcugen.core.types import Array, DType
from mcugen.dsp.ops.base import member
from mcugen.dsp.ops.biquad import BiquadOp, negated


@dataclass(frozen=True, slots=True, eq=False)
class BiquadF64(BiquadOp):
    """Direct form 2 transposed, each product and each sum rounded to float64; the result of the last section is
    rounded to float32. ``coefficients`` are float64; ``post_shift`` is all zeros.

    ``y = b0 * x + d1``, ``d1 = (b1 * x + d2) + -a1 * y``, ``d2 = b2 * x + -a2 * y``.
    """

    kernel: ClassVar[tuple[str, str]] = ("mcg_biquad_f64_block", "src/mcg_filter_biquad_f64.c")
    words: ClassVar[tuple[int, int]] = (0, 2)

    @property
    def dtype(self) -> DType:
        return DType.F32

    def most_shift(self) -> int:
        return 0

    def own_problem(self) -> str:
        c = self.coefficients
        if c.dtype != np.float64 or c.ndim != 2 or c.shape[1] != 5 or len(c) == 0 or any(self.post_shift):
            return f"coefficients {c.dtype} {c.shape}, post shifts {self.post_shift}"
        return "" if np.isfinite(c).all() else "coefficients that are not finite"

    @np.errstate(over="ignore", under="ignore", invalid="ignore")
    def filtered(self, x: Array) -> Array:
        """Sample by sample, all channels at once."""
        rows = negated(self.coefficients)
        d1, d2 = np.zeros((2, len(rows), x.shape[1]))
        y = np.zeros_like(x)
        for t in range(len(x)):
            v = x[t].astype(np.float64)
            for s, (b0, b1, b2, a1, a2) in enumerate(rows):
                out = b0 * v + d1[s]
                d1[s] = (b1 * v + d2[s]) + a1 * out
                d2[s] = b2 * v + a2 * out
                v = out
            y[t] = v.astype(np.float32)
        return y

    def words_of(self) -> Array:
        return negated(self.coefficients)

    @property
    def state(self) -> tuple[StateMember, ...]:
        count = len(self.channels) * self._state_words
        return (member("sections", DType.F64, count, "by channel: the memory of each section"),)
