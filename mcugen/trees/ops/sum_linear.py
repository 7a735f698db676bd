"""SumLinear: trees whose leaves are linear models, summed in float64 as the library does."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mcugen.core.op import Cost, Item, Names, OpText
from mcugen.core.passes import value_type
from mcugen.core.types import Array, DType, TensorType
from mcugen.ctext.literals import float64_literal
from mcugen.errors import InternalError
from mcugen.trees.forest import LinearLeaves
from mcugen.trees.signals import InputSpec
from mcugen.trees.summing import Summing
from mcugen.trees.support import code_item, define, short_type, table_item

_CODE_BYTES = 260


@dataclass(frozen=True, slots=True, eq=False)
class SumLinear(Summing):
    """rank (columns,), x (F,) -> score (K,) float64: ``constant + coef * x + ...`` of each tree's leaf.

    Where an input of the leaf is missing, its plain value (``value``, (L,)). Leaves stand in layout order. ``band``:
    inputs of this magnitude or less are 0.0.
    """

    kernel: ClassVar[tuple[str, str]] = ("MCG_L_NAME", "include/mcg_trees_linear.h")

    value: Array
    linear: LinearLeaves
    base: Array
    spec: InputSpec
    band: float
    block: int = 1

    def check(self, types: Mapping[str, TensorType]) -> None:
        score = value_type(types, self.outputs[0], "SumLinear")
        leaves = self.tables.column.size + self.tables.n_trees
        ok = score.shape == self.base.shape and score.dtype is DType.F64 and self.value.shape == (leaves,)
        ok = ok and self.linear.first_term.shape == (leaves + 1,) and self.linear.const.shape == (leaves,)
        if not ok:
            raise InternalError(str(self.loc), "SumLinear: tables do not fit the types of its operands")

    @np.errstate(over="ignore", invalid="ignore")  # 0 * inf and inf - inf are NaN in the library too
    def eval(self, *args: Array) -> tuple[Array, ...]:
        """(N, columns) ranks and (N, F) inputs -> (N, K) float64."""
        leaf = self.walk(args[0])
        x = self.spec.values(args[1])
        x = np.where(np.abs(x) <= self.band, 0.0, x)
        out = np.tile(self.base.astype(np.float64), (len(leaf), 1))
        lin = self.linear
        terms = np.diff(lin.first_term)
        for t in range(self.tables.n_trees):
            at = leaf[:, t]
            total = lin.const[at].astype(np.float64)
            missing = np.zeros(len(at), np.bool_)
            for j in range(int(terms[at].max(initial=0))):
                rows = np.flatnonzero(terms[at] > j)
                term = lin.first_term[at[rows]] + j
                value = x[rows, lin.feature[term]]
                missing[rows] |= np.isnan(value)
                total[rows] += lin.coef[term] * value
            out[:, t % self.base.size] += np.where(missing, self.value[at], total)
        return (out,)

    @property
    def _scaled(self) -> bool:
        return any(s.scale is not None for s in self.spec.signals)

    @property
    def _sentinel(self) -> bool:
        return any(s.missing is not None for s in self.spec.signals)

    @property
    def _first_ctype(self) -> str:
        return "uint16_t" if self.linear.coef.size <= 0xFFFF else "uint32_t"

    def items(self, prefix: str) -> tuple[Item, ...]:
        t, lin, trees = self.tables, self.linear, self.tables.n_trees
        mean_terms = lin.coef.size / max(self.value.size, 1) * trees
        first = lin.first_term.astype(np.uint16 if self._first_ctype == "uint16_t" else np.uint32)
        feature = lin.feature.astype(np.uint16)
        found = [
            code_item(
                f"{prefix}_linear", _CODE_BYTES, 12 * t.steps[0] + 20 * mean_terms, "walks the trees, adds leaves"
            ),
            *t.items(prefix),
            table_item(f"{prefix}_leaf", "double", self.value, 0.1 * trees, "leaves where an input is missing"),
            table_item(f"{prefix}_base", "double", self.base, self.base.size, "where the sums start"),
            table_item(f"{prefix}_constant", "double", lin.const, trees, "constant of each leaf"),
            table_item(f"{prefix}_first", self._first_ctype, first, 2 * trees, "first term of each leaf"),
        ]
        if lin.coef.size:
            found.append(table_item(f"{prefix}_feature", "uint16_t", feature, mean_terms, "input of each term"))
            found.append(table_item(f"{prefix}_coef", "double", lin.coef, mean_terms, "coefficient of each term"))
        if self._scaled:
            maps = [v for s in self.spec.signals for v in (1.0 if s.scale is None else s.scale, s.offset)]
            found.append(
                table_item(f"{prefix}_maps", "double", np.array(maps), mean_terms, "scale, offset of each input")
            )
        if self._sentinel:
            pairs = [v for s in self.spec.signals for v in (int(s.missing is not None), s.missing or 0)]
            about = "has a sentinel, sentinel"
            found.append(table_item(f"{prefix}_marks", "int32_t", np.array(pairs, np.int32), mean_terms, about))
        return tuple(found)

    def trace_items(self, prefix: str) -> tuple[Item, ...]:
        return self.tables.trace_items(prefix)

    def emit(self, prefix: str, args: tuple[str, ...], results: tuple[str, ...], names: Names) -> OpText:
        t, function = self.tables, f"{prefix}_linear"
        shared = {"NAME": f"{prefix}_plain", "SECTION": "MCG_UNUSED"}
        shared |= t.sum_macros(prefix, "double", "double", self.base.size, 1)
        macros = {
            "NAME": function,
            "SECTION": names.section[function],
            "TYPE": short_type(self.spec.dtype),
            "FIRST": self._first_ctype,
            "SCALED": str(int(self._scaled)),
            "SENTINEL": str(int(self._sentinel)),
            "BAND": float64_literal(self.band),
        }
        text = t.walk_text(prefix) + define("MCG_S", shared) + '#include "mcugen/mcg_trees_sum.h"\n'
        text += define("MCG_L", macros) + '#include "mcugen/mcg_trees_linear.h"\n'
        if self.block > 1:
            sizes = {"COLUMNS": f"{max(t.n_columns, 1)}u", "INPUTS": f"{len(self.spec.signals)}u"}
            text += define("MCG_L", sizes) + '#include "mcugen/mcg_trees_linear_rows.h"\n'
        tables = [t.arguments(prefix, names, names.table[f"{prefix}_leaf"])]
        optional = ("base", "constant", "first", "feature", "coef", "maps", "marks")
        tables += [names.table.get(f"{prefix}_{key}", "NULL") for key in optional]
        call = f"{function}({', '.join(tables)}, {args[0]}, {args[1]}, {results[0]});"
        operands = f"{args[0]}_rows, {args[1]}_rows, {results[0]}_rows, n"
        rows = f"{function}_rows({', '.join(tables)}, {operands});" if self.block > 1 else ""
        ids = t.arguments(prefix, names, f"{prefix}_leaf_names")
        return OpText((), text, call, f"{prefix}_plain_leaves({ids}, {args[0]}, leaf);", rows=rows)

    def cost(self) -> Cost:
        mean, worst = self.tables.steps
        terms = round(self.linear.coef.size / max(self.value.size, 1) * self.tables.n_trees)
        return Cost(mean + 2 * self.tables.n_trees + 2 * terms, terms, mean, worst)
