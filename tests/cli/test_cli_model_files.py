"""Damaged, hostile and unknown model files: one line, the right exit code, and nothing written."""

from __future__ import annotations

import pickle
import random
import re
import resource
from pathlib import Path

import numpy as np
import pytest
from cli_support import Call, call, chain_tree, changed, check_line, fails, forest_text, multi_model, tiny_model

from mcugen.frontends.lightgbm import load_text
from mcugen.trees.forest import Forest
from mcugen.trees.lower import ensemble_of

END = tiny_model().index(b"end of trees") + len(b"end of trees")


def export(path: Path, *more: object) -> Call:
    """Without the compiler: quick, and the integer reference is compared with the float model all the same."""
    return call("export", path, "-o", path.parent / "out", "--no-verify", *more)


def refuse(path: Path, code: int, data: bytes, *more: object) -> str:
    path.write_bytes(data)
    before = sorted(path.parent.iterdir())
    line = fails(code, "export", path, "-o", path.parent / "out", "--no-verify", *more)
    assert sorted(path.parent.iterdir()) == before  # nothing half-written
    assert fails(code, "inspect", path) == line
    return line


def check_consistent(forest: Forest) -> None:
    """What every later stage relies on."""
    assert forest.n_trees >= 1
    assert np.isfinite(forest.leaf_value).all()
    assert not np.isnan(forest.threshold).any()
    assert ((forest.feature >= 0) & (forest.feature < forest.n_features)).all()
    for t in range(forest.n_trees):
        a, b = forest.first_node[t], forest.first_node[t + 1]
        both = np.concatenate([forest.left[a:b], forest.right[a:b]])
        inner, leaf = np.sort(both[both >= 0]), np.sort(~both[both < 0])
        if b > a:
            assert inner.tolist() == list(range(1, b - a))
            assert leaf.tolist() == list(range(b - a + 1))


# Files that stop short, or are no model at all


def test_truncated_anywhere(model: Path) -> None:
    data = tiny_model()
    cuts = {len(data) * i // 50 for i in range(50)} | {i + 1 for i, c in enumerate(data) if c == 0x0A}
    for cut in sorted(c for c in cuts if c < END):
        model.write_bytes(data[:cut])
        line = fails(2, "export", model, "-o", "out", "--no-verify")
        assert "tiny.txt" in line, (cut, line)
    assert [p.name for p in model.parent.iterdir()] == ["tiny.txt"]


@pytest.mark.parametrize("lines", [1, 2])
def test_a_line_is_missing(model: Path, lines: int) -> None:
    """Any ``lines`` neighbours taken out of the part that counts: refused, or a line that says nothing is gone."""
    rows = tiny_model()[: END + 1].splitlines(keepends=True)
    tail = tiny_model()[END + 1 :]
    silent = re.compile(rb"label_index|split_gain|(leaf|internal)_|is_linear=0|shrinkage|\s|feature_importances")
    for i in range(len(rows) - lines + 1):
        gone = rows[i : i + lines]
        model.write_bytes(b"".join(rows[:i] + rows[i + lines :]) + tail)
        done = export(model)
        if done.code == 0:
            assert all(silent.match(g) or g.startswith(b"objective") for g in gone), gone
        else:
            check_line(done.err)
            assert done.code == 3 if gone[0].startswith(b"version") else done.code in (2, 3), (gone, done)


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"", "empty"),
        (b" \n\n", "empty"),
        (b"\0\1\2" * 1000, "binary"),
        (bytes(range(256)) * 50, "binary"),
        (b"\x7fELF\x01", "begins with the line 'tree'"),
        (b"\xff\xfe\xfd" * 9, "begins with the line 'tree'"),
        (b"hello\n", "begins with the line 'tree'"),
        (b"{}\n", "begins with the line 'tree'"),
        (b"tree", "truncated"),
        (b"tree\n", "truncated"),
        (b"tree\nend of trees\n", "version"),
        (b"\n" * 5000 + tiny_model(), "begins with the line 'tree'"),
    ],
)
def test_no_model(model: Path, data: bytes, text: str) -> None:
    code = 3 if text == "version" else 2
    assert text in refuse(model, code, data)


