"""Categories of scikit-learn's histogram estimators: numbers, text, pandas, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

pd = pytest.importorskip("pandas")
pytest.importorskip("sklearn")

from sklearn.ensemble import (  # noqa: E402
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
)
from sklearn_models import assert_equal_on, both, small  # noqa: E402

from mcugen.errors import UnsupportedError  # noqa: E402
from mcugen.frontends.objects import load_object  # noqa: E402


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
