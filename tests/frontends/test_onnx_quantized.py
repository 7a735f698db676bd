"""QDQ files: what becomes FakeQuant, what integers weights keep, and onnxruntime's results to the step."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx_nets import feeds_of, kinds, load, net, node, runtime, same_as_runtime, values_of

from mcugen.core.passes import evaluate, run_passes
from mcugen.core.types import DType
from mcugen.errors import InputError, UnsupportedError
from mcugen.nn.passes import INTEGER_STEPS, simplify
from mcugen.nn.quantize.losses import as_integers, dequantized
from mcugen.nn.quantize.quantize import quantize
from mcugen.nn.source import Conv, Dense, FakeQuant

RNG = np.random.default_rng(3)
S, ONE = np.float32(0.05), np.float32(1.0)


def pair(x: str, y: str, scale: str = "s", zero: str = "z", domain: str = "") -> list[object]:
    return [
        node("QuantizeLinear", f"{x} {scale} {zero}", f"{y}_q", domain),
        node("DequantizeLinear", f"{y}_q {scale} {zero}", y, domain),
    ]


@pytest.mark.parametrize("shape", [(), (1,)])
@pytest.mark.parametrize(("zero", "expected"), [(np.int8(-7), -7), (np.uint8(121), -7), (np.uint8(0), -128)])
@pytest.mark.parametrize("opset", [10, 13, 19, 21, 23])
def test_pairs_on_activations(shape: tuple[int, ...], zero: np.generic, expected: int, opset: int) -> None:
    constants = {"s": np.full(shape, S), "z": np.full(shape, zero)}
    loaded = same_as_runtime(net(pair("x", "y"), (1, 3, 40), constants, opset), tolerance=0)
    (op,) = loaded.ops
    assert isinstance(op, FakeQuant)
    assert (op.scale, op.zero_point, op.dtype) == (float(S), expected, DType.I8)


def test_without_zero_point_is_uint8_from_zero() -> None:
    nodes = [node("QuantizeLinear", "x s", "q"), node("DequantizeLinear", "q s", "y")]
    loaded = same_as_runtime(net(nodes, (1, 30), {"s": S}), tolerance=0)
    assert isinstance(loaded.ops[0], FakeQuant)
    assert loaded.ops[0].zero_point == -128


def test_rounds_half_to_even_and_saturates() -> None:
    x = np.float32([[-300, -2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 300, 126.5, 127.5, -128.5, -np.inf, np.inf]])
    model = net(pair("x", "y"), x.shape, {"s": ONE, "z": np.int8(0)})
    found = values_of(load(model), {"x": x})[0].tolist()
    assert found == [-128, -2, -2, 0, 0, 2, 2, 127, 126, 127, -128, -128, 127]
    assert found == runtime(model, {"x": x})[0][0].tolist()


@pytest.mark.parametrize("zero", [np.int16(0), np.uint16(32768), np.int16(5)])
@pytest.mark.parametrize("domain", ["", "com.microsoft"])
def test_sixteen_bits(zero: np.generic, domain: str) -> None:
    loaded = load(net(pair("x", "y", domain=domain), (1, 30), {"s": np.float32(1e-4), "z": zero}, 21))
    assert isinstance(loaded.ops[0], FakeQuant)
    assert loaded.ops[0].dtype is DType.I16
    assert loaded.ops[0].zero_point == (int(zero) - 32768 if zero.dtype == np.uint16 else int(zero))


def quantized_conv(kind: str, per_channel: bool) -> tuple[list[object], dict[str, np.ndarray]]:
    q = RNG.integers(-127, 128, (4, 3, 3, 3)).astype(np.int8)
    scale = RNG.uniform(0.01, 0.02, 4 if per_channel else ()).astype(np.float32)
    zero = np.zeros(scale.shape, np.int8)
    if kind == "uint8":
        q, zero = (q.astype(np.int16) + 128).astype(np.uint8), np.full(scale.shape, 128, np.uint8)
    constants = {"kq": q, "ks": scale, "kz": zero, "s": S, "z": np.int8(3), "os": np.float32(0.4), "oz": np.int8(-10)}
    constants |= {"bq": RNG.integers(-500, 500, 4).astype(np.int32), "bs": (scale * S) * np.ones(4, np.float32)}
    nodes = [
        *pair("x", "xd"),
        node("DequantizeLinear", "kq ks kz", "k", axis=0),
        node("DequantizeLinear", "bq bs", "b", axis=0),
        node("Conv", "xd k b", "c", pads=[1, 1, 1, 1]),
        *pair("c", "y", "os", "oz"),
    ]
    return nodes, constants


@pytest.mark.parametrize("kind", ["int8", "uint8"])
@pytest.mark.parametrize("per_channel", [True, False])
def test_conv_keeps_its_integers(kind: str, per_channel: bool) -> None:
    nodes, constants = quantized_conv(kind, per_channel)
    model = net(nodes, (1, 3, 8, 8), constants, 13)
    loaded = simplify(load(model))
    assert kinds(loaded) == ["FakeQuant", "Conv", "FakeQuant"]
    conv = loaded.ops[1]
    assert isinstance(conv, Conv)
    offset = 128 if kind == "uint8" else 0
    assert np.array_equal(conv.weight_q, constants["kq"].astype(np.int16) - offset)
    assert np.array_equal(conv.weight_scale, np.broadcast_to(constants["ks"], 4))
    assert np.array_equal(conv.bias_q, constants["bq"])
    assert np.array_equal(conv.bias_scale, constants["bs"])
    assert not any(a.flags.writeable for a in (conv.weight, conv.weight_q, conv.weight_scale, conv.bias_q))
    feeds = feeds_of(model)
    steps = np.abs(values_of(loaded, feeds)[0] - runtime(model, feeds)[0][0]) / constants["os"]
    assert steps.max() < 1.01
    assert (steps > 0.01).sum() <= 1


def test_conv_1d_keeps_its_integers() -> None:
    q = RNG.integers(-127, 128, (4, 3, 5)).astype(np.int8)
    constants = {"kq": q, "ks": np.float32(0.01), "kz": np.int8(0)}
    nodes = [node("DequantizeLinear", "kq ks kz", "k"), node("Conv", "x k", "y")]
    conv = next(op for op in same_as_runtime(net(nodes, (1, 3, 9), constants, 13)).ops if isinstance(op, Conv))
    assert conv.weight_q is not None
    assert conv.weight_q.shape == (4, 3, 1, 5)


@pytest.mark.parametrize("form", ["gemm", "gemm transposed", "transpose", "matmul"])
def test_dense_keeps_its_integers(form: str) -> None:
    q = RNG.integers(-127, 128, (5, 7)).astype(np.int8)  # (N, K)
    scale = RNG.uniform(0.01, 0.02, 5).astype(np.float32)
    stored_nk = form in ("gemm transposed", "transpose")
    constants = {"wq": q if stored_nk else q.T.copy(), "ws": scale, "wz": np.zeros(5, np.int8)}
    nodes = [node("DequantizeLinear", "wq ws wz", "w", axis=0 if stored_nk else 1)]
    if form == "transpose":
        nodes.append(node("Transpose", "w", "wt", perm=[1, 0]))
    weight = "wt" if form == "transpose" else "w"
    if form.startswith("gemm"):
        nodes.append(node("Gemm", f"x {weight}", "y", transB=int(stored_nk)))
    else:
        nodes.append(node("MatMul", f"x {weight}", "y"))
    loaded = same_as_runtime(net(nodes, (1, 7), constants, 13))
    (dense,) = loaded.ops
    assert isinstance(dense, Dense)
    assert np.array_equal(dense.weight_q, q)
    assert np.array_equal(dense.weight_scale, scale)


def test_quantize_linear_of_a_constant() -> None:
    constants = {"w": RNG.normal(0, 1, (5, 7)).astype(np.float32), "s": np.float32(0.02), "z": np.int8(0)}
    nodes = [*pair("w", "wd"), node("Gemm", "x wd", "y", transB=1)]
    (dense,) = same_as_runtime(net(nodes, (1, 7), constants)).ops
    assert isinstance(dense, Dense)
    assert dense.weight_q is not None


def test_asymmetric_weights_are_said() -> None:
    constants = {"wq": np.arange(35, dtype=np.uint8).reshape(5, 7), "ws": np.float32(0.02), "wz": np.uint8(9)}
    loaded = same_as_runtime(
        net([node("DequantizeLinear", "wq ws wz", "w"), node("Gemm", "x w", "y", transB=1)], (1, 7), constants)
    )
    assert isinstance(loaded.ops[0], Dense)
    assert loaded.ops[0].weight_q is None
    assert "n_y" in loaded.notes[0]


def test_a_bias_added_to_quantized_weights_keeps_them() -> None:
    q = RNG.integers(-127, 128, (7, 5)).astype(np.int8)
    constants = {"wq": q, "ws": np.float32(0.01), "wz": np.int8(0), "b": RNG.normal(0, 1, 5), "m": np.float32(2)}
    nodes = [node("DequantizeLinear", "wq ws wz", "w"), node("MatMul", "x w", "p"), node("Add", "p b", "a")]
    simple = simplify(same_as_runtime(net([*nodes, node("Mul", "a m", "y")], (1, 7), constants)))
    assert kinds(simple) == ["Dense", "Affine"]
    assert simple.ops[0].weight_q is not None  # type: ignore[attr-defined]


def test_two_dequantize_nodes_are_one_fake_quant() -> None:
    nodes = [*pair("x", "a"), node("DequantizeLinear", "a_q s z", "b"), node("Add", "a b", "y")]
    loaded = same_as_runtime(net(nodes, (1, 9), {"s": S, "z": np.int8(1)}), tolerance=1e-6)
    assert kinds(loaded) == ["FakeQuant", "Binary"]


def test_the_same_grid_twice_is_once() -> None:
    nodes = [*pair("x", "a"), node("Flatten", "a", "f"), *pair("f", "y")]
    assert kinds(simplify(same_as_runtime(net(nodes, (1, 3, 3), {"s": S, "z": np.int8(1)}), tolerance=0))) == [
        "FakeQuant",
        "Reshape",
    ]


@pytest.mark.parametrize(
    ("nodes", "constants", "reason"),
    [
        ([node("QuantizeLinear", "x s z", "y")], {}, "output 'y': is quantized"),
        ([node("QuantizeLinear", "x s z", "q"), node("Relu", "q", "y")], {}, "works on the integers"),
        (
            [node("QuantizeLinear", "x s z", "q"), node("DequantizeLinear", "q t z", "y")],
            {"t": ONE},
            "other parameters",
        ),
        (pair("x", "y", "v", "u"), {"v": np.ones(3, np.float32), "u": np.zeros(3, np.int8)}, "per channel"),
        (pair("x", "y", "s", "u"), {"u": np.int32(0)}, "to int32"),
        ([node("DynamicQuantizeLinear", "x", "y a b")], {}, "dynamic quantization"),
    ],
)
def test_refused(nodes: list[object], constants: dict[str, np.ndarray], reason: str) -> None:
    model = net(nodes, (1, 3), {"s": S, "z": np.int8(0), **constants})
    with pytest.raises(UnsupportedError, match=reason):
        load(model)


@pytest.mark.parametrize("scale", [0.0, -1.0, np.nan, np.inf])
def test_scales_that_are_none(scale: float) -> None:
    with pytest.raises(InputError):
        load(net(pair("x", "y"), (1, 3), {"s": np.float32(scale), "z": np.int8(0)}))


@pytest.mark.parametrize("shape", [(), (1,), (3, 1, 1)])
def test_scalars_are_quantized_as_well(shape: tuple[int, ...]) -> None:
    """The quantizer writes even a factor of no axes as an integer with a scale."""
    constants = {"s": S, "z": np.int8(-3), "kq": np.full(shape, 100, np.int8), "ks": np.float32(0.03), "kz": np.int8(0)}
    nodes = [*pair("x", "a"), node("DequantizeLinear", "kq ks kz", "k"), node("Mul", "a k", "b"), *pair("b", "y")]
    same_as_runtime(net(nodes, (1, 3, 4, 5), constants))


def partly(nodes: list[object], constants: dict[str, np.ndarray]) -> onnx.ModelProto:
    """Quantized inputs a and b, and a result y, of a net that has no scales in between."""
    scales = {"s": S, "z": np.int8(-3), "t": np.float32(0.11)}
    first = [*pair("x", "a"), node("Abs", "a", "c"), node("Sub", "c one", "d"), *pair("d", "b", "t")]
    return net([*first, *nodes, *pair("v", "y", "t")], (1, 3, 4, 5), constants | scales | {"one": np.float32(1)})


PARTLY = [
    [node("Sum", "a b a", "v")],
    [node("PRelu", "a slopes", "v")],
    [node("Max", "a b", "v")],
    [node("Pad", "a pads", "p", mode="reflect"), node("Add", "p p", "v")],
    [node("Concat", "a b", "p", axis=1), node("Neg", "p", "v")],
    [node("Resize", "a - twice", "p", mode="linear"), node("Elu", "p", "v")],
]


@pytest.mark.parametrize("nodes", PARTLY, ids=lambda nodes: nodes[0].op_type)
def test_ranges_that_follow_from_scales(nodes: list[object]) -> None:
    """What onnxruntime's quantizer leaves in float between two quantized values needs no data, and costs a step."""
    slopes, pads = RNG.uniform(0, 0.5, (3, 1, 1)), np.array([0, 0, 1, 0, 0, 0, 2, 0])
    model = partly(nodes, {"slopes": slopes, "pads": pads, "twice": np.float32([1, 1, 2, 2])})
    source = run_passes(load(model), INTEGER_STEPS, None)
    machine = quantize(source, None).machine
    feeds = feeds_of(model)
    (want,) = runtime(model, feeds)
    y = evaluate(machine, {"x": as_integers(feeds["x"], machine.types["x"])})[machine.outputs[0]]
    kind = machine.types[machine.outputs[0]]
    assert kind.q is not None
    assert np.abs(dequantized(y, kind).reshape(want.shape) - want).max() <= 1.01 * kind.q.scale


