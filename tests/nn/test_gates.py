"""Products with one factor a channel or a pixel: near onnxruntime, and no memory for repeated factors."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import onnx
import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "frontends"))

from onnx_nets import load, net, node, runtime

import mcugen
from mcugen import exported
from mcugen.core.passes import evaluate
from mcugen.core.types import Array, Model
from mcugen.exported import open_folder
from mcugen.nn.ops.move import Move
from mcugen.nn.ops.qgate import QGate
from mcugen.nn.passes import simplify
from mcugen.nn.quantize.losses import as_integers, dequantized
from mcugen.nn.quantize.quantize import quantize
from mcugen.nn.quantize.ranges import value_ranges

RNG = np.random.default_rng(3)


def weights(*shape: int) -> Array:
    return RNG.normal(0, 1 / np.sqrt(np.prod(shape[1:])), shape)


def gated(kind: str, swap: bool = False, planes: bool = False) -> onnx.ModelProto:
    """A layer, factors made of it, their product, and a layer that reads it (a depthwise one reads planes)."""
    constants = {
        "w0": weights(6, 3, 3, 3),
        "w1": weights(6, 6, 1, 1),
        "w2": weights(1, 6, 1, 1),
        "w3": weights(4, 6, 1, 1),
    }
    constants |= {"w4": weights(6, 1, 3, 3), "ax": np.array([3], np.int64)}
    nodes = [node("Conv", "x w0", "c", pads=[1, 1, 1, 1]), node("Relu", "c", "r")]
    if kind == "channels":
        nodes += [node("GlobalAveragePool", "r", "m"), node("Conv", "m w1", "d"), node("Sigmoid", "d", "g")]
    elif kind == "pixels":
        nodes += [node("Conv", "r w2", "d"), node("Sigmoid", "d", "g")]
    elif kind == "one":
        nodes += [node("GlobalAveragePool", "r", "m"), node("Conv", "m w2", "d"), node("Sigmoid", "d", "g")]
    else:  # a factor a channel and row: no neighbours in memory where channels are interleaved
        nodes += [node("ReduceMean", "r", "m", axes=[3], keepdims=1), node("Sigmoid", "m", "g")]
    nodes.append(node("Mul", "g r" if swap else "r g", "p"))
    nodes.append(node("Conv", "p w4", "y", group=6) if planes else node("Conv", "p w3", "y"))
    return net(nodes, [1, 3, 9, 7], constants)


def quantized(model: onnx.ModelProto, x: Array) -> Model:
    source = simplify(load(model))
    return quantize(source, value_ranges(source, (x,), "minmax")).machine


@pytest.mark.parametrize("planes", [False, True])
@pytest.mark.parametrize("swap", [False, True])
@pytest.mark.parametrize("kind", ["channels", "pixels", "one", "rows"])
def test_near_onnxruntime(kind: str, swap: bool, planes: bool) -> None:
    model = gated(kind, swap, planes)
    x = np.random.default_rng(1).normal(0, 1, (12, 3, 9, 7)).astype(np.float32)
    machine = quantized(model, x)
    gates = [op for op in machine.ops if isinstance(op, QGate)]
    moves = [op for op in machine.ops if isinstance(op, Move) and op.outputs[0].endswith(("wide_0", "wide_1"))]
    assert bool(gates) != bool(moves)
    assert gates or kind == "rows"
    y = dequantized(evaluate(machine, {"x": as_integers(x, machine.types["x"])})["y"], machine.types["y"])
    expected = np.concatenate([runtime(model, {"x": row[None]})[0] for row in x])
    span = expected.max() - expected.min()
    assert np.abs(y.reshape(expected.shape) - expected).max() < 0.05 * span


def test_squeeze_and_excitation_needs_one_tensor(tmp_path: Path) -> None:
    """The product takes the place of its operand: the arena holds the tensor once, and scratch."""
    onnx.save(gated("channels"), tmp_path / "net.onnx")
    x = np.random.default_rng(1).normal(0, 1, (12, 3, 9, 7)).astype(np.float32)
    np.savez(tmp_path / "c.npz", x=x)
    mcugen.export(
        tmp_path / "net.onnx", tmp_path / "out", name="net", board=None, io="caller", calib=tmp_path / "c.npz"
    )
    exported.verify(tmp_path / "out", tmp_path / "c.npz")
    arena = next(s["size"] for s in open_folder(tmp_path / "out").manifest["symbols"] if s["role"] == "arena")
    scratch = 768  # of a layer's patches
    assert arena < 6 * 9 * 7 + scratch + 6 * 8
