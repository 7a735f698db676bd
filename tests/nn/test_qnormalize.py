"""Layer, instance and group normalization: against the formula, onnxruntime, ends of the type, the emitted C, nets."""

from __future__ import annotations

import math
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from plain_rig import LOC, Case, check_board, check_c, i8, ints

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
sys.path.insert(0, str(Path(__file__).parents[1] / "frontends"))

import qdq_layers
from onnx_nets import kinds, load, net, node, runtime, same_as_runtime

import mcugen
from mcugen import exported
from mcugen.core.types import Array, QParams
from mcugen.errors import InternalError, UnsupportedError
from mcugen.nn.ops.fnormalize import FNormalize
from mcugen.nn.ops.qnormalize import QNormalize, normalize_of
from mcugen.nn.passes import simplify
from mcugen.nn.source import Normalize

X, Y = ("x",), ("y",)
Q_IN, Q_OUT = QParams(0.05, 3), QParams(0.03, -5)


def numbers(seed: int, *shape: int, mean: float = 0.0) -> Array:
    return np.random.default_rng(seed).normal(mean, 0.5, shape).astype(np.float32)


def made(source: Normalize, k: int, q_in: QParams = Q_IN, q_out: QParams = Q_OUT) -> QNormalize:
    parts = normalize_of(k, source.epsilon, source.scale, source.offset, q_in, q_out)
    op = QNormalize(X, Y, LOC, source.rows, k, source.inner, *parts)
    op.check({"x": i8(source.rows * k, q_in), "y": i8(source.rows * k, q_out)})
    return op


def tables(source: Normalize, k: int) -> tuple[Array, Array]:
    """Scale and offset of every element, float64 (rows, k)."""
    which = np.arange(source.rows * k) // source.inner % source.scale.size
    return tuple(t.astype(np.float64)[which].reshape(-1, k) for t in (source.scale, source.offset))  # type: ignore[return-value]


def assert_close(source: Normalize, x: Array, q_in: QParams = Q_IN, q_out: QParams = Q_OUT) -> None:
    """Within the bound of docs/numerics_nn.md; x (rows, k) int8."""
    k = x.shape[1]
    op = made(source, k, q_in, q_out)
    scale, offset = tables(source, k)
    d = x - x.astype(np.float64).mean(axis=1, keepdims=True)
    root = np.sqrt((d * d).mean(axis=1, keepdims=True) + source.epsilon / q_in.scale**2)
    n = np.divide(d, root, out=np.zeros_like(d), where=np.abs(d).max(axis=1, keepdims=True) > 0)
    exact = np.clip((n * scale + offset) / q_out.scale + q_out.zero_point, -128, 127)
    of_n = np.abs(n) * 2.0**-29 + 2.0 ** -(op.digits + 1) + 2.0 ** -(op.digits + 8)
    of_scale = np.abs(n) * 2.0 ** (op.digits - op.shift - 33)
    bound = 0.5 + np.abs(scale) / q_out.scale * of_n + of_scale + 2.0**-op.shift + 1e-9
    assert (np.abs(op.eval(x[None])[0][0] - exact) <= bound).all()


scales = st.floats(-12, 2).map(lambda e: 2.0**e)


@settings(max_examples=80, deadline=None)
@given(st.data(), st.integers(1, 4), st.integers(1, 24), scales, scales, st.integers(-128, 127))
def test_within_the_bound(data: st.DataObject, rows: int, k: int, s_in: float, s_out: float, zero: int) -> None:
    inner = data.draw(st.sampled_from([i for i in range(1, k + 1) if k % i == 0]))
    parts = rows * k // inner
    channels = data.draw(st.sampled_from([c for c in range(1, parts + 1) if parts % c == 0]))
    epsilon = data.draw(st.sampled_from([0.0, 1e-12, 1e-5, 0.1, 100.0]))
    source = Normalize(X, Y, LOC, rows, epsilon, numbers(k, channels), numbers(rows, channels), inner)
    x = ints(data.draw(st.integers(0, 99)), rows * k).reshape(rows, k)
    assert_close(source, x, QParams(s_in, 7), QParams(s_out, zero))


