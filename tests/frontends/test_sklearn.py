"""scikit-learn estimators: the Model's scores are the library's, bit for bit, where faults hide.

Rows stand on every threshold and one step of float32 and of float64 to either side; NaN and infinity are among them
where the library takes them.
"""

from __future__ import annotations

import json
import subprocess
import sys
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pd = pytest.importorskip("pandas")
pytest.importorskip("sklearn")

from sklearn.dummy import DummyClassifier, DummyRegressor  # noqa: E402
from sklearn.ensemble import (  # noqa: E402
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
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
    ExtraTreeClassifier,
    ExtraTreeRegressor,
)

from mcugen.core.passes import check_model, evaluate  # noqa: E402
from mcugen.errors import InputError, UnsupportedError  # noqa: E402
from mcugen.frontends.objects import load_object  # noqa: E402
from mcugen.frontends.sklearn import ESTIMATORS  # noqa: E402
from mcugen.frontends.sklearn_trees import through_float32  # noqa: E402
from mcugen.trees.forest import Missing  # noqa: E402

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


@pytest.mark.parametrize("cls", [*TREES, *FORESTS, *BOOSTED, *HIST])
@pytest.mark.parametrize("target", ["binary", "three"])
def test_every_estimator(cls, target):
    y = {"binary": BINARY, "three": THREE}[target]
    if cls.__name__.endswith("Regressor"):
        y = {"binary": SCORE, "three": POSITIVE}[target]
    model = assert_same(small(cls).fit(X, y))
    assert model.level == "source"
    assert model.source.format == "sklearn"
    assert model.source.name == cls.__name__
    assert [f.name for f in model.features] == ["x0", "x1", "x2", "x3", "x4"]
    classes = cls.__name__.endswith("Classifier")
    assert model.labels == (tuple("012"[: y.max() + 1]) if classes else ())
    assert len({a.flags.writeable for a in vars_of_forest(model)}) == 1
    assert not next(iter(vars_of_forest(model))).flags.writeable


def vars_of_forest(model):
    forest = model.ops[0].forest
    values = (getattr(forest, name) for name in forest.__dataclass_fields__)
    return [v for v in values if isinstance(v, np.ndarray)]


def test_the_list_of_estimators_is_the_one_tested():
    assert {c.__name__ for c in [*TREES, *FORESTS, *BOOSTED, *HIST]} == set(ESTIMATORS)


def fit_with_nan(cls, x, y):
    """Fitted on ``x``; skips where this scikit-learn refuses NaN with this estimator (ExtraTree* before 1.6)."""
    try:
        small(cls).fit(HOLES, y)
    except ValueError:
        pytest.skip("this scikit-learn takes no NaN here")
    return small(cls).fit(x, y)


@pytest.mark.parametrize("cls", [*TREES, *FORESTS, *HIST])
def test_nan_in_training(cls):
    model = assert_same(fit_with_nan(cls, HOLES, BINARY), nan=True)
    forest = model.ops[0].forest
    assert (forest.missing == Missing.NAN).all()
    assert forest.default_left.any()
    assert not forest.default_left.all()


@pytest.mark.parametrize("cls", [*TREES, *FORESTS, *HIST])
def test_nan_at_prediction_only(cls):
    """Without NaN in training, scikit-learn sends it to the child with more rows."""
    assert_same(fit_with_nan(cls, X, BINARY), nan=True)


def test_where_the_library_refuses_nan_the_model_says_what_it_does():
    model = assert_same(small(GradientBoostingRegressor).fit(X, SCORE))
    assert (model.ops[0].forest.missing == Missing.NONE).all()
    assert "NaN" in model.notes[0]
    holes = X.copy()
    holes[::3, 0] = np.nan
    raw = evaluate(model, {"x": holes})["raw"]
    assert (raw == evaluate(model, {"x": np.nan_to_num(holes)})["raw"]).all()
    splitter = small(ExtraTreeClassifier, splitter="best").fit(X, BINARY)
    if not splitter._support_missing_values(X):
        assert load_object(splitter, "m").notes


