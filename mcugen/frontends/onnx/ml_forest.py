"""RawTrees to a Forest: each mode of ai.onnx.ml as tests of the form ``x <= threshold``, exactly.

x below is a column after its steps; NaN goes where the mode's comparison is false (NEQ: true), or to the true side with
missing_value_tracks_true.

* LEQ, LT, GTE, GT: one node; ``x < t`` is ``x <= t'`` with the next number below, GTE and GT exchange the children
* EQ, NEQ of a whole number from 0 to 2**24, MEMBER of such: a categorical node
* EQ, NEQ of another number: two nodes, ``x <= t`` and ``x < t``; the subtree of the other values stands there twice
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mcugen.core.types import Array
from mcugen.frontends.onnx.call import Call
from mcugen.frontends.onnx.ml_columns import Column, Cuts, cuts
from mcugen.frontends.onnx.ml_trees import EQ, GT, GTE, LEAF, LEQ, LT, MEMBER, NEQ, RawTrees
from mcugen.trees.forest import Forest, ForestBuilder, Missing

_MAX_CATEGORY = 2**24


@dataclass(frozen=True, slots=True, eq=False)
class Tests:
    """What each raw node asks: ``at_most`` is ``x <= split`` and ``below`` is ``x < split``, on the user's x.

    ``nan`` (n,): NaN comes out true. ``sets``: the members that categorical nodes look for.
    """

    at_most: Cuts
    below: Cuts
    nan: Array
    sets: dict[int, Array]


@dataclass(frozen=True, slots=True, eq=False)
class Expanded:
    """A forest without its values. ``leaves``: the raw nodes that each tree's leaves are; ``builder`` awaits them."""

    nodes: tuple[dict[str, Array], ...]
    leaves: tuple[Array, ...]
    builder: ForestBuilder


def expand(c: Call, raw: RawTrees, columns: tuple[Column, ...]) -> Expanded:
    """The trees as nodes of a Forest. Refuses sets that no node can express, and EQ nodes that would copy too much."""
    inner = raw.mode != LEAF
    if inner.any() and not (raw.feature[inner].min() >= 0 and raw.feature[inner].max() < len(columns)):
        c.broken(f"a node asks for feature {raw.feature[inner].max()}, the input has {len(columns)} columns")
    tests = _tests(c, raw, columns)
    builder = ForestBuilder()
    budget = 8 * raw.mode.size + 4096
    nodes, leaves = [], []
    plain = _plain(raw, tests, columns)
    for root in raw.roots.tolist():
        walk = _Walk(plain, builder)
        budget -= walk.run(root, budget)
        if budget < 0:
            c.refuse(
                "subtrees with several parents, or tests for equality with numbers that are not whole: copying what "
                "they share would make the model more than eight times as large",
                "train with splits of the kind x <= t",
            )
        nodes.append(walk.arrays())
        leaves.append(np.array(walk.leaves, np.int64))
    return Expanded(tuple(nodes), tuple(leaves), builder)


def finish(found: Expanded, values: list[Array], n_features: int, outputs: int, order: Array) -> Forest:
    """The forest with its leaves: ``values`` [T] of (leaves, V); trees in ``order`` (T,)."""
    for t in order.tolist():
        found.builder.add_tree(leaf_value=values[t], **found.nodes[t])
    return found.builder.build(n_features=n_features, outputs=outputs, zero_band=0.0, category_match="exact")


def _tests(c: Call, raw: RawTrees, columns: tuple[Column, ...]) -> Tests:
    n = raw.mode.size
    at_most, below = (Cuts(np.full(n, np.inf), np.zeros(n, np.bool_)) for _ in range(2))
    nan = raw.nan_yes | (raw.mode == NEQ)
    sets: dict[int, Array] = {}
    for f in np.unique(raw.feature[raw.mode != LEAF]).tolist():
        column = columns[f]
        rows = np.flatnonzero((raw.feature == f) & (raw.mode != LEAF))
        sets.update(_sets(c, raw, rows, column))
        for whole, strict in ((at_most, False), (below, True)):
            found = cuts(column, raw.split[rows], strict)
            whole.threshold[rows], whole.opposite[rows] = found.threshold, found.opposite
        filled = column.of_nan
        if not np.isnan(filled):
            nan[rows] = _outcome(filled, raw.mode[rows], raw.split[rows])
    # No comparison with a NaN is true, but for "not equal".
    wrong = np.isnan(raw.split) & np.isin(raw.mode, (GT, GTE))
    at_most.opposite[wrong] = below.opposite[wrong] = False
    return Tests(at_most, below, nan, sets)


def _outcome(x: float, mode: Array, t: Array) -> Array:
    """(n,) what nodes say of one number."""
    answers: dict[int, Array] = {LEQ: t >= x, LT: t > x, GTE: t <= x, GT: t < x, EQ: t == x, NEQ: t != x}
    return np.select([mode == m for m in answers], list(answers.values()), False)


