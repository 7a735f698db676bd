"""Signals that are hard on filters, and filters of every kind."""

from __future__ import annotations

import numpy as np
from push_rig import LOC
from scipy import signal

from mcugen.dsp.ops import BiquadF32, BiquadQ15, BiquadQ31, BiquadQ63, FirF32, FirQ15, FirQ31

Fir = FirQ15 | FirQ31 | FirF32
Biquad = BiquadQ15 | BiquadQ31 | BiquadQ63 | BiquadF32


def full_scale(dtype: np.dtype) -> int:
    return 32767 if dtype == np.int16 else 2**31 - 1


def signals(dtype: type, seed: int, steps: int, taps: np.ndarray | None = None) -> dict[str, np.ndarray]:
    """(steps,) each: random, step, impulse, full scale, and where ``taps`` are given the worst case of them (L1)."""
    rng = np.random.default_rng(seed)
    kind = np.dtype(dtype)
    if kind.kind == "f":
        x = {
            "random": rng.standard_normal(steps),
            "step": np.ones(steps),
            "impulse": np.eye(1, steps)[0],
            "huge": rng.choice([3e38, -3e38, 1.0], steps),
            "tiny": rng.choice([1e-44, -1e-40, 0.0, -0.0, 1e-38], steps),
            "odd": rng.choice([np.inf, np.nan, 0.0, 1.0, -1.0], steps, p=[0.02, 0.01, 0.37, 0.3, 0.3]),
        }
        return {k: v.astype(dtype) for k, v in x.items()}
    top, low = full_scale(kind), -full_scale(kind) - 1
    x = {
        "random": rng.integers(low, top + 1, steps),
        "step": np.full(steps, top * 20000 // 32767),
        "impulse": top * np.eye(1, steps, dtype=np.int64)[0],
        "alternating": np.where(np.arange(steps) % 2, low, top),
        "low": np.full(steps, low),
        "extremes": rng.choice([low, top], steps),
    }
    if taps is not None:
        signs = np.sign(np.resize(taps[::-1].astype(np.int64), steps))
        x["worst"] = np.where(signs < 0, low, top)
    return {k: v.astype(dtype) for k, v in x.items()}


def channels_of(found: dict[str, np.ndarray]) -> np.ndarray:
    """(T, C): one signal a channel."""
    return np.stack(list(found.values()), axis=1)


def fir_op(kind: type[Fir], taps: np.ndarray, width: int = 1, channels: tuple[int, ...] | None = None) -> Fir:
    """A FIR op with these integer or float taps."""
    dtype = {FirQ15: np.int16, FirQ31: np.int32, FirF32: np.float32}[kind]
    return kind(("x",), ("y",), LOC, channels or tuple(range(width)), width, np.asarray(taps, dtype))


def biquad_op(
    kind: type[Biquad],
    coefficients: np.ndarray,
    post: tuple[int, ...],
    width: int = 1,
    channels: tuple[int, ...] | None = None,
) -> Biquad:
    """A cascade with these integer or float coefficients (S, 5)."""
    dtype = {BiquadQ15: np.int16, BiquadQ31: np.int32, BiquadQ63: np.int32, BiquadF32: np.float32}[kind]
    c = np.asarray(coefficients, dtype)
    return kind(("x",), ("y",), LOC, channels or tuple(range(width)), width, c, post)


def quantized(sos: np.ndarray, bits: int) -> tuple[np.ndarray, tuple[int, ...]]:
    """Rounded coefficients (S, 5) and post shifts, each the smallest that holds its section."""
    c = sos[:, [0, 1, 2, 4, 5]] / sos[:, 3:4]
    post = tuple(max(0, int(np.ceil(np.log2(np.abs(row).max() * (1 + 2.0**-12))))) for row in c)
    scaled = [np.rint(row * 2.0 ** (bits - p)) for row, p in zip(c, post, strict=True)]
    return np.array(scaled).astype(np.int64), post


def sections(order: int, cut: float) -> np.ndarray:
    return signal.butter(order, cut, output="sos")
