"""FirQ15, FirQ31, FirF32: bit for bit as CMSIS-DSP and as the C, sample by sample."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import cmsisdsp as dsp
import numpy as np
import pytest
from filter_cases import Fir, channels_of, fir_op, signals
from hypothesis import given, settings
from hypothesis import strategies as st
from push_rig import Case, check_board, check_c, same_bits
from scipy import signal

from mcugen.dsp.ops import FirF32, FirQ15, FirQ31

BLOCKS = (1, 2, 3, 4, 7, 16, 64)


def cmsis_fir(kind: type[Fir], taps: np.ndarray, x: np.ndarray, block: int) -> np.ndarray:
    """CMSIS-DSP on one channel; it wants an even number of taps, four at least, and the newest first, reversed."""
    name = "q15" if kind is FirQ15 else "q31"
    even = max(4, taps.size + taps.size % 2) if kind is FirQ15 else taps.size
    padded = np.zeros(even, taps.dtype)
    padded[: taps.size] = taps
    filter_ = getattr(dsp, f"arm_fir_instance_{name}")()
    state = np.zeros(even + block, taps.dtype)
    getattr(dsp, f"arm_fir_init_{name}")(filter_, even, padded[::-1].copy(), state)
    run = getattr(dsp, f"arm_fir_{name}")
    whole = len(x) // block * block
    return np.concatenate([run(filter_, x[i : i + block].copy()) for i in range(0, whole, block)])


def ints(seed: int, count: int, bits: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(-(2**bits), 2**bits, count)


@pytest.mark.parametrize("block", BLOCKS)
@pytest.mark.parametrize("kind", [FirQ15, FirQ31])
def test_equals_cmsis(kind: type[Fir], block: int) -> None:
    """Random, step, full-scale and worst-case inputs; taps that sum to more than the type holds, too.

    No two taps of -32768 side by side: the portable SMLALD of CMSIS-DSP's host build adds their two products, 2^30 each
    for samples of -32768, in 32 bits, which the instruction does not.
    """
    bits = 15 if kind is FirQ15 else 31
    low_pass = np.rint(signal.firwin(32, 0.2) * 2**bits)
    for taps in (low_pass, ints(1, 64, bits), ints(2, 5, bits), np.full(7, 1 - 2**bits), np.full(12, 2**bits - 1)):
        op = fir_op(kind, taps)
        for name, x in signals(op.dtype.np.type, 3, 192, op.taps).items():
            y = op.eval(x[:, None])[0][:, 0]
            expected = cmsis_fir(kind, op.taps, x, block)
            same_bits(y[: len(expected)], expected, f"{taps.size} taps, {name}")


def cases(kind: type[Fir]) -> list[Case]:
    found = []
    bits = {FirQ15: 15, FirQ31: 31, FirF32: 0}[kind]
    for count in (1, 2, 3, 4, 5, 8, 9, 31, 32, 40):
        taps = signal.firwin(count, 0.3) if count > 1 else np.array([0.7])
        wild = np.random.default_rng(count).uniform(-0.999, 0.999, count)
        for t in (taps, wild):
            scaled = t if kind is FirF32 else np.rint(t * 2**bits).clip(-(2**bits), 2**bits - 1)
            one = fir_op(kind, scaled)
            x = channels_of(signals(one.dtype.np.type, count, 70, one.taps))
            found.append(Case(fir_op(kind, scaled, x.shape[1]), x))
            found.append(Case(fir_op(kind, scaled, x.shape[1], (3, 1)), x[:20]))
            found.append(Case(fir_op(kind, scaled, x.shape[1], (2,)), x[:20]))
            found.append(Case(fir_op(kind, scaled, x.shape[1], (1, 2, 3)), x[:20]))
    return found


@pytest.mark.parametrize("kind", [FirQ15, FirQ31, FirF32])
def test_c_equals_reference(kind: type[Fir], tmp_path: Path) -> None:
    check_c(cases(kind), tmp_path)


@pytest.mark.parametrize("kind", [FirQ15, FirQ31, FirF32])
def test_board_equals_reference(kind: type[Fir], tmp_path: Path) -> None:
    check_board(cases(kind), tmp_path)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(-32768, 32767), min_size=1, max_size=9), st.lists(st.integers(-32768, 32767), max_size=30))
def test_q15_is_the_exact_sum(taps: list[int], x: list[int]) -> None:
    op = fir_op(FirQ15, np.array(taps))
    y = op.eval(np.array(x, np.int16).reshape(-1, 1))[0][:, 0]
    for n, value in enumerate(y.tolist()):
        total = sum(t * x[n - k] for k, t in enumerate(taps) if k <= n)
        assert value == max(-32768, min(32767, total >> 15))


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.integers(-(2**31), 2**31 - 1), min_size=1, max_size=6),
    st.lists(st.integers(-(2**31), 2**31 - 1), max_size=20),
)
def test_q31_is_the_low_word(taps: list[int], x: list[int]) -> None:
    op = fir_op(FirQ31, np.array(taps))
    y = op.eval(np.array(x, np.int32).reshape(-1, 1))[0][:, 0]
    for n, value in enumerate(y.tolist()):
        total = sum(t * x[n - k] for k, t in enumerate(taps) if k <= n) >> 31
        assert value % 2**32 == total % 2**32


FLOATS = st.floats(-1e3, 1e3, width=32)


@settings(max_examples=60, deadline=None)
@given(st.lists(FLOATS, min_size=1, max_size=5), st.lists(FLOATS, max_size=12))
def test_f32_rounds_once_a_tap(taps: list[float], x: list[float]) -> None:
    """Against exact rationals: every step is the float32 nearest to the exact fused result."""
    op = fir_op(FirF32, np.array(taps))
    y = op.eval(np.array(x, np.float32).reshape(-1, 1))[0][:, 0]
    for n, value in enumerate(y.tolist()):
        total = 0.0
        for k in range(min(len(taps), n + 1) - 1, -1, -1):
            total = nearest_f32(Fraction(taps[k]) * Fraction(x[n - k]) + Fraction(total))
        assert value == total


def nearest_f32(value: Fraction) -> float:
    """The float32 nearest to an exact number, ties to even: by comparing the two neighbours."""
    near = np.float32(float(value))
    around = [near, np.nextafter(near, np.float32(np.inf)), np.nextafter(near, np.float32(-np.inf))]
    return float(min(around, key=lambda v: (abs(Fraction(float(v)) - value), int(v.view(np.uint32)) & 1)))