def _sets(c: Call, raw: RawTrees, rows: Array, column: Column) -> dict[int, Array]:
    """Nodes that become categorical: the set that is equal, and NaN among the others."""
    sets = {}
    for k in rows[np.isin(raw.mode[rows], (EQ, NEQ, MEMBER))].tolist():
        members = raw.members.get(k, raw.split[k : k + 1])
        whole = bool(((members >= 0) & (members <= _MAX_CATEGORY) & (members == np.floor(members))).all())
        if column.plain and whole and (raw.mode[k] == NEQ or not raw.nan_yes[k]):
            sets[k] = np.unique(members).astype(np.int64)
        elif raw.mode[k] == MEMBER:
            c.refuse(
                "a set with numbers other than 0, 1, 2, ..., on a scaled column, or with NaN on its true side",
                "encode categories as whole numbers from 0 on",
            )
    return sets


@dataclass(slots=True)
class _Plain:
    """The arrays as lists: a walk reads them one element at a time."""

    mode: list[int]
    feature: list[int]
    yes: list[int]
    no: list[int]
    nan: list[bool]
    at_most: list[tuple[float, bool]]
    below: list[tuple[float, bool]]
    sets: dict[int, Array]


def _plain(raw: RawTrees, tests: Tests, columns: tuple[Column, ...]) -> _Plain:
    feature = np.array([column.feature for column in columns], np.int64)
    of_node = feature[np.where(raw.mode == LEAF, 0, raw.feature)]
    at_most, below = (
        list(zip(c.threshold.tolist(), c.opposite.tolist(), strict=True)) for c in (tests.at_most, tests.below)
    )
    mode, features, yes, no, nan = (a.tolist() for a in (raw.mode, of_node, raw.yes, raw.no, tests.nan))
    return _Plain(mode, features, yes, no, nan, at_most, below, tests.sets)


#: A raw node, and whether its first test is done.
_Entry = tuple[int, bool]


class _Walk:
    """One tree in preorder, without recursion. The stack holds entries with their parents."""

    def __init__(self, plain: _Plain, builder: ForestBuilder) -> None:
        self._plain, self._builder = plain, builder
        self._rows: list[tuple[int, float, bool, int]] = []
        self._children: tuple[list[int], list[int]] = ([], [])
        self.leaves: list[int] = []

    def run(self, root: int, budget: int) -> int:
        """The number of nodes and leaves; stops above ``budget``."""
        stack: list[tuple[int, bool, int, int]] = [(root, False, -1, 0)]
        mode = self._plain.mode
        while stack and len(self._rows) + len(self.leaves) <= budget:
            node, second, parent, side = stack.pop()
            if mode[node] == LEAF:
                code = ~len(self.leaves)
                self.leaves.append(node)
            else:
                code = len(self._rows)
                left, right = self._node(node, second)
                stack.append((*right, code, 1))
                stack.append((*left, code, 0))
            if parent >= 0:
                self._children[side][parent] = code
        return len(self._rows) + len(self.leaves) + len(stack)

    def arrays(self) -> dict[str, Array]:
        """Forest's node arrays."""
        feature, threshold, default_left, sets = zip(*self._rows, strict=True) if self._rows else ((), (), (), ())
        category = np.array(sets, np.int32)
        return {
            "feature": np.array(feature, np.int32),
            "threshold": np.array(threshold, np.float64),
            "left": np.array(self._children[0], np.int32),
            "right": np.array(self._children[1], np.int32),
            "missing": np.full(category.size, Missing.NAN, np.uint8),
            "default_left": np.array(default_left, np.bool_),
            "categorical": category >= 0,
            "category_set": category,
        }

    def _node(self, node: int, second: bool) -> tuple[_Entry, _Entry]:
        """Adds one node; its left and right child as entries of the stack."""
        p = self._plain
        mode, nan = p.mode[node], p.nan[node]
        yes, no = (p.yes[node], False), (p.no[node], False)
        if node in p.sets:
            return self._category(node)
        threshold, opposite = (p.below if second or mode in (LT, GTE) else p.at_most)[node]
        if mode in (EQ, NEQ):
            equal, other = (no, yes) if mode == NEQ else (yes, no)
            nan_equal = nan != (mode == NEQ)
            if second:
                holds, fails, nan_holds = other, equal, not nan_equal
            else:
                holds, fails, nan_holds = (node, True), other, nan_equal
        else:
            holds, fails, nan_holds = (yes, no, nan) if mode in (LEQ, LT) else (no, yes, not nan)
        if opposite:
            holds, fails, nan_holds = fails, holds, not nan_holds
        return self._add(node, threshold, nan_holds, -1, holds, fails)

    def _category(self, node: int) -> tuple[_Entry, _Entry]:
        """A node that looks its value up; a chain of "or equal to" with one result becomes one set."""
        p = self._plain
        members = [p.sets[node]]
        equal, other = (p.no[node], p.yes[node]) if p.mode[node] == NEQ else (p.yes[node], p.no[node])
        while (
            p.mode[other] in (EQ, MEMBER)
            and other in p.sets
            and p.feature[other] == p.feature[node]
            and p.yes[other] == equal
        ):
            members.append(p.sets[other])
            other = p.no[other]
        number = self._builder.add_set(np.unique(np.concatenate(members)))
        return self._add(node, 0.0, False, number, (equal, False), (other, False))

    def _add(
        self,
        node: int,
        threshold: float,
        default_left: bool,
        category: int,
        left: tuple[int, bool],
        right: tuple[int, bool],
    ) -> tuple[_Entry, _Entry]:
        self._rows.append((self._plain.feature[node], threshold, default_left, category))
        for side in self._children:
            side.append(0)
        return left, right
