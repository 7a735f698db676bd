"""The float32 ops: close to the source ops, and the emitted C bit for bit."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from plain_rig import LOC, Case, check_board, check_c

from mcugen.core.types import DType, TensorType
from mcugen.errors import InternalError
from mcugen.nn.ops.factivation import FActivation
from mcugen.nn.ops.fbinary import FBinary
from mcugen.nn.ops.fconv import FConv
from mcugen.nn.ops.fdense import FDense
from mcugen.nn.ops.float_math import erf_f32, log_f32, tanh_f32
from mcugen.nn.ops.fpool import FPool
from mcugen.nn.ops.frecurrent import FGru, FLstm
from mcugen.nn.ops.fscale import FScale
from mcugen.nn.ops.fsoftmax import FSoftmax
from mcugen.nn.ops.window import physical
from mcugen.nn.source import Activation, Conv, Gru, Lstm, Pool, Softmax

X, Y = ("x",), ("y",)
ODD = np.array(
    [0.0, -0.0, np.nan, np.inf, -np.inf, 1e-42, -1e-42, 3e38, -3e38, 0.625, -0.625, 88.8, -104.1], np.float32
)


def floats(seed: int, *shape: int, size: float = 1.0) -> np.ndarray:
    return (np.random.default_rng(seed).normal(size=shape) * size).astype(np.float32)


def conv(seed: int, groups: int = 1, **change: Any) -> tuple[FConv, Conv]:
    c, oc = 2 * groups, 3 * groups
    source = Conv(
        X, Y, LOC, floats(seed, oc, 2, 3, 2), floats(seed + 1, oc),
        **({"stride": (2, 1), "pads": (1, 0, 2, 1), "dilation": (1, 2), "groups": groups} | change),
    )  # fmt: skip
    shape = (c, 6, 5)
    ((out, oh, ow),) = source.result_shapes(shape)
    weight = np.ascontiguousarray(source.weight.transpose(0, 2, 3, 1))
    window = (source.stride, source.pads, source.dilation, groups)
    return FConv(X, Y, LOC, shape, (out, oh, ow), weight, source.bias, *window), source


@pytest.mark.parametrize("groups", [1, 3])
def test_conv_is_close_to_the_source(groups: int) -> None:
    op, source = conv(groups, groups)
    op.check({"x": TensorType(op.in_shape, DType.F32), "y": TensorType(op.out_shape, DType.F32)})
    x = floats(9, 2, *op.in_shape)
    np.testing.assert_allclose(op.eval(x)[0], source.eval(x)[0], rtol=1e-5, atol=1e-5)
    clamped = replace(op, low=0.0, high=1.0)
    np.testing.assert_array_equal(clamped.eval(x)[0], np.clip(op.eval(x)[0], 0, 1))


def test_tanh_is_within_three_units() -> None:
    x = np.concatenate([floats(1, 20000, size=2.0), floats(2, 2000, size=1e-3), ODD])
    y, exact = tanh_f32(x), np.tanh(x.astype(np.float64))
    fine = np.isfinite(x) & (np.abs(x) > 1e-37)
    units = np.abs(y[fine] - exact[fine]) / np.spacing(np.abs(exact[fine]).astype(np.float32))
    assert units.max() < 3.0
    assert np.isnan(tanh_f32(np.array([np.nan], np.float32)))[0]
    assert tanh_f32(np.array([np.inf, -np.inf, 0.0], np.float32)).tolist() == [1.0, -1.0, 0.0]


def test_erf_is_within_three_units() -> None:
    """Python's own erf has double precision."""
    x = np.concatenate([floats(3, 20000, size=2.0), floats(4, 2000, size=1e-3), ODD, np.float32([1, -1, 4, -4, 3.99])])
    y, exact = erf_f32(x), np.array([math.erf(v) for v in x.astype(np.float64)])
    fine = np.isfinite(x) & (np.abs(x) > 1e-37)
    units = np.abs(y[fine] - exact[fine]) / np.spacing(np.abs(exact[fine]).astype(np.float32))
    assert units.max() < 3.0
    assert np.isnan(erf_f32(np.array([np.nan], np.float32)))[0]
    assert erf_f32(np.array([np.inf, -np.inf, 0.0], np.float32)).tolist() == [1.0, -1.0, 0.0]


def test_log_is_within_two_units() -> None:
    """Over all magnitudes, denormal ones too, and near 1, where a logarithm is small."""
    rng = np.random.default_rng(8)
    x = np.concatenate([2.0 ** rng.uniform(-149, 128, 40000), rng.uniform(0.5, 2, 20000), 1 + floats(5, 2000) * 1e-6])
    x = x.astype(np.float32)
    x = x[(x > 0) & np.isfinite(x)]
    want = np.log(x.astype(np.float64))
    units = np.abs(log_f32(x) - want) / np.spacing(np.abs(want).astype(np.float32))
    assert units.max() < 2.0
    odd = log_f32(np.float32([-1, -np.inf, np.nan, np.inf, 1, 0.0, -0.0]))
    assert np.isnan(odd[:3]).all()
    assert odd[3:].tolist() == [np.inf, 0.0, -np.inf, -np.inf]