def test_no_file(model: Path, tmp_path: Path) -> None:
    assert "there is no such file" in fails(2, "export", "nope.txt")
    assert "folder" in fails(2, "export", tmp_path)
    assert "empty" in fails(2, "export", "/dev/null")
    assert "there is no such file" in fails(2, "inspect", "nope.txt")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["tiny.txt"]


@pytest.mark.parametrize("suffix", [".onnx", ".toml", ".pkl", ".pickle", ".joblib", ".json"])
def test_other_formats(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"m{suffix}"
    path.write_bytes(pickle.dumps(Bomb(tmp_path / "exploded")))
    # An .onnx file is read, and is none; a .toml is no text; the others are not read at all.
    line = fails(2 if suffix in (".onnx", ".toml") else 3, "export", path, "-o", tmp_path / "out")
    assert ("utf-8" if suffix == ".toml" else "model") in line.lower()
    assert sorted(p.name for p in tmp_path.iterdir()) == [path.name]


class Bomb:
    """Unpickling it leaves a trace."""

    def __init__(self, trace: Path) -> None:
        self._trace = trace

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return Path.touch, (str(self._trace),)


# The header

HEADER_CASES = [
    ("version", "version=v9\n", 3, "v9"),
    ("version", "", 3, "version"),
    ("version", "version=v4\nversion=v4\n", 2, "stands twice"),
    ("version", "version=v4\nsurprise=1\n", 3, "unknown key 'surprise'"),
    ("version", "version=v4\nsurprise\n", 3, "unknown key 'surprise'"),
    ("num_class", "", 2, "num_class: the key is missing"),
    ("num_class", "num_class=0\n", 2, "num_class"),
    ("num_class", "num_class=2\n", 2, "disagree"),
    ("num_tree_per_iteration", "num_tree_per_iteration=999999999\n", 2, "disagree"),
    ("num_tree_per_iteration", "num_tree_per_iteration=-1\n", 2, "num_tree_per_iteration"),
    ("num_tree_per_iteration", "num_tree_per_iteration=1.0\n", 2, "num_tree_per_iteration"),
    ("num_tree_per_iteration", "num_tree_per_iteration=\u0663\n", 2, "num_tree_per_iteration"),
    ("max_feature_idx", "max_feature_idx=999999999\n", 3, "limit is 65535"),
    ("max_feature_idx", "max_feature_idx=9999999999999\n", 2, "max_feature_idx"),
    ("max_feature_idx", "max_feature_idx=-1\n", 2, "max_feature_idx"),
    ("max_feature_idx", "max_feature_idx=nan\n", 2, "max_feature_idx"),
    ("max_feature_idx", "max_feature_idx=4\n", 2, "4 entries for 5 features"),
    ("objective", "objective=regresion\n", 3, "did you mean 'regression'"),
    ("objective", "objective=regression foo\n", 3, "unknown word 'foo'"),
    ("objective", "objective=binary sigmoid:nan\n", 2, "sigmoid"),
    ("objective", "objective=binary sigmoid:0\n", 2, "sigmoid"),
    ("objective", "objective=binary sigmoid:x\n", 2, "needs a number"),
    ("objective", "objective=multiclass num_class:inf\n", 2, "num_class"),
    ("objective", "objective=multiclass num_class:7\n", 2, "disagree"),
    ("feature_names", "feature_names=a b c\n", 2, "3 entries for 4 features"),
    ("feature_names", "", 2, "0 entries"),
    ("feature_infos", "feature_infos=[0:1] [0:1] [0:1]\n", 2, "3 entries"),
    ("feature_infos", "feature_infos=[0:1] [zero:1] [0:1] -1:2\n", 2, "no range"),
    ("tree_sizes", "tree_sizes=\n", 2, "no trees"),
    ("tree_sizes", "", 2, "no trees"),
    ("tree_sizes", "tree_sizes=1 2\n", 2, "names 2 trees, the file has 3"),
    ("tree_sizes", "tree_sizes=1 2 3 4\n", 2, "names 4 trees, the file has 3"),
]


@pytest.mark.parametrize(("key", "to", "code", "text"), HEADER_CASES)
def test_header(model: Path, key: str, to: str, code: int, text: str) -> None:
    line = refuse(model, code, changed(key, to))
    assert text in line
    assert line.startswith("mcugen: tiny.txt")


# One tree

TREE_CASES = [
    ("num_leaves", "num_leaves=1000000000000\n", 2, "split_feature"),
    ("num_leaves", "num_leaves=99999999999999999999999\n", 2, "split_feature"),
    ("num_leaves", "num_leaves=0\n", 2, "at least 1"),
    ("num_leaves", "num_leaves=-4\n", 2, "at least 1"),
    ("num_leaves", "num_leaves=5\n", 2, "3 entries where the tree needs 4"),
    ("num_leaves", "num_leaves=3\n", 2, "3 entries where the tree needs 2"),
    ("num_leaves", "num_leaves=nan\n", 2, "not a number"),
    ("num_leaves", "num_leaves=4 4\n", 2, "num_leaves"),
    ("num_leaves", "num_leaves=\n", 2, "num_leaves"),
    ("num_leaves", "", 2, "num_leaves"),
    ("num_leaves", "num_leaves=4\nnum_leaves=4\n", 2, "stands twice"),
    ("num_leaves", "num_leaves=4\nsurprise=1\n", 3, "unknown key"),
    ("num_leaves", "num_leaves 4\n", 2, "expected KEY=VALUE"),
    ("num_cat", "num_cat=1000000000000\n", 2, "cat_boundaries"),
    ("num_cat", "num_cat=-1\n", 2, "num_cat"),
    ("num_cat", "num_cat=0\n", 2, "cat_boundaries"),
    ("cat_boundaries", "cat_boundaries=0 1000000000000\n", 2, "cat_threshold"),
    ("cat_boundaries", "cat_boundaries=0 -1\n", 2, "cat_"),
    ("cat_boundaries", "cat_boundaries=1 2\n", 2, "ascend"),
    ("cat_boundaries", "", 2, "cat_boundaries"),
    ("cat_threshold", "cat_threshold=4294967296 4294967296\n", 2, "cat_"),
    ("cat_threshold", "cat_threshold=-1 -1\n", 2, "cat_"),
    ("cat_threshold", "", 2, "cat_threshold"),
    ("split_feature", "split_feature=0 3 4\n", 2, "outside of 0..3"),
    ("split_feature", "split_feature=0 3 -1\n", 2, "outside of 0..3"),
    ("split_feature", "split_feature=0 3 0.5\n", 2, "not a number"),
    ("split_feature", "split_feature=0 3\n", 2, "2 entries"),
    ("split_feature", "split_feature=0 3 99999999999999999999\n", 2, "split_feature"),
    ("threshold", "threshold=nan 0 1\n", 2, "entry 0"),
    ("threshold", "threshold=1 0 NaN\n", 2, "entry 2"),
    ("threshold", "threshold=1 0 one\n", 2, "not a number"),
    ("threshold", "threshold=1 0.5 1\n", 2, "no such categorical split"),
    ("threshold", "threshold=1 inf 1\n", 2, "no such categorical split"),
    ("threshold", "threshold=1 7 1\n", 2, "no such categorical split"),
    ("threshold", "threshold=1 -1 1\n", 2, "no such categorical split"),
    ("threshold", "threshold=1,0,1\n", 2, "threshold"),
    ("leaf_value", "leaf_value=nan 1 2 3\n", 2, "entry 0"),
    ("leaf_value", "leaf_value=0 1 2 inf\n", 2, "entry 3"),
    ("leaf_value", "leaf_value=0 1 -1e999 3\n", 2, "entry 2"),
    ("leaf_value", "leaf_value=0 1 2\n", 2, "3 entries where the tree needs 4"),
    ("leaf_value", "leaf_value=0 1 2 3 4\n", 2, "5 entries"),
    ("leaf_value", "leaf_value=0 1 2 \u0663\n", 2, "not a number"),
    ("leaf_value", "leaf_value=0 1 2 0x1\n", 2, "leaf_value"),
    ("leaf_value", "", 2, "leaf_value"),
    ("leaf_count", "leaf_count=1 2 3 nan\n", 2, "leaf_count"),
    ("leaf_count", "leaf_count=1 2\n", 2, "leaf_count"),
    ("decision_type", "decision_type=2 1 16\n", 3, "unknown bits in 16"),
    ("decision_type", "decision_type=2 1 12\n", 3, "unknown bits in 12"),
    ("decision_type", "decision_type=2 1 -1\n", 3, "unknown bits in -1"),
    ("decision_type", "decision_type=2 1 258\n", 3, "unknown bits in 258"),
    ("left_child", "left_child=0 -2 -1\n", 2, "not a tree"),  # the root is its own child
    ("left_child", "left_child=2 -2 2\n", 2, "not a tree"),  # a node is its own child
    ("left_child", "left_child=2 -2 -2\n", 2, "not a tree"),  # a leaf with two parents
    ("left_child", "left_child=1 -2 -1\n", 2, "not a tree"),  # a node with two parents
    ("left_child", "left_child=3 -2 -1\n", 2, "out of range"),
    ("left_child", "left_child=2 -2 -5\n", 2, "out of range"),
    ("left_child", "left_child=2 -2 -9223372036854775808\n", 2, "out of range"),
    ("left_child", "", 2, "left_child"),
    ("is_linear", "is_linear=2\n", 2, "is_linear"),
    ("is_linear", "is_linear=1\n", 2, "num_features"),
    (
        "is_linear",
        "is_linear=1\nnum_features=0 0 0 -1\nleaf_features=\nleaf_const=0 0 0 0\nleaf_coeff=\n",
        2,
        "num_features",
    ),
    (
        "is_linear",
        "is_linear=1\nnum_features=0 0 0 4000000000000\nleaf_features=\nleaf_const=0 0 0 0\nleaf_coeff=\n",
        2,
        "leaf_features",
    ),
    (
        "is_linear",
        "is_linear=1\nnum_features=0 0 0 1\nleaf_features=4\nleaf_const=0 0 0 0\nleaf_coeff=1\n",
        2,
        "leaf_features",
    ),
    (
        "is_linear",
        "is_linear=1\nnum_features=0 0 0 1\nleaf_features=1\nleaf_const=0 0 0 0\nleaf_coeff=inf\n",
        2,
        "leaf_coeff",
    ),
]


@pytest.mark.parametrize(("key", "to", "code", "text"), TREE_CASES)
def test_tree(model: Path, key: str, to: str, code: int, text: str) -> None:
    line = refuse(model, code, changed(key, to, 1))
    assert text in line
    assert re.match(r"mcugen: tiny\.txt:\d+", line), line  # the line of the file
    assert "Tree=1" in line or "KEY=VALUE" in text or "twice" in text


def test_cycle_apart_from_the_root(model: Path) -> None:
    """Every node and leaf has one parent, and two nodes hang only from each other."""
    nodes = ([0] * 3, [1.0, 2.0, 3.0], [-1, 2, 1], [-2, -3, -4], [0.0, 1.0, 2.0, 3.0])
    assert "a cycle" in refuse(model, 2, forest_text([nodes], 1))


def test_trees_out_of_order(model: Path) -> None:
    data = tiny_model()
    assert "'Tree=1' is missing" in refuse(model, 2, data.replace(b"Tree=1\n", b"Tree=2\n"))
    assert "'Tree=0' is missing" in refuse(model, 2, data.replace(b"Tree=0\n", b"Tree=00\n"))


def test_end_of_the_file(model: Path) -> None:
    data = tiny_model()
    for text in (b"[1", b"7", b"[1]", b'{"a": []}', b"[" * 100_000):
        assert "pandas_categorical" in refuse(
            model, 2, data.replace(b"pandas_categorical:null", b"pandas_categorical:" + text)
        )
    assert "UTF-8" in refuse(model, 2, data.replace(b"[boosting: gbdt]", b"[boosting: \xff]"))
    assert "tiny.txt:8: bytes that are not UTF-8" in refuse(model, 2, data.replace(b"=flow ", b"=\xe9 "))


def test_huge_counts_allocate_nothing(model: Path) -> None:
    """With 3 GB of address space on top of what is in use, a count of 10**12 still ends in one line."""
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + 3 * 2**30, hard))
    try:
        for key in ("num_leaves", "num_cat"):
            refuse(model, 2, changed(key, f"{key}={10**12}\n", 0))
        refuse(model, 2, changed("cat_boundaries", f"cat_boundaries=0 {10**12}\n", 0))
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def test_one_leaf(model: Path) -> None:
    """A tree without splits is right; a model of nothing else too."""
    model.write_bytes(forest_text([([], [], [], [], [0.75])], 3))
    done = call("export", model, "-o", model.parent / "out")
    assert (done.code, done.err) == (0, ""), done


