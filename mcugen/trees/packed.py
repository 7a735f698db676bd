"""Trees as words of 16 bits: nodes and leaves in one table, the two children of a node side by side.

A tree of n nodes is its root and n pairs. A node's word holds how many pairs on its children's pair stands, the column
and the first rank that goes right; the comparison picks the child. The smaller of two subtrees comes first, so that
distances stay small. A word of distance 0 is a leaf, and its upper bits are the value.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mcugen.core.types import Array
from mcugen.trees.tables import TreeTables

WORD = 16


@dataclass(frozen=True, slots=True)
class WordBits:
    """From bit 0 on: ``distance``, ``column``, ``operand``; a leaf has all but ``distance``."""

    distance: int
    column: int
    operand: int

    @property
    def leaf(self) -> int:
        """Bits of a leaf, with its sign."""
        return WORD - self.distance

    @property
    def most(self) -> int:
        """The largest magnitude of a leaf."""
        return int((1 << (self.leaf - 1)) - 1)


@dataclass(frozen=True, slots=True, eq=False)
class Pairs:
    """``size`` (N,): nodes of the subtree below each node, itself included; ``distance`` (N,): pairs from the pair that

    a node is in to that of its children (1 for a root). ``place`` (N,), ``leaf_place`` (L,): slots within the tree:
    0 is the root, 1 + 2 * i and 2 + 2 * i are the i-th pair, left and right.
    """

    size: Array
    distance: Array
    place: Array
    leaf_place: Array


def pair_up(tables: TreeTables) -> Pairs:
    """All trees at once, level by level."""
    n, trees = tables.column.size, tables.n_trees
    size, pair, base = np.zeros(n, np.int64), np.zeros(n, np.int64), np.full(n, -1, np.int64)
    place, leaf_place = np.zeros(n, np.int64), np.zeros(n + trees, np.int64)
    first = tables.first[:-1]
    root = np.flatnonzero(tables.sizes > 0)
    level, leaf = first[root], first[root] + root
    size[level] = tables.sizes[root]
    while level.size:
        d = tables.distance[level]
        left, right = d - 1, size[level] - d  # nodes of the subtrees
        # The pair of the child that comes first follows at once, that of the other behind its subtree.
        left_first = (left <= right) & (left > 0) | (right == 0)
        next_pair = pair[level] + 1
        sides = (
            (left, level + 1, leaf, 1 + 2 * pair[level], np.where(left_first, next_pair, next_pair + right)),
            (right, level + d, leaf + d, 2 + 2 * pair[level], np.where(left_first, next_pair + left, next_pair)),
        )
        levels, leaves = [], []
        for count, child, child_leaf, slot, child_pair in sides:
            inner = count > 0
            size[child[inner]], pair[child[inner]] = count[inner], child_pair[inner]
            base[child[inner]] = pair[level[inner]]
            place[child[inner]] = slot[inner]
            leaf_place[child_leaf[~inner]] = slot[~inner]
            levels.append(child[inner])
            leaves.append(child_leaf[inner])
        level, leaf = np.concatenate(levels), np.concatenate(leaves)
    return Pairs(size, pair - base, place, leaf_place)


def word_bits(tables: TreeTables, pairs: Pairs) -> WordBits | None:
    """The bits of each part, or None where a node does not fit a word."""
    if tables.has_sets:
        return None
    distance = max(1, int(pairs.distance.max(initial=1)).bit_length())
    column = max(1, int(max(tables.n_columns - 1, 0)).bit_length())
    operand = int(tables.operand.max(initial=0) + 1).bit_length()
    fits = distance + column + operand <= WORD and distance <= WORD - 4
    return WordBits(distance, column, WORD - distance - column) if fits else None


@dataclass(frozen=True, slots=True, eq=False)
class Words:
    """The table (W,) uint16; its first word is not used. ``order`` (T,): trees as they stand; ``first`` (T + 1,): the

    word before the root of each of these;

    ``leaf_of`` (W,): the leaf of a word, counted over all trees as ``TreeTables`` does, or -1.
    """

    words: Array
    order: Array
    first: Array
    leaf_of: Array


def make_words(tables: TreeTables, pairs: Pairs, bits: WordBits, value: Array, order: Array) -> Words:
    """Words of the trees in ``order``; ``value`` (L,): what leaves are worth."""
    sizes = 2 * tables.sizes[order].astype(np.int64) + 1
    first = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    start = np.zeros(tables.n_trees, np.int64)  # of each tree, by its number
    start[order] = first[:-1]
    trees = np.arange(tables.n_trees)
    node_at = 1 + np.repeat(start, tables.sizes) + pairs.place
    leaf_at = 1 + np.repeat(start, tables.sizes + 1) + pairs.leaf_place
    words = np.zeros(int(first[-1]) + 1, np.int64)
    words[node_at] = pairs.distance | tables.column << bits.distance
    words[node_at] |= (tables.operand + 1) << (bits.distance + bits.column)
    words[leaf_at] = (value.astype(np.int64) << bits.distance) & 0xFFFF
    leaf_of = np.full(words.size, -1, np.int64)
    leaf_of[leaf_at] = np.arange(tables.column.size + trees.size)
    return Words(words.astype(np.uint16), order, first, leaf_of)
