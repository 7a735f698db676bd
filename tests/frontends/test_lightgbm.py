"""Every switch of LightGBM's training and file format: float IR and integer reference against Booster.predict."""

from __future__ import annotations

import lightgbm as lgb
import lightgbm_text as lt
import numpy as np
import pytest
from oracle import same_rows, train

from mcugen.core.passes import evaluate, run_passes
from mcugen.core.types import DType, Model
from mcugen.errors import InputError, UnsupportedError
from mcugen.frontends.lightgbm import load_text
from mcugen.frontends.objects import load_object
from mcugen.trees.lower import TREE_PASSES, TreeOptions, ensemble_of
from mcugen.trees.proof import reference, walked
from mcugen.trees.signals import InputSpec, Signal
from mcugen.trees.source import Link
from mcugen.trees.vectors import make_vectors
from mcugen.trees.walk import leaf_index

NAN = float("nan")
RANDOM = np.random.default_rng(31)
X = RANDOM.normal(size=(240, 4))
SCORE = X[:, 0] + X[:, 1] * X[:, 2] + 0.3 * RANDOM.normal(size=240)
BAND = float(np.float32(1e-35))


def link_of(model: Model) -> Link:
    return next(op for op in model.ops if isinstance(op, Link))


def agree(booster: lgb.Booster, rows: np.ndarray, text: str | None = None, **chosen: int) -> Model:
    """Leaves and raw scores of the float IR and of the integer reference, bit by bit; predictions to rounding."""
    data = (text or booster.model_to_string()).encode()
    source = load_text(data, "model.txt", "m", chosen.get("num_iteration"), chosen.get("start_iteration", 0))
    spec = InputSpec(DType.F64, (Signal(),) * len(source.features))
    machine = run_passes(source, TREE_PASSES, TreeOptions(spec, "raw", DType.F64))
    x = np.concatenate([rows, make_vectors(*walked(machine), limit=300).x])
    said = {k: np.asarray(booster.predict(x, **{k: True}, **chosen)) for k in ("raw_score", "pred_leaf")}
    raw, leaf = said["raw_score"].reshape(len(x), -1), said["pred_leaf"].reshape(len(x), -1)
    same_rows(leaf_index(ensemble_of(source).forest, x).astype(int), leaf.astype(int), x, "leaves")
    env = evaluate(source, {"x": x})
    same_rows(env["raw"], raw, x, "raw score")
    same_rows(reference(source, machine, spec, x).y, raw, x, "integer reference")
    want = np.asarray(booster.predict(x, **chosen)).reshape(len(x), -1)
    with np.errstate(invalid="ignore"):
        assert np.allclose(env["prediction"], want, rtol=1e-13, atol=1e-300, equal_nan=True)
    return source


OBJECTIVES = [
    ("regression", "identity", {}),
    ("regression", "signed_square", {"reg_sqrt": True}),
    ("regression_l1", "identity", {}),
    ("regression_l1", "signed_square", {"reg_sqrt": True}),
    ("huber", "identity", {}),
    ("huber", "identity", {"reg_sqrt": True}),
    ("fair", "identity", {}),
    ("fair", "signed_square", {"reg_sqrt": True}),
    ("quantile", "identity", {"alpha": 0.3}),
    ("quantile", "signed_square", {"alpha": 0.3, "reg_sqrt": True}),
    ("mape", "identity", {}),
    ("mape", "signed_square", {"reg_sqrt": True}),
    ("poisson", "exp", {}),
    ("gamma", "exp", {}),
    ("tweedie", "exp", {"tweedie_variance_power": 1.3}),
    ("binary", "sigmoid", {}),
    ("binary", "sigmoid", {"sigmoid": 0.7}),
    ("multiclass", "softmax", {"num_class": 3}),
    ("multiclassova", "sigmoid", {"num_class": 3}),
    ("multiclassova", "sigmoid", {"num_class": 3, "sigmoid": 0.7}),
    ("cross_entropy", "sigmoid", {}),
    ("cross_entropy_lambda", "log1p_exp", {}),
]


def labels_for(objective: str) -> np.ndarray:
    if objective.startswith("multiclass"):
        return np.digitize(SCORE, [-0.5, 0.5])
    if objective == "binary":
        return (SCORE > 0).astype(float)
    if objective.startswith("cross"):
        return 1.0 / (1.0 + np.exp(-SCORE))
    return np.exp(SCORE) if objective in ("poisson", "gamma", "tweedie") else SCORE * 5.0


