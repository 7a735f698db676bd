"""Functions of one element, their compositions, Max, Min, Sum and Mean, against onnxruntime."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx_nets import feeds_of, kinds, load, net, node, runtime, same_as_runtime

from mcugen.core.passes import check_model, evaluate, run_passes
from mcugen.errors import McugenError, UnsupportedError
from mcugen.nn.floats import lower_floats
from mcugen.nn.passes import FLOAT_STEPS, INTEGER_STEPS
from mcugen.nn.quantize.losses import as_integers, dequantized
from mcugen.nn.quantize.quantize import quantize
from mcugen.nn.quantize.ranges import Range, value_ranges

RNG = np.random.default_rng(11)
SHAPES = ((1, 7), (1, 3, 4, 5), (6,))

FUNCTIONS: list[tuple[str, dict[str, Any], int]] = [
    ("Elu", {}, 7),
    ("Elu", {"alpha": 0.3}, 22),
    ("Selu", {}, 7),
    ("Selu", {"alpha": 1.2, "gamma": 0.7}, 22),
    ("Celu", {"alpha": 2.0}, 12),
    ("ThresholdedRelu", {"alpha": 0.4}, 10),
    ("Softplus", {}, 7),
    ("Softsign", {}, 22),
    ("Erf", {}, 13),
    ("Abs", {}, 7),
    ("Exp", {}, 13),
    ("Neg", {}, 13),
    ("Gelu", {}, 20),
    ("Gelu", {"approximate": "tanh"}, 20),
    ("Mish", {}, 18),
]


@pytest.mark.parametrize(("op", "attributes", "opset"), FUNCTIONS)
def test_functions(op: str, attributes: dict[str, Any], opset: int) -> None:
    for shape in SHAPES:
        same_as_runtime(net([node(op, "x", "y", **attributes)], shape, opset=opset))


@pytest.mark.parametrize("op", ["Sqrt", "Log", "Reciprocal"])
def test_functions_of_positive_numbers(op: str) -> None:
    model = net([node(op, "x", "y")], (1, 5))
    same_as_runtime(model, {"x": np.float32([[1e-3, 0.5, 1, 2, 1e3]])})


@pytest.mark.parametrize("exponent", [2.0, 3.0, 0.5, -1.0, 1.7])
def test_power(exponent: float) -> None:
    model = net([node("Pow", "x k", "y")], (1, 5), {"k": np.float32(exponent)})
    same_as_runtime(model, {"x": np.float32([[1e-2, 0.5, 1, 2, 30]])})


@pytest.mark.parametrize("slope", [(3, 1, 1), (1, 3, 1, 1), (1,), ()])
def test_prelu(slope: tuple[int, ...]) -> None:
    constants = {"s": RNG.uniform(-0.3, 0.9, slope)}
    same_as_runtime(net([node("PRelu", "x s", "y")], (1, 3, 4, 4), constants))


def test_slopes_of_single_elements_are_refused() -> None:
    with pytest.raises(UnsupportedError, match="slopes of shape"):
        load(net([node("PRelu", "x s", "y")], (1, 3, 4, 4), {"s": RNG.uniform(0, 1, (3, 4, 4))}))


@pytest.mark.parametrize("op", ["Max", "Min"])
def test_limits(op: str) -> None:
    same_as_runtime(net([node(op, "x k", "y")], (1, 9), {"k": np.float32(0.25)}))
    loaded = same_as_runtime(net([node(op, "k x m", "y")], (1, 9), {"k": np.float32(-0.5), "m": np.float32([0.5])}))
    assert kinds(loaded) == ["Activation"]
    same_as_runtime(net([node(op, "a b", "y")], {"a": (1, 3, 4), "b": (1, 3, 4)}))
    same_as_runtime(net([node(op, "a b k", "y")], {"a": (1, 3, 4), "b": (1, 1, 4)}, {"k": np.float32(0.1)}))


@pytest.mark.parametrize("op", ["Sum", "Mean"])
def test_totals(op: str) -> None:
    inputs = {"a": (1, 3, 4), "b": (1, 3, 4), "c": (1, 1, 4)}
    same_as_runtime(net([node(op, "a b c", "y")], inputs))
    same_as_runtime(net([node(op, "a", "b"), node("Relu", "b", "y")], {"a": (1, 3)}))


REDUCTIONS = ("ReduceMean", "ReduceSum", "ReduceMax", "ReduceMin", "ReduceL1", "ReduceL2", "ReduceSumSquare")


@pytest.mark.parametrize("op", REDUCTIONS)
@pytest.mark.parametrize("axes", [(1,), (2, 3), (-1,), (1, 3), (0,), None])
@pytest.mark.parametrize("keep", [0, 1])
def test_reductions(op: str, axes: tuple[int, ...] | None, keep: int) -> None:
    attributes = {"keepdims": keep} | ({} if axes is None else {"axes": list(axes)})
    opset = 11 if op == "ReduceSum" else 13
    same_as_runtime(net([node(op, "x", "y", **attributes)], (1, 3, 4, 5), opset=opset), tolerance=2e-5)
    if axes is not None:
        made = node(op, "x a", "y", keepdims=keep)
        same_as_runtime(net([made], (1, 3, 4, 5), {"a": np.array(axes)}, 18), tolerance=2e-5)


@pytest.mark.parametrize("op", ["ReduceSum", "ReduceMax", "ReduceMin"])
@pytest.mark.parametrize("axes", [(1,), (2, 3), (1, 3)])
def test_reductions_of_integers(op: str, axes: tuple[int, ...]) -> None:
    """Behind a convolution, whose channels are interleaved."""
    nodes = [node("Conv", "x k", "v"), node(op, "v a", "y")]
    model = net(nodes, (1, 3, 6, 5), {"k": RNG.normal(0, 0.3, (4, 3, 3, 2)), "a": np.array(axes)}, 18)
    source = run_passes(load(model), INTEGER_STEPS, None)
    x = RNG.normal(0, 1, (32, 3, 6, 5)).astype(np.float32)
    machine = quantize(source, value_ranges(source, (x,), "minmax")).machine
    check_model(machine, "quantize")
    y = evaluate(machine, {"x": as_integers(x, machine.types["x"])})[machine.outputs[0]]
    want = np.concatenate([runtime(model, {"x": row[None]})[0] for row in x])
    found = dequantized(y, machine.types[machine.outputs[0]]).reshape(want.shape)
    assert np.abs(found - want).max() < 0.03 * np.abs(want).max()


@pytest.mark.parametrize("shape", [(1, 6, 5), (1, 1, 6, 5), (6, 5), (1, 3, 6, 5)])
def test_products_from_the_left(shape: tuple[int, ...]) -> None:
    same_as_runtime(net([node("MatMul", "k x", "y")], shape, {"k": RNG.normal(0, 1, (4, 6))}))


def test_division() -> None:
    """By an activation: only where it stays away from zero is that sensible, and the test."""
    nodes = [node("Abs", "b", "c"), node("Add", "c k", "d"), node("Div", "a d", "y")]
    same_as_runtime(net(nodes, {"a": (1, 3, 4), "b": (1, 3, 1)}, {"k": np.float32(0.5)}))
    same_as_runtime(net([*nodes[:2], node("Div", "k d", "y")], {"b": (1, 3)}, {"k": np.float32(0.5)}))


# One table for what is a function of one element.


def gelu(x: str, y: str) -> list[onnx.NodeProto]:
    """As exporters write it that don't know the operator."""
    names = [f"{y}{i}" for i in range(4)]
    return [
        node("Div", f"{x} r", names[0]),
        node("Erf", names[0], names[1]),
        node("Add", f"{names[1]} one", names[2]),
        node("Mul", f"{x} {names[2]}", names[3]),
        node("Mul", f"{names[3]} half", y),
    ]


