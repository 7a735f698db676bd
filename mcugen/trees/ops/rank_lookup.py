"""RankLookup: the ranks of RankInputs by a loop over columns with small coarse tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import ClassVar

import numpy as np

from mcugen.core.op import Cost, Item, Names, OpText
from mcugen.core.passes import value_type
from mcugen.core.types import Array, DType, TensorType
from mcugen.errors import InternalError
from mcugen.trees.columns import Columns
from mcugen.trees.lookup import MOST_BYTES, Lookup, lookup_cells, lookup_tables, most_bytes
from mcugen.trees.ranking import Ranking, parts
from mcugen.trees.support import code_item, define, never_empty, short_type, table_item

_CODE_BYTES = 210
#: The key of the least float32 that is none, from above.
FIRST_NAN = 0x7F800001
#: Keys of a cell that are compared one by one; a binary search among more.
_FEW = 6
_COLUMN = np.dtype(
    [
        ("lowest", "<i4"),
        ("from", "<i4"),
        ("input", "<u2"),
        ("table", "<u2"),
        ("unit", "u1"),
        ("shift", "u1"),
        ("cells", "u1"),
        ("width", "u1"),
    ]
)


@dataclass(frozen=True, slots=True, eq=False)
class RankLookup(Ranking):
    """x (F,) -> rank (columns,), exact: 32-bit keys, no sentinel, and zero is a number."""

    kernel: ClassVar[tuple[str, str]] = ("MCG_T_NAME", "include/mcg_trees_lookup.h")

    lookup: Lookup

    def check(self, types: Mapping[str, TensorType]) -> None:
        x = value_type(types, self.inputs[0], "RankLookup")
        rank = value_type(types, self.outputs[0], "RankLookup")
        c, t = self.columns, self.lookup
        ok = x.dtype is self.dtype and rank.shape == (max(c.n_columns, 1),) and rank.dtype is c.rank_dtype
        ok = ok and (c.n_columns == 0 or max(c.feature.max(initial=0), c.category_feature.max(initial=0)) < x.count)
        ok = ok and lookup_obstacle(c, self.dtype, bool(self.has_sentinel.any())) is None
        for i, keys in enumerate(parts(c.keys, c.count)):
            cells = t.cells[t.first_cell[i] : t.first_cell[i + 1]]
            peel, unit, shift = int(t.peel[i]), int(t.unit[i]), int(t.shift[i])
            above = np.maximum(keys - keys[peel], 0)
            ok = ok and bool(np.all(keys[1:] >= keys[:-1]) and np.all(above % (1 << unit) == 0))
            ok = ok and (peel == 0 or bool(keys[0] < keys[1])) and max(unit, shift) < 32
            ok = ok and shift <= 8 * int(t.width[i]) <= 32
            ok = ok and np.array_equal(lookup_cells(keys, peel, unit + shift), cells) and cells.size < 257
        if not ok:
            raise InternalError(str(self.loc), "RankLookup: a table does not fit the keys of its column")

    def eval(self, *args: Array) -> tuple[Array, ...]:
        """(N, F) inputs -> (N, columns) int64 ranks."""
        return (self.ranks(args[0]),)

    @property
    def _cell_dtype(self) -> DType:
        return DType.U8 if self.columns.top_rank <= DType.U8.max else DType.U16

    def _tables(self) -> tuple[Array, Array]:
        """(C,) the structs, and the bytes of all tables."""
        c, t = self.columns, self.lookup
        keys = parts(c.keys, c.count)
        rows = np.zeros(c.n_numeric, _COLUMN)
        rows["lowest"] = [k[0] for k in keys]
        rows["from"] = [k[p] + 1 for k, p in zip(keys, t.peel, strict=True)]
        rows["input"], rows["unit"], rows["shift"] = c.feature, t.unit, t.shift
        rows["cells"], rows["width"] = t.n_cells, t.width
        rows["table"], tables = lookup_tables(c, t, self._cell_dtype)
        return rows, tables

    def _nan_apart(self) -> bool:
        """Whether NaN has no cell in any column; integers have none."""
        c, t = self.columns, self.lookup
        if not self.dtype.is_float:
            return True
        from_key = np.array([k[p] + 1 for k, p in zip(parts(c.keys, c.count), t.peel, strict=True)], np.int64)
        return bool(np.all((FIRST_NAN - from_key) >> (t.unit + t.shift) >= t.n_cells))

    def items(self, prefix: str) -> tuple[Item, ...]:
        c = self.columns
        found = [code_item(f"{prefix}_rank", _CODE_BYTES, 30 * c.n_columns, "ranks the inputs")]
        if c.n_numeric:
            rows, tables = self._tables()
            about = "first key, lowest with a cell, input, table, unit, shift, cells, bytes of a key"
            item = table_item(f"{prefix}_columns", "mcg_lookup_t", rows, 3 * c.n_numeric, about)
            found.append(replace(item, align=4))
            about = "of each column: rank of a missing value, keys below each coarse cell, thresholds above the first"
            found.append(table_item(f"{prefix}_keys", "uint8_t", tables, 3.5 * c.n_numeric, about))
        if c.category_feature.size:
            groups = np.stack([c.category_feature, c.category_count], axis=1).astype(np.uint16)
            reads = float(np.ceil(np.log2(c.category_count + 1.0)).sum())
            about = "input, number of categories"
            found.append(table_item(f"{prefix}_groups", "mcg_category16_t", groups, len(groups), about))
            codes = never_empty(c.categories.astype(np.int32))
            found.append(table_item(f"{prefix}_categories", "int32_t", codes, reads, "categories that have a code"))
        return tuple(found)

    def emit(self, prefix: str, args: tuple[str, ...], results: tuple[str, ...], names: Names) -> OpText:
        c, widths = self.columns, set(self.lookup.width.tolist())
        macros = {
            "NAME": f"{prefix}_rank",
            "SECTION": names.section[f"{prefix}_rank"],
            "TYPE": short_type(self.dtype),
            "RANK": f"{prefix}_rank_t",
            "COLUMNS": f"{c.n_numeric}",
            "WIDTH": f"{widths.pop() if len(widths) == 1 else 0}u",
            "APART": str(int(self._nan_apart())),
            "SCAN": str(int(np.diff(self.lookup.cells).max(initial=0) <= _FEW)),
            "CELL": self._cell_dtype.ctype,
            "GROUPS": f"{c.category_feature.size}",
            "EXACT": str(int(c.exact)),
        }
        text = f"typedef {c.rank_dtype.ctype} {prefix}_rank_t;\n\n"
        text += define("MCG_T", macros) + '#include "mcugen/mcg_trees_lookup.h"\n'
        tables = [names.table.get(f"{prefix}_{t}", "NULL") for t in ("columns", "keys", "groups", "categories")]
        return OpText(("mcg_trees.h",), text, f"{prefix}_rank({', '.join(tables)}, {args[0]}, {results[0]});")

    def cost(self) -> Cost:
        c, t = self.columns, self.lookup
        inside = [int(np.diff(t.cells[a:b]).max(initial=0)) for a, b in pairwise(t.first_cell.tolist())]
        most = sum(n + 1 if max(inside) <= _FEW else n.bit_length() + 1 for n in inside)
        groups = float(np.ceil(np.log2(c.category_count + 1.0)).sum())
        steps = groups + 2.0 * c.n_numeric
        return Cost(reads=steps + c.n_columns, macs=0, steps=steps, worst_steps=most + int(groups))


def lookup_obstacle(columns: Columns, dtype: DType, sentinels: bool) -> str | None:
    """Why a model cannot have this op, or None."""
    if dtype is DType.F64:
        return "keys of 64 bits"
    if columns.zero_missing.any() or sentinels:
        return "inputs with a sentinel, or where zero is missing"
    widest = max(columns.feature.max(initial=0), columns.category_feature.max(initial=0), columns.top_rank)
    if widest > DType.U16.max or most_bytes(columns) > MOST_BYTES:
        return "more than 65,535 inputs, or thresholds than 16 bits tell apart"
    return None
