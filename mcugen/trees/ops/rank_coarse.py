"""RankCoarse: the ranks of RankInputs by coarse tables: code for each column, that knows its numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mcugen.core.op import Cost, Item, Names, OpText
from mcugen.core.passes import value_type
from mcugen.core.types import Array, DType, TensorType
from mcugen.ctext.literals import float32_literal, float64_literal, int_literal
from mcugen.errors import InternalError
from mcugen.trees.coarse import FEW, SCALE, SEARCH, SHIFT, Coarse, cell_of, cells_of, map_of, one_rank_a_cell
from mcugen.trees.keys import key_code, key_ctype
from mcugen.trees.ranking import Ranking, parts
from mcugen.trees.support import code_item, define, never_empty, short_type, table_item

#: Bytes of code a column takes.
_COLUMN_BYTES = 96
#: A direct table of categories: at most so many entries for each category.
_SPREAD, _LEAST = 4, 64


@dataclass(frozen=True, slots=True, eq=False)
class RankCoarse(Ranking):
    """x (F,) -> rank (columns,), exact, column by column. ``coarse``: the tables of the numeric columns."""

    kernel: ClassVar[tuple[str, str]] = ("MCG_C_INSIDE", "include/mcg_trees_coarse.h")

    coarse: Coarse

    def check(self, types: Mapping[str, TensorType]) -> None:
        x = value_type(types, self.inputs[0], "RankCoarse")
        rank = value_type(types, self.outputs[0], "RankCoarse")
        c, t = self.columns, self.coarse
        ok = x.dtype is self.dtype and rank.shape == (max(c.n_columns, 1),) and rank.dtype is c.rank_dtype
        ok = ok and (c.n_columns == 0 or max(c.feature.max(initial=0), c.category_feature.max(initial=0)) < x.count)
        ok = ok and t.search.size == c.n_numeric and all(self._cells_are_right(i) for i in range(t.kind.size))
        if not (ok and all(self._map_is_right(i) for i in range(c.n_numeric))):
            raise InternalError(str(self.loc), "RankCoarse: a table does not fit the keys of its column")

    def _keys(self, i: int) -> Array:
        t = self.coarse
        return t.keys[t.first_key[i] : t.first_key[i + 1]]

    def _cells_are_right(self, i: int) -> bool:
        """What the C relies on: keys ascend, cells count the keys below, and few keys share a cell."""
        t, keys = self.coarse, self._keys(i)
        kind = int(t.kind[i])
        if kind in (FEW, SEARCH):
            return bool(np.all(keys[1:] >= keys[:-1]))
        cells = t.cells[t.first_cell[i] : t.first_cell[i + 1]]
        peel, most = int(t.peel[i]), int(t.most[i])
        first = keys[peel]
        cell = cell_of(np.maximum(keys, first), kind, int(t.amount[i]), int(t.low[i]), int(first), self.dtype)
        below, shared = cells_of(keys, cell, cells.size, peel)
        ok = np.all(keys[1:] >= keys[:-1]) and np.all(cell[1:] >= cell[:-1]) and keys[peel] < keys[-1]
        ok = ok and (most > 0 or (kind == SHIFT and one_rank_a_cell(keys, int(t.amount[i]), peel)))
        # What is compared is below the last key: the first peeled one is all that is not above it.
        ok = ok and np.array_equal(below, cells) and (most == 0 or int(shared.max()) <= most)
        return bool(ok and np.all(keys[:peel] < keys[peel]))

    def _map_is_right(self, c: int) -> bool:
        """The search of a column is of its feature, and its keys, or a map of them, are the column's."""
        t, columns = self.coarse, self.columns
        s, first = int(t.search[c]), int(t.first_map[c])
        merged, keys = self._keys(s), parts(columns.keys, columns.count)[c]
        if t.feature[s] != columns.feature[c]:
            return False
        if first < 0:
            return np.array_equal(merged, keys)
        right = map_of(keys, merged, int(columns.missing_rank[c]))
        whole = bool(np.all(np.isin(keys, merged)) and np.all(merged[1:] > merged[:-1])) and not columns.zero_missing[c]
        return whole and np.array_equal(t.maps[first : first + right.size], right)

    def eval(self, *args: Array) -> tuple[Array, ...]:
        """(N, F) inputs -> (N, columns) int64 ranks."""
        return (self.ranks(args[0]),)

    @property
    def _cell_dtype(self) -> DType:
        t = self.coarse
        top = max(self.columns.top_rank, int(t.cells.max(initial=0)), int(t.maps.max(initial=0)))
        return DType.U8 if top <= DType.U8.max else DType.U16

    def _direct(self, categories: Array) -> bool:
        """Whether a category's code is looked up in one step."""
        if not categories.size or self.columns.top_rank > DType.U16.max:
            return False
        span = int(categories[-1] - categories[0]) + 1
        return int(categories[0]) >= 0 and span <= _SPREAD * categories.size + _LEAST

    def _codes(self) -> tuple[Array, tuple[int, ...]]:
        """Codes of all categories between the ends of each direct column, and where each column's begin."""
        found, first, size = [np.zeros(0, np.int64)], [], 0
        for categories in parts(self.columns.categories, self.columns.category_count):
            first.append(size)
            if self._direct(categories):
                low, high = int(categories[0]), int(categories[-1])
                row = np.full(high - low + 1, categories.size, np.int64)
                row[categories - low] = np.arange(categories.size)
                found.append(row)
                size += row.size
        return np.concatenate(found), tuple(first)

    def items(self, prefix: str) -> tuple[Item, ...]:
        c, t = self.columns, self.coarse
        found = [code_item(f"{prefix}_rank", 24 + _COLUMN_BYTES * c.n_columns, 16 * c.n_columns, "ranks the inputs")]
        stored = np.repeat(t.compares, t.count)
        if stored.any():
            keys = t.keys[stored].astype(np.dtype(key_code(self.dtype)))
            about = "sorted thresholds of each search, as keys"
            found.append(table_item(f"{prefix}_keys", key_ctype(self.dtype), keys, 1.5 * t.compares.sum(), about))
        cell = self._cell_dtype
        if t.cells.size:
            about = "keys below each coarse cell"
            found.append(table_item(f"{prefix}_cells", cell.ctype, t.cells.astype(cell.np), t.kind.size, about))
        if t.maps.size:
            about = "rank in a column by rank in its search"
            found.append(table_item(f"{prefix}_maps", cell.ctype, t.maps.astype(cell.np), c.n_numeric, about))
        if c.category_feature.size:
            codes = self._codes()[0]
            if codes.size:
                about = "code of each category"
                found.append(table_item(f"{prefix}_codes", cell.ctype, codes.astype(cell.np), 1, about))
            if not all(self._direct(p) for p in parts(c.categories, c.category_count)):
                table = never_empty(c.categories.astype(np.int32))
                found.append(table_item(f"{prefix}_categories", "int32_t", table, 8, "categories that have a code"))
        return tuple(found)

    def emit(self, prefix: str, args: tuple[str, ...], results: tuple[str, ...], names: Names) -> OpText:
        c = self.columns
        wide = self.dtype is DType.F64
        macros = {
            "NAME": f"{prefix}_rank",
            "TYPE": short_type(self.dtype),
            "WORK": "int64_t" if wide else "int32_t",
            "WIDE": "uint64_t" if wide else "uint32_t",
            "CELL": self._cell_dtype.ctype,
        }
        lines = [line for s in range(self.coarse.kind.size) for line in self._search(prefix, s)]
        first = np.concatenate([[0], np.cumsum(c.category_count)]).tolist()
        codes = self._codes()[1]
        lines += [self._group(prefix, g, int(first[g]), codes[g]) for g in range(c.category_feature.size)]
        if not lines:
            lines = [
                "    rank[0] = 0; /* single leaves read no input; rank has one element all the same */",
                "    (void)x;",
            ]
        types = {"keys": key_ctype(self.dtype), "cells": self._cell_dtype.ctype, "maps": self._cell_dtype.ctype}
        types |= {"codes": self._cell_dtype.ctype, "categories": "int32_t"}
        used = [key for key in types if f"{prefix}_{key}" in names.table]
        parameters = "".join(f"const {types[key]} *{key}, " for key in used)
        head = f"typedef {c.rank_dtype.ctype} {prefix}_rank_t;\n\n"
        head += define("MCG_C", macros) + '#include "mcugen/mcg_trees_coarse.h"\n\n'
        signature = f"static void {prefix}_rank({parameters}const {self.dtype.ctype} *x, {prefix}_rank_t *rank)"
        text = f"{head}{names.section[f'{prefix}_rank']} {signature}\n{{\n" + "\n".join(lines) + "\n}\n"
        given = "".join(f"{names.table[f'{prefix}_{key}']}, " for key in used)
        return OpText(("mcg_trees.h",), text, f"{prefix}_rank({given}{args[0]}, {results[0]});")

    def _search(self, prefix: str, s: int) -> list[str]:
        """The statements of one search and the columns that it serves."""
        c, t = self.columns, self.coarse
        members = np.flatnonzero(t.search == s).tolist()
        shared = bool(t.first_map[members[0]] >= 0)
        missing = f"{int(t.count[s]) + 1 if shared else int(c.missing_rank[members[0]])}u"
        value = self._call(prefix, s, missing)
        tests = self._tests(prefix, members[0])
        if tests:
            value = f"{' || '.join(tests)} ? {missing} : {value}"
        if not shared:
            return [f"    rank[{members[0]}] = ({prefix}_rank_t)({value});"]
        lines = [f"        const uint32_t at = {value};"]
        lines += [f"        rank[{i}] = ({prefix}_rank_t)maps[{int(t.first_map[i])}u + at];" for i in members]
        return ["    {", *lines, "    }"]

    def _call(self, prefix: str, s: int, missing: str) -> str:
        t, kind = self.coarse, int(self.coarse.kind[s])
        bits = 64 if self.dtype is DType.F64 else 32
        place = int(t.count[:s][t.compares[:s]].sum())
        keys = f"keys + {place}" if t.compares[s] else "NULL"
        given = [f"x + {int(t.feature[s])}", keys, f"{int(t.count[s])}u"]
        if kind in (SHIFT, SCALE):
            given.append(f"cells + {int(t.first_cell[s])}")
            given += [int_literal(int(self._keys(s)[j]), bits) for j in (0, int(t.peel[s]), -1)]
            given += [f"{int(t.amount[s])}u"] if kind == SHIFT else [self._scale(s), int_literal(int(t.low[s]))]
            given += [f"{int(t.most[s])}u", str(int(t.low_first[s]))]
        name = {FEW: "few", SHIFT: "shift", SCALE: "scale", SEARCH: "search"}[kind]
        return f"{prefix}_rank_{name}({', '.join([*given, missing])})"

    def _tests(self, prefix: str, column: int) -> list[str]:
        """What else makes an input of the column a missing value."""
        c, bits = self.columns, 64 if self.dtype is DType.F64 else 32
        feature = int(c.feature[column])
        ranges = []
        if self.has_sentinel[feature]:
            ranges.append((self.sentinel[feature], self.sentinel[feature]))
        if c.zero_missing[column]:
            ranges.append((c.zero_low[column], c.zero_high[column]))
        texts = [", ".join(int_literal(int(v), bits) for v in ends) for ends in ranges]
        return [f"{prefix}_rank_within(x + {feature}, {text})" for text in texts]

    def _scale(self, i: int) -> str:
        scale = 2.0 ** int(self.coarse.amount[i])
        return float32_literal(scale) if self.dtype is DType.F32 else float64_literal(scale)

    def _group(self, prefix: str, g: int, first: int, code: int) -> str:
        """The statement that codes one categorical column."""
        c = self.columns
        count, at, exact = int(c.category_count[g]), f"x + {int(c.category_feature[g])}", int(c.exact)
        categories = c.categories[first : first + count]
        target = f"    rank[{c.n_numeric + g}] = ({prefix}_rank_t)"
        if self._direct(categories):
            low, high = int(categories[0]), int(categories[-1])
            table = f"codes + {code}"
            return f"{target}{prefix}_rank_code({at}, {table}, {low}, {high - low + 1}u, {exact}, {count}u);"
        category = f"mcg_category_{short_type(self.dtype)}({at}, {exact})"
        return f"{target}mcg_category_code(categories + {first}, {count}u, {category});"

    def cost(self) -> Cost:
        c = self.columns
        return Cost(reads=3.0 * c.n_columns, macs=0, steps=float(c.n_columns), worst_steps=c.n_columns)