CONSTANTS = {"r": np.float32(2**0.5), "one": np.float32(1), "half": np.float32(0.5), "k": RNG.normal(0, 0.5, (6, 8))}
DENSE = node("MatMul", "x k", "v")
CHAINS: dict[str, list[onnx.NodeProto]] = {
    "gelu": [*gelu("v", "y")],
    "swish": [node("Sigmoid", "v", "s"), node("Mul", "s v", "y")],
    "square": [node("Mul", "v v", "y")],
    "tanh by sigmoid": [node("Sigmoid", "v", "s"), node("Add", "s s", "t"), node("Sub", "t one", "y")],
    "softsign by parts": [node("Abs", "v", "a"), node("Add", "a one", "b"), node("Div", "v b", "y")],
    "a residual": [node("Tanh", "v", "t"), node("Add", "v t", "y")],
}


@pytest.mark.parametrize("chain", CHAINS)
def test_one_table(chain: str) -> None:
    """The table holds the nearest int8 to onnxruntime's answer for each of the 256 operands."""
    model = net([DENSE, *CHAINS[chain]], (1, 6), CONSTANTS)
    source = run_passes(same_as_runtime(model), INTEGER_STEPS, None)
    assert kinds(source) == ["Dense", "Function"]
    x = RNG.normal(0, 1, (64, 6)).astype(np.float32)
    machine = quantize(source, value_ranges(source, (x,), "minmax")).machine
    assert kinds(machine) == ["QDense", "QTable"]
    q_in, q_out = (machine.types[v].q for v in (machine.ops[1].inputs[0], machine.outputs[0]))
    assert q_in is not None
    assert q_out is not None
    table = machine.ops[1].eval(np.arange(-128, 128).astype(np.int8))[0]
    alone = net(CHAINS[chain], {"v": (1, 256)}, CONSTANTS)
    real = ((np.arange(-128, 128) - q_in.zero_point) * np.float32(q_in.scale)).astype(np.float32)
    exact = runtime(alone, {"v": real[None]})[0].reshape(-1) / q_out.scale + q_out.zero_point
    assert np.abs(np.clip(exact, -128, 127) - table).max() < 0.501


