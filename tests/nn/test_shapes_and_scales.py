"""Operands of two shapes, max pools between two scales, and padding between a scale and a convolution, in int8."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import onnx
import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "frontends"))

from onnx_nets import kinds, load, net, node, runtime

import mcugen
from mcugen.core.types import Array
from mcugen.nn.ops import Move, QConv, QGate, QTable
from mcugen.nn.passes import simplify

RNG = np.random.default_rng(6)
ZERO = np.int8(-3)


def pair(x: str, y: str, scale: str) -> list[onnx.NodeProto]:
    """QuantizeLinear and DequantizeLinear."""
    return [node("QuantizeLinear", f"{x} {scale} z", f"{y}_q"), node("DequantizeLinear", f"{y}_q {scale} z", y)]


def answers(model: onnx.ModelProto, folder: Path, x: Array, calib: bool) -> tuple[Array, float, mcugen.ExportResult]:
    """What the C gives, in real numbers; the step of its output; the export."""
    options = {}
    if calib:
        np.savez(folder / "x.npz", x=x)
        options["calib"] = folder / "x.npz"
    np.save(folder / "x.npy", x)
    result = mcugen.export(model, folder / "m", name="m", **options)
    y, _ = mcugen.run(folder / "m", folder / "x.npy", folder / "y.npy")
    q = result.model.types[result.model.outputs[0]].q
    assert q is not None
    return (y.astype(np.float64) - q.zero_point) * q.scale, q.scale, result


def truth(model: onnx.ModelProto, x: Array) -> Array:
    return np.stack([runtime(model, {"x": row[None]})[0][0] for row in x])


@pytest.mark.parametrize(
    ("op", "swap", "keep"), [("Mul", False, "channels"), ("Sub", True, "rows"), ("Add", True, "columns")]
)
def test_two_shapes(op: str, swap: bool, keep: str, tmp_path: Path) -> None:
    """A value and its maxima along some axes, repeated; a factor a channel (squeeze and excite) is not."""
    kernel = {"channels": [6, 5], "rows": [1, 5], "columns": [6, 1]}[keep]
    nodes = [
        node("MaxPool", "x", "m", kernel_shape=kernel),
        node("Sigmoid", "m", "s"),
        node(op, "s x" if swap else "x s", "y"),
    ]
    model = net(nodes, (1, 4, 6, 5))
    x = RNG.normal(0, 1, (12, 4, 6, 5)).astype(np.float32)
    found, step, result = answers(model, tmp_path, x, calib=True)
    assert any(isinstance(o, QGate if op == "Mul" else Move) for o in result.model.ops)
    assert np.abs(found.reshape(12, -1) - truth(model, x).reshape(12, -1)).max() < 4 * max(step, 8 / 255)


def test_both_operands_are_repeated(tmp_path: Path) -> None:
    nodes = [
        node("MaxPool", "x", "a", kernel_shape=[1, 5]),
        node("AveragePool", "x", "b", kernel_shape=[6, 1]),
        node("Add", "a b", "y"),
    ]
    model = net(nodes, (1, 4, 6, 5))
    x = RNG.normal(0, 1, (12, 4, 6, 5)).astype(np.float32)
    found, step, _ = answers(model, tmp_path, x, calib=True)
    assert np.abs(found.reshape(12, -1) - truth(model, x).reshape(12, -1)).max() < 4 * step


def test_max_pool_between_two_scales(tmp_path: Path) -> None:
    nodes = [*pair("x", "a", "s"), node("MaxPool", "a", "m", kernel_shape=[2]), *pair("m", "y", "t")]
    model = net(nodes, (1, 3, 12), {"s": np.float32(0.05), "t": np.float32(0.0313), "z": ZERO})
    x = RNG.normal(0, 3, (12, 3, 12)).astype(np.float32)
    found, _, result = answers(model, tmp_path, x, calib=False)
    assert any(isinstance(o, QTable) for o in result.model.ops)
    np.testing.assert_allclose(found.reshape(12, 3, 11), truth(model, x), rtol=0, atol=1e-5)


@pytest.mark.parametrize("after", ["s", "t"], ids=["same scale", "other scale"])
def test_padding_before_a_quantized_convolution(after: str, tmp_path: Path) -> None:
    nodes = [
        *pair("x", "a", "s"),
        node("Pad", "a p", "b"),
        *pair("b", "c", after),
        node("DequantizeLinear", "k u", "w"),
        node("Conv", "c w", "d"),
        *pair("d", "y", "v"),
    ]
    constants = {
        "s": np.float32(0.05),
        "t": np.float32(0.0571),
        "v": np.float32(0.1931),
        "z": ZERO,
        "u": np.float32(0.01),
    }
    constants |= {"p": np.array([0, 0, 1, 2, 0, 0, 1, 0]), "k": RNG.integers(-127, 128, (5, 3, 3, 3)).astype(np.int8)}
    model = net(nodes, (1, 3, 7, 6), constants)
    simple = simplify(load(model))
    assert "Pad" not in kinds(simple)
    x = RNG.normal(0, 2, (20, 3, 7, 6)).astype(np.float32)
    found, step, result = answers(model, tmp_path, x, calib=False)
    assert any(isinstance(o, QConv) for o in result.model.ops)
    assert not any(isinstance(o, Move) and o.fill is not None for o in result.model.ops)
    gap = np.abs(found.reshape(20, -1) - truth(model, x).reshape(20, -1)) / step
    assert gap.max() < 1.001
    assert (gap > 0.001).mean() < 0.001


def test_slices_that_become_parts_of_a_whole(tmp_path: Path) -> None:
    """x is 50 times as wide as the parts cut from it: they take the scale of the Concat, and its zero point."""
    constants = {"a": np.array([0]), "b": np.array([2]), "c": np.array([3]), "d": np.array([5]), "e": np.array([1])}
    nodes = [node("Slice", "x c d e", "p"), node("Slice", "x a b e", "q"), node("Concat", "p q", "y", axis=1)]
    model = net(nodes, (1, 5, 4, 3), constants)
    x = RNG.uniform(-1, 0.2, (12, 5, 4, 3)).astype(np.float32)
    x[:, 2] = RNG.uniform(-50, 50, (12, 4, 3))
    found, step, _ = answers(model, tmp_path, x, calib=True)
    assert np.abs(found.reshape(12, -1) - truth(model, x).reshape(12, -1)).max() <= 100 / 255
    assert step < 2 / 255


def test_slices_with_scales_of_their_own(tmp_path: Path) -> None:
    """A QDQ file gives two parts of one value two scales."""
    constants = {"a": np.array([0]), "b": np.array([2]), "c": np.array([4]), "e": np.array([1])}
    scales = {"s": np.float32(0.1), "t": np.float32(0.02), "z": ZERO}
    nodes = [*pair("x", "v", "s"), node("Slice", "v a b e", "p"), node("Slice", "v b c e", "q")]
    nodes += [*pair("p", "p2", "s"), *pair("q", "q2", "t"), node("Add", "p2 q2", "w"), *pair("w", "y", "s")]
    model = net(nodes, (1, 4, 3, 3), constants | scales)
    x = RNG.uniform(-2, 2, (12, 4, 3, 3)).astype(np.float32)
    found, step, _ = answers(model, tmp_path, x, calib=False)
    assert np.abs(found - truth(model, x).reshape(found.shape)).max() < 1.01 * step
