"""A forest as flat arrays: all nodes of all trees, then all leaves. What the user's model means, in float64.

Indices of children are local to their tree: ``c >= 0`` is the c-th node, ``c < 0`` the leaf ``~c``. A tree of
n nodes has n + 1 leaves, so the first leaf of tree t is ``first_node[t] + t``.

Numerical node: left if ``x <= threshold``. Before that, by ``missing``:

* NONE  NaN counts as 0.0
* ZERO  NaN and every ``|x| <= zero_band`` take the default side
* NAN   NaN takes the default side

Categorical node: the value is looked up (``category_match``: ``trunc`` truncates toward zero first, ``exact`` wants
equality); a category of the node's set goes left, another known one right, and what is not known, negative
(after truncation) or NaN takes the default side. With ``known_categories`` of None every category is known.

``zero_band``: inputs with ``|x| <= zero_band`` are turned into +0.0 before anything else (LightGBM's dense
prediction, 1e-35 as float32; 0.0 elsewhere).
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from enum import IntEnum

import numpy as np

from mcugen.core.types import Array


class Missing(IntEnum):
    """What stands for a missing value in a numerical node."""

    NONE = 0
    ZERO = 1
    NAN = 2


@dataclass(frozen=True, slots=True, eq=False)
class LinearLeaves:
    """Linear models in leaves: ``const + sum(coef * x[feature])``, or the plain leaf value if such an x is NaN.

    Shapes: ``const`` (leaves,); ``first_term`` (leaves + 1,); ``feature`` and ``coef`` (terms,). The terms are
    added in the order given.
    """

    const: Array
    first_term: Array
    feature: Array
    coef: Array


@dataclass(frozen=True, slots=True, eq=False)
class Forest:
    """Trees in the order in which their leaves are added.

    Shapes, with T trees, N nodes, L = N + T leaves, V values a leaf: ``first_node`` (T + 1,) int64;
    ``feature, left, right`` (N,) int32; ``threshold`` (N,) float64, unused in categorical nodes; ``missing`` (N,)
    uint8; ``default_left, categorical`` (N,) bool; ``leaf_value`` (L, V) float64; ``node_count`` (N,) and
    ``leaf_count`` (L,) float64: training rows that came by, all ones where unknown.

    ``category_set`` (N,) int32 is the set of a categorical node, else -1; the set s holds the categories
    ``set_member[first_member[s]:first_member[s + 1]]`` (int64, ascending).

    With V = 1 tree t adds to output ``t % outputs``; with V = outputs each tree adds to all of them.
    """

    n_features: int
    outputs: int
    first_node: Array
    feature: Array
    threshold: Array
    left: Array
    right: Array
    missing: Array
    default_left: Array
    categorical: Array
    category_set: Array
    first_member: Array
    set_member: Array
    leaf_value: Array
    node_count: Array
    leaf_count: Array
    zero_band: float
    category_match: str = "trunc"
    known_categories: tuple[Array | None, ...] | None = None
    linear: LinearLeaves | None = None

    @property
    def n_trees(self) -> int:
        return int(self.first_node.size - 1)

    @property
    def n_nodes(self) -> int:
        return int(self.feature.size)

    @property
    def values_per_leaf(self) -> int:
        return int(self.leaf_value.shape[1])

    @property
    def first_leaf(self) -> Array:
        """(T + 1,) the first leaf of each tree."""
        return self.first_node + np.arange(self.n_trees + 1)

    @property
    def tree_of_node(self) -> Array:
        """(N,) the tree of each node."""
        return np.repeat(np.arange(self.n_trees), np.diff(self.first_node))

    @property
    def tree_of_leaf(self) -> Array:
        """(L,) the tree of each leaf."""
        return np.repeat(np.arange(self.n_trees), np.diff(self.first_leaf))


_NODE_ARRAYS: dict[str, type] = {
    "feature": np.int32,
    "threshold": np.float64,
    "left": np.int32,
    "right": np.int32,
    "missing": np.uint8,
    "default_left": np.bool_,
    "categorical": np.bool_,
    "category_set": np.int32,
    "node_count": np.float64,
}


class ForestBuilder:
    """Collects trees one at a time, for front ends that read node objects. Arrays are concatenated at the end."""

    def __init__(self) -> None:
        self._nodes: dict[str, list[Array]] = {k: [] for k in _NODE_ARRAYS}
        self._leaf_value: list[Array] = []
        self._leaf_count: list[Array] = []
        self._sizes: list[int] = []
        self._members: list[Array] = []
        self._member_counts: list[int] = []

    def add_set(self, members: Array) -> int:
        """A set of categories (ascending integers); returns its number for ``category_set``."""
        self._members.append(np.asarray(members, np.int64))
        self._member_counts.append(len(members))
        return len(self._members) - 1

    def add_tree(self, *, leaf_value: Array, leaf_count: Array | None = None, **nodes: Array) -> None:
        """One tree. ``nodes`` has Forest's node arrays, of one length; ``leaf_value`` is (leaves,) or (leaves, V)."""
        n = len(nodes["feature"])
        nodes.setdefault("missing", np.zeros(n, np.uint8))
        nodes.setdefault("default_left", np.zeros(n, np.bool_))
        nodes.setdefault("categorical", np.zeros(n, np.bool_))
        nodes.setdefault("category_set", np.full(n, -1, np.int32))
        nodes.setdefault("node_count", np.ones(n))
        for key, dtype in _NODE_ARRAYS.items():
            self._nodes[key].append(np.asarray(nodes[key], dtype))
        values = np.asarray(leaf_value, np.float64)
        self._leaf_value.append(values.reshape(len(values), -1))
        self._leaf_count.append(np.ones(len(values)) if leaf_count is None else np.asarray(leaf_count, np.float64))
        self._sizes.append(n)

    def build(
        self,
        *,
        n_features: int,
        outputs: int,
        zero_band: float,
        category_match: str = "trunc",
        known_categories: tuple[Array | None, ...] | None = None,
        linear: LinearLeaves | None = None,
    ) -> Forest:
        """The forest of all trees added so far (at least one)."""
        nodes = {k: np.concatenate(v) for k, v in self._nodes.items()}
        return read_only(
            Forest(
                n_features=n_features,
                outputs=outputs,
                first_node=np.concatenate([[0], np.cumsum(self._sizes)]).astype(np.int64),
                **nodes,
                first_member=np.concatenate([[0], np.cumsum(self._member_counts)]).astype(np.int64),
                set_member=np.concatenate(self._members) if self._members else np.zeros(0, np.int64),
                leaf_value=np.concatenate(self._leaf_value),
                leaf_count=np.concatenate(self._leaf_count),
                zero_band=zero_band,
                category_match=category_match,
                known_categories=known_categories,
                linear=linear,
            )
        )


def read_only(forest: Forest) -> Forest:
    """``forest``, its arrays locked."""
    for owner in (forest, forest.linear):
        if owner is None:
            continue
        for f in fields(owner):
            value = getattr(owner, f.name)
            if isinstance(value, np.ndarray):
                value.flags.writeable = False
    return forest