@pytest.mark.parametrize("cls", [*TREES, *FORESTS, *BOOSTED, *HIST])
def test_stumps(cls):
    model = assert_same(small(cls, max_depth=1).fit(X, BINARY))
    assert (np.diff(model.ops[0].forest.first_node) <= 1).all()


@pytest.mark.parametrize("cls", [*FORESTS, *BOOSTED, *HIST])
def test_one_iteration(cls):
    one = {"max_iter": 1} if cls in HIST else {"n_estimators": 1}
    assert assert_same(small(cls, **one).fit(X, BINARY)).ops[0].loc.item == "Tree=0"


@pytest.mark.parametrize("cls", [c for c in [*TREES, *FORESTS, *BOOSTED, *HIST] if c.__name__.endswith("Regressor")])
def test_constant_target(cls):
    model = assert_same(small(cls).fit(X, np.full(len(X), 2.7)))
    if cls not in HIST:  # rounding of the baseline gives those gradients, and so splits
        assert model.ops[0].forest.n_nodes == 0
    assert evaluate(model, {"x": X[:1]})["prediction"][0, 0] == pytest.approx(2.7, rel=1e-6)


@pytest.mark.parametrize("cls", [c for c in [*TREES, *FORESTS] if c.__name__.endswith("Classifier")])
def test_one_class(cls):
    model = assert_same(small(cls).fit(X, np.full(len(X), 4)))
    assert model.labels == ("4",)
    assert evaluate(model, {"x": X[:1]})["prediction"].tolist() == [[1.0]]


def test_one_class_in_a_histogram_classifier_is_refused():
    with pytest.raises(UnsupportedError, match="one class"):
        load_object(small(HistGradientBoostingClassifier).fit(X, np.zeros(len(X))), "m")


@pytest.mark.parametrize("cls", [c for c in [*TREES, *FORESTS, *BOOSTED, *HIST] if c.__name__.endswith("Classifier")])
def test_text_labels_and_weights(cls):
    weight = RANDOM.random(len(X)) + 0.1
    names = np.array(["stop", "go", "wait a bit"])
    assert assert_same(small(cls).fit(X, names[THREE], sample_weight=weight)).labels == ("go", "stop", "wait a bit")
    assert assert_same(small(cls).fit(X, names[BINARY], sample_weight=weight)).labels == ("go", "stop")
    assert assert_same(small(cls).fit(X, BINARY == 1)).labels == ("False", "True")


def test_ties_of_the_mean_probability_go_to_the_lowest_class():
    """T22: two stumps that disagree: each class has 0.5."""
    est = RandomForestClassifier(n_estimators=2, bootstrap=False, random_state=0, max_features=1, max_depth=1)
    x = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    est.fit(np.repeat(x, [5, 1, 1, 5], axis=0), np.repeat(["a", "z", "a", "z"], [5, 1, 1, 5]))
    model = load_object(est, "m")
    assert_equal_on(est, model, x)


def test_boosting_counts_a_score_of_zero_as_class_one_and_the_histogram_kind_does_not():
    x, y = np.zeros((20, 1)), np.arange(20) % 2
    for cls, label in ((GradientBoostingClassifier, "1"), (HistGradientBoostingClassifier, "0")):
        est = small(cls).fit(x, y)
        model = load_object(est, "m")
        raw = evaluate(model, {"x": x})["raw"]
        assert (raw == 0).all()
        assert_equal_on(est, model, x)
        assert str(est.predict(x)[0]) == label


