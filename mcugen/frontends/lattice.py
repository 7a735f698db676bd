"""Scales from data: the steps in which a sensor counts, found in the values that it gave.

A lattice is ``scale * count + offset`` with whole counts. It is accepted if it gives every value back, to the last
places of the number format: text such as 0.3 is not the double that 0.1 * 3 gives, and both come from one sensor.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, floor, frexp, isfinite, ldexp, log10

import numpy as np

from mcugen.core.types import Array
from mcugen.trees.signals import Signal

#: Last places that a value may differ from its lattice point: two roundings of the map and one of the text.
_PLACES = 2.0
#: Where it may differ more: last places of the largest value, and parts of a step. Kelvin less 273.15 has the roundings
#: of 273.15, which are many last places of what is left.
_BLUR_PLACES, _BLUR = 64.0, 1e-9
#: Counts per step that lie between the two nearest values, at most, for a step that is no power of 10 or 2.
_SPLITS = 24
#: Distinct values below which a step that is no power of 10 or 2 would be chance.
_FEW = 4


@dataclass(frozen=True, slots=True)
class Span:
    """The counts that data may have, both ends included."""

    low: int
    high: int

    @property
    def size(self) -> int:
        """Steps from end to end."""
        return self.high - self.low


def find_lattice(values: Array, span: Span) -> Signal | None:
    """The coarsest lattice through distinct ascending ``values`` whose counts lie in ``span``; None if there is none.

    Without an offset first; powers of 10 and of 2 first, then steps from the differences of the values. Values
    that are all float32 numbers may also be a lattice in float32 arithmetic (Signal.single).
    """
    singles = bool((values.astype(np.float32) == values).all()) if np.abs(values).max() < 3e38 else False
    for single in (False, True) if singles else (False,):
        scales = [*_powers(values, span), *_steps(values, span, single)]
        if single:
            scales = [s for s in scales if 0 < float(np.float32(s)) < np.inf]
        for fitted in (_plain, _shifted):
            for scale in scales:
                signal = fitted(values, span, scale, single)
                if signal is not None:
                    return signal
    return None


def power_of_two(values: Array, span: Span) -> Signal:
    """The finest power of two that holds all values; with an offset where that saves two bits or more."""
    low, high = float(values[0]), float(values[-1])
    plain = max(_exponent(high, span.high), _exponent(-low, -span.low))
    centre = _exponent(high - low, span.size - 2)
    if plain <= centre + 1:
        return Signal(ldexp(1.0, plain))
    while True:
        scale = ldexp(1.0, centre)
        offset = _offset(values, span, scale)
        if offset is not None:
            return Signal(scale, offset)
        centre += 1


def _exponent(value: float, count: int) -> int:
    """The least e with ``value <= 2**e * count``; value <= 0 needs nothing, and count <= 0 can hold nothing."""
    if value <= 0:
        return -1074
    if count <= 0:
        return 1025
    mantissa, e = frexp(value / count)
    return max(e - 1 if mantissa == 0.5 else e, -1074)


def _powers(values: Array, span: Span) -> list[float]:
    """Powers of 10 and 2, descending, from 1 (from more, if the values are whole) to the finest that the span holds."""
    finest = (float(values[-1]) - float(values[0])) / span.size
    top = float(np.abs(values).max()) if (values == np.rint(values)).all() else 1.0
    tens = [float(f"1e{k}") for k in range(floor(log10(finest)), ceil(log10(top)) + 1)]
    twos = [ldexp(1.0, k) for k in range(frexp(finest)[1] - 1, frexp(top)[1] + 1)]
    return sorted((s for s in {*tens, *twos} if finest * (1 - 1e-12) <= s <= top), reverse=True)


def _steps(values: Array, span: Span, single: bool) -> list[float]:
    """Parts of the smallest difference, each made exact by the widest one."""
    if values.size < _FEW:
        return []
    wide, near = float(values[-1]) - float(values[0]), float(np.diff(values).min())
    unit = _last_place(values, single)
    if near < 16 * unit:
        return []
    out: list[float] = []
    differences = values - values[0]
    for parts in range(1, _SPLITS + 1):
        count = round(wide / (near / parts))
        # The smallest difference is blurred by roundings, the more so the more steps there are to the widest one.
        slack = ceil(count * 4 * unit / near) + 1
        if count > span.size + slack or slack > 64:
            break
        for n in range(max(count - slack, 1), min(count + slack, span.size) + 1):
            steps = differences * (n / wide)
            if (np.abs(steps - np.rint(steps)) * (wide / n) <= 8 * unit).all():
                out += _spellings(wide / n, 8 * unit / n, values)
        if out:
            break
    return out


def _spellings(step: float, blur: float, values: Array) -> list[float]:
    """``step`` to within ``blur``: the shortest decimals, then doubles that divide the largest value evenly."""
    short = {float(f"{step:.{d}g}") for d in range(1, 17)}
    top = float(values[np.argmax(np.abs(values))])
    count = round(top / step)
    exact = [top / count] if count else []
    near = sorted((s for s in short if abs(s - step) <= blur), key=lambda s: len(repr(s)))
    ulps = [float(k * np.spacing(step) + step) for k in (0, 1, -1, 2, -2)]
    return [abs(s) for s in [*near, *exact, *ulps]]


def _plain(values: Array, span: Span, scale: float, single: bool) -> Signal | None:
    """The lattice of multiples of ``scale``, if all values are on it and in the span."""
    counts = np.rint(values / scale)
    signal = Signal(scale, 0.0, None, single)
    inside = span.low <= counts[0] and counts[-1] <= span.high
    return signal if inside and _close(values, counts, signal) else None


def _shifted(values: Array, span: Span, scale: float, single: bool) -> Signal | None:
    """A lattice of this scale with an offset, if all values are on it and in the span."""
    steps = (values - values[0]) / scale
    # Values that are no whole steps apart have no offset either: a cheap test before the search for one.
    blur = _BLUR_PLACES * _last_place(values, single) / scale
    if steps[-1] > span.size + 1 or (np.abs(steps - np.rint(steps)) > min(blur, 0.25)).any():
        return None
    for offset in _offsets(values, span, scale, single):
        signal = Signal(scale, offset, None, single)
        if _close(values, np.rint((values - offset) / scale), signal):
            return signal
    return None


def _close(values: Array, counts: Array, signal: Signal) -> bool:
    unit = np.spacing(np.maximum(np.abs(values), abs(signal.offset)).astype(np.float32 if signal.single else float))
    assert signal.scale is not None
    # A step as fine as the last place would fit anything.
    blur = min(_BLUR * abs(signal.scale), _BLUR_PLACES * _last_place(values, signal.single))
    slack = np.clip(_PLACES * unit, blur, abs(signal.scale) / 8)
    return counts[0] != counts[-1] and bool((np.abs(signal.value(counts) - values) <= slack).all())


def _last_place(values: Array, single: bool) -> float:
    top = np.abs(values).max()
    return float(np.spacing(np.float32(top) if single else top))


def _offsets(values: Array, span: Span, scale: float, single: bool) -> list[float]:
    """Offsets to try: a round multiple of the scale, and the roundest number of the lattice that the values are on."""
    out = []
    multiple = _offset(values, span, scale)
    if multiple is not None:
        out.append(multiple)
    # Every lattice point from which all counts fit, as far as they are few; the one nearest to the middle counts most.
    first, last = values[-1] - scale * span.high, values[0] - scale * span.low
    middle = (values[0] - scale * span.low + values[-1] - scale * span.high) / 2
    reach = min(round((last - first) / (2 * scale)) + 1, 1 << 15)
    points = values[0] + scale * (np.arange(-reach, reach + 1) + round((middle - values[0]) / scale))
    points = points[(points >= first - scale / 2) & (points <= last + scale / 2)]
    blur = 8 * max(_last_place(values, single), _last_place(points, single)) if points.size else 0.0
    for digits in range(-2, 13):
        rounded = np.round(points, digits)
        good = rounded[np.abs(rounded - points) <= blur]
        if good.size:
            out.append(float(good[np.argmin(np.abs(good - middle))]))
            break
    else:
        if points.size:
            out.append(float(points[np.argmin(np.abs(points - middle))]))
    return [b for b in out if isfinite(b) and _inside(values, span, scale, b)]


def _offset(values: Array, span: Span, scale: float) -> float | None:
    """A multiple of the scale, as round as possible, that puts the counts into the span with room on both sides.

    In steps of 10 for a decimal scale, else of 2. Without room if there is none.
    """
    base = 2 if frexp(scale)[0] == 0.5 and scale != 1.0 else 10
    middle = (float(values[0]) + float(values[-1])) / 2 - scale * (span.low + span.high + 1) / 2
    inner = Span(span.low + span.size // 16, span.high - span.size // 16)
    for room in (inner, span):
        for power in range(ceil(log10(span.size) / log10(base)) + 1, -1, -1):
            step = scale * base**power
            offset = float(f"{round(middle / step) * step:.15g}") if base == 10 else round(middle / step) * step
            if isfinite(offset) and _inside(values, room, scale, offset):
                return offset
    return None


def _inside(values: Array, span: Span, scale: float, offset: float) -> bool:
    low, high = round((float(values[0]) - offset) / scale), round((float(values[-1]) - offset) / scale)
    return span.low <= low and high <= span.high
