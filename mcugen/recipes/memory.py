"""Which plan of a net's memory an export takes: the fastest, the smallest, or the fastest that fits.

Plans differ in two things that cost instructions: whether depthwise layers read planes or interleaved channels (then a
layer is computed in place), and how many pixels are packed before the weights are read.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from mcugen.core.op import MachineOp
from mcugen.core.types import Model
from mcugen.emit.parts import machine_ops
from mcugen.errors import DoesNotFitError
from mcugen.nn.ops.qconv import QConv
from mcugen.nn.ops.qdepthwise import QDepthwise
from mcugen.nn.prune.prune import Pruned
from mcugen.nn.quantize.quantize import Quantized
from mcugen.recipes.prepared import ExportOptions
from mcugen.target.arena import ArenaPlan, plan_arena

#: Pixels of the smallest tile.
_SMALL_TILE = 3


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
    """The machine model that is exported, its arena, and how it was got in a few words."""

    net: LoweredNet
    machine: Model
    arena: ArenaPlan
    about: str


def choose_memory(options: ExportOptions, lower: Callable[[bool], LoweredNet]) -> MemoryPlan:
    """The plan that ``optimize`` and ``max_ram`` ask for; ``lower(interleaved)`` quantizes the net.

    DoesNotFitError, with the least that is possible, where no plan is small enough.
    """
    net = lower(False)
    planes = _roomy(_planned(net, net.pruned.machine, "fastest layout"))
    if options.optimize != "ram" and (options.max_ram is None or planes.arena.size <= options.max_ram):
        return planes
    net = lower(True)
    interleaved = _planned(net, _changed(net.pruned.machine, _whole), "depthwise layers in place")
    plans = [planes, _small(planes), interleaved, _small(interleaved)]
    best = min(plans, key=lambda p: p.arena.size)
    if options.max_ram is not None and best.arena.size > options.max_ram:
        raise too_small(options.max_ram, best.arena)
    if options.optimize == "ram" or options.max_ram is None:
        return best
    return next(p for p in plans if p.arena.size <= options.max_ram)


def too_small(allowed: int, smallest: ArenaPlan) -> DoesNotFitError:
    """The error for an arena that no plan brings below the limit."""
    io = "with" if smallest.ports else "without"
    what = (
        f"{allowed:,} bytes are too few: the smallest arena of this net, {io} input and output, takes {smallest.size:,}"
    )
    return DoesNotFitError("--max-ram", what, "allow that much, or make the largest layer smaller")


def _planned(net: LoweredNet, machine: Model, about: str) -> MemoryPlan:
    return MemoryPlan(net, machine, plan_arena(machine, machine_ops(machine), ports=net.ports), about)


def _roomy(plan: MemoryPlan) -> MemoryPlan:
    """With larger tiles and whole channels where the arena has room for them anyway while the layer runs: all the bytes
    that are free then, if another order of the values makes one gap of them, or the largest gap that there is."""
    for room in (_free, _largest_gap):
        ops = []
        for i, op in enumerate(machine_ops(plan.machine)):
            ops.append(op.with_room(room(plan.arena, i)) if isinstance(op, QConv | QDepthwise) else op)
        wide = _planned(plan.net, replace(plan.machine, ops=tuple(ops)), plan.about)
        if wide.arena.size <= plan.arena.size:
            return wide
    return plan


def _free(arena: ArenaPlan, i: int) -> int:
    """Bytes that no value needs while op i runs."""
    return sum(_gaps(arena, i))


def _largest_gap(arena: ArenaPlan, i: int) -> int:
    """Bytes in a row that no value needs while op i runs."""
    return max(_gaps(arena, i))


def _gaps(arena: ArenaPlan, i: int) -> list[int]:
    """Sizes of the stretches between the values that live while op i runs."""
    at, gaps = 0, []
    for start, size in sorted((s.offset, s.size) for s in arena.slots if s.first <= i <= s.last):
        gaps.append(max(start - at, 0))
        at = max(at, start + size)
    return [*gaps, arena.size - at]


def _small(plan: MemoryPlan) -> MemoryPlan:
    return _planned(plan.net, _changed(plan.machine, _small_tile), f"{plan.about}, small tiles")


def _changed(machine: Model, change: Callable[[MachineOp], MachineOp]) -> Model:
    return replace(machine, ops=tuple(change(op) for op in machine_ops(machine)))


def _whole(op: MachineOp) -> MachineOp:
    return replace(op, whole=True) if isinstance(op, QDepthwise) and not op.in_planar else op


def _small_tile(op: MachineOp) -> MachineOp:
    return replace(op, tile=_SMALL_TILE) if isinstance(op, QConv) else op


__all__ = ["LoweredNet", "MemoryPlan", "choose_memory", "too_small"]
