"""Random windows, features and signals for the tests of features, and what rational numbers say about them."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from math import isqrt

import numpy as np
from hypothesis import strategies as st

from mcugen.core.types import DType, Loc
from mcugen.dsp.feature_plan import IntFeature
from mcugen.dsp.feature_tracks import strategy_of
from mcugen.dsp.lower_features import limits_of, lower_features
from mcugen.dsp.ops.window_features import WindowFeatures
from mcugen.dsp.signal import Signal
from mcugen.dsp.source.features import MIN_LENGTH, FeatureSpec

LOC = Loc("pipeline.toml", "window")


def op_of(specs: tuple[FeatureSpec, ...], length: int, step: int, signal: Signal, strategy: str = "") -> WindowFeatures:
    """The machine op of these features; ``strategy`` empty: the one that mcugen chooses."""
    items = lower_features(specs, length, signal, "window").items
    chosen = strategy or strategy_of(length, step, signal.dtype, items)
    return WindowFeatures(("x",), ("y",), LOC, signal.dtype, length, step, limits_of(signal), items, chosen)


@st.composite
def specs(draw: st.DrawFn, length: int, channels: int, levels: float) -> tuple[FeatureSpec, ...]:
    """Some features that a window of this length can have."""
    kinds = [k for k, n in MIN_LENGTH.items() if n <= length]
    count = draw(st.integers(1, 8))
    out = []
    for i in range(count):
        kind = draw(st.sampled_from(kinds))
        lag = draw(st.integers(0, length - 1)) if kind == "lag" else 0
        first = draw(st.integers(0, length // 2))
        last = draw(st.integers(first, min(first + 3, length // 2)))
        level = draw(st.sampled_from([0.0, 1.0, -levels, levels]))
        out.append(FeatureSpec(f"f{i}", kind, draw(st.integers(0, channels - 1)), lag, (first, last), level))
    return tuple(out)


@st.composite
def signals(draw: st.DrawFn, dtype: DType, channels: int, times: int) -> np.ndarray:
    """(T, C) samples: noise, ends of the type, constants, square waves."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    columns = []
    for _ in range(channels):
        how = draw(st.sampled_from(["noise", "ends", "low", "high", "square", "small", "ramp"]))
        v = {
            "noise": rng.integers(dtype.min, dtype.max, times, endpoint=True),
            "ends": rng.choice([dtype.min, dtype.max], times),
            "low": np.full(times, dtype.min),
            "high": np.full(times, dtype.max),
            "square": np.where(np.arange(times) // 3 % 2 == 0, dtype.min, dtype.max),
            "small": rng.integers(-2, 3, times),
            "ramp": np.linspace(dtype.min, dtype.max, times).astype(np.int64),
        }[how]
        columns.append(v)
    return np.stack(columns, axis=-1).astype(dtype.np)


@st.composite
def cases(draw: st.DrawFn, dtypes: tuple[DType, ...] = (DType.I16, DType.I32)) -> tuple[WindowFeatures, np.ndarray]:
    """An op, and samples for it."""
    dtype = draw(st.sampled_from(dtypes))
    channels = draw(st.integers(1, 3))
    length = draw(st.one_of(st.integers(1, 9), st.integers(10, 40)))
    step = draw(st.one_of(st.integers(1, 4), st.sampled_from([max(length - 1, 1), length, length + 1, 2 * length])))
    peak = st.sampled_from([1.0, 2.5, 1000.0, dtype.max // 2 + 0.0, dtype.max + 1.0, dtype.max + 1.0])
    names = tuple(f"c{i}" for i in range(channels))
    signal = Signal.of(names, dtype, peaks=tuple(draw(peak) for _ in names))
    chosen = draw(specs(length, channels, float(dtype.max // 2)))
    strategy = "stream" if step >= length else draw(st.sampled_from(["scan", "run"]))
    x = draw(signals(dtype, channels, length + draw(st.integers(0, 3 * step + 2))))
    return op_of(chosen, length, step, signal, strategy), x


def rounded(v: Fraction) -> int:
    """To the nearest integer, ties up."""
    return (v + Fraction(1, 2)).__floor__()


def oracle(w: list[int], f: IntFeature, waves: list[list[int]]) -> int:
    """One integer feature of one window, from the page of definitions, in whole and rational numbers."""
    n = len(w)
    u = [v // 2**f.pre for v in w]
    spread = n * sum(v * v for v in u) - sum(u) ** 2
    signs = [v < f.level for v in w]
    exact = {
        "mean": lambda: sum(w),
        "variance": lambda: spread,
        "min": lambda: min(w),
        "max": lambda: max(w),
        "peak_to_peak": lambda: max(w) - min(w),
        "slope": lambda: sum((2 * i - (n - 1)) * v for i, v in enumerate(w)),
        "zero_crossings": lambda: sum(a != b for a, b in pairwise(signs)),
        "mean_abs_difference": lambda: sum(abs(b - a) for a, b in pairwise(w)),
        "last": lambda: w[-1],
        "lag": lambda: w[-1 - f.lag],
    }
    if f.kind == "std":
        return isqrt(spread << f.up)
    if f.kind == "rms":
        return isqrt(sum(v * v for v in u) << f.up)
    if f.kind != "band_power":
        return rounded(Fraction(exact[f.kind](), 2**f.shift))
    power = 0
    for k in range(f.bins[0], f.bins[1] + 1):
        both = waves[2 * (k - f.bins[0]) : 2 * (k - f.bins[0]) + 2]
        parts = [rounded(Fraction(sum(c * v for c, v in zip(wave, w, strict=True)), 2**f.pre)) for wave in both]
        power += (1 if k == 0 or 2 * k == n else 2) * sum(p * p for p in parts)
    return rounded(Fraction(power, 2**f.shift))