@pytest.mark.parametrize(
    ("cls", "y", "kwargs", "kind"),
    [
        (GradientBoostingClassifier, BINARY, {"loss": "exponential"}, "sigmoid"),
        (GradientBoostingClassifier, BINARY, {"init": "zero", "subsample": 0.5}, "sigmoid"),
        (GradientBoostingClassifier, THREE, {"init": "zero", "learning_rate": 0.3}, "softmax"),
        (GradientBoostingClassifier, THREE, {"init": DummyClassifier(strategy="most_frequent")}, "softmax"),
        (GradientBoostingRegressor, SCORE, {"loss": "huber", "learning_rate": 1.0}, "identity"),
        (GradientBoostingRegressor, SCORE, {"loss": "quantile", "alpha": 0.2}, "identity"),
        (GradientBoostingRegressor, SCORE, {"loss": "absolute_error", "init": "zero"}, "identity"),
        (GradientBoostingRegressor, SCORE, {"init": DummyRegressor(strategy="constant", constant=-3)}, "identity"),
        (HistGradientBoostingRegressor, POSITIVE, {"loss": "poisson"}, "exp"),
        (HistGradientBoostingRegressor, POSITIVE, {"loss": "gamma"}, "exp"),
        (HistGradientBoostingRegressor, SCORE, {"loss": "quantile", "quantile": 0.8}, "identity"),
        (HistGradientBoostingRegressor, SCORE, {"loss": "absolute_error"}, "identity"),
        (HistGradientBoostingClassifier, BINARY, {"early_stopping": True, "class_weight": "balanced"}, "sigmoid"),
        (HistGradientBoostingClassifier, THREE, {"monotonic_cst": None, "l2_regularization": 1.0}, "softmax"),
        (DecisionTreeRegressor, np.round(SCORE), {"criterion": "absolute_error"}, "identity"),
        (DecisionTreeRegressor, POSITIVE, {"criterion": "poisson", "monotonic_cst": [1, 0, 0, 0, 0]}, "identity"),
        (DecisionTreeClassifier, THREE, {"ccp_alpha": 0.01, "class_weight": "balanced"}, "identity"),
        (RandomForestClassifier, THREE, {"max_leaf_nodes": 6, "class_weight": "balanced_subsample"}, "identity"),
        (RandomForestRegressor, SCORE, {"max_samples": 0.5, "warm_start": True}, "identity"),
    ],
)
def test_losses_and_settings(cls, y, kwargs, kind):
    assert assert_same(small(cls, **kwargs).fit(X, y)).ops[-1].kind == kind


def test_a_tree_returns_minus_zero_as_it_is():
    x = np.array([[0.0], [1.0], [2.0], [3.0]])
    est = DecisionTreeRegressor(criterion="absolute_error").fit(x, [-0.0, -0.0, 1.0, 1.0])
    model = load_object(est, "m")
    assert_equal_on(est, model, x)


def test_whole_number_thresholds():
    """T14, T16: a row exactly on the threshold goes left; nothing is cut to whole numbers."""
    x = np.arange(-20.0, 20.0)[:, None]
    for cls in (DecisionTreeClassifier, HistGradientBoostingClassifier):
        size = {"min_samples_leaf": 1} if cls in HIST else {}
        for split in (-10, 10):
            assert_equal_on(*both(cls(**size).fit(x, x[:, 0] >= split)), x)
    even = 2.0 * np.arange(12)[:, None]
    est, model = both(DecisionTreeClassifier().fit(even, even[:, 0] > 11))
    assert_equal_on(est, model, np.array([[11.0], [np.nextafter(11.0, 12.0)], [11.0000005], [11.000001]]))


def both(est):
    return est, load_object(est, "m")


def test_the_cast_to_float32_holds_for_wider_inputs():
    """T12: 16777217.0 is 16777216.0 to a forest, and another number to the histogram kind."""
    x = np.array([[16777216.0], [16777218.0]] * 30)
    y = np.tile([0.0, 1.0], 30)
    probe = np.array([[16777215.0], [16777216.0], [16777217.0], [16777218.0], [16777219.0], [3e38], [-3e38]])
    for cls in (DecisionTreeRegressor, GradientBoostingRegressor, HistGradientBoostingRegressor):
        assert_equal_on(*both(cls(random_state=0).fit(x, y)), probe)
    x[1::2] = 16777217.0
    est, model = both(HistGradientBoostingRegressor().fit(x, y))
    assert_equal_on(est, model, probe)
    assert est.predict(probe)[1] < est.predict(probe)[2]


