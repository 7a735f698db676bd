"""What the place of each object saves a run, and what the next move would: the model of the memories run again with the
object elsewhere, at the same accesses and in the same order.

Not here: whether it fits, and what the placement estimated before anything ran (target.placement).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from mcugen.emit.kernels import kernels
from mcugen.emulate.cycles import added
from mcugen.emulate.elf import Elf, Symbol, region_at
from mcugen.emulate.memories import Memories, Move
from mcugen.target.board import Board, Region

#: Of the objects that could move, how many are told.
_NEXT = 8
#: Less is not worth a line among them, in cycles.
_WORTH = 1.0


@dataclass(frozen=True, slots=True)
class Placing:
    """An object in ``region``, of ``size`` bytes as linked, and ``other``, where it could be. ``low``, ``high``: cycles
    a run that it costs more there, at both ends of the range; negative where it would cost less."""

    symbol: str
    role: str
    region: str
    size: int
    other: str
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Places:
    """``placed``: what is in fast memory, against flash or, for working memory, the RAM that it would have otherwise.
    ``together``: what they save all at once, low and high; less than the sum, for small objects share lines. ``next``:
    what would gain most by a move into fast memory, the most first."""

    placed: tuple[Placing, ...] = ()
    together: tuple[float, float] = (0.0, 0.0)
    next: tuple[Placing, ...] = ()


def account(roles: Mapping[str, str], elf: Elf, board: Board, memories: Memories, runs: int) -> Places:
    """``roles``: of each object of the plan, by symbol, in its order; ``runs``: inferences in ``memories``."""
    base = tuple(_stalls(memories, cold, ()) for cold in (False, True))
    end = _end_of(elf, board)

    def costs(moves: Sequence[Move]) -> tuple[float, float]:
        low, high = ((_stalls(memories, c, moves) - b) / max(runs, 1) for c, b in zip((False, True), base, strict=True))
        return low, high

    away: list[Move] = []
    ahead = dict(end)
    placed: list[Placing] = []
    following: list[Placing] = []
    for symbol, role in roles.items():
        parts = tuple(_parts(elf, symbol, role))
        here = region_at(board, parts[0].address) if parts else None
        if here is None:
            continue
        other = _other(here, role, board)
        if other is None:
            continue
        start = end.get(other.name, other.base + other.skip)
        found = Placing(
            symbol, role, here.name, sum(p.size for p in parts), other.name, *costs(_moves(parts, start, board))
        )
        if _is_slow(here, role):
            following.append(found)
            continue
        placed.append(found)
        away += _moves(parts, ahead.get(other.name, start), board, packed=True)
        ahead[other.name] = away[-1].to + away[-1].end - away[-1].start
    gains = sorted((p for p in following if -p.high >= _WORTH), key=lambda p: (p.high, p.symbol))
    return Places(tuple(placed), costs(away) if away else (0.0, 0.0), tuple(gains[:_NEXT]))


def _stalls(memories: Memories, cold: bool, moves: Sequence[Move]) -> float:
    """Over all runs."""
    return sum(float(np.sum(a.cycles)) for a in added(memories, cold, moves))


def _parts(elf: Elf, symbol: str, role: str) -> Iterator[Symbol]:
    """What is read or runs: of a table its copy, if it has one; of code its functions, clones and helpers included."""
    if role == "code":
        kernel = kernels().get(symbol)
        names = {symbol, *(kernel.helpers if kernel is not None else ())}
        yield from sorted(
            (f for f in elf.functions() if f.name.split(".")[0] in names and f.size),
            key=lambda f: (f.name.split(".")[0] != symbol, f.address),
        )
        return
    found = elf.symbols.get(f"{symbol}_copy") or elf.symbols.get(f"{symbol}_image") or elf.symbols.get(symbol)
    if found is not None and found.size:
        yield found


def _is_slow(here: Region, role: str) -> bool:
    """Where there are waits: from there a move pays."""
    return here.home if role != "arena" else bool(here.wait or here.fill)


def _other(here: Region, role: str, board: Board) -> Region | None:
    """Where the object would be: in slow memory if it is in fast one, and the other way round."""
    auto = [r for r in board.regions if role in r.auto and r is not here and (role != "arena" or r.writable)]
    if not auto:
        return None
    if _is_slow(here, role):
        best = min(auto, key=lambda r: (r.wait, r.fill))
        return best if (best.wait, best.fill) < (here.wait, here.fill) else None
    return board.home if role != "arena" else max(auto, key=lambda r: (r.wait, r.fill))


def _moves(parts: Sequence[Symbol], at: int, board: Board, packed: bool = False) -> tuple[Move, ...]:
    """The parts one behind the other, from ``at`` on. Each keeps its place in a line, or, ``packed``, in a word of 8
    bytes."""
    line = 8 if packed else max(board.core.cache_line, 8)
    moves = []
    for p in parts:
        at += (p.address - at) % line
        moves.append(Move(p.address, p.address + p.size, at))
        at += p.size
    return tuple(moves)


def _end_of(elf: Elf, board: Board) -> dict[str, int]:
    """Where each memory is free, behind all that the image has there."""
    ends: dict[str, int] = {}
    spans = [(s.address, s.address + s.size) for s in elf.symbols.values()]
    for start, end in (*spans, *((s.load, s.load + len(s.data)) for s in elf.segments)):
        region = region_at(board, start)
        if region is not None:
            ends[region.name] = max(ends.get(region.name, region.base), end)
    return ends


def places_lines(places: Places) -> list[str]:
    """Two tables, aligned; empty without a plan."""
    lines = []
    if places.placed:
        head = ("placement", "bytes", "in", "saves a run, in cycles")
        rows = [
            (p.symbol, f"{p.size:,}", p.region, f"{_range(p.low, p.high)} against {p.other}") for p in places.placed
        ]
        rows += [("all of them", f"{sum(p.size for p in places.placed):,}", "", _range(*places.together))]
        lines += _table([head, *rows])
    if places.next:
        head = ("could move", "bytes", "from", "would save a run, in cycles")
        rows = [
            (p.symbol, f"{p.size:,}", p.region, f"{_range(0.0 - p.low, 0.0 - p.high)} in {p.other}")
            for p in places.next
        ]
        lines += ["", *_table([head, *rows])] if lines else _table([head, *rows])
    return lines


def _range(low: float, high: float) -> str:
    return f"{low:,.0f} to {high:,.0f}"


def _table(rows: Sequence[tuple[str, str, str, str]]) -> list[str]:
    widths = [max(len(r[i]) for r in rows) for i in range(3)]
    return [f"{s.ljust(widths[0])}  {b.rjust(widths[1])}  {r.ljust(widths[2])}  {t}" for s, b, r, t in rows]


def places_json(places: Places) -> dict[str, object]:
    """The same for machines; cycles that the place saves, or that the move would."""
    return {
        "saves_cycles": {"low": round(places.together[0]), "high": round(places.together[1])},
        "placed": [_entry(p, 1.0) | {"against": p.other} for p in places.placed],
        "next": [_entry(p, -1.0) | {"to": p.other} for p in places.next],
    }


def _entry(p: Placing, sign: float) -> dict[str, object]:
    saves = {"low": round(sign * p.low), "high": round(sign * p.high)}
    return {"symbol": p.symbol, "role": p.role, "region": p.region, "bytes": p.size, "saves_cycles": saves}
