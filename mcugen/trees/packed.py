"""Trees as words of 16 bits: nodes and leaves in one table, the two children of a node side by side.

A tree of n nodes is its root and n pairs. A node's word holds how many pairs on its children's pair stands, the column
and the first rank that goes right; the comparison picks the child. The smaller of two subtrees comes first, so that
distances stay small. A word whose lowest bits, the flag, are 0 is a leaf, and the bits above them are the value. The
flag is the distance, which is 0 in leaves alone. Shorter flags make finer leaves: a part of the distance, of which no
multiple of ``2**flag`` is then used, so that a pair is left out here and there; or a part of the column, which then
stands lowest and leaves out the codes that are multiples of ``2**flag``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mcugen.core.types import Array
from mcugen.trees.tables import TreeTables

WORD = 16


@dataclass(frozen=True, slots=True)
class WordBits:
    """``distance`` and ``column`` bits stand lowest, the column first where ``column_first``; then ``operand``.

    A leaf has all bits but the lowest, the ``flag``.
    """

    distance: int
    column: int
    operand: int
    flag: int
    column_first: bool

    @property
    def distance_at(self) -> int:
        """The lowest bit of the distance."""
        return self.column if self.column_first else 0

    @property
    def column_at(self) -> int:
        """The lowest bit of the column."""
        return 0 if self.column_first else self.distance

    def code(self, column: Array) -> Array:
        """What stands for columns."""
        return column + column // ((1 << self.flag) - 1) + 1 if self.column_first else column

    @property
    def leaf(self) -> int:
        """Bits of a leaf, with its sign."""
        return WORD - self.flag

    @property
    def most(self) -> int:
        """The largest magnitude of a leaf."""
        return int((1 << (self.leaf - 1)) - 1)


@dataclass(frozen=True, slots=True, eq=False)
class Pairs:
    """``pairs`` (T,): of each tree, unused ones included; ``distance`` (N,): pairs from the pair that a node is in to

    that of its children (1 for a root). ``place`` (N,), ``leaf_place`` (L,): slots within the tree: 0 is the root,
    1 + 2 * i and 2 + 2 * i are the i-th pair, left and right.
    """

    pairs: Array
    distance: Array
    place: Array
    leaf_place: Array


@dataclass(frozen=True, slots=True, eq=False)
class _Level:
    """Nodes of one depth, and of each: nodes of its left and of its right subtree, and where these begin."""

    node: Array
    counts: tuple[Array, Array]
    child: tuple[Array, Array]
    leaf: tuple[Array, Array]


def _levels(tables: TreeTables) -> list[_Level]:
    """All trees at once, level by level."""
    size = np.zeros(tables.column.size, np.int64)
    first = tables.first[:-1]
    root = np.flatnonzero(tables.sizes > 0)
    node, leaf = first[root], first[root] + root
    size[node] = tables.sizes[root]
    found = []
    while node.size:
        d = tables.distance[node].astype(np.int64)
        found.append(_Level(node, (d - 1, size[node] - d), (node + 1, node + d), (leaf, leaf + d)))
        inner = [c > 0 for c in found[-1].counts]
        for count, child, has in zip(found[-1].counts, found[-1].child, inner, strict=True):
            size[child[has]] = count[has]
        sides = list(zip(found[-1].child, found[-1].leaf, inner, strict=True))
        node = np.concatenate([child[has] for child, _, has in sides])
        leaf = np.concatenate([at[has] for _, at, has in sides])
    return found


def pair_up(tables: TreeTables, flag: int = WORD) -> Pairs:
    """Pairs of all trees; no distance is a multiple of ``2**flag``."""
    n, levels = tables.column.size, _levels(tables)
    # Pairs below each node, from the leaves up: those of its children, and its children's own.
    below, skip = np.zeros(n + 1, np.int64), np.zeros(n, np.int64)  # skip: pairs of the first child, and unused ones
    left_first = np.zeros(n, np.bool_)
    for level in reversed(levels):
        left, right = (below[np.where(count > 0, at, n)] for count, at in zip(level.counts, level.child, strict=True))
        left_first[level.node] = (left <= right) & (left > 0) | (right == 0)
        before = np.where(left_first[level.node], left, right)
        both = (left > 0) & (right > 0)
        skip[level.node] = before + (both & ((before + 1) % (1 << flag) == 0))
        below[level.node] = 1 + skip[level.node] + np.where(left_first[level.node], right, left)
    pair, place, leaf_place = np.zeros(n, np.int64), np.zeros(n, np.int64), np.zeros(n + tables.n_trees, np.int64)
    distance = np.ones(n, np.int64)
    for level in levels:
        # ``pair``: that of a node's children, counted within the tree.
        at = pair[level.node]
        for side in (0, 1):
            inner = level.counts[side] > 0
            slot, child = 1 + side + 2 * at, level.child[side][inner]
            comes_first = left_first[level.node] == (side == 0)
            distance[child] = np.where(comes_first, 1, 1 + skip[level.node])[inner]
            pair[child] = at[inner] + distance[child]
            place[child] = slot[inner]
            leaf_place[level.leaf[side][~inner]] = slot[~inner]
    pairs = np.zeros(tables.n_trees, np.int64)
    root = np.flatnonzero(tables.sizes > 0)
    pairs[root] = below[tables.first[:-1][root]]
    return Pairs(pairs, distance, place, leaf_place)


#: The shortest flag: shorter ones leave out too much.
_LEAST_FLAG = 2
#: Codes of columns cost some instructions each, and no bytes; beyond so many unused pairs are the smaller price.
_MOST_CODES = 16


def word_bits(tables: TreeTables, pairs: Pairs, flag: int = WORD) -> WordBits | None:
    """The bits of each part, or None where a node does not fit a word. ``flag``: as the pairs were made."""
    if tables.has_sets:
        return None
    distance = max(1, int(pairs.distance.max(initial=1)).bit_length())
    column = max(1, int(max(tables.n_columns - 1, 0)).bit_length())
    operand = int(tables.operand.max(initial=0) + 1).bit_length()
    fits = distance + column + operand <= WORD and distance <= WORD - 4
    return WordBits(distance, column, WORD - distance - column, min(distance, flag), False) if fits else None


def word_forms(tables: TreeTables) -> tuple[tuple[Pairs, WordBits], ...]:
    """All forms of words that these trees can have, the shortest leaves first."""
    pairs = pair_up(tables)
    bits = word_bits(tables, pairs)
    if bits is None:
        return ()
    found = [(pairs, bits)]
    for flag in range(bits.distance - 1, _LEAST_FLAG - 1, -1):
        if tables.n_columns <= min(_MOST_CODES, (1 << bits.column) - (1 << max(bits.column - flag, 0))):
            found.append((pairs, WordBits(bits.distance, bits.column, bits.operand, flag, True)))
            continue
        apart = pair_up(tables, flag)
        finer = word_bits(tables, apart, flag)
        if finer is not None:
            found.append((apart, finer))
    return tuple(found)


def form_for(tables: TreeTables, most: int) -> tuple[Pairs, WordBits] | None:
    """The form with the shortest leaves that hold ``most``."""
    return next((form for form in word_forms(tables) if form[1].most >= most), None)


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
    sizes = 2 * pairs.pairs[order] + 1
    first = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    start = np.zeros(tables.n_trees, np.int64)  # of each tree, by its number
    start[order] = first[:-1]
    trees = np.arange(tables.n_trees)
    node_at = 1 + np.repeat(start, tables.sizes) + pairs.place
    leaf_at = 1 + np.repeat(start, tables.sizes + 1) + pairs.leaf_place
    words = np.zeros(int(first[-1]) + 1, np.int64)
    words[node_at] = pairs.distance << bits.distance_at | bits.code(tables.column) << bits.column_at
    words[node_at] |= (tables.operand + 1) << (bits.distance + bits.column)
    words[leaf_at] = (value.astype(np.int64) << bits.flag) & 0xFFFF
    leaf_of = np.full(words.size, -1, np.int64)
    leaf_of[leaf_at] = np.arange(tables.column.size + trees.size)
    return Words(words.astype(np.uint16), order, first, leaf_of)