@pytest.mark.parametrize(("objective", "link", "params"), OBJECTIVES, ids=str)
def test_objectives(objective, link, params):
    booster = train(X, labels_for(objective), 4, objective=objective, num_leaves=5, **params)
    model = agree(booster, X[:40])
    assert link_of(model).kind == link
    assert link_of(model).slope == params.get("sigmoid", 1.0)


@pytest.mark.parametrize("objective", ["lambdarank", "rank_xendcg"])
def test_ranking_objectives(objective):
    data = lgb.Dataset(X, (SCORE > 0).astype(int), group=[60] * 4)
    booster = lgb.train({"objective": objective, "num_leaves": 5, "verbose": -1, "num_threads": 1}, data, 4)
    assert link_of(agree(booster, X[:40])).kind == "identity"


def test_a_custom_objective_has_no_transform():
    def squares(score, data):
        return score - data.get_label(), np.ones(len(score))

    booster = lgb.train(
        {"objective": squares, "num_leaves": 5, "verbose": -1, "num_threads": 1}, lgb.Dataset(X, SCORE), 4
    )
    model = agree(booster, X[:40])
    assert link_of(model).kind == "identity"
    assert model.labels == ()


@pytest.mark.parametrize("line", ["huber sqrt", "poisson sqrt", "binary sigmoid:-1", "binary sigmoid:x", "regresion"])
def test_objective_lines_that_are_refused(line):
    text = lt.Text([lt.stump(0.5)], 1, objective=line).text()
    with pytest.raises((InputError, UnsupportedError), match="objective"):
        load_text(text.encode(), "model.txt", "m")


@pytest.mark.parametrize("params", [{}, {"use_missing": False}, {"zero_as_missing": True}], ids=str)
@pytest.mark.parametrize("holes", [0.0, 0.3])
def test_missing_types_and_default_sides(params, holes):
    rng = np.random.default_rng(32)
    x = np.round(X, 1)
    x[rng.random(x.shape) < holes] = NAN
    y = np.where(np.isnan(x[:, 0]), 2.0, x[:, 0]) - np.where(np.isnan(x[:, 1]), 3.0, x[:, 1] * (x[:, 1] == 0))
    booster = train(x, y, 6, num_leaves=8, **params)
    agree(booster, np.concatenate([x[:60], np.full((1, 4), NAN), np.zeros((1, 4))]))
    text = booster.model_to_string()
    kinds = {
        int(d) >> 2 & 3 for line in text.splitlines() if line.startswith("decision_type=") for d in line[14:].split()
    }
    expected = {0} if "use_missing" in params else {1} if "zero_as_missing" in params else {0, 2} if holes else {0}
    assert kinds <= expected | {0}
    assert max(expected) in kinds


@pytest.mark.parametrize("cats", [2, 20, 40, 300])
@pytest.mark.parametrize("onehot", [1, 4, 1000])
def test_categorical_splits(cats, onehot):
    rng = np.random.default_rng(33)
    x = np.stack([rng.integers(0, cats, 900).astype(float), rng.normal(size=900)], axis=1)
    y = rng.normal(size=cats)[x[:, 0].astype(int)] + 0.1 * x[:, 1]
    x[::11, 0] = NAN
    params = {"max_cat_to_onehot": onehot, "min_data_per_group": 1, "cat_smooth": 1.0, "num_leaves": 6}
    booster = train(x, y, 4, categorical=[0], **params)
    odd = [-1, -0.5, -0.9, 0.9, 1.5, cats, cats + 0.5, 2**31 - 1, 2**31, 2**32, 2**32 + 1, 1e300, np.inf, -np.inf, NAN]
    odd += [1e-36, -1e-36, BAND, -BAND, -(2.0**31), -(2.0**31) - 1, 2.0**63, 31, 32, 63, 64]
    agree(booster, np.array([[c, v] for c in odd for v in (-1.0, 1.0)]))


def test_a_forest_of_categories_only():
    rng = np.random.default_rng(34)
    x = rng.integers(0, 30, (400, 2)).astype(float)
    y = rng.normal(size=30)[x[:, 0].astype(int)]
    agree(train(x, y, 3, categorical=[0, 1], min_data_per_group=1, num_leaves=5), x[:50])


def test_linear_trees_fall_back_where_an_input_is_nan():
    rng = np.random.default_rng(35)
    x = np.stack([*X.T[:3], rng.integers(0, 6, 240)], axis=1)
    y = 2.0 * x[:, 0] + x[:, 1] * (x[:, 2] > 0) + x[:, 3]
    booster = train(x, y, 4, linear_tree=True, num_leaves=5, categorical=[3], min_data_in_leaf=10)
    rows = np.repeat(x[:20], 5, axis=0)
    for column in range(4):
        rows[column::5, column] = NAN
    agree(booster, rows)
    text = booster.model_to_string()
    assert "num_features=0" in text.split("Tree=1")[0]


