"""Faults that users of other generators met (T8, T16 to T28): limits of tables, flags, formats, selections of trees."""

from __future__ import annotations

import re
import shutil

import lightgbm as lgb
import lightgbm_text as lt
import numpy as np
import pytest
from oracle import QUICK, built, check_model, exported, sweep, train
from sklearn.ensemble import RandomForestClassifier

from mcugen.errors import InputError, InternalError
from mcugen.frontends.lightgbm import load_text
from mcugen.trees.signals import Signal
from mcugen.verify.compiler import find_host_compiler

NAN = float("nan")


def column(*values: float) -> np.ndarray:
    return np.array(values, np.float64)[:, None]


@pytest.mark.parametrize("leaf", ["float64", "int16"])
def test_t8_sklearn_knows_where_missing_values_go(tmp_path, leaf):
    rng = np.random.default_rng(8)
    x = rng.normal(size=(300, 3)).astype(np.float32)
    y = (x[:, 0] > 0).astype(int)
    x[(y == 1) & (rng.random(300) < 0.4), 0] = np.nan
    x[(y == 0) & (rng.random(300) < 0.4), 1] = np.nan
    forest = RandomForestClassifier(5, max_depth=4, random_state=0).fit(x, y)
    result = exported(forest, tmp_path / "m", "float32", leaf, "proba")
    rows = np.concatenate([x, np.full((1, 3), np.nan, np.float32), result.reference.x])
    with built(result) as host:
        found = host.run(rows)
    usable = ~np.isinf(rows).any(axis=1)
    want = forest.predict_proba(rows[usable])
    assert np.abs(found[usable] - want).max() <= result.model.bounds["score"].error + 1e-6


def test_t16_thresholds_are_not_truncated():
    x = column(*range(20))
    step = train(x, (x[:, 0] >= 10).astype(float), 1, num_leaves=2, learning_rate=1.0, min_sum_hessian_in_leaf=0)
    for dtype in ("float64", "int32", "uint8"):
        y = check_model(step, x, dtype=dtype).y[:20, 0]
        assert np.allclose(y, x[:, 0] >= 10)
    thresholds = (12.0, -12.0, -12.5, 12.5, -1.0, -0.5)
    booster = lgb.Booster(model_str=lt.Text([lt.stump(t) for t in thresholds], 1, infos=["[-20:20]"]).text())
    leaf = check_model(booster, column(*range(-20, 21)), dtype="int16").leaf[:41]
    assert leaf.tolist() == [[int(v > t) for t in thresholds] for v in range(-20, 21)]


def test_t17_fractions_are_scaled_or_refused(tmp_path):
    rng = np.random.default_rng(9)
    x = np.round(rng.random((300, 2)), 2)
    booster = train(x, x[:, 0] + x[:, 1] ** 2, 5, num_leaves=6)
    with pytest.raises(InputError, match="Column_0"):
        exported(booster, tmp_path / "a", "int16", "int16", "raw")
    np.save(tmp_path / "calib.npy", x)
    result = exported(booster, tmp_path / "b", "int16", "float64", "raw", calib=tmp_path / "calib.npy")
    signals = [(f.scale, f.offset) for f in result.model.features]
    with built(result) as host:
        counts = np.stack([np.rint((x[:, i] - o) / s) for i, (s, o) in enumerate(signals)], axis=1).astype(np.int16)
        found = host.run(counts)[:, 0]
    assert (found == booster.predict(x, raw_score=True)).all()


def ladder(values: np.ndarray) -> lt.Tree:
    """A tree of least depth over one feature: leaf i for x in (i - 1, i]."""
    nodes, left, right = [], [], []
    spans = [(0, len(values))]
    for low, high in spans:
        middle = (low + high) // 2
        nodes.append(lt.Node(0, middle - 1.0))
        for side, (a, b) in ((left, (low, middle)), (right, (middle, high))):
            side.append(~a if b - a == 1 else len(spans))
            spans.extend([(a, b)] * (b - a > 1))
    return lt.Tree(nodes, left, right, values.tolist())


