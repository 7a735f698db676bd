"""Features of integers: which shifts make a feature fit int32, proven, and what a unit of it is worth.

A sample x of a channel lies in [-m, m - 1]. For each kind there is an exact integer, its bound, and a
factor: ``real = scale^power * factor * y`` with y the int32 of the device. docs/numerics_dsp.md has the proofs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from mcugen.core.types import Array
from mcugen.dsp.source.features import FeatureSpec
from mcugen.dsp.window_sums import WAVE, Windows, bin_weights, isqrt, shifted, waves_of

_INT32 = (1 << 31) - 1

#: Kinds that are made of sums, in the order of mcg_feature_kind_t in mcg_features.h. Lags and bands read the ring.
SUM_KINDS = (
    "mean",
    "variance",
    "std",
    "rms",
    "min",
    "max",
    "peak_to_peak",
    "slope",
    "zero_crossings",
    "mean_abs_difference",
    "last",
)


@dataclass(frozen=True, slots=True)
class IntFeature:
    """One feature of integer samples.

    ``pre``: bits that squares drop from each sample. ``up``: bits added below a square before its root. ``shift``: bits
    dropped from the exact integer, rounded, ties up. ``level``: a sample is below where x < level. ``bins``: first
    and last bin of a band, whose sums drop ``pre`` bits, rounded, before they are squared.
    """

    kind: str
    channel: int
    pre: int = 0
    up: int = 0
    shift: int = 0
    lag: int = 0
    level: int = 0
    bins: tuple[int, int] = (0, 0)


@dataclass(frozen=True, slots=True)
class Unit:
    """``real = scale^power * factor * y``, plus the channel's offset where ``offset``; |scale| where ``absolute``."""

    power: int
    factor: float
    offset: bool = False
    absolute: bool = False

    def scale(self, channel_scale: float) -> float:
        """What one unit of the feature is worth, from what one unit of the channel is worth."""
        return (abs(channel_scale) if self.absolute else channel_scale) ** self.power * self.factor


def fit_shift(high: int, low: int = 0) -> int:
    """The fewest bits to drop, rounded, ties up, so that ``low`` to ``high`` fit int32."""
    shift = 0
    while (high + (1 << shift >> 1)) >> shift > _INT32 or (low + (1 << shift >> 1)) >> shift < -_INT32 - 1:
        shift += 1
    return shift


def square_shift(length: int, m: int) -> int:
    """Bits that squares drop from samples of magnitude m, so that ``N^2 ceil(m / 2^pre)^2 < 2^62``."""
    pre = 0
    while (length * _narrow(m, pre)) ** 2 >= 1 << 62:
        pre += 1
    return pre


def _narrow(m: int, pre: int) -> int:
    """The largest magnitude of x >> pre: that of -m, rounded down."""
    return -(-m >> pre)


def _spread_bound(n: int, m: int) -> int:
    """The most that ``N^2 * variance`` can be: half of the samples at either end of [-m, m - 1] (Popoviciu)."""
    return (n * (2 * m - 1)) ** 2 // 4


def plan_feature(spec: FeatureSpec, length: int, m: int, level: int) -> tuple[IntFeature, Unit]:
    """The integer feature for samples in [-m, m - 1] and windows of ``length``, and its unit.

    Every length up to MAX_LENGTH fits: m <= 2^31.
    """
    return _PLANS[spec.kind](spec, length, m, level)


def _mean(f: FeatureSpec, n: int, m: int, level: int) -> tuple[IntFeature, Unit]:
    shift = fit_shift(n * (m - 1), -n * m)
    return IntFeature("mean", f.channel, shift=shift), Unit(1, math.ldexp(1.0, shift) / n, True)


def _variance(f: FeatureSpec, n: int, m: int, level: int) -> tuple[IntFeature, Unit]:
    pre = square_shift(n, m)
    shift = fit_shift(_spread_bound(n, _narrow(m, pre)))
    return IntFeature("variance", f.channel, pre, shift=shift), Unit(2, math.ldexp(1.0, shift + 2 * pre) / n**2)


def _std(f: FeatureSpec, n: int, m: int, level: int) -> tuple[IntFeature, Unit]:
    pre = square_shift(n, m)
    half = (62 - _spread_bound(n, _narrow(m, pre)).bit_length()) // 2
    return IntFeature("std", f.channel, pre, 2 * half), Unit(1, math.ldexp(1.0, pre - half) / n, absolute=True)


def _rms(f: FeatureSpec, n: int, m: int, level: int) -> tuple[IntFeature, Unit]:
    pre = square_shift(n, m)
    half = (62 - (n * _narrow(m, pre) ** 2).bit_length()) // 2
    return IntFeature("rms", f.channel, pre, 2 * half), Unit(
        1, math.ldexp(1.0, pre - half) / math.sqrt(n), absolute=True
    )


def _extreme(f: FeatureSpec, n: int, m: int, level: int) -> tuple[IntFeature, Unit]:
    return IntFeature(f.kind, f.channel), Unit(1, 1.0, True)


def _peak_to_peak(f: FeatureSpec, n: int, m: int, level: int) -> tuple[IntFeature, Unit]:
    shift = fit_shift(2 * m - 1)
    return IntFeature("peak_to_peak", f.channel, shift=shift), Unit(1, math.ldexp(1.0, shift), absolute=True)


