"""BiquadF32: second-order sections on float32."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mcugen.core.types import Array, DType
from mcugen.dsp.fused import fma_f32
from mcugen.dsp.ops.biquad import BiquadOp, negated


@dataclass(frozen=True, slots=True, eq=False)
class BiquadF32(BiquadOp):
    """Direct form 2 transposed; ``post_shift`` is all zeros.

    ``y = fma(b0, x, d1)``, ``d1 = fma(-a1, y, fma(b1, x, d2))``, ``d2 = fma(-a2, y, b2 * x)``.
    """

    kernel: ClassVar[tuple[str, str]] = ("mcg_biquad_f32_block", "src/mcg_filter_biquad.c")
    words: ClassVar[tuple[int, int]] = (0, 2)

    @property
    def dtype(self) -> DType:
        return DType.F32

    def most_shift(self) -> int:
        return 0

    def own_problem(self) -> str:
        finite = bool(np.isfinite(self.coefficients).all())
        return BiquadOp.own_problem(self) or ("" if finite else "coefficients that are not finite")

    @np.errstate(over="ignore", under="ignore", invalid="ignore")
    def filtered(self, x: Array) -> Array:
        """All sections at once: at step t section s takes the result that section s - 1 gave at step t - 1."""
        count, (b0, b1, b2, a1, a2) = len(self.coefficients), negated(self.coefficients).T[:, :, None]
        steps, channels = len(x), x.shape[1]
        y, values = np.zeros_like(x), np.zeros((count + 1, channels), np.float32)
        d1, d2 = np.zeros((2, count, channels), np.float32)
        for t in range(steps + count - 1):
            values[0] = x[t] if t < steps else 0
            busy = slice(max(0, t - steps + 1), min(count, t + 1))  # the others have no sample, and keep their memory
            v = values[:-1][busy].copy()
            out = fma_f32(b0[busy], v, d1[busy])
            d1[busy] = fma_f32(a1[busy], out, fma_f32(b1[busy], v, d2[busy]))
            d2[busy] = fma_f32(a2[busy], out, b2[busy] * v)
            values[1:][busy] = out
            if t >= count - 1:
                y[t - count + 1] = values[count]
        return y

    def words_of(self) -> Array:
        return negated(self.coefficients)
