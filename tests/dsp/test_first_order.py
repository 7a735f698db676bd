"""ExpSmooth, DcRemove, ShiftSamples, ScaleSamples: against SciPy and exact numbers, C against the reference."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from filter_cases import channels_of, signals
from hypothesis import given, settings
from hypothesis import strategies as st
from push_rig import LOC, Case, check_board, check_c
from scipy import signal

from mcugen.core.types import DType
from mcugen.dsp.ops import DcRemove, ExpSmooth, ScaleSamples, ShiftSamples

KINDS = (DType.I16, DType.I32, DType.F32)
FACTORS = (1e-3, 0.05, 0.25, 0.5, 0.999)


def factor_of(dtype: DType, value: float) -> float:
    return float(np.float32(value)) if dtype.is_float else float(round(value * 2**31))


def smooth(dtype: DType, alpha: float, width: int) -> ExpSmooth:
    return ExpSmooth(("x",), ("y",), LOC, tuple(range(width)), width, dtype, factor_of(dtype, alpha))


def dc_remove(dtype: DType, pole: float, width: int) -> DcRemove:
    factor = factor_of(dtype, pole if dtype.is_float else 1 - pole)
    return DcRemove(("x",), ("y",), LOC, tuple(range(width)), width, dtype, factor)


def cases() -> list[Case]:
    found = []
    for dtype in KINDS:
        for f in FACTORS:
            x = channels_of(signals(dtype.np.type, 1, 60))
            found += [Case(smooth(dtype, f, x.shape[1]), x), Case(dc_remove(dtype, f, x.shape[1]), x)]
    for source, target in ((DType.I16, DType.I32), (DType.I32, DType.I16), (DType.I32, DType.I32)):
        x = channels_of(signals(source.np.type, 2, 40))
        for shift in (-31, -16, -1, 0, 1, 14, 16, 30):
            op = ShiftSamples(("x",), ("y",), LOC, x.shape[1], source, target, shift)
            lows = np.resize([source.min, -5, -1000, -32767], x.shape[1]).astype(np.int32)
            found += [Case(op, x), Case(replace(op, lows=lows), x)]
    for source in (DType.I16, DType.I32):
        x = channels_of(signals(source.np.type, 2, 40))
        scales = np.linspace(-1e-6, 3.3, x.shape[1]).astype(np.float32)
        found.append(Case(ScaleSamples(("x",), ("y",), LOC, source, scales), x))
    return found


def test_c_equals_reference(tmp_path: Path) -> None:
    check_c(cases(), tmp_path)


def test_board_equals_reference(tmp_path: Path) -> None:
    check_board(cases(), tmp_path)


@pytest.mark.parametrize("dtype", [DType.I16, DType.I32])
@pytest.mark.parametrize("alpha", FACTORS)
def test_smooth_is_within_a_unit_of_scipy(dtype: DType, alpha: float) -> None:
    """No dead band: a step of any size is followed to within one unit."""
    x = channels_of(signals(dtype.np.type, 3, 3000))
    y = smooth(dtype, alpha, x.shape[1]).eval(x)[0]
    kept = factor_of(dtype, alpha) / 2**31
    exact = signal.lfilter([kept], [1, kept - 1], x.astype(np.float64), axis=0)
    assert np.abs(y - exact).max() <= 0.5 + 0.5 / alpha * 2.0 ** (-15 if dtype is DType.I16 else -30) + 1e-5


@pytest.mark.parametrize("dtype", [DType.I16, DType.I32])
@pytest.mark.parametrize("pole", [0.5, 0.9, 0.995, 0.999])
def test_dc_remove_is_within_a_unit_of_scipy(dtype: DType, pole: float) -> None:
    x = channels_of(signals(dtype.np.type, 3, 3000))
    y = dc_remove(dtype, pole, x.shape[1]).eval(x)[0]
    kept = 1 - factor_of(dtype, 1 - pole) / 2**31
    exact = signal.lfilter([1, -1], [1, -kept], x.astype(np.float64), axis=0)
    error = np.abs(y - np.clip(exact, dtype.min, dtype.max)).max()
    assert error <= 0.5 + 0.5 / (1 - pole) * 2.0 ** (-14 if dtype is DType.I16 else -29) + 1e-5


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(-32768, 32767), max_size=30), st.integers(1, 2**31 - 1))
def test_smooth_stays_between_the_samples(x: list[int], alpha: int) -> None:
    op = ExpSmooth(("x",), ("y",), LOC, (0,), 1, DType.I16, float(alpha))
    y = op.eval(np.array(x, np.int16)[:, None])[0][:, 0]
    for n, value in enumerate(y.tolist()):
        assert min([0, *x[: n + 1]]) <= value <= max([0, *x[: n + 1]])


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(-32768, 32767), max_size=30), st.integers(2**16, 2**31 - 1))
def test_dc_remove_never_leaves_its_word(x: list[int], factor: int) -> None:
    """DcRemove: what is summed stays below 2^31, as the kernel's int32 needs it."""
    op = DcRemove(("x",), ("y",), LOC, (0,), 1, DType.I16, float(factor))
    s = last = 0
    for value, y in zip(x, op.eval(np.array(x, np.int16)[:, None])[0][:, 0].tolist(), strict=True):
        s = s - ((s * factor + 2**30) >> 31) + (value - last) * 2**14
        last = value
        assert abs(s) <= 2**30 + 2**14
        assert y == max(-32768, min(32767, (s + 2**13) >> 14))


@settings(max_examples=100, deadline=None)
@given(st.integers(-(2**31), 2**31 - 1), st.integers(-31, 0))
def test_shift_is_the_nearest(value: int, shift: int) -> None:
    op = ShiftSamples(("x",), ("y",), LOC, 1, DType.I32, DType.I32, shift)
    y = int(op.eval(np.array([[value]], np.int32))[0][0, 0])
    error = Fraction(value, 2**-shift) - y
    assert -Fraction(1, 2) <= error < Fraction(1, 2) or y == 2**31 - 1


@settings(max_examples=60, deadline=None)
@given(st.integers(-32768, 32767), st.floats(-1e3, 1e3, width=32))
def test_scale_rounds_once(value: int, scale: float) -> None:
    """ScaleSamples on int16: the product of two float32 is exact in float64."""
    op = ScaleSamples(("x",), ("y",), LOC, DType.I16, np.array([scale], np.float32))
    assert op.eval(np.array([[value]], np.int16))[0][0, 0] == np.float32(value * scale)
