"""Columns in front of tree ensembles: scalers, imputers and arithmetic fold into thresholds, and no decision moves."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx_trees as ot
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper
from onnx_trees import MODES, Split, graph, load, regressor, runtime, scores

import mcugen
from mcugen.core.passes import evaluate
from mcugen.core.types import Array
from mcugen.errors import UnsupportedError
from mcugen.frontends.onnx.ml_columns import Column, Kind, Step, cuts

F32 = np.float32


def chain(steps: Sequence[tuple[str, Any]], trees: Sequence[Any], features: int = 1) -> onnx.ModelProto:
    """x, then the steps, then the trees. A step is an op and its constant, ``rsub`` for constant minus x."""
    nodes, tensors, last = [], [], "x"
    for k, (kind, value) in enumerate(steps):
        out = f"v{k}"
        if kind == "scaler":
            offset, scale = value
            made = helper.make_node("Scaler", [last], [out], out, domain=ot.ML, offset=[offset], scale=[scale])
        elif kind == "imputer":
            made = helper.make_node(
                "Imputer", [last], [out], out, domain=ot.ML, imputed_value_floats=[value], replaced_value_float=np.nan
            )
        else:
            tensors.append(numpy_helper.from_array(np.array([value], F32), f"c{k}"))
            operands = [f"c{k}", last] if kind == "rsub" else [last, f"c{k}"]
            made = helper.make_node("Sub" if kind == "rsub" else kind.capitalize(), operands, [out], out)
        nodes.append(made)
        last = out
    tree = regressor(trees, features).graph.node[0]
    tree.input[0] = last
    model = graph([*nodes, tree], features)
    model.graph.initializer.extend(tensors)
    return model


def numbers(low: float, high: float) -> st.SearchStrategy[float]:
    return st.floats(low, high, width=32)


FACTOR = numbers(2**-10, 1000.0) | numbers(-1000.0, -(2**-10))
STEPS = st.lists(
    st.tuples(st.sampled_from(["add", "sub", "rsub"]), numbers(-1000, 1000))
    | st.tuples(st.sampled_from(["mul", "div"]), FACTOR)
    | st.tuples(st.just("imputer"), numbers(-10, 10))
    | st.tuples(st.just("scaler"), st.tuples(numbers(-1000, 1000), FACTOR)),
    min_size=1,
    max_size=4,
)


def preimages(steps: Sequence[tuple[str, Any]], t: float) -> Array:
    """float32 numbers around the x that the steps take to t, solved in double."""
    x = float(t)
    for kind, v in reversed(steps):
        match kind:
            case "add":
                x -= v
            case "sub":
                x += v
            case "rsub":
                x = v - x
            case "mul":
                x /= v
            case "div":
                x *= v
            case "scaler":
                x = x / v[1] + v[0]
    near = [F32(x)]
    for end in (-np.inf, np.inf):
        at = F32(x)
        for _ in range(40):
            at = np.nextafter(at, F32(end))
            near.append(at)
    return np.array(near)


@given(STEPS, st.lists(st.tuples(st.sampled_from(MODES), numbers(-8, 8), st.booleans()), min_size=1, max_size=3))
@settings(max_examples=80, deadline=None)
def test_steps_fold_into_thresholds(steps: list[tuple[str, Any]], nodes: list[tuple[str, float, bool]]) -> None:
    trees = [Split(mode, 0, t, 2.0**k, 0.0, nan) for k, (mode, t, nan) in enumerate(nodes)]
    x = np.concatenate([*(preimages(steps, t) for _, t, _ in nodes), ot.around([])])[:, None]
    model = chain(steps, trees)
    found, want = scores(load(model), x), runtime(model, x)[0]
    wrong = np.flatnonzero((found != want).any(axis=1))
    assert not wrong.size, (x[wrong[0]], found[wrong[0]], want[wrong[0]])


@pytest.mark.parametrize("constant", [3.0, -3.0])
@pytest.mark.parametrize("t", [np.inf, -np.inf, np.nan, 0.0, -0.0, float(np.finfo(F32).max)], ids=str)
@pytest.mark.parametrize("mode", MODES)
def test_folded_ends(mode: str, t: float, constant: float) -> None:
    """The product overflows to infinity for the largest x."""
    model = chain([("mul", constant)], [Split(mode, 0, t, 1.0, 2.0)])
    x = ot.around([1.5e38, -1.5e38])[:, None]
    assert (scores(load(model), x) == runtime(model, x)[0]).all()


@given(STEPS, numbers(-100, 100))
@settings(max_examples=60, deadline=None)
def test_cuts_say_what_the_steps_do(steps: list[tuple[str, Any]], t: float) -> None:
    """Against the column itself, on the last x of each side and random ones."""
    made = [Step(k, v) if k != "imputer" else Step("impute", v) for k, v in steps if k != "scaler"]
    made += [s for k, v in steps if k == "scaler" for s in (Step("sub", v[0]), Step("mul", v[1]))]
    column = Column(0, Kind.SINGLE, tuple(made))
    for strict in (False, True):
        cut = cuts(column, np.array([t]), strict)
        at = F32(np.clip(cut.threshold[0], -3e38, 3e38))
        near = [at, np.nextafter(at, F32(-np.inf)), np.nextafter(at, F32(np.inf))]
        x = np.concatenate([near, np.random.default_rng(0).normal(0, 100, 50).astype(F32), [np.inf, -np.inf]]).astype(
            F32
        )
        value = column.value(x).astype(np.float64)
        want = value < t if strict else value <= t
        assert ((x.astype(np.float64) <= cut.threshold[0]) != cut.opposite[0]).tolist() == want.tolist()


# Which columns.


def test_joined_and_chosen_columns() -> None:
    trees = [Split("BRANCH_LEQ", k, float(k), 2.0**k, 0.0) for k in range(4)]
    tree = regressor(trees, 4).graph.node[0]
    tree.input[0] = "table"
    nodes = [
        helper.make_node("Cast", ["n"], ["nf"], "cast", to=TensorProto.FLOAT),
        helper.make_node("ArrayFeatureExtractor", ["p", "pick"], ["picked"], "pick", domain=ot.ML),
        helper.make_node("Scaler", ["picked"], ["scaled"], "scale", domain=ot.ML, offset=[1.0, 2.0], scale=[0.5, -2.0]),
        helper.make_node("Gather", ["p", "one"], ["single"], "one", axis=1),
        helper.make_node("Concat", ["nf", "scaled", "single"], ["table"], "join", axis=1),
        tree,
    ]
    inputs = [
        helper.make_tensor_value_info("n", TensorProto.INT64, ["N", 1]),
        helper.make_tensor_value_info("p", TensorProto.FLOAT, ["N", 3]),
    ]
    constants = [
        numpy_helper.from_array(np.array([2, 0], np.int64), "pick"),
        numpy_helper.from_array(np.array([1], np.int64), "one"),
    ]
    made = helper.make_graph(nodes, "g", inputs, [helper.make_empty_tensor_value_info("y")], constants)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid(ot.ML, 3)]
    model = helper.make_model(made, opset_imports=opsets, ir_version=8)
    loaded = load(model)
    assert [f.name for f in loaded.features] == ["n", "p_0", "p_1", "p_2"]
    rng = np.random.default_rng(0)
    n, p = rng.integers(-3, 4, (200, 1)), rng.integers(-8, 9, (200, 3)).astype(F32) / 2
    want = runtime(model, {"n": n.astype(np.int64), "p": p})[0]
    assert (scores(loaded, np.concatenate([n, p], axis=1)) == want).all()


@pytest.mark.parametrize(
    ("steps", "reason"),
    [
        ([("mul", 0.0)], "a factor of zero"),
        ([("scaler", (0.0, 0.0))], "a factor of zero"),
        ([("pow", 2.0)], "op Pow is not supported before a tree ensemble"),
    ],
)
def test_steps_that_do_not_fold(steps: list[tuple[str, Any]], reason: str) -> None:
    with pytest.raises(UnsupportedError, match=reason):
        load(chain(steps, [Split("BRANCH_LEQ", 0, 0.0, 1.0, 2.0)]))


def test_exported_with_counts(tmp_path: Path) -> None:
    """A sensor map and a scaler and a threshold, all in one comparison of integers."""
    model = chain([("scaler", (20.0, 0.25)), ("mul", -3.0)], [Split("BRANCH_GT", 0, 1.5, 1.0, 2.0, True)])
    (tmp_path / "s.toml").write_text("[[input]]\nname='x0'\ndtype='int16'\nscale=0.1\noffset=-5.0\nmissing=-32768\n")
    np.save(tmp_path / "x.npy", np.arange(-32768, 32768).astype(np.int16)[:, None])
    mcugen.export(model, tmp_path / "m", name="m", leaf="float32", spec=tmp_path / "s.toml")
    y, _ = mcugen.run(tmp_path / "m", tmp_path / "x.npy", tmp_path / "y.npy")
    real = (0.1 * np.arange(-32768, 32768) - 5.0).astype(F32)
    real[0] = np.nan
    assert (y == runtime(model, real[:, None])[0]).all()


# Files of converters.


def samples() -> tuple[Array, Array, Array]:
    """Five features, a score, three classes."""
    rng = np.random.default_rng(5)
    x = rng.normal(size=(300, 5)).astype(F32)
    x[:, 1] = np.round(x[:, 1] * 3)
    score = x[:, 0] + 0.4 * x[:, 1] + (x[:, 2] > 0) * x[:, 3]
    return x, score, np.digitize(score, [-0.5, 0.8])


def check(model: onnx.ModelProto, x: Array, tolerance: float = 2e-6) -> mcugen.core.types.Model:
    """Predictions and labels are onnxruntime's; a single score is that of the second class."""
    loaded = load(model)
    out = runtime(model, {model.graph.input[0].name: x})
    want = out[-1] if isinstance(out[-1], np.ndarray) else np.array([list(row.values()) for row in out[-1]])
    env = evaluate(loaded, {"x": x.astype(np.float64)})
    found, score = env[loaded.outputs[1]], env[loaded.outputs[0]]
    want = want[:, 1:] if want.shape[1] == 2 and found.shape[1] == 1 else want.reshape(found.shape)
    np.testing.assert_allclose(found, want, rtol=tolerance, atol=tolerance)
    if loaded.labels:
        index = (score[:, 0] > loaded.class_above).astype(int) if score.shape[1] == 1 else score.argmax(axis=1)
        clear = np.abs(score[:, 0] - loaded.class_above) > 1e-5 if score.shape[1] == 1 else np.ones(len(x), bool)
        assert (np.array(loaded.labels)[index] == out[0].astype(str))[clear].all()
    return loaded


