"""Calibration: the range of every value of a float net on the user's data.

Methods: ``minmax`` takes the extremes; ``percentile`` leaves out the outermost 0.01 % on both sides; ``mse`` narrows
the extremes to where quantizing to 8 bits gives the least mean squared error. The last two work on a histogram.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from mcugen.core.passes import evaluate
from mcugen.core.types import Array, Model
from mcugen.errors import InputError

METHODS = ("minmax", "percentile", "mse")
_BATCH = 16
_BINS = 2048
_TAIL = 1e-4
_STEPS = 255
_NARROWER = np.linspace(0.3, 1.0, 71)


@dataclass(frozen=True, slots=True)
class Range:
    """Smallest and largest value seen, or chosen."""

    low: float
    high: float


def check_calibration(x: Array, shape: tuple[int, ...], where: str) -> Array:
    """Data as (N, *shape) float32. InputError where it is empty, of another shape, not finite, or constant."""
    data = np.asarray(x)
    if data.ndim == len(shape):
        data = data[None]
    if data.dtype.kind not in "fiub":
        raise InputError(where, f"holds {data.dtype}, not numbers")
    if data.shape[1:] != shape:
        flat = int(np.prod(shape))
        if data.ndim == 2 and data.shape[1] == flat:
            data = data.reshape(-1, *shape)
        else:
            raise InputError(where, f"samples have the shape {data.shape[1:]}, the net takes {shape}")
    if len(data) == 0:
        raise InputError(where, "holds no samples", "give a few dozen that are typical")
    data = data.astype(np.float32)
    if not np.isfinite(data).all():
        row = int(np.argwhere(~np.isfinite(data))[0][0])
        raise InputError(where, f"sample {row} holds NaN or infinity", "remove it")
    if data.min() == data.max():
        raise InputError(where, f"every value is {float(data.flat[0]):g}", "give data that varies")
    return data


def value_ranges(
    model: Model, x: Sequence[Array], method: str, progress: Callable[[int, int], None] = lambda done, total: None
) -> dict[str, Range]:
    """The range of every value of ``model`` for ``x``, (N, *shape) for each input: two passes over the data, in
    batches."""
    if method not in METHODS:
        raise InputError("--calib-method", f"'{method}' is not known", f"known: {', '.join(METHODS)}")
    extremes: dict[str, Range] = {}
    for env in _batches(model, x, progress):
        for name, data in env.items():
            seen = Range(float(data.min()), float(data.max()))
            old = extremes.get(name, seen)
            extremes[name] = Range(min(old.low, seen.low), max(old.high, seen.high))
    for name, r in extremes.items():
        if not (np.isfinite(r.low) and np.isfinite(r.high)):
            what = f"value {name} is not finite on the calibration data"
            raise InputError(model.source.name, what, "look for NaN or huge weights, or for a division by zero")
    if method == "minmax":
        return extremes
    counts = {name: np.zeros(_BINS) for name in extremes}
    for env in _batches(model, x, progress):
        for name, data in env.items():
            r = extremes[name]
            if r.low < r.high:
                counts[name] += np.histogram(data, _BINS, (r.low, r.high))[0]
    choose = _percentile if method == "percentile" else _least_error
    return {name: choose(counts[name], r) if r.low < r.high else r for name, r in extremes.items()}


def _batches(model: Model, x: Sequence[Array], progress: Callable[[int, int], None]) -> Iterator[Mapping[str, Array]]:
    for a in range(0, len(x[0]), _BATCH):
        progress(a, len(x[0]))
        yield evaluate(model, {v: data[a : a + _BATCH] for v, data in zip(model.inputs, x, strict=True)})


def _percentile(counts: Array, r: Range) -> Range:
    share = np.cumsum(counts) / counts.sum()
    edges = np.linspace(r.low, r.high, _BINS + 1)
    low = edges[int(np.searchsorted(share, _TAIL))]
    high = edges[int(np.searchsorted(share, 1.0 - _TAIL)) + 1]
    return Range(float(low), float(high))


def _least_error(counts: Array, r: Range) -> Range:
    """Of narrower ranges, the one with the least error: rounding inside it, clipping outside."""
    centres = r.low + (np.arange(_BINS) + 0.5) * (r.high - r.low) / _BINS
    best, least = r, np.inf
    for share in _NARROWER:
        low, high = r.low * share, r.high * share
        step = max(high, 0.0) - min(low, 0.0)
        step = step / _STEPS if step > 0 else 1.0
        clipped = np.clip(centres, min(low, 0.0), max(high, 0.0))
        error = float((counts * ((centres - clipped) ** 2 + np.where(clipped == centres, step**2 / 12, 0.0))).sum())
        if error < least:
            best, least = Range(low, high), error
    return best
