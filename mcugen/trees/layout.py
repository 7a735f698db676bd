"""Trees in the order in which the walker reads them: constant nodes gone, each node's left child right behind it.

A tree of n nodes stands in preorder. ``distance`` of a node is the number of nodes in its left subtree plus one, so
that

* going left:  the next node is at + 1, and ``distance - 1`` nodes remain in the subtree
* going right: the next node is at + distance, and ``remaining - distance`` nodes remain

With no nodes remaining the walk is at a leaf. Leaves stand in order from left to right: going right skips
``distance`` of them. So no node needs a flag for leaves and no leaf needs a place among the nodes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mcugen.core.types import Array
from mcugen.trees.decisions import Decisions
from mcugen.trees.forest import Forest


@dataclass(frozen=True, slots=True, eq=False)
class Layout:
    """Places and figures of all trees.

    ``node`` (N',): the forest's node at each place; ``distance`` (N',); ``sizes`` (T,): nodes of each tree;

    ``leaf`` (N' + T,): the forest's leaf (over all trees) at each place; ``probability`` (N',): the share of training
    rows that came by, and ``left_share`` (N',) of these the share that went left; ``depths`` (T,): the longest way
    through each tree.
    """

    node: Array
    distance: Array
    sizes: Array
    leaf: Array
    probability: Array
    left_share: Array
    depths: Array


def lay_out(forest: Forest, decisions: Decisions) -> Layout:
    """Preorder of all trees at once, level by level: linear in the number of nodes, no recursion."""
    n, leaves = forest.n_nodes, forest.n_nodes + forest.n_trees
    first = forest.first_node
    # One index space: nodes 0..n-1, leaves n..n+leaves-1.
    tree = forest.tree_of_node
    left = _global(decisions.left, tree, forest, n)
    right = _global(decisions.right, tree, forest, n)
    target = np.arange(n + leaves)
    constant = np.flatnonzero(decisions.constant >= 0)
    target[constant] = np.where(decisions.constant[constant] == 1, left[constant], right[constant])
    _resolve(target, constant)
    left, right = target[left], target[right]
    has_nodes = np.diff(first) > 0
    root = np.where(has_nodes, np.minimum(first[:-1], max(n - 1, 0)), n + forest.first_leaf[:-1])
    root = target[root] if n else root
    levels = _levels(root, left, right, n)
    size = np.zeros(n + leaves, np.int64)
    for level in reversed(levels):
        size[level] = 1 + size[left[level]] + size[right[level]]
    sizes = size[root]
    place = np.zeros(n + leaves, np.int64)
    leaf_place = np.zeros(n + leaves, np.int64)
    place[root] = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    leaf_place[root] = place[root] + np.arange(forest.n_trees)
    count = np.concatenate([forest.node_count, forest.leaf_count])
    reach = np.zeros(n + leaves)
    reach[root] = 1.0
    share = np.full(n, 0.5)
    depths = np.zeros(forest.n_trees, np.int64)
    for level in levels:
        depths[np.unique(tree[level])] += 1
        lo, hi = left[level], right[level]
        skip = size[lo] + 1
        place[lo], place[hi] = place[level] + 1, place[level] + skip
        leaf_place[lo], leaf_place[hi] = leaf_place[level], leaf_place[level] + skip
        total = np.maximum(count[lo] + count[hi], 1e-300)
        share[level] = np.where(total > 1e-300, count[lo] / total, 0.5)
        reach[lo] = reach[level] * count[lo] / total
        reach[hi] = reach[level] * count[hi] / total
    kept = np.concatenate(levels) if levels else np.zeros(0, np.int64)
    node = np.zeros(kept.size, np.int64)
    node[place[kept]] = kept
    ends = np.concatenate([root[root >= n], *(c[c >= n] for level in levels for c in (left[level], right[level]))])
    leaf = np.zeros(ends.size, np.int64)
    leaf[leaf_place[ends]] = ends - n
    distance = size[left[node]] + 1 if n else node
    return Layout(node, distance, sizes, leaf, reach[node], share[node], depths)


def _global(child: Array, tree: Array, forest: Forest, n: int) -> Array:
    c = child.astype(np.int64)
    return np.where(c >= 0, c + forest.first_node[tree], n + ~c + forest.first_leaf[tree])


def _resolve(target: Array, constant: Array) -> None:
    """Follow chains of constant nodes to their end, by doubling."""
    while constant.size:
        further = target[target[constant]]
        if np.array_equal(further, target[constant]):
            return
        target[constant] = further


def _levels(root: Array, left: Array, right: Array, n: int) -> list[Array]:
    """Nodes by depth, parents before children."""
    levels = []
    level = root[root < n]
    while level.size:
        levels.append(level)
        below = np.concatenate([left[level], right[level]])
        level = below[below < n]
    return levels