@pytest.mark.parametrize("chain", CHAINS)
def test_float32_keeps_the_parts(chain: str) -> None:
    model = net([DENSE, *CHAINS[chain]], (1, 6), CONSTANTS)
    machine = lower_floats(run_passes(load(model), FLOAT_STEPS, None))
    check_model(machine, "lower")
    feeds = feeds_of(model)
    found = evaluate(machine, feeds)[machine.outputs[0]]
    np.testing.assert_allclose(found.reshape(-1), runtime(model, feeds)[0].reshape(-1), rtol=1e-5, atol=1e-6)


TIES = {"x": np.float32([[-2, -0.25, 0.0, 0.25, 0.5, 3]])}


@pytest.mark.parametrize("op", ["Greater", "GreaterOrEqual", "Less", "LessOrEqual"])
@pytest.mark.parametrize("operands", ["x t", "t x"])
def test_choices(op: str, operands: str) -> None:
    """Both sides of the limit, and the limit itself."""
    nodes = [node(op, operands, "c"), node("Exp", "x", "e"), node("Where", "c e k", "y")]
    constants = {"t": np.float32(0.25), "k": np.float32(-3)}
    model = net(nodes, (1, 6), constants)
    assert kinds(run_passes(same_as_runtime(model, TIES), INTEGER_STEPS, None)) == ["Function"]
    nodes = [node(op, operands, "c"), node("Not", "c", "n"), node("Cast", "n", "m", to=1), node("Mul", "m x", "y")]
    same_as_runtime(net(nodes, (1, 6), constants), TIES)


def test_softplus_as_exporters_write_it() -> None:
    """The branch that is not taken overflows, and does not matter."""
    nodes = [node("Exp", "v", "e"), node("Add", "e one", "f"), node("Log", "f", "l")]
    nodes += [node("Greater", "v t", "c"), node("Where", "c v l", "y")]
    model = net(nodes, {"v": (1, 4)}, {"one": np.float32(1), "t": np.float32(20)})
    source = run_passes(same_as_runtime(model, {"v": np.float32([[-30, 0, 19, 120]])}), INTEGER_STEPS, None)
    assert kinds(source) == ["Function"]
    machine = quantize(source, {"v": Range(-200, 200), "y": Range(0, 200)}).machine
    q_in, q_out = (machine.types[v].q for v in (machine.inputs[0], machine.outputs[0]))
    assert q_in is not None
    assert q_out is not None
    x = (np.arange(-128, 128) - q_in.zero_point) * q_in.scale
    exact = np.logaddexp(x, 0) / q_out.scale + q_out.zero_point
    table = machine.ops[0].eval(np.arange(-128, 128).astype(np.int8))[0]
    assert np.abs(np.clip(exact, -128, 127) - table).max() < 0.501


