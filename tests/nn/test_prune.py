"""Dead channels go and every bit stays: single cases with known answers, then random nets."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parents[1] / "frontends"))

from machine_nets import LOC, Image, Maker, random_model
from onnx_nets import net, node

import mcugen
from mcugen import exported
from mcugen.core.passes import check_model, evaluate
from mcugen.core.types import Array, DType, Model, QParams
from mcugen.nn.ops.qconv import QConv
from mcugen.nn.ops.qdense import QDense
from mcugen.nn.ops.qdepthwise import QDepthwise
from mcugen.nn.prune.prune import Pruned, _trimmers, prune
from mcugen.nn.requant import requant_of
from mcugen.nn.vectors import net_vectors


def outputs(model: Model, x: Array) -> list[Array]:
    values = evaluate(model, {model.inputs[0]: x})
    return [values[v].reshape(len(x), -1) for v in model.outputs]


def assert_same(model: Model) -> Pruned:
    """The pass leaves a sound model that gives the same bits."""
    check_model(model, "test")
    found = prune(model)
    check_model(found.machine, "prune")
    assert found.machine.inputs == model.inputs
    assert found.machine.outputs == model.outputs
    x = net_vectors(model.types[model.inputs[0]], None)
    for a, b in zip(outputs(model, x), outputs(found.machine, x), strict=True):
        assert np.array_equal(a, b)
    assert all(found.machine.types[v] == model.types[v] for v in (*model.inputs, *model.outputs))
    return found


@settings(max_examples=150, deadline=None, derandomize=True)
@given(seed=st.integers(0, 2**32 - 1))
def test_random_nets(seed: int) -> None:
    """The same bits; once more finds nothing more to remove; every value lies in its bounds."""
    model = random_model(seed)
    found = assert_same(model)
    assert prune(found.machine).macs[1] == found.macs[1]
    assert_bounds(model)


@pytest.mark.slow
@settings(max_examples=5000, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_many_random_nets(seed: int) -> None:
    assert_same(random_model(seed))


def assert_bounds(model: Model) -> None:
    values = evaluate(model, {"x": net_vectors(model.types["x"], None)})
    for trimmer in _trimmers(model):
        for value, bounds in zip(trimmer.op.inputs, trimmer.known, strict=True):
            rows = values[value].reshape(len(values[value]), -1)
            assert (rows >= bounds.low).all(), value
            assert (rows <= bounds.high).all(), value


def test_random_nets_do_have_dead_channels() -> None:
    """Else the tests above would show nothing."""
    found = [prune(random_model(seed)) for seed in range(60)]
    assert sum(bool(f.trims) for f in found) > 30
    assert sum(len(f.machine.ops) for f in found) < sum(len(random_model(seed).ops) for seed in range(60))


# Single cases. A plain convolution, its rows set by hand.


def conv(
    m: Maker, x: Image, weight: Array, bias: list[int], pads: int = 0, low: int = -128, zero_point: int = -10
) -> Image:
    """Weights (OC, KH, KW, C); the factor 1/64."""
    out, kh, kw, _ = weight.shape
    size = (x.shape[1] + 2 * pads - kh + 1, x.shape[2] + 2 * pads - kw + 1)
    q = QParams(0.05, zero_point)
    y = m.new((out, *size), False, q)
    geometry = {"stride": (1, 1), "pads": (pads,) * 4, "dilation": (1, 1), "in_planar": x.planar, "out_planar": False}
    numbers = {"in_zp": x.q.zero_point, "requant": requant_of([1 / 64], zero_point, low, 127)}
    numbers |= {"weight": weight.astype(np.int8), "bias": np.array(bias, np.int32)}
    shapes = {"in_shape": x.shape, "out_shape": y.shape}
    m.ops.append(QConv((x.name,), (y.name,), LOC, **shapes, **geometry, **numbers))  # type: ignore[arg-type]
    return y


def maker(channels: int = 3) -> tuple[Maker, np.random.Generator]:
    rng = np.random.default_rng(4)
    return Maker(rng, (channels, 5, 4)), rng


def weights(rng: np.random.Generator, *shape: int) -> Array:
    return rng.integers(1, 100, shape)


def rows_of(found: Pruned) -> list[int]:
    return [len(op.weight) for op in found.machine.ops if isinstance(op, QConv | QDepthwise | QDense)]


@pytest.mark.parametrize(
    ("bias", "pads", "left"),
    [
        (0, 0, 3),  # the zero point adds nothing
        (0, 1, 3),  # neither where it meets padding, which is the same
        (64 * 30, 0, 3),  # another constant moves into the bias
        (64 * 30, 1, 4),  # but not where padding makes the border differ
        (64 * 400, 0, 3),  # saturated
        (-64 * 400, 0, 3),
    ],
)
def test_a_row_of_zeros(bias: int, pads: int, left: int) -> None:
    m, rng = maker()
    w = weights(rng, 4, 3, 3, 3)
    w[2] = 0
    first = conv(m, m.x, w, [5, -9, bias, 100], pads=1)
    y = conv(m, first, weights(rng, 3, 3, 3, 4), [1, 2, 3], pads=pads)
    assert rows_of(assert_same(m.model(y))) == [left, 3]


def test_padding_that_meets_zero_weights_only() -> None:
    """The constant reaches the border, its weights at the border are zero."""
    m, rng = maker()
    w = weights(rng, 4, 1, 1, 3)
    w[1] = 0
    first = conv(m, m.x, w, [5, 64 * 30, 7, 100])
    v = weights(rng, 2, 3, 3, 4)
    v[:, :, :, 1] = 0
    v[:, 1, 1, 1] = 9
    assert rows_of(assert_same(m.model(conv(m, first, v, [1, 2], pads=1)))) == [3, 2]


def test_pinned_by_a_clamp() -> None:
    """ReLU at zero point -10: with bias -64 * 500 no input lifts the sum over zero. The row above it does move."""
    m, rng = maker()
    w = rng.integers(-20, 20, (3, 1, 1, 3))
    first = conv(m, m.x, w, [0, -64 * 500, 0], low=-10)
    y = conv(m, first, weights(rng, 2, 3, 3, 3), [1, 2], pads=1)
    found = assert_same(m.model(y))
    assert rows_of(found) == [2, 2]
    assert (found.trims[0].outputs, found.trims[0].outputs_left) == (3, 2)


def test_bounds_follow_the_net() -> None:
    """After ReLU the inputs are not below the zero point: weights that are negative pin a row of the next layer."""
    m, rng = maker()
    first = conv(m, m.x, rng.integers(-20, 20, (3, 1, 1, 3)), [0, 0, 0], low=-10)
    w = weights(rng, 4, 1, 1, 3)
    w[3] *= -1
    second = conv(m, first, w, [0, 0, 0, 0], low=-10)
    assert rows_of(assert_same(m.model(conv(m, second, weights(rng, 2, 1, 1, 4), [1, 2])))) == [3, 3, 2]


def test_unread_channels_take_their_producers_with_them() -> None:
    m, rng = maker()
    first = conv(m, m.x, weights(rng, 4, 1, 1, 3), [0, 0, 0, 0])
    middle = m.depthwise(first, 1, (2, 2), dead=0.0)
    w = weights(rng, 2, 1, 1, 4)
    w[:, :, :, [0, 3]] = 0
    assert rows_of(assert_same(m.model(conv(m, middle, w, [1, 2])))) == [2, 2, 2]


def test_a_sum_keeps_what_one_side_needs() -> None:
    """Channel 1 is constant on one side of the sum only: both stay. Channel 2 is on both sides: both go."""
    m, rng = maker()
    wa, wb = weights(rng, 3, 1, 1, 3), weights(rng, 3, 1, 1, 3)
    wa[1:], wb[2] = 0, 0
    a, b = (conv(m, m.x, w, [1, 2, 3]) for w in (wa, wb))
    m.scale = lambda: QParams(0.1, 0)  # type: ignore[method-assign]
    y = conv(m, m.add(a, b), weights(rng, 2, 1, 1, 3), [1, 2])
    found = assert_same(m.model(y))
    assert rows_of(found) == [2, 2, 2]


def test_parts_of_a_concat() -> None:
    m, rng = maker()
    wa, wb = weights(rng, 3, 1, 1, 3), weights(rng, 2, 1, 1, 3)
    wa[0], wb[:] = 0, 0
    a, b = conv(m, m.x, wa, [70, 2, 3]), conv(m, m.x, wb, [300, 5])
    found = assert_same(m.model(conv(m, m.concat(a, b), weights(rng, 2, 1, 1, 5), [1, 2])))
    assert rows_of(found) == [2, 2]  # the second part is gone, and its convolution with it


def test_unread_elements_of_a_dense_layer() -> None:
    m, _ = maker()
    first = m.dense(m.x, 6, 0.0)
    second = m.dense(first, 4, 0.0)
    dense = m.ops[1]
    assert isinstance(dense, QDense)
    dense.weight[:, [1, 4]] = 0
    found = assert_same(m.model(second))
    assert rows_of(found) == [4, 4]


def test_a_net_whose_output_is_constant() -> None:
    """All weights are zero: kernels still read and write something."""
    m, rng = maker()
    first = conv(m, m.x, weights(rng, 4, 1, 1, 3), [1, 2, 3, 4])
    y = conv(m, first, np.zeros((2, 1, 1, 4)), [640, -640])
    found = assert_same(m.model(y))
    assert rows_of(found) == [1, 2]
    assert outputs(found.machine, np.zeros((1, 3, 5, 4), np.int8))[0].tolist() == [[0, -20] * 20]


def test_channels_behind_slices_are_unread() -> None:
    """Every other channel is read: the copy becomes one of the whole."""
    m, rng = maker()
    first = conv(m, m.x, weights(rng, 6, 1, 1, 3), [0] * 6)
    y = conv(m, m.some_channels(first, 1, 2, 3), weights(rng, 2, 1, 1, 3), [1, 2])
    assert rows_of(assert_same(m.model(y))) == [3, 2]


def test_outputs_of_the_net_stay() -> None:
    m, rng = maker()
    w = weights(rng, 4, 1, 1, 3)
    w[2] = 0
    y = conv(m, m.x, w, [1, 2, 3, 4])
    found = assert_same(m.model(y))
    assert found.machine.ops == tuple(m.ops)
    assert found.trims == ()
    assert found.text() == ""


def test_a_live_net_is_left_alone() -> None:
    m, rng = maker()
    model = m.model(conv(m, conv(m, m.x, weights(rng, 4, 1, 1, 3), [0] * 4), weights(rng, 2, 1, 1, 4), [1, 2]))
    assert prune(model).machine is model


def test_biases_at_the_ends_of_int32() -> None:
    """Rows that saturate take one of their sums as bias, a constant folds into those that do not: all fit int32."""
    m, _ = maker()
    w = np.zeros((2, 1, 1, 3))
    w[0] = 20
    first = conv(m, m.x, w, [0, 64 * 130])
    v = np.array([[[[20, 127]]], [[[20, -127]]], [[[20, 127]]]])
    reach = 20 * 255 + 127 * (127 + 10) + 137
    y = conv(m, first, v, [2**31 - 1 - reach, -(2**31) + reach, 5 - 127 * 130])
    found = assert_same(m.model(y))
    assert rows_of(found) == [1, 3]
    last = found.machine.ops[-1]
    assert isinstance(last, QConv)
    assert last.weight.reshape(-1).tolist() == [0, 0, 20]
    assert abs(int(last.bias[0]) - 2**31) < 2 * reach
    assert abs(int(last.bias[1]) + 2**31) < 2 * reach
    assert last.bias[2] == 5  # the constant is 120, that is 130 above the zero point


def test_text_and_lines() -> None:
    m, rng = maker()
    w = weights(rng, 4, 1, 1, 3)
    w[2] = 0
    found = assert_same(m.model(conv(m, conv(m, m.x, w, [1, 2, 3, 4]), weights(rng, 2, 1, 1, 4), [1, 2])))
    assert found.weights == (20, 15)
    assert found.macs == (400, 300)
    expected = "1 channels are constant or unread: 20 weights became 15, 75.0 % of the multiply-accumulates are left"
    assert found.text().startswith(expected)
    assert found.lines() == (
        "op: 3 of 4 outputs, 9 of 12 weights are left",
        "op: 2 of 2 outputs, 6 of 8 weights are left",
    )


def test_types_of_what_is_left() -> None:
    m, rng = maker()
    w = weights(rng, 4, 1, 1, 3)
    w[2] = 0
    first = conv(m, m.x, w, [1, 2, 3, 4])
    types: Mapping[str, object] = assert_same(m.model(conv(m, first, weights(rng, 2, 1, 1, 4), [1, 2]))).machine.types
    kind = types[first.name]
    assert (kind.shape, kind.dtype, kind.q) == ((5, 4, 3), DType.I8, first.q)  # type: ignore[attr-defined]


# The whole way, from a file.


def dead_net(quantized: bool) -> onnx.ModelProto:
    """A separable block whose second and fourth channels are dust and unread; its scales in the file, or none."""
    rng = np.random.default_rng(6)
    w0, w1, w2 = rng.normal(0, 0.4, (6, 2, 3, 3)), rng.normal(0, 0.4, (6, 1, 3, 3)), rng.normal(0, 0.4, (3, 6, 1, 1))
    w0[1] *= 1e-30
    w2[:, 3] *= 1e-30
    b0 = np.array([0.1, -0.2, 0.1, 0.2, -0.1, 0.0])
    constants: dict[str, object] = {"w0": w0, "b0": b0, "w1": w1, "w2": w2, "z": np.int8(-20), "s": np.float32(0.03)}

    def marked(value: str) -> list[onnx.NodeProto]:
        q = [
            node("QuantizeLinear", f"{value} s z", f"{value}q"),
            node("DequantizeLinear", f"{value}q s z", f"{value}d"),
        ]
        return q if quantized else [node("Identity", value, f"{value}d")]

    nodes = [
        *marked("x"),
        node("Conv", "xd w0 b0", "a", pads=[1, 1, 1, 1]),
        node("Relu", "a", "ar"),
        *marked("ar"),
        node("Conv", "ard w1", "d", group=6, pads=[1, 1, 1, 1]),
        node("Relu", "d", "dr"),
        *marked("dr"),
        node("Conv", "drd w2", "p"),
        *marked("p"),
        node("Flatten", "pd", "y"),
    ]
    return net(nodes, [1, 2, 5, 6], constants, outputs="y")


@pytest.mark.parametrize("quantized", [False, True])
def test_export_of_a_net_with_dead_channels(quantized: bool, tmp_path: Path) -> None:
    """The C has every bit of the whole net's reference, and says what went."""
    onnx.save(dead_net(quantized), tmp_path / "net.onnx")
    x = np.random.default_rng(7).normal(0, 1, (8, 2, 5, 6)).astype(np.float32)
    np.savez(tmp_path / "c.npz", x=x)
    calib = None if quantized else tmp_path / "c.npz"
    result = mcugen.export(tmp_path / "net.onnx", tmp_path / "out", name="net", calib=calib, dump_ir=tmp_path / "ir")
    (line,) = [text for label, text in result.report.facts if label == "removed"]
    assert line.startswith("4 channels are constant or unread: 180 weights became 120, 66.7 %")
    assert [op.loc.item for op in result.model.ops][:2] == ["Conv n_a", "Conv n_d"]
    assert any(path.name.endswith("_prune.txt") for path in (tmp_path / "ir").iterdir())
    exported.verify(tmp_path / "out", tmp_path / "c.npz", "host")
