"""Ends of what is read of scikit-learn: many features, what is refused and what the refusal says, imports."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest

pd = pytest.importorskip("pandas")
pytest.importorskip("sklearn")

from sklearn.dummy import DummyClassifier  # noqa: E402
from sklearn.ensemble import (  # noqa: E402
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingRegressor,
    IsolationForest,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.linear_model import LinearRegression  # noqa: E402
from sklearn.model_selection import GridSearchCV  # noqa: E402
from sklearn.pipeline import make_pipeline  # noqa: E402
from sklearn.preprocessing import StandardScaler  # noqa: E402
from sklearn.tree import (  # noqa: E402
    DecisionTreeClassifier,
    DecisionTreeRegressor,
)
from sklearn_models import (  # noqa: E402
    BINARY,
    BOOSTED,
    FORESTS,
    HIST,
    SCORE,
    THREE,
    TREES,
    X,
    assert_equal_on,
    assert_same,
    both,
    small,
)

from mcugen.errors import InputError, UnsupportedError  # noqa: E402
from mcugen.frontends.objects import load_object  # noqa: E402


@pytest.mark.parametrize("count", [300, 10000])
def test_many_features(count):
    """T19: the feature that matters is the last."""
    x = np.zeros((40, count))
    x[:, -1] = np.arange(40)
    y = (x[:, -1] > 20).astype(float)
    est, model = both(DecisionTreeRegressor().fit(x, y))
    assert model.ops[0].forest.feature.tolist() == [count - 1]
    assert_equal_on(est, model, x)


def test_counts_are_those_of_the_training_rows():
    model = load_object(small(DecisionTreeClassifier).fit(X, THREE), "m")
    forest = model.ops[0].forest
    assert forest.node_count[0] == len(X)
    assert forest.leaf_count.sum() == len(X)
    model = load_object(small(HistGradientBoostingRegressor).fit(X, SCORE), "m")
    assert model.ops[0].forest.leaf_count.sum() == 5 * len(X)


def test_the_digest_depends_on_the_model_alone():
    def fit(y):
        return small(RandomForestClassifier).fit(X, y)

    one = load_object(fit(THREE), "a").source.sha256
    assert load_object(fit(THREE), "b").source.sha256 == one
    assert len(one) == 64
    assert load_object(fit(THREE + 1), "a").source.sha256 != one
    assert load_object(fit(BINARY), "a").source.sha256 != one


@pytest.mark.parametrize("cls", [*TREES, *FORESTS, *BOOSTED, *HIST])
def test_unfitted(cls):
    with pytest.raises(InputError, match="not fitted"):
        load_object(cls(), "m")


@pytest.mark.parametrize("cls", [TREES[0], TREES[1], FORESTS[0], FORESTS[3]])
def test_several_outputs(cls):
    with pytest.raises(UnsupportedError, match="2 outputs"):
        load_object(small(cls).fit(X, np.column_stack([BINARY, THREE])), "m")


def test_models_that_hold_models_are_refused_with_a_way_out():
    tree = DecisionTreeRegressor(max_depth=2)
    search = GridSearchCV(tree, {"max_depth": [1, 2]}, cv=2).fit(X, SCORE)
    pipe = make_pipeline(StandardScaler(), tree).fit(X, SCORE)
    init = GradientBoostingRegressor(n_estimators=2, init=LinearRegression()).fit(X, SCORE)
    noise = GradientBoostingClassifier(n_estimators=2, init=DummyClassifier(strategy="stratified")).fit(X, BINARY)
    for obj, text in (
        (search, "best_estimator_"),
        (pipe, "skl2onnx.to_onnx, or pass pipeline"),
        (init, "init=LinearRegression"),
        (noise, "random"),
        (IsolationForest(n_estimators=2).fit(X), "accepted: .*RandomForest.*skl2onnx"),
        (LinearRegression().fit(X, SCORE), "accepted"),
        ({"a": 1}, "dict: .*accepted"),
        (None, "accepted"),
    ):
        with pytest.raises(UnsupportedError, match=text) as error:
            load_object(obj, "m")
        assert "\n" not in str(error.value)


def test_classes_and_models_of_other_packages():
    with pytest.raises(InputError, match="DecisionTreeClassifier: is a class"):
        load_object(DecisionTreeClassifier, "m")
    foreign = type("XGBClassifier", (), {"__module__": "xgboost.sklearn"})()
    with pytest.raises(UnsupportedError, match=r"onnxmltools\.convert_xgboost"):
        load_object(foreign, "m")


class Renamed(RandomForestRegressor):
    """Adds nothing to predict."""


class Changed(DecisionTreeRegressor):
    """Predicts something else."""

    def predict(self, X, check_input=True):
        return -super().predict(X, check_input)


def test_subclasses():
    assert_same(Renamed(n_estimators=2, max_depth=3, random_state=0).fit(X, SCORE))
    with pytest.raises(UnsupportedError, match="predict"):
        load_object(Changed(max_depth=2).fit(X, SCORE), "m")


def test_a_leaf_that_is_not_finite_is_refused():
    est = small(HistGradientBoostingRegressor).fit(X, SCORE)
    nodes = est._predictors[2][0].nodes
    nodes["value"][np.flatnonzero(nodes["is_leaf"])[0]] = np.nan
    with pytest.raises(InputError, match=r"Tree=2.*not finite"):
        load_object(est, "m")


def test_neither_library_is_imported_before_it_is_needed():
    code = "import sys, json, mcugen.frontends.objects; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"sklearn", "lightgbm", "pandas", "scipy"} & set(json.loads(done.stdout))
