"""Linear models, scalers and class labels of ai.onnx.ml as nets; onnx.ModelProto through the Python API."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto
from onnx_nets import kinds, load, net, node, runtime, same_as_runtime
from onnx_trees import ML, Split, regressor

import mcugen
from mcugen.core.types import Array
from mcugen.errors import InputError, UnsupportedError

W = [0.5, -1.25, 2.0, 0.75, 0.1, -0.3]
RNG = np.random.default_rng(4)


@pytest.mark.parametrize("scale", [[2.0, -0.5, 1e-3], [0.25]], ids=["each", "all"])
def test_scaler(scale: list[float]) -> None:
    offset = [1.0, -2.0, 30.0] if len(scale) == 3 else [0.5]
    loaded = same_as_runtime(net([node("Scaler", "x", "y", ML, offset=offset, scale=scale)], ("N", 3)))
    assert kinds(loaded) == ["Affine"]


@pytest.mark.parametrize("post", ["NONE", "SOFTMAX", "LOGISTIC"])
@pytest.mark.parametrize("bias", [[], [0.5, -1.0]], ids=["plain", "bias"])
def test_linear_regressor(post: str, bias: list[float]) -> None:
    more = {"intercepts": bias} if bias else {}
    made = node("LinearRegressor", "x", "y", ML, coefficients=W, targets=2, post_transform=post, **more)
    same_as_runtime(net([made], ("N", 3)))


def test_linear_regressor_of_one_target() -> None:
    made = node("LinearRegressor", "x", "y", ML, coefficients=W[:3], intercepts=[2.0])
    loaded = same_as_runtime(
        net([node("Scaler", "x", "s", ML, offset=[1.0], scale=[3.0]), made_after(made, "s")], (1, 3))
    )
    assert kinds(loaded) == ["Affine", "Dense"]


def made_after(made: onnx.NodeProto, name: str) -> onnx.NodeProto:
    made.input[0] = name
    return made


def classifier(post: str, labels: list[Any], **more: Any) -> onnx.NodeProto:
    name = "classlabels_strings" if isinstance(labels[0], str) else "classlabels_ints"
    fields = {name: labels, "coefficients": W, "intercepts": [0.5, -1.0], "post_transform": post, **more}
    return node("LinearClassifier", "x", "label s", ML, **fields)


@pytest.mark.parametrize("post", ["NONE", "SOFTMAX", "LOGISTIC"])
def test_linear_classifier(post: str) -> None:
    model = net([classifier(post, [4, 9]), node("Identity", "s", "y")], ("N", 3))
    assert same_as_runtime(model).labels == ("4", "9")


def test_label_and_zip_map() -> None:
    """As scikit-learn's converter writes a logistic regression of several classes."""
    nodes = [
        classifier("SOFTMAX", ["no", "yes"]),
        node("Normalizer", "s", "p", ML, norm="L1"),
        node("Identity", "label", "l"),
        node("ZipMap", "p", "y", ML, classlabels_strings=["no", "yes"]),
    ]
    loaded = load(net(nodes, ("N", 3), outputs="l y"))
    assert loaded.outputs == ("y",)
    assert loaded.labels == ("no", "yes")
    assert any("output 'l' holds class labels" in n for n in loaded.notes)
    same_as_runtime(net([*nodes[:2], node("Identity", "p", "y")], ("N", 3)))


def test_label_alone_is_an_index() -> None:
    model = net([classifier("SOFTMAX", [4, 9])], ("N", 3), outputs="label")
    loaded = load(model)
    assert kinds(loaded) == ["Dense", "Softmax", "ArgMax"] or kinds(loaded) == ["Dense", "ArgMax"]
    for _ in range(8):
        x = RNG.normal(0, 2, (1, 3)).astype(np.float32)
        index = mcugen.core.passes.evaluate(loaded, {"x": x})[loaded.outputs[0]]
        assert int(loaded.labels[int(index.reshape(-1)[0])]) == runtime(model, {"x": x})[0][0]


def test_label_looked_up_in_a_table() -> None:
    """As scikit-learn's converter writes MLPClassifier."""
    nodes = [
        node("MatMul", "x w", "m"),
        node("Softmax", "m", "p"),
        node("ArgMax", "p", "i", axis=1),
        node("ArrayFeatureExtractor", "classes i", "c", ML),
        node("Reshape", "c minus", "r"),
        node("Cast", "r", "label", to=TensorProto.INT64),
    ]
    constants = {"w": np.array(W).reshape(3, 2), "classes": np.array([7, 3]), "minus": np.array([-1])}
    loaded = load(net(nodes, ("N", 3), constants, outputs="label p"))
    assert loaded.outputs == ("p",)
    assert loaded.labels == ("7", "3")
    model = net([*nodes, node("Add", "label label", "z")], ("N", 3), constants, outputs="z")
    with pytest.raises(UnsupportedError, match="works on the class label"):
        load(model)


