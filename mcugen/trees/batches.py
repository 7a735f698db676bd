"""How many rows of a batch go through the trees together: tree by tree, so that each is read once for all of them.

What it gains was measured (benchmarks/results/batches.md), and decides the rule below. Not here: the kernels.
"""

from __future__ import annotations

from mcugen.core.types import DType
from mcugen.trees.leaves import PackedLeaves
from mcugen.trees.tables import TreeTables

#: What a block of rows may take of the stack for ranks and scores.
BLOCK_BYTES = 1024
#: Rows of a block: of fewer, too few share what a tree costs; beyond the most, waits are a small part of what is left.
_LEAST, _MOST = 4, 32


def block_rows(tables: TreeTables, rank: DType, leaves: PackedLeaves) -> int:
    """Rows that a block of ``BLOCK_BYTES`` has room for, an even number, or 1: too few. ``rank``: the type of ranks."""
    score = leaves.dtype.size if leaves.dtype.is_float else DType.I32.size
    row = rank.size * max(tables.n_columns, 1) + score * int(leaves.base.size)
    rows = min(_MOST, BLOCK_BYTES // row) & ~1
    return rows if rows >= _LEAST else 1
