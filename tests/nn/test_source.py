"""Source ops of nets: meaning at known values, what they refuse, and what holds for every one of them."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcugen.core.types import DType, Loc, TensorType
from mcugen.errors import InternalError
from mcugen.nn.source import (
    SOURCE_OPS,
    Activation,
    Affine,
    ArgMax,
    Binary,
    Concat,
    Conv,
    Dense,
    DepthToSpace,
    FakeQuant,
    Function,
    GlobalPool,
    Gru,
    LogSoftmax,
    Lstm,
    NetOp,
    Normalize,
    Pad,
    Pool,
    Reduce,
    Repeat,
    Reshape,
    Select,
    Shape,
    ShapeError,
    Slice,
    Softmax,
    Transpose,
    no_bias,
)

LOC = Loc("net.onnx", "node")
RNG = np.random.default_rng(5)


def f(*shape: int) -> np.ndarray:
    return RNG.normal(0, 1, shape).astype(np.float32)


def make(cls: type[NetOp], operands: int = 1, results: int = 1, **values: Any) -> NetOp:
    return cls(tuple(f"x{k}" for k in range(operands)), tuple(f"y{k}" for k in range(results)), LOC, **values)


#: One of each class with operands that it accepts.
GOOD: list[tuple[NetOp, tuple[Shape, ...]]] = [
    (make(Conv, weight=f(4, 3, 3, 2), bias=f(4), stride=(2, 1), pads=(1, 0, 2, 1), dilation=(1, 2)), ((3, 7, 6),)),
    (make(Conv, weight=f(6, 1, 3, 3), bias=f(6), groups=3), ((3, 7, 6),)),
    (make(Dense, weight=f(4, 5), bias=f(4)), ((5,),)),
    (make(Dense, weight=f(4, 5), bias=f(4)), ((3, 5),)),
    (make(Affine, scale=f(3), offset=f(3), axis=1), ((2, 3),)),
    (make(Affine, scale=f(1), offset=f(1)), ((2, 3),)),
    (make(Binary, 2, kind="sub"), ((2, 3), (2, 1))),
    (make(Select, 3), ((2, 3), (2, 3), (2, 3))),
    (make(Activation, kind="tanh"), ((2, 3),)),
    (
        make(
            Function,
            parts=(
                Activation(("x0",), ("s",), Loc("net.onnx", "node"), "sigmoid"),
                Binary(("x0", "s"), ("y0",), Loc("net.onnx", "node"), "mul"),
            ),
        ),
        ((2, 3),),
    ),
    (make(Repeat, factors=(1, 2, 3)), ((2, 3, 1),)),
    (make(DepthToSpace, block=(1, 2)), ((4, 3, 2),)),
    (make(Reduce, kind="max", axes=(1,), keepdims=True), ((2, 7, 6),)),
    (make(FakeQuant, scale=0.1, zero_point=-3), ((2, 3),)),
    (make(Softmax, axis=1), ((2, 3),)),
    (make(LogSoftmax, axis=1), ((2, 3),)),
    (make(Normalize, rows=2, epsilon=1e-5, scale=f(4), offset=f(4), inner=3), ((4, 3),)),
    (make(ArgMax, axis=0, keepdims=False), ((2, 3),)),
    (make(Pool, kind="max", kernel=(3, 2), stride=(2, 2), pads=(1, 0, 1, 1)), ((2, 7, 6),)),
    (make(Pool, kind="avg", kernel=(2, 2), stride=(2, 2), ceil_mode=True), ((2, 7, 5),)),
    (make(GlobalPool, kind="avg"), ((2, 7, 6),)),
    (make(Reduce, kind="mean", axes=(0, 2), keepdims=False), ((2, 7, 6),)),
    (make(Reshape, shape=(3, 2)), ((6,),)),
    (make(Transpose, perm=(2, 0, 1)), ((2, 3, 4),)),
    (make(Concat, 2, axis=0), ((2, 3), (4, 3))),
    (make(Slice, starts=(1, 3), steps=(1, -2), shape=(1, 2)), ((2, 4),)),
    (make(Pad, pads=((0, 1), (2, 0)), value=1.5), ((2, 3),)),
    (make(Lstm, 1, 3, w=f(8, 3), r=f(8, 2), b=f(8), h0=f(2), c0=f(2)), ((5, 3),)),
    (make(Gru, 1, 2, w=f(6, 3), r=f(6, 2), bw=f(6), br=f(6), h0=f(2), linear_before_reset=True), ((5, 3),)),
]
IDS = [f"{type(op).__name__}{k}" for k, (op, _) in enumerate(GOOD)]


def types_of(op: NetOp, shapes: tuple[Shape, ...]) -> dict[str, TensorType]:
    out = {n: TensorType(s, DType.F32) for n, s in zip(op.inputs, shapes, strict=True)}
    results = zip(op.outputs, op.result_shapes(*shapes), strict=True)
    return out | {n: TensorType(s, op.result) for n, s in results}


def test_every_op_is_here() -> None:
    assert {type(op) for op, _ in GOOD} == set(SOURCE_OPS)


@pytest.mark.parametrize(("op", "shapes"), GOOD, ids=IDS)
def test_shapes_and_types_of_results(op: NetOp, shapes: tuple[Shape, ...]) -> None:
    types = types_of(op, shapes)
    op.check(types)
    batch = [f(3, *s) for s in shapes]
    results = op.eval(*batch)
    for name, y in zip(op.outputs, results, strict=True):
        assert y.shape == (3, *types[name].shape)
        assert y.dtype == types[name].dtype.np
    # Samples do not see one another, and operands stay as they are.
    copies = [b.copy() for b in batch]
    for k in range(3):
        for y, one in zip(results, op.eval(*(b[k : k + 1] for b in batch)), strict=True):
            np.testing.assert_allclose(y[k], one[0], rtol=1e-6, atol=1e-6)
    assert all(np.array_equal(a, b) for a, b in zip(batch, copies, strict=True))


@pytest.mark.parametrize(("op", "shapes"), GOOD, ids=IDS)
def test_check_finds_wrong_types(op: NetOp, shapes: tuple[Shape, ...]) -> None:
    types = types_of(op, shapes)
    first = op.outputs[0]
    for wrong in (
        {first: TensorType((*types[first].shape, 2), types[first].dtype)},
        {first: TensorType(types[first].shape, DType.I8)},
        {op.inputs[0]: TensorType(types[op.inputs[0]].shape, DType.I8)},
        {op.inputs[0]: TensorType((), DType.F32)},
    ):
        if wrong == {op.inputs[0]: TensorType((), DType.F32)} and isinstance(op, Activation | FakeQuant | Function):
            continue
        with pytest.raises(InternalError):
            op.check(types | wrong)
    with pytest.raises(InternalError):
        op.check({k: v for k, v in types.items() if k != first})


@pytest.mark.parametrize("cls", SOURCE_OPS, ids=lambda c: c.__name__)
def test_ops_are_values(cls: type[NetOp]) -> None:
    assert cls.__doc__
    assert [x.name for x in fields(cls)][:3] == ["inputs", "outputs", "loc"]
    assert not hasattr(next(op for op, _ in GOOD if type(op) is cls), "__dict__")


BAD: list[tuple[NetOp, tuple[Shape, ...]]] = [
    (make(Conv, weight=f(4, 3, 3, 3), bias=f(4)), ((2, 7, 6),)),
    (make(Conv, weight=f(4, 3, 3, 3), bias=f(3)), ((3, 7, 6),)),
    (make(Conv, weight=f(4, 3, 3, 3), bias=f(4)), ((3, 2, 6),)),
    (make(Conv, weight=f(4, 1, 3, 3), bias=f(4), groups=3), ((3, 7, 6),)),
    (make(Conv, weight=f(4, 3, 3, 3), bias=f(4), pads=(-1, 0, 0, 0)), ((3, 7, 6),)),
    (make(Conv, weight=f(4, 3, 1, 1), bias=f(4), weight_q=np.zeros((4, 3, 1, 1), np.int8)), ((3, 7, 6),)),
    (make(Dense, weight=f(4, 5), bias=f(4), weight_q=np.zeros((4, 5)), weight_scale=f(4)), ((5,),)),
    (make(Dense, weight=f(4, 5), bias=f(4), bias_q=np.zeros(4, np.int32)), ((5,),)),
    (make(Dense, weight=f(4, 5), bias=f(4)), ((6,),)),
    (make(Affine, scale=f(3), offset=f(2)), ((3,),)),
    (make(Affine, scale=f(3), offset=f(3), axis=1), ((3,),)),
    (make(Binary, 2, kind="add"), ((2, 3), (3,))),
    (make(Binary, 2, kind="max"), ((2, 3), (2, 3))),
    (make(Activation, kind="gelu"), ((2,),)),
    (make(Activation, kind="clip", low=1.0, high=0.0), ((2,),)),
    (make(FakeQuant, scale=0.0, zero_point=0), ((2,),)),
    (make(FakeQuant, scale=1.0, zero_point=128), ((2,),)),
    (make(FakeQuant, scale=1.0, zero_point=0, dtype=DType.U8), ((2,),)),
    (make(Softmax, axis=-1), ((2,),)),
    (make(LogSoftmax, axis=1), ((2,),)),
    (make(Normalize, rows=5, epsilon=1e-5, scale=f(3), offset=f(3)), ((4, 3),)),
    (make(Normalize, rows=4, epsilon=1e-5, scale=f(5), offset=f(5)), ((4, 3),)),
    (make(Normalize, rows=4, epsilon=1e-5, scale=f(3), offset=f(3), inner=2), ((4, 3),)),
    (make(Normalize, rows=4, epsilon=-1.0, scale=f(3), offset=f(3)), ((4, 3),)),
    (make(ArgMax, axis=0, keepdims=False), ((2,),)),
    (make(Pool, kind="max", kernel=(2, 2), pads=(2, 0, 0, 0)), ((2, 4, 4),)),
    (make(Pool, kind="avg", kernel=(1, 2), pads=(0, 1, 0, 1), dilation=(1, 2)), ((2, 1, 1),)),
    (make(Pool, kind="max", kernel=(5, 2)), ((2, 4, 4),)),
    (make(Reduce, kind="mean", axes=(0,), keepdims=False), ((2,),)),
    (make(Reduce, kind="mean", axes=(0, 0), keepdims=True), ((2, 3),)),
    (make(Reshape, shape=(3, 2)), ((5,),)),
    (make(Transpose, perm=(0, 0)), ((2, 3),)),
    (make(Concat, 2, axis=0), ((2, 3), (4, 2))),
    (make(Slice, starts=(1,), steps=(1,), shape=(4,)), ((4,),)),
    (make(Slice, starts=(1,), steps=(-1,), shape=(3,)), ((4,),)),
    (make(Pad, pads=((-1, 0),)), ((4,),)),
    (make(Lstm, 1, 3, w=f(8, 3), r=f(8, 2), b=f(8), h0=f(2), c0=f(2)), ((5, 4),)),
    (make(Gru, 1, 2, w=f(6, 3), r=f(6, 2), bw=f(6), br=f(5), h0=f(2), linear_before_reset=True), ((5, 3),)),
]


@pytest.mark.parametrize(("op", "shapes"), BAD, ids=[f"{type(op).__name__}{k}" for k, (op, _) in enumerate(BAD)])
def test_refused(op: NetOp, shapes: tuple[Shape, ...]) -> None:
    with pytest.raises(ShapeError):
        op.result_shapes(*shapes)


def test_activations_at_known_values() -> None:
    x = np.float32([[-4, -1, 0, 0.5, 4, 1e30, -1e30]])
    expected = {
        "relu": [0, 0, 0, 0.5, 4, 1e30, 0],
        "leaky_relu": [-1, -0.25, 0, 0.5, 4, 1e30, -2.5e29],
        "clip": [-2, -1, 0, 0.5, 3, 3, -2],
        "hard_sigmoid": [0, 0.25, 0.5, 0.625, 1, 1, 0],
        "hard_swish": [0, -1 / 3, 0, 0.5 * (3.5 / 6), 4, 1e30, 0],
        "sigmoid": [1 / (1 + np.exp(4)), 1 / (1 + np.exp(1)), 0.5, 1 / (1 + np.exp(-0.5)), 1 / (1 + np.exp(-4)), 1, 0],
        "tanh": [*np.tanh([-4, -1, 0, 0.5, 4]), 1, -1],
    }
    for kind, y in expected.items():
        op = make(Activation, kind=kind, alpha=0.25, beta=0.5, low=-2.0, high=3.0)
        np.testing.assert_allclose(op.eval(x)[0][0], y, rtol=1e-6, atol=0, err_msg=kind)


@given(st.floats(2**-20, 2**10, width=32), st.integers(-128, 127), st.integers(-400, 400))
def test_fake_quant_keeps_its_own_grid(scale: float, zero: int, q: int) -> None:
    op = make(FakeQuant, scale=scale, zero_point=zero)
    x = np.float32([[(np.clip(q, -128, 127) - zero) * np.float32(scale)]])
    (y,) = op.eval(x)
    assert y == x
    (again,) = op.eval(y)
    assert np.array_equal(again, y)


def test_softmax_of_large_values_and_rows() -> None:
    x = np.float32([[[1e4, 1e4 + 1], [-1e4, -1e4]]])
    (y,) = make(Softmax, axis=1).eval(x)
    np.testing.assert_allclose(y[0], [[1 / (1 + np.e), np.e / (1 + np.e)], [0.5, 0.5]], rtol=1e-6)
    rows = f(1, 3, 10)  # N4: each row equals its single-row run
    single = [make(Softmax, axis=1).eval(rows[:, k : k + 1])[0][0, 0] for k in range(3)]
    assert np.array_equal(make(Softmax, axis=1).eval(rows)[0][0], single)


def test_log_softmax_of_large_values() -> None:
    x = np.float32([[[1e4, 1e4 + 1], [-1e4, 1e4]]])
    (y,) = make(LogSoftmax, axis=1).eval(x)
    np.testing.assert_allclose(y[0], [[-np.log1p(np.e), -np.log1p(1 / np.e)], [-2e4, 0]], rtol=1e-6)


def test_argmax_takes_the_first() -> None:
    (y,) = make(ArgMax, axis=0, keepdims=True).eval(np.float32([[2, 3, 3], [1, 1, 1]]))
    assert y.tolist() == [[1], [0]]


def test_sums_do_not_lose_small_terms() -> None:
    weight = np.float32([[1e8, 1, -1e8]])
    (y,) = make(Dense, weight=weight, bias=no_bias(1)).eval(np.ones((1, 3), np.float32))
    assert y == 1


def test_grouped_conv_is_its_groups() -> None:
    weight, bias, x = f(6, 2, 3, 3), f(6), f(2, 4, 6, 5)
    (y,) = make(Conv, weight=weight, bias=bias, groups=2).eval(x)
    halves = [
        make(Conv, weight=weight[k : k + 3], bias=bias[k : k + 3]).eval(x[:, j : j + 2])[0] for k, j in ((0, 0), (3, 2))
    ]
    np.testing.assert_allclose(y, np.concatenate(halves, axis=1), rtol=1e-6)


def test_gru_forms_differ_only_by_the_reset() -> None:
    values = {"w": f(6, 3), "r": f(6, 2), "bw": f(6), "br": np.zeros(6, np.float32), "h0": np.zeros(2, np.float32)}
    x = f(1, 1, 3)  # one step from zero: the reset has nothing to work on
    one, other = (make(Gru, 1, 2, **values, linear_before_reset=b).eval(x)[1] for b in (True, False))
    assert np.array_equal(one, other)


def test_lstm_steps_are_one_after_the_other() -> None:
    values = {"w": f(8, 3), "r": f(8, 2), "b": f(8)}
    x = f(1, 6, 3)
    start = {"h0": f(2), "c0": f(2)}
    every, h, c = make(Lstm, 1, 3, **values, **start).eval(x)
    _, h1, c1 = make(Lstm, 1, 3, **values, **start).eval(x[:, :4])
    rest, h2, c2 = make(Lstm, 1, 3, **values, h0=h1[0], c0=c1[0]).eval(x[:, 4:])
    np.testing.assert_allclose(every[:, 4:], rest, atol=1e-6)
    np.testing.assert_allclose((h, c), (h2, c2), atol=1e-6)
    assert np.array_equal(every[:, -1], h)
