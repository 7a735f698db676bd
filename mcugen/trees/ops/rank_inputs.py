"""RankInputs: each input to its rank among the thresholds of its column, or to the code of its category."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mcugen.core.op import Cost, Item, Names, OpText
from mcugen.core.passes import value_type
from mcugen.core.types import Array, TensorType
from mcugen.errors import InternalError
from mcugen.trees.keys import key_code, key_ctype
from mcugen.trees.ranking import Ranking, parts
from mcugen.trees.support import code_item, define, never_empty, short_type, table_item

_CODE_BYTES = 180


@dataclass(frozen=True, slots=True, eq=False)
class RankInputs(Ranking):
    """x (F,) -> rank (columns,), exact: a binary search in each column."""

    kernel: ClassVar[tuple[str, str]] = ("MCG_R_NAME", "include/mcg_trees_rank.h")

    def check(self, types: Mapping[str, TensorType]) -> None:
        x = value_type(types, self.inputs[0], "RankInputs")
        rank = value_type(types, self.outputs[0], "RankInputs")
        c = self.columns
        ok = x.dtype is self.dtype and rank.shape == (max(c.n_columns, 1),) and rank.dtype is c.rank_dtype
        inside = c.n_columns == 0 or max(c.feature.max(initial=0), c.category_feature.max(initial=0)) < x.count
        ascending = all(bool(np.all(part[1:] >= part[:-1])) for part in parts(c.keys, c.count))
        if not (ok and inside and ascending):
            raise InternalError(str(self.loc), "RankInputs: columns do not fit the types, or keys are not ascending")

    def eval(self, *args: Array) -> tuple[Array, ...]:
        """(N, F) inputs -> (N, columns) int64 ranks."""
        return (self.ranks(args[0]),)

    @property
    def _wide(self) -> bool:
        c = self.columns
        largest = (c.feature, c.count, c.category_feature, c.category_count)
        return max(int(v.max(initial=0)) for v in largest) > 0xFFFF

    def items(self, prefix: str) -> tuple[Item, ...]:
        c, width = self.columns, 32 if self._wide else 16
        struct, key = ("u4" if self._wide else "u2"), np.dtype(key_code(self.dtype))
        keys_read = float(np.ceil(np.log2(c.count + 1.0)).sum())
        found = [code_item(f"{prefix}_rank", _CODE_BYTES, 12 * c.n_columns + 8 * keys_read, "ranks the inputs")]
        if c.n_numeric:
            rows = np.stack([c.feature, c.count, c.missing_rank, c.zero_missing], axis=1).astype(struct)
            about = "input, number of keys, rank of a missing value, flags"
            found.append(table_item(f"{prefix}_columns", f"mcg_column{width}_t", rows, c.n_numeric, about))
            about = "sorted thresholds of each column, as keys"
            found.append(table_item(f"{prefix}_keys", key_ctype(self.dtype), c.keys.astype(key), keys_read, about))
        if c.zero_missing.any():
            zeros = np.stack([c.zero_low, c.zero_high], axis=1).reshape(-1).astype(key)
            found.append(table_item(f"{prefix}_zeros", key_ctype(self.dtype), zeros, c.n_numeric, "keys that are zero"))
        if self.has_sentinel.any() and c.n_numeric:
            pairs = np.stack([self.has_sentinel, self.sentinel], axis=1)[c.feature].reshape(-1).astype(key)
            about = "has a sentinel, sentinel"
            found.append(table_item(f"{prefix}_sentinels", key_ctype(self.dtype), pairs, c.n_numeric, about))
        if c.category_feature.size:
            rows = np.stack([c.category_feature, c.category_count], axis=1).astype(struct)
            reads = float(np.ceil(np.log2(c.category_count + 1.0)).sum())
            about = "input, number of categories"
            found.append(table_item(f"{prefix}_groups", f"mcg_category{width}_t", rows, rows.shape[0], about))
            about = "categories that have a code"
            codes = never_empty(c.categories.astype(np.int32))
            found.append(table_item(f"{prefix}_categories", "int32_t", codes, reads, about))
        return tuple(found)

    def emit(self, prefix: str, args: tuple[str, ...], results: tuple[str, ...], names: Names) -> OpText:
        c = self.columns
        macros = {
            "NAME": f"{prefix}_rank",
            "SECTION": names.section[f"{prefix}_rank"],
            "TYPE": short_type(self.dtype),
            "RANK": f"{prefix}_rank_t",
            "WIDTH": "32" if self._wide else "16",
            "COLUMNS": f"{c.n_numeric}",
            "GROUPS": f"{c.category_feature.size}",
            "EXACT": str(int(c.exact)),
            "ZERO": str(int(bool(c.zero_missing.any()))),
            "SENTINEL": str(int(bool(self.has_sentinel.any() and c.n_numeric))),
        }
        text = (
            f"typedef {c.rank_dtype.ctype} {prefix}_rank_t;\n\n"
            + define("MCG_R", macros)
            + '#include "mcugen/mcg_trees_rank.h"\n'
        )
        tables = [
            names.table.get(f"{prefix}_{t}", "NULL")
            for t in ("columns", "keys", "zeros", "sentinels", "groups", "categories")
        ]
        call = f"{prefix}_rank({', '.join(tables)}, {args[0]}, {results[0]});"
        return OpText(("mcg_trees.h",), text, call)

    def cost(self) -> Cost:
        c = self.columns
        steps = float(np.ceil(np.log2(c.count + 1.0)).sum() + np.ceil(np.log2(c.category_count + 1.0)).sum())
        return Cost(reads=steps + c.n_columns, macs=0, steps=steps, worst_steps=int(steps))