@pytest.mark.parametrize("k", [2, 3, 1000, 65536])
@pytest.mark.parametrize("epsilon", [0.0, 1e-5])
def test_rows_at_the_ends_of_the_type(k: int, epsilon: float) -> None:
    """One element away from all others, halves, the least variance there is, none, and the longest row."""
    rows = [np.full(k, v) for v in (-128, 0, 127)]
    for low, high in ((-128, 127), (127, -128), (-1, 0), (126, 127)):
        one = np.full(k, low)
        one[k // 2] = high
        rows += [one, np.where(np.arange(k) % 2, low, high)]
    x = np.array(rows, np.int8)
    for s_in in (1e-4, 0.05, 3.0):
        source = Normalize(X, Y, LOC, len(x), epsilon, numbers(1, 1, mean=1), numbers(2, 1), k)
        assert_close(source, x, QParams(s_in, 0), QParams(0.04, 0))


@pytest.mark.parametrize("s_in", [1e-30, 1e-9, 1e9])
@pytest.mark.parametrize("s_out", [1e-5, 1e9, 1e25])
def test_scales_that_saturate_or_vanish(s_in: float, s_out: float) -> None:
    x = ints(3, 60).reshape(6, 10)
    source = Normalize(X, Y, LOC, 6, 1e-5, numbers(1, 10, mean=1), numbers(2, 10))
    assert_close(source, x, QParams(s_in, 0), QParams(s_out, 9))


def test_tables_of_zeros_and_far_offsets() -> None:
    x = ints(3, 60).reshape(6, 10)
    zero, far = np.zeros(10, np.float32), np.float32([0, 1e5, -1e5, 3, -3, 0.1, 0, 0, 1e-9, 1])
    for scale, offset in ((zero, zero), (zero, far), (far, zero), (far, far)):
        assert_close(Normalize(X, Y, LOC, 6, 1e-5, scale, offset), x)


def test_rows_of_equal_elements_are_their_offset() -> None:
    source = Normalize(X, Y, LOC, 3, 0.0, np.float32([2, 3, 4]), np.float32([0.3, -0.6, 30]))
    y = made(source, 3).eval(np.full((1, 3, 3), -128, np.int8))[0]
    assert y.tolist() == [[[5, -25, 127]] * 3]


def test_what_does_not_fit_is_said() -> None:
    one = np.ones(1, np.float32)
    with pytest.raises(UnsupportedError, match="65537 elements"):
        normalize_of(65537, 1e-5, one, one, Q_IN, Q_OUT)
    with pytest.raises(UnsupportedError, match="output scale is too small"):
        normalize_of(8, 1e-5, one, one, Q_IN, QParams(1e-8, 0))
    with pytest.raises(UnsupportedError, match="output scale is too small"):
        normalize_of(8, 1e-5, one, 1e8 * one, Q_IN, Q_OUT)


def test_broken_fields_are_our_bug() -> None:
    op = made(Normalize(X, Y, LOC, 2, 1e-5, numbers(1, 6), numbers(2, 6)), 6)
    types = {"x": i8((2, 6), Q_IN), "y": i8((2, 6), Q_OUT)}
    broken: list[dict[str, Any]] = [{"k": 5}, {"inner": 4}, {"up": op.up + 1}, {"up": op.up + 4}, {"shift": 0}]
    broken += [{"shift": 31}, {"scale": op.scale[:4]}, {"offset": op.offset.astype(np.int64)}]
    broken += [{"epsilon": 1 << 62}, {"scale": np.full(6, 1 << 30, np.int32) + 1}]
    for fields in broken:
        with pytest.raises(InternalError, match="QNormalize"):
            replace(op, **fields).check(types)
    wrong = FNormalize(X, Y, LOC, 2, 6, 1, 1e-5, numbers(1, 5), numbers(1, 5))
    with pytest.raises(InternalError, match="FNormalize"):
        wrong.check({})


def float_op(source: Normalize, k: int) -> FNormalize:
    return FNormalize(X, Y, LOC, source.rows, k, source.inner, source.epsilon, source.scale, source.offset)


SHAPES = [(3, 8, 1, 8), (1, 30, 1, 30), (5, 12, 12, 5), (2, 24, 8, 6), (4, 1, 1, 4), (2, 6, 2, 1), (7, 33, 33, 1)]


@pytest.mark.parametrize(("rows", "k", "inner", "channels"), SHAPES)
def test_float_is_close_to_the_source(rows: int, k: int, inner: int, channels: int) -> None:
    source = Normalize(X, Y, LOC, rows, 1e-5, numbers(1, channels, mean=1), numbers(2, channels), inner)
    x = numbers(3, 2, rows, k, mean=0.7)
    found, (expected,) = float_op(source, k).eval(x)[0], source.eval(x)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_emitted_c(tmp_path: Path) -> None:
    """Host builds with sanitizers and without, and the emulated board."""
    cases = []
    for i, (rows, k, inner, channels) in enumerate(SHAPES):
        epsilon = (1e-5, 0.0, 1.0)[i % 3]
        source = Normalize(X, Y, LOC, rows, epsilon, numbers(i, channels, mean=1), numbers(2, channels), inner)
        for q_in, q_out in (
            (Q_IN, Q_OUT),
            (QParams(1e-4, 0), QParams(1e-6, 0)),
            (QParams(1e-20, 5), QParams(1e9, -128)),
        ):
            op = made(source, k, q_in, q_out)
            x = ints(i, rows * k).reshape(rows, k)
            x[0] = 127
            cases.append(Case(op, (x,)))
        values = numbers(i, rows, k)
        values[-1] = 0.25
        cases.append(Case(float_op(source, k), (values,)))
    odd = np.array([[0, -0.0, 1e-42, 3], [3e38, -3e38, 1, 2], [np.inf, 1, 2, 3], [np.nan, 1, 2, 3]], np.float32)
    plain = Normalize(X, Y, LOC, 4, 1e-5, np.ones(1, np.float32), np.float32([-0.0]), 4)
    cases.append(Case(float_op(plain, 4), (odd,)))
    long = np.full((2, 65536), -128, np.int8)
    long[0, 1], long[1, ::2] = 127, 127
    cases.append(Case(made(replace(plain, rows=2, inner=65536), 65536), (long,)))
    check_c(cases, tmp_path)
    check_board(cases, tmp_path)


# Files.

FORMS = [
    (node("LayerNormalization", "x s b", "y"), (1, 5, 8), 8, 17),
    (node("LayerNormalization", "x s b", "y", axis=1, epsilon=0.1), (1, 5, 8), (5, 8), 17),
    (node("LayerNormalization", "x s b", "y", axis=-1), (1, 4, 3, 8), 8, 17),
    (node("LayerNormalization", "x s", "y", axis=1), (1, 5, 8), 8, 17),
    (node("LayerNormalization", "x s b", "y"), (1, 12), 12, 21),
    (node("InstanceNormalization", "x s b", "y"), (1, 5, 8, 3), 5, 9),
    (node("InstanceNormalization", "x s b", "y", epsilon=0.01), (1, 5, 8), 5, 22),
    (node("GroupNormalization", "x s b", "y", num_groups=3), (1, 6, 8, 3), 3, 18),
    (node("GroupNormalization", "x s b", "y", num_groups=3), (1, 6, 8, 3), 6, 21),
    (node("GroupNormalization", "x s b", "y", num_groups=1), (1, 6, 7), 6, 21),
    (node("GroupNormalization", "x s b", "y", num_groups=6), (1, 6, 7), 6, 21),
]  # fmt: skip


@pytest.mark.parametrize(("made_of", "shape", "table", "opset"), FORMS)
def test_files(made_of: onnx.NodeProto, shape: tuple[int, ...], table: Any, opset: int) -> None:
    sizes = table if isinstance(table, tuple) else (table,)
    constants = {"s": numbers(1, *sizes, mean=1), "b": numbers(2, *sizes)}
    loaded = same_as_runtime(net([made_of], shape, {v: constants[v] for v in list(made_of.input)[1:]}, opset))
    assert "Normalize" in kinds(loaded)


def spelled(shape: tuple[int, ...], axes: list[int], table: tuple[int, ...], form: str = "") -> onnx.ModelProto:
    """As torch writes a layer normalization before opset 17, and other ways."""
    nodes = [node("ReduceMean", "x", "m", axes=axes), node("Sub", "x m", "d"), node("Sub", "x m", "d2")]
    nodes.append(
        node("Mul", "d d", "q") if form == "product" else node("Pow", "d2 two" if form == "twice" else "d two", "q")
    )
    nodes += [node("ReduceMean", "q", "v", axes=axes), node("Add", "v e", "ve"), node("Sqrt", "ve", "r")]
    reciprocal = [node("Reciprocal", "r", "i"), node("Mul", "i d", "n")]
    nodes += reciprocal if form == "reciprocal" else [node("Div", "d r", "n")]
    nodes += [node("Mul", "n g", "w"), node("Add", "w h", "y")]
    constants = {"two": np.float32(2), "e": np.float32(1e-5), "g": numbers(1, *table, mean=1), "h": numbers(2, *table)}
    return net(nodes, shape, constants, 13)


@pytest.mark.parametrize("form", ["", "twice", "product", "reciprocal"])
@pytest.mark.parametrize(
    ("shape", "axes", "table"),
    [
        ((1, 5, 8), [-1], (8,)),
        ((1, 8, 8), [-1], (8,)),
        ((1, 8), [-1], (8,)),
        ((1, 4, 5, 6), [3], (6,)),
        ((1, 4, 5, 6), [2, 3], (4, 1, 1)),
        ((1, 4, 5, 6), [1, 2, 3], (4, 5, 6)),
    ],
)
def test_spelled_out_in_a_file(shape: tuple[int, ...], axes: list[int], table: tuple[int, ...], form: str) -> None:
    loaded = same_as_runtime(spelled(shape, axes, table, form))
    source = simplify(loaded)
    assert kinds(source) == ["Normalize"]
    x = numbers(5, 3, *source.types["x"].shape)
    expected = [runtime(spelled(shape, axes, table, form), {"x": row.reshape(shape)})[0].reshape(-1) for row in x]
    np.testing.assert_allclose(source.ops[0].eval(x)[0].reshape(3, -1), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("shape", "axes"), [((1, 8, 8), [1]), ((1, 4, 5, 6), [1]), ((1, 4, 5, 6), [1, 3])])
def test_means_over_other_axes_stay_what_they_are(shape: tuple[int, ...], axes: list[int]) -> None:
    source = simplify(same_as_runtime(spelled(shape, axes, (1,))))
    assert "Normalize" not in kinds(source)


def test_what_looks_like_it_and_is_not() -> None:
    """A mean of other values, a mean that is repeated along another axis, another exponent."""
    means = [node("ReduceMean", "x", "m", axes=[-1]), node("Transpose", "m", "t", perm=[0, 2, 1])]
    end = [node("Sqrt", "ve", "r"), node("Div", "d r", "y")]
    middle = [node("Mul", "d d", "q"), node("ReduceMean", "q", "v", axes=[-1]), node("Add", "v e", "ve")]
    constants = {"e": np.float32(0.5)}
    for nodes in (
        [*means, node("Sub", "x t", "d"), *middle, *end],
        [means[0], node("Sub", "x m", "d"), node("Mul", "d x", "q"), *middle[1:], node("Abs", "ve", "va"),
         node("Sqrt", "va", "r"), end[1]],
        [node("ReduceMax", "x", "m", axes=[-1]), node("Sub", "x m", "d"), *middle, *end],
    ):  # fmt: skip
        assert "Normalize" not in kinds(simplify(same_as_runtime(net(nodes, (1, 8, 8), constants, 13))))


def test_group_normalization_of_torch() -> None:
    """Instances of groups, then scale and offset of channels: one op."""
    nodes = [node("Reshape", "x to", "r"), node("InstanceNormalization", "r s b", "n"), node("Reshape", "n back", "v")]
    nodes += [node("Mul", "v g", "w"), node("Add", "w h", "y")]
    constants = {"to": np.array([0, 3, -1]), "back": np.array([1, 6, 4, 5]), "s": np.ones(3), "b": np.zeros(3)}
    constants |= {"g": numbers(1, 6, 1, 1, mean=1), "h": numbers(2, 6, 1, 1)}
    source = simplify(same_as_runtime(net(nodes, (1, 6, 4, 5), constants, 13)))
    (op,) = [v for v in source.ops if isinstance(v, Normalize)]
    assert (op.rows, op.inner, op.scale.shape) == (3, 20, (6,))
    assert "Affine" not in kinds(source)


def test_scales_of_rows_stay_behind() -> None:
    """One scale a row of a layer normalization has no place in its table of a row."""
    nodes = [node("LayerNormalization", "x s b", "n"), node("Mul", "n g", "y")]
    constants = {"s": numbers(1, 8, mean=1), "b": numbers(2, 8), "g": numbers(3, 5, 1, mean=1)}
    loaded = same_as_runtime(net(nodes, (1, 5, 8), constants, 17))
    assert kinds(simplify(loaded)) == ["Normalize", "Affine"]


def test_what_is_refused() -> None:
    two = net([node("LayerNormalization", "x s", "y m")], (1, 5, 8), {"s": np.ones(8)}, 17)
    with pytest.raises(UnsupportedError, match="mean and deviation"):
        load(two)


# Whole nets.


def channels_net() -> onnx.ModelProto:
    """Convolutions with an instance and a group normalization, and a layer normalization before the last layer."""
    nodes = [
        node("Conv", "x w0", "a", pads=[1, 1, 1, 1]),
        node("InstanceNormalization", "a s0 b0", "an"),
        node("Relu", "an", "ar"),
        node("Conv", "ar w1", "c", strides=[2, 2]),
        node("GroupNormalization", "c s1 b1", "cn", num_groups=2),
        node("Relu", "cn", "cr"),
        node("Flatten", "cr", "f"),
        node("Gemm", "f w2", "h", transB=1),
        node("LayerNormalization", "h s2 b2", "hn"),
        node("Relu", "hn", "hr"),
        node("Gemm", "hr w3", "y", transB=1),
    ]
    constants = {"w0": numbers(0, 6, 2, 3, 3), "w1": numbers(1, 4, 6, 2, 2), "w2": numbers(2, 12, 4 * 4 * 4) / 4}
    constants |= {"w3": numbers(3, 3, 12)}
    for i, n in enumerate((6, 4, 12)):
        constants |= {f"s{i}": numbers(i, n, mean=1), f"b{i}": numbers(i + 9, n)}
    return net(nodes, (1, 2, 8, 8), constants, 21)


@pytest.mark.parametrize("float32", [False, True])
def test_a_net(float32: bool, tmp_path: Path) -> None:
    model = channels_net()
    onnx.save(model, tmp_path / "net.onnx")
    x = np.random.default_rng(5).normal(0, 1, (32, 2, 8, 8)).astype(np.float32)
    np.savez(tmp_path / "calib.npz", x=x)
    np.save(tmp_path / "x.npy", x)
    out = tmp_path / "out"
    mcugen.export(tmp_path / "net.onnx", out, name="net", board=None, calib=tmp_path / "calib.npz", float32=float32)
    y, _ = exported.run(out, tmp_path / "x.npy", tmp_path / "y.npy")
    text = (out / "net.c").read_text(encoding="utf-8")
    assert text.count("mcg_normalize_f32(" if float32 else "mcg_normalize_s8(") == 3
    expected = np.concatenate([runtime(model, {"x": row[None]})[0] for row in x])
    kind = exported.open_folder(out).manifest["outputs"][0]
    if not float32:
        y = (y.astype(np.float64) - kind["zero_point"]) * kind["scale"]
    error = np.abs(y.reshape(expected.shape) - expected)
    assert error.max() < (1e-4 if float32 else 0.08) * np.ptp(expected)
    assert error.mean() < 0.02 * np.ptp(expected)


@pytest.mark.parametrize(("op", "table"), [("LayerNormalization", 9), ("InstanceNormalization", 4)])
def test_a_quantized_file(op: str, table: int, tmp_path: Path) -> None:
    """onnxruntime's integers."""
    nodes = [
        node("QuantizeLinear", "x s z", "q"),
        node("DequantizeLinear", "q s z", "a"),
        node(op, "a g h", "n"),
        node("QuantizeLinear", "n t v", "r"),
        node("DequantizeLinear", "r t v", "y"),
    ]
    constants = {"s": np.float32(0.05), "z": np.int8(-20), "t": np.float32(0.031), "v": np.int8(7)}
    constants |= {"g": numbers(1, table, mean=1), "h": numbers(2, table)}
    onnx.save(net(nodes, (1, 4, 30, 9), constants, 17), tmp_path / "net.onnx")
    x = np.random.default_rng(0).normal(0, 3, (20, 4, 30, 9)).astype(np.float32)
    layers = qdq_layers.compare(tmp_path / "net.onnx", x)
    (last,) = [v for v in layers if v.op == op]
    assert last.values == 20 * 4 * 30 * 9
    # onnxruntime's float32 sums: a result beside a tie may fall to the other side.
    assert last.largest <= 1
    assert last.differ <= 4


def test_a_stream(tmp_path: Path) -> None:
    """A layer normalization of each step, before and after a recurrent layer."""
    rng = np.random.default_rng(2)
    nodes = [
        node("LayerNormalization", "x s b", "n"),
        node("Transpose", "n", "t", perm=[1, 0, 2]),
        node("GRU", "t w r", "e -", hidden_size=5),
        node("Squeeze", "e a", "q"),
        node("Transpose", "q", "u", perm=[1, 0, 2]),
        node("LayerNormalization", "u s2 b2", "y"),
    ]
    constants = {"w": rng.normal(0, 0.5, (1, 15, 3)), "r": rng.normal(0, 0.4, (1, 15, 5)), "a": np.array([1], np.int64)}
    constants |= {"s": numbers(1, 3, mean=1), "b": numbers(2, 3), "s2": numbers(1, 5, mean=1), "b2": numbers(2, 5)}
    model = net(nodes, (1, 6, 3), constants, 17)
    onnx.save(model, tmp_path / "net.onnx")
    x = rng.normal(0, 1, (20, 6, 3)).astype(np.float32)
    np.savez(tmp_path / "calib.npz", x=x)
    out = tmp_path / "out"
    mcugen.export(tmp_path / "net.onnx", out, name="net", board=None, calib=tmp_path / "calib.npz", stream=True)
    assert "rows = 1u" in (out / "net.c").read_text(encoding="utf-8")


def test_math_of_the_bound() -> None:
    """Reciprocal roots from the least variance to the greatest: relative error below 2^-29."""
    for k in (2, 100, 65536):
        for epsilon in (0.0, 1e-5, 10.0):
            op = made(Normalize(X, Y, LOC, 1, epsilon, np.ones(1, np.float32), np.zeros(1, np.float32), k), k)
            real = k * k * epsilon / Q_IN.scale**2
            top = k * k * 16256
            v = np.unique(np.r_[k - 1, k, 2 * k - 3, np.geomspace(k - 1, top, 300).astype(np.int64), top])
            left, r = op.reciprocal_roots(v)
            for value, shift, root in zip(v.tolist(), left.tolist(), r.tolist(), strict=True):
                exact = 2.0**op.digits / math.sqrt(value + real)
                # A root that loses digits to the right is off by less than one of 2^-32.
                assert abs(root * 2.0 ** (shift - 32) - exact) < exact * 2.0**-29 + 2.0**-32
                assert min((value * k) ** 0.5, 255 * k) * 2.0**shift < 2.0**30 * 1.01
