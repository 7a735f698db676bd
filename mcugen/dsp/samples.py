"""Samples that a user has in Python, as the device gets them: nothing is rounded or wrapped unseen."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from mcugen.core.types import Array
from mcugen.dsp.signal import Signal
from mcugen.errors import InputError


def check_channels(x: Array, signal: Signal, where: str) -> None:
    """InputError unless x is (T, C) or (recordings, T, C)."""
    n = len(signal.names)
    if x.ndim < 2 or x.shape[-1] != n:
        raise InputError(where, f"samples of shape {x.shape}", f"expected (T, {n}) or (recordings, T, {n})")


def as_samples(x: npt.ArrayLike, signal: Signal, where: str, hint: str) -> Array:
    """Samples of the signal's type; ``hint``: how to make some of real values. InputError for others."""
    a, t = np.asarray(x), signal.dtype
    check_channels(a, signal, where)
    if t.is_float:
        if a.dtype not in (np.float32, np.float64) and a.dtype.kind not in "iu":
            raise InputError(where, f"samples of {a.dtype} are no numbers")
        with np.errstate(over="ignore"):
            return a.astype(np.float32)
    if a.dtype.kind not in "iu":
        raise InputError(where, f"samples of {a.dtype}, where the device has {t.label}", hint)
    if a.size and (int(a.min()) < t.min or int(a.max()) > t.max):
        raise InputError(where, f"samples from {a.min()} to {a.max()} do not fit {t.label}")
    return a.astype(t.np)


def quantize_samples(real: npt.ArrayLike, signal: Signal, limits: tuple[int, ...], where: str) -> Array:
    """Real values (..., C) to samples: the nearest integer, clamped to [-limit - 1, limit] of each channel."""
    x = np.asarray(real, np.float64)
    check_channels(x, signal, where)
    if signal.dtype.is_float:
        return x.astype(np.float32)
    if not np.isfinite(x).all():
        raise InputError(where, "a value is NaN or infinite: it has no integer")
    limit = np.array(limits, np.float64)
    q = np.rint((x - np.array(signal.offsets)) / np.array(signal.scales))
    return np.asarray(np.clip(q, -limit - 1, limit).astype(signal.dtype.np))
