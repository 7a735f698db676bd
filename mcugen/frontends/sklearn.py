"""Fitted scikit-learn tree estimators to Models of source ops, bit for bit as scikit-learn predicts with n_jobs=None.

Reads the fitted attributes only, never calls predict. The single trees are in sklearn_trees.py, categorical
features in sklearn_categories.py; other objects are told apart in objects.py.

NaN: where scikit-learn accepts it, it takes the side that training chose (for a feature that had none, the child with
more rows). Where scikit-learn refuses it (GradientBoosting*, some ExtraTree*), it counts as 0.0; Model.notes says so.
"""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from mcugen.core.types import Array, DType, Feature, Loc, Model, Source, TensorType
from mcugen.errors import InputError, UnsupportedError
from mcugen.frontends.lightgbm import MAX_FEATURES
from mcugen.frontends.sklearn_categories import Categories, column_order, read_categories
from mcugen.frontends.sklearn_trees import add_predictor, add_tree
from mcugen.trees.forest import Forest, ForestBuilder, Missing
from mcugen.trees.source import Average, Link, TreeEnsemble

_OLDEST = (1, 4)
_PREDICTING = ("predict", "predict_proba", "decision_function")
_REFUSES_NAN = "scikit-learn refuses NaN with this estimator; here NaN counts as 0.0"

#: Class of a loss's link function -> (kind, slope) of trees.source.Link.
_LINKS = {
    "IdentityLink": ("identity", 1.0),
    "LogLink": ("exp", 1.0),
    "LogitLink": ("sigmoid", 1.0),
    "HalfLogitLink": ("sigmoid", 2.0),
    "MultinomialLogit": ("softmax", 1.0),
}

#: What scikit-learn's dummy estimators answer for any x; the other strategies are random.
_CONSTANT_INIT = {
    "DummyClassifier": frozenset({"prior", "most_frequent", "constant"}),
    "DummyRegressor": frozenset({"mean", "median", "quantile", "constant"}),
}


@dataclass(frozen=True, slots=True, eq=False)
class _Parts:
    """What an estimator is made of: ``average`` is the number of trees to divide by, or None.

    ``class_above``: a single score means class 1 above it.
    """

    forest: Forest
    base: Array
    average: int | None = None
    link: tuple[str, float] = ("identity", 1.0)
    class_above: float = 0.0
    categories: tuple[tuple[str, ...] | None, ...] | None = None
    notes: tuple[str, ...] = ()


def load_estimator(estimator: Any, name: str, base: type) -> Model:
    """The source model of a fitted estimator; ``base`` is its class in scikit-learn, one of ESTIMATORS.

    Values, all float64: x (F,), raw (K,), in forests mean (K,), prediction (K,). The outputs are score and prediction:

    * boosted classifiers: decision_function, then predict_proba; with two classes K = 1, the probability of class 1
    * other classifiers: predict_proba as the score, and again as the prediction; with two classes K = 2
    * regressors, K = 1: the score (boosted: before the link), then predict

    Raises InputError when the estimator is not fitted, UnsupportedError for several outputs, for predict methods that
    a subclass replaced, and for parts that mcugen does not know.
    """
    where = type(estimator).__name__
    _require_readable(estimator, base, where)
    reader, attribute = ESTIMATORS[base.__name__]
    if not hasattr(estimator, attribute):
        raise InputError(where, "this estimator is not fitted", "call fit first")
    if int(getattr(estimator, "n_outputs_", 1)) != 1:
        raise UnsupportedError(where, f"{estimator.n_outputs_} outputs", "train one estimator for each output")
    n_features = int(estimator.n_features_in_)
    if n_features > MAX_FEATURES:
        raise UnsupportedError(where, f"{n_features} features; the limit is {MAX_FEATURES}")
    names = tuple(str(n) for n in getattr(estimator, "feature_names_in_", ()))
    names = names or tuple(f"x{i}" for i in range(n_features))
    labels = tuple(str(c) for c in getattr(estimator, "classes_", ()))
    return _model(name, where, names, labels, reader(estimator, names, where))


