"""QLstm and QGru: fixed-point functions, error against the float layers, and the emitted C bit for bit."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from plain_rig import LOC, Case, check_board, check_c, i8, ints

from mcugen.core.types import QParams
from mcugen.errors import InternalError, UnsupportedError
from mcugen.nn.ops.qgru import QGru, gru_of
from mcugen.nn.ops.qlstm import QLstm, lstm_of
from mcugen.nn.ops.recurrent_math import sigmoid_fixed, tanh_fixed
from mcugen.nn.source import Gru, Lstm

Q_X, Q_H, Q_C = QParams(0.02, 5), QParams(1 / 128), QParams(1 / 32)
X, Y = ("x",), ("y", "h", "c")


def float_lstm(seed: int, inputs: int, hidden: int, *, start: bool = False, size: float = 1.0) -> Lstm:
    rng = np.random.default_rng(seed)

    def weights(*shape: int) -> np.ndarray:
        return (rng.normal(size=shape) * size / np.sqrt(shape[-1])).astype(np.float32)

    h0, c0 = (rng.uniform(-0.9, 0.9, hidden).astype(np.float32) * start for _ in range(2))
    return Lstm(X, Y, LOC, weights(4 * hidden, inputs), weights(4 * hidden, hidden), weights(4 * hidden), h0, c0)


def float_gru(seed: int, inputs: int, hidden: int, after: bool, *, start: bool = False, size: float = 1.0) -> Gru:
    f = float_lstm(seed, inputs, hidden, start=start, size=size)
    k = 3 * hidden
    return Gru(X, Y[:2], LOC, f.w[:k], f.r[:k], f.b[:k], f.b[-k:], f.h0, after)


def of_lstm(f: Lstm, steps: int) -> QLstm:
    return lstm_of(f, X, Y, steps, Q_X, (Q_H, Q_H, Q_C))


def of_gru(f: Gru, steps: int) -> QGru:
    return gru_of(f, X, Y[:2], steps, Q_X, (Q_H, Q_H))


def test_fixed_point_functions_keep_their_bounds() -> None:
    v = np.unique(
        np.concatenate([np.arange(-20 << 16, 20 << 16, 37), [0, -1, 1, 1 << 30, -(1 << 30), 8 << 16, (8 << 16) - 1]])
    )
    real = v / 65536.0
    assert np.abs(tanh_fixed(v) - 32768 * np.tanh(real)).max() <= 1.8
    assert np.abs(sigmoid_fixed(v) - 32768 / (1 + np.exp(-np.maximum(real, -700)))).max() <= 1.5
    assert (np.diff(tanh_fixed(v)) >= 0).all()


def dequantized(weight: np.ndarray, q: np.ndarray) -> np.ndarray:
    """The nearest float weights that the integer rows stand for."""
    rows = q.reshape(len(weight), -1).astype(np.float64)
    scale = np.abs(weight.astype(np.float64)).max(axis=1) / 127
    return (rows * scale[:, None]).astype(np.float32)


@pytest.mark.parametrize("start", [False, True])
def test_lstm_against_float(start: bool) -> None:
    f = float_lstm(3, 6, 20, start=start, size=2.0)
    op = of_lstm(f, 30)
    x = ints(3, 4 * 30 * 6).reshape(4, 30, 6)
    real = ((x.astype(np.float64) - Q_X.zero_point) * Q_X.scale).astype(np.float32)
    same = replace(f, w=dequantized(f.w, op.gates.w), r=dequantized(f.r, op.gates.r))
    got = [(y * q.scale) for y, q in zip(op.eval(x), (Q_H, Q_H, Q_C), strict=True)]
    for y, exact, q in zip(got, same.eval(real), (Q_H, Q_H, Q_C), strict=True):
        # Half a unit of the result, and what errors of some 2^-15 grow to in 30 steps.
        assert np.abs(y - np.clip(exact, -128 * q.scale, 127 * q.scale)).max() <= 0.5 * q.scale + 2e-3
    assert np.abs(got[0] - f.eval(real)[0]).mean() < 0.02  # int8 weights too


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("start", [False, True])
def test_gru_against_float(after: bool, start: bool) -> None:
    f = float_gru(4, 6, 20, after, start=start, size=2.0)
    op = of_gru(f, 30)
    x = ints(3, 4 * 30 * 6).reshape(4, 30, 6)
    real = ((x.astype(np.float64) - Q_X.zero_point) * Q_X.scale).astype(np.float32)
    same = replace(f, w=dequantized(f.w, op.gates.w), r=dequantized(f.r, op.gates.r))
    got = [y * Q_H.scale for y in op.eval(x)]
    for y, exact in zip(got, same.eval(real), strict=True):
        assert np.abs(y - np.clip(exact, -1.0, 127 / 128)).max() <= 0.5 * Q_H.scale + 2e-3
    assert np.abs(got[0] - f.eval(real)[0]).mean() < 0.02


def test_emitted_c(tmp_path: Path) -> None:
    cases = []
    for i, (inputs, hidden, steps, size) in enumerate(
        [(1, 1, 3, 1.0), (3, 5, 4, 3.0), (4, 8, 2, 300.0), (7, 18, 5, 1.0)]
    ):
        x = ints(i, inputs * steps).reshape(steps, inputs)
        start = i % 2 == 1
        op = of_lstm(float_lstm(i, inputs, hidden, start=start, size=size), steps)
        cases.append(Case(op, (x,)))
        for after in (False, True):
            gru = of_gru(float_gru(i, inputs, hidden, after, start=start, size=size), steps)
            cases.append(Case(gru, (x,)))
    partly = lstm_of(float_lstm(9, 3, 4), X, ("h",), 3, QParams(0.5, -128), (None, QParams(0.9, 3), None))
    cases.append(Case(partly, (ints(5, 9).reshape(3, 3),)))
    long = of_lstm(float_lstm(10, 1, 2, size=40.0), 3000)
    cases.append(Case(long, (np.full((3000, 1), 127, np.int8),)))
    check_c(cases, tmp_path)
    check_board(cases, tmp_path)


def test_wide_layers_keep_their_sums_in_int32() -> None:
    f = float_lstm(5, 2, 700)
    r = np.where(np.random.default_rng(0).random(f.r.shape) < 0.5, -1, 1).astype(np.float32)
    op = of_lstm(replace(f, r=r), 1)
    assert op.gates.problem(op.in_zp) == ""
    assert np.abs(op.gates.r.astype(np.int64)).sum(axis=2).max() * 32768 < 1 << 31


def test_dead_weights_and_large_biases() -> None:
    f = float_lstm(5, 2, 3)
    dead = of_lstm(replace(f, w=f.w * np.float32(1e-33)), 2)
    assert not dead.gates.w.any()
    with pytest.raises(UnsupportedError, match="bias"):
        of_lstm(replace(f, b=f.b + np.float32(5000.0)), 2)


def test_broken_fields_are_our_bug() -> None:
    op = of_lstm(float_lstm(5, 2, 3), 4)
    types = {"x": i8((4, 2), Q_X), "y": i8((4, 3), Q_H), "h": i8(3, Q_H), "c": i8(3, Q_C)}
    op.check(types)
    for broken in (
        replace(op, steps=3),
        replace(op, in_zp=0),
        replace(op, cell=None),
        replace(op, start=np.zeros(5, np.int32)),
        replace(op, gates=replace(op.gates, w=op.gates.w[:3])),
        replace(op, gates=replace(op.gates, bias_x=op.gates.bias_x.astype(np.int64))),
    ):
        with pytest.raises(InternalError, match="QLstm"):
            broken.check(types)
