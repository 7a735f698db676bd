"""scikit-learn estimators: the Model's scores are the library's, bit for bit, where faults hide.

Rows stand on every threshold and one step of float32 and of float64 to either side; NaN and infinity are among them
where the library takes them.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pd = pytest.importorskip("pandas")
pytest.importorskip("sklearn")

from sklearn.dummy import DummyClassifier, DummyRegressor  # noqa: E402
from sklearn.ensemble import (  # noqa: E402
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
)
from sklearn_models import (  # noqa: E402
    BINARY,
    BOOSTED,
    FORESTS,
    HIST,
    HOLES,
    POSITIVE,
    RANDOM,
    SCORE,
    THREE,
    TREES,
    F,
    X,
    assert_equal_on,
    assert_same,
    both,
    small,
)

from mcugen.core.passes import evaluate  # noqa: E402
from mcugen.errors import UnsupportedError  # noqa: E402
from mcugen.frontends.objects import load_object  # noqa: E402
from mcugen.frontends.sklearn import ESTIMATORS  # noqa: E402
from mcugen.frontends.sklearn_trees import through_float32  # noqa: E402
from mcugen.trees.forest import Missing  # noqa: E402


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
