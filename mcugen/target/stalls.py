"""The latency model: how many cycles a run waits for memory, as an estimate from the numbers of the board file.

Not here: instruction timing. And no promise: cycles that were not measured are estimates wherever they are printed.

Model
    Let an object of ``S`` bytes be read ``A`` times a run (Item.reads_per_run), at places that are spread evenly.

    memory that no cache serves:   stalls = A * wait              (tightly coupled memory: wait = 0)
    memory behind a cache:         stalls = fill * (D + (A - D) * max(0, 1 - C / W))
        N = ceil(S / line)                  lines of the object
        D = N * (1 - (1 - 1/N) ** A)        lines that a run touches, expected
        C                                   bytes of the cache (data cache; for code the instruction cache)
        W                                   bytes of all objects of the model that share the cache before any moves

    Every first touch of a line misses: between two runs the application has used the cache for itself. A second
    touch misses only as far as the model is larger than the cache.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from mcugen.core.op import Item
from mcugen.target.board import Board, Region


@dataclass(frozen=True, slots=True)
class Traffic:
    """Bytes that share each cache: ``W`` of the model."""

    data: int
    code: int

    @classmethod
    def of(cls, items: Iterable[Item]) -> Traffic:
        """The sums over all objects of a model, wherever they end up."""
        objects = tuple(items)
        code = sum(i.size for i in objects if i.role == "code")
        return cls(data=sum(i.size for i in objects) - code, code=code)


def stall_cycles(item: Item, region: Region, board: Board, traffic: Traffic) -> float:
    """Estimated stall cycles a run for the accesses to ``item``, were it in ``region``."""
    accesses = max(0.0, item.reads_per_run)
    core = board.core
    cache, shared = (core.instruction_cache, traffic.code) if item.role == "code" else (core.data_cache, traffic.data)
    if not region.cached or not cache:
        return accesses * region.wait
    lines = max(1, math.ceil(item.size / core.cache_line))
    touched = min(accesses, expected_distinct(lines, accesses))
    again = max(0.0, 1.0 - cache / shared) if shared else 0.0
    return region.fill * (touched + (accesses - touched) * again)


def expected_distinct(lines: int, accesses: float) -> float:
    """How many of ``lines`` equally likely lines a number of accesses touches."""
    if lines <= 1:
        return min(1.0, accesses)
    return -lines * math.expm1(accesses * math.log1p(-1.0 / lines))
