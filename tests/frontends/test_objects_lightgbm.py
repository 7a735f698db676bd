"""LightGBM boosters and wrappers as objects: the trees that predict uses, the labels of the wrapper."""

from __future__ import annotations

import numpy as np
import pytest

from mcugen.core.passes import evaluate
from mcugen.errors import InputError
from mcugen.frontends.load import load_source
from mcugen.frontends.objects import load_object

lgb = pytest.importorskip("lightgbm")

RANDOM = np.random.default_rng(5)
X = RANDOM.normal(size=(300, 4))
SCORE = X[:, 0] + X[:, 1] * X[:, 2] + RANDOM.normal(size=300) * 0.5
SMALL = {"n_estimators": 8, "num_leaves": 5, "verbose": -1, "n_jobs": 1}


def raw(model, x):
    return evaluate(model, {"x": x})["raw"]


def test_booster():
    booster = lgb.train({"num_leaves": 5, "verbose": -1, "num_threads": 1}, lgb.Dataset(X, SCORE), 8)
    model = load_object(booster, "m")
    assert model.source.format == "lightgbm"
    assert (raw(model, X)[:, 0] == booster.predict(X, raw_score=True)).all()


def test_the_best_iteration_counts():
    est = lgb.LGBMRegressor(**SMALL).fit(X, SCORE)
    est.booster_.best_iteration = 3  # as early stopping sets it
    assert est.booster_.current_iteration() == 8
    for obj in (est, est.booster_):
        model = load_object(obj, "m")
        assert model.ops[0].forest.n_trees == 3
        assert (raw(model, X)[:, 0] == est.predict(X, raw_score=True)).all()
    assert model.labels == ()


@pytest.mark.parametrize("chosen", [(3, 0), (5, 2), (None, 4), (100, 1), (2, 6)])
@pytest.mark.parametrize("best", [-1, 3])
def test_chosen_iterations(chosen, best):
    """As ``predict`` counts them, also where early stopping found a best iteration."""
    est = lgb.LGBMRegressor(**SMALL).fit(X, SCORE)
    est.booster_.best_iteration = best
    count, start = chosen
    expected = est.booster_.predict(X, raw_score=True, num_iteration=count, start_iteration=start)
    for obj in (est, est.booster_):
        model = load_source(obj, "m", count, start)
        assert (raw(model, X)[:, 0] == expected).all()


def test_iterations_out_of_range():
    booster = lgb.train({"num_leaves": 5, "verbose": -1, "num_threads": 1}, lgb.Dataset(X, SCORE), 8)
    for count, start, option in ((0, 0, "--num-iteration"), (None, 8, "--start-iteration")):
        with pytest.raises(InputError, match=option):
            load_source(booster, "m", count, start)


@pytest.mark.parametrize("names", [("no", "yes"), ("low", "mid", "top")])
def test_classifier_labels(names):
    y = np.array(names)[np.digitize(SCORE, [0.0, 1.0][: len(names) - 1])]
    est = lgb.LGBMClassifier(**SMALL).fit(X, y)
    model = load_object(est, "m")
    assert model.labels == names
    score = raw(model, X)
    assert (score == est.predict(X, raw_score=True).reshape(len(X), -1)).all()
    index = (score[:, 0] > model.class_above).astype(int) if score.shape[1] == 1 else score.argmax(axis=1)
    assert [names[i] for i in index] == est.predict(X).tolist()


def test_ranker():
    est = lgb.LGBMRanker(**SMALL).fit(X, (SCORE > 0).astype(int), group=[100, 100, 100])
    assert (raw(load_object(est, "m"), X)[:, 0] == est.predict(X, raw_score=True)).all()


def test_unfitted():
    with pytest.raises(InputError, match="not fitted"):
        load_object(lgb.LGBMClassifier(), "m")
