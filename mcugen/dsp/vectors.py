"""Samples that a chain is verified on, one run of pushes: the user's recording, then signals where faults hide."""

from __future__ import annotations

import numpy as np

from mcugen.core.types import Array
from mcugen.dsp.signal import Signal


def chain_samples(signal: Signal, pushes: int, own: Array | None = None, seed: int = 0) -> Array:
    """(pushes, C) samples of the signal's type: ``own`` (T, C) first, at most half of them, then what follows here.

    A chirp, full-scale steps, the ends of the type in turn, single impulses, noise of each size, and silence, each
    with other phases in other channels. Integers stay within the type, not within the range that the user promised: a
    sensor that breaks its promise must not break the bits.
    """
    own = own[: pushes // 2] if own is not None else np.empty((0, len(signal.names)), signal.dtype.np)
    rest = pushes - len(own)
    rng = np.random.default_rng(seed)
    parts, kinds = [own], (_chirp, _steps, _ends, _impulses, _noise, _silence)
    each = -(-rest // len(kinds))
    for kind in kinds:
        part = kind(each, signal, rng)
        parts.append(part if signal.dtype.is_float else np.rint(part))
    x = np.concatenate([_typed(p, signal) for p in parts])
    return np.ascontiguousarray(x[:pushes])


def _typed(x: Array, signal: Signal) -> Array:
    if signal.dtype.is_float:
        return x.astype(np.float32)
    return np.clip(x, signal.dtype.min, signal.dtype.max).astype(signal.dtype.np)


def _peaks(signal: Signal) -> Array:
    return np.array(signal.peaks, np.float64)


def _chirp(n: int, signal: Signal, rng: np.random.Generator) -> Array:
    """From 0 to half the rate."""
    t = np.arange(n)[:, None] / max(n, 1)
    phase = rng.uniform(0, 2 * np.pi, len(signal.names))
    return np.asarray(0.9 * _peaks(signal) * np.sin(0.5 * np.pi * n * t * t + phase))


def _steps(n: int, signal: Signal, rng: np.random.Generator) -> Array:
    """Levels that last for a while: what filters settle at."""
    levels = rng.uniform(-1, 1, (max(1, n // 64), len(signal.names)))
    return np.asarray(np.repeat(levels, 64, axis=0)[np.arange(n) % (64 * len(levels))] * _peaks(signal))


def _ends(n: int, signal: Signal, rng: np.random.Generator) -> Array:
    """The smallest and the largest sample in random order: sums and products at their largest."""
    low = -_peaks(signal) if signal.dtype.is_float else np.full(len(signal.names), float(signal.dtype.min))
    high = _peaks(signal) if signal.dtype.is_float else np.full(len(signal.names), float(signal.dtype.max))
    runs = np.repeat(rng.random((-(-n // 3), len(signal.names))) < 0.5, 3, axis=0)[:n]
    return np.asarray(np.where(runs, low, high))


def _impulses(n: int, signal: Signal, rng: np.random.Generator) -> Array:
    x = np.zeros((n, len(signal.names)))
    x[::29] = _peaks(signal)
    return x


def _noise(n: int, signal: Signal, rng: np.random.Generator) -> Array:
    """From a few units to the whole range."""
    size = np.exp(rng.uniform(np.log(1e-4), 0, (n, 1)))
    return np.asarray(rng.normal(size=(n, len(signal.names))) * size * _peaks(signal))


def _silence(n: int, signal: Signal, rng: np.random.Generator) -> Array:
    return np.zeros((n, len(signal.names)))
