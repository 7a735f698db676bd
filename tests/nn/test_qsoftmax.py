"""QSoftmax and QArgMax: against the float formula, rows alone, and the emitted C bit for bit."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from plain_rig import LOC, Case, check_board, check_c, i8, ints

from mcugen.core.types import DType, QParams, TensorType
from mcugen.errors import InternalError
from mcugen.nn.ops.qargmax import QArgMax
from mcugen.nn.ops.qsoftmax import SOFTMAX_PARAMS, QSoftmax, softmax_table, softmax_units


def softmax(rows: int, k: int, scale: float, units: int = 256) -> QSoftmax:
    return QSoftmax(("x",), ("y",), LOC, rows, k, softmax_table(QParams(scale, 3)), units)


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 4), st.integers(1, 40), st.floats(1e-3, 1.0), st.integers(0, 99), st.integers(1, 256))
def test_within_half_a_unit_of_the_formula(rows: int, k: int, scale: float, seed: int, units: int) -> None:
    op = softmax(rows, k, scale, units)
    q_out = QParams(float(np.float32(1 / units)), -128)
    op.check({"x": i8((rows, k), QParams(scale, 3)), "y": i8((rows, k), q_out)})
    x = ints(seed, rows * k).reshape(1, rows, k)
    e = np.exp(x * scale - (x * scale).max(axis=2, keepdims=True))
    exact = np.minimum(units * e / e.sum(axis=2, keepdims=True), 255) - 128
    # Each exponential is off by half of 2^-23 and their sum is 1 or more; the sum's half is rounded down.
    bound = 0.5 + units * (k + 1) * 2.0**-23
    assert np.abs(op.eval(x)[0] - exact).max() <= bound


def test_rows_are_independent() -> None:
    op, single = softmax(3, 10, 0.1), softmax(1, 10, 0.1)
    x = ints(4, 30).reshape(1, 3, 10)
    y = op.eval(x)[0]
    for r in range(3):
        np.testing.assert_array_equal(y[0, r], single.eval(x[:, r])[0][0])


def test_argmax_takes_the_lowest_index() -> None:
    op = QArgMax(("x",), ("y",), LOC, 2, 3, 2)
    x = np.array([[[5, 1], [5, 2], [4, 2]], [[-128, -128], [-128, -127], [-128, -128]]], np.int8)
    assert op.eval(x[None])[0].reshape(-1).tolist() == [0, 1, 0, 1]


def test_emitted_c(tmp_path: Path) -> None:
    cases = [
        Case(softmax(rows, k, scale), (ints(i, rows * k).reshape(rows, k),))
        for i, (rows, k, scale) in enumerate(
            [(1, 10, 0.1), (3, 10, 0.02), (2, 1, 1.0), (1, 511, 1e-4), (1, 512, 1e-4), (1, 3000, 0.001), (5, 7, 4.0)]
        )
    ]
    cases.append(Case(softmax(1, 511, 1e-9), (np.full((1, 511), 5, np.int8),)))
    for units, k in ((255, 12), (255, 600), (1, 4), (100, 9)):
        cases.append(Case(softmax(2, k, 0.05, units), (ints(units, 2 * k).reshape(2, k),)))
    for i, dtype in enumerate((DType.I8, DType.I16, DType.F32)):
        x = ints(i, 210, -3, 3).astype(dtype.np)
        if dtype is DType.F32:
            x[[3, 40, 41]] = np.nan
        cases.append(Case(QArgMax(("x",), ("y",), LOC, 5, 14, 3, dtype), (x.reshape(5, 14, 3),)))
        cases.append(Case(QArgMax(("x",), ("y",), LOC, 1, 210, 1, dtype), (x,)))
    check_c(cases, tmp_path)
    check_board(cases, tmp_path)


def test_units_of_scales() -> None:
    """1/256, what a file says for 1/255, and scales that no units give."""
    near = float(np.float32(1 / 255))
    found = [softmax_units(QParams(s, z)) for s, z in ((1 / 256, -128), (near, -128), (near, 0), (0.0035, -128))]
    assert found == [256, 255, None, None]
    assert [softmax_units(QParams(s, -128)) for s in (1.0, 1 / 257, 2.0, 1e-30)] == [1, None, None, None]


def test_broken_fields_are_our_bug() -> None:
    op = softmax(2, 5, 0.1)
    types = {"x": i8((2, 5), QParams(0.1, 3)), "y": i8((2, 5), SOFTMAX_PARAMS)}
    op.check(types)
    for broken in (
        replace(op, k=4),
        replace(op, units=255),
        replace(op, table=op.table[:255]),
        replace(op, table=op.table // 2),
    ):
        with pytest.raises(InternalError, match="QSoftmax"):
            broken.check(types)
    with pytest.raises(InternalError, match="scale"):
        op.check({**types, "y": i8((2, 5), QParams(0.1, -128))})
    best = QArgMax(("x",), ("z",), LOC, 2, 5, 1)
    best.check({**types, "z": TensorType((2,), DType.I32)})
    with pytest.raises(InternalError, match="QArgMax"):
        replace(best, k=4).check({**types, "z": TensorType((2,), DType.I32)})