def test_t18_more_than_65535_nodes():
    count = 65600
    values = np.random.default_rng(10).normal(size=count)
    text = lt.Text([ladder(values), lt.stump(100.0)], 1, infos=[f"[0:{count}]"]).text()
    booster = lgb.Booster(model_str=text)
    rows = np.array([[0], [65534], [65535], [65536], [65537], [count - 1], [count + 5], [-1], [100], [101]])
    done = check_model(booster, rows, dtype="int32")
    assert done.leaf[:6, 0].tolist() == [0, 65534, 65535, 65536, 65537, count - 1]


def test_t18_more_than_65535_nodes_in_many_trees():
    rng = np.random.default_rng(11)
    trees = [ladder(rng.normal(size=1700)) for _ in range(40)]
    booster = lgb.Booster(model_str=lt.Text(trees, 1, infos=["[0:1699]"]).text())
    check_model(booster, np.arange(-2, 1710)[:, None], dtype="int16", leaf="int16")


@pytest.mark.parametrize("number", [255, 256, 299])
def test_t19_feature_numbers_beyond_a_byte(number):
    rng = np.random.default_rng(12)
    x = rng.normal(size=(200, 300))
    booster = train(x, x[:, number] * 5.0 + (x[:, 3] > 0), 3, num_leaves=6)
    sweep(booster, x[:30])


def test_t21_single_leaf_trees():
    x = np.random.default_rng(13).normal(size=(50, 2))
    constant = train(x, np.full(50, 3.25), 3)
    sweep(constant, x[:5], dtypes=["float32"], leaves=("float64", "float32", "int16", "int32"))
    if shutil.which("clang"):
        check_model(constant, x[:5], compiler=find_host_compiler("clang"))
    check_model(constant, x[:5].astype(np.int8), dtype="int8", output="proba")
    mixed = lt.Text([lt.Tree([], [], [], [2.5]), lt.stump(0.5), lt.Tree([], [], [], [-1.0]), lt.stump(1.5)], 1)
    sweep(lgb.Booster(model_str=mixed.text()), column(0.0, 1.0, 2.0), dtypes=["float64"])


def test_t22_forests_vote_softly(tmp_path):
    rng = np.random.default_rng(14)
    x = rng.normal(size=(200, 3)).astype(np.float32)
    y = np.array(["a", "b", "c"])[rng.integers(0, 3, 200)]
    forest = RandomForestClassifier(4, max_depth=3, random_state=0).fit(x, y)
    rows = rng.normal(size=(2000, 3)).astype(np.float32)
    result = exported(forest, tmp_path / "m", "float32", "float64", "class")
    assert result.model.labels == ("a", "b", "c")
    with built(result) as host:
        found = np.array(result.model.labels)[host.run(rows)[:, 0]]
    proba = np.sort(forest.predict_proba(rows), axis=1)
    clear = proba[:, -1] - proba[:, -2] > 1e-12
    hard = np.array([[t.predict(rows)] for t in forest.estimators_]).astype(int)[:, 0]
    votes = np.stack([(hard == k).sum(axis=0) for k in range(3)], axis=1)
    assert (found == forest.predict(rows))[clear].all()
    assert (np.array(["a", "b", "c"])[votes.argmax(axis=1)] != forest.predict(rows)).any()


def test_t22_ties_go_to_the_lowest_class():
    node = [lt.Node(0, 0.0)]
    trees = [lt.Tree(node, [-1], [-2], v) for v in ([1.0, 0.0], [1.0, 2.0], [0.5, 2.0])]
    booster = lgb.Booster(model_str=lt.Text(trees, 1, "multiclass num_class:3", 3).text())
    for leaf in ("float64", "float32", "int16"):
        y = check_model(booster, column(-1.0, 1.0), output="class", leaf=leaf).y[:2, 0]
        assert y.tolist() == [0, 1]


def compilers() -> list[str]:
    return [c for c in ("gcc", "clang") if shutil.which(c)]


