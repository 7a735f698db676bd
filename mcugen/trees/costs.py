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
from mcugen.trees.leaves import PackedLeaves
from mcugen.trees.lookup import Lookup, make_lookup
from mcugen.trees.narrow import SHORT_LEAF
from mcugen.trees.packed import form_for
from mcugen.trees.parts import Parts

Numbers = dict[str, float]
#: The leaves that each way of summing has, as far as they are known.
Stored = Mapping[str, PackedLeaves | None]

#: Beyond this, tables for each column would take long to make, and code for each column to compile.
MOST_COLUMNS = 2000
#: Instructions of a step through 16-bit words, for what tables of ranks are worth beside it.
WALK = 8.0


@dataclass(frozen=True, slots=True)
class Features:
    """For each way, numbers that its bytes (``b_...``) and instructions (``i_...``) are linear in."""

    ranking: Mapping[str, Numbers]
    summing: Mapping[str, Numbers]


def features(parts: Parts, stored: Stored) -> Features:
    """Features of all ways, whether or not the model can have them."""
    return Features(_ranking(parts), _summing(parts, stored))


def with_leaves(found: Features, parts: Parts, stored: Stored) -> Features:
    """The same with other leaves."""
    return Features(found.ranking, _summing(parts, stored))


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


def _summing(parts: Parts, stored: Stored) -> dict[str, Numbers]:
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
        "packed": _packed(parts, stored.get("packed")),
        "branches": {
            "b_trees": trees,
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
            "b_long": _long_leaves(stored.get("branches")),
        },
    }


def _packed(parts: Parts, leaves: PackedLeaves | None) -> Numbers:
    t = parts.tables
    nodes, trees, steps = float(t.column.size), float(t.n_trees), t.steps[0]
    found = {"i_steps": steps, "i_trees": trees, "i_flags": 0.0, "i_codes": 0.0, "b_one": 1.0}
    found["b_tables"] = 2 * (2 * nodes + trees)
    form = None if leaves is None else form_for(t, int(np.abs(leaves.leaf.astype(np.int64)).max(initial=0)))
    if form is not None:
        pairs, bits = form
        found["i_flags"] = steps * (bits.flag < bits.distance)
        found["i_codes"] = float(t.n_columns * bits.column_first)
        found["b_tables"] += 4 * (float(pairs.pairs.sum()) - nodes)
    return found


def _long_leaves(leaves: PackedLeaves | None) -> float:
    """Leaves in fixed point that an instruction of code does not hold."""
    if leaves is None or leaves.dtype.is_float:
        return 0.0
    return float(np.count_nonzero(np.abs(leaves.leaf.astype(np.int64)) > SHORT_LEAF))


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


# Fitted by benchmarks/tree_costs.py; bytes of one way also hold what start-up copies of its tables take, 20 each. What
# no measured model tells apart (i_groups of lookup, i_codes, b_leaves) is set by hand.
_RANKING: dict[str, Numbers] = {
    "search": {"i_columns": 26.1, "i_steps": 9.15, "b_one": 170.0, "b_tables": 1.01},
    "lookup": {"i_columns": 25.6, "i_compares": 5.24, "i_groups": 9.15, "b_one": 229.0, "b_tables": 1.01},
    "coarse": {
        "i_searches": 14.3,
        "i_compares": 2.11,
        "i_scales": 5.82,
        "i_maps": 3.7,
        "i_groups": 1.11,
        "b_one": 78.0,
        "b_searches": 64.3,
        "b_maps": 37.3,
        "b_tables": 1.1,
    },
}
_SUMMING: dict[str, Numbers] = {
    "tables": {"i_steps": 11.7, "i_sets": 17.2, "i_trees": 17.5, "b_one": 202.0, "b_tables": 1.01},
    "packed": {"i_steps": 7.54, "i_trees": 12.2, "i_flags": 0.99, "i_codes": 3.0, "b_one": 476.0, "b_tables": 1.03},
    "branches": {
        "i_steps": 1.41,
        "i_sets": 6.22,
        "i_few": 0.94,
        "i_trees": 0.64,
        "b_nodes": 10.4,
        "b_wide": 1.59,
        "b_few": 2.45,
        "b_tables": 2.47,
        "b_leaves": 1.0,
        "b_long": 11.0,
    },
}
#: Cycles an instruction without waits for memory.
_PACE = {"tables": 1.1, "packed": 1.25, "branches": 1.62}
_CALL_INSTRUCTIONS, _CALL_BYTES = 30, 485
#: Of a second sum, beside what it adds.
_JOIN_INSTRUCTIONS, _JOIN_BYTES = 30, 90
#: Bytes that an instruction of a tree fetches, with those beside it; bytes a node takes at most, for its place.
_FETCHED, _NODE_ROOM = 5.0, 20.0


def estimate(found: Features, ranking: str, summing: str, memory: Memory) -> Estimate:
    """What a prediction costs with these ways."""
    return _estimate(found.ranking[ranking], ranking, {summing: found.summing[summing]}, memory)


def estimate_mixed(
    found: Features, ranking: str, parts: tuple[Parts, Parts], leaves: tuple[PackedLeaves, PackedLeaves], memory: Memory
) -> Estimate:
    """The same with some trees as code and the others as words: ``parts`` and ``leaves`` of both."""
    code, words = ({way: own} for way, own in zip(("branches", "packed"), leaves, strict=True))
    sums = {"branches": _summing(parts[0], code)["branches"], "packed": _summing(parts[1], words)["packed"]}
    return _estimate(found.ranking[ranking], ranking, sums, memory)


def _estimate(rank: Numbers, ranking: str, sums: Mapping[str, Numbers], memory: Memory) -> Estimate:
    """``sums``: the features of each way of summing, by its name. The pace of the first is that of the rest."""
    rank_cost = _RANKING[ranking]
    size = _dot(rank, rank_cost, "b_") + _CALL_BYTES + _JOIN_BYTES * (len(sums) - 1)
    beside = _dot(rank, rank_cost, "i_") + _CALL_INSTRUCTIONS + _JOIN_INSTRUCTIONS * (len(sums) - 1)
    instructions, cycles = beside, beside * _PACE[next(iter(sums))]
    for way, total in sums.items():
        size += _dot(total, _SUMMING[way], "b_")
        own = _dot(total, _SUMMING[way], "i_")
        instructions += own
        cycles += own * _PACE[way] + _waits(way, total, own, memory)
    return Estimate(round(size), round(instructions), round(cycles))


def _waits(summing: str, total: Numbers, instructions: float, memory: Memory) -> float:
    """Cycles that a way of summing waits for memory."""
    if summing == "branches":
        code = _NODE_ROOM * total["b_nodes"]
        outside = max(0.0, 1.0 - memory.code / max(code, 1.0)) * instructions
        return outside * _FETCHED / memory.line * memory.fill * _misses(code, memory)
    tables = total["b_tables"]
    outside = total["i_steps"] + total["i_trees"] if tables > memory.data else 0.0
    return min(outside, tables / memory.line) * memory.fill * _misses(tables, memory)


def _misses(size: float, memory: Memory) -> float:
    """The share of first touches that miss: half where all fits the cache, which others use in between."""
    return 1.0 - 0.5 * min(1.0, memory.cache / max(size, 1.0))


def _dot(values: Numbers, costs: Numbers, prefix: str) -> float:
    return sum(values.get(name, 0.0) * cost for name, cost in costs.items() if name.startswith(prefix))
