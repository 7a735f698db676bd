"""Each layer of QDQ files against onnxruntime on its own inputs: nets that onnxruntime's quantizer made on the spot."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
sys.path.insert(0, str(Path(__file__).parents[1] / "frontends"))

import qdq_layers
from onnx_nets import net, node
from onnxruntime import quantization

from mcugen.core.types import Array

SHARE = 1e-4


def weights(rng: np.random.Generator, *shape: int) -> Array:
    return rng.normal(0, 1 / np.sqrt(np.prod(shape[1:])), shape)


def separable() -> onnx.ModelProto:
    """Strides, depthwise, pointwise, a sum of branches, an average, a dense layer, softmax."""
    rng = np.random.default_rng(0)
    nodes = [
        node("Conv", "x w0 b0", "a", strides=[2, 2], pads=[1, 1, 1, 1]),
        node("Relu", "a", "ar"),
        node("Conv", "ar w1 b1", "d", group=8, pads=[1, 1, 1, 1]),
        node("Relu", "d", "dr"),
        node("Conv", "dr w2 b2", "p"),
        node("Add", "p ar", "s"),
        node("Relu", "s", "sr"),
        node("AveragePool", "sr", "v", kernel_shape=[2, 2], strides=[2, 2]),
        node("GlobalAveragePool", "v", "g"),
        node("Flatten", "g", "f"),
        node("Gemm", "f w3 b3", "z", transB=1),
        node("Softmax", "z", "y"),
    ]
    constants = {"w0": weights(rng, 8, 3, 3, 3), "w1": weights(rng, 8, 1, 3, 3), "w2": weights(rng, 8, 8, 1, 1)}
    constants |= {"w3": 4 * weights(rng, 5, 8), "b3": rng.normal(0, 0.1, 5)}
    constants |= {f"b{i}": rng.normal(0, 0.1, 8) for i in range(3)}
    return net(nodes, [1, 3, 17, 15], constants)


def branches() -> onnx.ModelProto:
    """Dilation, groups, two branches side by side, a maximum, tables, a product."""
    rng = np.random.default_rng(1)
    nodes = [
        node("Conv", "x w0", "a", dilations=[2, 1], pads=[2, 1, 2, 1]),
        node("Conv", "a w1 b1", "u", group=2, pads=[1, 0, 0, 1]),
        node("Conv", "a w2", "t", pads=[0, 0, 0, 0], auto_pad="NOTSET"),
        node("Tanh", "u", "ut"),
        node("MaxPool", "t", "m", kernel_shape=[2, 2], strides=[2, 2]),
        node("MaxPool", "ut", "um", kernel_shape=[2, 2], strides=[2, 2]),
        node("Concat", "m um", "c", axis=1),
        node("Sigmoid", "c", "cs"),
        node("Mul", "c cs", "p"),
        node("Flatten", "p", "f"),
        node("Gemm", "f w3 b3", "y", transB=1),
    ]
    constants = {"w0": weights(rng, 6, 2, 3, 3), "w1": weights(rng, 4, 3, 2, 2), "b1": rng.normal(0, 0.1, 4)}
    constants |= {"w2": weights(rng, 3, 6, 1, 1), "w3": weights(rng, 4, 7 * 5 * 4), "b3": rng.normal(0, 0.1, 4)}
    return net(nodes, [1, 2, 10, 9], constants)


def signal() -> onnx.ModelProto:
    """One dimension; leaky ReLU, a sum, a mean over time."""
    rng = np.random.default_rng(2)
    nodes = [
        node("Conv", "x w0 b0", "a", pads=[3, 3], strides=[2]),
        node("LeakyRelu", "a", "l", alpha=0.1),
        node("Conv", "l w1", "u", pads=[1, 1]),
        node("Add", "u l", "s"),
        node("AveragePool", "s", "v", kernel_shape=[3], strides=[2], pads=[1, 1], count_include_pad=1),
        node("GlobalAveragePool", "v", "g"),
        node("Flatten", "g", "f"),
        node("Gemm", "f w3", "y", transB=1),
    ]
    constants = {"w0": weights(rng, 6, 3, 7), "b0": rng.normal(0, 0.1, 6), "w1": weights(rng, 6, 6, 3)}
    return net(nodes, [1, 3, 64], {**constants, "w3": weights(rng, 4, 6)})


def normalized() -> onnx.ModelProto:
    """Instance and layer normalization, and the logarithm of softmax at the end."""
    rng = np.random.default_rng(3)
    nodes = [
        node("Conv", "x w0", "a", strides=[2, 2]),
        node("InstanceNormalization", "a s0 b0", "an"),
        node("Relu", "an", "ar"),
        node("Conv", "ar w1", "c"),
        node("Relu", "c", "cr"),
        node("Conv", "cr w4", "e"),
        node("Flatten", "e", "f"),
        node("Gemm", "f w2 b2", "h", transB=1),
        node("LayerNormalization", "h s1 b1", "hn"),
        node("Relu", "hn", "hr"),
        node("Gemm", "hr w3 b3", "z", transB=1),
        node("LogSoftmax", "z", "y"),
    ]
    constants = {"w0": weights(rng, 6, 2, 3, 3), "w1": weights(rng, 4, 6, 1, 1), "w2": weights(rng, 20, 3 * 49)}
    constants |= {
        "w4": weights(rng, 3, 4, 1, 1),
        "w3": weights(rng, 5, 20),
        "b2": rng.normal(0, 0.1, 20),
        "b3": rng.normal(0, 0.1, 5),
    }
    constants |= {"s0": rng.normal(1, 0.2, 6), "b0": rng.normal(0, 0.2, 6), "s1": rng.normal(1, 0.2, 20)}
    return net(nodes, [1, 2, 15, 15], {**constants, "b1": rng.normal(0, 0.2, 20)}, 17)


class Reader(quantization.CalibrationDataReader):  # type: ignore[misc]
    """Rows for the quantizer."""

    def __init__(self, rows: Array) -> None:
        self.rows: Iterator[Array] = iter(rows)

    def get_next(self) -> dict[str, Array] | None:
        row = next(self.rows, None)
        return None if row is None else {"x": row[None]}


def quantized(model: onnx.ModelProto, folder: Path, activations: str, per_channel: bool) -> tuple[Path, Array]:
    """The QDQ file of onnxruntime's quantizer, and inputs."""
    shape = [d.dim_value for d in model.graph.input[0].type.tensor_type.shape.dim][1:]
    x = np.random.default_rng(9).normal(0, 1, (24, *shape)).astype(np.float32)
    onnx.save(onnx.shape_inference.infer_shapes(model), folder / "float.onnx")
    logging.disable(logging.WARNING)
    try:
        quantization.quantize_static(
            str(folder / "float.onnx"),
            str(folder / "net_qdq.onnx"),
            Reader(x[:12]),
            quant_format=quantization.QuantFormat.QDQ,
            activation_type=quantization.QuantType[activations],
            weight_type=quantization.QuantType.QInt8,
            per_channel=per_channel,
        )
    finally:
        logging.disable(logging.NOTSET)
    return folder / "net_qdq.onnx", x