@pytest.mark.parametrize("kind", ["DecisionTree", "RandomForest", "ExtraTrees", "GradientBoosting"])
@pytest.mark.parametrize("task", ["binary", "three", "words", "number"])
@pytest.mark.parametrize("scaled", [False, True], ids=["plain", "scaled"])
def test_skl2onnx(kind: str, task: str, scaled: bool) -> None:
    skl2onnx = pytest.importorskip("skl2onnx")
    from sklearn import ensemble, impute, pipeline, preprocessing, tree  # noqa: PLC0415

    x, score, three = samples()
    y = {"binary": three > 0, "three": three + 5, "words": np.array(["no", "so so", "yes"])[three], "number": score}[
        task
    ]
    cls = getattr(
        tree if kind == "DecisionTree" else ensemble, kind + ("Regressor" if task == "number" else "Classifier")
    )
    more = {} if kind == "DecisionTree" else {"n_estimators": 6}
    estimator = cls(max_depth=4, random_state=0, **more)
    y = y.astype(int) if task == "binary" else y
    if scaled:
        steps = (impute.SimpleImputer(), preprocessing.StandardScaler(), preprocessing.MinMaxScaler())
        estimator = pipeline.make_pipeline(*steps, estimator)
    estimator.fit(x, y)
    if scaled:
        x = np.where(np.random.default_rng(0).random(x.shape) < 0.1, F32(np.nan), x)
    loaded = check(skl2onnx.to_onnx(estimator, x[:1]), x)
    assert loaded.labels == (() if task == "number" else tuple(str(c) for c in estimator.classes_))