@pytest.mark.parametrize("name", compilers())
@pytest.mark.parametrize("flags", [("-O3", "-ffast-math"), ("-Ofast",)])
def test_t24_fast_math_leaves_integers_alone(name, flags):
    rng = np.random.default_rng(15)
    x = rng.normal(size=(300, 3))
    x[::4, 0] = NAN
    booster = train(x, np.nan_to_num(x[:, 0], nan=3.0) + x[:, 1], 5, num_leaves=6)
    for zero in (False, True):
        booster = train(np.round(x, 1), np.nan_to_num(x[:, 0], nan=3.0), 5, num_leaves=6, zero_as_missing=zero)
        for dtype in ("float32", "float64"):
            use = {"dtype": dtype, "leaf": "int16", "compiler": find_host_compiler(name)}
            # Without start files: crtfastmath.o would make the whole Python process flush subnormals to zero.
            check_model(booster, x[:40], flags=(*flags, "-nostartfiles", "-DMCG_TRACE"), **use)


@pytest.mark.parametrize("name", compilers())
@pytest.mark.parametrize(("leaf", "output"), [("float64", "raw"), ("float32", "raw"), ("int16", "proba")])
def test_t24_fast_math_is_refused_where_floats_count(tmp_path, name, leaf, output):
    x = np.random.default_rng(16).normal(size=(100, 2))
    booster = train(x, x[:, 0] > 0, 2, objective="binary", num_leaves=3)
    result = exported(booster, tmp_path / "m", "float32", leaf, output)
    for flag in ("-ffast-math", "-Ofast"):
        with (
            pytest.raises(InternalError, match=r"mcugen: .*-ffast-math"),
            built(result, (*QUICK, flag), find_host_compiler(name)),
        ):
            pass


def table_numbers(text: str, symbol: str) -> list[int | float]:
    """The numbers of one table as a C compiler reads them: hex floats and integers, macros for the extremes."""
    body = re.search(rf"\b{symbol}(?:_image)?\[\d+\] = \{{\n(.*?)\n\}};", text, re.DOTALL)
    assert body, f"no table {symbol}"
    words = [w.strip(" (){}\n") for w in re.sub(r"U?INT\d+_C", "", body[1]).split(",")]
    return [c_number(w) for w in words if w]


def c_number(word: str) -> int | float:
    if "MIN" in word or " - 1" in word:
        bits = re.search(r"INT(\d+)_MIN", word)
        return -(2 ** (int(bits[1]) - 1)) if bits else int(word.removesuffix(" - 1")) - 1
    if re.search(r"[.pP]", word):
        return float.fromhex(word.rstrip("fFlL")) if "x" in word.lower() else float(word.rstrip("fFlL"))
    return int(word.rstrip("uUlL"), 0)


@pytest.mark.parametrize(
    ("dtype", "leaf", "linear"),
    [
        ("float64", "float64", False),
        ("float32", "float32", False),
        ("float64", "float64", True),
        ("int32", "int32", False),
    ],
)
def test_t25_every_constant_of_the_c_has_the_bits_of_its_table(tmp_path, dtype, leaf, linear):
    rng = np.random.default_rng(17)
    x = rng.normal(size=(400, 3)) * [1.0, 1e-30, 1e20]
    x = np.rint(x * 1000) if dtype == "int32" else x
    x = np.clip(x, -2e9, 2e9) if dtype == "int32" else x
    x = np.stack([*x.T, rng.integers(0, 40, 400)], axis=1)
    booster = train(
        x,
        x[:, 0] / 3 + np.sin(x[:, 3]) + rng.normal(size=400) * 1e-8,
        6,
        categorical=[3],
        num_leaves=8,
        linear_tree=linear,
        min_data_in_leaf=8,
        cat_smooth=1,
        min_data_per_group=1,
    )
    ways = "" if linear else "search+tables"  # trees as code have few tables
    result = exported(booster, tmp_path / "m", dtype, leaf, "raw", ways=ways)
    text = (result.out / "m.c").read_text()
    seen = 0
    for item in (a.item for a in result.plan.assignments if a.item.data is not None):
        data = item.data.reshape(-1)
        values = np.array(table_numbers(text, item.symbol), data.dtype)
        assert values.tobytes() == data.tobytes(), item.symbol
        seen += data.size
    assert seen > 100