@pytest.mark.parametrize(
    ("nodes", "reason"),
    [
        ([node("Greater", "x t", "c"), node("Add", "c x", "y")], "works on booleans"),
        ([node("Greater", "x x", "c"), node("Where", "c x t", "y")], "compares two activations"),
        ([node("Greater", "x t", "c"), node("Where", "c x row", "y")], "a constant of shape"),
        ([node("Where", "x x t", "y")], "its condition is no comparison"),
        ([node("Greater", "x t", "y")], "is a comparison"),
    ],
)
def test_choices_that_are_refused(nodes: list[onnx.NodeProto], reason: str) -> None:
    constants = {"t": np.float32(0.25), "row": np.ones((1, 6))}
    with pytest.raises(UnsupportedError, match=reason):
        load(net(nodes, (1, 6), constants))


def test_choices_between_several_values_have_no_kernel() -> None:
    nodes = [node("Greater", "x t", "c"), node("Where", "c z x", "y")]
    source = run_passes(
        same_as_runtime(net(nodes, {"x": (1, 6), "z": (1, 6)}, {"t": np.float32(0)})), INTEGER_STEPS, None
    )
    with pytest.raises(UnsupportedError, match="a choice that depends on several values"):
        quantize(source, dict.fromkeys(source.types, Range(-1, 1)))
    with pytest.raises(UnsupportedError, match="no float32 form"):
        lower_floats(source)


def test_values_that_others_read_stay() -> None:
    """The gate of x * sigmoid(x) is an output as well."""
    model = net([DENSE, *CHAINS["swish"]], (1, 6), CONSTANTS, outputs="y s")
    source = run_passes(same_as_runtime(model), INTEGER_STEPS, None)
    assert kinds(source) == ["Dense", "Activation", "Function"]


def test_a_clamp_stays_with_its_layer() -> None:
    """ReLU costs nothing behind a layer, and narrows the range that the table reads."""
    model = net([DENSE, node("Relu", "v", "v2"), node("Sqrt", "v2", "y")], (1, 6), CONSTANTS)
    machine = integers(model)
    assert kinds(machine) == ["QDense", "QTable"]
    q = machine.types[machine.ops[0].outputs[0]].q
    assert q is not None
    assert q.zero_point == -128


def integers(model: onnx.ModelProto) -> Any:
    source = run_passes(load(model), INTEGER_STEPS, None)
    x = RNG.normal(0, 1, (64, 6)).astype(np.float32)
    return quantize(source, value_ranges(source, (x,), "minmax")).machine


def test_quantization_in_between_is_part_of_the_function() -> None:
    """A QDQ file: x * q(sigmoid(x)) is what onnxruntime computes, and one table."""

    def quantized(value: str, scale: str, to: str) -> list[onnx.NodeProto]:
        q = node("QuantizeLinear", f"{value} {scale} z", f"{to}q")
        return [q, node("DequantizeLinear", f"{to}q {scale} z", to)]

    nodes = [*quantized("x", "s", "a"), node("Sigmoid", "a", "b"), *quantized("b", "t", "c"), node("Mul", "a c", "d")]
    constants = {"s": np.float32(0.05), "t": np.float32(0.00913), "z": np.int8(-3)}
    model = net([*nodes, *quantized("d", "s", "y")], (1, 256), constants)
    source = run_passes(same_as_runtime(model), INTEGER_STEPS, None)
    machine = quantize(source, None).machine
    assert kinds(machine) == ["QTable"]
    q = np.arange(-128, 128)
    x = ((q + 3) * np.float32(0.05)).astype(np.float32)[None]
    found = dequantized(machine.ops[0].eval(as_integers(x, machine.types["x"]))[0], machine.types[machine.outputs[0]])
    np.testing.assert_allclose(found, runtime(model, {"x": x})[0], atol=1e-6)


def test_where_a_function_has_no_value() -> None:
    """The root of a negative number: the answer of the nearest operand that has one."""
    source = run_passes(load(net([DENSE, node("Sqrt", "v", "y")], (1, 6), CONSTANTS)), INTEGER_STEPS, None)
    machine = quantize(source, {"x": Range(-1, 1), "v": Range(-2, 4), "y": Range(0, 2)}).machine
    q = machine.types["v"].q
    assert q is not None
    assert q.zero_point > -128
    table = machine.ops[1].eval(np.arange(-128, 128).astype(np.int8))[0]
    assert (table[: q.zero_point + 129] == -128).all()
    assert table[-1] == 127


def test_float32_says_what_it_lacks() -> None:
    model = run_passes(load(net([node("Pow", "x k", "y")], (1, 6), {"k": np.float32(1.7)})), FLOAT_STEPS, None)
    with pytest.raises(McugenError, match="power has no float32 form"):
        lower_floats(model)