@pytest.mark.parametrize(
    ("made", "reason"),
    [
        (node("Normalizer", "x", "y", ML, norm="L2"), "divides a row by its norm"),
        (node("Normalizer", "x", "y", ML, norm="L1"), "divides a row by its norm"),
        (node("LinearRegressor", "x", "y", ML, coefficients=W[:3], post_transform="LOGISTIC"), "LOGISTIC of a single"),
        (node("LinearRegressor", "x", "y", ML, coefficients=W, targets=2, post_transform="PROBIT"), "PROBIT of scores"),
        (
            node("LinearClassifier", "x", "l y", ML, coefficients=W[:3], classlabels_ints=[0, 1]),
            "one row of coefficients",
        ),
        (node("ArrayFeatureExtractor", "x k", "y", ML), "no look-up"),
    ],
)
def test_refused(made: onnx.NodeProto, reason: str) -> None:
    with pytest.raises(UnsupportedError, match=reason):
        load(net([made], ("N", 3), {"k": np.array([0])}))


@pytest.mark.parametrize(
    ("made", "reason"),
    [
        (node("LinearRegressor", "x", "y", ML, coefficients=W[:4]), "4 entries, not 3"),
        (node("LinearRegressor", "x", "y", ML, coefficients=W[:3], intercepts=[1.0, 2.0]), "intercepts has 2"),
        (node("Scaler", "x", "y", ML, offset=[1.0, 2.0], scale=[1.0]), "offset has 2"),
        (node("Scaler", "x", "y", ML, offset=[1.0], scale=[np.nan]), "NaN"),
        (node("LinearRegressor", "x", "y", ML, coefficients=W[:3], targets=0), "0 targets"),
    ],
)
def test_wrong(made: onnx.NodeProto, reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        load(net([made], ("N", 3)))


# All the way to C, from objects.


def logistic() -> onnx.ModelProto:
    scaled = node("Scaler", "x", "s0", ML, offset=[0.5, 0.0, -1.0], scale=[1.0, 0.5, 2.0])
    made = made_after(classifier("SOFTMAX", ["no", "yes"]), "s0")
    return net(
        [scaled, made, node("ZipMap", "s", "y", ML, classlabels_strings=["no", "yes"])], ("N", 3), outputs="label y"
    )


def run(folder: Path, x: Array) -> Array:
    np.save(folder / "x.npy", x)
    y, _ = mcugen.run(folder, folder / "x.npy", folder / "y.npy")
    return y


def test_linear_model_exported(tmp_path: Path) -> None:
    model = logistic()
    x = RNG.normal(0, 2, (200, 3)).astype(np.float32)
    label, rows = runtime(model, {"x": x})
    want = np.array([list(row.values()) for row in rows])
    result = mcugen.export(model, tmp_path / "f", name="m", float32=True)
    assert np.abs(run(tmp_path / "f", x) - want).max() < 1e-6
    assert result.source.source.sha256 == hashlib.sha256(model.SerializeToString(deterministic=True)).hexdigest()
    mcugen.export(model, tmp_path / "c", name="m", float32=True, output="class")
    index = run(tmp_path / "c", x)[:, 0]
    assert [("no", "yes")[i] for i in index] == label.tolist()
    np.savez(tmp_path / "x.npz", x=x)
    mcugen.export(model, tmp_path / "q", name="m", calib=tmp_path / "x.npz", output="class")
    assert (run(tmp_path / "q", x)[:, 0] == index).mean() > 0.97
    with pytest.raises(InputError, match="a float net needs data"):
        mcugen.export(model, tmp_path / "n", name="m")


def test_class_of_a_single_score_is_refused(tmp_path: Path) -> None:
    model = net([node("LinearRegressor", "x", "y", ML, coefficients=W[:3])], ("N", 3))
    with pytest.raises(UnsupportedError, match="--output class"):
        mcugen.export(model, tmp_path / "m", name="m", float32=True, output="class")


def test_model_objects() -> None:
    tree = regressor([Split("BRANCH_LEQ", 0, 0.5, 1.0, 2.0)], 1)
    assert mcugen.load(tree, "t").source.format == "onnx"
    assert (
        mcugen.load(tree, "t").source.sha256 == hashlib.sha256(tree.SerializeToString(deterministic=True)).hexdigest()
    )
    text, facts = mcugen.inspect(tree)
    assert "1 trees, 2 leaves, 1 features" in text
    assert facts["trees"] == 1
    for chosen, option in (({"num_iteration": 1}, "--num-iteration"), ({"start_iteration": 1}, "--start-iteration")):
        with pytest.raises(InputError, match=option):
            mcugen.load(tree, "t", **chosen)
    dense = net([node("MatMul", "x w", "y")], ("N", "width"), {"w": np.array(W).reshape(3, 2)})
    assert mcugen.load(dense, "d", shapes={"x": (1, 3)}).types["x"].shape == (3,)
    with pytest.raises(InputError, match="--shape"):
        mcugen.load(dense, "d")
    with pytest.raises(InputError, match="no graph"):
        mcugen.load(onnx.ModelProto(), "e")
    external = net([node("MatMul", "x w", "y")], (1, 3), {"w": np.array(W).reshape(3, 2)})
    external.graph.initializer[0].data_location = TensorProto.EXTERNAL
    with pytest.raises(InputError, match="another file"):
        mcugen.load(external, "e")
