"""What a linear filter does to the size of signals: impulse responses, L1, L2 and L-infinity gains, poles.

Rows of sections are (S, 5): b0, b1, b2, a1, a2 in SciPy's signs, a0 being 1.
"""

from __future__ import annotations

from math import ceil, inf, log

import numpy as np

from mcugen.core.types import Array

#: An impulse response is cut where the slowest pole has decayed to this.
_DECAYED = 1e-10
#: No longer response is computed: poles above 0.9999 or so.
MOST_STEPS = 300_000
_GRID = 4096


def rows_of(sos: Array) -> Array:
    """(S, 6) in SciPy's convention -> (S, 5), divided by a0."""
    s = np.asarray(sos, np.float64)
    return np.asarray(s[:, [0, 1, 2, 4, 5]] / s[:, 3:4])


def poles(row: Array) -> tuple[complex, complex]:
    """The poles of one section: of z^2 + a1 z + a2, the one of larger magnitude first."""
    found = sorted((complex(p) for p in np.roots([1.0, float(row[3]), float(row[4])])), key=lambda p: -abs(p))
    return found[0], found[1]


def radius(rows: Array) -> float:
    """The largest magnitude of a pole."""
    return max(abs(poles(row)[0]) for row in rows)


def settle_steps(rows: Array, rest: float = _DECAYED) -> int:
    """Steps until what the slowest pole holds has decayed to ``rest``, MOST_STEPS at most."""
    r = radius(rows)
    if r <= 0.0:
        return 2 * len(rows) + 1
    # Equal poles decay as n^k r^n: some steps more for each section.
    return MOST_STEPS if r >= 1.0 else min(MOST_STEPS, ceil(log(rest) / log(r) * (1 + 0.25 * (len(rows) - 1))) + 8)


def run_rows(rows: Array, x: list[float]) -> list[float]:
    """Samples through sections in float64, direct form 2 transposed."""
    y = list(x)
    for b0, b1, b2, a1, a2 in np.asarray(rows, np.float64).tolist():
        d1 = d2 = 0.0
        for n, v in enumerate(y):
            out = b0 * v + d1
            d1 = b1 * v - a1 * out + d2
            d2 = b2 * v - a2 * out
            y[n] = out
    return y


def impulse(rows: Array, steps: int) -> Array:
    """(steps,) response of sections to one sample of 1."""
    return np.array(run_rows(rows, [1.0, *([0.0] * (steps - 1))]))


def l1(response: Array) -> float:
    """The largest ``|output|`` for inputs of at most 1."""
    return float(np.abs(response).sum())


def l2(response: Array) -> float:
    """The standard deviation of the output for white noise of deviation 1."""
    return float(np.sqrt(np.square(response).sum()))


def loudest_of_rows(rows: Array) -> tuple[float, float]:
    """The largest gain for a sine, of sections, and where: radians a sample; on a grid denser near the lowest."""
    half = np.concatenate([np.linspace(0, np.pi, _GRID), np.geomspace(1e-6, np.pi, _GRID)])
    angles = np.concatenate([half, [abs(np.angle(p)) for row in rows for p in poles(row)]])
    z = np.exp(-1j * angles)
    total = np.ones_like(z)
    with np.errstate(divide="ignore", invalid="ignore"):
        for b0, b1, b2, a1, a2 in np.asarray(rows, np.float64):
            total = total * (b0 + z * (b1 + z * b2)) / (1.0 + z * (a1 + z * a2))
    gains = np.nan_to_num(np.abs(total), nan=0.0, posinf=inf)
    at = int(gains.argmax())
    return float(gains[at]), float(angles[at])


def loudest_of_taps(taps: Array) -> tuple[float, float]:
    """The same of a FIR filter."""
    size = max(_GRID, 4 * len(taps))
    gains = np.abs(np.fft.rfft(np.asarray(taps, np.float64), size))
    at = int(gains.argmax())
    return float(gains[at]), 2.0 * np.pi * at / size