def test_linear_terms_inside_the_zero_band_are_zero():
    # A coefficient this large shows what the term saw: 1e-36 as itself would give 10.
    tree = lt.stump(5.0)
    tree.linear = [(1.0, [(0, 1e37), (1, -1e37)]), (2.0, [])]
    booster = lgb.Booster(model_str=lt.Text([tree], 2).text())
    values = [0.0, -0.0, 1e-36, -1e-36, BAND, -BAND, 1e-35, -1e-35, np.nextafter(BAND, 1), 2e-35, -2e-35, 5e-324, NAN]
    rows = np.array([[a, b] for a in values for b in values])
    agree(booster, rows)
    band = booster.predict(np.array([[1e-36, 0.0], [BAND, -BAND], [2e-35, 0.0]]), raw_score=True)
    assert band[:2].tolist() == [1.0, 1.0]
    assert band[2] > 100


def test_linear_terms_at_infinity():
    tree = lt.stump(5.0)
    tree.linear = [(1.0, [(0, 0.0), (1, 1.0)]), (2.0, [(1, -1.0)])]
    booster = lgb.Booster(model_str=lt.Text([tree, lt.stump(0.0)], 2).text())
    agree(booster, np.array([[a, b] for a in (np.inf, -np.inf, 1.0, NAN) for b in (np.inf, -np.inf, 1e308, NAN)]))


def test_linear_trees_of_one_leaf():
    single = lt.Tree([], [], [], [5.0], [(1.0, [(0, 2.0)])])
    agree(lgb.Booster(model_str=lt.Text([single, lt.stump(0.0)], 1).text()), np.array([[1.0], [NAN], [-2.0]]))


@pytest.mark.parametrize("boosting", ["dart", "goss", "rf"])
@pytest.mark.parametrize("objective", ["regression", "multiclass"])
def test_boosting(boosting, objective):
    params = {"boosting": boosting, "num_leaves": 5, "drop_rate": 0.5, "objective": objective}
    params |= {"num_class": 3} if objective == "multiclass" else {}
    params |= {"bagging_freq": 1, "bagging_fraction": 0.6} if boosting == "rf" else {}
    agree(train(X, labels_for(objective), 6, **params), X[:40])


@pytest.mark.parametrize("chosen", [{}, {"num_iteration": 2}, {"start_iteration": 3}, {"num_iteration": 9}])
@pytest.mark.parametrize("boosting", ["gbdt", "rf"])
def test_iterations(chosen, boosting):
    params = {"bagging_freq": 1, "bagging_fraction": 0.6, "num_leaves": 5, "boosting": boosting}
    for objective in ("regression", "multiclass"):
        more = {"num_class": 3} if objective == "multiclass" else {}
        booster = train(X, labels_for(objective), 5, objective=objective, **params, **more)
        agree(booster, X[:20], text=booster.model_to_string(num_iteration=-1), **chosen)


def test_iterations_that_do_not_exist():
    text = train(X, SCORE, 3, num_leaves=3).model_to_string().encode()
    for chosen in ((0, 0), (-1, 0), (1, 3), (1, -1)):
        with pytest.raises(InputError, match="iteration"):
            load_text(text, "model.txt", "m", *chosen)


def test_early_stopping():
    data = lgb.Dataset(X[:160], SCORE[:160])
    params = {"num_leaves": 8, "learning_rate": 0.5, "verbose": -1, "num_threads": 1}
    valid = lgb.Dataset(X[160:], SCORE[160:], reference=data)
    stop = lgb.early_stopping(3, verbose=False)
    for keep in (False, True):
        booster = lgb.train(params, data, 50, valid_sets=[valid], callbacks=[stop], keep_training_booster=keep)
        assert 0 < booster.best_iteration < 50
        x = X[:30]
        found = evaluate(load_object(booster, "m"), {"x": x})["raw"][:, 0]
        assert (found == booster.predict(x, raw_score=True)).all()
        agree(booster, x)