def _require_readable(estimator: Any, base: type, where: str) -> None:
    version = str(getattr(sys.modules.get("sklearn"), "__version__", ""))
    found = re.match(r"(\d+)\.(\d+)", version)
    if found and (int(found[1]), int(found[2])) < _OLDEST:
        raise UnsupportedError(where, f"scikit-learn {version} is too old", "upgrade to scikit-learn 1.4 or later")
    for cls in type(estimator).__mro__:
        if cls is base:
            return
        changed = [m for m in _PREDICTING if m in vars(cls)]
        if changed:
            raise UnsupportedError(
                where, f"its {changed[0]} replaces that of {base.__name__}", f"pass a plain {base.__name__}"
            )


def _tree(estimator: Any, names: tuple[str, ...], where: str) -> _Parts:
    """DecisionTree*, ExtraTree*: the leaf is the answer."""
    forest, notes = _plain_forest([estimator], len(names), where)
    # The library returns the leaf without adding it to 0.0: from -0.0 every leaf comes out as it is, -0.0 too.
    negative_zero = bool(np.any((forest.leaf_value == 0) & np.signbit(forest.leaf_value)))
    base = np.full(forest.outputs, -0.0 if negative_zero else 0.0)
    return _Parts(forest, base, notes=notes)


def _forest(estimator: Any, names: tuple[str, ...], where: str) -> _Parts:
    """RandomForest*, ExtraTrees*: the mean over the trees."""
    forest, notes = _plain_forest(estimator.estimators_, len(names), where)
    return _Parts(forest, np.zeros(forest.outputs), average=forest.n_trees, notes=notes)


def _plain_forest(trees: Sequence[Any], n_features: int, where: str) -> tuple[Forest, tuple[str, ...]]:
    """The trees of one tree or a forest: a value for each class, or one, in each leaf."""
    if not len(trees):
        raise InputError(where, "the model has no trees")
    outputs = int(getattr(trees[0], "n_classes_", 1))
    nan = bool(trees[0]._support_missing_values(np.zeros((1, n_features), np.float32)))
    builder = ForestBuilder()
    for t, tree in enumerate(trees):
        add_tree(builder, tree.tree_, outputs, None, Missing.NAN if nan else Missing.NONE, Loc(where, f"Tree={t}"))
    forest = builder.build(n_features=n_features, outputs=outputs, zero_band=0.0)
    return forest, () if nan else (_REFUSES_NAN,)


def _boosting(estimator: Any, names: tuple[str, ...], where: str) -> _Parts:
    """GradientBoosting*: a constant, then learning_rate times each leaf, one tree a class and stage."""
    trees = estimator.estimators_
    if not trees.size:
        raise InputError(where, "the model has no trees")
    _require_constant_init(estimator.init_, where)
    base = np.asarray(estimator._raw_predict_init(np.zeros((1, len(names)), np.float32)), np.float64)[0]
    builder = ForestBuilder()
    for t, tree in enumerate(trees.ravel()):
        add_tree(builder, tree.tree_, 1, float(estimator.learning_rate), Missing.NONE, Loc(where, f"Tree={t}"))
    forest = builder.build(n_features=len(names), outputs=int(trees.shape[1]), zero_band=0.0)
    # predict takes class 1 for a score of exactly 0.0, unlike the histogram estimators.
    below_zero = float(np.nextafter(0.0, -1.0))
    return _Parts(forest, base, link=_link(estimator, where), class_above=below_zero, notes=(_REFUSES_NAN,))


def _require_constant_init(init: Any, where: str) -> None:
    if isinstance(init, str) and init == "zero":
        return
    cls = type(init)
    strategies = _CONSTANT_INIT.get(cls.__name__) if cls.__module__ == "sklearn.dummy" else None
    if strategies is None:
        raise UnsupportedError(where, f"init={cls.__name__} is a model of its own", "train with init=None or 'zero'")
    if init.strategy not in strategies:
        raise UnsupportedError(where, f"init={cls.__name__} with strategy '{init.strategy}' is random", "use init=None")


