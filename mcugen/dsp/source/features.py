"""Features of a window of samples, as the user means them: in float64, from real values."""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from mcugen.core.op import SourceOp
from mcugen.core.passes import value_type
from mcugen.core.types import Array, TensorType
from mcugen.errors import InputError, InternalError

#: The longest window. Positions in it are signed 16-bit factors of the kernels.
MAX_LENGTH = 32767

#: Every kind of feature, and the samples that its window needs at least (a lag and a band need more, see below).
MIN_LENGTH: Mapping[str, int] = {
    "mean": 1,
    "variance": 2,
    "std": 2,
    "rms": 1,
    "min": 1,
    "max": 1,
    "peak_to_peak": 2,
    "slope": 2,
    "zero_crossings": 2,
    "mean_abs_difference": 2,
    "band_power": 2,
    "last": 1,
    "lag": 1,
}


@dataclass(frozen=True, slots=True)
class FeatureSpec:
    """One number of a window: ``kind`` (a key of MIN_LENGTH) of the channel with this index.

    ``lag``: samples before the newest, of kind lag. ``bins``: the first and the last DFT bin of a band_power; bin k of
    a window of N samples lies at ``k * rate / N``, see ``bins_of``. ``level``: what zero_crossings counts crossings
    of, in the unit of the channel.
    """

    name: str
    kind: str
    channel: int
    lag: int = 0
    bins: tuple[int, int] = (0, 0)
    level: float = 0.0


def bins_of(low: float, high: float, rate: float, length: int, where: str = "band") -> tuple[int, int]:
    """The bins whose frequencies lie in ``low`` to ``high`` (Hz, both included) at ``rate`` samples a second.

    InputError where there is none: the window is too short to tell such a band, or it lies above half the rate.
    """
    if not (math.isfinite(rate) and rate > 0):
        raise InputError(where, f"a rate of {rate:g} samples a second is none")
    if not 0 <= low <= high <= rate / 2:
        raise InputError(where, f"{low:g} to {high:g} Hz is no band below half of the rate of {rate:g} Hz")
    # A hair of tolerance: 0.3 Hz is bin 3 of 10 samples a second in 100, whatever the last bit of the quotient.
    first, last = math.ceil(low * length / rate - 1e-9), math.floor(high * length / rate + 1e-9)
    if first > last:
        step = rate / length
        raise InputError(
            where, f"no bin between {low:g} and {high:g} Hz: they are {step:g} Hz apart", "take a longer window"
        )
    return first, last


def check_features(where: str, length: int, step: int, items: Sequence[FeatureSpec], channels: int) -> None:
    """InputError, on the first fault, unless the features can be computed from windows of ``length`` samples."""
    for what, value in (
        ("length", length),
        ("step", step),
        *((f"number in '{i.name}'", v) for i in items for v in _whole(i)),
    ):
        if not isinstance(value, int | np.integer):
            raise InputError(where, f"a {what} of {value!r}: it must be a whole number")
    if not 1 <= length <= MAX_LENGTH:
        raise InputError(where, f"a window of {length} samples: 1 to {MAX_LENGTH} are possible")
    if not 1 <= step < 1 << 31:
        raise InputError(where, f"a step of {step} samples: it must be at least 1")
    if not items:
        raise InputError(where, "a window without features")
    seen: set[str] = set()
    for item in items:
        at = f"{where}: feature '{item.name}'"
        if item.name in seen:
            raise InputError(at, "the name is there twice")
        seen.add(item.name)
        _check_one(at, length, item, channels)


def _whole(item: FeatureSpec) -> tuple[object, ...]:
    """What has to be a whole number."""
    return (item.lag, *item.bins)


def _check_one(at: str, length: int, item: FeatureSpec, channels: int) -> None:
    if item.kind not in MIN_LENGTH:
        near = difflib.get_close_matches(item.kind, MIN_LENGTH, 1)
        known = f"did you mean '{near[0]}'?" if near else f"known: {', '.join(MIN_LENGTH)}"
        raise InputError(at, f"unknown kind '{item.kind}'", known)
    if not 0 <= item.channel < channels:
        raise InputError(at, f"there is no channel {item.channel}: the signal has {channels}")
    if not math.isfinite(item.level):
        raise InputError(at, f"a level of {item.level} is no level")
    if item.kind == "lag" and item.lag < 0:
        raise InputError(at, f"a lag of {item.lag} looks into the future")
    needed = max(MIN_LENGTH[item.kind], item.lag + 1 if item.kind == "lag" else 0)
    if length < needed:
        raise InputError(at, f"{item.kind} needs a window of at least {needed} samples, it has {length}")
    first, last = item.bins
    if item.kind == "band_power" and not 0 <= first <= last <= length // 2:
        raise InputError(at, f"bins {first} to {last}: a window of {length} samples has the bins 0 to {length // 2}")


