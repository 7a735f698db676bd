"""A ``[[filter]]`` table to the source op it means. SciPy designs; what it cannot design is said in one line."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from scipy import signal as scipy_signal

from mcugen.core.types import Array, Loc
from mcugen.dsp import source
from mcugen.errors import InputError
from mcugen.frontends.pipeline import schema

#: Designs by SciPy's second-order sections: the arguments beside order, type and cutoff.
_PASSES: Mapping[str, tuple[str, ...]] = {
    "butter": (),
    "bessel": (),
    "cheby1": ("ripple",),
    "cheby2": ("attenuation",),
    "ellip": ("ripple", "attenuation"),
}


def filter_op(
    table: schema.FilterTable, rate: float, channels: tuple[int, ...], ends: tuple[str, str], where: str
) -> source.FilterSource:
    """The op that the table means at ``rate`` samples a second, on the ``channels`` of value ``ends[0]``.

    InputError names the place where the table asks for what cannot be.
    """
    kind: str = table.kind  # type: ignore[attr-defined]
    place = f"{where}: {kind}"
    make: Callable[..., source.FilterSource]
    make, fields = _MAKERS[kind](table, rate, place)
    return make((ends[0],), (ends[1],), Loc(where.split(":", 1)[0], place.split(": ", 1)[1]), channels, **fields)


def _designed(t: Any, rate: float, place: str) -> tuple[Any, dict[str, Any]]:
    edges = _edges(t, rate, place)
    design = getattr(scipy_signal, t.kind)
    levels = [getattr(t, name) for name in _PASSES[t.kind]]
    sos = _by_scipy(place, lambda: design(t.order, *levels, edges, btype=t.type, fs=rate, output="sos"))
    return source.Iir, {"sos": _finite(sos, place)}


def _edges(t: Any, rate: float, place: str) -> float | tuple[float, float]:
    """Cutoff frequencies that the rate can carry: one, or two that rise."""
    pair = t.type in ("bandpass", "bandstop")
    given = t.cutoff if isinstance(t.cutoff, tuple) else (t.cutoff,)
    if len(given) != (2 if pair else 1):
        expected = "two frequencies, [low, high]" if pair else "one frequency"
        raise InputError(f"{place}: cutoff", f"{t.type} needs {expected}")
    for f in given:
        _below_half(f, rate, f"{place}: cutoff")
    if pair and not given[0] < given[1]:
        raise InputError(f"{place}: cutoff", f"{given[0]:g} to {given[1]:g} Hz is no band", "write [low, high]")
    return (given[0], given[1]) if pair else given[0]


def _below_half(f: float, rate: float, place: str) -> None:
    if not 0 < f < rate / 2:
        hint = f"sample faster, or choose a frequency between 0 and {rate / 2:g} Hz"
        raise InputError(place, f"{f:g} Hz cannot be told at {rate:g} samples a second", hint)


def _resonance(t: Any, rate: float, place: str) -> tuple[Any, dict[str, Any]]:
    _below_half(t.frequency, rate, f"{place}: frequency")
    if not t.frequency / t.quality < rate / 2:
        what = f"{t.quality:g} makes it {t.frequency / t.quality:g} Hz wide, at {rate:g} samples a second"
        raise InputError(f"{place}: quality", what, f"take more than {2 * t.frequency / rate:.4g}")
    design = scipy_signal.iirnotch if t.kind == "notch" else scipy_signal.iirpeak
    b, a = _by_scipy(place, lambda: design(t.frequency, t.quality, fs=rate))
    return source.Iir, {"sos": _sections(b, a, place)}


def _given_sos(t: schema.Sos, rate: float, place: str) -> tuple[Any, dict[str, Any]]:
    for i, row in enumerate(t.sos):
        if len(row) != 6:
            raise InputError(f"{place}: sos: section {i + 1}", f"has {len(row)} numbers", "b0 b1 b2 a0 a1 a2")
        if row[3] == 0:
            raise InputError(f"{place}: sos: section {i + 1}", "a0 is 0: nothing can be divided by it")
    return source.Iir, {"sos": _finite(np.array(t.sos, np.float64), place)}


def _given_ba(t: schema.Ba, rate: float, place: str) -> tuple[Any, dict[str, Any]]:
    b, a = _finite(np.array(t.b), f"{place}: b"), _finite(np.array(t.a), f"{place}: a")
    if a[0] == 0:
        raise InputError(f"{place}: a", "starts with 0: nothing can be divided by it")
    if len(a) == 1:
        return source.Fir, {"taps": b / a[0]}
    return source.Iir, {"sos": _sections(b, a, place)}


def _sections(b: Array, a: Array, place: str) -> Array:
    """Sections of b / a, in powers of the delay. SciPy drops a delay, zeros at the start of b: it is put back."""
    delay = int(np.argmax(b != 0)) if b.any() else 0
    found = _finite(_by_scipy(place, lambda: scipy_signal.tf2sos(b[delay:], a)), place)
    rows = [list(row) for row in found]
    while delay:
        row = next((r for r in rows if r[2] == 0.0), None)
        if row is None:
            rows.append(row := [1.0, 0.0, 0.0, 1.0, 0.0, 0.0])
        row[:3] = [0.0, *row[:2]]
        delay -= 1
    return np.array(rows)


def _window_design(t: schema.FirWin, rate: float, place: str) -> tuple[Any, dict[str, Any]]:
    edges = _edges(t, rate, place)
    words = [isinstance(w, str) for w in t.window] if isinstance(t.window, tuple) else [True]
    if words[:1] != [True] or any(words[1:]):
        raise InputError(f"{place}: window", "is no name with its parameters", 'for example ["kaiser", 8.0]')
    taps = _by_scipy(place, lambda: scipy_signal.firwin(t.length, edges, window=t.window, pass_zero=t.type, fs=rate))
    return source.Fir, {"taps": _finite(taps, place)}


def _taps(t: schema.Taps, rate: float, place: str) -> tuple[Any, dict[str, Any]]:
    if not t.taps:
        raise InputError(f"{place}: taps", "there are none", "give at least one")
    return source.Fir, {"taps": _finite(np.array(t.taps), f"{place}: taps")}


def _weights(t: schema.WeightedAverageTable, rate: float, place: str) -> tuple[Any, dict[str, Any]]:
    weights = _finite(np.array(t.weights), f"{place}: weights")
    if weights.sum() == 0:
        raise InputError(f"{place}: weights", "their sum is 0: there is no average")
    return source.WeightedAverage, {"weights": weights}


def _smooth(t: schema.SmoothTable, rate: float, place: str) -> tuple[Any, dict[str, Any]]:
    if (t.alpha is None) == (t.time_constant is None):
        raise InputError(place, "needs either alpha or time_constant")
    alpha = t.alpha if t.time_constant is None else -math.expm1(-1.0 / (rate * t.time_constant))
    return source.Smooth, {"alpha": alpha}


def _dc_block(t: schema.DcBlockTable, rate: float, place: str) -> tuple[Any, dict[str, Any]]:
    if (t.pole is None) == (t.cutoff is None):
        raise InputError(place, "needs either pole or cutoff")
    if t.cutoff is not None:
        _below_half(t.cutoff, rate, f"{place}: cutoff")
    pole = t.pole if t.cutoff is None else math.exp(-2.0 * math.pi * t.cutoff / rate)
    return source.DcBlock, {"pole": pole}


def _median(t: schema.MedianTable, rate: float, place: str) -> tuple[Any, dict[str, Any]]:
    if t.length % 2 == 0:
        raise InputError(f"{place}: length", f"{t.length} is even: no sample lies in the middle", "use an odd length")
    return source.Median, {"length": t.length}


def _by_scipy(place: str, design: Callable[[], Any]) -> Any:
    """What SciPy designs; its complaint as ours."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            return design()
    except (ValueError, ZeroDivisionError, OverflowError, FloatingPointError, np.linalg.LinAlgError, Warning) as e:
        raise InputError(place, f"SciPy cannot design it: {' '.join(str(e).split())[:120]}") from None


def _finite(values: Array, place: str) -> Array:
    a = np.asarray(values, np.float64)
    if not np.isfinite(a).all():
        raise InputError(place, "a coefficient is NaN or infinite")
    return a


_Maker = Callable[[Any, float, str], tuple[Any, dict[str, Any]]]
_MAKERS: Mapping[str, _Maker] = {
    **dict.fromkeys(_PASSES, _designed),
    "notch": _resonance,
    "peak": _resonance,
    "sos": _given_sos,
    "ba": _given_ba,
    "firwin": _window_design,
    "taps": _taps,
    "moving_average": lambda t, rate, place: (source.MovingAverage, {"length": t.length}),
    "weighted_average": _weights,
    "median": _median,
    "min": lambda t, rate, place: (source.Extreme, {"length": t.length, "kind": t.kind}),
    "max": lambda t, rate, place: (source.Extreme, {"length": t.length, "kind": t.kind}),
    "smooth": _smooth,
    "dc_block": _dc_block,
    "decimate": lambda t, rate, place: (source.Decimate, {"factor": t.factor}),
}