def _histogram(estimator: Any, names: tuple[str, ...], where: str) -> _Parts:
    """HistGradientBoosting*: a baseline, then each leaf; x stays float64."""
    stages = estimator._predictors
    base = np.asarray(estimator._baseline_prediction).reshape(-1)
    if not stages:
        raise InputError(where, "the model has no trees", "train with max_iter above 0")
    if base.dtype != np.float64:
        raise UnsupportedError(where, f"scores of type {base.dtype}", "train with targets of type float64")
    if len(getattr(estimator, "classes_", (0, 1))) < 2:
        raise UnsupportedError(where, "all training rows had one class", "train with two or more classes")
    categories: Categories = read_categories(estimator, names, where)
    order = column_order(estimator, len(names))
    builder = ForestBuilder()
    for t, predictor in enumerate(p for stage in stages for p in stage):
        add_predictor(builder, predictor, order, categories, Loc(where, f"Tree={t}"))
    forest = builder.build(
        n_features=len(names),
        outputs=base.size,
        zero_band=0.0,
        category_match="exact",
        known_categories=categories.known,
    )
    return _Parts(forest, base, link=_link(estimator, where), categories=categories.labels)


def _link(estimator: Any, where: str) -> tuple[str, float]:
    link = type(estimator._loss.link).__name__
    if link not in _LINKS:
        raise UnsupportedError(where, f"a loss with the link {link}", f"known links: {', '.join(_LINKS)}")
    return _LINKS[link]


def _model(name: str, where: str, names: tuple[str, ...], labels: tuple[str, ...], parts: _Parts) -> Model:
    """The ops TreeEnsemble, Average in forests, Link."""
    scores = TensorType((parts.forest.outputs,), DType.F64)
    types = {"x": TensorType((len(names),), DType.F64), "raw": scores, "prediction": scores}
    last = parts.forest.n_trees - 1
    loc = Loc(where, "Tree=0" if last == 0 else f"Tree=0..{last}")
    ops: tuple[TreeEnsemble | Average | Link, ...] = (TreeEnsemble(("x",), ("raw",), loc, parts.forest, parts.base),)
    score = "raw"
    if parts.average is not None:
        ops += (Average(("raw",), ("mean",), Loc(where, "mean"), parts.average),)
        types["mean"] = scores
        score = "mean"
    ops += (Link((score,), ("prediction",), Loc(where, "link"), *parts.link),)
    known = parts.categories or (None,) * len(names)
    features = tuple(Feature(name=n, categories=c) for n, c in zip(names, known, strict=True))
    source = Source(where, "sklearn", _digest(where, names, labels, parts))
    return Model(
        name=name,
        level="source",
        inputs=("x",),
        outputs=(score, "prediction"),
        types=types,
        ops=ops,
        source=source,
        features=features,
        labels=labels,
        notes=parts.notes,
        class_above=float("inf") if len(labels) == 1 else parts.class_above,
    )


def _digest(where: str, names: tuple[str, ...], labels: tuple[str, ...], parts: _Parts) -> str:
    """SHA-256 over all that the model is made of: each part with its name, type and shape before its bytes."""
    h = hashlib.sha256()

    def put(key: str, value: Any) -> None:
        if isinstance(value, np.ndarray):
            a = np.ascontiguousarray(value).astype(value.dtype.newbyteorder("<"))
            h.update(f"{key}:{a.dtype.str}:{a.shape}\n".encode())
            h.update(a.tobytes())
        elif isinstance(value, tuple):
            h.update(f"{key}:{len(value)}\n".encode())
            for i, item in enumerate(value):
                put(f"{key}.{i}", item)
        else:
            text = repr(value).encode("utf-8", "backslashreplace")
            h.update(f"{key}:{len(text)}\n".encode())
            h.update(text)

    put("estimator", (where, names, labels))
    for f in fields(Forest):
        put(f"forest.{f.name}", getattr(parts.forest, f.name))
    put("rest", (parts.base, parts.average, parts.link, parts.class_above, parts.categories))
    return h.hexdigest()


_Reader = Callable[[Any, tuple[str, ...], str], _Parts]

#: Class in scikit-learn -> its reader, and the attribute that a fitted one has.
ESTIMATORS: dict[str, tuple[_Reader, str]] = {
    f"{family}{task}": (reader, attribute)
    for family, reader, attribute in (
        ("DecisionTree", _tree, "tree_"),
        ("ExtraTree", _tree, "tree_"),
        ("RandomForest", _forest, "estimators_"),
        ("ExtraTrees", _forest, "estimators_"),
        ("GradientBoosting", _boosting, "estimators_"),
        ("HistGradientBoosting", _histogram, "_predictors"),
    )
    for task in ("Classifier", "Regressor")
}