@pytest.mark.parametrize("objective", ["regression", "poisson", "binary", "multiclass", "categories", "rf"])
def test_lightgbm_through_onnxmltools(objective: str) -> None:
    onnxmltools = pytest.importorskip("onnxmltools")
    import lightgbm as lgb  # noqa: PLC0415
    from onnxmltools.convert.common.data_types import FloatTensorType  # noqa: PLC0415

    x, score, three = samples()
    if objective == "categories":
        x[:, 4] = np.random.default_rng(2).integers(0, 7, len(x))
        score = score + 3 * np.isin(x[:, 4], (1, 4, 6))
    y = {"binary": (three > 0).astype(int), "multiclass": three, "poisson": np.exp(score)}.get(objective, score)
    options: dict[str, Any] = {
        "n_estimators": 8,
        "num_leaves": 8,
        "verbose": -1,
        "min_data_per_group": 1,
        "cat_smooth": 0,
    }
    if objective == "rf":
        options |= {"boosting_type": "rf", "bagging_freq": 1, "bagging_fraction": 0.7}
    if objective == "poisson":
        options["objective"] = "poisson"
    cls = lgb.LGBMClassifier if objective in ("binary", "multiclass") else lgb.LGBMRegressor
    fitted = cls(**options).fit(x, y, categorical_feature=[4] if objective == "categories" else "auto")
    kinds = [("x", FloatTensorType([None, 5]))]
    model = onnxmltools.convert_lightgbm(fitted, initial_types=kinds, target_opset=15)
    x = np.concatenate([x, np.where(np.random.default_rng(0).random(x.shape) < 0.2, F32(np.nan), x)])
    loaded = check(model, x, 5e-6)
    assert loaded.ops[0].forest.categorical.any() == (objective == "categories")
