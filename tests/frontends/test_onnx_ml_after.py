"""What stands behind a tree ensemble: constants that go into its leaves, as XGBoost and LightGBM write them."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper
from onnx_trees import Split, classifier, load, regressor, runtime

from mcugen.core.passes import evaluate
from mcugen.errors import UnsupportedError

F32 = np.float32
X = np.random.default_rng(3).normal(size=(200, 2)).astype(F32)
TREES = [
    Split("BRANCH_LT", 0, 0.2, -0.75, Split("BRANCH_LEQ", 1, -0.1, 0.5, 1.25)),
    Split("BRANCH_LT", 1, 0.4, 0.1, 0.7),
]


def behind(model: onnx.ModelProto, steps: list[tuple[str, Any]]) -> onnx.ModelProto:
    """The model with more nodes behind y. A step is an op and its constant, or None; ``rmul``, ``radd``: in front."""
    last = "y"
    for k, (op, value) in enumerate(steps):
        operands = [last]
        if value is not None:
            model.graph.initializer.append(numpy_helper.from_array(np.array(value, F32), f"c{k}"))
            operands = [f"c{k}", last] if op.startswith("r") else [last, f"c{k}"]
        model.graph.node.append(helper.make_node(op.removeprefix("r").capitalize(), operands, [f"s{k}"], f"s{k}"))
        last = f"s{k}"
    del model.graph.output[-1]
    model.graph.output.append(helper.make_empty_tensor_value_info(last))
    return model


@pytest.mark.parametrize(
    "steps",
    [
        [("mul", [1.0])],
        [("exp", None), ("mul", [1.2318254])],  # XGBoost: count:poisson, reg:gamma, reg:tweedie
        [("exp", None), ("rmul", 0.001), ("div", [4.0])],
        [("mul", [-0.3])],
        [("add", [100.0]), ("mul", [0.5]), ("sub", [7.0])],
        [("radd", 2.0), ("rmul", -3.0)],
        [("div", [2.0])],
        [("div", [2.0]), ("add", [1.0]), ("mul", [3.0])],
        [("add", [0.5]), ("div", [3.0]), ("exp", None), ("mul", [2.0])],
        [("div", [0.7])],
        [("add", [1.0]), ("sigmoid", None)],
    ],
    ids=str,
)
def test_constants_are_absorbed(steps: list[tuple[str, Any]]) -> None:
    model = behind(regressor(TREES, 2), steps)
    loaded = load(model)
    found = evaluate(loaded, {"x": X.astype(np.float64)})[loaded.outputs[-1]]
    np.testing.assert_allclose(found, runtime(model, X)[-1], rtol=2e-6, atol=1e-6)


@pytest.mark.parametrize("bias", [[0.5, -1.0, 2.0], [4.0]])
def test_a_term_for_each_score(bias: list[float]) -> None:
    trees = [Split("BRANCH_LT", 0, 0.2, {0: 1.0, 2: -1.0}, {1: 3.0})]
    model = behind(regressor(trees, 2, 3), [("add", bias)])
    loaded = load(model)
    found = evaluate(loaded, {"x": X.astype(np.float64)})[loaded.outputs[-1]]
    np.testing.assert_allclose(found, runtime(model, X)[-1], rtol=1e-6)


def test_probabilities_times_one() -> None:
    """onnxmltools writes that where LightGBM's classifiers are converted without a ZipMap."""
    trees = [Split("BRANCH_LT", 0, 0.2, {1: -0.75}, {1: 1.25})]
    model = behind(classifier(trees, 2, [0, 1], post_transform="LOGISTIC"), [("mul", [1.0])])
    loaded = load(model)
    assert loaded.labels == ("0", "1")
    found = evaluate(loaded, {"x": X.astype(np.float64)})[loaded.outputs[-1]]
    np.testing.assert_allclose(found[:, 0], runtime(model, X)[-1][:, 1], rtol=1e-6)


@pytest.mark.parametrize(
    ("steps", "reason"),
    [
        ([("mul", [0.0])], "no leaf can absorb"),
        ([("mul", [float("nan")])], "no leaf can absorb"),
        ([("div", [0.0])], "no leaf can absorb"),
        ([("exp", None), ("mul", [-1.0])], "transformed before"),
        ([("sigmoid", None), ("mul", [2.0])], "transformed before"),
        ([("exp", None), ("add", [2.0])], "transformed before"),
        ([("mul", [1.0, 2.0])], "a constant for each score"),
        ([("rsub", [1.0])], "a constant for each score"),
    ],
    ids=str,
)
def test_refused(steps: list[tuple[str, Any]], reason: str) -> None:
    with pytest.raises(UnsupportedError, match=reason):
        load(behind(regressor(TREES, 2), steps))
