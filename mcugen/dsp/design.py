"""Filters by name: SciPy's designs, with the sampling rate checked. Sections and taps are float64."""

from __future__ import annotations

import numpy as np

from mcugen.core.types import Array
from mcugen.errors import InputError

KINDS = ("lowpass", "highpass", "bandpass", "bandstop")


def _frequencies(where: str, cut: tuple[float, ...], rate: float) -> None:
    if not (np.isfinite(rate) and rate > 0):
        raise InputError(where, f"the sampling rate is {rate}", "give it in samples a second")
    for f in cut:
        if not (np.isfinite(f) and 0 < f < rate / 2):
            hint = f"at {rate:g} samples a second frequencies lie above 0 and below {rate / 2:g} Hz"
            raise InputError(where, f"{f:g} Hz is not possible", hint)


def notch(where: str, frequency: float, quality: float, rate: float) -> Array:
    """Sections (1, 6) of ``scipy.signal.iirnotch``: ``frequency`` in Hz, ``quality`` its ratio to the bandwidth."""
    from scipy import signal  # noqa: PLC0415

    _frequencies(where, (frequency,), rate)
    if not (np.isfinite(quality) and quality > 0):
        raise InputError(where, f"the quality of the notch is {quality}", "a positive number, such as 30")
    if frequency / quality >= rate / 2:
        hint = f"raise the quality above {frequency / (rate / 2):.3g}"
        raise InputError(where, f"a notch of {frequency / quality:g} Hz width is not possible", hint)
    return np.asarray(signal.tf2sos(*signal.iirnotch(frequency, quality, fs=rate)))


def butterworth(where: str, order: int, cut: tuple[float, ...], kind: str, rate: float) -> Array:
    """Sections of ``scipy.signal.butter``; ``cut`` in Hz: one frequency, or the two edges of a band."""
    from scipy import signal  # noqa: PLC0415

    _kind(where, kind, cut)
    _frequencies(where, cut, rate)
    if not 1 <= order <= 24:
        raise InputError(where, f"order {order}", "1 to 24")
    edges = cut[0] if len(cut) == 1 else list(cut)
    return np.asarray(signal.butter(order, edges, kind, fs=rate, output="sos"))


def windowed_fir(where: str, taps: int, cut: tuple[float, ...], kind: str, rate: float) -> Array:
    """Taps of ``scipy.signal.firwin`` (Hamming window); ``cut`` in Hz."""
    from scipy import signal  # noqa: PLC0415

    _kind(where, kind, cut)
    _frequencies(where, cut, rate)
    if taps < 1:
        raise InputError(where, f"{taps} taps", "at least 1")
    if kind in ("highpass", "bandstop") and taps % 2 == 0:
        raise InputError(where, f"a {kind} of {taps} taps has no gain at half the sampling rate", "give an odd number")
    edges = cut[0] if len(cut) == 1 else list(cut)
    return np.asarray(signal.firwin(taps, edges, pass_zero=kind, fs=rate))


def _kind(where: str, kind: str, cut: tuple[float, ...]) -> None:
    if kind not in KINDS:
        raise InputError(where, f"kind {kind!r} is unknown", f"one of {', '.join(KINDS)}")
    edges = 2 if kind.startswith("band") else 1
    if len(cut) != edges:
        raise InputError(where, f"a {kind} has {edges} cut-off frequencies, not {len(cut)}")
    if edges == 2 and not cut[0] < cut[1]:
        raise InputError(where, f"the band {cut[0]:g} to {cut[1]:g} Hz is empty", "the lower edge stands first")
