"""Fitted scikit-learn trees (``tree_``) and histogram predictors as trees of a ForestBuilder.

scikit-learn numbers inner nodes and leaves together; Forest numbers them apart. What the estimators do with the trees
is in sklearn.py, categories are in sklearn_categories.py.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mcugen.core.types import Array, Loc
from mcugen.errors import InputError, InternalError
from mcugen.frontends.sklearn_categories import Categories
from mcugen.trees.forest import ForestBuilder, Missing

_FLOAT32_MAX = float(np.finfo(np.float32).max)


def through_float32(threshold: Array) -> Array:
    """For float64 thresholds t (N,), the largest float64 that a cast to float32 takes to a value ``<= t``.

    ``float32(x) <= t`` and ``x <= result`` then agree for every finite float64 x that float32 can hold: the cast
    is monotone. So the cast that scikit-learn applies to its inputs costs nothing, and holds for float64 and
    integer inputs too. Thresholds beyond float32's range, +inf among them, stay as they are.
    """
    inside = np.abs(threshold) < _FLOAT32_MAX
    t = np.where(inside, threshold, 0.0)
    below = t.astype(np.float32)
    below = np.where(below > t, np.nextafter(below, np.float32(-np.inf)), below)
    above = np.nextafter(below, np.float32(np.inf))
    middle = below.astype(np.float64) * 0.5 + above.astype(np.float64) * 0.5
    # A tie goes to the even neighbour; let the cast itself say which one that is.
    last = np.where(middle.astype(np.float32) <= below, middle, np.nextafter(middle, -np.inf))
    return np.where(inside, last, threshold)


def add_tree(builder: ForestBuilder, tree: Any, outputs: int, scale: float | None, missing: Missing, loc: Loc) -> None:
    """One ``sklearn.tree._tree.Tree`` of a single-output estimator.

    ``outputs``: values a leaf (classes, or 1). ``scale`` multiplies the leaves as float64, rounded once; None leaves
    them. ``missing`` is NAN where the estimator accepts NaN, else NONE. Raises InputError if a value is not finite.
    """
    nodes = tree.__getstate__()["nodes"]
    leaf = nodes["left_child"] < 0
    inner = ~leaf
    child = _renumber(leaf)
    value = tree.value[leaf, 0, :]
    if value.shape[1] != outputs:
        raise InternalError(str(loc), f"{value.shape[1]} values a leaf where {outputs} were expected")
    if missing == Missing.NAN:
        default_left = nodes["missing_go_to_left"][inner] != 0
    else:
        default_left = np.zeros(inner.sum(), np.bool_)
    threshold = nodes["threshold"][inner]
    value = value if scale is None else value * np.float64(scale)
    _require_finite(value, threshold, loc)
    builder.add_tree(
        feature=nodes["feature"][inner],
        threshold=through_float32(threshold),
        left=child[nodes["left_child"][inner]],
        right=child[nodes["right_child"][inner]],
        missing=np.full(inner.sum(), missing),
        default_left=default_left,
        node_count=nodes["n_node_samples"][inner],
        leaf_value=value,
        leaf_count=nodes["n_node_samples"][leaf],
    )


def add_predictor(builder: ForestBuilder, predictor: Any, order: Array, categories: Categories, loc: Loc) -> None:
    """One histogram ``TreePredictor``: float64 thresholds, no cast of x, NaN and unknown categories alike.

    ``order`` (F,) is the user's column of each column that the trees see.
    """
    nodes = predictor.nodes
    leaf = nodes["is_leaf"] != 0
    inner = nodes[~leaf]
    child = _renumber(leaf)
    feature = order[inner["feature_idx"].astype(np.int64)]
    categorical = inner["is_categorical"] != 0
    sets = np.full(len(inner), -1, np.int32)
    for node in np.flatnonzero(categorical):
        words = predictor.raw_left_cat_bitsets[inner["bitset_idx"][node]]
        sets[node] = builder.add_set(categories.members(int(feature[node]), words))
    threshold = np.where(categorical, 0.0, inner["num_threshold"])
    value = nodes["value"][leaf]
    _require_finite(value, threshold, loc)
    builder.add_tree(
        feature=feature,
        threshold=threshold,
        left=child[inner["left"].astype(np.int64)],
        right=child[inner["right"].astype(np.int64)],
        missing=np.full(len(inner), Missing.NAN),
        default_left=inner["missing_go_to_left"] != 0,
        categorical=categorical,
        category_set=sets,
        node_count=inner["count"],
        leaf_value=value,
        leaf_count=nodes["count"][leaf],
    )


def _renumber(leaf: Array) -> Array:
    """(nodes,) the library's node to Forest's child code: n for the n-th inner node, ~n for the n-th leaf."""
    return np.where(leaf, ~(np.cumsum(leaf) - 1), np.cumsum(~leaf) - 1)


def _require_finite(value: Array, threshold: Array, loc: Loc) -> None:
    # A threshold of +inf is meant: only NaN goes right there.
    if not np.isfinite(value).all():
        raise InputError(str(loc), "a leaf value is not finite", "the training diverged; train again")
    if np.isnan(threshold).any():
        raise InputError(str(loc), "a threshold is NaN", "the model is damaged; train again")