@pytest.mark.parametrize("make", [separable, branches, signal, normalized])
@pytest.mark.parametrize(("activations", "per_channel"), [("QInt8", True), ("QUInt8", False)])
def test_layers_are_within_a_unit(make: object, activations: str, per_channel: bool, tmp_path: Path) -> None:
    path, x = quantized(make(), tmp_path, activations, per_channel)  # type: ignore[operator]
    layers = qdq_layers.compare(path, x)
    assert len(layers) >= 7
    assert sum(v.values for v in layers) > 10_000
    for v in layers:
        assert v.largest <= 1, v
        assert v.differ - v.ties <= max(1, SHARE * v.values), v


def test_ties_are_told_apart(tmp_path: Path) -> None:
    """Halves: the sum of two even and odd steps at twice the scale. The C rounds up, onnxruntime to even."""
    pair = [node("QuantizeLinear", "x s z", "q"), node("DequantizeLinear", "q s z", "a")]
    after = [node("QuantizeLinear", "c t z", "r"), node("DequantizeLinear", "r t z", "y")]
    nodes = [*pair, node("Conv", "a w", "c"), *after]
    constants = {"s": np.float32(0.5), "t": np.float32(1.0), "z": np.int8(0), "w": np.ones((1, 1, 1, 1))}
    constants |= {"wq": np.ones((1, 1, 1, 1), np.int8), "ws": np.float32(1.0), "wz": np.int8(0)}
    nodes.insert(2, node("DequantizeLinear", "wq ws wz", "wd"))
    nodes[3] = node("Conv", "a wd", "c")
    onnx.save(net(nodes, [1, 1, 1, 9], constants), tmp_path / "net.onnx")
    x = np.arange(-4, 5, dtype=np.float32).reshape(1, 1, 1, 9) / 2
    (layer,) = qdq_layers.compare(tmp_path / "net.onnx", x)
    # -1.5 and 0.5 and so on: up is -1 and 1, even is -2 and 0; 1.5 and -0.5 agree.
    assert (layer.values, layer.differ, layer.ties, layer.largest) == (9, 2, 2, 1)
    assert layer.fine


@pytest.mark.parametrize("scale", [0.043, 0.071, 0.011])
def test_a_maximum_that_changes_its_scale(scale: float, tmp_path: Path) -> None:
    """Some quantizers give the result a range of its own: a table behind the kernel, the same integers."""
    nodes = [
        node("QuantizeLinear", "x s z", "q"),
        node("DequantizeLinear", "q s z", "a"),
        node("MaxPool", "a", "m", kernel_shape=[2, 2]),
        node("QuantizeLinear", "m t v", "r"),
        node("DequantizeLinear", "r t v", "y"),
    ]
    constants = {"s": np.float32(0.05), "z": np.int8(-20), "t": np.float32(scale), "v": np.int8(7)}
    onnx.save(net(nodes, [1, 3, 8, 9], constants), tmp_path / "net.onnx")
    layers = qdq_layers.compare(
        tmp_path / "net.onnx", np.random.default_rng(0).normal(0, 3, (4, 3, 8, 9)).astype(np.float32)
    )
    assert sum(v.values for v in layers) == 4 * 3 * 7 * 8
    assert all(v.differ == v.ties == 0 for v in layers)


def test_saved_figures_keep_the_limits() -> None:
    saved = json.loads((qdq_layers.RESULTS / "qdq_layers.json").read_text(encoding="utf-8"))
    layers = [qdq_layers.Layer(**layer) for net in saved for layer in net["layers"]]
    assert sum(v.values for v in layers) > 5_000_000
    assert all(v.fine for v in layers)
