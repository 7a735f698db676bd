"""The trees of a model as paths: parents, levels, the distinct tests of nodes, and which sides inputs take.

A side is a node and a way out of it: 0 left, 1 right. ``visits`` steps all rows at once through all nodes, 64 rows a
machine word: its cost is nodes times words, whatever the depth. Nothing here knows inputs, only ranks.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from mcugen.core.types import Array

if TYPE_CHECKING:  # the ops import tables, and tables their helpers
    from mcugen.trees.tables import TreeTables

_BLOCK_BYTES = 1 << 24
_MOST_ROWS = 4096


@dataclass(frozen=True, slots=True, eq=False)
class Paths:
    """Nodes in the order of the tables, and their distinct tests.

    ``parent`` (N,) node or -1; ``came_left`` (N,) bool; ``child`` (N, 2) node, or -1 for a leaf; ``levels``: nodes by
    depth, left children of a level before its right children. ``test`` (N,): the test of each node; tests (U,) are
    sorted by ``column``, then ``operand``; ``span`` (columns + 1,): where the tests of each column start.
    """

    tables: TreeTables
    parent: Array
    came_left: Array
    child: Array
    levels: tuple[Array, ...]
    depth: Array
    test: Array
    column: Array
    operand: Array
    span: Array

    @property
    def n_nodes(self) -> int:
        return int(self.parent.size)


def paths_of(tables: TreeTables) -> Paths:
    """The paths of all trees; linear in the number of nodes."""
    n = tables.column.size
    size = np.zeros(n, np.int64)
    distance = tables.distance.astype(np.int64)
    first = np.concatenate([[0], np.cumsum(tables.sizes)[:-1]]).astype(np.int64)
    level = first[tables.sizes > 0]
    size[level] = tables.sizes[tables.sizes > 0]
    parent, came_left = np.full(n, -1, np.int64), np.zeros(n, np.bool_)
    child = np.full((n, 2), -1, np.int64)
    depth = np.zeros(n, np.int64)
    levels: list[Array] = []
    while level.size:
        depth[level] = len(levels)
        levels.append(level)
        lefts, rights = level[distance[level] > 1], level[size[level] > distance[level]]
        child[lefts, 0], child[rights, 1] = lefts + 1, rights + distance[rights]
        parent[child[lefts, 0]], parent[child[rights, 1]] = lefts, rights
        came_left[child[lefts, 0]] = True
        size[child[lefts, 0]] = distance[lefts] - 1
        size[child[rights, 1]] = size[rights] - distance[rights]
        level = np.concatenate([child[lefts, 0], child[rights, 1]])
    joint = tables.column.astype(np.int64) << 32 | tables.operand.astype(np.int64)
    tests, test = np.unique(joint, return_inverse=True)
    span = np.searchsorted(tests >> 32, np.arange(tables.n_columns + 1))
    column, operand = tests >> 32, tests & 0xFFFFFFFF
    return Paths(
        tables=tables,
        parent=parent,
        came_left=came_left,
        child=child,
        levels=tuple(levels),
        depth=depth,
        test=test.reshape(-1),
        column=column,
        operand=operand,
        span=span,
    )


def goes_left(paths: Paths, a: int, b: int, rank: Array) -> Array:
    """(b - a, len(rank)) bool: outcome of the tests a..b-1, all of one column, for ranks or codes of that column."""
    operand, tables = paths.operand[a:b, None], paths.tables
    if paths.column[a] < tables.first_set:
        return np.asarray(rank[None, :] <= operand)
    word = tables.set_words[operand + (rank >> 5)[None, :]].astype(np.int64)
    return np.asarray((word >> (rank & 31)[None, :] & 1).astype(np.bool_))


def visits(paths: Paths, rank: Array) -> Array:
    """(R, columns) ranks -> (N, 2) bool: whether some row goes left, and right, at each node."""
    seen = np.zeros((paths.n_nodes, 2), np.bool_)
    for block in _blocks(paths, rank):
        for level, ways in _level_ways(paths, block):
            for side, way in enumerate(ways):
                seen[level, side] |= way.any(axis=1)
    return seen


def rows_by_side(paths: Paths, rank: Array, nodes: Array) -> Array:
    """(R, columns) ranks -> (2 * nodes, bytes) uint8: a bit a row (little) for the left, then right sides of nodes."""
    place = np.full(paths.n_nodes, -1, np.int64)
    place[nodes] = np.arange(nodes.size)
    parts = [np.zeros((2 * nodes.size, 0), np.uint8)]
    for block in _blocks(paths, rank):
        part = np.zeros((2 * nodes.size, (len(block) + 63) // 64), "<u8")
        for level, ways in _level_ways(paths, block):
            wanted = place[level] >= 0
            for side, way in enumerate(ways):
                part[place[level[wanted]] + side * nodes.size] = way[wanted]
        parts.append(part.view(np.uint8))
    return np.concatenate(parts, axis=1)


def _blocks(paths: Paths, rank: Array) -> Iterator[Array]:
    """Rows in blocks that keep one bit a row and node in some megabytes; a multiple of 64 but for the last."""
    step = _BLOCK_BYTES * 8 // max(paths.n_nodes, 1)
    step = max(64, min(step, _MOST_ROWS) // 64 * 64)
    for a in range(0, len(rank), step):
        yield rank[a : a + step]


def _level_ways(paths: Paths, rank: Array) -> Iterator[tuple[Array, tuple[Array, Array]]]:
    """Each level with the rows that leave its nodes to the left and to the right: (n, words) uint64 each."""
    left = _left_bits(paths, rank)
    all_rows = np.zeros(left.shape[1] * 8, np.uint8)
    packed = np.packbits(np.ones(len(rank), np.bool_), bitorder="little")
    all_rows[: packed.size] = packed
    if not paths.levels:
        return
    here = np.tile(all_rows.view("<u8"), (paths.levels[0].size, 1))
    for level in paths.levels:
        to_left = here & left[paths.test[level]]
        to_right = here ^ to_left
        yield level, (to_left, to_right)
        has = paths.child[level] >= 0
        here = np.concatenate([to_left[has[:, 0]], to_right[has[:, 1]]])


def _left_bits(paths: Paths, rank: Array) -> Array:
    """(tests, words) uint64: bit r is set where row r passes the test, that is, goes left."""
    rows = len(rank)
    out = np.zeros((paths.operand.size, (rows + 63) // 64 * 8), np.uint8)
    row = np.arange(rows)
    bit = (1 << (row & 7)).astype(np.uint8)
    for c, (a, b) in enumerate(pairwise(paths.span.tolist())):
        if a == b:
            continue
        if c < paths.tables.first_set:
            # Each row passes from its first operand >= rank on: mark that one, then carry the marks upwards.
            first = np.searchsorted(paths.operand[a:b], rank[:, c])
            passes = first < b - a
            np.bitwise_or.at(out, (a + first[passes], row[passes] >> 3), bit[passes])
            np.bitwise_or.accumulate(out[a:b], axis=0, out=out[a:b])
            continue
        step = max(1, (1 << 22) // max(rows, 1))
        for s in range(a, b, step):
            packed = np.packbits(goes_left(paths, s, min(s + step, b), rank[:, c]), axis=1, bitorder="little")
            out[s : s + step, : packed.shape[1]][: b - s] = packed
    return out.view("<u8")
