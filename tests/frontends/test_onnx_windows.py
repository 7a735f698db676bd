"""Convolutions and pools with any combination of attributes, against onnxruntime and against known values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from onnx_nets import feeds_of, load, net, node, runtime, same_as_runtime, values_of

from mcugen.errors import InputError
from mcugen.frontends.onnx.shapes import same_pads
from mcugen.nn.source import Pool

RNG = np.random.default_rng(11)
Window = tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]


@st.composite
def windows(
    draw: st.DrawFn, pool: bool, dilated: bool = True
) -> tuple[tuple[int, ...], tuple[int, ...], dict[str, object]]:
    """The spatial shape, the kernel, and attributes that fit them."""
    rank = draw(st.sampled_from([1, 2]))
    sizes = tuple(draw(st.integers(1, 9)) for _ in range(rank))
    kernel = tuple(draw(st.integers(1, 4)) for _ in range(rank))
    dilations = tuple(draw(st.integers(1, 3)) if dilated else 1 for _ in range(rank))
    strides = tuple(draw(st.integers(1, 3)) for _ in range(rank))
    attributes: dict[str, Any] = {"strides": strides}
    if dilated:
        attributes["dilations"] = dilations
    auto = draw(st.sampled_from(["NOTSET", "NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"]))
    pads = (0,) * (2 * rank)
    if auto == "NOTSET":
        pads = tuple(draw(st.integers(0, k - 1 if pool else 3)) for k in kernel * 2)
        attributes["pads"] = pads
    else:
        attributes["auto_pad"] = auto
    for axis in range(rank):
        reach = dilations[axis] * (kernel[axis] - 1) + 1
        before, after = pads[axis], pads[axis + rank]
        if auto.startswith("SAME"):
            assume(not pool or strides[axis] <= kernel[axis])  # onnxruntime refuses others, sometimes
            before, after = same_pads(sizes[axis], kernel[axis], strides[axis], dilations[axis], True)
        assume(sizes[axis] + before + after >= reach)
    return sizes, kernel, attributes


@given(windows(pool=False), st.sampled_from([(1, 1), (2, 1), (3, 2)]), st.sampled_from([1, 2, 3]), st.booleans())
@settings(max_examples=150, deadline=None)
def test_conv(shape: Window, channels: tuple[int, int], groups: int, bias: bool) -> None:
    sizes, kernel, attributes = shape
    if attributes.get("auto_pad", "").startswith("SAME"):
        assume(set(attributes["dilations"]) == {1})  # onnxruntime refuses the two together
    per_group, out = channels
    constants = {"k": RNG.normal(0, 1, (out * groups, per_group, *kernel)).astype(np.float32)}
    constants |= {"b": RNG.normal(0, 1, out * groups).astype(np.float32)} if bias else {}
    made = node("Conv", "x k b" if bias else "x k", "y", group=groups, kernel_shape=kernel, **attributes)
    same_as_runtime(net([made], (1, per_group * groups, *sizes), constants))


@given(windows(pool=True), st.booleans())
@settings(max_examples=150, deadline=None)
def test_max_pool(shape: Window, ceil_mode: bool) -> None:
    sizes, kernel, attributes = shape
    if attributes.get("auto_pad", "").startswith("SAME"):
        assume(set(attributes["dilations"]) == {1})
    made = node("MaxPool", "x", "y", kernel_shape=kernel, ceil_mode=int(ceil_mode), **attributes)
    model = net([made], (1, 2, *sizes), opset=12)
    if runtime(model, feeds_of(model))[0].min() < -1e38:  # a window without an element: minus infinity, or nearly
        with pytest.raises(InputError, match="padding only"):
            load(model)
    else:
        same_as_runtime(model)


@given(windows(pool=True, dilated=False), st.booleans(), st.booleans(), st.sampled_from([7, 10, 11, 17]))
@settings(max_examples=150, deadline=None)
def test_average_pool(shape: Window, ceil_mode: bool, counted: bool, opset: int) -> None:
    sizes, kernel, attributes = shape
    if opset >= 10:
        attributes = attributes | {"ceil_mode": int(ceil_mode)}
    made = node("AveragePool", "x", "y", kernel_shape=kernel, count_include_pad=int(counted), **attributes)
    same_as_runtime(net([made], (1, 2, *sizes), opset=opset))


@pytest.mark.parametrize("counted", [0, 1])
def test_average_pool_with_dilation(counted: int) -> None:
    fields = {"kernel_shape": [2, 2], "dilations": [2, 2], "strides": [1, 2], "count_include_pad": counted}
    same_as_runtime(net([node("AveragePool", "x", "y", **fields)], (1, 2, 6, 7), opset=19))


# Known answers (N16 to N18).


def run(made: object, x: np.ndarray, constants: dict[str, np.ndarray] | None = None) -> np.ndarray:
    return values_of(load(net([made], x.shape, constants)), {"x": x})[0]


def test_count_include_pad() -> None:
    x = np.ones((1, 1, 2, 2), np.float32)
    made = node("AveragePool", "x", "y", kernel_shape=[2, 2], pads=[0, 0, 1, 1], count_include_pad=1)
    assert run(made, x).tolist() == [[[1.0, 0.5], [0.5, 0.25]]]
    made = node("AveragePool", "x", "y", kernel_shape=[2, 2], pads=[0, 0, 1, 1])
    assert run(made, x).tolist() == [[[1.0, 1.0], [1.0, 1.0]]]


def test_same_upper_and_lower() -> None:
    x, k = np.float32([[[1, 2, 3, 4]]]), np.float32([[[1, 10, 100]]])
    for mode, expected in (("SAME_UPPER", [321, 43]), ("SAME_LOWER", [210, 432])):
        made = node("Conv", "x k", "y", strides=[2], auto_pad=mode)
        assert run(made, x, {"k": k}).reshape(-1).tolist() == expected


def test_ceil_mode_pads_with_minus_infinity() -> None:
    x = -np.arange(1, 26, dtype=np.float32).reshape(1, 1, 5, 5)
    made = node("MaxPool", "x", "y", kernel_shape=[2, 2], strides=[2, 2], ceil_mode=1)
    assert run(made, x).tolist() == [[[-1, -3, -5], [-11, -13, -15], [-21, -23, -25]]]


def test_ceil_mode_drops_a_window_in_the_padding() -> None:
    loaded = same_as_runtime(
        net([node("MaxPool", "x", "y", kernel_shape=[2], strides=[2], pads=[1, 1], ceil_mode=1)], (1, 1, 4))
    )
    pool = next(op for op in loaded.ops if isinstance(op, Pool))
    assert loaded.types[pool.outputs[0]].shape == (1, 1, 3)


def test_counts_of_elements_are_the_divisors() -> None:
    pool = Pool(
        ("x",), ("y",), load(net([node("Relu", "x", "y")], (1, 1))).ops[0].loc, "avg", (3, 2), (2, 2), (1, 1, 0, 1)
    )
    x = np.random.default_rng(1).normal(size=(1, 2, 6, 5))
    total = Pool(pool.inputs, pool.outputs, pool.loc, "avg", (3, 2), (2, 2), (1, 1, 0, 1), count_include_pad=True)
    found, counts = pool.eval(x)[0], pool.elements((2, 6, 5))
    assert counts.min() == 2
    assert counts.max() == 6
    np.testing.assert_allclose(found * counts, total.eval(x)[0] * total.elements((2, 6, 5)), atol=1e-5)
