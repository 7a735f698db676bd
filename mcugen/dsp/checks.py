"""Filters that no device can run: each is an InputError with the number that is wrong and a remedy."""

from __future__ import annotations

import numpy as np

from mcugen.core.types import Array
from mcugen.dsp.gains import MOST_STEPS, poles, rows_of, settle_steps
from mcugen.dsp.source import (
    DcBlock,
    Decimate,
    Extreme,
    FilterSource,
    Fir,
    Iir,
    Median,
    MovingAverage,
    Smooth,
    WeightedAverage,
)
from mcugen.errors import InputError

_MOST_TAPS = 8192
_LEAST_FACTOR = 2.0**-15


def check_filter(op: FilterSource, channels: int) -> None:
    """InputError unless ``op`` can run on a signal of ``channels`` channels."""
    where = str(op.loc)
    if not op.channels:
        raise InputError(where, "the filter has no channel", "name at least one")
    wrong = [c for c in op.channels if not 0 <= c < channels]
    if wrong:
        raise InputError(where, f"channel {wrong[0]} does not exist", f"the signal has channels 0 to {channels - 1}")
    if len(set(op.channels)) < len(op.channels):
        raise InputError(where, "a channel is named twice")
    _check_parameters(op, where)
    if isinstance(op, Decimate) and set(op.channels) != set(range(channels)):
        raise InputError(where, "decimation leaves out some channels", "it takes all of them, or none")


def _check_parameters(op: FilterSource, where: str) -> None:
    match op:
        case Fir():
            _taps(where, op.taps, "taps")
        case WeightedAverage():
            _weights(where, op.weights)
        case Iir():
            check_sections(where, op.sos)
        case MovingAverage() | Extreme():
            _length(where, op.length, 65535)
        case Median():
            _length(where, op.length, 1023)
        case Smooth():
            _factor(where, "alpha", op.alpha, (_LEAST_FACTOR, 1.0))
        case DcBlock():
            _factor(where, "pole", op.pole, (_LEAST_FACTOR, 1.0 - _LEAST_FACTOR))
        case Decimate():
            if op.factor < 1:
                raise InputError(where, f"decimation by {op.factor}", "the factor is 1 or more")
    if isinstance(op, Median) and op.length % 2 == 0:
        raise InputError(where, f"a median of {op.length} samples has no middle", "give an odd length")
    if isinstance(op, Extreme) and op.kind not in ("min", "max"):
        raise InputError(where, f"kind {op.kind!r} is unknown", 'it is "min" or "max"')


def _weights(where: str, weights: Array) -> None:
    _taps(where, weights, "weights")
    if not abs(float(np.sum(weights))) > 1e-9 * float(np.abs(weights).sum()):
        raise InputError(where, "the weights sum to zero", "a weighted average is divided by their sum")


def _taps(where: str, taps: Array, what: str) -> None:
    values = np.asarray(taps, np.float64)
    if values.ndim != 1 or values.size == 0:
        raise InputError(where, f"zero {what}" if values.size == 0 else f"{what} of shape {values.shape}", "one row")
    _finite(where, values, what)
    if values.size > _MOST_TAPS:
        raise InputError(where, f"{values.size} {what}", f"at most {_MOST_TAPS}")
    if not values.any():
        raise InputError(where, f"all {what} are zero")


def _finite(where: str, values: Array, what: str) -> None:
    bad = np.flatnonzero(~np.isfinite(values))
    if bad.size:
        raise InputError(where, f"{what}[{bad[0]}] is {values[bad[0]]}", "coefficients are finite numbers")


def _length(where: str, length: int, most: int) -> None:
    if not 1 <= length <= most:
        raise InputError(where, f"a window of {length} samples", f"1 to {most}")


def _factor(where: str, name: str, value: float, limits: tuple[float, float]) -> None:
    if not (np.isfinite(value) and limits[0] <= value <= limits[1]):
        raise InputError(where, f"{name} is {value}", f"it lies between {limits[0]:.6g} and {limits[1]:.6g}")


def check_sections(where: str, sos: Array) -> None:
    """InputError unless ``sos`` (S, 6) are stable sections of finite numbers."""
    s = np.asarray(sos, np.float64)
    if s.ndim != 2 or s.shape[-1] != 6 or len(s) == 0:
        raise InputError(where, f"sos of shape {s.shape}", "one row b0, b1, b2, a0, a1, a2 for each section")
    _finite(where, s.reshape(-1), "sos")
    if (s[:, 3] == 0.0).any():
        zero = int(np.argmin(np.abs(s[:, 3])))
        raise InputError(where, f"a0 of section {zero + 1} is 0", "divide the row by another a0")
    rows = rows_of(s)
    for i, row in enumerate(rows):
        p = poles(row)[0]
        if not stable(float(row[3]), float(row[4]), 1.0):
            raise InputError(
                where, f"section {i + 1} is unstable: pole {pole_text(p)}", "poles lie inside the unit circle"
            )
    if settle_steps(rows) >= MOST_STEPS:
        p = max((poles(row)[0] for row in rows), key=abs)
        hint = "decimate first, or raise the cut-off: this filter needs more than 300000 samples to settle"
        raise InputError(where, f"a pole too close to the unit circle: {pole_text(p)}", hint)


def stable(a1: float, a2: float, one: float) -> bool:
    """Whether both roots of z^2 + a1 z + a2 lie inside the unit circle; ``one``: what stands for 1 (exact for ints)."""
    return abs(a2) < one and abs(a1) < one + a2


def pole_text(p: complex) -> str:
    """A pole as numbers: place and magnitude."""
    place = f"{p.real:.8g}" if p.imag == 0 else f"{p.real:.8g} +- {abs(p.imag):.8g}i"
    return f"{place}, magnitude {abs(p):.8g}"
