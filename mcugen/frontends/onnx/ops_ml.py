"""Handlers of ai.onnx.ml in nets: Scaler, linear models, and what packs or looks up classes behind them.

A linear model is a Dense layer, a Scaler an Affine that the float passes fold into the layer behind it. Tree ensembles
are not here: their graphs go another way (ml_graph.py).
"""

from __future__ import annotations

import numpy as np

from mcugen.core.types import Array, DType
from mcugen.frontends.onnx.call import Call
from mcugen.frontends.onnx.ml_trees import numbers
from mcugen.frontends.onnx.values import Activated, ClassLabel, Constant, as_float32
from mcugen.nn.source import Activation, Affine, Dense, Softmax

#: What only names, packs or looks up the class label.
LABEL_OPS = frozenset({"ArrayFeatureExtractor", "Cast", "Identity", "Reshape", "Flatten", "Squeeze", "Unsqueeze"})
_SCORES = "keep only the output of the scores, and take the largest in the application"
_NORM = "do it in the application, before the call"


def _floats(c: Call, name: str, sizes: tuple[int, ...]) -> Array:
    """An attribute of floats with one of these sizes; one of size 0 is zero."""
    values = numbers(c, name, floats=True)
    found = np.zeros(0) if values is None else values
    if found.size not in sizes:
        c.broken(f"attribute {name} has {found.size} entries, not {' or '.join(map(str, sizes))}")
    return as_float32(found if found.size else np.zeros(1), c.where).astype(np.float64)


def scaler(c: Call) -> None:
    """(x - offset) * scale for each feature."""
    x = _rows(c)
    features = x.shape[1]
    scale, offset = (np.broadcast_to(_floats(c, n, (1, features)), (features,)) for n in ("scale", "offset"))
    axis = c.program.located(x, (1,), c.loc)[2][0] if features != 1 else 0
    factor, shift = as_float32(scale, c.where), as_float32(-offset * scale, c.where)
    c.give_raw(c.add(Affine, x.name, axis=axis, scale=factor, offset=shift), x.shape)


def _rows(c: Call) -> Activated:
    """The operand as [1, features]."""
    x = c.x(0)
    if len(x.shape) != 2 or x.shape[0] != 1:
        c.refuse(f"works on the shape {list(x.shape)}", "give it one row of features, [N, features]")
    return x


def _linear(c: Call, outputs: int) -> str:
    """The Dense layer of coefficients (outputs, features) and intercepts."""
    x = _rows(c)
    features = x.shape[1]
    weight = _floats(c, "coefficients", (outputs * features,)).reshape(outputs, features)
    bias = np.broadcast_to(_floats(c, "intercepts", (0, outputs)), (outputs,))
    name = c.program.view(x, (features,), c.loc)
    return c.add(Dense, name, weight=as_float32(weight, c.where), bias=as_float32(bias, c.where))


def _transformed(c: Call, name: str, outputs: int) -> str:
    """The post_transform as an op of its own."""
    kind = c.get_str("post_transform", "NONE")
    if kind == "NONE":
        return name
    if outputs > 1 and kind == "SOFTMAX":
        return c.add(Softmax, name, hint="softmax", axis=0)
    if outputs > 1 and kind == "LOGISTIC":
        return c.add(Activation, name, hint="sigmoid", kind="sigmoid")
    which = "of a single score" if outputs == 1 else "of scores"
    c.refuse(f"post_transform {kind[:40]} {which}", "convert it with raw scores, and transform them in the application")


def linear_regressor(c: Call) -> None:
    targets = c.get_int("targets", 1)
    if not 1 <= targets <= 1 << 16:
        c.broken(f"{targets} targets")
    c.give_raw(_transformed(c, _linear(c, targets), targets), (1, targets))


def linear_classifier(c: Call) -> None:
    """The label and the scores; the label is the class with the largest score."""
    labels = _labels(c)
    rows = numbers(c, "coefficients", floats=True)
    if len(labels) < 2 or rows is None or rows.size != len(labels) * _rows(c).shape[1]:
        c.refuse("has other than one row of coefficients for each class", "train with one score for each class")
    score = _linear(c, len(labels))
    c.program.labels = labels
    c.give(ClassLabel(score), 0)
    c.give_raw(_transformed(c, score, len(labels)), (1, len(labels)), 1)


def _labels(c: Call) -> tuple[str, ...]:
    for name in ("classlabels_strings", "classlabels_ints", "classlabels_int64s"):
        value = c.attribute(name)
        if isinstance(value, tuple) and value:
            return tuple(str(v) for v in value)
    return ()


def normalizer(c: Call) -> None:
    """Only where it changes nothing: the L1 norm of a softmax is 1."""
    x = c.x(0)
    makers = [op for op in c.program.ops if x.name in op.outputs]
    if not (c.get_str("norm", "MAX") == "L1" and makers and isinstance(makers[0], Softmax)):
        c.refuse("divides a row by its norm", _NORM)
    c.give(x)


def zip_map(c: Call) -> None:
    """A dictionary of classes for each row: the values in the order of the labels."""
    x = c.x(0)
    labels = _labels(c)
    if labels and x.shape[-1] == len(labels):
        c.program.labels = labels
    c.give(x)


def array_feature_extractor(c: Call) -> None:
    """A look-up of the class label by an index from ArgMax."""
    index = c.values[c.node.inputs[1]]
    table = c.values[c.node.inputs[0]]
    if not isinstance(index, Activated) or index.dtype is DType.F32:
        c.refuse("is no look-up of a class label", _SCORES)
    if isinstance(table, Constant) and table.data.dtype.kind in "iu" and table.data.size:
        c.program.labels = tuple(str(v) for v in table.data.reshape(-1).tolist())
    c.give(ClassLabel(index.name))
