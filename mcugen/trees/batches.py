"""How many rows of a batch go through the trees together: tree by tree, so that each is loaded once for all of them.

It gains where trees wait for memory and no cache keeps them from one row to the next, and nothing elsewhere: measured
on eight models (benchmarks/results/batches.md). Not here: the kernels.
"""

from __future__ import annotations

from collections.abc import Sequence

from mcugen.core.op import Item
from mcugen.trees.costs import Memory

#: What a block of rows may take of the stack: ranks, scores, and what an op has for each of them.
BLOCK_BYTES = 1024
#: Rows of a block: of fewer, too few share what a tree costs; beyond the most, waits are a small part of what is left.
_LEAST, _MOST = 4, 32
#: Items of code are as large as it may get; the part of that which compilers make of trees (13 of 20 bytes a node).
_REAL_CODE = 0.65


def block_rows(items: Sequence[Item], row_bytes: int, memory: Memory) -> int:
    """Rows of a block, an even number, or 1: row by row. ``items``: tables and code that a prediction uses;
    ``row_bytes``: what a row takes of the stack."""
    rows = min(_MOST, BLOCK_BYTES // max(row_bytes, 1)) & ~1
    return rows if rows >= _LEAST and any(waiting(items, memory)) else 1


def waiting(items: Sequence[Item], memory: Memory) -> tuple[bool, bool]:
    """Whether of tables, and of code, more stands outside of the memories without wait states than a cache holds."""
    tables = sum(i.size for i in items if i.role == "table")
    code = sum(i.size for i in items if i.role == "code")
    return tables - memory.data > memory.cache, _REAL_CODE * (code - memory.code) > memory.cache
