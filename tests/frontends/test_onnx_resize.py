"""What makes tensors larger or smaller by moving or weighing elements, against onnxruntime."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from onnx_nets import feeds_of, kinds, load, net, node, runtime, same_as_runtime

from mcugen.core.passes import check_model, evaluate, run_passes
from mcugen.core.types import Array
from mcugen.errors import UnsupportedError
from mcugen.nn.floats import lower_floats
from mcugen.nn.passes import FLOAT_STEPS, INTEGER_STEPS
from mcugen.nn.prune.prune import prune
from mcugen.nn.quantize.losses import as_integers, dequantized
from mcugen.nn.quantize.quantize import quantize
from mcugen.nn.quantize.ranges import value_ranges

RNG = np.random.default_rng(5)


def w(*shape: int) -> Array:
    return RNG.normal(0, 1, shape).astype(np.float32)


def i64(*values: int) -> Array:
    return np.array(values, np.int64)


def machine_forms(model: onnx.ModelProto, error: float) -> None:
    """float32 equals onnxruntime to rounding; int8 within ``error`` of its largest value, with and without pruning."""
    feeds = feeds_of(model)
    (want,) = runtime(model, feeds)
    loaded = load(model)
    floats = lower_floats(run_passes(loaded, FLOAT_STEPS, None))
    check_model(floats, "lower")
    x = feeds["x"].reshape(1, *loaded.types["x"].shape)
    found = evaluate(floats, {"x": x})[floats.outputs[0]]
    np.testing.assert_allclose(found.reshape(want.shape), want, atol=1e-5 * max(1.0, np.abs(want).max()))
    source = run_passes(loaded, INTEGER_STEPS, None)
    machine = quantize(source, value_ranges(source, (x,), "minmax")).machine
    check_model(machine, "quantize")
    smaller = prune(machine).machine
    q = as_integers(x, machine.types["x"])
    whole, rest = (evaluate(m, {"x": q})[m.outputs[0]] for m in (machine, smaller))
    np.testing.assert_array_equal(whole, rest)
    y = dequantized(whole, machine.types[machine.outputs[0]])
    assert np.abs(y.reshape(want.shape) - want).max() <= error * np.abs(want).max()


# Nearest and linear.

MODES = ["half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"]


@pytest.mark.parametrize("shape", [(1, 3, 5, 4), (1, 3, 7), (1, 1, 3, 1)])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("nearest", ["round_prefer_floor", "floor", "ceil", "round_prefer_ceil"])
def test_nearest(shape: tuple[int, ...], mode: str, nearest: str) -> None:
    attributes = {"mode": "nearest", "coordinate_transformation_mode": mode, "nearest_mode": nearest}
    for factor in (2.0, 3.0, 1.5, 0.5):
        scales = np.array([1, 1] + [factor] * (len(shape) - 2), np.float32)
        if min(np.floor(np.array(shape) * scales)) < 1:
            continue
        same_as_runtime(net([node("Resize", "x - s", "y", **attributes)], shape, {"s": scales}, 13))


@pytest.mark.parametrize("shape", [(1, 3, 5, 4), (1, 2, 3, 1)])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("size", [2, 5, 8, 12])
def test_linear(shape: tuple[int, ...], mode: str, size: int) -> None:
    sizes = i64(*shape[:2], size, size)
    made = node("Resize", "x - - s", "y", mode="linear", coordinate_transformation_mode=mode)
    same_as_runtime(net([made], shape, {"s": sizes}, 13))


def test_resize_of_other_opsets() -> None:
    scales = {"s": np.float32([1, 1, 2, 2])}
    for opset, made in ((9, node("Upsample", "x s", "y")), (10, node("Resize", "x s", "y"))):
        loaded = same_as_runtime(net([made], (1, 2, 3, 3), scales, opset))
        assert set(kinds(loaded)) <= {"Repeat", "Reshape"}
    same_as_runtime(net([node("Upsample", "x", "y", scales=[1.0, 1.0, 2.0, 3.0])], (1, 2, 3, 3), opset=7))
    made = node("Resize", "x - s", "y", axes=[2, 3], mode="nearest", nearest_mode="floor")
    same_as_runtime(net([made], (1, 2, 3, 3), {"s": np.float32([2, 2])}, 18))


def test_two_axes_are_one_copy_in_the_layout_of_the_layer() -> None:
    scales = {"s": np.float32([1, 1, 2, 2]), "k": w(6, 2, 3, 3), "m": w(4, 6, 1, 1)}
    resize = node(
        "Resize", "c - s", "d", mode="nearest", coordinate_transformation_mode="asymmetric", nearest_mode="floor"
    )
    nodes = [node("Conv", "x k", "c"), resize, node("Relu", "d", "e"), node("Conv", "e m", "f")]
    model = net([*nodes, node("GlobalAveragePool", "f", "y")], (1, 2, 8, 8), scales)
    source = run_passes(load(model), INTEGER_STEPS, None)
    x = RNG.normal(0, 1, (4, 2, 8, 8)).astype(np.float32)
    machine = quantize(source, value_ranges(source, (x,), "minmax")).machine
    assert kinds(machine) == ["QConv", "Move", "QConv", "QPool"]


@pytest.mark.parametrize(
    ("attributes", "reason"),
    [({"mode": "cubic"}, "mode cubic"), ({"coordinate_transformation_mode": "tf_crop_and_resize"}, "tf_crop")],
)
def test_what_is_refused(attributes: dict[str, Any], reason: str) -> None:
    with pytest.raises(UnsupportedError, match=reason):
        load(net([node("Resize", "x - s", "y", **attributes)], (1, 2, 3, 3), {"s": np.float32([1, 1, 2, 2])}, 13))


# Blocks.


@pytest.mark.parametrize("mode", ["DCR", "CRD"])
@pytest.mark.parametrize("shape", [(1, 8, 3, 5), (1, 4, 2, 2), (1, 18, 1, 3)])
def test_depth_to_space(mode: str, shape: tuple[int, ...]) -> None:
    block = 3 if shape[1] == 18 else 2
    model = net([node("DepthToSpace", "x", "y", blocksize=block, mode=mode)], shape)
    same_as_runtime(model)
    machine_forms(model, 0.01)


def test_space_to_depth() -> None:
    for shape, block in (((1, 3, 4, 6), 2), ((1, 1, 3, 3), 3), ((1, 2, 3, 4), 1)):
        model = net([node("SpaceToDepth", "x", "y", blocksize=block)], shape)
        same_as_runtime(model)
        machine_forms(model, 0.01)


# Transposed convolutions.


def transposed(
    shape: tuple[int, ...], oc: int, kernel: list[int], groups: int = 1, **attributes: Any
) -> onnx.ModelProto:
    constants = {"k": w(shape[1], oc // groups, *kernel), "b": w(oc)}
    return net([node("ConvTranspose", "x k b", "y", group=groups, **attributes)], shape, constants)


@settings(deadline=None, derandomize=True, max_examples=60, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_transposed_convolutions(data: st.DataObject) -> None:
    rank, groups = data.draw(st.integers(1, 2)), data.draw(st.integers(1, 3))

    def each(low: int, high: int) -> list[int]:
        return [data.draw(st.integers(low, high)) for _ in range(rank)]

    kernel, strides, dilations = each(1, 4), each(1, 3), each(1, 2)
    reach = [d * (k - 1) + 1 for k, d in zip(kernel, dilations, strict=True)]
    pads = [data.draw(st.integers(0, r - 1)) for r in (*reach, *reach)]
    extra = [data.draw(st.integers(0, s - 1)) for s in strides]
    size = each(1, 5)
    out = [s * (n - 1) + e + r - a - b for s, n, e, r, a, b in
           zip(strides, size, extra, reach, pads[:rank], pads[rank:], strict=True)]  # fmt: skip
    assume(min(out) >= 1)
    attributes = {"strides": strides, "dilations": dilations, "pads": pads, "output_padding": extra}
    shape = (1, groups * data.draw(st.integers(1, 3)), *size)
    model = transposed(shape, groups * data.draw(st.integers(1, 2)), kernel, groups, kernel_shape=kernel, **attributes)
    with suppress(UnsupportedError):  # pads that cut whole pixels of x
        same_as_runtime(model)
        machine_forms(model, 0.06)


@pytest.mark.parametrize(
    "attributes", [{"auto_pad": "SAME_UPPER"}, {"auto_pad": "SAME_LOWER"}, {"output_shape": [7, 9]}]
)
def test_transposed_convolutions_of_a_given_size(attributes: dict[str, Any]) -> None:
    same_as_runtime(transposed((1, 2, 4, 5), 3, [3, 3], strides=[2, 2], **attributes))


@pytest.mark.parametrize(
    "fields", [{"k": 2, "pads": 0}, {"k": 4, "pads": 1}, {"k": 3, "pads": 1, "output_padding": [1, 1]}]
)
def test_upsampling_has_no_second_copy(fields: dict[str, Any]) -> None:
    """The usual forms: normalization and ReLU fold into the convolution, and one copy spreads its channels."""
    k, p, rest = fields["k"], fields["pads"], {a: v for a, v in fields.items() if a.startswith("o")}
    constants = {"k": w(3, 4, k, k), "s": np.abs(w(4)), "b": w(4), "m": w(4), "v": np.abs(w(4)) + 0.1}
    nodes = [
        node("ConvTranspose", "x k", "c", strides=[2, 2], pads=[p] * 4, **rest),
        node("BatchNormalization", "c s b m v", "n"),
        node("Relu", "n", "r"),
        node("GlobalAveragePool", "r", "y"),
    ]
    model = net(nodes, (1, 3, 4, 4), constants)
    source = run_passes(same_as_runtime(model), INTEGER_STEPS, None)
    x = RNG.normal(0, 1, (4, 3, 4, 4)).astype(np.float32)
    machine = quantize(source, value_ranges(source, (x,), "minmax")).machine
    assert kinds(machine)[-3:] == ["QConv", "Move", "QPool"]
    machine_forms(model, 0.06)


# Elements again, or in another order.


@pytest.mark.parametrize("mode", ["reflect", "edge", "wrap"])
@pytest.mark.parametrize("pads", [(0, 0, 1, 2, 0, 0, 2, 1), (0, 0, 3, 0, 0, 0, 0, 3), (0, 1, 0, 0, 0, 1, 0, 1)])
def test_pads(mode: str, pads: tuple[int, ...]) -> None:
    model = net([node("Pad", "x p", "y", mode=mode)], (1, 2, 4, 5), {"p": i64(*pads)}, 19)
    same_as_runtime(model)
    machine_forms(model, 0.01)


@pytest.mark.parametrize("pads", [(0, 0, 0, 0, 0, 1), (0, 0, 4, 0, 0, 0)])
def test_pads_of_rows(pads: tuple[int, ...]) -> None:
    for mode in ("reflect", "edge"):
        same_as_runtime(net([node("Pad", "x p", "y", mode=mode)], (1, 3, 6), {"p": i64(*pads)}, 17))


@pytest.mark.parametrize("indices", [(4, 0, 2), (0, 0, 1, 1), (3, 3, 3), (1, 2, 4, 5, 0), (5, 4, 3, 0, 1)])
@pytest.mark.parametrize("axis", [1, 2, -1])
def test_gather(indices: tuple[int, ...], axis: int) -> None:
    model = net([node("Gather", "x i", "y", axis=axis)], (1, 6, 6, 7), {"i": i64(*indices)})
    same_as_runtime(model)
    machine_forms(model, 0.01)


def test_gather_of_noise_is_refused() -> None:
    order = i64(*np.random.default_rng(0).permutation(300).tolist())
    with pytest.raises(UnsupportedError, match="runs -> order the weights"):
        load(net([node("Gather", "x i", "y", axis=1)], (1, 300), {"i": order}))


@pytest.mark.parametrize("repeats", [(1, 1, 3, 2), (1, 2, 1, 1), (1, 3, 2, 2)])
@pytest.mark.parametrize("shape", [(1, 2, 3, 4), (1, 4, 1, 1)])
def test_tile_and_expand(repeats: tuple[int, ...], shape: tuple[int, ...]) -> None:
    model = net([node("Tile", "x r", "y")], shape, {"r": i64(*repeats)})
    same_as_runtime(model)
    machine_forms(model, 0.01)
    if shape[2] == 1:
        wide = i64(1, 1, *repeats[2:])
        same_as_runtime(net([node("Expand", "x r", "y")], shape, {"r": wide}))
        same_as_runtime(net([node("Expand", "x r", "y")], (4, 1), {"r": i64(1, 4, 5)}))
