"""Trees as nested ifs in C: the text of functions that hold many trees each. Which trees: see ``group_trees``.

GCC joins conditions across the trees of a function, so a function holds as many as compile in reasonable time.
Not here: what a leaf is worth (``LeafText``), ranking, sums.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from mcugen.core.types import Array
from mcugen.trees.tables import TreeTables

#: Nodes of one function: compilers take more than linear time for larger ones, and smaller ones fill memory better.
FUNCTION_NODES = 1100
#: Ranks that a Cortex-M keeps in registers beside the sum.
REGISTERS = 13
#: A tree cannot be cut: the largest one, and all of them together, as far as compilers take less than some minutes.
MOST_TREE_NODES, MOST_NODES = 2500, 60_000
#: Compilers limit how deep blocks may nest (clang: 256).
MOST_DEPTH = 100

#: (leaf, counted over all trees) -> the C literal that it adds.
LeafText = Callable[[int], str]


@dataclass(frozen=True, slots=True)
class Run:
    """Trees of output ``output`` that one function adds, in the order of their sum.

    ``scale[i]``: what the sum is multiplied with before tree i, so that it is in that tree's unit. ``first`` and
    ``last``: whether the sum starts and ends here; after the last tree it is multiplied with ``end``.
    """

    output: int
    trees: tuple[int, ...]
    scale: tuple[int, ...]
    first: bool
    last: bool
    end: int


#: One function: runs of one or more outputs.
TreeGroup = tuple[Run, ...]


def order_trees(tables: TreeTables, outputs: int, factor: Array, free: bool) -> Array:
    """(T,) the trees of output 0, of output 1 and so on, each in the order of their sum.

    ``free``: sums are of integers, so that trees may stand as their tests are alike.
    """
    found = [np.arange(k, tables.n_trees, outputs) for k in range(outputs)]
    return np.concatenate([_order(tables, members, factor) if free else members for members in found])


def group_trees(
    tables: TreeTables, outputs: int, factor: Array, order: Array, limit: int = FUNCTION_NODES
) -> tuple[TreeGroup, ...]:
    """Functions for all trees as ``order`` has them, at most ``limit`` nodes each where trees allow it."""
    groups: list[TreeGroup] = []
    group: list[Run] = []
    nodes = 0
    for k in range(outputs):
        members = order[order % outputs == k]
        pending: list[int] = []
        done = 0
        for t in members.tolist():
            size = int(tables.sizes[t])
            if (pending or group) and nodes + size > limit:
                if pending:
                    group.append(_run(k, members, factor, done, len(pending)))
                groups.append(tuple(group))
                done, pending, group, nodes = done + len(pending), [], [], 0
            pending.append(t)
            nodes += size
        group.append(_run(k, members, factor, done, len(pending)))
    return (*groups, tuple(group))


def _order(tables: TreeTables, members: Array, factor: Array) -> Array:
    """Coarse units first; within a unit each tree behind the one whose tests it shares most, by rows that make them.

    A compiler then knows more of the next tree's tests: 4 to 15 % fewer instructions on seven models.
    """
    test = np.unique(tables.column * (int(tables.operand.max(initial=0)) + 1) + tables.operand, return_inverse=True)[1]
    rows = {t: _tests_of(tables, test.reshape(-1), t) for t in members.tolist()}
    found: list[int] = []
    for unit in sorted(set(factor[members].tolist()), reverse=True):
        rest = [t for t in members.tolist() if factor[t] == unit]
        table = _Alike([rows[t] for t in rest])
        last = rows[found[-1]] if found else rows[rest[0]]
        for i in table.chain(last):
            found.append(rest[i])
    return np.array(found, np.int64)


def _tests_of(tables: TreeTables, test: Array, tree: int) -> tuple[Array, Array]:
    """The distinct tests of a tree, and the share of rows that makes each."""
    a, b = tables.first[tree], tables.first[tree + 1]
    which, inverse = np.unique(test[a:b], return_inverse=True)
    return which, np.bincount(inverse.reshape(-1), tables.probability[a:b], which.size)


class _Alike:
    """Trees by the tests they share: sparse rows, so that a step costs what the trees have in common."""

    def __init__(self, rows: list[tuple[Array, Array]]) -> None:
        self._rows = rows
        tests = np.concatenate([r[0] for r in rows])
        owner = np.repeat(np.arange(len(rows)), [r[0].size for r in rows])
        share = np.concatenate([r[1] for r in rows])
        order = np.argsort(tests, kind="stable")
        self._tests, self._owner, self._share = tests[order], owner[order], share[order]

    def chain(self, last: tuple[Array, Array]) -> list[int]:
        """All trees, each the one most like the one before it; ``last`` stands before the first."""
        left = np.ones(len(self._rows), np.bool_)
        found: list[int] = []
        for _ in self._rows:
            common = self._common(last)
            i = int(np.argmax(np.where(left, common, -1.0)))
            left[i] = False
            found.append(i)
            last = self._rows[i]
        return found

    def _common(self, row: tuple[Array, Array]) -> Array:
        """(trees,) the share of rows that make tests of ``row`` in each tree, too."""
        start, stop = (np.searchsorted(self._tests, row[0], side) for side in ("left", "right"))
        count = stop - start
        at = np.repeat(start - np.cumsum(count) + count, count) + np.arange(int(count.sum()))
        share = np.minimum(np.repeat(row[1], count), self._share[at])
        return np.asarray(np.bincount(self._owner[at], share, len(self._rows)))


def _run(output: int, members: Array, factor: Array, start: int, count: int) -> Run:
    trees = members[start : start + count]
    units = factor[members[max(start - 1, 0) : start + count]]
    before = units[:-1] if start else np.concatenate([units[:1], units[:-1]])
    scale = tuple((before // units[len(units) - count :]).tolist()) if count else ()
    last = start + count == members.size
    end = int(units[-1]) if last and units.size else 1
    return Run(output, tuple(trees.tolist()), scale, start == 0, last, end)


def tree_lines(tables: TreeTables, tree: int, leaf_text: LeafText, sets: str) -> list[str]:
    """The statements of one tree. ``sets``: the C name of the table of sets."""
    lines: list[str] = []
    first = int(tables.first[tree])
    # What is still to be written, the next at the end: a closing line, or a subtree (node, nodes, leaf) and its depth.
    todo: list[tuple[int, int, int, int, str]] = [(first, int(tables.sizes[tree]), first + tree, 1, "")]
    while todo:
        node, size, leaf, depth, text = todo.pop()
        pad = "    " * min(depth, 8)
        if text:
            lines.append(pad + text)
        elif size == 0:
            lines.append(f"{pad}MCG_BRANCH_ADD({leaf_text(leaf)}, {tree}, {int(tables.leaf_names[leaf])});")
        else:
            distance = int(tables.distance[node])
            left = (node + 1, distance - 1, leaf)
            right = (node + distance, size - distance, leaf + distance)
            go_left = bool(tables.left_share[node] >= 0.5)
            likely, other = (left, right) if go_left else (right, left)
            lines.append(f"{pad}if ({_test(tables, node, go_left, sets)}) {{")
            todo += [
                (0, 0, 0, depth, "}"),
                (*other, depth + 1, ""),
                (0, 0, 0, depth, "} else {"),
                (*likely, depth + 1, ""),
            ]
    return lines


def _test(tables: TreeTables, node: int, go_left: bool, sets: str) -> str:
    column, operand = int(tables.column[node]), int(tables.operand[node])
    share = float(tables.left_share[node])
    percent = min(round(100 * max(share, 1 - share)), 99)
    if column >= tables.first_set:
        inside = f"MCG_BRANCH_IN({sets}, {operand}u, r[{column}])"
        return f"MCG_BRANCH_IF({inside if go_left else '!' + inside}, {percent})"
    return f"MCG_BRANCH_IF(r[{column}] {'<=' if go_left else '>'} {operand}u, {percent})"
