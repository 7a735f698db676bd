"""WindowFeatures: integer features equal rational arithmetic, fit int32 at worst, and the C gives every bit."""

from __future__ import annotations

import math

import numpy as np
import pytest
from feature_cases import cases, oracle
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from window_rig import Case, check_board, check_host

from mcugen.dsp.ops.window_features import WindowFeatures
from mcugen.dsp.window_sums import WAVE

QUICK = settings(deadline=None, suppress_health_check=list(HealthCheck))
#: Many cases in one program: compilers take longer than cases. Not shrunk, the failing case is named.
BATCH = st.lists(cases(), min_size=40, max_size=40)
BATCHES = settings(QUICK, phases=[Phase.generate], report_multiple_bugs=False)


def exact_waves(n: int, first: int, last: int) -> list[list[int]]:
    """The tables from high-precision sines, rounded to nearest."""
    out = []
    for k in range(first, last + 1):
        for shift in (0, 1):  # cos(a) = sin(a + 90 degrees)
            out.append([math.floor(WAVE * _cos(4 * k * i - shift * n, 4 * n) + 0.5) for i in range(n)])
    return out


def _cos(numerator: int, denominator: int) -> float:
    """cos(2 pi numerator / denominator), with the exact values at multiples of 30 degrees."""
    r = numerator % denominator
    exact = {0: 1.0, 3: 0.0, 6: -1.0, 9: 0.0, 2: 0.5, 4: -0.5, 8: -0.5, 10: 0.5}
    twelfth = 12 * r / denominator
    return exact[int(twelfth)] if twelfth in exact else math.cos(2 * math.pi * r / denominator)


@settings(QUICK, max_examples=150)
@given(cases())
def test_equals_rational_arithmetic(case: tuple[WindowFeatures, np.ndarray]) -> None:
    op, x = case
    (y,) = op.eval(x)
    limit = np.array(op.limits, np.int64)
    clamped = np.clip(x.astype(np.int64), -limit - 1, limit)
    due = np.flatnonzero(op.due(len(x)))
    assert y.shape == (len(due), len(op.features))
    assert y.dtype == np.int32
    for row, last in zip(y, due, strict=True):
        for got, f in zip(row, op.features, strict=True):
            w = clamped[last - op.length + 1 : last + 1, f.channel].tolist()
            waves = exact_waves(op.length, *f.bins) if f.kind == "band_power" else []
            want = oracle(w, f, waves)
            assert -(2**31) <= want < 2**31, f
            assert int(got) == want, f


@settings(BATCHES, max_examples=4)
@given(batch=BATCH)
def test_c_on_the_host(
    batch: list[tuple[WindowFeatures, np.ndarray]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    check_host([Case(op, x) for op, x in batch], tmp_path_factory.mktemp("host"))


@settings(BATCHES, max_examples=3)
@given(batch=BATCH)
def test_c_on_the_board(
    batch: list[tuple[WindowFeatures, np.ndarray]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    check_board([Case(op, x) for op, x in batch], tmp_path_factory.mktemp("board"))