FLOATS = st.floats(-3e38, 3e38, allow_subnormal=True)


@given(FLOATS, FLOATS)
@settings(max_examples=300, deadline=None)
def test_through_float32_is_the_last_value_that_goes_left(threshold, other):
    t = through_float32(np.array([threshold]))
    assert float(t.astype(np.float32)[0]) <= threshold
    assert float(np.nextafter(t, np.inf).astype(np.float32)[0]) > threshold
    # the same decision for every float32 (in Python floats: numpy would round the threshold to float32)
    x = float(np.float32(other))
    assert (x <= threshold) == (x <= t[0])


def test_through_float32_at_the_ends():
    big = float(np.finfo(np.float32).max)
    t = np.array([np.inf, -np.inf, big, -big, 1e39, 0.0, -0.0, 1e-46, -1e-46, 1e-45, -1e-45])
    got = through_float32(t)
    x = np.array([big, -big, 0.0, -0.0, 1e-46, -1e-46, 7e-46, -7e-46, 7.1e-46, -7.1e-46, 1e-45, 1.5e-45, -1.5e-45, 1.0])
    want = x.astype(np.float32)[:, None] <= t
    assert ((x[:, None] <= got) == want).all()


def test_infinite_inputs_of_the_histogram_kind():
    x = X.copy()
    x[::7, 0], x[::5, 2] = np.inf, -np.inf
    est, model = both(small(HistGradientBoostingRegressor).fit(x, SCORE))
    assert_equal_on(est, model, x)
    assert_equal_on(est, model, np.array([[np.inf] * F, [-np.inf] * F, [1.7e308] * F, [-1.7e308] * F]))


def test_a_split_that_only_separates_nan():
    """Its threshold is infinite. (Trees before scikit-learn 1.6 want two distinct numbers beside NaN.)"""
    x = np.where(np.arange(40) % 4 == 0, np.nan, np.arange(40) % 2)[:, None]
    y = np.isnan(x[:, 0]).astype(float)
    for cls in (DecisionTreeRegressor, HistGradientBoostingRegressor):
        est, model = both(cls(**({"min_samples_leaf": 2} if cls in HIST else {})).fit(x, y))
        assert model.ops[0].forest.n_nodes > 0
        assert_equal_on(est, model, np.array([[np.nan], [1.0], [-3e38], [3e38], [0.0]]))


def categorical_data(n=1200):
    r = np.random.default_rng(11)
    x = np.column_stack(
        [
            r.normal(size=n),
            r.choice([0, 2, 3, 7, 40, 255, 100000], n),
            r.normal(size=n),
            r.integers(0, 45, n),
        ]
    ).astype(np.float64)
    y = x[:, 0] + np.isin(x[:, 1], [2, 40, 100000]) * 2 + (x[:, 3] % 3) + 0.1 * r.normal(size=n)
    return x, y


CATEGORY_PROBES = np.array(
    [
        [0.1, c, -0.3, d]
        for c in (0, -0.0, 1, 2, 2.5, 3, 7, 39.999999, 40, 254, 255, 256, 99999, 100000, 1e10, 3e300, -1, np.nan)
        for d in (0, 1, 2, 31, 32, 44, 45, 63, 64, -1, 0.5, np.nan)
    ]
)


