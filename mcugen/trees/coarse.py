"""Coarse tables: which keys of a column can be near an input, from a cheap monotone function of the input, its cell.

``cells[c]`` is the number of keys in cells below c. With any cell that never falls while the key rises, all those
keys are below an input of cell c, and no key of a higher cell is: the rank lies between, and the keys of the input's
own cell settle it. So the table is right for every input, whatever the cells look like, and good cells only save time.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mcugen.core.types import Array, DType
from mcugen.trees.columns import Columns
from mcugen.trees.keys import values_of
from mcugen.trees.ranking import parts

#: Ways to rank a column; the numbers stand in stored references.
FEW, SHIFT, SCALE, SEARCH = 0, 1, 2, 3
_FEW_KEYS = 2
_MOST_CELLS = 256
_SHARE = 0.02  # instructions that one byte of a table must save
_SCALE_COST, _STEP_COST = 2.5, 3.5  # instructions of a cell by scale beyond one by shift; of one more comparison
_PEEL_COST = 1.0  # of one more case outside


@dataclass(frozen=True, slots=True, eq=False)
class Coarse:
    """Searches (S of them) and the columns (C,) that they serve.

    A search looks among ``keys`` of one ``feature``, ``count`` (S,) of them each. ``kind``; ``amount``: the shift, or
    the exponent of the scale; ``low``: the cell of the first key; ``first_cell`` (S + 1,) into ``cells``; ``most``: the
    most keys that share a cell; ``low_first`` (bool): most inputs are not above the first key; ``peel``: 1 where
    cells begin behind the second key, because the first stands far from all others (zero does), else 0.

    Columns of one feature that differ in what a missing value is, and in keys, share a search over all their keys.
    ``search`` (C,): that of a column; ``first_map`` (C,): where ``maps`` say what the rank in the column is for each
    rank of the search, and, one behind, for a missing value; -1 where the search's rank is the column's.
    """

    feature: Array
    count: Array
    keys: Array
    kind: Array
    amount: Array
    low: Array
    first_cell: Array
    cells: Array
    most: Array
    low_first: Array
    peel: Array
    search: Array
    first_map: Array
    maps: Array

    @property
    def first_key(self) -> Array:
        """(S + 1,) where the keys of each search begin."""
        return np.concatenate([[0], np.cumsum(self.count)]).astype(np.int64)

    @property
    def compares(self) -> Array:
        """(S,) bool: the C reads the keys of a search. Where no cell has two ranks it does not."""
        return np.asarray((self.most > 0) | (self.kind == FEW) | (self.kind == SEARCH))


def cell_of(key: Array, kind: int, amount: int, low: int, first: int, dtype: DType) -> Array:
    """(n,) int64 cells of keys above ``first``, as the C computes them."""
    if kind == SHIFT:
        return np.asarray((key - first - 1) >> amount)
    scaled = np.ldexp(values_of(key, dtype).astype(np.float64), amount)
    return np.trunc(scaled).astype(np.int64) - low


def make_coarse(columns: Columns, dtype: DType, low_share: Array) -> Coarse:
    """The cheapest table of each search, in instructions and, by a small part, bytes.

    ``low_share`` (C,): about what part of the inputs is not above the first key of a column.
    """
    groups = _groups(columns)
    column_keys = parts(columns.keys, columns.count)
    keys = [
        column_keys[g[0]] if len(g) == 1 else np.unique(np.concatenate([column_keys[c] for c in g])) for g in groups
    ]
    found = [_column(k, dtype) for k in keys]
    search, first_map = np.zeros(columns.n_numeric, np.int64), np.full(columns.n_numeric, -1, np.int64)
    maps: list[Array] = [np.zeros(0, np.int64)]
    for s, (group, merged) in enumerate(zip(groups, keys, strict=True)):
        search[group] = s
        for c in group if len(group) > 1 else ():
            first_map[c] = sum(m.size for m in maps)
            maps.append(map_of(column_keys[c], merged, int(columns.missing_rank[c])))
    return Coarse(
        feature=np.array([columns.feature[g[0]] for g in groups], np.int64),
        count=np.array([k.size for k in keys], np.int64),
        keys=np.concatenate(keys) if keys else np.zeros(0, np.int64),
        kind=np.array([t[0] for t in found], np.int64),
        amount=np.array([t[1] for t in found], np.int64),
        low=np.array([t[2] for t in found], np.int64),
        first_cell=np.concatenate([[0], np.cumsum([len(t[3]) for t in found])]).astype(np.int64),
        cells=np.concatenate([t[3] for t in found]).astype(np.int64) if found else np.zeros(0, np.int64),
        most=np.array([t[4] for t in found], np.int64),
        low_first=np.array([low_share[g].min() > 0.5 for g in groups], np.bool_),
        peel=np.array([t[5] for t in found], np.int64),
        search=search,
        first_map=first_map,
        maps=np.concatenate(maps),
    )


def map_of(keys: Array, merged: Array, missing_rank: int) -> Array:
    """(M + 2,) ranks among ``keys`` for 0..M of the ``merged`` keys below the input, and for a missing value."""
    return np.concatenate([[0], np.searchsorted(keys, merged, side="right"), [missing_rank]])


def _groups(columns: Columns) -> list[list[int]]:
    """Columns that share a search: those of one feature for which zero is a number."""
    found: dict[tuple[int, int], list[int]] = {}
    for c, feature in enumerate(columns.feature.tolist()):
        found.setdefault((feature, c + 1 if columns.zero_missing[c] else 0), []).append(c)
    return list(found.values())


_Table = tuple[int, int, int, Array, int, int]
_NONE = np.zeros(0, np.int64)
_SEARCHED: _Table = (SEARCH, 0, 0, _NONE, 0, 0)


def _column(keys: Array, dtype: DType) -> _Table:
    if keys.size <= _FEW_KEYS:
        return FEW, 0, 0, _NONE, 0, 0
    best = (float("inf"), _SEARCHED)
    for peel in (0, 1):
        first, last = int(keys[peel]), int(keys[-1])
        if last == first:
            continue
        span = last - first - 1
        shifts = range(max(0, span.bit_length() - 9), span.bit_length() + 1) if span < 2**62 else range(0)
        for shift in shifts:
            best = min(best, _table(keys, SHIFT, shift, 0, (span >> shift) + 1, dtype, peel), key=lambda t: t[0])
        if not dtype.is_float:
            continue
        ends = values_of(keys[[peel, -1]], dtype).astype(np.float64)
        for exponent in _exponents(ends):
            low, high = (int(v) for v in np.trunc(np.ldexp(ends, exponent)))
            best = min(best, _table(keys, SCALE, exponent, low, high - low + 1, dtype, peel), key=lambda t: t[0])
    return best[1]


def _exponents(ends: Array) -> list[int]:
    """Powers of two that give some cells, keep products below 2^31 and scales normal."""
    width = ends[1] - ends[0]
    if not np.isfinite(ends).all() or not width > 0.0:
        return []
    top = int(np.floor(np.log2(_MOST_CELLS / width))) if width < 1e300 else -2000
    largest = float(np.abs(ends).max())
    return [e for e in range(top - 8, top + 1) if abs(e) < 100 and np.ldexp(largest, e) < 2.0**31 - 1]


def cells_of(keys: Array, cell: Array, size: int, peel: int) -> tuple[Array, Array]:
    """(size,) keys in lower cells, and keys in each cell. An input that has a cell is above key number ``peel``."""
    cell = np.where(keys <= keys[peel], -1, cell)
    count = np.bincount(cell + 1, minlength=size + 1)
    return np.cumsum(count)[:-1], count[1:]


def one_rank_a_cell(keys: Array, shift: int, peel: int) -> bool:
    """Whether every key is the last input of its cell by shift, so that none need be compared."""
    first = int(keys[peel])
    inner = keys[(keys > first) & (keys < keys[-1])]
    return bool(np.all((inner - first) & ((1 << shift) - 1) == 0))


def _table(keys: Array, kind: int, amount: int, low: int, size: int, dtype: DType, peel: int) -> tuple[float, _Table]:
    """(cost, table) of one way."""
    if not 1 <= size <= _MOST_CELLS:
        return float("inf"), _SEARCHED
    cell = cell_of(np.maximum(keys, keys[peel]), kind, amount, low, int(keys[peel]), dtype)
    cells, count = cells_of(keys, cell, size, peel)
    most = 0 if kind == SHIFT and one_rank_a_cell(keys, amount, peel) else int(count.max())
    # Comparisons beyond the first, for inputs spread evenly over the keys.
    inputs = np.maximum(count, 1e-9) / max(keys.size - 1, 1)
    steps = most - 1.0 if most <= 2 else float((inputs * (count + 1) / 2).sum())
    cost = _STEP_COST * steps + _SCALE_COST * (kind == SCALE) + _SHARE * size
    cost -= _SHARE * keys.size * dtype.size * (most == 0)
    cost += _PEEL_COST * peel
    return cost, (kind, amount, low, cells, most, peel)