def _slope(f: FeatureSpec, n: int, m: int, level: int) -> tuple[IntFeature, Unit]:
    bound = m * (n * n // 2)  # the sum of |2 i - (N - 1)| is N^2 / 2, rounded down
    shift = fit_shift(bound, -bound)
    return IntFeature("slope", f.channel, shift=shift), Unit(1, math.ldexp(6.0, shift) / (n * (n * n - 1)))


def _zero_crossings(f: FeatureSpec, n: int, m: int, level: int) -> tuple[IntFeature, Unit]:
    return IntFeature("zero_crossings", f.channel, level=level), Unit(0, 1.0)


def _mean_abs_difference(f: FeatureSpec, n: int, m: int, level: int) -> tuple[IntFeature, Unit]:
    shift = fit_shift((n - 1) * (2 * m - 1))
    return IntFeature("mean_abs_difference", f.channel, shift=shift), Unit(
        1, math.ldexp(1.0, shift) / (n - 1), absolute=True
    )


def _lag(f: FeatureSpec, n: int, m: int, level: int) -> tuple[IntFeature, Unit]:
    lag = f.lag if f.kind == "lag" else 0
    return IntFeature("lag" if lag else "last", f.channel, lag=lag), Unit(1, 1.0, True)


def band_norm(length: int, first: int, last: int, m: int) -> int:
    """A bound on ``sqrt(sum over bins of w (re^2 + im^2))`` for samples of at most m in magnitude.

    The exact waves, times sqrt(w), are orthogonal with norm WAVE * sqrt(N); rounding them adds a matrix of Frobenius
    norm at most sqrt(K N), K the number of bins; the samples have norm at most m * sqrt(N).
    """
    bins = last - first + 1
    return length * m * (WAVE + math.isqrt(bins) + 1)


def _band_power(f: FeatureSpec, n: int, m: int, level: int) -> tuple[IntFeature, Unit]:
    first, last = f.bins
    norm, rounding = band_norm(n, first, last, m), math.isqrt(last - first + 1) + 1
    pre = 0
    while ((norm >> pre) + 1 + rounding) >= 1 << 31:
        pre += 1
    shift = fit_shift(((norm >> pre) + 1 + rounding) ** 2)
    factor = math.ldexp(1.0, 2 * pre + shift) / (WAVE * n) ** 2
    return IntFeature("band_power", f.channel, pre, shift=shift, bins=f.bins), Unit(2, factor)


_PLANS: Mapping[str, Callable[[FeatureSpec, int, int, int], tuple[IntFeature, Unit]]] = {
    "mean": _mean,
    "variance": _variance,
    "std": _std,
    "rms": _rms,
    "min": _extreme,
    "max": _extreme,
    "peak_to_peak": _peak_to_peak,
    "slope": _slope,
    "zero_crossings": _zero_crossings,
    "mean_abs_difference": _mean_abs_difference,
    "band_power": _band_power,
    "last": _lag,
    "lag": _lag,
}


def _spread(w: Windows, f: IntFeature) -> Array:
    """``N sum(u^2) - sum(u)^2``: N^2 times the variance."""
    return np.asarray(w.length * w.squares(f.pre) - w.total(f.pre) ** 2)


def _power(w: Windows, f: IntFeature) -> Array:
    first, last = f.bins
    parts = shifted(w.dot(waves_of(w.length, first, last)), f.pre)
    squares = (parts * parts).reshape(*parts.shape[:-1], last - first + 1, 2).sum(axis=-1)
    return np.asarray(squares @ bin_weights(w.length, first, last))


_EXACT: Mapping[str, Callable[[Windows, IntFeature], Array]] = {
    "mean": lambda w, f: w.total(),
    "variance": _spread,
    "std": lambda w, f: isqrt(_spread(w, f) << f.up),
    "rms": lambda w, f: isqrt(w.squares(f.pre) << f.up),
    "min": lambda w, f: w.extreme(False),
    "max": lambda w, f: w.extreme(True),
    "peak_to_peak": lambda w, f: w.extreme(True) - w.extreme(False),
    "slope": lambda w, f: 2 * w.ramp() - (w.length - 1) * w.total(),
    "zero_crossings": lambda w, f: w.crossings(f.level),
    "mean_abs_difference": lambda w, f: w.travel(),
    "last": lambda w, f: w.lag(0),
    "lag": lambda w, f: w.lag(f.lag),
    "band_power": _power,
}


def int_features(x: Array, length: int, step: int, items: tuple[IntFeature, ...]) -> Array:
    """Integer samples (..., T, C), inside of their channels' ranges -> (..., T', F) int32."""
    samples = np.moveaxis(np.asarray(x), -1, 0)
    if samples.shape[-1] < length:
        return np.empty((*samples.shape[1:-1], 0, len(items)), np.int32)
    channels = {f.channel: Windows(samples[f.channel].astype(np.int64), length, step) for f in items}
    columns = [shifted(_EXACT[f.kind](channels[f.channel], f), f.shift).astype(np.int32) for f in items]
    return np.stack(columns, axis=-1)