ACTIVATION_FIELDS: list[dict[str, Any]] = [
    {"kind": "relu"},
    {"kind": "leaky_relu", "alpha": 0.1},
    {"kind": "clip", "low": -1.0, "high": 2.0},
    {"kind": "clip", "low": -1.0},
    {"kind": "sigmoid"},
    {"kind": "tanh"},
    {"kind": "hard_sigmoid", "alpha": 0.2, "beta": 0.5},
    {"kind": "hard_swish"},
    {"kind": "elu", "alpha": 0.7},
    {"kind": "thresholded_relu", "alpha": 0.3},
    {"kind": "softplus"},
    {"kind": "softsign"},
    {"kind": "abs"},
    {"kind": "exp"},
    {"kind": "erf"},
    {"kind": "power", "alpha": -1.0},
    {"kind": "sqrt"},
    {"kind": "log"},
]


@pytest.mark.parametrize("fields", ACTIVATION_FIELDS)
def test_activation_is_close_to_the_source(fields: dict[str, Any]) -> None:
    x = floats(3, 1, 500, size=3.0)
    y = FActivation(X, Y, LOC, count=500, **fields).eval(x)[0]
    np.testing.assert_allclose(y, Activation(X, Y, LOC, **fields).eval(x)[0], rtol=1e-6, atol=2e-7)


def pool(kind: str, seed: int, planar: bool = True) -> tuple[FPool, Pool]:
    source = Pool(X, Y, LOC, kind, (2, 3), (2, 1), (1, 1, 0, 1), (1, 1), bool(seed % 2), bool(seed % 3))
    shape = (3, 5, 4)
    ((c, oh, ow),) = source.result_shapes(shape)
    window = (source.kernel, source.stride, source.pads, source.dilation, source.count_include_pad)
    return FPool(X, Y, LOC, kind, shape, (c, oh, ow), *window, planar), source


@pytest.mark.parametrize("kind", ["max", "avg"])
@pytest.mark.parametrize("seed", range(4))
def test_pool_is_close_to_the_source(kind: str, seed: int) -> None:
    op, source = pool(kind, seed)
    x = floats(seed, 2, *op.in_shape)
    np.testing.assert_allclose(op.eval(x)[0], source.eval(x)[0], rtol=1e-5, atol=1e-6)


def recurrent(seed: int, inputs: int, hidden: int, steps: int, start: bool) -> list[tuple[Any, Any]]:
    k = 4 * hidden
    w, r, b, b2 = floats(seed, k, inputs), floats(seed + 1, k, hidden), floats(seed + 2, k), floats(seed + 3, k)
    h0, c0 = (np.tanh(floats(seed + 4 + i, hidden)) * np.float32(start) for i in (0, 1))
    y = ("y", "h", "c")
    pairs: list[tuple[Any, Any]] = [
        (FLstm(X, y, LOC, steps, w, r, b, np.concatenate([h0, c0])), Lstm(X, y, LOC, w, r, b, h0, c0))
    ]
    k = 3 * hidden
    for after in (False, True):
        parts = (w[:k], r[:k], b[:k], b2[:k], h0, after)
        pairs.append((FGru(X, y[:2], LOC, steps, *parts), Gru(X, y[:2], LOC, *parts)))
    return pairs


@pytest.mark.parametrize("start", [False, True])
def test_recurrent_layers_are_close_to_the_source(start: bool) -> None:
    for op, source in recurrent(5, 3, 4, 6, start):
        types = {"x": TensorType((6, 3), DType.F32), "y": TensorType((6, 4), DType.F32)}
        op.check({**types, "h": TensorType((4,), DType.F32), "c": TensorType((4,), DType.F32)})
        x = floats(6, 2, 6, 3)
        for found, exact in zip(op.eval(x), source.eval(x), strict=True):
            np.testing.assert_allclose(found, exact, rtol=1e-4, atol=2e-6)


def test_softmax_is_close_to_the_source() -> None:
    x = floats(3, 2, 4, 7, size=5.0)
    found = FSoftmax(X, Y, LOC, 4, 7).eval(x)[0]
    np.testing.assert_allclose(found, Softmax(X, Y, LOC, 1).eval(x)[0], rtol=1e-5)


