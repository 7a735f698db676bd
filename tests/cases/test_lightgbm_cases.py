"""Faults that users of other generators met (T1 to T14): exported C against LightGBM, and values known to be right."""

from __future__ import annotations

import lightgbm as lgb
import lightgbm_text as lt
import numpy as np
import pytest
from oracle import check_model, sweep, train

NAN = float("nan")


def column(*values: float) -> np.ndarray:
    return np.array(values, np.float64)[:, None]


@pytest.mark.parametrize("zero", [False, True])
def test_t1_the_threshold_is_not_lost_where_values_can_be_missing(zero):
    rng = np.random.default_rng(0)
    x = rng.normal(size=200)
    y = (x > 0).astype(float)
    x[:40] = NAN
    booster = train(x[:, None], y, 3, num_leaves=4, zero_as_missing=zero)
    assert f"decision_type={6 if zero else 10}"[-2:] in booster.model_to_string() or not zero
    rows = column(-1.0, 1.0, NAN, 0.0)
    low, high, _, _ = booster.predict(rows)
    assert low < high
    sweep(booster, rows)


def test_t2_nan_is_zero_where_training_had_none():
    rng = np.random.default_rng(1)
    x = rng.normal(size=(300, 3))
    booster = train(x, x[:, 0] + x[:, 1] * x[:, 2], 8, num_leaves=8)
    rows = np.array([[NAN] * 3, [0.0] * 3, [NAN, 1.0, -1.0], [0.0, 1.0, -1.0]])
    sweep(booster, rows)
    done = check_model(booster, rows)
    assert done.y[0] == done.y[1]
    assert done.y[2] == done.y[3]


def test_t3_zero_as_missing():
    rng = np.random.default_rng(2)
    x = np.round(rng.normal(size=(400, 2)), 1)
    booster = train(x, (x[:, 0] > 0) * 2.0 + (x[:, 0] == 0) * 9.0 + x[:, 1], 6, num_leaves=8, zero_as_missing=True)
    band = float(np.float32(1e-35))
    tiny = [0.0, -0.0, 1e-36, -1e-36, NAN, band, -band]
    beside = [1e-34, -1e-34, np.nextafter(band, 1.0), -np.nextafter(band, 1.0), 1e-35, -1e-35]
    rows = np.stack([np.repeat(tiny + beside, 2), np.tile([0.5, -0.5], 13)], axis=1)
    sweep(booster, rows)
    done = check_model(booster, rows)
    assert len(np.unique(done.y[: 2 * len(tiny) : 2])) == 1


def category_model(cats: int = 40) -> tuple[lgb.Booster, np.ndarray]:
    rng = np.random.default_rng(3)
    x = np.stack([rng.integers(0, cats, 800), rng.integers(0, 5, 800)], axis=1).astype(float)
    y = rng.normal(size=cats)[x[:, 0].astype(int)] + 0.1 * x[:, 1]
    params = {"num_leaves": 8, "cat_smooth": 1.0, "cat_l2": 0.1, "min_data_per_group": 1}
    return train(x, y, 6, categorical=[0], **params), x


def test_t4_categories_that_are_missing_unseen_negative_or_fractional():
    x = column(*[1.0] * 30, *[2.0] * 30, *[0.0] * 30)
    y = np.array([5.0] * 60 + [10.0] * 30)
    booster = lgb.train({"verbose": -1, "num_threads": 1}, lgb.Dataset(x, y, categorical_feature=[0]), 1)
    rows = column(NAN, 0, 1, 2, -1, 7, 0.9, 1.5)
    want = [6.5, 6.99999999, 6.5, 6.5, 6.5, 6.5, 6.99999999, 6.5]
    assert np.allclose(booster.predict(rows), want, rtol=0, atol=1e-7)
    wild = column(-0.5, -0.9, -0.0, 1e-36, -1e-36, 2.0**31, 2.0**31 - 1, 2.0**32, 1e300, -1e300, np.inf, -np.inf, 1e9)
    sweep(booster, np.concatenate([rows, np.clip(wild, -3e38, 3e38)]).astype(np.float32))
    undefined = ("-O1", "-DMCG_TRACE", "-fsanitize=undefined,float-cast-overflow", "-fno-sanitize-recover=all")
    done = check_model(booster, np.concatenate([rows, wild]), flags=undefined)
    assert np.allclose(done.y[:8, 0], want, rtol=0, atol=1e-7)


@pytest.mark.parametrize("cats", [40, 200])
def test_t6_sets_of_several_words(cats):
    booster, x = category_model(cats)
    assert "cat_boundaries=0 2" in booster.model_to_string() or cats > 40
    edge = [31, 32, 39, 40, 63, 64, -1, 95, 96, 127, 128, 199, 200, 255, 0.5, NAN]
    rows = np.array([[c, k] for c in edge for k in (0.0, 4.0)])
    sweep(booster, np.concatenate([rows, x[:50]]).astype(np.float32))
    check_model(booster, np.nan_to_num(rows), dtype="int16", leaf="float64")


