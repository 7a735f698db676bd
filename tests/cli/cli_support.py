"""Calls of the command line, and model files as text, so that a test can damage one line."""

from __future__ import annotations

import contextlib
import io
import re
from dataclasses import dataclass
from pathlib import Path

from mcugen.cli import main

#: Three trees as LightGBM 4.7 writes them; each has a numerical and a categorical split.
_TINY = """tree
version=v4
num_class=1
num_tree_per_iteration=1
label_index=0
max_feature_idx=3
objective=regression
feature_names=flow temp level valve
feature_infos=[-3:2.6499999999999999] [-3.0600000000000001:3.1899999999999999] [-2.1899999999999999:2.57] -1:5:1:0:4:2:3
tree_sizes=492 507 504

Tree=0
num_leaves=4
num_cat=1
split_feature=0 3 0
split_gain=1124.23 300.955 106.074
threshold=-0.13499999999999998 0 -0.53999999999999992
decision_type=2 1 2
left_child=2 -2 -1
right_child=1 -3 -4
leaf_value=0.77529428938554035 1.3811267171824571 1.1118204376160599 0.9704749625777761
leaf_weight=79 71 107 43
leaf_count=79 71 107 43
internal_value=1.07792 1.23818 0.844087
internal_weight=300 178 122
internal_count=300 178 122
cat_boundaries=0 1
cat_threshold=18
is_linear=0
shrinkage=1


Tree=1
num_leaves=4
num_cat=1
split_feature=0 3 1
split_gain=931.467 200.526 139.762
threshold=-1.0000000180025095e-35 0 -0.47499999999999992
decision_type=2 1 8
left_child=2 -2 -1
right_child=1 -3 -4
leaf_value=-0.25937255940503545 0.29240270934692802 0.050319935187983972 -0.054679708281215635
leaf_weight=90 63 94 53
leaf_count=90 63 94 53
internal_value=0.00112372 0.169291 -0.183507
internal_weight=300 157 143
internal_count=300 157 143
cat_boundaries=0 2
cat_threshold=18 1
is_linear=0
shrinkage=0.1


Tree=2
num_leaves=4
num_cat=1
split_feature=2 0 3
split_gain=764.898 168.335 122.641
threshold=-1.0000000180025095e-35 1.2800000000000002 0
decision_type=6 2 1
left_child=-1 2 -2
right_child=1 -3 -4
leaf_value=-0.16515664120873932 0.21584765649047394 0.38175439613836781 0.015619498078772071
leaf_weight=143 48 27 82
leaf_count=143 48 27 82
internal_value=0.00215376 0.154545 0.107355
internal_weight=300 157 130
internal_count=300 157 130
cat_boundaries=0 1
cat_threshold=18
is_linear=0
shrinkage=0.1


end of trees

feature_importances:
flow=4
valve=3
temp=1
level=1

parameters:
[boosting: gbdt]
[objective: regression]
[categorical_feature: 3]

end of parameters

pandas_categorical:null
"""


@dataclass(frozen=True)
class Call:
    """What a call of the command line gave."""

    code: object
    out: str
    err: str


def call(*words: object) -> Call:
    """The command line in this process, with its streams caught. Whatever it raises but SystemExit goes through."""
    out, err = io.StringIO(), io.StringIO()
    code: object = None
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main([str(w) for w in words])
        except SystemExit as e:
            code = e.code
    return Call(code, out.getvalue(), err.getvalue())


def fails(code: int, *words: object) -> str:
    """The one line that a call ends with; the exit code is ``code``, and nothing else is printed."""
    done = call(*words)
    assert done.code == code, done
    assert done.out == "", done
    check_line(done.err)
    return done.err


def check_line(err: str) -> None:
    """One line of the form ``mcugen: where: what (hint)``."""
    assert err.startswith("mcugen: "), err
    assert err.endswith("\n"), err
    assert len(err.splitlines()) == 1, err
    assert "Traceback" not in err
    assert "fault in mcugen" not in err


def tree(folder: Path) -> dict[str, bytes | None]:
    """All that is below ``folder``: bytes of files, None for folders."""
    return {str(p.relative_to(folder)): p.read_bytes() if p.is_file() else None for p in sorted(folder.rglob("*"))}


def tiny_model() -> bytes:
    return _TINY.encode()


def changed(line: str, to: str, tree_index: int | None = None) -> bytes:
    """tiny.txt, the line that begins with the key of ``line`` replaced by ``to``: in the header, or in a tree."""
    head, *blocks = re.split(r"(?m)^(?=Tree=)", _TINY)
    parts = [head, *blocks]
    at = 0 if tree_index is None else tree_index + 1
    parts[at], count = re.subn(rf"(?m)^{re.escape(line)}=.*\n", lambda _: to, parts[at], count=1)
    assert count == 1, line
    return "".join(parts).encode()


def multi_model(classes: int = 3, objective: str = "") -> bytes:
    """One iteration of one-split trees: a tree a class."""
    objective = objective or f"multiclass num_class:{classes}"
    trees = [([0], [0.5 * c - 0.25], [-1], [-2], [0.1 * c, -0.2]) for c in range(classes)]
    return forest_text(trees, 2, per_iteration=classes, objective=objective)


def chain_tree(
    leaves: int, seed: int, n_features: int
) -> tuple[list[int], list[float], list[int], list[int], list[float]]:
    """A tree whose right child is always the next node; thresholds and leaves all differ."""
    n = leaves - 1
    feature = [(i + seed) % n_features for i in range(n)]
    threshold = [((i * 37 + seed * 11) % 1009) / 7 for i in range(n)]
    left = [~i for i in range(n)]
    right = [*range(1, n), ~n]
    value = [((i * 31 + seed * 17) % 997) / 997 - 0.5 for i in range(leaves)]
    return feature, threshold, left, right, value


def forest_text(
    trees: list[tuple[list[int], list[float], list[int], list[int], list[float]]],
    n_features: int,
    names: list[str] | None = None,
    per_iteration: int = 1,
    objective: str = "regression",
) -> bytes:
    """A model file; a tree is its features, thresholds, left and right children and leaf values."""

    def row(key: str, values: object) -> str:
        return f"{key}={' '.join(map(str, values))}\n"  # type: ignore[call-overload]

    head = (
        f"tree\nversion=v4\nnum_class={per_iteration}\nnum_tree_per_iteration={per_iteration}\nlabel_index=0\n"
        f"max_feature_idx={n_features - 1}\nobjective={objective}\n"
        + row("feature_names", names or [f"Column_{i}" for i in range(n_features)])
        + row("feature_infos", ["[-3:3]"] * n_features)
        + row("tree_sizes", [1] * len(trees))
    )
    body = ""
    for i, (feature, threshold, left, right, value) in enumerate(trees):
        body += f"\nTree={i}\nnum_leaves={len(value)}\nnum_cat=0\n" + row("split_feature", feature)
        body += row("threshold", map(repr, threshold)) + row("decision_type", [2] * len(feature))
        body += row("left_child", left) + row("right_child", right) + row("leaf_value", map(repr, value))
        body += "is_linear=0\nshrinkage=1\n\n"
    return f"{head}{body}\nend of trees\n\nparameters:\nend of parameters\n\npandas_categorical:null\n".encode()
