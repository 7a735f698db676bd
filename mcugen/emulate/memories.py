"""What memories add to runs: waits, and line fills behind caches with least-recently-used replacement.

Whole runs at once: of a stream of touches only those can miss where the line of a cache set changes, and a loop has few
of them. So what a run would cost with an object elsewhere is the same computation with other addresses.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mcugen.core.types import Array
from mcugen.emulate.caches import Cache
from mcugen.emulate.recorder import Execution, access_arrays
from mcugen.target.board import Board

INSTRUCTION_WAYS, DATA_WAYS = 2, 4
_FETCH_BYTES = 8


@dataclass(frozen=True, slots=True)
class Move:
    """The bytes at addresses [start, end) are taken to be at ``to`` and behind."""

    start: int
    end: int
    to: int


@dataclass(frozen=True, slots=True, eq=False)
class _Stream:
    """Fetches or accesses of all runs, in order: address, bytes, whether it is a store, index of the run; ``waits``:
    what it waits for where no cache serves."""

    address: Array
    size: Array
    store: Array
    run: Array
    waits: Array


@dataclass(frozen=True, slots=True, eq=False)
class Added:
    """``cycles`` (runs,) that memories add to each run; ``misses`` of the cache over all runs."""

    cycles: Array
    misses: int


class Memories:
    """The fetches and accesses of ``executions`` on a board."""

    def __init__(self, executions: Sequence[Execution], board: Board) -> None:
        self._board = board
        self._runs = len(executions)
        order = sorted(board.regions, key=lambda r: r.base)
        self._base = np.array([r.base for r in order], np.int64)
        self._end = np.array([r.end for r in order], np.int64)
        self._wait = np.array([r.wait for r in order], np.float64)
        self._fill = np.array([r.fill for r in order], np.float64)
        self._cached = np.array([r.cached for r in order], np.bool_)
        self._code, self._data = _code_stream(executions), _data_stream(executions)

    def fetch(self, scale: float, cold: bool, moves: Sequence[Move] = ()) -> Added:
        """Of instructions. ``scale``: of the latencies of the board file; ``cold``: the cache is empty before each run,
        else it knows the runs before, and before the first the last."""
        return self._added(
            self._code, self._board.core.instruction_cache, INSTRUCTION_WAYS, (scale, scale, cold), moves
        )

    def access(self, scale: float, store: float, cold: bool, moves: Sequence[Move] = ()) -> Added:
        """Of data; ``store``: the scale where a store waits."""
        return self._added(self._data, self._board.core.data_cache, DATA_WAYS, (scale, store, cold), moves)

    def _added(self, s: _Stream, cache: int, ways: int, how: tuple[float, float, bool], moves: Sequence[Move]) -> Added:
        scale, store, cold = how
        address = s.address
        for m in moves:
            address = np.where(_within(s.address, m), s.address - m.start + m.to, address)
        region = np.searchsorted(self._base, address, "right") - 1
        known = (region >= 0) & (address < self._end[region])
        behind = known & self._cached[region] & bool(cache)
        factor = np.where(s.store, store, scale)
        direct = np.where(known & ~behind, self._wait[region] * s.waits * factor, 0.0)
        cycles = np.bincount(s.run, direct, self._runs)
        behind &= (self._wait[region] > 0) | (self._fill[region] > 0)
        at = np.flatnonzero(behind)
        if not at.size:
            return Added(cycles, 0)
        lines, of = _lines(address[at], s.size[at], self._board.core.cache_line)
        at = at[of]
        again = np.zeros(0, np.int64) if cold else np.flatnonzero(s.run[at] == self._runs - 1)  # warms the first run
        group = np.concatenate([np.zeros(len(again), np.int64), s.run[at] if cold else np.zeros(len(at), np.int64)])
        sets = cache // (max(self._board.core.cache_line, 1) * ways)
        missed = missing(np.concatenate([lines[again], lines]), group, sets, ways)[len(again) :]
        at = at[missed]
        cycles += np.bincount(s.run[at], self._fill[region[at]] * factor[at], self._runs)
        return Added(cycles, len(at))


def missing(lines: Array, group: Array, sets: int, ways: int) -> Array:
    """(n,) bool: which touches of a line miss a cache of ``sets`` times ``ways`` lines. ``group`` (n,): touches of one
    group share a cache that starts empty; ``lines`` are addresses divided by the size of a line."""
    result = np.zeros(len(lines), np.bool_)
    key = group * sets + lines % sets
    order = np.argsort(key, kind="stable")
    key, line = key[order], lines[order]
    changed = np.ones(len(lines), np.bool_)
    changed[1:] = (key[1:] != key[:-1]) | (line[1:] != line[:-1])
    order, key, line = order[changed], key[changed], line[changed]
    missed = np.ones(len(line), np.bool_)
    if ways == 2:  # of two lines that take turns, the last but one is there
        missed[2:] = (key[2:] != key[:-2]) | (line[2:] != line[:-2])
    elif ways > 2:
        missed = _replayed(key.tolist(), line.tolist(), ways)
    result[order[missed]] = True
    return result


def _replayed(keys: list[int], lines: list[int], ways: int) -> Array:
    """As ``missing``, touch by touch; those of one set are neighbours."""
    missed = np.zeros(len(keys), np.bool_)
    last, cache = -1, Cache(ways, 1, ways)
    for i, (key, line) in enumerate(zip(keys, lines, strict=True)):
        if key != last:
            last, cache = key, Cache(ways, 1, ways)
        missed[i] = not cache.touch(line)
    return missed


def _within(address: Array, m: Move) -> Array:
    return (address >= m.start) & (address < m.end)


def _lines(address: Array, size: Array, line: int) -> tuple[Array, Array]:
    """Lines that are touched, in order, and for each the index of its touch."""
    first = address // line
    count = (address + size - 1) // line - first + 1
    of = np.repeat(np.arange(len(address)), count)
    start = np.cumsum(count) - count
    return first[of] + np.arange(len(of)) - start[of], of


def _code_stream(executions: Sequence[Execution]) -> _Stream:
    parts = [np.array(e.blocks, np.int64).reshape(-1, 2) for e in executions]
    whole = np.concatenate([np.zeros((0, 2), np.int64), *parts])
    run = np.repeat(np.arange(len(parts)), [len(p) for p in parts])
    store = np.zeros(len(whole), np.bool_)
    return _Stream(whole[:, 0], whole[:, 1], store, run, -(-whole[:, 1] // _FETCH_BYTES))


def _data_stream(executions: Sequence[Execution]) -> _Stream:
    parts = [access_arrays(e.accesses) for e in executions]
    joined: list[Any] = [np.concatenate([p[k] for p in parts]) if parts else np.zeros(0, np.int64) for k in range(3)]
    run = np.repeat(np.arange(len(parts)), [len(p[0]) for p in parts])
    return _Stream(joined[0], joined[1], joined[2].astype(np.bool_), run, np.ones(len(run), np.int64))