def test_t9_linear_trees_are_not_dropped():
    rng = np.random.default_rng(4)
    x = rng.normal(size=(300, 3))
    booster = train(x, 3.0 * x[:, 0] + x[:, 1] * (x[:, 2] > 0), 4, num_leaves=5, linear_tree=True, min_data_in_leaf=20)
    rows = np.array([[NAN, 0.5, 0.5], [0.5, NAN, NAN], [1e-36, -1e-36, 0.0], [1e300, np.inf, 1.0], *x[:20]])
    for dtype in ("float64", "float32"):
        with np.errstate(over="ignore"):
            check_model(booster, rows, dtype=dtype)


def test_t10_averages_ova_and_square_roots():
    rng = np.random.default_rng(5)
    x = rng.normal(size=(300, 4))
    score = x[:, 0] + x[:, 1] * x[:, 2]
    three = np.digitize(score, [-0.5, 0.5])
    forest = {"boosting": "rf", "bagging_freq": 1, "bagging_fraction": 0.7, "num_leaves": 6, "min_data_in_leaf": 5}
    models = [
        train(x, score, 7, **forest),
        train(x, three, 5, objective="multiclassova", num_class=3, num_leaves=5),
        train(x, three, 5, objective="multiclassova", num_class=3, num_leaves=5, sigmoid=0.7),
        train(x, score * 100, 5, reg_sqrt=True, num_leaves=5),
        train(x, three, 3, objective="multiclass", num_class=3, **forest),
        train(x, score > 0, 5, objective="binary", **forest),
    ]
    for i, booster in enumerate(models):
        check_model(booster, x[:40], output="raw", leaf=("int16", "float32", "float64")[i % 3])
        check_model(booster, x[:40], output="proba", leaf=("float64", "int16")[i % 2])


def test_t12_thresholds_between_neighbours_of_float32():
    x = column(*[16777216.0] * 20, *[16777217.0] * 20, *[16777218.0] * 20)
    booster = train(x, np.repeat([0.0, 1.0, 2.0], 20), 1, num_leaves=3, learning_rate=1.0)
    low, middle, high = check_model(booster, column(16777216.0, 16777217.0, 16777218.0)).y[:3, 0]
    assert np.allclose([low, middle, high], [0.0, 1.0, 2.0])
    check_model(booster, np.array([[16777216], [16777217], [16777218]]), dtype="int32")
    check_model(booster, x[::20], dtype="float32", leaf="int16")


def test_t12_every_threshold_and_one_step_either_side():
    rng = np.random.default_rng(6)
    x = rng.normal(size=(300, 3)) * [1e-30, 1.0, 1e30]
    booster = train(x, x[:, 0] * 1e30 + x[:, 1] + x[:, 2] / 1e30, 6, num_leaves=10)
    t = booster.trees_to_dataframe().dropna(subset=["threshold"])
    for dtype in (np.float64, np.float32):
        rows = []
        for feature, value in zip(t.split_feature, t.threshold, strict=True):
            near = dtype(value)
            for v in (np.nextafter(near, dtype(-np.inf)), near, np.nextafter(near, dtype(np.inf))):
                row = rng.normal(size=3) * [1e-30, 1.0, 1e30]
                row[int(feature[-1])] = v
                rows.append(row)
        sweep(booster, np.array(rows, dtype), dtypes=[np.dtype(dtype).name])


def test_t13_a_stump_between_zero_and_negatives():
    x = column(*[0.0] * 30, *[-1.0] * 30)
    booster = train(x, np.repeat([5.0, 1.0], 30), 1, num_leaves=2)
    threshold = -1.0000000180025095e-35
    assert f"threshold={threshold!r}" in booster.model_to_string()
    band = float(np.float32(1e-35))
    rows = column(
        threshold, np.nextafter(threshold, -1), np.nextafter(threshold, 1), band, -band, 1e-35, -1e-35, 0, -0.0
    )
    sweep(booster, rows)
    right = booster.predict([[0.0]])[0]
    assert booster.predict([[threshold]])[0] == right
    assert check_model(booster, rows).y[0, 0] == booster.predict([[0.0]], raw_score=True)[0]


def test_t14_a_row_on_the_threshold_goes_left():
    rng = np.random.default_rng(7)
    x = rng.integers(-50, 50, size=(400, 2)) / 8.0
    booster = train(x, x[:, 0] + np.abs(x[:, 1]), 5, num_leaves=8)
    t = booster.trees_to_dataframe().dropna(subset=["threshold"])
    rows = np.zeros((len(t), 2))
    for row, feature, value in zip(rows, t.split_feature, t.threshold, strict=True):
        row[int(feature[-1])] = value
    sweep(booster, rows, dtypes=["float64"])
    stump = lt.Text([lt.stump(12.0)], 1)
    oracle = lgb.Booster(model_str=stump.text())
    assert check_model(oracle, column(12.0, np.nextafter(12.0, 13.0))).y[:2, 0].tolist() == [1.0, 2.0]