def test_deep_tree(model: Path) -> None:
    """More levels than Python can call: nothing recurses."""
    n = 2500
    nodes = ([0] * n, [float(n - i) for i in range(n)], [*range(1, n), -1], [*range(-2, -n - 2, -1)], [0.5] * (n + 1))
    model.write_bytes(forest_text([nodes], 1))
    done = export(model, "--board", "none")
    assert (done.code, done.err) == (0, ""), done.err[:300]


def test_many_features(model: Path) -> None:
    model.write_bytes(forest_text([chain_tree(6, s, 10_000) for s in (0, 9_997)], 10_000))
    done = call("export", model, "-o", model.parent / "out")
    assert (done.code, done.err) == (0, ""), done
    assert "TINY_INPUTS 10000" in (model.parent / "out/tiny.h").read_text()


@pytest.mark.parametrize("leaf", ["int16", "int32", "float32", "float64"])
@pytest.mark.parametrize("output", ["raw", "class", "proba"])
def test_extreme_leaves(model: Path, leaf: str, output: str) -> None:
    """Leaves near the ends of a double: translated or refused, never a fault of ours."""
    for value in ("1e308", "-1e308", "1e-308", "5e-324", "0", "1e39"):
        for data in (
            multi_model().replace(b"leaf_value=0.1 ", f"leaf_value={value} ".encode()),
            changed("leaf_value", f"leaf_value={value} {value} 1 -{value}\n".replace("--", ""), 1).replace(
                b"objective=regression", b"objective=binary sigmoid:1"
            ),
        ):
            model.write_bytes(data)
            done = export(model, "--leaf", leaf, "--output", output, "--force")
            assert done.code in (0, 3), done
            if done.code:
                check_line(done.err)
            else:
                assert done.err == ""


