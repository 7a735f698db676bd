"""Attributes of the tree ensembles of ai.onnx.ml to one plain form, RawTrees. What the modes mean is in ml_forest.py.

TreeEnsembleRegressor and TreeEnsembleClassifier (versions 1 to 3) list nodes by (tree, node) and weights apart; their
numbers are float32, or doubles in ``*_as_tensor``. TreeEnsemble (version 5) has nodes and leaves in two tables.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mcugen.core.types import Array
from mcugen.frontends.onnx.call import Call

#: Names of the modes; LEAF is 0. The order of the others is that of version 5.
MODES = ("LEAF", "BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ", "BRANCH_MEMBER")
LEAF, LEQ, LT, GTE, GT, EQ, NEQ, MEMBER = range(len(MODES))

_NODES = (
    "nodes_treeids nodes_nodeids nodes_featureids nodes_modes nodes_values nodes_values_as_tensor nodes_truenodeids "
    "nodes_falsenodeids nodes_missing_value_tracks_true nodes_hitrates nodes_hitrates_as_tensor base_values "
    "base_values_as_tensor post_transform"
)


def _weights(kind: str) -> str:
    return f" {kind}_treeids {kind}_nodeids {kind}_ids {kind}_weights {kind}_weights_as_tensor"


#: Every attribute that each op may have.
ATTRIBUTES = {
    "TreeEnsembleRegressor": frozenset((_NODES + _weights("target") + " aggregate_function n_targets").split()),
    "TreeEnsembleClassifier": frozenset(
        (_NODES + _weights("class") + " classlabels_int64s classlabels_strings").split()
    ),
    "TreeEnsemble": frozenset(
        (
            "nodes_splits nodes_featureids nodes_modes nodes_truenodeids nodes_falsenodeids nodes_trueleafs "
            "nodes_falseleafs nodes_missing_value_tracks_true nodes_hitrates tree_roots leaf_targetids leaf_weights "
            "membership_values aggregate_function post_transform n_targets"
        ).split()
    ),
}


@dataclass(frozen=True, slots=True, eq=False)
class RawTrees:
    """All nodes of all trees, leaves among them; every reference is an index into them.

    Shapes, n nodes, T trees, E weights: ``roots`` (T,); ``mode`` (n,) a number of MODES; ``feature, yes, no`` (n,) the
    feature and the children, unused in leaves; ``split`` (n,) float64; ``nan_yes`` (n,) bool, the flag
    missing_value_tracks_true; ``members`` the sets of MEMBER nodes; ``node_of, target_of, weight`` (E,): the leaf
    ``node_of`` adds ``weight`` to the target. ``double``: some number was given as a double.
    """

    roots: Array
    mode: Array
    feature: Array
    split: Array
    yes: Array
    no: Array
    nan_yes: Array
    members: dict[int, Array]
    node_of: Array
    target_of: Array
    weight: Array
    double: bool


def numbers(c: Call, name: str, floats: bool = False) -> Array | None:
    """A row of integers (int64) or floats (float64) of an attribute or its ``_as_tensor`` form, or None."""
    value: Any = c.attribute(name)
    if floats and (value is None or (isinstance(value, tuple) and not value)):
        value = c.attribute(f"{name}_as_tensor")
    if value is None:
        return None
    data: Array = np.asarray(value).reshape(-1)
    if data.size and data.dtype.kind not in ("fiu" if floats else "iu"):
        c.broken(f"attribute {name} is not a row of {'numbers' if floats else 'integers'}")
    out: Array = data.astype(np.float64 if floats else np.int64)
    return out


def _row(c: Call, name: str, size: int | None, floats: bool = False) -> Array:
    data = numbers(c, name, floats)
    if data is None:
        c.broken(f"attribute {name} is missing")
    if size is not None and data.size != size:
        c.broken(f"attribute {name} has {data.size} entries, not {size}")
    return data


def _flags(c: Call, size: int) -> Array:
    data = numbers(c, "nodes_missing_value_tracks_true")
    if data is None or not data.size:
        return np.zeros(size, np.bool_)
    return np.asarray(_row(c, "nodes_missing_value_tracks_true", size) != 0)


def read_classic(c: Call, kind: str) -> RawTrees:
    """The trees of TreeEnsembleRegressor (``kind`` target) or TreeEnsembleClassifier (class)."""
    ids = _row(c, "nodes_nodeids", None)
    n = ids.size
    if not n:
        c.broken("there are no nodes", "train at least one tree")
    tree = _row(c, "nodes_treeids", n)
    keys = _keys(c, tree, ids)
    mode = _modes(c, n)
    inner = mode != LEAF
    yes, no = (
        _find(c, keys, tree, _row(c, name, n), inner, name) for name in ("nodes_truenodeids", "nodes_falsenodeids")
    )
    weight = _row(c, f"{kind}_weights", None, floats=True)
    rows = np.ones(weight.size, np.bool_)
    nodes = [_row(c, f"{kind}_{part}", weight.size) for part in ("treeids", "nodeids")]
    node_of = _find(c, keys, nodes[0], nodes[1], rows, f"{kind}_nodeids")
    if (mode[node_of] != LEAF).any():
        c.broken("a node that is no leaf has a weight")
    tensors = ("nodes_values_as_tensor", f"{kind}_weights_as_tensor")
    return RawTrees(
        roots=_roots(c, tree, inner, yes, no),
        mode=mode,
        feature=_row(c, "nodes_featureids", n),
        split=_row(c, "nodes_values", n, floats=True),
        yes=yes,
        no=no,
        nan_yes=_flags(c, n),
        members={},
        node_of=node_of,
        target_of=_row(c, f"{kind}_ids", weight.size),
        weight=weight,
        double=any(getattr(c.attribute(t), "dtype", None) == np.float64 for t in tensors),
    )


def _keys(c: Call, tree: Array, ids: Array) -> dict[tuple[int, int], int]:
    keys = {key: k for k, key in enumerate(zip(tree.tolist(), ids.tolist(), strict=True))}
    if len(keys) < ids.size:
        c.broken("two nodes of a tree have one number")
    return keys


def _modes(c: Call, n: int) -> Array:
    value = c.attribute("nodes_modes")
    if not isinstance(value, tuple) or len(value) != n:
        c.broken("attribute nodes_modes does not fit the nodes")
    codes = {name: k for k, name in enumerate(MODES[:MEMBER])}
    for name in sorted({str(v) for v in value} - codes.keys()):
        c.refuse(f"nodes of mode {name[:40]}", f"known modes: {', '.join(codes)}")
    return np.array([codes[v] for v in value], np.int8)


def _find(c: Call, keys: dict[tuple[int, int], int], tree: Array, ids: Array, used: Array, name: str) -> Array:
    """(n,) indices of the nodes (tree, id) where ``used``, else 0."""
    out = np.zeros(ids.size, np.int64)
    for k in np.flatnonzero(used).tolist():
        found = keys.get((int(tree[k]), int(ids[k])))
        if found is None:
            c.broken(f"attribute {name} names node {ids[k]} of tree {tree[k]}, which is not there")
        out[k] = found
    return out


def _roots(c: Call, tree: Array, inner: Array, yes: Array, no: Array) -> Array:
    """(T,) the first node of each tree in the file, which onnxruntime takes for the root; it must be nobody's child."""
    parents = np.bincount(np.concatenate([yes[inner], no[inner]]), minlength=tree.size)
    _require_no_cycle(c, parents, inner, yes, no)
    roots = np.flatnonzero(np.concatenate([[True], tree[1:] != tree[:-1]]))
    if len(np.unique(tree[roots])) < len(roots) or parents[roots].any():
        c.broken("a tree is not in one piece, or does not begin with its root")
    return roots


