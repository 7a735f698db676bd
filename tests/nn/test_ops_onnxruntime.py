"""The int8 ops against onnxruntime: one float op between DequantizeLinear and QuantizeLinear, optimizations off.

onnxruntime computes in float32 and rounds half to even, the integer ops round half up: a value may differ by one unit,
and only where the exact one is as near to a tie as float32 can tell.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np
import pytest
from plain_rig import LOC, every_pair, ints
from scipy.special import log_softmax

from mcugen.core.types import QParams
from mcugen.nn.ops.pool_window import Windows
from mcugen.nn.ops.qadd import QAdd, add_of
from mcugen.nn.ops.qlogsoftmax import QLogSoftmax, log_softmax_of
from mcugen.nn.ops.qmul import QMul
from mcugen.nn.ops.qpool import pool_of
from mcugen.nn.ops.qsoftmax import SOFTMAX_PARAMS, QSoftmax, softmax_table
from mcugen.nn.ops.qtable import QTable, table_of
from mcugen.nn.requant import requant_of
from mcugen.nn.source import Pool

onnx = pytest.importorskip("onnx")
ort = pytest.importorskip("onnxruntime")

X, Y = ("x",), ("y",)
Q_A, Q_B, Q_Y = QParams(0.052, 3), QParams(0.099, -14), QParams(0.049, 5)


def run(kind: str, inputs: Sequence[tuple[np.ndarray, QParams]], q_out: QParams, **attributes: Any) -> np.ndarray:
    """The int8 result of one op on int8 inputs."""
    make, types = onnx.helper, onnx.TensorProto
    constants, nodes, values, names = [], [], [], []
    for i, (x, q) in enumerate((*inputs, (inputs[0][0], q_out))):
        constants.append(make.make_tensor(f"s{i}", types.FLOAT, [], [q.scale]))
        constants.append(make.make_tensor(f"z{i}", types.INT8, [], [q.zero_point]))
        if i < len(inputs):
            values.append(make.make_tensor_value_info(f"x{i}", types.INT8, x.shape))
            nodes.append(make.make_node("DequantizeLinear", [f"x{i}", f"s{i}", f"z{i}"], [f"f{i}"]))
            names.append(f"f{i}")
    n = len(inputs)
    nodes.append(make.make_node(kind, names, ["f"], **attributes))
    nodes.append(make.make_node("QuantizeLinear", ["f", f"s{n}", f"z{n}"], ["y"]))
    graph = make.make_graph(nodes, "one", values, [make.make_tensor_value_info("y", types.INT8, None)], constants)
    model = make.make_model(graph, opset_imports=[make.make_opsetid("", 17)], ir_version=8)
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return np.asarray(session.run(None, {f"x{i}": x for i, (x, _) in enumerate(inputs)})[0])


def assert_same_but_ties(found: np.ndarray, theirs: np.ndarray, exact: np.ndarray) -> None:
    """Equal, or a unit apart where ``exact`` (in units of the result) is at a tie."""
    differs = found.reshape(-1) != theirs.reshape(-1)
    away = np.abs(np.asarray(exact, np.float64).reshape(-1)[differs] % 1.0 - 0.5)
    assert np.abs(found.reshape(-1).astype(int) - theirs.reshape(-1)).max() <= 1
    assert (away < 1e-4).all()


def real(x: np.ndarray, q: QParams) -> np.ndarray:
    return (x.astype(np.float64) - q.zero_point) * np.float64(np.float32(q.scale))


@pytest.mark.parametrize("kind", ["Add", "Sub", "Mul"])
@pytest.mark.parametrize("q_y", [Q_Y, QParams(0.3, -100), QParams(0.5, 0)])
def test_binary(kind: str, q_y: QParams) -> None:
    a, b = every_pair()
    theirs = run(kind, [(a, Q_A), (b, Q_B)], q_y)
    ra, rb = real(a, Q_A), real(b, Q_B)
    if kind == "Mul":
        op = QMul(("a", "b"), Y, LOC, a.size, Q_A.zero_point, Q_B.zero_point,
                  requant_of([Q_A.scale * Q_B.scale / q_y.scale], q_y.zero_point))  # fmt: skip
        found, exact = op.eval(a[None], b[None])[0][0], ra * rb
    else:
        sign = 1 if kind == "Add" else -1
        swap, table, requant = add_of(Q_A, Q_B, q_y, sign=sign)
        assert swap
        add = QAdd(("b", "a"), Y, LOC, a.size, table, Q_B.zero_point, requant, negate=sign < 0)
        found, exact = add.eval(b[None], a[None])[0][0], ra + sign * rb
    assert_same_but_ties(found, theirs, exact / q_y.scale)


@pytest.mark.parametrize(
    ("kind", "function"),
    [
        ("Sigmoid", lambda x: 1 / (1 + np.exp(-x))),
        ("Tanh", np.tanh),
        ("HardSwish", lambda x: x * np.clip(x / 6 + 0.5, 0, 1)),
        ("Relu", lambda x: np.maximum(x, 0)),
    ],
)
def test_table(kind: str, function: Any) -> None:
    x = np.arange(-128, 128, dtype=np.int8)
    q_y = QParams(1 / 128, -3)
    found = QTable(X, Y, LOC, 256, table_of(function, Q_A, q_y)).eval(x[None])[0][0]
    assert_same_but_ties(found, run(kind, [(x, Q_A)], q_y), function(real(x, Q_A)) / q_y.scale)


POOLS = [
    {"kernel": (2, 2), "stride": (2, 2)},
    {"kernel": (3, 2), "stride": (2, 1), "pads": (1, 1, 1, 0)},
    {"kernel": (3, 3), "stride": (2, 2), "pads": (1, 1, 1, 1), "count_include_pad": True},
    {"kernel": (2, 2), "stride": (2, 2), "ceil_mode": True},
    {"kernel": (7, 9)},
]


@pytest.mark.parametrize("kind", ["max", "avg"])
@pytest.mark.parametrize("fields", POOLS)
def test_pool(kind: str, fields: dict[str, Any]) -> None:
    source = Pool(X, Y, LOC, kind, **fields)
    shape = (5, 7, 9)
    ((_, oh, ow),) = source.result_shapes(shape)
    q_y = Q_A if kind == "max" else Q_Y
    window = (source.kernel, source.stride, source.pads, source.dilation, source.count_include_pad)
    op = pool_of((X, Y, LOC), kind, Windows(shape, (5, oh, ow), *window), True, Q_A, q_y)
    x = ints(3, prod(shape)).reshape(1, *shape)
    attributes = {"kernel_shape": source.kernel, "strides": source.stride, "pads": source.pads}
    attributes["ceil_mode"] = int(source.ceil_mode)
    if kind == "avg":
        attributes["count_include_pad"] = int(source.count_include_pad)
    theirs = run("MaxPool" if kind == "max" else "AveragePool", [(x, Q_A)], q_y, **attributes)
    exact = real(op.eval(x)[0], Q_A) if kind == "max" else op.sums(x.astype(float) - 3) * Q_A.scale / op.elements()
    assert_same_but_ties(op.eval(x)[0], theirs, exact / q_y.scale)


@pytest.mark.parametrize("scale", [0.01, 0.1, 0.5])
def test_log_softmax(scale: float) -> None:
    q_x, q_y = QParams(scale, 7), QParams(float(np.float32(1.1 * scale)), 120)
    x = ints(8, 240).reshape(24, 10)
    theirs = run("LogSoftmax", [(x, q_x)], q_y)
    found = QLogSoftmax(X, Y, LOC, 24, 10, softmax_table(q_x), *log_softmax_of(q_x, q_y)).eval(x[None])[0][0]
    assert_same_but_ties(found, theirs, log_softmax(real(x, q_x), axis=1) / q_y.scale)


@pytest.mark.parametrize("scale", [0.01, 0.1, 0.5])
def test_softmax(scale: float) -> None:
    q_x = QParams(scale, 7)
    x = ints(8, 240).reshape(24, 10)
    theirs = run("Softmax", [(x, q_x)], SOFTMAX_PARAMS)
    found = QSoftmax(X, Y, LOC, 24, 10, softmax_table(q_x)).eval(x[None])[0][0]
    e = np.exp(real(x, q_x))
    assert_same_but_ties(found, theirs, 256 * e / e.sum(axis=1, keepdims=True))