# Random damage

_WORDS = (
    "nan inf -inf -1 1e999 999999999999 99999999999999999999 0 - 1e-320 1.5 2147483648 0x10 1e308 , \x85 \0 = \n".split(
        " "
    )
)


def damaged(rng: random.Random, data: bytes) -> bytes:
    """One of many kinds of damage to the part of the file that counts."""
    kind = rng.randrange(6)
    text = bytearray(data)
    if kind == 0:
        for _ in range(rng.choice([1, 1, 1, 3, 10])):
            text[rng.randrange(END)] = rng.randrange(256)
    elif kind == 1:
        at = rng.randrange(END)
        del text[at : at + rng.randrange(1, 60)]
    elif kind == 2:
        at, start = rng.randrange(END), rng.randrange(END)
        text[at:at] = data[start : start + rng.randrange(1, 80)]
    elif kind == 3:
        rows = data.split(b"\n")
        a, b = rng.randrange(60), rng.randrange(60)
        rows[a], rows[b] = rows[b], rows[a]
        return b"\n".join(rows)
    else:
        words = list(re.finditer(rb"[-+.\w]+", data[:END]))
        word = rng.choice(words)
        new = rng.choice(_WORDS).encode() if kind == 4 else rng.choice(words).group()
        text[word.start() : word.end()] = new
    return bytes(text)


