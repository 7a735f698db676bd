"""One arena for the values of a model: who lives when, and where. Values that never live together share memory.

Placing intervals of given sizes in the least height is NP-hard; nets are small, so several orders are tried, and the
search ends as soon as the lower bound (the largest set that lives at once) is reached.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

from mcugen.core.op import MachineOp
from mcugen.core.types import Model
from mcugen.errors import InternalError

#: Every value starts on a multiple of this: kernels load words and doubles, and caches like it.
ALIGN = 8
_SHUFFLES = 200


@dataclass(frozen=True, slots=True)
class Slot:
    """``size`` bytes at ``offset``, from op ``first`` to op ``last``, both included.

    An input is there from -1 on: before the first op; an output until the count of ops: after the last one.
    """

    value: str
    offset: int
    size: int
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class ArenaPlan:
    """``slots`` of values and of the scratch of ops (``scratch[i]`` is op i's offset, or None); ``size`` in bytes.

    ``lower_bound``: no plan can be smaller than the values and scratch that live at one time. ``ports``: the model's
    inputs and outputs have slots, too; otherwise they are the caller's.
    """

    slots: tuple[Slot, ...]
    scratch: tuple[int | None, ...]
    size: int
    lower_bound: int
    ports: bool = False

    def offset(self, value: str) -> int:
        """The offset of a value; KeyError if it is not in the arena."""
        for slot in self.slots:
            if slot.value == value:
                return slot.offset
        raise KeyError(value)


@dataclass(frozen=True, slots=True)
class _Part:
    """``size`` bytes, ``at`` bytes from the origin of a block, in use from op ``first`` to op ``last``."""

    name: str
    at: int
    size: int
    first: int
    last: int

    def meets(self, other: _Part) -> bool:
        """Whether both are in use at one time."""
        return self.first <= other.last and other.first <= self.last


@dataclass(slots=True)
class _Block:
    """Parts whose places depend on each other, as outputs take over the memory of inputs. They never disturb each
    other."""

    parts: list[_Part]

    @property
    def low(self) -> int:
        return min(p.at for p in self.parts)

    @property
    def size(self) -> int:
        return max(p.at + p.size for p in self.parts) - self.low

    @property
    def first(self) -> int:
        return min(p.first for p in self.parts)

    @property
    def last(self) -> int:
        return max(p.last for p in self.parts)

    def part(self, name: str) -> _Part:
        return next(p for p in self.parts if p.name == name)

    def needs(self, i: int) -> int:
        """Bytes in use at op i. (Others may lie between parts.)"""
        used, end = 0, self.low
        for start, stop in sorted((p.at, p.at + p.size) for p in self.parts if p.first <= i <= p.last):
            used += max(stop - max(start, end), 0)
            end = max(end, stop)
        return used


def plan_arena(model: Model, ops: Sequence[MachineOp], *, ports: bool = False) -> ArenaPlan:
    """Offsets for all values but the model's inputs and outputs, which are the caller's; with ``ports`` for those too.

    An input lives from before the first op to its last reader, an output from its op to after the last one. Ops take
    pointers: the same plan serves a caller who keeps an input or output elsewhere.

    An output may take over the memory of an input that nobody reads afterwards: the same bytes (``in_place``), or bytes
    that start before it (``lag``). The latter is given up, op by op, where the arena is smaller without.
    """
    late = {i for i, op in enumerate(ops) if op.lag is not None}
    best = _planned(model, ops, late, ports)
    bound = best.lower_bound  # without a lag more is in use, not less
    for i in sorted(late):
        if best.size <= bound:
            break
        plan = _planned(model, ops, late - {i}, ports)
        if plan.size < best.size:
            best, late = plan, late - {i}
    return best


def _planned(model: Model, ops: Sequence[MachineOp], late: set[int], ports: bool) -> ArenaPlan:
    """The plan where the ops ``late`` may write behind what they read."""
    values = _blocks(model, ops, late, ports)
    scratch = [
        _Block([_Part(f"scratch {i}", 0, _rounded(op.scratch_bytes), i, i)])
        for i, op in enumerate(ops)
        if op.scratch_bytes
    ]
    blocks = [*values, *scratch]
    bound = max((sum(b.needs(i) for b in blocks) for i in range(-1, len(ops) + 1)), default=0)
    origins = _best(blocks, bound)
    _check(blocks, origins)
    slots, places, size = [], dict[str, int](), 0
    for k, block in enumerate(blocks):
        for part in block.parts:
            offset = origins[k] + part.at
            size = max(size, offset + part.size)
            if k < len(values):
                slots.append(Slot(part.name, offset, part.size, part.first, part.last))
            else:
                places[part.name] = offset
    return ArenaPlan(tuple(slots), tuple(places.get(f"scratch {i}") for i in range(len(ops))), size, bound, ports)


def _rounded(size: int) -> int:
    return -(-size // ALIGN) * ALIGN


def _bytes(model: Model, value: str) -> int:
    return _rounded(model.types[value].count * model.types[value].dtype.size)


def _blocks(model: Model, ops: Sequence[MachineOp], late: set[int], ports: bool) -> list[_Block]:
    """What each value shares its memory with, in the order of first use."""
    outside = set() if ports else set(model.inputs) | set(model.outputs)
    last = {v: i for i, op in enumerate(ops) for v in op.inputs}
    last |= dict.fromkeys(model.outputs, len(ops))
    blocks: list[_Block] = []
    owner: dict[str, _Block] = {}
    for value in dict.fromkeys(model.inputs if ports else ()):
        owner[value] = _Block([_Part(value, 0, _bytes(model, value), -1, last.get(value, -1))])
        blocks.append(owner[value])
    for i, op in enumerate(ops):
        for k, value in enumerate(op.outputs):
            if value in outside:
                continue
            size, end = _bytes(model, value), last.get(value, i)
            found = _heir(model, op, owner, last, size, i, i in late) if k == 0 else None
            if found is None:
                found = _Block([]), 0
                blocks.append(found[0])
            owner[value] = found[0]
            found[0].parts.append(_Part(value, found[1], size, i, end))
    return blocks


def _heir(
    model: Model, op: MachineOp, owner: dict[str, _Block], last: dict[str, int], needed: int, i: int, late: bool
) -> tuple[_Block, int] | None:
    """The memory that the first output of op i may take over, that of an input nobody reads after it, and where."""
    for k in (*op.in_place, *((0,) if late else ())):
        value = op.inputs[k]
        block = owner.get(value)
        if block is None or last[value] != i or any(p.last >= i and p.name != value for p in block.parts):
            continue
        if k in op.in_place and needed <= _bytes(model, value):
            return block, block.part(value).at
        if k == 0 and late and op.lag is not None:
            return block, block.part(value).at - _rounded(op.lag)
    return None


def _best(blocks: list[_Block], bound: int) -> list[int]:
    """The origin of each block in the lowest plan found; deterministic."""
    numbers = range(len(blocks))
    by_size = sorted(numbers, key=lambda k: (-blocks[k].size, blocks[k].first, k))
    by_span = sorted(numbers, key=lambda k: (blocks[k].first - blocks[k].last, -blocks[k].size, k))
    by_time = sorted(numbers, key=lambda k: (blocks[k].first, -blocks[k].size, k))
    rng = random.Random(0)
    fit = _FirstFit(blocks)
    best, height = fit.place(by_size)
    spreads = [4.0, float(len(blocks))] * (_SHUFFLES // 2)
    for order in chain((by_span, by_time), (_shuffled(by_size, spread, rng) for spread in spreads)):
        if height == bound:
            break
        origins, found = fit.place(order, height)
        if found < height:
            best, height = origins, found
    return best


def _shuffled(order: list[int], spread: float, rng: random.Random) -> list[int]:
    """Those within ``spread`` places change theirs."""
    keyed = [(i + rng.uniform(0, spread), i) for i in range(len(order))]
    return [order[i] for _, i in sorted(keyed)]


class _FirstFit:
    """Each block as low as no part of it disturbs what was placed before."""

    def __init__(self, blocks: list[_Block]) -> None:
        self._low = [b.low for b in blocks]
        self._top = [b.low + b.size for b in blocks]
        #: By block, for each other that it meets: between which distances of their origins parts would overlap.
        self._apart = [[(j, found) for j, b in enumerate(blocks) if (found := _overlaps(a, b))] for a in blocks]

    def place(self, order: list[int], limit: int | None = None) -> tuple[list[int], int]:
        """The origins, and the height; any origins, and ``limit``, where the height is not below that."""
        origins: list[int | None] = [None] * len(order)
        height = 0
        for k in order:
            taken = sorted(
                (low + at, high + at)
                for j, distances in self._apart[k]
                if (at := origins[j]) is not None
                for low, high in distances
            )
            origin = -self._low[k]
            for low, high in taken:
                if low < origin < high:
                    origin = high
            origins[k] = origin
            height = max(height, origin + self._top[k])
            if limit is not None and height >= limit:
                return [], limit
        return [at for at in origins if at is not None], height


def _overlaps(block: _Block, other: _Block) -> list[tuple[int, int]]:
    """Between which distances of the origin of ``block`` above that of ``other`` parts of both would overlap."""
    if block is other:
        return []
    return [(q.at - p.at - p.size, q.at + q.size - p.at) for p in block.parts for q in other.parts if p.meets(q)]


def _check(blocks: list[_Block], origins: list[int]) -> None:
    """No two parts of different blocks that are in use at one time may overlap: that would be silent on the device."""
    for i, a in enumerate(blocks):
        for j, b in enumerate(blocks[:i]):
            for p in a.parts:
                for q in b.parts:
                    at, other = origins[i] + p.at, origins[j] + q.at
                    if p.meets(q) and at < other + q.size and other < at + p.size:
                        raise InternalError("arena", f"{p.name} and {q.name} overlap")
        if origins[i] + a.low < 0:
            raise InternalError("arena", "a value before the start")
