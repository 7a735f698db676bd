"""Layouts by cost: where copies are saved, and that none is made in nets that need none."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "frontends"))

from machine_nets import Maker
from onnx_nets import load, net, node

from mcugen.core.passes import check_model, evaluate
from mcugen.core.types import Model
from mcugen.nn.ops.move import Move
from mcugen.nn.ops.qconv import QConv
from mcugen.nn.passes import simplify
from mcugen.nn.quantize.losses import as_integers, dequantized
from mcugen.nn.quantize.quantize import quantize
from mcugen.nn.quantize.ranges import value_ranges

C, SIZE = 4, 8


def machine(
    nodes: list[onnx.NodeProto], constants: dict[str, np.ndarray], shape: tuple[int, ...] = (C, SIZE, SIZE)
) -> Model:
    """The integer net, close to the float net on random inputs whatever its layouts are."""
    source = simplify(load(net(nodes, [1, *shape], constants)))
    x = np.random.default_rng(1).normal(0, 1, (6, *shape)).astype(np.float32)
    found = quantize(source, value_ranges(source, (x,), "minmax")).machine
    check_model(found, "test")
    q = as_integers(x, found.types["x"])
    y = dequantized(evaluate(found, {"x": q})[found.outputs[0]], found.types[found.outputs[0]])
    real = evaluate(source, {"x": x})[source.outputs[0]]
    assert np.abs(y.reshape(real.shape) - real).mean() < 0.03 * (real.max() - real.min())
    return found


def weights(*shapes: tuple[int, ...]) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    return {f"w{i}": rng.normal(0, 1 / np.sqrt(np.prod(s[1:])), s) for i, s in enumerate(shapes)}


POINT, DEEP = (C, C, 1, 1), (C, 1, 3, 3)
HEAD = [node("GlobalAveragePool", "end", "g"), node("Flatten", "g", "y")]


def deep(x: str, w: str, y: str) -> onnx.NodeProto:
    return node("Conv", f"{x} {w}", y, group=C, pads=[1, 1, 1, 1])


def moves(model: Model) -> int:
    """Copies but for one of the net's own input, whose layout is that of the file."""
    return sum(isinstance(op, Move) and op.inputs != model.inputs for op in model.ops)


@pytest.mark.parametrize("act", ["Sigmoid", "HardSwish", "LeakyRelu", "Relu"])
def test_an_activation_in_between_costs_no_copy(act: str) -> None:
    """Pointwise, activation, depthwise, activation, pointwise: planes and back without a copy."""
    nodes = [node("Conv", "x w0", "a"), node(act, "a", "b"), deep("b", "w1", "c"), node(act, "c", "d")]
    nodes += [node("Conv", "d w2", "end"), *HEAD]
    assert moves(machine(nodes, weights(POINT, DEEP, POINT))) == 0


def test_both_sides_of_a_sum_lie_alike() -> None:
    """One operand is wanted in planes by a depthwise layer, so the other one is written in planes, too."""
    nodes = [node("Conv", "x w0", "a"), deep("a", "w1", "b"), node("Conv", "b w2", "c"), node("Add", "a c", "end")]
    assert moves(machine([*nodes, *HEAD], weights(POINT, DEEP, POINT))) == 0


def test_one_copy_where_readers_disagree() -> None:
    nodes = [node("Conv", "x w0", "a"), deep("a", "w1", "b"), node("Conv", "a w2", "c"), deep("a", "w3", "d")]
    nodes += [node("Conv", "b w4", "e"), node("Conv", "d w5", "f"), node("Add", "c e", "s"), node("Add", "s f", "end")]
    assert moves(machine([*nodes, *HEAD], weights(POINT, DEEP, POINT, DEEP, POINT, POINT))) == 1


def test_the_smaller_copy_behind_a_pool() -> None:
    """A pool is faster on interleaved channels by more than a copy of its small result costs."""
    pool = node("MaxPool", "a", "b", kernel_shape=[2, 2], strides=[2, 2])
    nodes = [node("Conv", "x w0", "a"), pool, deep("b", "w1", "end"), *HEAD]
    found = machine(nodes, weights(POINT, DEEP))
    (copy,) = [op for op in found.ops if isinstance(op, Move) and op.inputs != found.inputs]
    assert copy.in_count == C * SIZE * SIZE // 4


def test_an_image_as_output_is_written_in_planes() -> None:
    nodes = [node("Conv", "x w0", "a"), node("Relu", "a", "b"), node("Conv", "b w1", "c"), node("Tanh", "c", "y")]
    assert moves(machine(nodes, weights(POINT, POINT))) == 0


@pytest.mark.parametrize("op", ["Add", "Sub", "Mul"])
@pytest.mark.parametrize("shape", [(1, 2, 1), (1, 1, 3), (3, 1, 1), (1, 3, 2)])
def test_operands_whose_axes_of_length_one_stand_apart(op: str, shape: tuple[int, int, int]) -> None:
    """Planes and interleaved channels are one memory here, whatever shape each value has."""
    nodes = [node("Conv", "x w0", "a"), node(op, "a x", "b"), node("Flatten", "b", "y")]
    assert moves(machine(nodes, weights((shape[0], shape[0], 1, 1)), shape)) == 0


@pytest.mark.parametrize(
    ("shape", "kernel", "planar"),
    [
        ((3, 32, 32), (3, 3), True),  # threes of bytes side by side: no hole in a patch
        ((1, 1, 64), (1, 3), True),  # one channel lies in both ways
        ((9, 40, 40), (5, 5), True),  # an input that is too large to lie twice
        ((9, 1, 64), (1, 1), False),  # runs of one byte, each padded to four
        ((40, 1, 50), (1, 3), False),
        ((6, 1, 100), (1, 5), False),
    ],
)
def test_the_input_is_copied_where_planes_cost_more(
    shape: tuple[int, int, int], kernel: tuple[int, int], planar: bool
) -> None:
    """Narrow kernels over many channels read interleaved ones; not where memory is what counts."""
    rng = np.random.default_rng(1)
    model = net([node("Conv", "x w", "y")], [1, *shape], {"w": rng.normal(0, 1, (8, shape[0], *kernel))})
    source = simplify(load(model))
    x = rng.normal(0, 1, (4, *shape)).astype(np.float32)
    ranges = value_ranges(source, (x,), "minmax")
    found = quantize(source, ranges).machine
    small = quantize(source, ranges, interleaved=True).machine
    first, frugal = (next(op for op in m.ops if isinstance(op, QConv)) for m in (found, small))
    assert first.in_planar == planar
    assert frugal.in_planar
    rows = as_integers(x, found.types["x"])
    y, same = (evaluate(m, {"x": rows})[m.outputs[0]] for m in (found, small))
    np.testing.assert_array_equal(y, same)


def test_the_distance_of_columns_that_a_kernel_has_not() -> None:
    """Dilation along an axis where the kernel is one wide means nothing, and costs nothing."""
    m = Maker(np.random.default_rng(1), (3, 9, 9), True)
    m.conv(m.x, 4, (3, 1))
    op = m.ops[-1]
    assert isinstance(op, QConv)
    apart = replace(op, dilation=(op.dilation[0], 3))
    np.testing.assert_array_equal(apart.descriptor()["col_step"], 1)
