"""What ways of ranking and summing cost: features of a model, and constants that were fitted to measurements.

Nothing is compiled here. The constants come from ``benchmarks/tree_costs.py``, which measures each op alone on seven
models with GCC 12.2 -O2 for a Cortex-M7, and fits; ``benchmarks/results/tree_costs.json`` has the data.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from mcugen.core.types import Array, DType
from mcugen.trees.branches import REGISTERS
from mcugen.trees.coarse import FEW, SCALE, SEARCH, make_coarse
from mcugen.trees.columns import Columns
from mcugen.trees.keys import key_code
from mcugen.trees.lookup import Lookup, make_lookup
from mcugen.trees.parts import Parts

Numbers = dict[str, float]

#: Beyond this, tables for each column would take long to make, and code for each column to compile.
MOST_COLUMNS = 2000
#: Instructions of a step through 16-bit words, for what tables of ranks are worth beside it.
WALK = 8.0


@dataclass(frozen=True, slots=True)
class Features:
    """For each way, numbers that its bytes (``b_...``) and instructions (``i_...``) are linear in."""

    ranking: Mapping[str, Numbers]
    summing: Mapping[str, Numbers]


def features(parts: Parts) -> Features:
    """Features of all ways, whether or not the model can have them."""
    return Features(_ranking(parts), _summing(parts))


def _ranking(parts: Parts) -> dict[str, Numbers]:
    c = parts.columns
    key = np.dtype(key_code(parts.spec.dtype)).itemsize
    groups = float(np.ceil(np.log2(c.category_count + 1.0)).sum())
    sets = 4.0 * c.category_feature.size + 4.0 * c.categories.size
    steps = float(np.ceil(np.log2(c.count + 1.0)).sum())
    found = {
        "search": {
            "i_one": 1.0,
            "i_columns": float(c.n_columns),
            "i_steps": steps + groups,
            "b_one": 1.0,
            "b_tables": key * c.keys.size + 8.0 * c.n_numeric + sets,
        }
    }
    if columns_obstacle(c) is not None:
        return found
    if key <= 4:
        lookup = make_lookup(c, WALK * parts.tables.steps[0])
        inside = np.diff(lookup.cells)
        found["lookup"] = {
            "i_columns": float(c.n_columns),
            "i_compares": _compares(c.n_numeric, inside),
            "i_groups": groups,
            "b_one": 1.0,
            "b_tables": _lookup_bytes(c, lookup) + sets,
        }
    found["coarse"] = _coarse(parts, key, groups, sets)
    return found


def _lookup_bytes(c: Columns, lookup: Lookup) -> float:
    """Structs, keys, and cells with the rank of a missing value."""
    cell = 1 if c.top_rank <= DType.U8.max else 2
    return float(16 * c.n_numeric + (lookup.width * c.count).sum() + cell * (lookup.cells.size + c.n_numeric))


def _compares(columns: int, inside: Array) -> float:
    """Comparisons within cells: half of an average cell for each column."""
    inside = np.maximum(inside, 0)
    return columns * float((inside * (inside + 1.0)).sum() / 2 / max(inside.sum(), 1))


def _coarse(parts: Parts, key: int, groups: float, sets: float) -> Numbers:
    c = parts.columns
    coarse = make_coarse(c, parts.spec.dtype, parts.tables.low_share())
    searched = (coarse.kind == SEARCH) | (coarse.kind == FEW)
    return {
        "i_searches": float(coarse.kind.size) + c.category_feature.size,
        "i_compares": float(coarse.most.clip(0, 2)[~searched].sum()),
        "i_scales": float(np.count_nonzero(coarse.kind == SCALE)),
        "i_maps": float(np.count_nonzero(coarse.first_map >= 0)),
        "i_groups": groups,
        "b_one": 1.0,
        "b_searches": float(coarse.kind.size) + c.category_feature.size,
        "b_maps": float(np.count_nonzero(coarse.first_map >= 0)),
        "b_tables": float(key * coarse.count[coarse.compares].sum() + coarse.cells.size + coarse.maps.size) + sets,
    }


def _summing(parts: Parts) -> dict[str, Numbers]:
    t = parts.tables
    nodes, trees, steps = float(t.column.size), float(t.n_trees), t.steps[0]
    outputs = parts.source.value.shape[1]
    leaf = parts.leaf.size * outputs
    sets = 4.0 * t.set_words.size
    share = float(np.mean(t.column >= t.first_set)) if t.column.size else 0.0
    wide = float(t.n_columns > REGISTERS)
    repeats = max(nodes, 1.0) / max(_distinct_tests(parts), 1.0)
    size = 2.0 if t.sizes.max(initial=0) <= 0xFFFF else 4.0
    return {
        "tables": {
            "i_one": 1.0,
            "i_steps": steps,
            "i_sets": steps * share,
            "i_trees": trees * outputs,
            "b_one": 1.0,
            "b_tables": t.word_bits / 8 * nodes + leaf * (nodes + trees) + size * trees + sets,
        },
        "packed": {"i_one": 1.0, "i_steps": steps, "i_trees": trees, "b_one": 1.0, "b_tables": 2 * (2 * nodes + trees)},
        "branches": {
            "i_steps": steps,
            "i_wide": wide * steps,
            "i_sets": share * steps,
            "i_few": steps / repeats,
            "i_trees": trees,
            "b_nodes": nodes,
            "b_wide": wide * nodes,
            "b_few": nodes / repeats,
            "b_tables": sets,
            "b_leaves": _LEAF_BYTES[parts.leaf] * (nodes + trees),
        },
    }


#: Bytes that a leaf of a type takes in code beyond those of a short one.
_LEAF_BYTES = {DType.I16: 0.0, DType.I32: 5.0, DType.F32: 6.0, DType.F64: 10.0}


def _distinct_tests(parts: Parts) -> float:
    """How many different tests the nodes make: compilers join those that repeat."""
    t = parts.tables
    return float(np.unique(t.column.astype(np.int64) << 32 | t.operand).size)


def columns_obstacle(columns: Columns) -> str | None:
    """Why a model cannot have coarse tables for its columns, or None."""
    if columns.top_rank > DType.U16.max // 2:
        return "more than 32,767 thresholds of one input"
    return f"more than {MOST_COLUMNS:,} columns" if columns.n_columns > MOST_COLUMNS else None


@dataclass(frozen=True, slots=True)
class Memory:
    """``code`` and ``data``: bytes of memory without wait states that code and tables may take; ``fill``: cycles that

    a line of ``line`` bytes costs where it is not in the cache of ``cache`` bytes.
    """

    code: int = 0
    data: int = 0
    fill: float = 20.0
    line: int = 32
    cache: int = 16384


@dataclass(frozen=True, slots=True)
class Estimate:
    """Flash in bytes, instructions and cycles of a mean prediction; all estimates."""

    flash: int
    instructions: int
    cycles: int


# Fitted by benchmarks/tree_costs.py.
_RANKING: dict[str, Numbers] = {
    "search": {"i_one": 97.0, "i_columns": 27.9, "i_steps": 7.73, "b_one": 109.0, "b_tables": 1.02},
    "lookup": {"i_columns": 28.1, "i_compares": 3.97, "i_groups": 7.73, "b_one": 172.0, "b_tables": 1.0},
    "coarse": {
        "i_searches": 12.2,
        "i_compares": 3.48,
        "i_scales": 5.23,
        "i_maps": 3.84,
        "i_groups": 1.61,
        "b_one": 332.0,
        "b_searches": 95.5,
        "b_maps": 43.9,
        "b_tables": 0.92,
    },
}
_SUMMING: dict[str, Numbers] = {
    "tables": {"i_one": 22.9, "i_steps": 10.2, "i_sets": 16.1, "i_trees": 26.8, "b_one": 106.0, "b_tables": 1.0},
    "packed": {"i_steps": 6.95, "i_trees": 15.5, "b_one": 230.0, "b_tables": 1.03},
    "branches": {
        "i_steps": 1.56,
        "i_sets": 6.38,
        "i_few": 0.83,
        "b_nodes": 12.0,
        "b_wide": 0.98,
        "b_tables": 2.33,
        "b_leaves": 1.0,
    },
}
#: Cycles an instruction without waits for memory.
_PACE = {"tables": 1.1, "packed": 1.25, "branches": 1.62}
_CALL_INSTRUCTIONS, _CALL_BYTES = 24, 300
#: Bytes that an instruction of a tree fetches, with those beside it; bytes a node takes at most, for its place.
_FETCHED, _NODE_ROOM = 5.0, 20.0


def estimate(found: Features, ranking: str, summing: str, memory: Memory) -> Estimate:
    """What a prediction costs with these ways."""
    rank, total = found.ranking[ranking], found.summing[summing]
    rank_cost, sum_cost = _RANKING[ranking], _SUMMING[summing]
    size = _dot(rank, rank_cost, "b_") + _dot(total, sum_cost, "b_") + _CALL_BYTES
    instructions = _dot(rank, rank_cost, "i_") + _dot(total, sum_cost, "i_") + _CALL_INSTRUCTIONS
    if summing == "branches":
        code = _NODE_ROOM * total["b_nodes"]
        outside = max(0.0, 1.0 - memory.code / max(code, 1.0)) * _dot(total, sum_cost, "i_")
        waits = outside * _FETCHED / memory.line * memory.fill * _misses(code, memory)
    else:
        tables = total["b_tables"]
        reads = total["i_steps"] + total["i_trees"]
        outside = reads if tables > memory.data else 0.0
        waits = min(outside, tables / memory.line) * memory.fill * _misses(tables, memory)
    return Estimate(round(size), round(instructions), round(instructions * _PACE[summing] + waits))


def _misses(size: float, memory: Memory) -> float:
    """The share of first touches that miss: half where all fits the cache, which others use in between."""
    return 1.0 - 0.5 * min(1.0, memory.cache / max(size, 1.0))


def _dot(values: Numbers, costs: Numbers, prefix: str) -> float:
    return sum(values.get(name, 0.0) * cost for name, cost in costs.items() if name.startswith(prefix))
