"""Which of several objects to move into a memory of limited size. Exact for few, within a factor of two for many."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

#: Up to this many candidates the choice is optimal: at most 2 ** EXACT steps.
EXACT = 14


@dataclass(frozen=True, slots=True)
class Candidate:
    """An object, its bytes (> 0) and what moving it gains (> 0)."""

    name: str
    size: int
    gain: float

    @property
    def density(self) -> float:
        """Gain per byte."""
        return self.gain / self.size


def choose(candidates: Sequence[Candidate], capacity: int) -> frozenset[str]:
    """Names of the candidates to move: a subset of at most ``capacity`` bytes with a large total gain.

    Optimal for up to EXACT candidates that fit one by one. Beyond that the better of two choices: by gain per byte
    as long as they fit, or the single best candidate; together they have at least half of the best total gain.
    The result does not depend on the order of the candidates.
    """
    fitting = [c for c in candidates if c.size <= capacity]
    ordered = sorted(fitting, key=lambda c: (-c.density, -c.size, c.name))
    if len(ordered) <= EXACT:
        return frozenset(c.name for c in _exact(ordered, capacity))
    dense = _greedy(ordered, capacity)
    single = max(ordered, key=lambda c: c.gain)  # the densest of equals, for ``ordered`` is sorted
    best = dense if sum(c.gain for c in dense) >= single.gain else [single]
    return frozenset(c.name for c in best)


def _greedy(ordered: Sequence[Candidate], capacity: int) -> list[Candidate]:
    taken = []
    for c in ordered:
        if c.size <= capacity:
            taken.append(c)
            capacity -= c.size
    return taken


def _exact(ordered: Sequence[Candidate], capacity: int) -> list[Candidate]:
    """Branch and bound over candidates of falling density, from the greedy choice on."""
    best = _greedy(ordered, capacity)
    best_gain = sum(c.gain for c in best)

    def bound(at: int, room: int) -> float:
        total = 0.0
        for c in ordered[at:]:
            if c.size > room:
                return total + c.density * room
            total += c.gain
            room -= c.size
        return total

    def search(at: int, room: int, gain: float, taken: list[Candidate]) -> None:
        nonlocal best, best_gain
        if gain > best_gain:
            best, best_gain = list(taken), gain
        if at == len(ordered) or gain + bound(at, room) <= best_gain:
            return
        c = ordered[at]
        if c.size <= room:
            search(at + 1, room - c.size, gain + c.gain, [*taken, c])
        search(at + 1, room, gain, taken)

    search(0, capacity, 0.0, [])
    return best
