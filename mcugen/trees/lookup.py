"""Small coarse tables, by shift alone, in as few bytes as the keys of a column need.

What a key has in common with its cell is not stored: an input is compared only with keys of its own cell, so that the
bits below the cell decide, in one byte where a cell spans at most 256 units.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mcugen.core.types import Array, DType
from mcugen.trees.coarse import SHIFT, cell_of, cells_of
from mcugen.trees.columns import Columns
from mcugen.trees.ranking import parts


@dataclass(frozen=True, slots=True, eq=False)
class Lookup:
    """``peel`` (C,) as in Coarse. Above the key behind which cells begin a column counts in units of ``2**unit`` (C,),

    a power of two that divides the distances of all keys; ``shift`` (C,): from units to cells. ``first_cell``
    (C + 1,) into ``cells``: the keys below each cell, and the number of all. ``width`` (C,): bytes that each key is
    stored in, which hold all bits below the cell.
    """

    peel: Array
    unit: Array
    shift: Array
    width: Array
    first_cell: Array
    cells: Array

    @property
    def n_cells(self) -> Array:
        """(C,) cells of each column."""
        return np.asarray(np.diff(self.first_cell) - 1)


_MOST_CELLS = 255
_SHARE = 0.1  # instructions that one byte must save, and more where walking takes most
_WALK = 300.0  # instructions of walking for each column from which ranks are the smaller part
_STEP = 8.0  # instructions of one more comparison
_MIXED = 4.0  # instructions of a column whose keys have not the width of all others
_WIDTHS = (1, 2, 3, 4)
#: Tables of columns begin at even places, which 16 bits count.
_PLACE = 2


def make_lookup(columns: Columns, walk: float) -> Lookup:
    """The table of each column that saves more instructions than its bytes are worth.

    ``walk``: instructions that the trees take in a prediction, about.
    """
    share = _SHARE * max(1.0, walk / (_WALK * max(columns.n_numeric, 1)))
    found = _same_width([_tables(keys, share) for keys in parts(columns.keys, columns.count)])
    return Lookup(
        peel=np.array([t.peel for t in found], np.int64),
        unit=np.array([t.unit for t in found], np.int64),
        shift=np.array([t.shift for t in found], np.int64),
        width=np.array([t.width for t in found], np.int64),
        first_cell=np.concatenate([[0], np.cumsum([t.cells.size for t in found])]).astype(np.int64),
        cells=np.concatenate([t.cells for t in found]).astype(np.int64) if found else np.zeros(0, np.int64),
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Table:
    """Of one column, and what it costs in instructions and, by a part, bytes."""

    cost: float
    peel: int
    unit: int
    shift: int
    width: int
    cells: Array


def _same_width(found: list[dict[int, _Table]]) -> list[_Table]:
    """The cheapest table of each column: all of one width, or each of its own, which takes longer to read."""
    ways = [[min(f.values(), key=lambda t: t.cost) for f in found]]
    ways += [[f[w] for f in found] for w in _WIDTHS if all(w in f for f in found)]
    mixed = [_MIXED * len(found)] + [0.0] * (len(ways) - 1)
    return min(zip(ways, mixed, strict=True), key=lambda way: sum(t.cost for t in way[0]) + way[1])[0]


def lookup_tables(columns: Columns, lookup: Lookup, cell: DType) -> tuple[Array, Array]:
    """(C,) where the table of each column begins, in units of two bytes, and the bytes of all tables.

    A table: the rank of a missing value and the cells, of type ``cell``, then the keys: less than the distance from
    the key behind which cells begin by one unit, the lower ``width`` bytes of it. Keys below all cells are never read.
    """
    blocks, places, size = [np.zeros(0, np.uint8)], [], 0
    for c, keys in enumerate(parts(columns.keys, columns.count)):
        cells = lookup.cells[lookup.first_cell[c] : lookup.first_cell[c + 1]]
        head = np.append(columns.missing_rank[c], cells).astype(cell.np.newbyteorder("<"))
        units = np.maximum(keys - keys[lookup.peel[c]], 1) - 1 >> lookup.unit[c]
        low = units.astype("<u4").view(np.uint8).reshape(-1, 4)[:, : lookup.width[c]]
        block = np.concatenate([head.view(np.uint8), low.ravel()])
        places.append(size // _PLACE)
        blocks.append(np.append(block, np.zeros(block.size % _PLACE, np.uint8)))
        size += blocks[-1].size
    return np.array(places, np.int64), np.concatenate(blocks)


def most_bytes(columns: Columns) -> int:
    """No tables of these columns are larger."""
    return int(4 * columns.keys.size + 2 * (_MOST_CELLS + 4) * columns.n_numeric)


#: What a place counts up to, in bytes.
MOST_BYTES = _PLACE * DType.U16.max


def _unit(keys: Array, peel: int) -> int:
    """The power of two that divides all distances from the first key with a cell."""
    every = int(np.bitwise_or.reduce(np.maximum(keys - keys[peel], 0)))
    return (every & -every).bit_length() - 1 if every else 0


def lookup_cells(keys: Array, peel: int, shift: int) -> Array:
    """(cells + 1,) keys in lower cells, with cells of ``2**shift`` keys; at the end the number of keys."""
    size = (max(int(keys[-1]) - int(keys[peel]) - 1, 0) >> shift) + 1
    cell = cell_of(np.maximum(keys, keys[peel]), SHIFT, shift, 0, int(keys[peel]), DType.I32)
    below, _ = cells_of(keys, cell, size, peel)
    return np.append(below, keys.size)


def _tables(keys: Array, share: float) -> dict[int, _Table]:
    """The cheapest table for each width of stored keys that a column can have."""
    best: dict[int, _Table] = {}
    for peel in (0, 1) if keys.size > 1 and keys[0] < keys[1] else (0,):
        unit = _unit(keys, peel)
        span = max(int(keys[-1]) - int(keys[peel]) - 1, 0) >> unit
        for shift in range(max(0, span.bit_length() - 8), max(span.bit_length(), 1)):
            cells = lookup_cells(keys, peel, unit + shift)
            if cells.size - 1 > _MOST_CELLS:
                continue
            inside = np.diff(cells)
            steps = inside * np.minimum((inside + 1.0) / 2, np.log2(inside + 1.0) + 1)
            cost = _STEP * float(steps.sum() / max(inside.sum(), 1)) + share * cells.size
            for width in (w for w in _WIDTHS if shift <= 8 * w):
                whole = cost + share * width * keys.size
                if width not in best or whole < best[width].cost:
                    best[width] = _Table(whole, peel, unit, shift, width, cells)
    return best
