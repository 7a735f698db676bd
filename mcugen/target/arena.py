"""One arena for all values between ops: who lives when, and where. Values that never live together share memory.

Placing intervals of given sizes in the least height is NP-hard; nets are small, so several orders are tried, and the
search ends as soon as the lower bound (the largest set that lives at once) is reached.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from mcugen.core.op import MachineOp
from mcugen.core.types import Model
from mcugen.errors import InternalError

#: Every value starts on a multiple of this: kernels load words and doubles, and caches like it.
ALIGN = 8
_SHUFFLES = 200


@dataclass(frozen=True, slots=True)
class Slot:
    """``size`` bytes at ``offset``, from op ``first`` to op ``last``, both included."""

    value: str
    offset: int
    size: int
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class ArenaPlan:
    """``slots`` of values and of the scratch of ops (``scratch[i]`` is op i's offset, or None); ``size`` in bytes.

    ``lower_bound``: no plan can be smaller than the values and scratch that live at one time.
    """

    slots: tuple[Slot, ...]
    scratch: tuple[int | None, ...]
    size: int
    lower_bound: int

    def offset(self, value: str) -> int:
        """The offset of a value; KeyError if it is not in the arena."""
        for slot in self.slots:
            if slot.value == value:
                return slot.offset
        raise KeyError(value)


@dataclass(frozen=True, slots=True)
class _Interval:
    name: str
    size: int
    first: int
    last: int


def plan_arena(model: Model, ops: Sequence[MachineOp]) -> ArenaPlan:
    """Offsets for all values but the model's inputs and outputs, which are the caller's."""
    values, aliases = _lifetimes(model, ops)
    scratch = [
        _Interval(f"scratch {i}", _rounded(op.scratch_bytes), i, i) for i, op in enumerate(ops) if op.scratch_bytes
    ]
    intervals = [*values, *scratch]
    bound = max((sum(v.size for v in intervals if v.first <= i <= v.last) for i in range(len(ops))), default=0)
    offsets = _best(intervals, bound)
    size = max((offsets[v.name] + v.size for v in intervals), default=0)
    slots = [Slot(v.name, offsets[v.name], v.size, v.first, v.last) for v in values]
    by_name = {s.value: s for s in slots}
    for value, owner in aliases.items():
        o = by_name[owner]
        slots.append(Slot(value, o.offset, o.size, o.first, o.last))
    places = tuple(offsets.get(f"scratch {i}") for i in range(len(ops)))
    plan = ArenaPlan(tuple(slots), places, size, bound)
    _check(plan, intervals, offsets)
    return plan


def _rounded(size: int) -> int:
    return -(-size // ALIGN) * ALIGN


def _lifetimes(model: Model, ops: Sequence[MachineOp]) -> tuple[list[_Interval], dict[str, str]]:
    """Intervals of values, and values that took over the memory of another one (value -> owner)."""
    outside = set(model.inputs) | set(model.outputs)
    last = {v: i for i, op in enumerate(ops) for v in op.inputs}
    owner: dict[str, str] = {}
    first: dict[str, int] = {}
    end: dict[str, int] = {}
    size: dict[str, int] = {}
    for i, op in enumerate(ops):
        for k, value in enumerate(op.outputs):
            if value in outside:
                continue
            bytes_ = _rounded(model.types[value].count * model.types[value].dtype.size)
            heir = _heir(op, owner, last, size, bytes_, i) if k == 0 else None
            if heir is not None:
                owner[value] = heir
                end[heir] = max(end[heir], last.get(value, i))
                continue
            owner[value] = value
            first[value], end[value], size[value] = i, last.get(value, i), bytes_
    intervals = [_Interval(v, size[v], first[v], end[v]) for v in first]
    return intervals, {v: o for v, o in owner.items() if v != o}


def _heir(
    op: MachineOp, owner: dict[str, str], last: dict[str, int], size: dict[str, int], needed: int, i: int
) -> str | None:
    """The memory that the first output of op i may take over: that of an input nobody reads after it."""
    for k in op.in_place:
        value = op.inputs[k]
        root = owner.get(value)
        if root is None or size[root] < needed or last[value] != i:
            continue
        others = [v for v, r in owner.items() if r == root and v != value and last.get(v, -1) >= i]
        if not others:
            return root
    return None


def _best(intervals: list[_Interval], bound: int) -> dict[str, int]:
    """Offsets of the lowest plan found; deterministic."""
    by_size = sorted(intervals, key=lambda v: (-v.size, v.first, v.name))
    by_span = sorted(intervals, key=lambda v: (v.first - v.last, -v.size, v.name))
    by_time = sorted(intervals, key=lambda v: (v.first, -v.size, v.name))
    best, height = _first_fit(by_size), -1
    height = _height(intervals, best)
    rng = random.Random(0)
    orders = [by_span, by_time] + [_shuffled(by_size, rng) for _ in range(_SHUFFLES)]
    for order in orders:
        if height == bound:
            break
        offsets = _first_fit(order)
        found = _height(intervals, offsets)
        if found < height:
            best, height = offsets, found
    return best


def _shuffled(order: list[_Interval], rng: random.Random) -> list[_Interval]:
    """Mostly by size: neighbours change places."""
    keyed = [(i + rng.uniform(0, 4), i) for i in range(len(order))]
    return [order[i] for _, i in sorted(keyed)]


def _height(intervals: list[_Interval], offsets: dict[str, int]) -> int:
    return max((offsets[v.name] + v.size for v in intervals), default=0)


def _first_fit(order: list[_Interval]) -> dict[str, int]:
    """Each interval at the lowest offset that is free all through its life."""
    offsets: dict[str, int] = {}
    placed: list[_Interval] = []
    for v in order:
        busy = sorted((offsets[p.name], p.size) for p in placed if p.first <= v.last and v.first <= p.last)
        at = 0
        for offset, size in busy:
            if offset - at >= v.size:
                break
            at = max(at, offset + size)
        offsets[v.name] = at
        placed.append(v)
    return offsets


def _check(plan: ArenaPlan, intervals: list[_Interval], offsets: dict[str, int]) -> None:
    """No two intervals that live at one time may overlap: a fault here would be silent on the device."""
    for i, a in enumerate(intervals):
        for b in intervals[:i]:
            together = a.first <= b.last and b.first <= a.last
            apart = offsets[a.name] + a.size <= offsets[b.name] or offsets[b.name] + b.size <= offsets[a.name]
            if together and not apart and a.size and b.size:
                raise InternalError("arena", f"{a.name} and {b.name} overlap")
    if plan.size < plan.lower_bound:
        raise InternalError("arena", "a plan below its lower bound")
