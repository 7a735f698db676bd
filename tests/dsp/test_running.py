"""RunningMean, RunningMedian, RunningExtreme, KeepEvery: against SciPy and exact numbers, C against the reference."""

from __future__ import annotations

from fractions import Fraction
from math import floor
from pathlib import Path

import numpy as np
import pytest
from filter_cases import channels_of, signals
from hypothesis import given, settings
from hypothesis import strategies as st
from push_rig import LOC, Case, check_board, check_c
from scipy import ndimage

from mcugen.core.op import MachineOp
from mcugen.core.types import DType
from mcugen.dsp.ops import KeepEvery, RunningExtreme, RunningMean, RunningMedian

LENGTHS = (1, 2, 3, 4, 5, 7, 16, 33)


def op_of(kind: type, dtype: DType, width: int, *fields: object, channels: tuple[int, ...] | None = None) -> MachineOp:
    return kind(("x",), ("y",), LOC, channels or tuple(range(width)), width, dtype, *fields)


def cases(kind: type) -> list[Case]:
    found = []
    for dtype in (DType.I16, DType.I32) if kind is RunningMean else (DType.I16, DType.I32, DType.F32):
        for length in LENGTHS:
            if kind is RunningMedian and length % 2 == 0:
                continue
            x = channels_of(signals(dtype.np.type, length, 80))
            for extra in ((True,), (False,)) if kind is RunningExtreme else ((),):
                found.append(Case(op_of(kind, dtype, x.shape[1], length, *extra), x))
                found.append(Case(op_of(kind, dtype, x.shape[1], length, *extra, channels=(3, 0)), x[:12]))
    return found


@pytest.mark.parametrize("kind", [RunningMean, RunningMedian, RunningExtreme])
def test_c_equals_reference(kind: type, tmp_path: Path) -> None:
    check_c(cases(kind), tmp_path)


@pytest.mark.parametrize("kind", [RunningMean, RunningMedian, RunningExtreme])
def test_board_equals_reference(kind: type, tmp_path: Path) -> None:
    check_board(cases(kind), tmp_path)


def test_longest_mean(tmp_path: Path) -> None:
    """65535 samples at the ends of the type: the last that the 32-bit division holds."""
    ends = {DType.I16: (-32768, 32767), DType.I32: (-(2**31), 2**31 - 1)}
    for i, (dtype, (low, top)) in enumerate(ends.items()):
        (tmp_path / str(i)).mkdir()
        x = np.repeat([[low, top]], 65600, axis=0).astype(dtype.np)
        op = op_of(RunningMean, dtype, 2, 65535)
        assert op.eval(x)[0][-1].tolist() == [low, top]
        check_c([Case(op, x)], tmp_path / str(i), ["plain"])


SAMPLES = st.lists(st.integers(-32768, 32767), min_size=1, max_size=40)


@settings(max_examples=80, deadline=None)
@given(SAMPLES, st.integers(1, 9))
def test_mean_is_the_nearest(x: list[int], length: int) -> None:
    y = op_of(RunningMean, DType.I16, 1, length).eval(np.array(x, np.int16)[:, None])[0][:, 0]
    for n, value in enumerate(y.tolist()):
        mean = Fraction(sum(x[max(0, n - length + 1) : n + 1]), length)
        assert abs(mean - value) <= Fraction(1, 2)


@settings(max_examples=80, deadline=None)
@given(SAMPLES, st.integers(0, 4))
def test_median_as_scipy(x: list[int], half: int) -> None:
    length, values = 2 * half + 1, np.array(x, np.int16)
    y = op_of(RunningMedian, DType.I16, 1, length).eval(values[:, None])[0][:, 0]
    expected = ndimage.median_filter(values, length, mode="nearest", origin=half)
    np.testing.assert_array_equal(y, expected)


@settings(max_examples=80, deadline=None)
@given(SAMPLES, st.integers(1, 9), st.booleans())
def test_extreme_of_what_was_seen(x: list[int], length: int, greatest: bool) -> None:
    y = op_of(RunningExtreme, DType.I16, 1, length, greatest).eval(np.array(x, np.int16)[:, None])[0][:, 0]
    for n, value in enumerate(y.tolist()):
        seen = x[max(0, n - length + 1) : n + 1]
        assert value == (max(seen) if greatest else min(seen))


@pytest.mark.parametrize("factor", [1, 2, 3, 7])
def test_keep_every(factor: int, tmp_path: Path) -> None:
    x = channels_of(signals(np.int16, 1, 23))
    op = KeepEvery(("x",), ("y",), LOC, x.shape[1], factor)
    assert op.due(23).sum() == len(op.eval(x)[0])
    np.testing.assert_array_equal(op.eval(x)[0], x[op.due(23)])
    check_c([Case(op, x)], tmp_path)


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 12), st.integers(0, 40))
def test_keep_every_counts(factor: int, pushes: int) -> None:
    op = KeepEvery(("x",), ("y",), LOC, 1, factor)
    assert op.due(pushes).sum() == floor((pushes + factor - 1) / factor)