def test_means_need_data() -> None:
    """They reach a small part of what they could."""
    source = run_passes(
        load(partly([node("ReduceMean", "a", "m", axes=[1]), node("Add", "b m", "v")], {})), INTEGER_STEPS, None
    )
    with pytest.raises(UnsupportedError, match=r"the range of m is not known .*--calib"):
        quantize(source, None)


@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize(("kind", "per_channel"), [("int8", False), ("int8", True), ("uint8", True)])
def test_a_transposed_convolution_keeps_its_weights(kind: str, per_channel: bool, groups: int, stride: int) -> None:
    """Each phase of the kernel has the integers and the scale of the file, whatever its own largest weight is."""
    oc = 3
    q = RNG.integers(-127, 128, (4, oc, 3, 2)).astype(np.int8)
    q[:, :, 0] //= 9  # a phase with small weights only
    scale = RNG.uniform(0.01, 0.02, oc if per_channel else ()).astype(np.float32)
    zero = np.zeros(scale.shape, np.int8)
    if kind == "uint8":
        q, zero = (q.astype(np.int16) + 128).astype(np.uint8), np.full(scale.shape, 128, np.uint8)
    constants = {"kq": q, "ks": scale, "kz": zero, "s": S, "z": np.int8(3), "os": np.float32(0.4), "oz": np.int8(-10)}
    steps = np.tile(scale * S * np.ones(oc, np.float32), groups).astype(np.float32)
    constants |= {"bq": RNG.integers(-500, 500, oc * groups).astype(np.int32), "bs": steps}
    nodes = [
        *pair("x", "xd"),
        node("DequantizeLinear", "kq ks kz", "k", axis=1),
        node("DequantizeLinear", "bq bs", "b", axis=0),
        node("ConvTranspose", "xd k b", "c", group=groups, strides=[stride, 1], pads=[1, 0, 1, 0]),
        *pair("c", "y", "os", "oz"),
    ]
    model = net(nodes, (1, 4, 5, 4), constants)
    loaded = same_as_runtime(model)
    (layer,) = (op for op in loaded.ops if isinstance(op, Conv))
    assert layer.weight_q is not None
    assert layer.bias_q is not None
    assert not loaded.notes
    machine = quantize(simplify(loaded), None).machine
    x = np.random.default_rng(4).normal(0, 2, (20, 4, 5, 4)).astype(np.float32)
    (kind_y,) = (machine.types[v] for v in machine.outputs)
    found = evaluate(machine, {"x": as_integers(x, machine.types["x"])})[machine.outputs[0]]
    theirs = np.concatenate([runtime(model, {"x": row[None]})[0] for row in x])
    steps_off = np.abs(dequantized(found, kind_y).reshape(theirs.shape) - theirs) / 0.4
    assert steps_off.max() < 1.01
    assert (steps_off > 0.5).mean() < 0.001  # ties only