@pytest.mark.parametrize("seed", range(4))
def test_random_damage(model: Path, seed: int) -> None:
    """Refused in one line, or a forest that is whole, with the integer reference within its bound."""
    rng = random.Random(seed)
    accepted = []
    for _ in range(70):
        data = damaged(rng, tiny_model())
        model.write_bytes(data)
        done = export(model, "--force", "--leaf", rng.choice(["int16", "int32", "float32", "float64"]))
        if done.code == 0:
            assert done.err == "", (data, done)
            check_consistent(ensemble_of(load_text(data, "m", "m")).forest)
            accepted.append(data)
        else:
            assert done.code in (2, 3), (data, done)
            check_line(done.err)
    assert accepted
    model.write_bytes(rng.choice(accepted))
    done = call("export", model, "-o", model.parent / "verified")
    assert (done.code, done.err) == (0, ""), (model.read_bytes(), done)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 108))
def test_random_damage_long(model: Path, seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(1500):
        data = damaged(rng, damaged(rng, tiny_model()) if rng.random() < 0.3 else tiny_model())
        model.write_bytes(data)
        done = export(model, "--force", "--output", rng.choice(["raw", "class", "proba"]))
        assert done.code in (0, 2, 3), (data, done)
        if done.code:
            check_line(done.err)