def test_emitted_c(tmp_path: Path) -> None:
    cases = []
    for i, (groups, fields) in enumerate([(1, {}), (3, {}), (2, {"in_planar": False}), (1, {"out_planar": False})]):
        op = replace(conv(i, groups)[0], low=(-np.inf, 0.0)[i % 2], **fields)
        cases.append(Case(op, (floats(i, *op.in_physical),)))
    for i in range(30):  # pixels one by one and in twos, outputs left over from fours, depthwise in fours, odd strides
        rng = np.random.default_rng(i)
        groups, inside = (1, int(rng.integers(1, 6))) if i % 2 else (int(rng.integers(1, 5)), 1)
        per, kernel = int(rng.integers(1, 7)), rng.integers(1, 4, 2)
        window = {"stride": tuple(rng.integers(1, 3, 2).tolist()), "pads": tuple(rng.integers(0, 3, 4).tolist())}
        size = rng.integers(3, 14, 2)
        source = Conv(X, Y, LOC, floats(i, groups * per, inside, *kernel), floats(i + 1, groups * per), groups=groups,
                      dilation=(1, 1), **window)  # fmt: skip
        shape = (groups * inside, int(size[0]), int(size[1]))
        ((out, oh, ow),) = source.result_shapes(shape)
        op = FConv(
            X, Y, LOC, shape, (out, oh, ow), np.ascontiguousarray(source.weight.transpose(0, 2, 3, 1)), source.bias,
            source.stride, source.pads, source.dilation, groups, in_planar=i % 3 > 0, out_planar=i % 5 > 0,
        )  # fmt: skip
        x = floats(i, *op.in_physical)
        x.reshape(-1)[:: 7 + i] = (-0.0, np.inf, np.nan)[i % 3]
        cases.append(Case(op, (x,)))
    # Only padding under every tap: the sum is its bias, even if that is -0.0.
    lone = replace(conv(4)[0], in_shape=(2, 1, 1), out_shape=(3, 3, 3), weight=floats(1, 3, 1, 1, 2))
    lone = replace(lone, stride=(1, 1), pads=(1, 1, 1, 1), dilation=(1, 1), bias=np.array([-0.0, 0.0, 1.0], np.float32))
    cases.append(Case(lone, (np.full((2, 1, 1), -0.0, np.float32),)))
    cases.append(Case(FDense(X, Y, LOC, floats(1, 5, 33), floats(2, 5)), (floats(3, 33),)))
    cases.append(
        Case(FDense(X, Y, LOC, floats(1, 2, 2), floats(2, 2), 0.0, 6.0), (np.array([np.nan, np.inf], np.float32),))
    )
    x = np.concatenate([floats(1, 100, size=3.0), ODD])
    for kind in ("add", "sub", "mul"):
        cases.append(Case(FBinary(("a", "b"), Y, LOC, kind, x.size, -2.0, 1e30), (x, x[::-1].copy())))
    cases += [Case(FActivation(X, Y, LOC, count=x.size, **f), (x,)) for f in ACTIVATION_FIELDS]
    cases.append(Case(FScale(X, Y, LOC, 2, 3, 4, floats(1, 3), floats(2, 3)), (floats(3, 2, 3, 4),)))
    for i, kind in enumerate(("max", "avg", "max", "avg", "avg")):
        op = pool(kind, i, planar=i != 3)[0]
        values = floats(i, 60)
        values[7] = np.nan if i % 2 else -np.inf
        cases.append(Case(op, (values.reshape(physical(op.in_shape, op.planar)),)))
    cases.append(Case(FSoftmax(X, Y, LOC, 3, 7), (floats(2, 3, 7, size=30.0),)))
    for i, (inputs, hidden, steps) in enumerate([(1, 1, 2), (3, 5, 4)]):
        cases += [Case(op, (floats(i, steps, inputs),)) for op, _ in recurrent(i, inputs, hidden, steps, i > 0)]
    lstm = recurrent(3, 2, 3, 2, True)[0][0]
    cases.append(Case(replace(lstm, outputs=("h",), wanted=(False, True, False)), (floats(3, 2, 2),)))
    check_c(cases, tmp_path)
    check_board(cases, tmp_path)


def test_broken_fields_are_our_bug() -> None:
    op, _ = conv(0)
    types = {"x": TensorType(op.in_shape, DType.F32), "y": TensorType(op.out_shape, DType.F32)}
    for broken in (
        replace(op, bias=op.bias[:2]),
        replace(op, weight=op.weight * np.float32(np.inf)),
        replace(op, groups=2),
        replace(op, stride=(1, 1)),
    ):
        with np.errstate(invalid="ignore"), pytest.raises(InternalError, match="FConv"):
            broken.check(types)
    with pytest.raises(InternalError, match="kind"):
        FBinary(("x", "x"), ("x",), LOC, "div", op.in_shape[0] * 30).check(types)