def test_t26_thresholds_beyond_int32(tmp_path):
    x = column(*[3e10] * 20, *[1e10] * 20, *[-3e10] * 20)
    booster = train(x, np.repeat([1.0, 2.0, 3.0], 20), 1, num_leaves=3, learning_rate=1.0)
    sweep(booster, column(3e10, 1e10, -3e10))
    with pytest.raises(InputError, match=r"Column_0.*int32"):
        exported(booster, tmp_path / "m", "int32", "int16", "raw")
    inner = lgb.Booster(model_str=lt.Text([lt.stump(3e10), lt.stump(-3e10), lt.stump(7.0)], 1, infos=["[0:9]"]).text())
    ends = np.array([[-(2**31)], [2**31 - 1], [7], [8]])
    check_model(inner, ends, dtype="int32")
    check_model(inner, np.array([[-128], [127], [7], [8]]), dtype="int8")


def test_t26_ends_of_integer_types_with_thresholds_at_them():
    for dtype, low, high in (("int8", -128, 127), ("uint8", 0, 255), ("int16", -(2**15), 2**15 - 1)):
        trees = [lt.stump(float(t)) for e in (low, high) for t in (e - 1, e - 0.5, e, e + 0.5, e + 1)]
        booster = lgb.Booster(model_str=lt.Text(trees, 1, infos=[f"[{low}:{high}]"]).text())
        check_model(booster, np.arange(low, high + 1, max(1, (high - low) // 300))[:, None], dtype=dtype)


def early_stopped() -> tuple[lgb.Booster, np.ndarray]:
    rng = np.random.default_rng(18)
    x = rng.normal(size=(300, 4))
    y = x[:, 0] + rng.normal(size=300)
    data = lgb.Dataset(x[:200], y[:200])
    params = {"verbose": -1, "num_threads": 1, "num_leaves": 8, "learning_rate": 0.3}
    stop = lgb.early_stopping(3, verbose=False)
    return lgb.train(
        params,
        data,
        40,
        valid_sets=[lgb.Dataset(x[200:], y[200:], reference=data)],
        callbacks=[stop],
        keep_training_booster=True,
    ), x


def test_t28_the_best_iteration(tmp_path):
    booster, x = early_stopped()
    assert 0 < booster.best_iteration < booster.current_iteration()
    done = check_model(booster, x[:50])
    assert done.leaf.shape[1] == booster.best_iteration
    booster.save_model(tmp_path / "best.txt")
    check_model(tmp_path / "best.txt", x[:50], booster=booster)
    booster.save_model(tmp_path / "all.txt", num_iteration=-1)
    whole = lgb.Booster(model_file=tmp_path / "all.txt")
    assert whole.num_trees() == booster.current_iteration()
    check_model(tmp_path / "all.txt", x[:50], booster=whole)


@pytest.mark.parametrize("chosen", [(0, 3), (2, None), (2, 2), (3, 100), (5, 1)])
@pytest.mark.parametrize("kind", ["gbdt", "rf", "multiclass"])
def test_t28_num_iteration_and_start_iteration(tmp_path, chosen, kind):
    rng = np.random.default_rng(19)
    x = rng.normal(size=(200, 3))
    params = {"num_leaves": 5}
    if kind == "rf":
        params |= {"boosting": "rf", "bagging_freq": 1, "bagging_fraction": 0.7}
    y = x[:, 0] + x[:, 1] ** 2
    if kind == "multiclass":
        params |= {"objective": "multiclass", "num_class": 3}
        y = np.digitize(y, [0.0, 1.0])
    booster = train(x, y, 6, **params)
    booster.save_model(tmp_path / "m.txt")
    start, count = chosen
    use = {"start_iteration": start} | ({} if count is None else {"num_iteration": count})
    check_model(tmp_path / "m.txt", x[:20], booster=booster, chosen=use)
    check_model(tmp_path / "m.txt", x[:20], booster=booster, chosen=use, output="proba")


@pytest.mark.parametrize("boosting", ["dart", "goss", "rf"])
def test_t28_boosting(boosting):
    rng = np.random.default_rng(20)
    x = rng.normal(size=(300, 3))
    params = {"boosting": boosting, "num_leaves": 6, "drop_rate": 0.5}
    params |= {"bagging_freq": 1, "bagging_fraction": 0.7} if boosting == "rf" else {}
    booster = train(x, x[:, 0] > x[:, 1], 8, objective="binary", sigmoid=0.7, **params)
    assert "binary sigmoid:0.7" in booster.model_to_string()
    for output, leaf in (("raw", "float64"), ("raw", "int16"), ("proba", "float64"), ("class", "int16")):
        check_model(booster, x[:50], output=output, leaf=leaf)


def old_text(text: str, version: str) -> str:
    """A model of today as LightGBM of that version wrote it: ``v3`` since 3.0, ``v2`` before, without newer keys."""
    text = text.replace("version=v4", f"version={version}")
    newer = ("is_linear",) if version == "v3" else ("is_linear", "leaf_weight", "internal_weight", "tree_sizes!")
    lines = [line for line in text.split("\n") if not line.startswith(newer)]
    return "\n".join(lines)


@pytest.mark.parametrize("version", ["v2", "v3", "v4"])
@pytest.mark.parametrize("ends", ["\n", "\r\n"])
def test_t28_old_versions_and_windows_line_ends(tmp_path, version, ends):
    rng = np.random.default_rng(21)
    x = np.stack([rng.normal(size=300), rng.integers(0, 40, 300)], axis=1)
    x[::5, 0] = NAN
    booster = train(x, np.nan_to_num(x[:, 0]) + np.sin(x[:, 1]), 4, categorical=[1], num_leaves=6, min_data_per_group=1)
    text = booster.model_to_string()
    text = text if version == "v4" else old_text(text, version)
    path = tmp_path / "m.txt"
    path.write_bytes(text.replace("\n", ends).encode())
    check_model(path, x[:50], booster=booster)


def test_t28_names_with_blanks_and_letters_of_other_languages(tmp_path):
    rng = np.random.default_rng(22)
    x = rng.normal(size=(100, 3))
    names = ["brew temperature", "Größe µm", "a\tb"]
    data = lgb.Dataset(x, x[:, 0] + x[:, 1] + x[:, 2], feature_name=names)
    booster = lgb.train({"verbose": -1, "num_threads": 1, "num_leaves": 5}, data, 3)
    booster.save_model(tmp_path / "m.txt")
    kept = booster.feature_name()
    assert kept[0] == "brew_temperature"
    model = load_text((tmp_path / "m.txt").read_bytes(), "m.txt", "m")
    assert [f.name for f in model.features] == kept
    spec = tmp_path / "spec.toml"
    spec.write_text(
        '[[input]]\nname = "brew temperature"\ndtype = "int16"\nscale = 0.001\n[[input]]\nname = "Größe µm"\n'
        f'scale = 0.001\n[[input]]\nname = "{kept[2]}"\nscale = 0.002\noffset = -1.0\n',
        encoding="utf-8",
    )
    signals = {0: Signal(0.001), 1: Signal(0.001), 2: Signal(0.002, -1.0)}
    counts = rng.integers(-2000, 2000, (50, 3))
    use = {"dtype": "int16", "signals": signals, "options": {"spec": spec}}
    check_model(tmp_path / "m.txt", counts, booster=booster, **use)
    header = (exported(booster, tmp_path / "out", "float32", "int16", "raw").out / "m.h").read_text(encoding="utf-8")
    assert "BREW_TEMPERATURE" in header.upper()


def test_t13_sensor_counts_with_a_sentinel(tmp_path):
    rng = np.random.default_rng(23)
    counts = rng.integers(-500, 500, (400, 2))
    real = counts * 0.1 + np.array([0.0, 25.0])
    real[::7, 0] = NAN
    booster = train(real, np.nan_to_num(real[:, 0], nan=50.0) - real[:, 1], 6, num_leaves=8)
    spec = tmp_path / "spec.toml"
    spec.write_text(
        '[[input]]\nname = "Column_0"\ndtype = "int16"\nscale = 0.1\nmissing = -32768\n'
        '[[input]]\nname = "Column_1"\nscale = 0.1\noffset = 25.0\n'
    )
    signals = {0: Signal(0.1, 0.0, -32768), 1: Signal(0.1, 25.0)}
    rows = np.concatenate([counts, [[-32768, 0], [-32768, -32768], [-32767, 5]]])
    for leaf in ("float64", "int16"):
        check_model(booster, rows, dtype="int16", leaf=leaf, signals=signals, options={"spec": spec})
