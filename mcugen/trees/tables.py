"""The node tables that both summing ops share, and the integer reference of the walk."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mcugen.core.op import Item, Names
from mcugen.core.types import Array
from mcugen.errors import UnsupportedError
from mcugen.trees.columns import Coded
from mcugen.trees.layout import Layout
from mcugen.trees.support import define, never_empty, table_item

_CHUNK = 1 << 20


@dataclass(frozen=True, slots=True, eq=False)
class TreeTables:
    """Nodes in preorder: ``column``, ``operand``, ``distance`` (N,), packed into words of ``word_bits`` from bit 0 on.

    ``sizes`` (T,) nodes of each tree; ``set_words`` bits of categorical sets; columns from ``first_set`` on test sets;
    ``leaf_names`` (L,) what the model calls each leaf; ``steps`` mean and worst nodes visited in a prediction.
    ``probability`` (N,) the share of training rows that came by a node, ``left_share`` (N,) of these what went left;
    ``depths`` (T,) the longest way through each tree.
    """

    column: Array
    operand: Array
    distance: Array
    sizes: Array
    set_words: Array
    first_set: int
    n_columns: int
    leaf_names: Array
    column_bits: int
    operand_bits: int
    word_bits: int
    steps: tuple[float, int]
    probability: Array
    left_share: Array
    depths: Array

    @property
    def first(self) -> Array:
        """(T + 1,) the first node of each tree; its first leaf is as many places on as trees stand before it."""
        return np.concatenate([[0], np.cumsum(self.sizes)]).astype(np.int64)

    @property
    def deepest(self) -> int:
        """The most nodes on the way through a tree."""
        return int(self.depths.max(initial=0))

    def steps_of_trees(self) -> Array:
        """(T,) nodes that a training row visits in each tree, on average."""
        total = np.concatenate([[0.0], np.cumsum(self.probability)])
        return np.asarray(total[self.first[1:]] - total[self.first[:-1]])

    def low_share(self) -> Array:
        """(columns,) about what share of rows is not above a column's first key, from the nodes that test it."""
        at = np.flatnonzero((self.column < self.first_set) & (self.operand == 0))
        weight = np.bincount(self.column[at], self.probability[at], self.n_columns)
        left = np.bincount(self.column[at], self.probability[at] * self.left_share[at], self.n_columns)
        return np.where(weight > 0, left / np.maximum(weight, 1e-300), 0.0)

    @property
    def n_trees(self) -> int:
        return int(self.sizes.size)

    @property
    def has_sets(self) -> bool:
        return self.n_columns > self.first_set

    @property
    def size_ctype(self) -> str:
        return "uint16_t" if self.sizes.max(initial=0) <= 0xFFFF else "uint32_t"

    @property
    def name_ctype(self) -> str:
        return "uint16_t" if self.leaf_names.max(initial=0) <= 0xFFFF else "uint32_t"

    def words(self) -> Array:
        """The packed nodes."""
        node = self.column.astype(np.uint64) | self.operand.astype(np.uint64) << np.uint64(self.column_bits)
        node |= self.distance.astype(np.uint64) << np.uint64(self.column_bits + self.operand_bits)
        return node.astype(f"<u{self.word_bits // 8}")

    def walk(self, rank: Array) -> Array:
        """(N, columns) ranks -> (N, T) leaves, counted over all trees. All rows and trees step together."""
        rows = len(rank)
        out = np.empty((rows, self.n_trees), np.int64)
        step = max(1, _CHUNK // max(self.n_trees, 1))
        for a in range(0, rows, step):
            out[a : a + step] = self._walk_block(rank[a : a + step])
        return out

    def _walk_block(self, rank: Array) -> Array:
        rows, trees = len(rank), self.n_trees
        first = np.concatenate([[0], np.cumsum(self.sizes)[:-1]])
        at = np.tile(first, rows)
        size = np.tile(self.sizes.astype(np.int64), rows)
        leaf = np.tile(first + np.arange(trees), rows)
        row = np.repeat(np.arange(rows), trees)
        active = np.flatnonzero(size > 0)
        while active.size:
            node = at[active]
            r = rank[row[active], self.column[node]]
            left = r <= self.operand[node]
            if self.has_sets:
                test = self.column[node] >= self.first_set
                word = self.set_words[(self.operand[node] + (r >> 5))[test]].astype(np.int64)
                left[test] = (word >> (r[test] & 31)) & 1
            distance = self.distance[node]
            at[active] = node + np.where(left, 1, distance)
            leaf[active] += np.where(left, 0, distance)
            size[active] = np.where(left, distance - 1, size[active] - distance)
            active = active[size[active] > 0]
        return leaf.reshape(rows, trees)

    def items(self, prefix: str) -> tuple[Item, ...]:
        """Nodes, sizes and sets."""
        about = f"bits 0..{self.column_bits - 1} column, then {self.operand_bits} rank or set, then distance"
        words = never_empty(self.words())
        found = [table_item(f"{prefix}_nodes", f"uint{self.word_bits}_t", words, self.steps[0], about)]
        sizes = self.sizes.astype(np.uint16 if self.size_ctype == "uint16_t" else np.uint32)
        found.append(table_item(f"{prefix}_sizes", self.size_ctype, sizes, self.n_trees, "nodes of each tree"))
        if self.set_words.size:
            share = float(np.mean(self.column >= self.first_set)) if self.column.size else 0.0
            about = "categories that go left, a bit a code"
            found.append(table_item(f"{prefix}_sets", "uint32_t", self.set_words, share * self.steps[0], about))
        return tuple(found)

    def trace_items(self, prefix: str) -> tuple[Item, ...]:
        """The names of the leaves, for NAME_leaves."""
        names = self.leaf_names.astype(np.uint16 if self.name_ctype == "uint16_t" else np.uint32)
        about = "what the model calls each leaf"
        return (table_item(f"{prefix}_leaf_names", self.name_ctype, names, self.n_trees, about),)

    def walk_text(self, prefix: str) -> str:
        """The instance of the walk template."""
        return (
            define(
                "MCG_W",
                {
                    "NAME": f"{prefix}_walk",
                    "RANK": f"{prefix}_rank_t",
                    "NODE": f"uint{self.word_bits}_t",
                    "COLUMN_BITS": str(self.column_bits),
                    "OPERAND_BITS": str(self.operand_bits),
                    "SETS": str(int(self.has_sets)),
                    "FIRST_SET": f"{self.first_set}u",
                },
            )
            + '#include "mcugen/mcg_trees_walk.h"\n'
        )

    def sum_macros(self, prefix: str, leaf_ctype: str, sum_ctype: str, outputs: int, values: int) -> dict[str, str]:
        """The macros that the sum and the linear template share."""
        return {
            "NODE": f"uint{self.word_bits}_t",
            "SIZE": self.size_ctype,
            "ID": self.name_ctype,
            "LEAF": leaf_ctype,
            "SUM": sum_ctype,
            "TREES": f"{self.n_trees}u",
            "OUTPUTS": str(outputs),
            "VALUES": str(values),
            "FLOAT": str(int(sum_ctype != "int32_t")),
        }

    def arguments(self, prefix: str, names: Names, leaves: str) -> str:
        """The first four arguments of a summing kernel; an empty table is a null pointer that is never read."""
        nodes = names.table[f"{prefix}_nodes"]
        sets = names.table.get(f"{prefix}_sets", "NULL")
        return f"{nodes}, {names.table[f'{prefix}_sizes']}, {leaves}, {sets}"


def make_tables(coded: Coded, layout: Layout, leaf_names: Array, where: str) -> TreeTables:
    """Tables with the narrowest words that hold every node."""
    c = coded.columns
    column_bits = max(1, int(max(c.n_columns - 1, 0)).bit_length())
    operand_bits = max(1, int(coded.operand.max(initial=0)).bit_length())
    distance_bits = max(1, int(layout.distance.max(initial=0)).bit_length())
    total = column_bits + operand_bits + distance_bits
    word_bits = next((w for w in (16, 32, 64) if total <= w), 0)
    if not word_bits or max(column_bits, operand_bits, distance_bits) > 31:
        raise UnsupportedError(where, f"nodes need {total} bits, 64 is the limit", "train with fewer leaves a tree")
    return TreeTables(
        column=coded.column,
        operand=coded.operand,
        distance=layout.distance,
        sizes=layout.sizes,
        set_words=coded.set_words,
        first_set=c.n_numeric,
        n_columns=c.n_columns,
        leaf_names=leaf_names,
        column_bits=column_bits,
        operand_bits=operand_bits,
        word_bits=word_bits,
        steps=(float(layout.probability.sum()), int(layout.depths.sum())),
        probability=layout.probability,
        left_share=layout.left_share,
        depths=layout.depths,
    )
