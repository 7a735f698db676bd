"""Features of float32 windows with a defined order of operations: float32 throughout, from the oldest sample on.

Windows are (..., T', N) float32. A loop over the N samples, each step for all windows at once, is the order in which
the kernel adds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from mcugen.core.types import Array
from mcugen.dsp.source.features import FeatureSpec, windows_of
from mcugen.dsp.window_sums import angles, bin_weights

_F = np.float32

#: In the order of mcg_float_kind_t in mcg_features_float.h. Bands have a function of their own.
FLOAT_KINDS = (
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
    "lag",
)


def divisor_of(kind: str, length: int) -> float:
    """What the sum of a kind is divided by, a float32."""
    exact = {"slope": length * (length * length - 1) // 6, "mean_abs_difference": length - 1}
    return float(_F(exact.get(kind, length)))


def float_waves(length: int, first: int, last: int) -> Array:
    """(2 K, N) float32: cosine and sine of each bin."""
    a = angles(length, first, last)
    return np.stack([np.cos(a), np.sin(a)], axis=1).astype(_F).reshape(-1, length)


def _sum(terms: Callable[[int], Array], first: int, length: int, like: Array) -> Array:
    total = np.zeros(like.shape[:-1], _F)
    for i in range(first, length):
        total = total + terms(i)
    return total


def _mean(w: Array, f: FeatureSpec) -> Array:
    n = w.shape[-1]
    return np.asarray(_sum(lambda i: w[..., i], 0, n, w) / _F(n))


def _variance(w: Array, f: FeatureSpec) -> Array:
    n, mean = w.shape[-1], _mean(w, f)
    return np.asarray(_sum(lambda i: (w[..., i] - mean) * (w[..., i] - mean), 0, n, w) / _F(n))


def _rms(w: Array, f: FeatureSpec) -> Array:
    n = w.shape[-1]
    return np.sqrt(_sum(lambda i: w[..., i] * w[..., i], 0, n, w) / _F(n))


def _extreme(w: Array, f: FeatureSpec, largest: bool) -> Array:
    """The first of equals; NaN once there is one."""
    best = w[..., 0]
    for i in range(1, w.shape[-1]):
        v = w[..., i]
        best = np.where((v > best if largest else v < best) | np.isnan(v), v, best)
    return np.asarray(best)


def _slope(w: Array, f: FeatureSpec) -> Array:
    n = w.shape[-1]
    total = _sum(lambda i: _F(2 * i - (n - 1)) * w[..., i], 0, n, w)
    return np.asarray(total / _F(divisor_of("slope", n)))


def _crossings(w: Array, f: FeatureSpec) -> Array:
    below = w < _F(f.level)
    return np.asarray((below[..., 1:] != below[..., :-1]).sum(axis=-1).astype(_F))


def _difference(w: Array, f: FeatureSpec) -> Array:
    n = w.shape[-1]
    return np.asarray(_sum(lambda i: np.abs(w[..., i] - w[..., i - 1]), 1, n, w) / _F(n - 1))


def _band_power(w: Array, f: FeatureSpec) -> Array:
    n = w.shape[-1]
    waves, weights = float_waves(n, *f.bins), bin_weights(n, *f.bins)
    total = np.zeros(w.shape[:-1], _F)
    for k, weight in enumerate(weights):
        re = _sum(lambda i, c=waves[2 * k]: w[..., i] * c[i], 0, n, w)  # type: ignore[misc]
        im = _sum(lambda i, s=waves[2 * k + 1]: w[..., i] * s[i], 0, n, w)  # type: ignore[misc]
        total = total + _F(weight) * (re * re + im * im)
    return np.asarray(total / _F(n * n))


_FLOAT: Mapping[str, Callable[[Array, FeatureSpec], Array]] = {
    "mean": _mean,
    "variance": _variance,
    "std": lambda w, f: np.sqrt(_variance(w, f)),
    "rms": _rms,
    "min": lambda w, f: _extreme(w, f, False),
    "max": lambda w, f: _extreme(w, f, True),
    "peak_to_peak": lambda w, f: _extreme(w, f, True) - _extreme(w, f, False),
    "slope": _slope,
    "zero_crossings": _crossings,
    "mean_abs_difference": _difference,
    "band_power": _band_power,
    "last": lambda w, f: w[..., -1],
    "lag": lambda w, f: w[..., w.shape[-1] - 1 - f.lag],
}


def float_features(x: Array, length: int, step: int, features: tuple[FeatureSpec, ...]) -> Array:
    """Samples (..., T, C) float32 -> (..., T', F) float32."""
    samples = np.moveaxis(np.asarray(x, _F), -1, 0)
    windows = {f.channel: windows_of(samples[f.channel], length, step) for f in features}
    # Overflow and NaN are results here, as they are on the device.
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        return np.stack([_FLOAT[f.kind](windows[f.channel], f) for f in features], axis=-1)