def due_pushes(pushes: int, length: int, step: int) -> Array:
    """(pushes,) bool: push number ``length`` and each ``step``-th after it complete a window."""
    i = np.arange(pushes) - (length - 1)
    return np.asarray((i >= 0) & (i % step == 0))


def windows_of(x: Array, length: int, step: int) -> Array:
    """(..., T) -> (..., T', length): the windows that end where ``due_pushes`` is true; T' may be 0."""
    if x.shape[-1] < length:
        return np.empty((*x.shape[:-1], 0, length), x.dtype)
    return np.lib.stride_tricks.sliding_window_view(x, length, -1)[..., ::step, :]


def _slope(w: Array, f: FeatureSpec) -> Array:
    t = np.arange(w.shape[-1]) - (w.shape[-1] - 1) / 2
    return np.asarray((w @ t) / (t @ t))


def _crossings(w: Array, f: FeatureSpec) -> Array:
    below = w < f.level
    return np.asarray((below[..., 1:] != below[..., :-1]).sum(axis=-1, dtype=np.float64))


def _band_power(w: Array, f: FeatureSpec) -> Array:
    n = w.shape[-1]
    bins = np.arange(f.bins[0], f.bins[1] + 1)
    weight = np.where((bins == 0) | (2 * bins == n), 1.0, 2.0)
    spectrum = np.fft.rfft(w, axis=-1)[..., f.bins[0] : f.bins[1] + 1]
    return np.asarray((np.abs(spectrum) ** 2 @ weight) / n**2)


_REAL: Mapping[str, Callable[[Array, FeatureSpec], Array]] = {
    "mean": lambda w, f: w.mean(axis=-1),
    "variance": lambda w, f: w.var(axis=-1),
    "std": lambda w, f: w.std(axis=-1),
    "rms": lambda w, f: np.sqrt((w * w).mean(axis=-1)),
    "min": lambda w, f: w.min(axis=-1),
    "max": lambda w, f: w.max(axis=-1),
    "peak_to_peak": lambda w, f: w.max(axis=-1) - w.min(axis=-1),
    "slope": _slope,
    "zero_crossings": _crossings,
    "mean_abs_difference": lambda w, f: np.abs(np.diff(w, axis=-1)).mean(axis=-1),
    "band_power": _band_power,
    "last": lambda w, f: w[..., -1],
    "lag": lambda w, f: w[..., w.shape[-1] - 1 - f.lag],
}


@dataclass(frozen=True, slots=True, eq=False)
class Features(SourceOp):
    """x (C,) -> features (F,), one row for each window of ``length`` samples, the next ``step`` samples later.

    variance and std divide by the number of samples, as numpy does; slope is that of the least squares line, a sample;
    zero_crossings counts neighbours of which one is below the level and one is not; band_power is the part of the mean
    square that lies in the bins, so that all bins together give the mean square.
    """

    length: int
    step: int
    items: tuple[FeatureSpec, ...]

    def check(self, types: Mapping[str, TensorType]) -> None:
        x = value_type(types, self.inputs[0], "Features")
        y = value_type(types, self.outputs[0], "Features")
        try:
            check_features(str(self.loc), self.length, self.step, self.items, x.count)
        except InputError as e:
            raise InternalError(e.where, e.what) from None
        if len(x.shape) != 1 or y.shape != (len(self.items),):
            raise InternalError(str(self.loc), f"Features: {x.shape} to {y.shape}, {len(self.items)} features")

    def due(self, pushes: int) -> Array:
        """Which pushes complete a window: (pushes,) bool."""
        return due_pushes(pushes, self.length, self.step)

    def eval(self, *args: Array) -> tuple[Array, ...]:
        """x (T, C) -> (T', F) float64."""
        x = np.asarray(args[0], np.float64).T
        columns = [_REAL[f.kind](windows_of(x[f.channel], self.length, self.step), f) for f in self.items]
        return (np.stack(columns, axis=-1),)
