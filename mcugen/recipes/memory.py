"""Which plan of a net's memory an export takes: the fastest, the smallest, or the fastest that fits.

Plans differ in what costs instructions: whether depthwise layers read planes or interleaved channels (then a layer is
computed in place), how many pixels are packed before the weights are read, and which layers are computed together by
rows (``fusion.py``).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from mcugen.core.op import MachineOp
from mcugen.core.types import Model
from mcugen.emit.parts import machine_ops
from mcugen.errors import DoesNotFitError
from mcugen.nn.estimate import instructions
from mcugen.nn.ops.qconv import QConv
from mcugen.nn.ops.qdepthwise import QDepthwise
from mcugen.nn.ops.row_chain import RowChain
from mcugen.nn.prune.prune import Pruned
from mcugen.nn.quantize.quantize import Quantized
from mcugen.recipes.fusion import Fusion, Fusions, small_tile
from mcugen.recipes.prepared import ExportOptions
from mcugen.target.arena import ArenaPlan, plan_arena

#: The smallest arena may cost so many times the instructions of the fastest plan, as estimated.
MOST_PRICE = 1.15
#: Plans of one way to lay out a net that are tried in earnest: an arena may be larger than its values at one time.
_TRIALS = 6
#: What a plan may cost above its limit before its layers get the room that is left, which may bring it below.
_BEFORE_ROOM = (1.0, 1.05, 1.15)


@dataclass(frozen=True, slots=True, eq=False)
class LoweredNet:
    """A quantized net as a machine model with all its channels (``full``), and without the dead ones."""

    quantized: Quantized
    full: Model
    pruned: Pruned
    #: Inputs and outputs live in the arena.
    ports: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class MemoryPlan:
    """The machine model that is exported, its arena, and how it was got in a few words.

    ``price``: estimated instructions; ``fastest``: those of the fastest plan, where that was not taken. ``spent``: what
    flash was given for, in a few words (``flash.py``).
    """

    net: LoweredNet
    machine: Model
    arena: ArenaPlan
    about: str
    price: float
    fastest: float | None = None
    spent: str = ""

    def facts(self) -> tuple[tuple[str, str], ...]:
        """For people: what was given for less memory, if anything, and what flash was given for."""
        flash = (("flash", self.spent),) if self.spent else ()
        if self.fastest is None:
            return flash
        more = f"about {100 * (self.price / self.fastest - 1):.0f} % more instructions than the fastest plan"
        return (("memory", f"{self.about}; {more}"), *flash)

    def details(self) -> tuple[str, ...]:
        """The layers that are computed together, and the rows that are kept of each."""
        lines = []
        for op in self.machine.ops:
            if isinstance(op, RowChain):
                rows = ", ".join(f"{v} {n}" for v, n in zip(op.inner, op.schedule.rows, strict=False))
                lines.append(f"by rows: {op.loc.item}: {op.scratch_bytes:,} bytes; rows kept: {rows}")
        return tuple(lines)


def choose_memory(options: ExportOptions, lower: Callable[[bool], LoweredNet]) -> MemoryPlan:
    """The plan that ``optimize`` and ``max_ram`` ask for; ``lower(interleaved)`` quantizes the net.

    DoesNotFitError, with the least that is possible, where no plan is small enough.
    """
    net = lower(False)
    planes = _roomy(planned(net, net.pruned.machine, "fastest layout"))
    if options.optimize != "ram" and (options.max_ram is None or planes.arena.size <= options.max_ram):
        return planes
    other = lower(True)
    interleaved = planned(other, _changed(other.pruned.machine, _whole), "depthwise layers in place")
    plain = [planes, _small(planes), interleaved, _small(interleaved)]
    searches = [
        (plan, Fusions(plan.machine, ports=plan.net.ports))
        for plan in (planned(net, net.pruned.machine, ""), interleaved)
    ]
    if options.optimize == "ram":
        limit = MOST_PRICE * planes.price
        found = [*plain, *(p for s in searches for more in _BEFORE_ROOM for p in _smallest(*s, more * limit))]
        affordable = [p for p in (planes, *map(_roomy, found)) if p.price <= limit]
        best = min(affordable, key=lambda p: (p.arena.size, p.price))
        if options.max_ram is None or best.arena.size <= options.max_ram:
            return _beside(best, planes)
    allowed = planes.arena.size if options.max_ram is None else options.max_ram
    fitting = [p for p in plain if p.arena.size <= allowed]
    fitting += [p for s in searches for p in _cheapest(*s, allowed)]
    if not fitting:
        found = [*plain, *(p for s in searches for p in _smallest(*s, math.inf))]
        least = min(found, key=lambda p: p.arena.size)
        if least.arena.size > allowed:
            raise too_small(allowed, least.arena)
        fitting = [least]
    roomy = [_roomy(p, allowed) for p in fitting]
    return _beside(min(roomy, key=lambda p: (p.price, p.arena.size)), planes)


def _beside(plan: MemoryPlan, fastest: MemoryPlan) -> MemoryPlan:
    """With what the fastest plan costs, if it is another."""
    return plan if plan is fastest else replace(plan, fastest=fastest.price)


def _smallest(plan: MemoryPlan, fusions: Fusions, allowed: float) -> list[MemoryPlan]:
    """The smallest ways to run a plan for the price."""
    fusion, limits = fusions.smallest(allowed), dict[int, int]()
    found: list[MemoryPlan] = []
    while fusion is not None and fusion.price <= allowed and len(found) < _TRIALS:
        found.append(_fused(plan, fusion))
        bound = found[0].arena.lower_bound
        if found[-1].arena.size <= bound:
            break
        # Values do not pack: layers whose scratch stands above the bound get less room.
        limits |= _less_room(fusion, found[-1].arena, bound)
        fusion = fusions.cheapest(max(fusion.peaks), limits)
    return found


def _less_room(fusion: Fusion, arena: ArenaPlan, bound: int) -> dict[int, int]:
    """By layer, the bytes with which its op would keep below the bound, its values being where they are."""
    limits: dict[int, int] = {}
    for op, (first, end), peak, place in zip(
        machine_ops(fusion.machine), fusion.spans, fusion.peaks, arena.scratch, strict=True
    ):
        above = 0 if place is None else place + op.scratch_bytes - bound
        if above > 0:
            limits |= dict.fromkeys(range(first, end), peak - above)
    return limits


def _cheapest(plan: MemoryPlan, fusions: Fusions, allowed: int) -> list[MemoryPlan]:
    """The cheapest way to run a plan that fits, if one is found."""
    room = allowed
    for k in range(2 * _TRIALS):
        fusion = fusions.cheapest(room)
        if fusion is None:
            return []
        found = _fused(plan, fusion)
        if found.arena.size <= allowed:
            return [found]
        room -= max(found.arena.size - allowed, (k + 2) * allowed // 128)  # values do not pack: further each time
    return []


def _fused(plan: MemoryPlan, fusion: Fusion) -> MemoryPlan:
    names = [op.loc.item for op in fusion.machine.ops if isinstance(op, RowChain)]
    texts = [plan.about] * bool(plan.about) + [f"by rows: {'; '.join(names)}"] * bool(names)
    return planned(plan.net, fusion.machine, ", ".join(texts) or "small tiles")


def too_small(allowed: int, smallest: ArenaPlan) -> DoesNotFitError:
    """The error for an arena that no plan brings below the limit."""
    io = "with" if smallest.ports else "without"
    what = (
        f"{allowed:,} bytes are too few: the smallest arena of this net, {io} input and output, takes {smallest.size:,}"
    )
    return DoesNotFitError("--max-ram", what, "allow that much, or make the largest layer smaller")


def planned(net: LoweredNet, machine: Model, about: str) -> MemoryPlan:
    """The plan that a machine model of the net has."""
    ops = machine_ops(machine)
    return MemoryPlan(
        net, machine, plan_arena(machine, ops, ports=net.ports), about, sum(instructions(op) for op in ops)
    )


def _roomy(plan: MemoryPlan, allowed: int = 0) -> MemoryPlan:
    """With larger tiles and whole channels where the arena has room for them anyway while the layer runs: all the bytes
    that are free then, if another order of the values makes one gap of them, or the largest gap that there is.
    ``allowed``: the arena may become so large."""
    size = max(plan.arena.size, allowed)
    for free in (sum, max):
        ops = []
        for i, op in enumerate(machine_ops(plan.machine)):
            room = free(_gaps(plan.arena, i, size))
            ops.append(op.with_room(room) if isinstance(op, QConv | QDepthwise | RowChain) else op)
        wide = planned(plan.net, replace(plan.machine, ops=tuple(ops)), plan.about)
        if wide.arena.size <= size:
            return wide if wide.price < plan.price else plan
    return plan


def _gaps(arena: ArenaPlan, i: int, size: int) -> list[int]:
    """Sizes of the stretches between the values that live while op i runs, in so many bytes."""
    at, gaps = 0, []
    for start, end in sorted((s.offset, s.offset + s.size) for s in arena.slots if s.first <= i <= s.last):
        gaps.append(max(start - at, 0))
        at = max(at, end)
    return [*gaps, size - at]


def _small(plan: MemoryPlan) -> MemoryPlan:
    return planned(plan.net, _changed(plan.machine, small_tile), f"{plan.about}, small tiles")


def _changed(machine: Model, change: Callable[[MachineOp], MachineOp]) -> Model:
    return replace(machine, ops=tuple(change(op) for op in machine_ops(machine)))


def _whole(op: MachineOp) -> MachineOp:
    return replace(op, whole=True) if isinstance(op, QDepthwise) and not op.in_planar else op


__all__ = ["MOST_PRICE", "LoweredNet", "MemoryPlan", "choose_memory", "planned", "too_small"]