def _require_no_cycle(c: Call, parents: Array, inner: Array, yes: Array, no: Array) -> None:
    """InputError if a node is its own ancestor. Nodes may have several parents: onnxmltools shares what is equal."""
    waits = parents.tolist()
    ready = [k for k, n in enumerate(waits) if n == 0]
    done = 0
    while ready:
        k = ready.pop()
        done += 1
        for child in (int(yes[k]), int(no[k])) if inner[k] else ():
            waits[child] -= 1
            if not waits[child]:
                ready.append(child)
    if done < len(waits):
        c.broken("a node is its own ancestor")


def read_new(c: Call) -> RawTrees:
    """The trees of TreeEnsemble: inner nodes first, then the leaves."""
    splits = _row(c, "nodes_splits", None, floats=True)
    n = splits.size
    weight = _row(c, "leaf_weights", None, floats=True)
    mode = _row(c, "nodes_modes", n) + 1
    if n and not (mode.min() >= LEQ and mode.max() <= MEMBER):
        c.broken("a mode that does not exist")
    yes, no = (_children(c, side, n, weight.size) for side in ("true", "false"))
    roots = _row(c, "tree_roots", None)
    if not roots.size or roots.min() < 0 or roots.max() >= n:
        c.broken("a root that is no node")
    pad = np.zeros(weight.size, np.int64)
    parents = np.bincount(np.concatenate([yes, no]), minlength=n + weight.size)
    inner = np.arange(n + weight.size) < n
    _require_no_cycle(c, parents, inner, np.concatenate([yes, pad]), np.concatenate([no, pad]))
    whole = np.concatenate([mode, pad]).astype(np.int8)
    return RawTrees(
        roots=roots,
        mode=whole,
        feature=np.concatenate([_row(c, "nodes_featureids", n), pad]),
        split=np.concatenate([splits, pad]),
        yes=np.concatenate([yes, pad]),
        no=np.concatenate([no, pad]),
        nan_yes=np.concatenate([_flags(c, n), pad]).astype(np.bool_),
        members=_members(c, np.flatnonzero(mode == MEMBER)),
        node_of=n + np.arange(weight.size),
        target_of=_row(c, "leaf_targetids", weight.size),
        weight=weight,
        double=any(getattr(c.attribute(t), "dtype", None) == np.float64 for t in ("nodes_splits", "leaf_weights")),
    )


def _children(c: Call, side: str, n: int, leaves: int) -> Array:
    ids, is_leaf = _row(c, f"nodes_{side}nodeids", n), _row(c, f"nodes_{side}leafs", n) != 0
    if (ids < 0).any() or (ids >= np.where(is_leaf, leaves, n)).any():
        c.broken(f"attribute nodes_{side}nodeids names a node that is not there")
    return np.where(is_leaf, ids + n, ids)


def _members(c: Call, nodes: Array) -> dict[int, Array]:
    """The sets of the MEMBER nodes, which stand one after the other, each ended by NaN."""
    if not nodes.size:
        return {}
    values = _row(c, "membership_values", None, floats=True)
    ends = np.flatnonzero(np.isnan(values))
    if ends.size != nodes.size:
        c.broken(f"{ends.size} sets in membership_values for {nodes.size} nodes of mode BRANCH_MEMBER")
    starts = np.concatenate([[0], ends[:-1] + 1])
    return {int(k): values[a:b] for k, a, b in zip(nodes, starts, ends, strict=True)}
