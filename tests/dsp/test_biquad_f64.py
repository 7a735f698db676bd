"""BiquadF64: the C bit by bit as the reference, and the reference near SciPy where float32 is far off."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from filter_cases import channels_of, sections, signals
from hypothesis import given, settings
from hypothesis import strategies as st
from push_rig import LOC, Case, check_board, check_c
from scipy import signal

from mcugen.core.types import DType, TensorType
from mcugen.dsp.ops import BiquadF64
from mcugen.errors import InternalError


def f64_op(rows: np.ndarray, width: int = 1, channels: tuple[int, ...] | None = None) -> BiquadF64:
    c = np.asarray(rows, np.float64)
    return BiquadF64(("x",), ("y",), LOC, channels or tuple(range(width)), width, c, (0,) * len(c))


def columns(sos: np.ndarray) -> np.ndarray:
    return sos[:, [0, 1, 2, 4, 5]]


def cases() -> list[Case]:
    found = []
    for order, cut in ((1, 0.1), (2, 1e-4), (5, 0.01), (8, 0.3)):
        rows = columns(sections(order, cut))
        x = channels_of(signals(np.float32, order, 60))
        found.append(Case(f64_op(rows, x.shape[1]), x))
        found.append(Case(f64_op(rows, x.shape[1], (4, 0)), x[:10]))
    wild = np.random.default_rng(1).normal(size=(2, 5)) * 1e200  # unstable, to infinity and NaN
    found.append(Case(f64_op(wild, x.shape[1]), x))
    return found


def test_c_equals_reference(tmp_path: Path) -> None:
    check_c(cases(), tmp_path)


def test_board_equals_reference(tmp_path: Path) -> None:
    check_board(cases(), tmp_path)


@settings(max_examples=40, deadline=None)
@given(
    st.integers(1, 6),
    st.floats(1e-5, 0.99),
    st.sampled_from(["lowpass", "highpass"]),
    st.lists(st.floats(-1e6, 1e6, width=32), min_size=1, max_size=40),
)
def test_is_scipys_rounded_to_float32(order: int, cut: float, kind: str, x: list[float]) -> None:
    sos = signal.butter(order, cut, kind, output="sos")
    samples = np.array(x, np.float32)[:, None]
    wanted = signal.sosfilt(sos, samples.astype(np.float64), axis=0)
    scale = 1e-9 * float(np.abs(samples).max()) + 1e-30
    np.testing.assert_allclose(f64_op(columns(sos)).eval(samples)[0], wanted, rtol=2.0**-23, atol=scale)


@pytest.mark.parametrize("rows", [np.zeros((0, 5)), np.full((1, 5), np.nan), np.zeros((1, 4))])
def test_spec_check(rows: np.ndarray) -> None:
    types = {v: TensorType((1,), DType.F32) for v in "xy"}
    with pytest.raises(InternalError, match="BiquadF64"):
        f64_op(rows).check(types)
