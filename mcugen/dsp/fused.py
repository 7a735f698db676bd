"""float32 a * b + c with one rounding, in numpy: what VFMA.F32 of the part computes."""

from __future__ import annotations

import numpy as np

from mcugen.core.types import Array


@np.errstate(over="ignore", under="ignore", invalid="ignore")
def fma_f32(a: Array | np.float32, b: Array, c: Array) -> Array:
    """float32 arrays -> float32.

    The product of two float32 is exact in float64. The sum is rounded to odd there (Boldo and Melquiond, 2008:
    "Emulation of a FMA and correctly rounded sums"), after which the rounding to float32 is the only one that shows.
    """
    p = np.multiply(a, b, dtype=np.float64)
    q = np.asarray(c, np.float64)
    s = np.asarray(p + q)
    t = s - p
    error = (p - (s - t)) + (q - t)
    # Also false where s is infinite or NaN: then the error is NaN.
    inexact = (error > 0) | (error < 0)
    bits = s.view(np.int64)
    away = (error > 0) == (s > 0)  # towards the exact sum: the magnitude grows or shrinks
    odd = bits + np.where(inexact & (bits & 1 == 0), np.where(away, 1, -1), 0)
    return np.asarray(odd.view(np.float64).astype(np.float32))
