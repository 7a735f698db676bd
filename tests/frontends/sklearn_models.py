"""Data, small estimators of scikit-learn, and how a Model is compared with one: rows on every threshold."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

pd = pytest.importorskip("pandas")
pytest.importorskip("sklearn")

from sklearn.ensemble import (  # noqa: E402
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.tree import (  # noqa: E402
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    ExtraTreeClassifier,
    ExtraTreeRegressor,
)

from mcugen.core.passes import check_model, evaluate  # noqa: E402
from mcugen.frontends.objects import load_object  # noqa: E402

F = 5
RANDOM = np.random.default_rng(7)
X = RANDOM.normal(size=(240, F)).astype(np.float32).astype(np.float64)
X[:, 1] = np.round(X[:, 1] * 3)  # whole numbers, so that thresholds are halves
X[:, 2] *= 1e-3
X[:, 3] *= 1e6
SCORE = X[:, 0] + 0.4 * X[:, 1] + (X[:, 2] > 0) + 1e-6 * X[:, 3] * X[:, 0]
BINARY = (SCORE > 0.3).astype(int)
THREE = np.digitize(SCORE, [-0.5, 0.8])
POSITIVE = np.exp(0.3 * SCORE)
HOLES = X.copy()
HOLES[RANDOM.random(X.shape) < 0.2] = np.nan
HOLES[BINARY == 1, 4] = np.where(RANDOM.random((BINARY == 1).sum()) < 0.7, np.nan, 1.0)  # NaN that informs

TREES = [DecisionTreeClassifier, DecisionTreeRegressor, ExtraTreeClassifier, ExtraTreeRegressor]
FORESTS = [RandomForestClassifier, RandomForestRegressor, ExtraTreesClassifier, ExtraTreesRegressor]
BOOSTED = [GradientBoostingClassifier, GradientBoostingRegressor]
HIST = [HistGradientBoostingClassifier, HistGradientBoostingRegressor]


def small(cls, **kwargs):
    """An estimator of the class that trains in a few milliseconds."""
    size = {"max_iter": 5, "max_leaf_nodes": 8, "min_samples_leaf": 3} if cls in HIST else {"max_depth": 5}
    if cls in FORESTS + BOOSTED:
        size["n_estimators"] = 6
    return cls(**{**size, "random_state": 3, **kwargs})


def edge_rows(model, nan, step, rows=1500):
    """(N, F): training rows, each with one feature on a threshold or one step of the type ``step`` beside it."""
    forest = model.ops[0].forest
    nodes = np.flatnonzero(~forest.categorical & np.isfinite(forest.threshold))
    base = X if forest.n_features == F else np.zeros((1, forest.n_features))
    out = [base[:200]]
    if nodes.size:
        threshold = forest.threshold[nodes].astype(step)
        below, above = np.nextafter(threshold, step(-np.inf)), np.nextafter(threshold, step(np.inf))
        at = np.concatenate([below, threshold, above]).astype(np.float64)
        which = np.tile(forest.feature[nodes], 3)
        pick = np.random.default_rng(0).permutation(at.size)[:rows]
        edge = base[np.arange(pick.size) % len(base)].copy()
        edge[np.arange(pick.size), which[pick]] = at[pick]
        out.append(edge)
    if nan:
        holes = out[-1][:400].copy()
        holes[np.random.default_rng(1).random(holes.shape) < 0.4] = np.nan
        out += [holes, np.full((1, forest.n_features), np.nan)]
    return np.concatenate(out)


def library(est, x):
    """Score and prediction of the library, both (N, K)."""
    n = len(x)
    if hasattr(est, "decision_function"):
        score, proba = est.decision_function(x), est.predict_proba(x)
        return score.reshape(n, -1), proba[:, 1:] if score.ndim == 1 else proba
    if hasattr(est, "predict_proba"):
        return est.predict_proba(x), est.predict_proba(x)
    if hasattr(est, "_predictors"):
        return est._raw_predict(x), est.predict(x).reshape(n, -1)
    return est.predict(x).reshape(n, -1), est.predict(x).reshape(n, -1)


def bits(a):
    return np.ascontiguousarray(a, np.float64).view(np.uint64)


def assert_equal_on(est, model, x, frame=None):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        score, prediction = library(est, x if frame is None else frame)
    got = evaluate(model, {"x": x})
    mine = got[model.outputs[0]]
    assert mine.shape == score.shape
    assert (bits(mine) == bits(score)).all()
    np.testing.assert_allclose(got[model.outputs[1]], prediction, rtol=1e-12, atol=0)
    if model.labels:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            want = [str(c) for c in est.predict(x if frame is None else frame)]
        index = (mine[:, 0] > model.class_above).astype(int) if mine.shape[1] == 1 else mine.argmax(axis=1)
        assert [model.labels[i] for i in index] == want


def assert_same(est, nan=False):
    """``est`` and its Model agree on all edge rows, of float32 and of float64."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = load_object(est, "m")
    check_model(model, "test")
    for step in (np.float32, np.float64):
        assert_equal_on(est, model, edge_rows(model, nan, step))
    return model


def both(est):
    return est, load_object(est, "m")
