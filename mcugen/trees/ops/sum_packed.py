"""SumPacked: ranks to scores. Trees are words of 16 bits, leaves among them; two trees are walked side by side."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import groupby
from typing import ClassVar

import numpy as np

from mcugen.core.op import Cost, Item, Names, OpText
from mcugen.core.passes import value_type
from mcugen.core.types import Array, DType, TensorType
from mcugen.ctext.arrays import array_rows
from mcugen.errors import InternalError
from mcugen.trees.leaves import PackedLeaves
from mcugen.trees.packed import WordBits, Words
from mcugen.trees.summing import Summing
from mcugen.trees.support import code_item, define, table_item

_CODE_BYTES = 330
_GROUP = np.dtype([("trees", "<u2"), ("output", "<u2"), ("units", "<i4")])


@dataclass(frozen=True, slots=True, eq=False)
class SumPacked(Summing):
    """rank (columns,) -> score (K,) int32 in units of the leaves.

    ``bits`` and ``table``: what a word holds, and the words; trees of one output and one unit stand together.
    """

    kernel: ClassVar[tuple[str, str]] = ("MCG_P_NAME", "include/mcg_trees_packed.h")

    leaves: PackedLeaves
    bits: WordBits
    table: Words
    block: int = 1

    def row_bytes(self, types: Mapping[str, TensorType]) -> int:
        """Ranks by the codes of their columns, where columns have codes."""
        return types[self.inputs[0]].dtype.size << self.bits.column if self.bits.column_first else 0

    @property
    def bound_error(self) -> float:
        return self.leaves.bound.error

    @property
    def unit(self) -> float:
        return self.leaves.unit

    @property
    def _outputs(self) -> int:
        return int(self.leaves.base.size)

    @property
    def _groups(self) -> Array:
        """(G, 3) trees, output, factor of runs of trees."""
        keys = ((int(t) % self._outputs, int(self.leaves.factor[t])) for t in self.table.order)
        found = [(len(list(run)), *key) for key, run in groupby(keys)]
        most = DType.U16.max
        cut = [(min(n - a, most), k, f) for n, k, f in found for a in range(0, n, most)]
        return np.array(cut, np.int64).reshape(-1, 3)

    def check(self, types: Mapping[str, TensorType]) -> None:
        rank = value_type(types, self.inputs[0], "SumPacked")
        score = value_type(types, self.outputs[0], "SumPacked")
        t, w, leaves = self.tables, self.table, self.leaves
        ok = rank.shape == (max(t.n_columns, 1),) and score.shape == (self._outputs,) and score.dtype is DType.I32
        ok = ok and leaves.leaf.shape == (t.column.size + t.n_trees, 1) and not t.has_sets
        ok = ok and self._outputs <= DType.U16.max and np.array_equal(np.sort(w.order), np.arange(t.n_trees))
        # Words of the flag 0 are leaves, or are never reached.
        flagged = w.words & ((1 << self.bits.flag) - 1) == 0
        ok = ok and bool(np.all(flagged[w.leaf_of >= 0]))
        ok = ok and int(np.abs(leaves.leaf.astype(np.int64)).max()) <= self.bits.most
        if not ok:
            raise InternalError(str(self.loc), "SumPacked: tables do not fit the types of its operands")

    def walk(self, rank: Array) -> Array:
        """(N, columns) ranks -> (N, T) leaves, counted over all trees: over the words that the C reads."""
        rows, trees = len(rank), self.tables.n_trees
        slot = self._slots(rank)
        leaf = np.empty((rows, trees), np.int64)
        leaf[:, self.table.order] = self.table.leaf_of[slot]
        return leaf

    def _slots(self, rank: Array) -> Array:
        """(N, T) the word that each tree, as they stand, ends at."""
        b, words = self.bits, self.table.words.astype(np.int64)
        coded = np.zeros((len(rank), 1 << b.column), np.int64)
        coded[:, b.code(np.arange(rank.shape[1]))] = rank
        start = self.table.first[:-1]
        q = np.zeros((len(rank), start.size), np.int64)
        at = np.tile(start + 1, (len(rank), 1))
        while True:
            word = words[at]
            row, tree = np.nonzero(word & ((1 << b.flag) - 1))
            if not row.size:
                return at
            w = word[row, tree]
            r = coded[row, (w >> b.column_at) & ((1 << b.column) - 1)]
            q[row, tree] += (w >> b.distance_at) & ((1 << b.distance) - 1)
            at[row, tree] = start[tree] + 2 * q[row, tree] + (r >= w >> (b.distance + b.column))

    def eval(self, *args: Array) -> tuple[Array, ...]:
        """(N, columns) ranks -> (N, K) scores."""
        word = self.table.words[self._slots(args[0])]
        value = (word.view(np.int16) >> self.bits.flag).astype(np.int64)
        out = np.tile(self.leaves.base.astype(np.int64), (len(value), 1))
        for i, t in enumerate(self.table.order.tolist()):
            out[:, t % self._outputs] += value[:, i] * self.leaves.factor[t]
        if out.size and np.abs(out).max() > DType.I32.max:
            raise InternalError(str(self.loc), "an int32 sum overflowed that was proven not to")
        return (out.astype(np.int32),)

    @property
    def _stride(self) -> int:
        """Words of each tree, 0 where they differ."""
        sizes = np.diff(self.table.first)
        return int(sizes[0]) if np.all(sizes == sizes[0]) else 0

    @property
    def _sure(self) -> int:
        """Steps that every tree makes."""
        w = self.table
        sure, level = 0, w.first[:-1] + 1
        pair = np.zeros(level.size, np.int64)
        start = w.first[:-1]
        while sure < 3:
            word, bits = w.words[level].astype(np.int64), self.bits
            if not np.all(word & ((1 << bits.flag) - 1)):
                return sure
            distance = (word >> bits.distance_at) & ((1 << bits.distance) - 1)
            sure += 1
            pair = pair + distance
            level = np.concatenate([start + 2 * pair, start + 2 * pair + 1])
            start, pair = np.tile(start, 2), np.tile(pair, 2)
        return sure

    def _sizes(self) -> Array:
        sizes = np.diff(self.table.first)
        return sizes.astype(np.uint16 if sizes.max(initial=0) <= DType.U16.max else np.uint32)

    def items(self, prefix: str) -> tuple[Item, ...]:
        t = self.tables
        code = code_item(f"{prefix}_sum", _CODE_BYTES, 9 * t.steps[0] + 9 * t.n_trees, "walks the trees, adds leaves")
        order = ("column", "distance") if self.bits.column_first else ("distance", "column")
        about = f"from bit 0 on: {' and '.join(order)}, then rank; or, behind {self.bits.flag} bits of 0, a leaf"
        found = [code, table_item(f"{prefix}_nodes", "uint16_t", self.table.words, t.steps[0] + t.n_trees, about)]
        if not self._stride:
            sizes = self._sizes()
            ctype = f"uint{8 * sizes.itemsize}_t"
            found.append(table_item(f"{prefix}_sizes", ctype, sizes, t.n_trees, "words of each tree"))
        groups = self._groups
        rows = np.zeros(len(groups), _GROUP)
        rows["trees"], rows["output"], rows["units"] = groups.T
        about = "trees of one unit: how many, output, units"
        item = table_item(f"{prefix}_groups_of_trees", "mcg_tree_group_t", rows, len(groups), about)
        found.append(replace(item, align=4))
        base = self.leaves.base.astype(np.int32)
        found.append(table_item(f"{prefix}_base", "int32_t", base, self._outputs, "where the sums start"))
        return tuple(found)

    def trace_items(self, prefix: str) -> tuple[Item, ...]:
        # The table of names is by word, and stands beside the function that reads it.
        return tuple(replace(i, data=None, count=0, size=0) for i in self.tables.trace_items(prefix))

    def emit(self, prefix: str, args: tuple[str, ...], results: tuple[str, ...], names: Names) -> OpText:
        t, b, function = self.tables, self.bits, f"{prefix}_sum"
        sizes = self._sizes()
        macros = {
            "NAME": function,
            "SECTION": names.section[function],
            "RANK": f"{prefix}_rank_t",
            "DISTANCE_BITS": str(b.distance),
            "COLUMN_BITS": str(b.column),
            "FLAG_BITS": str(b.flag),
            "DISTANCE_AT": str(b.distance_at),
            "COLUMN_AT": str(b.column_at),
            "COLUMNS_USED": f"{t.n_columns}u",
            "STRIDE": f"{self._stride}u",
            "SIZE": f"uint{8 * sizes.itemsize}_t",
            "SURE": str(self._sure),
            "GROUPS": f"{len(self._groups)}u",
            "OUTPUTS": f"{self._outputs}u",
            "TREES": f"{t.n_trees}u",
            "ID": t.name_ctype,
        }
        if self.block > 1:
            macros |= {"COLUMNS": f"{max(t.n_columns, 1)}u", "BLOCK": f"{self.block}u"}
        named = np.where(self.table.leaf_of >= 0, t.leaf_names[np.maximum(self.table.leaf_of, 0)], 0)
        text = define("MCG_P", macros) + '#include "mcugen/mcg_trees_packed.h"\n#if defined(MCG_TRACE)\n'
        for key, ctype, data in (("names", t.name_ctype, named), ("order", "uint32_t", self.table.order)):
            text += f"static const {ctype} {prefix}_trace_{key}[{data.size}] = {{\n{array_rows(data)}}};\n"
        text += "#endif\n"
        tables = [names.table.get(f"{prefix}_{k}", "NULL") for k in ("nodes", "sizes")]
        call = [*tables, names.table[f"{prefix}_groups_of_trees"], names.table[f"{prefix}_base"], args[0], results[0]]
        rows = [*call[:-2], f"{args[0]}_rows", f"{results[0]}_rows", "n"]
        trace = f"{prefix}_trace_names, {prefix}_trace_order, {args[0]}, leaf"
        return OpText(
            ("mcg_trees.h",),
            text,
            f"{function}({', '.join(call)});",
            f"{function}_leaves({', '.join(tables)}, {trace});",
            rows=f"{function}_rows({', '.join(rows)});" if self.block > 1 else "",
        )

    def cost(self) -> Cost:
        mean, worst = self.tables.steps
        return Cost(mean + self.tables.n_trees, 0, mean, worst)