@pytest.mark.parametrize("holes", [False, True])
@pytest.mark.parametrize("task", ["regression", "binary", "three"])
def test_categories_behind_numbers(task, holes):
    """The encoder moves categorical columns to the front; codes are not categories; unknown is missing."""
    x, y = categorical_data()
    if holes:
        x[::9, 1] = np.nan
        x[::7, 0] = np.nan
    if task != "regression":
        y = np.digitize(y, [2.0] if task == "binary" else [1.0, 3.0])
    cls = HistGradientBoostingRegressor if task == "regression" else HistGradientBoostingClassifier
    est, model = both(small(cls, categorical_features=[1, 3], max_iter=8).fit(x, y))
    forest = model.ops[0].forest
    assert set(forest.feature[forest.categorical].tolist()) == {1, 3}
    assert forest.known_categories[1].tolist() == [0, 2, 3, 7, 40, 255, 100000]
    assert forest.known_categories[0] is None
    assert all(f.categories is None for f in model.features)
    assert_equal_on(est, model, np.concatenate([x, CATEGORY_PROBES]))


def test_every_column_categorical_and_none():
    x, y = categorical_data()
    est, model = both(small(HistGradientBoostingRegressor, categorical_features=[0, 1]).fit(x[:, [3, 1]], y))
    assert_equal_on(est, model, CATEGORY_PROBES[:, [3, 1]])
    est, model = both(small(HistGradientBoostingRegressor, categorical_features=[]).fit(x, y))
    assert model.ops[0].forest.known_categories is None
    assert_equal_on(est, model, CATEGORY_PROBES)


@pytest.mark.parametrize("holes", [False, True])
def test_text_categories_become_codes(holes):
    x, y = categorical_data()
    names = np.array(["red", "Blue", "green", "a b"])
    kind = names[x[:, 3].astype(int) % 4].astype(object)
    if holes:
        kind[::8] = np.nan
    frame = pd.DataFrame({"size (mm)": x[:, 0], "kind": pd.Categorical(kind), "n": x[:, 1]})
    est, model = both(small(HistGradientBoostingRegressor, categorical_features="from_dtype").fit(frame, y))
    assert [f.name for f in model.features] == ["size (mm)", "kind", "n"]
    labels = model.features[1].categories
    assert labels == ("Blue", "a b", "green", "red")
    probe = frame.copy()
    probe["kind"] = probe["kind"].cat.add_categories(["new"])
    probe.loc[:50, "kind"] = "new"
    codes = np.array([labels.index(k) if k in labels else np.nan for k in probe["kind"].tolist()])
    assert_equal_on(est, model, np.column_stack([x[:, 0], codes, x[:, 1]]), probe)


def test_pandas_categories_of_whole_numbers_and_bools():
    x, y = categorical_data()
    frame = pd.DataFrame({"a": pd.Categorical(x[:, 1].astype(int)), "b": x[:, 3] % 2 == 1, "c": x[:, 0]})
    est, model = both(small(HistGradientBoostingRegressor, categorical_features=["a", "b"]).fit(frame, y))
    assert model.features[0].categories is None
    assert_equal_on(est, model, frame.astype(np.float64).to_numpy(), frame)


@pytest.mark.parametrize("bad", [-1.0, 0.5, 2.0**31])
def test_other_number_categories_are_refused(bad):
    x, y = categorical_data()
    x[::10, 1] = bad
    est = small(HistGradientBoostingRegressor, categorical_features=[1]).fit(x, y)
    with pytest.raises(UnsupportedError, match=r"feature x1.*number the categories"):
        load_object(est, "m")


def test_none_among_text_is_refused():
    x, y = categorical_data()
    kind = np.where(x[:, 3] % 2 == 0, "a", None)
    frame = pd.DataFrame({"k": pd.Series(kind, dtype=object), "v": x[:, 0]})
    try:
        est = small(HistGradientBoostingRegressor, categorical_features=["k"]).fit(frame, y)
    except (TypeError, ValueError):
        pytest.skip("this scikit-learn takes no None")
    if len(est._preprocessor.named_transformers_["encoder"].categories_[0]) == 2:
        with pytest.raises(UnsupportedError, match="None"):
            load_object(est, "m")


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
