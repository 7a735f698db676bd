"""Float passes: what is left of a net, and that it still means what onnxruntime computes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx_nets import kinds, net, node, same_as_runtime

from mcugen.core.types import Model
from mcugen.nn.passes import simplify
from mcugen.nn.source import Activation, Conv, Pool

RNG = np.random.default_rng(2)


def w(*shape: int) -> np.ndarray:
    return RNG.normal(0, 1, shape).astype(np.float32)


def simple(nodes: list[Any], x: tuple[int, ...], constants: dict[str, Any] | None = None, **options: Any) -> Model:
    """The simplified net, compared with onnxruntime before and after."""
    return simplify(same_as_runtime(net(nodes, x, constants, **options)))


def norm(x: str, y: str, c: int) -> tuple[Any, dict[str, np.ndarray]]:
    names = [f"{y}_{k}" for k in "sbmv"]
    return node("BatchNormalization", " ".join([x, *names]), y), dict(
        zip(names, (w(c), w(c), w(c), np.abs(w(c)) + 0.1), strict=True)
    )


@pytest.mark.parametrize("groups", [1, 2, 4])
def test_batch_norm_after_and_before_conv(groups: int) -> None:
    before, a = norm("x", "b", 4)
    after, b = norm("c", "y", 8)
    constants = {"k": w(8, 4 // groups, 3, 3), "j": w(8), **a, **b}
    loaded = simple([before, node("Conv", "b k j", "c", group=groups), after], (1, 4, 6, 6), constants)
    assert kinds(loaded) == ["Conv"]
    assert loaded.ops[0].loc.item == "BatchNormalization n_b + Conv n_c + BatchNormalization n_y"


def test_an_offset_does_not_go_into_a_padded_conv() -> None:
    before, a = norm("x", "b", 4)
    loaded = simple([before, node("Conv", "b k", "y", pads=[1, 1, 1, 1])], (1, 4, 6, 6), {"k": w(2, 4, 3, 3), **a})
    assert kinds(loaded) == ["Affine", "Conv"]
    scaled = [node("Mul", "x s", "b"), node("Conv", "b k", "y", pads=[1, 1, 1, 1])]
    assert kinds(simple(scaled, (1, 4, 6, 6), {"k": w(2, 4, 3, 3), "s": w(4, 1, 1)})) == ["Conv"]


def test_batch_norm_of_two_readers_stays() -> None:
    after, b = norm("c", "n", 2)
    nodes = [node("Conv", "x k", "c"), after, node("Add", "c n", "y")]
    assert kinds(simple(nodes, (1, 4, 6, 6), {"k": w(2, 4, 3, 3), **b})) == ["Conv", "Affine", "Binary"]


def test_batch_norm_in_1d_and_dense() -> None:
    after, a = norm("c", "n", 5)
    nodes = [node("Conv", "x k", "c"), after, node("Relu", "n", "r"), node("Flatten", "r", "f")]
    last, b = norm("d", "y", 3)
    nodes += [node("Gemm", "f m", "d"), last]
    loaded = simple(nodes, (1, 4, 10), {"k": w(5, 4, 3), "m": w(40, 3), **a, **b})
    assert kinds(loaded) == ["Reshape", "Conv", "Activation", "Reshape", "Dense"]


def test_matmul_and_add_are_one_layer() -> None:
    nodes = [node("MatMul", "x m", "p"), node("Add", "p b", "a"), node("Div", "a d", "y")]
    assert kinds(simple(nodes, (1, 6), {"m": w(6, 3), "b": w(3), "d": np.float32(4)})) == ["Dense"]


def test_affines_join() -> None:
    nodes = [node("Sub", "x m", "a"), node("Div", "a d", "b"), node("Mul", "b s", "c"), node("Add", "c o", "y")]
    constants = {"m": w(3, 1, 1), "d": np.float32(2), "s": w(3, 1, 1), "o": np.float32(1)}
    assert kinds(simple(nodes, (1, 3, 4, 4), constants)) == ["Affine"]


# Padding.


def pad_net(value: float, *nodes: Any, first: Any = None) -> list[Any]:
    return [first or node("Tanh", "x", "t"), node("Pad", "t p v", "q"), *nodes]


PADS = {"p": np.array([0, 0, 1, 0, 0, 0, 0, 1], np.int64)}


def test_zeros_go_into_conv() -> None:
    nodes = pad_net(0, node("Conv", "q k", "y", pads=[0, 1, 1, 1]))
    loaded = simple(nodes, (1, 3, 5, 6), {"k": w(2, 3, 3, 3), "v": np.float32(0), **PADS})
    assert kinds(loaded) == ["Activation", "Conv"]
    assert [op.pads for op in loaded.ops if isinstance(op, Conv)] == [(1, 1, 1, 2)]


def test_other_values_stay() -> None:
    nodes = pad_net(1, node("Conv", "q k", "y"))
    loaded = simple(nodes, (1, 3, 5, 6), {"k": w(2, 3, 3, 3), "v": np.float32(1), **PADS})
    assert kinds(loaded) == ["Activation", "Pad", "Conv"]
    channels = {"p": np.array([0, 1, 0, 0, 0, 0, 0, 0], np.int64), "v": np.float32(0), "k": w(2, 4, 3, 3)}
    assert "Pad" in kinds(simple(nodes, (1, 3, 5, 6), channels))


@pytest.mark.parametrize(
    ("op", "first", "value", "folds"),
    [
        ("MaxPool", "Relu", 0.0, True),
        ("MaxPool", "Sigmoid", 0.0, True),
        ("MaxPool", "Tanh", 0.0, False),
        ("MaxPool", "Tanh", -3.4028235e38, True),
        ("MaxPool", "Relu", 1.0, False),
        ("AveragePool", "Tanh", 0.0, True),
        ("AveragePool", "Tanh", 1.0, False),
    ],
)
def test_padding_and_pools(op: str, first: str, value: float, folds: bool) -> None:
    nodes = pad_net(value, node(op, "q", "y", kernel_shape=[2, 2], strides=[2, 1]), first=node(first, "x", "t"))
    loaded = simple(nodes, (1, 3, 5, 6), {"v": np.float32(value), **PADS})
    assert ("Pad" not in kinds(loaded)) == folds
    pool = next(o for o in loaded.ops if isinstance(o, Pool))
    assert pool.count_include_pad == (folds and op == "AveragePool")


def test_padding_wider_than_the_window_stays() -> None:
    nodes = pad_net(0, node("MaxPool", "q", "y", kernel_shape=[1, 1]), first=node("Relu", "x", "t"))
    assert "Pad" in kinds(simple(nodes, (1, 3, 5, 6), {"v": np.float32(0), **PADS}))


# Moves.


def test_channels_last_in_and_out() -> None:
    """What a converter from TensorFlow writes: a Transpose round every layer."""
    nodes = [
        node("Transpose", "x", "a", perm=[0, 3, 1, 2]),
        node("Conv", "a k", "b"),
        node("Transpose", "b", "c", perm=[0, 2, 3, 1]),
        node("Relu", "c", "d"),
        node("Mul", "d s", "e"),
        node("Transpose", "e", "f", perm=[0, 3, 1, 2]),
        node("Conv", "f l", "g"),
        node("Transpose", "g", "h", perm=[0, 2, 3, 1]),
        node("Tanh", "g", "i"),
        node("Transpose", "i", "j", perm=[0, 2, 3, 1]),
        node("Add", "h j", "m"),
        node("Transpose", "m", "y", perm=[0, 3, 1, 2]),
    ]
    loaded = simple(nodes, (1, 7, 7, 3), {"k": w(4, 3, 3, 3), "l": w(2, 4, 3, 3), "s": w(4)})
    assert kinds(loaded) == ["Transpose", "Conv", "Activation", "Conv", "Activation", "Binary"]


def test_transposes_that_cancel_or_join() -> None:
    nodes = [node("Transpose", "x", "a", perm=[0, 2, 3, 1]), node("Transpose", "a", "y", perm=[0, 2, 3, 1])]
    loaded = simple(nodes, (1, 2, 3, 4))
    assert kinds(loaded) == ["Transpose"]
    nodes.append(node("Transpose", "y", "z", perm=[0, 2, 3, 1]))
    assert kinds(simple([*nodes, node("Relu", "z", "r")], (1, 2, 3, 4), outputs="r")) == ["Activation"]


def test_values_that_the_caller_sees_keep_their_names() -> None:
    nodes = [node("Relu", "x", "a"), node("Flatten", "a", "b"), node("Identity", "b", "c"), node("Tanh", "b", "d")]
    loaded = simple(nodes, (1, 2, 3), outputs="a b c d")
    assert loaded.outputs == ("a", "b", "c", "d")
    assert loaded.inputs == ("x",)


def test_a_net_that_does_nothing() -> None:
    loaded = simple(
        [node("Transpose", "x", "a", perm=[0, 2, 1]), node("Transpose", "a", "y", perm=[0, 2, 1])], (1, 2, 3)
    )
    assert kinds(loaded) == ["Reshape"]  # input and output are two names: one copy


def test_hard_swish_from_its_parts() -> None:
    nodes = [node("HardSigmoid", "x", "h", alpha=1 / 6, beta=0.5), node("Mul", "x h", "y")]
    (op,) = simple(nodes, (1, 50)).ops
    assert isinstance(op, Activation)
    assert op.kind == "hard_swish"
    nodes = [
        node("Add", "x three", "a"),
        node("Clip", "a zero six", "b"),
        node("Mul", "x b", "c"),
        node("Div", "c six", "y"),
    ]
    constants = {"three": np.float32(3), "zero": np.float32(0), "six": np.float32(6)}
    (op,) = simple(nodes, (1, 50), constants).ops
    assert isinstance(op, Activation)
    assert op.kind == "hard_swish"
    nodes[1] = node("Clip", "a zero three", "b")
    assert len(simple(nodes, (1, 50), constants).ops) > 1


# Anything.

UNARY = ["Relu", "Sigmoid", "Tanh", "HardSwish"]


@st.composite
def nets(draw: st.DrawFn) -> tuple[list[Any], dict[str, np.ndarray], tuple[int, ...]]:
    """A chain of ops with residuals on (1, C, H, W)."""
    shape = [1, draw(st.integers(1, 4)), draw(st.integers(2, 6)), draw(st.integers(2, 6))]
    start, nodes, constants, value = tuple(shape), [], {}, "x"
    rng = np.random.default_rng(draw(st.integers(0, 1000)))
    for k in range(draw(st.integers(1, 7))):
        out, c = f"v{k}", shape[1]
        kind = draw(st.sampled_from(["unary", "conv", "scale", "norm", "pad", "transpose", "residual", "max", "split"]))
        if kind == "unary":
            nodes.append(node(draw(st.sampled_from(UNARY)), value, out))
        elif kind == "conv":
            constants[f"k{k}"] = rng.normal(0, 1, (draw(st.integers(1, 4)), c, 2, 2)).astype(np.float32)
            nodes.append(node("Conv", f"{value} k{k}", out, auto_pad="SAME_UPPER"))
            shape[1] = len(constants[f"k{k}"])
        elif kind == "scale":
            constants[f"k{k}"] = rng.normal(0, 1, draw(st.sampled_from([(c, 1, 1), (), (shape[3],)]))).astype(
                np.float32
            )
            nodes.append(node(draw(st.sampled_from(["Mul", "Add"])), f"{value} k{k}", out))
        elif kind == "norm":
            made, more = norm(value, out, c)
            nodes.append(made)
            constants |= more
        elif kind == "pad":
            constants[f"k{k}"] = np.array([0, 0, 1, 0, 0, 0, 0, 1], np.int64)
            nodes.append(node("Pad", f"{value} k{k}", out))
            shape[2:] = [shape[2] + 1, shape[3] + 1]
        elif kind == "transpose":
            perm = [0, *draw(st.permutations([1, 2, 3]))]
            nodes.append(node("Transpose", value, out, perm=perm))
            shape = [shape[p] for p in perm]
        elif kind == "residual":
            nodes += [node("Tanh", value, f"{out}_t"), node("Add", f"{value} {out}_t", out)]
        elif kind == "max":
            nodes.append(node("MaxPool", value, out, kernel_shape=[2, 2], pads=[1, 0, 0, 1]))
        else:
            constants[f"k{k}"] = np.array([0, -1, shape[2] * shape[3]], np.int64)
            constants[f"j{k}"] = np.array(shape, np.int64)
            nodes += [node("Reshape", f"{value} k{k}", f"{out}_r"), node("Relu", f"{out}_r", f"{out}_s")]
            nodes.append(node("Reshape", f"{out}_s j{k}", out))
        value = out
    nodes.append(node("Identity", value, "y"))
    return nodes, constants, start


@given(nets())
@settings(max_examples=150, deadline=None)
def test_any_net(made: tuple[list[Any], dict[str, np.ndarray], tuple[int, ...]]) -> None:
    nodes, constants, shape = made
    same_as_runtime(net(nodes, shape, constants), tolerance=1e-4)


def cut(x: str, y: str, start: int, end: int, axis: int = 2) -> tuple[Any, dict[str, np.ndarray]]:
    names = [f"{y}_{k}" for k in "sea"]
    return node("Slice", " ".join([x, *names]), y), {
        k: np.array([v], np.int64) for k, v in zip(names, (start, end, axis), strict=True)
    }


@pytest.mark.parametrize("between", [[], [node("Relu", "c", "r")], [node("Elu", "c", "d"), node("Relu", "d", "r")]])
def test_causal_convolutions_need_no_slice(between: list[Any]) -> None:
    """As torch writes them: padded on both sides, and what would look ahead is cut off."""
    last = between[-1].output[0] if between else "c"
    made, constants = cut(last, "s", 0, -4)
    nodes = [node("Conv", "x k", "c", dilations=[2], pads=[4, 4]), *between, made, node("Tanh", "s", "y")]
    loaded = simple(nodes, (1, 3, 20), {"k": w(4, 3, 3), **constants})
    assert "Slice" not in kinds(loaded)
    assert [op.pads for op in loaded.ops if isinstance(op, Conv)] == [(0, 4, 0, 0)]


@settings(deadline=None, derandomize=True, max_examples=60)
@given(data=st.data())
def test_slices_of_convolutions(data: st.DataObject) -> None:
    """Any part of what any convolution gives; where it is only padding that goes, no Slice is left."""
    draw = lambda low, high: data.draw(st.integers(low, high))  # noqa: E731
    kernel, stride, dilation, size = draw(1, 3), draw(1, 3), draw(1, 2), draw(4, 9)
    pads = [draw(0, 3), draw(0, 3)]
    reach = dilation * (kernel - 1) + 1
    n = (size + sum(pads) - reach) // stride + 1
    start = draw(0, n - 1)
    end = draw(start + 1, n)
    made, constants = cut("c", "s", start, end)
    fields = {"strides": [stride], "dilations": [dilation], "pads": pads}
    loaded = simple(
        [node("Conv", "x k", "c", **fields), made, node("Relu", "s", "y")],
        (1, 2, size),
        {"k": w(3, 2, kernel), **constants},
    )
    sees_all = start * stride <= pads[0] and (end - 1) * stride + reach >= pads[0] + size
    assert not sees_all or "Slice" not in kinds(loaded)


def test_a_slice_of_channels_stays() -> None:
    made, constants = cut("c", "y", 0, 2, axis=1)
    loaded = simple([node("Conv", "x k", "c"), made], (1, 2, 9), {"k": w(3, 2, 3), **constants})
    assert "Slice" in kinds(loaded)


@pytest.mark.parametrize("shape", [(1, 3, 4, 5), (1, 3, 6), (1, 1, 4, 4)])
def test_batch_norm_before_a_flattened_layer(shape: tuple[int, ...]) -> None:
    """Keras users put it behind the activation: nothing is left of it."""
    before, constants = norm("r", "b", shape[1])
    k = int(np.prod(shape))
    nodes = [node("Relu", "x", "r"), before, node("Flatten", "b", "f"), node("Gemm", "f m v", "y", transB=1)]
    loaded = simple(nodes, shape, {"m": w(4, k), "v": w(4), **constants})
    assert "Affine" not in kinds(loaded)
