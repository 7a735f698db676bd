"""Rank coding: each input becomes a small integer once per prediction, and every node compares small integers.

A column is one feature as a group of nodes sees it. Its sorted distinct keys are ``k[0..n-1]``; the rank of an input
is the number of keys below it, so ``key(x) <= k[i]`` exactly when ``rank(x) <= i``: no decision is lost. Missing
values have a rank of their own choice, so they cost nothing per node; nodes that disagree about missing values get
separate columns.

Categorical features become a code: the place of the category among those that the model knows, or one behind the
last for everything else. A categorical node tests one bit of a set over these codes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mcugen.core.types import Array, DType
from mcugen.trees.decisions import Decisions
from mcugen.trees.forest import Forest
from mcugen.trees.keys import zero_interval
from mcugen.trees.signals import InputSpec

_WORD = 32


@dataclass(frozen=True, slots=True, eq=False)
class Columns:
    """The tables that turn inputs into ranks.

    Numeric columns (C of them): ``feature``, ``count`` (keys), ``missing_rank``, ``zero_missing`` (bool),
    ``zero_low`` and ``zero_high`` (keys), all (C,); ``keys``: all keys, column after column. Categorical columns
    (G): ``category_feature``, ``category_count`` (G,), and ``categories``, ascending within a column.
    """

    feature: Array
    count: Array
    missing_rank: Array
    zero_missing: Array
    zero_low: Array
    zero_high: Array
    keys: Array
    category_feature: Array
    category_count: Array
    categories: Array
    exact: bool

    @property
    def n_numeric(self) -> int:
        return int(self.feature.size)

    @property
    def n_columns(self) -> int:
        """Numeric columns, then categorical ones."""
        return int(self.feature.size + self.category_feature.size)

    @property
    def rank_dtype(self) -> DType:
        """The narrowest type for all ranks and codes."""
        return next(t for t in (DType.U8, DType.U16, DType.U32) if self.top_rank <= t.max)

    @property
    def top_rank(self) -> int:
        """The largest rank or code that a column can have."""
        return int(max(self.count.max(initial=0), self.category_count.max(initial=0)))


@dataclass(frozen=True, slots=True, eq=False)
class Coded:
    """Nodes in layout order: ``column`` and ``operand`` (N',): a rank, or the first word of a set in ``set_words``."""

    columns: Columns
    column: Array
    operand: Array
    set_words: Array


def code_nodes(forest: Forest, decisions: Decisions, spec: InputSpec, node: Array) -> Coded:
    """Columns for the nodes that are left, and each node's operand."""
    column = np.zeros(node.size, np.int64)
    operand = np.zeros(node.size, np.int64)
    numeric = np.flatnonzero(~forest.categorical[node])
    rows = node[numeric]
    group = _missing_group(decisions, rows, forest, spec)
    which, inverse = _unique_rows(forest.feature[rows], group)
    numbers: list[tuple[int, int, int, bool, tuple[int, int]]] = []
    keys: list[Array] = []
    order = np.argsort(inverse, kind="stable")
    bounds = np.searchsorted(inverse[order], np.arange(len(which) + 1))
    for c, (feature, kind) in enumerate(which):
        members = order[bounds[c] : bounds[c + 1]]
        table, rank, missing_rank = _rank_column(decisions, rows[members], kind)
        operand[numeric[members]], column[numeric[members]] = rank, c
        zero = zero_interval(spec.dtype, spec.signals[feature], forest.zero_band) if kind >= _ZERO else None
        numbers.append((feature, table.size, missing_rank, zero is not None, zero or (0, 0)))
        keys.append(table)
    categories, sets = _code_categories(forest, node, column, operand, len(which), spec)
    zeros = np.array([z for *_, z in numbers], np.int64).reshape(-1, 2)
    columns = Columns(
        feature=np.array([f for f, *_ in numbers], np.int64),
        count=np.array([c for _, c, *_ in numbers], np.int64),
        missing_rank=np.array([m for _, _, m, *_ in numbers], np.int64),
        zero_missing=np.array([z for *_, z, _ in numbers], np.bool_),
        zero_low=zeros[:, 0],
        zero_high=zeros[:, 1],
        keys=np.concatenate(keys) if keys else np.zeros(0, np.int64),
        category_feature=np.array([f for f, _ in categories], np.int64),
        category_count=np.array([len(v) for _, v in categories], np.int64),
        categories=np.concatenate([v for _, v in categories]) if categories else np.zeros(0, np.int64),
        exact=forest.category_match == "exact",
    )
    return Coded(columns, column, operand, sets)


# Groups of nodes that agree about missing values: by comparing 0.0, default side left or right; the same with zeros.
_COMPARED, _LEFT, _RIGHT, _ZERO = 0, 1, 2, 3


def _missing_group(decisions: Decisions, rows: Array, forest: Forest, spec: InputSpec) -> Array:
    side = np.where(decisions.missing_left[rows], _LEFT, _RIGHT)
    group = np.where(decisions.ordered_missing[rows], _COMPARED, side)
    nan = np.array([spec.dtype.is_float or s.missing is not None for s in spec.signals])
    free = ~nan[forest.feature[rows]] & ~decisions.zero_missing[rows]
    group[free] = _COMPARED  # no input is missing: every node of the feature can share a column
    return np.where(decisions.zero_missing[rows], side + _ZERO - _LEFT, group)


def _unique_rows(a: Array, b: Array) -> tuple[list[tuple[int, int]], Array]:
    joint = a.astype(np.int64) * 8 + b
    values, inverse = np.unique(joint, return_inverse=True)
    return [(v // 8, v % 8) for v in values.tolist()], inverse


def _rank_column(decisions: Decisions, rows: Array, kind: int) -> tuple[Array, Array, int]:
    """Sorted keys, each node's place in them, and the rank of a missing value.

    Where missing values are compared as 0.0, two thresholds may share a key and still differ for 0.0 (a sensor map
    need not reach 0.0): such a key stands twice, first for the nodes that send 0.0 right.
    """
    compared = kind == _COMPARED
    side = decisions.missing_left[rows] if compared else np.zeros(rows.size, np.bool_)
    pairs, inverse = np.unique(np.stack([decisions.key[rows], side.astype(np.int64)]), axis=1, return_inverse=True)
    if compared:
        missing_rank = int(np.count_nonzero(pairs[1] == 0))
    else:
        missing_rank = 0 if decisions.missing_left[rows[0]] else pairs.shape[1]
    return pairs[0], inverse.reshape(-1), missing_rank


def _code_categories(
    forest: Forest, node: Array, column: Array, operand: Array, first_column: int, spec: InputSpec
) -> tuple[list[tuple[int, Array]], Array]:
    """Categorical columns and the words of all distinct sets; fills ``column`` and ``operand``."""
    places = np.flatnonzero(forest.categorical[node])
    found: list[tuple[int, Array]] = []
    words: list[Array] = []
    offset = 0
    for feature in np.unique(forest.feature[node[places]]).tolist():
        here = places[forest.feature[node[places]] == feature]
        categories = _known(forest, node[here], feature)
        missing = spec.signals[feature].missing
        if missing is not None:
            categories = categories[categories != missing]  # then it is coded as everything else, as NaN is
        found.append((feature, categories))
        width = categories.size // _WORD + 1  # one bit more than categories: the code of everything else
        seen: dict[bytes, int] = {}
        for place in here.tolist():
            row = _set_words(forest, int(node[place]), categories, width)
            where = seen.setdefault(row.tobytes(), offset)
            if where == offset:
                words.append(row)
                offset += width
            column[place], operand[place] = first_column + len(found) - 1, where
    return found, np.concatenate(words) if words else np.zeros(0, np.uint32)


def _known(forest: Forest, nodes: Array, feature: int) -> Array:
    """The categories that a column must tell apart."""
    if forest.known_categories is not None and forest.known_categories[feature] is not None:
        return np.asarray(forest.known_categories[feature], np.int64)
    sets = np.unique(forest.category_set[nodes])
    members = [forest.set_member[forest.first_member[s] : forest.first_member[s + 1]] for s in sets.tolist()]
    return np.unique(np.concatenate(members)) if members else np.zeros(0, np.int64)


def _set_words(forest: Forest, node: int, categories: Array, width: int) -> Array:
    """(width,) uint32: bit c is set where code c goes left."""
    s = int(forest.category_set[node])
    member = forest.set_member[forest.first_member[s] : forest.first_member[s + 1]]
    bits = np.zeros(width * _WORD, np.uint8)
    bits[: categories.size] = np.isin(categories, member)
    bits[categories.size] = bool(forest.default_left[node])
    return np.packbits(bits, bitorder="little").view("<u4").astype(np.uint32)
