"""SumLeaves: ranks to scores. Every tree is walked over compact tables, its leaf added to the sum of its output."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mcugen.core.op import Cost, Item, Names, OpText
from mcugen.core.passes import value_type
from mcugen.core.types import Array, DType, TensorType
from mcugen.errors import InternalError
from mcugen.trees.leaves import PackedLeaves
from mcugen.trees.summing import Summing
from mcugen.trees.support import code_item, define, table_item

_CODE_BYTES = 160


@dataclass(frozen=True, slots=True, eq=False)
class SumLeaves(Summing):
    """rank (columns,) -> score (K,): int32 in units of the leaves, or float32 or float64 added tree by tree."""

    kernel: ClassVar[tuple[str, str]] = ("MCG_S_NAME", "include/mcg_trees_sum.h")

    leaves: PackedLeaves
    block: int = 1

    @property
    def bound_error(self) -> float:
        return self.leaves.bound.error

    @property
    def unit(self) -> float:
        return self.leaves.unit

    @property
    def sum_dtype(self) -> DType:
        return self.leaves.dtype if self.leaves.dtype.is_float else DType.I32

    @property
    def _values(self) -> int:
        return int(self.leaves.leaf.shape[1])

    @property
    def _outputs(self) -> int:
        return int(self.leaves.base.size)

    def check(self, types: Mapping[str, TensorType]) -> None:
        rank = value_type(types, self.inputs[0], "SumLeaves")
        score = value_type(types, self.outputs[0], "SumLeaves")
        t = self.tables
        ok = rank.shape == (max(t.n_columns, 1),) and score.shape == (self._outputs,)
        ok = ok and score.dtype is self.sum_dtype and self._values in (1, self._outputs)
        ok = ok and len(self.leaves.leaf) == t.column.size + t.n_trees == t.leaf_names.size
        if not ok:
            raise InternalError(str(self.loc), "SumLeaves: tables do not fit the types of its operands")

    @np.errstate(over="ignore", invalid="ignore")  # sums of doubles near 1e308, as in the library
    def eval(self, *args: Array) -> tuple[Array, ...]:
        """(N, columns) ranks -> (N, K) scores."""
        leaf = self.walk(args[0])
        exact = np.int64 if self.sum_dtype is DType.I32 else self.sum_dtype.np
        out = np.tile(self.leaves.base.astype(exact), (len(leaf), 1))
        value = self.leaves.leaf.astype(exact)
        for t in range(self.tables.n_trees):
            if self._values > 1:
                out += value[leaf[:, t]]
            else:
                out[:, t % self._outputs] += value[leaf[:, t], 0]
        if self.sum_dtype is DType.I32 and out.size and np.abs(out).max() > DType.I32.max:
            raise InternalError(str(self.loc), "an int32 sum overflowed that was proven not to")
        return (out.astype(self.sum_dtype.np),)

    def items(self, prefix: str) -> tuple[Item, ...]:
        t, leaf = self.tables, self.leaves.leaf
        flat = leaf.reshape(-1)
        code = code_item(f"{prefix}_sum", _CODE_BYTES, 12 * t.steps[0] + 10 * t.n_trees, "walks the trees, adds leaves")
        about = "leaves from left to right, tree after tree"
        return (
            code,
            *t.items(prefix),
            table_item(f"{prefix}_leaf", self.leaves.dtype.ctype, flat, t.n_trees * self._values, about),
            table_item(f"{prefix}_base", self.sum_dtype.ctype, self.leaves.base, self._outputs, "where the sums start"),
        )

    def trace_items(self, prefix: str) -> tuple[Item, ...]:
        return self.tables.trace_items(prefix)

    def emit(self, prefix: str, args: tuple[str, ...], results: tuple[str, ...], names: Names) -> OpText:
        t, function = self.tables, f"{prefix}_sum"
        macros = {"NAME": function, "SECTION": names.section[function]}
        macros |= t.sum_macros(prefix, self.leaves.dtype.ctype, self.sum_dtype.ctype, self._outputs, self._values)
        text = t.walk_text(prefix) + define("MCG_S", macros) + '#include "mcugen/mcg_trees_sum.h"\n'
        rows = ""
        if self.block > 1:
            text += define("MCG_S", {"COLUMNS": f"{max(t.n_columns, 1)}u"}) + '#include "mcugen/mcg_trees_sum_rows.h"\n'
        tables = t.arguments(prefix, names, names.table[f"{prefix}_leaf"])
        call = f"{function}({tables}, {names.table[f'{prefix}_base']}, {args[0]}, {results[0]});"
        if self.block > 1:
            operands = f"{args[0]}_rows, {results[0]}_rows, n"
            rows = f"{function}_rows({tables}, {names.table[f'{prefix}_base']}, {operands});"
        ids = t.arguments(prefix, names, f"{prefix}_leaf_names")
        return OpText((), text, call, f"{function}_leaves({ids}, {args[0]}, leaf);", rows=rows)

    def cost(self) -> Cost:
        mean, worst = self.tables.steps
        return Cost(mean + 2 * self.tables.n_trees, 0, mean, worst)
