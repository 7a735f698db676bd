"""The float reference of a forest: which leaf each row reaches, and what the leaves add."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from mcugen.core.types import Array
from mcugen.trees.forest import Forest, Missing


def leaf_index(forest: Forest, x: Array) -> Array:
    """(N, T) int32: the leaf, local to its tree, of each row of ``x`` (N, F) float64 in each tree."""
    x = flush_zeros(forest, x)
    leaf = np.empty((len(x), forest.n_trees), np.int32)
    sets = [frozenset(forest.set_member[a:b].tolist()) for a, b in _spans(forest.first_member)]
    for t, (a, b) in enumerate(_spans(forest.first_node)):
        leaf[:, t] = _walk(forest, x, a, b - a, sets)
    return leaf


def flush_zeros(forest: Forest, x: Array) -> Array:
    """``x`` with everything inside the zero band as +0.0."""
    return np.where(np.abs(x) <= forest.zero_band, 0.0, x)


def _spans(starts: Array) -> list[tuple[int, int]]:
    return list(pairwise(starts.tolist()))


def _walk(forest: Forest, x: Array, first: int, nodes: int, sets: list[frozenset[int]]) -> Array:
    """(N,) leaves of one tree: all rows step together until none is at a node."""
    at = np.zeros(len(x), np.int32) if nodes else np.full(len(x), -1, np.int32)
    rows = np.arange(len(x)) if nodes else np.zeros(0, np.int64)
    while rows.size:
        node = at[rows] + first
        left = _goes_left(forest, x[rows, forest.feature[node]], node, sets)
        at[rows] = np.where(left, forest.left[node], forest.right[node])
        rows = rows[at[rows] >= 0]
    return ~at


def _goes_left(forest: Forest, value: Array, node: Array, sets: list[frozenset[int]]) -> Array:
    kind = forest.missing[node]
    nan = np.isnan(value)
    v = np.where(nan & (kind != Missing.NAN), 0.0, value)
    default = (kind == Missing.ZERO) & (np.abs(v) <= forest.zero_band) | (kind == Missing.NAN) & nan
    left = np.where(default, forest.default_left[node], v <= forest.threshold[node])
    cat = np.flatnonzero(forest.categorical[node])
    if cat.size:
        left[cat] = [_category_left(forest, float(value[i]), int(node[i]), sets) for i in cat]
    return left


def _category_left(forest: Forest, value: float, node: int, sets: list[frozenset[int]]) -> bool:
    known = forest.known_categories[forest.feature[node]] if forest.known_categories is not None else None
    default = bool(forest.default_left[node])
    if not np.isfinite(value) or abs(value) >= 2.0**31:
        return default
    category = int(value)
    if category < 0 or (forest.category_match == "exact" and category != value):
        return default
    if category in sets[forest.category_set[node]]:
        return True
    if known is not None and category not in known:
        return default
    return False


@np.errstate(over="ignore", invalid="ignore")  # 0 * inf and inf - inf are NaN in the library too
def leaf_outputs(forest: Forest, x: Array, leaf: Array, out: Array) -> None:
    """Add what the leaves (N, T) give to ``out`` (N, K), tree by tree, as the library does."""
    first = forest.first_leaf
    wide = forest.values_per_leaf > 1
    x = flush_zeros(forest, x) if forest.linear is not None else x
    for t in range(forest.n_trees):
        index = leaf[:, t] + first[t]
        if wide:
            out += forest.leaf_value[index]
            continue
        value = forest.leaf_value[index, 0]
        if forest.linear is not None:
            value = _linear(forest, x, index, value)
        out[:, t % forest.outputs] += value


def _linear(forest: Forest, x: Array, index: Array, plain: Array) -> Array:
    """Linear leaves, term by term; the plain value where a used feature is NaN."""
    lin = forest.linear
    assert lin is not None
    out = lin.const[index].astype(np.float64)
    nan = np.zeros(len(index), np.bool_)
    for leaf in np.unique(index):
        rows = np.flatnonzero(index == leaf)
        for term in range(lin.first_term[leaf], lin.first_term[leaf + 1]):
            value = x[rows, lin.feature[term]]
            nan[rows] |= np.isnan(value)
            out[rows] += lin.coef[term] * value
    return np.where(nan, plain, out)
