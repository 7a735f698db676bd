"""Every op of the table against onnxruntime, in the forms that opsets 7 to 23 give it."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import helper
from onnx_nets import kinds, load, net, node, same_as_runtime

from mcugen.nn.source import Activation, Conv, Dense, Gru, Lstm

RNG = np.random.default_rng(7)
OPSETS = (7, 9, 11, 13, 17, 21, 23)


def w(*shape: int) -> np.ndarray:
    return RNG.normal(0, 1, shape).astype(np.float32)


@pytest.mark.parametrize("opset", OPSETS)
def test_conv_relu_pool_gemm(opset: int) -> None:
    nodes = [
        node("Conv", "x k b", "c", pads=[1, 1, 1, 1], strides=[2, 1], kernel_shape=[3, 3]),
        node("Relu", "c", "r"),
        node("MaxPool", "r", "p", kernel_shape=[2, 2], strides=[2, 2]),
        node("GlobalAveragePool", "p", "g"),
        node("Flatten", "g", "f"),
        node("Gemm", "f m v", "y", transB=1),
    ]
    model = net(nodes, (1, 3, 9, 8), {"k": w(4, 3, 3, 3), "b": w(4), "m": w(5, 4), "v": w(5)}, opset)
    loaded = same_as_runtime(model)
    assert kinds(loaded) == "Conv Activation Pool GlobalPool Reshape Dense".split()
    assert loaded.ops[0].loc.item == "Conv n_c"


@pytest.mark.parametrize(
    ("op", "attributes", "opsets"),
    [
        ("Relu", {}, OPSETS),
        ("LeakyRelu", {"alpha": 0.3}, OPSETS),
        ("LeakyRelu", {}, (7, 17)),
        ("Sigmoid", {}, OPSETS),
        ("HardSigmoid", {}, (7, 23)),
        ("HardSigmoid", {"alpha": 0.1, "beta": 0.4}, (7, 23)),
        ("Tanh", {}, OPSETS),
        ("HardSwish", {}, (14, 17, 21, 22)),
        ("Identity", {}, OPSETS),
    ],
)
def test_activations(op: str, attributes: dict[str, float], opsets: tuple[int, ...]) -> None:
    for opset in opsets:
        for shape in ((1, 7), (1, 3, 4, 5), (6,)):
            same_as_runtime(net([node(op, "x", "y", **attributes)], shape, opset=opset))


@pytest.mark.parametrize("opset", [7, 9])
@pytest.mark.parametrize("limits", [{"min": -1.0, "max": 1.5}, {"min": 0.0}, {"max": 1.0}, {}])
def test_clip_by_attributes(opset: int, limits: dict[str, float]) -> None:
    same_as_runtime(net([node("Clip", "x", "y", **limits)], (1, 9), opset=opset))


@pytest.mark.parametrize("opset", [11, 13, 17, 23])
@pytest.mark.parametrize("inputs", ["x low high", "x low", "x - high", "x"])
def test_clip_by_operands(opset: int, inputs: str) -> None:
    constants = {k: v for k, v in {"low": np.float32(-1), "high": np.float32(1.5)}.items() if k in inputs}
    same_as_runtime(net([node("Clip", inputs, "y")], (1, 9), constants, opset))


def test_prelu_with_one_slope() -> None:
    loaded = same_as_runtime(net([node("PRelu", "x s", "y")], (1, 3, 4, 4), {"s": np.full((1, 1, 1), 0.2)}))
    assert isinstance(loaded.ops[0], Activation)


@pytest.mark.parametrize("opset", [7, 9, 14, 17])
@pytest.mark.parametrize("shape", [(1, 4, 5, 6), (1, 4, 7), (1, 4), (1, 1, 5, 6)])
def test_batch_normalization(opset: int, shape: tuple[int, ...]) -> None:
    c = shape[1]
    constants = {"s": w(c), "b": w(c), "m": w(c), "v": np.abs(w(c)) + 0.1}
    same_as_runtime(net([node("BatchNormalization", "x s b m v", "y", epsilon=1e-3)], shape, constants, opset))


@pytest.mark.parametrize("opset", [7, 11, 12, 13, 22])
def test_dropout(opset: int) -> None:
    inputs, attributes = ("x r t", {}) if opset >= 12 else ("x", {"ratio": 0.4})
    constants = {"r": np.float32(0.5), "t": np.array(False)} if opset >= 12 else {}
    loaded = same_as_runtime(
        net([node("Dropout", inputs, "d", **attributes), node("Relu", "d", "y")], (1, 4), constants, opset)
    )
    assert kinds(loaded) == ["Activation"]


@pytest.mark.parametrize("op", ["Add", "Sub", "Mul", "Div"])
@pytest.mark.parametrize("shape", [(), (1,), (3, 1, 1), (1, 3, 1, 1), (5,), (4, 1), (3, 4, 5), (1, 1, 4, 5)])
@pytest.mark.parametrize("swapped", [False, True])
def test_arithmetic_with_constants(op: str, shape: tuple[int, ...], swapped: bool) -> None:
    if op == "Div" and swapped:
        pytest.skip("a constant over an activation is no Affine")
    constant = RNG.uniform(0.5, 2, shape).astype(np.float32)
    loaded = same_as_runtime(net([node(op, "k x" if swapped else "x k", "y")], (1, 3, 4, 5), {"k": constant}))
    assert "Affine" in kinds(loaded)


@pytest.mark.parametrize("op", ["Add", "Sub", "Mul"])
@pytest.mark.parametrize(
    ("a", "b"),
    [
        ((1, 3, 4, 5), (1, 3, 4, 5)),
        ((1, 3, 4, 5), (1, 3, 1, 1)),
        ((1, 3, 1, 1), (1, 3, 4, 5)),
        ((1, 6), (6,)),
        ((1, 3, 4, 5), (4, 5)),
        ((1, 3, 4), (1, 1, 4)),
        ((1, 4, 1), (1, 1, 3)),
    ],
)
def test_arithmetic_of_two(op: str, a: tuple[int, ...], b: tuple[int, ...]) -> None:
    same_as_runtime(net([node(op, "a b", "y")], {"a": a, "b": b}))


def test_arithmetic_with_itself_and_a_residual() -> None:
    nodes = [node("Conv", "x k", "c", pads=[1, 1, 1, 1]), node("Add", "x c", "s"), node("Mul", "s s", "y")]
    same_as_runtime(net(nodes, (1, 3, 5, 5), {"k": w(3, 3, 3, 3)}))


@pytest.mark.parametrize("trans_a", [0, 1])
@pytest.mark.parametrize("trans_b", [0, 1])
@pytest.mark.parametrize("bias", [None, (5,), (1, 5), (1,), ()])
@pytest.mark.parametrize("rows", [1, 3])
def test_gemm(trans_a: int, trans_b: int, bias: tuple[int, ...] | None, rows: int) -> None:
    constants = {"m": w(5, 4) if trans_b else w(4, 5)} | ({} if bias is None else {"v": w(*bias)})
    attributes = {"transA": trans_a, "transB": trans_b, "alpha": 0.5, "beta": -2.0}
    made = node("Gemm", "x m" if bias is None else "x m v", "y", **attributes)
    same_as_runtime(net([made], (4, rows) if trans_a else (rows, 4), constants, 7 if bias and rows == 1 else 13))


def test_gemm_adds_an_activation() -> None:
    loaded = same_as_runtime(net([node("Gemm", "x m z", "y")], {"x": (1, 4), "z": (1, 5)}, {"m": w(4, 5)}))
    assert kinds(loaded) == ["Dense", "Binary"]


@pytest.mark.parametrize("shape", [(1, 6), (6,), (1, 3, 6), (2, 3, 6), (1, 1, 6)])
@pytest.mark.parametrize("weight", [(6, 4), (1, 6, 4), (6, 1)])
def test_matmul(shape: tuple[int, ...], weight: tuple[int, ...]) -> None:
    if len(weight) > max(len(shape), 2):
        pytest.skip("the result has more axes than x")
    same_as_runtime(
        net([node("MatMul", "x m", "p"), node("Add", "p v", "y")], shape, {"m": w(*weight), "v": w(weight[-1])})
    )


@pytest.mark.parametrize("opset", OPSETS)
@pytest.mark.parametrize(
    ("shape", "axis"), [((1, 10), 1), ((1, 10), -1), ((1, 3, 4), 1), ((1, 3, 4), 2), ((1, 1, 5), 1)]
)
def test_softmax(opset: int, shape: tuple[int, ...], axis: int) -> None:
    for op in ("Softmax", "LogSoftmax"):
        same_as_runtime(net([node(op, "x", "y", axis=axis)], shape, opset=opset))
        same_as_runtime(net([node(op, "x", "y")], shape, opset=opset))


@pytest.mark.parametrize("opset", [7, 11, 12, 13, 17])
@pytest.mark.parametrize("keepdims", [0, 1])
@pytest.mark.parametrize(("shape", "axis"), [((1, 10), 1), ((10,), 0), ((1, 3, 4, 5), 1), ((1, 3, 4), -1), ((5, 3), 0)])
def test_argmax(opset: int, keepdims: int, shape: tuple[int, ...], axis: int) -> None:
    if opset < 11 and axis < 0:
        pytest.skip("negative axes came with opset 11")
    same_as_runtime(net([node("ArgMax", "x", "y", axis=axis, keepdims=keepdims)], shape, opset=opset))


def test_argmax_takes_the_first_of_equals() -> None:
    same_as_runtime(net([node("ArgMax", "x", "y", axis=1)], (1, 4)), {"x": np.float32([[1, 3, 3, 3]])})


@pytest.mark.parametrize("opset", [7, 11, 13, 18])
@pytest.mark.parametrize("keepdims", [0, 1])
@pytest.mark.parametrize("axes", [(2, 3), (1,), (3,), (1, 2, 3), (2,), (1, 3)])
def test_reduce_mean(opset: int, keepdims: int, axes: tuple[int, ...]) -> None:
    as_operand = opset >= 18
    made = node(
        "ReduceMean", "x a" if as_operand else "x", "y", keepdims=keepdims, **({} if as_operand else {"axes": axes})
    )
    constants = {"a": np.array(axes, np.int64)} if as_operand else {}
    loaded = same_as_runtime(net([made], (1, 3, 4, 5), constants, opset))
    assert ("GlobalPool" in kinds(loaded)) == (axes == (2, 3))


def test_reduce_mean_over_time() -> None:
    loaded = same_as_runtime(net([node("ReduceMean", "x", "y", axes=[2], keepdims=0)], (1, 3, 8)))
    assert kinds(loaded) == ["Reshape", "GlobalPool", "Reshape"]
    same_as_runtime(net([node("ReduceMean", "x", "y", axes=[1], keepdims=0)], (1, 3, 8)))
    same_as_runtime(net([node("ReduceMean", "x", "y", keepdims=1)], (1, 3, 8)))


@pytest.mark.parametrize("op", ["GlobalAveragePool", "GlobalMaxPool"])
@pytest.mark.parametrize("shape", [(1, 3, 4, 5), (1, 3, 9), (1, 1, 4, 4), (1, 4, 1, 1)])
def test_global_pools(op: str, shape: tuple[int, ...]) -> None:
    same_as_runtime(net([node(op, "x", "y")], shape))


# Moves.


@pytest.mark.parametrize("opset", [7, 13, 21])
@pytest.mark.parametrize(
    ("shape", "target"), [((1, 3, 4), (1, -1)), ((1, 3, 4), (0, 4, 3)), ((1, 6), (2, 3)), ((1, 3, 4), (-1,))]
)
def test_reshape(opset: int, shape: tuple[int, ...], target: tuple[int, ...]) -> None:
    model = net([node("Reshape", "x s", "r"), node("Relu", "r", "y")], shape, {"s": np.array(target, np.int64)}, opset)
    same_as_runtime(model)


@pytest.mark.parametrize("axis", [0, 1, 2, 3, -1])
def test_flatten(axis: int) -> None:
    same_as_runtime(net([node("Flatten", "x", "y", axis=axis)], (1, 3, 4), opset=13))


@pytest.mark.parametrize("opset", [7, 11, 13, 21])
@pytest.mark.parametrize("explicit", [True, False])
def test_squeeze_and_unsqueeze(opset: int, explicit: bool) -> None:
    operands = opset >= 13
    axes = {"axes": [2]} if explicit and not operands else {}
    first = node("Squeeze", "x a" if operands and explicit else "x", "s", **axes)
    last = node("Unsqueeze", "s b" if operands else "s", "y", **({} if operands else {"axes": [0, 2]}))
    constants = {"a": np.array([2], np.int64), "b": np.array([0, 2], np.int64)} if operands else {}
    same_as_runtime(
        net([first, last], (1, 3, 1, 4), {k: v for k, v in constants.items() if explicit or k == "b"}, opset)
    )


@pytest.mark.parametrize(
    "perm", [(0, 2, 3, 1), (0, 3, 1, 2), (1, 0, 2, 3), (3, 2, 1, 0), (0, 1, 3, 2), (2, 0, 1, 3), None]
)
@pytest.mark.parametrize("shape", [(1, 3, 4, 5), (1, 3, 1, 5), (2, 3, 4, 5), (1, 1, 4, 5)])
def test_transpose(perm: tuple[int, ...] | None, shape: tuple[int, ...]) -> None:
    if shape[0] == 2:
        nodes = [node("Transpose", "x", "y", **({} if perm is None else {"perm": perm}))]
        nodes = [node("Reshape", "z s", "x"), *nodes]
        same_as_runtime(net(nodes, {"z": (1, 120)}, {"s": np.array(shape, np.int64)}))
    else:
        same_as_runtime(net([node("Transpose", "x", "y", **({} if perm is None else {"perm": perm}))], shape))


@pytest.mark.parametrize("axis", [0, 1, 2, 3, -1])
@pytest.mark.parametrize("shape", [(1, 3, 4, 5), (1, 1, 4, 5), (1, 3, 1, 1)])
def test_concat(axis: int, shape: tuple[int, ...]) -> None:
    nodes = [node("Relu", "x", "r"), node("Tanh", "x", "t"), node("Concat", "r t x", "y", axis=axis)]
    same_as_runtime(net(nodes, shape))


def test_concat_of_different_sizes() -> None:
    same_as_runtime(net([node("Concat", "a b", "y", axis=1)], {"a": (1, 1, 4, 4), "b": (1, 3, 4, 4)}))


SLICES = [
    ([1], [3], [1], [1]),
    ([0], [-1], [2], [1]),
    ([-2], [2**63 - 1], [3], [1]),
    ([0], [5], [3], [2]),
    ([-1], [-(2**63)], [2], [-1]),
    ([3], [0], [2], [-2]),
    ([0, 1], [2, 100], [1, 3], [1, 3]),
    ([0], [1], [0], [1]),
]


@pytest.mark.parametrize("opset", [7, 9, 10, 11, 13, 23])
@pytest.mark.parametrize(("starts", "ends", "axes", "steps"), SLICES)
def test_slice(opset: int, starts: list[int], ends: list[int], axes: list[int], steps: list[int]) -> None:
    if opset < 10:
        if set(steps) != {1}:
            pytest.skip("steps came with opset 10")
        made, constants = node("Slice", "x", "y", starts=starts, ends=ends, axes=axes), {}
    else:
        constants = {k: np.array(v, np.int64) for k, v in zip("seat", (starts, ends, axes, steps), strict=True)}
        made = node("Slice", "x s e a t", "y")
    same_as_runtime(net([made], (1, 3, 4, 5), constants, opset))


@pytest.mark.parametrize("opset", [7, 11, 13, 18, 23])
def test_split(opset: int) -> None:
    relus = [node("Relu", "a", "y"), node("Tanh", "b", "z")]
    split = node("Split", "x", "a b", axis=1, **({"num_outputs": 2} if opset >= 18 else {}))
    same_as_runtime(net([split, *relus], (1, 6, 3), opset=opset, outputs="y z"))
    if opset >= 13:
        split, constants = node("Split", "x s", "a b", axis=1), {"s": np.array([2, 4], np.int64)}
    else:
        split, constants = node("Split", "x", "a b", axis=1, split=[2, 4]), {}
    same_as_runtime(net([split, *relus], (1, 6, 3), constants, opset, "y z"))


def test_split_of_an_odd_size() -> None:
    same_as_runtime(net([node("Split", "x", "a b y", axis=1, num_outputs=3)], (1, 7), opset=18, outputs="a b y"))


@pytest.mark.parametrize("index", [2, -1, [0], [1, 2], [3, 2, 1], [0, 2], [-1, -2]])
@pytest.mark.parametrize("axis", [1, 2])
def test_gather(index: object, axis: int) -> None:
    same_as_runtime(net([node("Gather", "x i", "y", axis=axis)], (1, 4, 5), {"i": np.array(index, np.int64)}))


@pytest.mark.parametrize("opset", [7, 11, 13, 18, 23])
@pytest.mark.parametrize("pads", [(0, 0, 1, 2, 0, 0, 3, 0), (0, 2, 0, 0, 0, 1, 0, 0), (0,) * 8])
def test_pad(opset: int, pads: tuple[int, ...]) -> None:
    if opset < 11:
        made, constants = node("Pad", "x", "y", pads=pads, value=1.5), {}
    else:
        made, constants = node("Pad", "x p v", "y"), {"p": np.array(pads, np.int64), "v": np.float32(1.5)}
    same_as_runtime(net([made], (1, 3, 4, 5), constants, opset))


def test_pad_of_named_axes() -> None:
    constants = {"p": np.array([1, 0, 0, 2], np.int64), "a": np.array([-1, 1], np.int64)}
    same_as_runtime(net([node("Pad", "x p - a", "y")], (1, 1, 4), constants, 18))


def test_shape_arithmetic_folds() -> None:
    nodes = [
        node("Shape", "x", "s"),
        node("Gather", "s zero", "n"),
        node("Unsqueeze", "n axis", "u"),
        node("Concat", "u minus", "t", axis=0),
        node("Reshape", "x t", "r"),
        node("Cast", "s", "sf", to=1),
        node("ReduceProd", "sf", "count", keepdims=0),
        node("Div", "r count", "y"),
    ]
    constants = {"zero": np.array(0, np.int64), "axis": np.array([0], np.int64), "minus": np.array([-1], np.int64)}
    loaded = same_as_runtime(net(nodes, ("N", 3, 4), constants))
    assert kinds(loaded) == ["Affine", "Reshape"] or kinds(loaded) == ["Reshape", "Affine"]


@pytest.mark.parametrize("layout", [0, 1])
@pytest.mark.parametrize("result", ["Y", "Yh", "Yc"])
@pytest.mark.parametrize("full", [True, False])
def test_lstm(layout: int, result: str, full: bool) -> None:
    hidden, inputs, steps = 4, 3, 5
    constants = {"w": w(1, 4 * hidden, inputs), "r": w(1, 4 * hidden, hidden)}
    state = (1, 1, hidden)
    if full:
        constants |= {"b": w(1, 8 * hidden), "h": w(*state), "c": w(*state)}
    made = node("LSTM", "x w r b - h c" if full else "x w r", "Y Yh Yc", hidden_size=hidden, layout=layout)
    model = net([made], (steps, 1, inputs) if layout == 0 else (1, steps, inputs), constants, 14, result)
    if layout == 1:  # onnxruntime has no layout 1: compare with our own layout 0
        loaded = load(model)
        plain = node("LSTM", " ".join(v or "-" for v in made.input), "Y Yh Yc", hidden_size=hidden)
        other = net([plain], (steps, 1, inputs), constants, 14, result)
        x = RNG.normal(0, 1, (1, steps, inputs)).astype(np.float32)
        a = loaded.ops[0].eval(x)
        b = same_as_runtime(other).ops
        reference = next(op for op in b if isinstance(op, Lstm)).eval(x)
        assert all(np.array_equal(p, q) for p, q in zip(a, reference, strict=True))
    else:
        assert "Lstm" in kinds(same_as_runtime(model))


@pytest.mark.parametrize("linear", [0, 1])
@pytest.mark.parametrize("result", ["Y", "Yh"])
@pytest.mark.parametrize("full", [True, False])
def test_gru(linear: int, result: str, full: bool) -> None:
    hidden, inputs, steps = 4, 3, 5
    constants = {"w": w(1, 3 * hidden, inputs), "r": w(1, 3 * hidden, hidden)}
    if full:
        constants |= {"b": w(1, 6 * hidden), "h": w(1, 1, hidden)}
    made = node("GRU", "x w r b - h" if full else "x w r", "Y Yh", hidden_size=hidden, linear_before_reset=linear)
    loaded = same_as_runtime(net([made], (steps, 1, inputs), constants, 14, result))
    gru = next(op for op in loaded.ops if isinstance(op, Gru))
    assert gru.linear_before_reset == bool(linear)


@pytest.mark.parametrize("kind", ["LSTM", "GRU"])
@pytest.mark.parametrize("direction", ["reverse", "bidirectional"])
@pytest.mark.parametrize("results", ["Y", "Yh", "Y Yh"])
def test_other_directions(kind: str, direction: str, results: str) -> None:
    """Backward layers read and write the sequence turned around."""
    gates, hidden, inputs, steps, count = 4 if kind == "LSTM" else 3, 4, 3, 5, 1 + (direction == "bidirectional")
    constants = {"w": w(count, gates * hidden, inputs), "r": w(count, gates * hidden, hidden)}
    constants |= {"b": w(count, 2 * gates * hidden), "h": w(count, 1, hidden)}
    names = " ".join(v if v in results.split() else "-" for v in ("Y", "Yh"))
    made = helper.make_node(kind, ["x", "w", "r", "b", "", "h"], ["" if v == "-" else v for v in names.split()],
                            name="rnn", hidden_size=hidden, direction=direction)  # fmt: skip
    same_as_runtime(net([made], (steps, 1, inputs), constants, 14, results))


def test_lstm_of_one_step_and_one_unit() -> None:
    constants = {"w": w(1, 4, 2), "r": w(1, 4, 1)}
    nodes = [node("LSTM", "x w r", "Y Yh", hidden_size=1), node("Squeeze", "Yh a", "s"), node("Gemm", "s m", "y")]
    same_as_runtime(net(nodes, (1, 1, 2), constants | {"a": np.array([0], np.int64), "m": w(1, 3)}, 13))


def test_depthwise_and_grouped() -> None:
    nodes = [node("Conv", "x k", "c", group=4, pads=[1, 1, 1, 1]), node("Conv", "c l", "y", group=2)]
    loaded = same_as_runtime(net(nodes, (1, 4, 6, 5), {"k": w(8, 1, 3, 3), "l": w(6, 4, 1, 1)}))
    assert [op.groups for op in loaded.ops if isinstance(op, Conv)] == [4, 2]


def test_conv_1d_needs_no_reshape_between() -> None:
    nodes = [node("Conv", "x k", "c"), node("Relu", "c", "r"), node("MaxPool", "r", "p", kernel_shape=[2], strides=[2])]
    nodes += [node("Conv", "p l", "d"), node("GlobalMaxPool", "d", "y")]
    loaded = same_as_runtime(net(nodes, (1, 3, 20), {"k": w(4, 3, 5), "l": w(2, 4, 3)}))
    assert kinds(loaded) == "Reshape Conv Activation Pool Conv GlobalPool Reshape".split()


def test_dynamic_batch_is_one() -> None:
    loaded = same_as_runtime(net([node("Gemm", "x m", "y")], ("batch", 4), {"m": w(4, 2)}))
    assert loaded.types["x"].shape == (4,)
    assert isinstance(loaded.ops[0], Dense)


def test_names_of_inputs_and_outputs_stay() -> None:
    nodes = [node("Identity", "x", "a"), node("Relu", "x", "b"), node("Dropout", "b", "c"), node("Flatten", "b", "d")]
    loaded = same_as_runtime(net(nodes, (1, 2, 3), outputs="a b c d"))
    assert loaded.inputs == ("x",)
