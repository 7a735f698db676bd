"""Nodes as decisions on keys: input type and sensor map folded in, constant nodes found.

Between a Forest (float thresholds) and its tables (ranks, distances). Only numbers here: no C, no layout.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mcugen.core.types import Array
from mcugen.trees.forest import Forest, Missing
from mcugen.trees.keys import key_range, threshold_keys, zero_interval
from mcugen.trees.signals import InputSpec


@dataclass(frozen=True, slots=True, eq=False)
class Decisions:
    """One row a node: left if ``key(x) <= key``; ``missing_left`` says where a missing value goes.

    ``zero_missing``: zero counts as missing, too. ``ordered_missing``: ``missing_left`` follows from comparing 0.0, so
    that it is monotone in the key. ``constant``: 1 always left, 0 always right, -1 neither. Children are those of the
    forest, swapped where a sensor map falls. Categorical nodes keep their set.
    """

    key: Array
    missing_left: Array
    zero_missing: Array
    ordered_missing: Array
    constant: Array
    left: Array
    right: Array


def decide_nodes(forest: Forest, spec: InputSpec) -> Decisions:
    """The decisions of all nodes for inputs as ``spec`` declares them."""
    n = forest.n_nodes
    key = np.zeros(n, np.int64)
    swap = np.zeros(n, np.bool_)
    numeric = ~forest.categorical
    zero = np.zeros(n, np.bool_)
    zero_possible = numeric & (forest.missing == Missing.ZERO)
    for f in np.unique(forest.feature).tolist():
        rows = np.flatnonzero(numeric & (forest.feature == f))
        if not rows.size:
            continue
        keyed = threshold_keys(forest.threshold[rows], spec.dtype, spec.signals[f], forest.zero_band)
        key[rows], swap[rows] = keyed.key, keyed.swap
        if zero_interval(spec.dtype, spec.signals[f], forest.zero_band) is not None:
            zero[rows] = zero_possible[rows]
    ordered = numeric & (forest.missing == Missing.NONE)
    missing_left = np.where(ordered, forest.threshold >= 0.0, forest.default_left)
    missing_left = np.where(swap & numeric, ~missing_left, missing_left)
    has_missing = zero | _nan_possible(spec)[forest.feature]
    low, high = key_range(spec.dtype)
    never, always = numeric & (key < low), numeric & (key >= high)
    constant = np.full(n, -1, np.int8)
    constant[always & (~has_missing | missing_left)] = 1
    constant[never & (~has_missing | ~missing_left)] = 0
    # "Never, but missing values go left" is "always, but missing values go right" with the children exchanged:
    # a key below the type's range has no place in a table of that type.
    flip = never & (constant < 0)
    key = np.where(flip, high, key)
    swap ^= flip
    missing_left = np.where(flip, ~missing_left, missing_left)
    return Decisions(
        key=key,
        missing_left=missing_left,
        zero_missing=zero,
        ordered_missing=ordered & ~flip,
        constant=constant,
        left=np.where(swap, forest.right, forest.left),
        right=np.where(swap, forest.left, forest.right),
    )


def _nan_possible(spec: InputSpec) -> Array:
    """(F,) bool: whether an input of the feature can stand for NaN."""
    return np.array([spec.dtype.is_float or s.missing is not None for s in spec.signals])