def test_pandas_categories_of_words_and_numbers():
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(36)
    words = rng.choice(["ABRT-7", "deep drawing", "0.3 mm, 'thin'"], 300)
    frame = pd.DataFrame(
        {
            "text": pd.Categorical(words),
            "number": pd.Categorical(rng.choice([10, 20, 40], 300)),
            "plain": rng.normal(size=300),
            "unused": pd.Categorical(["same"] * 300),
        }
    )
    y = (words == "deep drawing") * 2.0 + (frame.number.astype(int) == 20) + frame.plain
    params = {"num_leaves": 6, "verbose": -1, "num_threads": 1, "min_data_per_group": 1, "cat_smooth": 1}
    booster = lgb.train(params, lgb.Dataset(frame, y), 5)
    codes = np.stack(
        [frame.text.cat.codes, frame.number.cat.codes, frame.plain, frame.unused.cat.codes], axis=1
    ).astype(float)
    model = load_object(booster, "m")
    by_name = {f.name: f.categories for f in model.features}
    assert by_name["text"] == ("0.3 mm, 'thin'", "ABRT-7", "deep drawing")
    assert by_name["number"] == ("10", "20", "40")
    assert by_name["plain"] is None
    raw = evaluate(model, {"x": codes})["raw"][:, 0]
    assert (raw == booster.predict(frame, raw_score=True)).all()
    unseen = frame.assign(text=pd.Categorical(["new"] * 300, categories=["new"]))
    codes[:, 0] = NAN
    assert (evaluate(model, {"x": codes})["raw"][:, 0] == booster.predict(unseen, raw_score=True)).all()


def test_single_leaves_and_constant_features():
    x = X.copy()
    x[:, 1] = 7.0
    booster = train(x, SCORE, 4, num_leaves=4)
    assert "none" in booster.model_to_string()
    agree(booster, x[:20])
    agree(train(X, np.full(240, -2.5), 3), X[:5])
    agree(train(X, np.zeros(240), 2, objective="binary"), X[:5])
    agree(train(X, np.ones(240), 2, objective="binary"), X[:5])
    agree(train(X, np.where(SCORE > 0, 2, 0), 2, objective="multiclass", num_class=4, num_leaves=3), X[:5])


def test_monotone_constraints():
    booster = train(X, SCORE, 4, num_leaves=6, monotone_constraints=[1, -1, 0, 0])
    assert "monotone_constraints=1 -1 0 0" in booster.model_to_string()
    agree(booster, X[:20])


def test_refit_and_continued_training():
    first = train(X, SCORE, 3, num_leaves=5)
    agree(first.refit(X, SCORE * 2.0, decay_rate=0.3), X[:20])
    params = {"num_leaves": 6, "verbose": -1, "num_threads": 1}
    more = lgb.train(params, lgb.Dataset(X, SCORE), 3, init_model=first)
    assert more.num_trees() == 6
    agree(more, X[:20])
    agree(lgb.Booster(model_str=more.model_to_string()), X[:20])


def test_initial_scores_are_the_callers():
    data = lgb.Dataset(X, SCORE, init_score=np.full(240, 10.0))
    agree(lgb.train({"num_leaves": 5, "verbose": -1, "num_threads": 1}, data, 3), X[:20])


@pytest.mark.parametrize(
    "params",
    [
        {"feature_fraction": 0.5},
        {"extra_trees": True},
        {"path_smooth": 1.0},
        {"cegb_tradeoff": 2.0, "cegb_penalty_split": 1e-4},
        {"max_bin": 5},
        {"interaction_constraints": [[0, 1], [2, 3]]},
        {"enable_bundle": False},
        {"use_quantized_grad": True},
        {"boost_from_average": False},
    ],
    ids=str,
)
def test_other_switches(params):
    agree(train(X, SCORE, 4, num_leaves=6, **params), X[:20])


def test_nodes_in_any_order():
    """A root whose children stand anywhere: LightGBM writes parents first, the format does not ask for it."""
    nodes = [lt.Node(0, 0.0), lt.Node(0, 1.0), lt.Node(0, -1.0), lt.Node(1, 0.5)]
    tree = lt.Tree(nodes, [3, -1, -2, 2], [1, -3, -4, -5], [1.0, 2.0, 4.0, 8.0, 16.0])
    rows = np.array([[a, b] for a in (-2, -1, 0, 0.5, 1, 2) for b in (0.0, 0.5, 1.0)])
    agree(lgb.Booster(model_str=lt.Text([tree], 2).text()), rows)


def test_feature_names_split_at_blanks_only():
    names = ["a\u00a0b", "c\u3000d", "größe", "x"]
    booster = lgb.train({"num_leaves": 3, "verbose": -1}, lgb.Dataset(X, SCORE, feature_name=names), 2)
    assert [f.name for f in load_object(booster, "m").features] == booster.feature_name()
