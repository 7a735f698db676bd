"""Which layers of a net are computed together by rows, so that its values fit a given memory at the least price.

Layers are taken in runs of neighbours; a run has a peak of memory and a price in estimated instructions, whatever the
other runs are. So the cheapest cover of all layers by runs whose peaks fit is found by going through the net once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from mcugen.core.op import MachineOp
from mcugen.core.types import Model
from mcugen.emit.parts import machine_ops
from mcugen.nn.estimate import instructions
from mcugen.nn.fuse import can_take_part, chain_of, fused, images_of
from mcugen.nn.ops.qconv import QConv
from mcugen.nn.ops.row_chain import RowChain
from mcugen.nn.ops.strip_layers import layer_rows
from mcugen.target.arena import ALIGN

#: Layers of a run, at most. Longer ones gain little: every layer adds rows that wait.
_LONGEST = 12
#: Pixels that a call computes at least, and whether as few as possible are packed at a time.
_VARIANTS = ((1, True), (1, False), (24, False), (48, False))


def small_tile(op: MachineOp) -> MachineOp:
    """A convolution with the smallest tile that its kernel takes: that of a layer of one pixel."""
    if not isinstance(op, QConv):
        return op
    one = replace(op, out_shape=(op.out_shape[0], 1, 1), tile=0)
    return replace(op, tile=int(one.descriptor()["tile"]))


@dataclass(frozen=True, slots=True)
class _Run:
    """The layers ``first`` to ``end`` in one of several ways: the ops, bytes that live meanwhile, instructions."""

    first: int
    end: int
    op: MachineOp
    peak: int
    price: float


@dataclass(frozen=True, slots=True)
class Fusion:
    """A machine model some of whose layers are computed together. ``price``: estimated instructions; ``spans``: by op
    the layers, first and end; ``peaks``: by op the bytes that live meanwhile."""

    machine: Model
    price: float
    spans: tuple[tuple[int, int], ...]
    peaks: tuple[int, ...]

    @property
    def chains(self) -> tuple[RowChain, ...]:
        """The layers that are."""
        return tuple(op for op in self.machine.ops if isinstance(op, RowChain))


class Fusions:
    """The ways to run a machine model. What is computed for one limit of memory serves the next ones, too.

    ``ports``: inputs and outputs of the model live in the arena, as in ``plan_arena``.
    """

    def __init__(self, machine: Model, *, ports: bool = False) -> None:
        self._machine = machine
        self._ops = machine_ops(machine)
        self._images = images_of(self._ops)
        self._fit = [can_take_part(op, self._images) for op in self._ops]
        self._born = {v: i for i, op in enumerate(self._ops) for v in op.outputs}
        self._last = {v: i for i, op in enumerate(self._ops) for v in op.inputs}
        if ports:
            self._born |= dict.fromkeys(machine.inputs, -1)
            self._last |= dict.fromkeys(machine.outputs, len(self._ops))
        self._outside = set[str]() if ports else {*machine.inputs, *machine.outputs}
        self._singles = [self._single(i) for i in range(len(self._ops))]
        self._runs: dict[tuple[int, int], tuple[_Run, ...]] = {}

    @property
    def peak(self) -> int:
        """The bytes that the layers need one by one."""
        return max(run[0].peak for run in self._singles)

    @property
    def price(self) -> float:
        """The estimated instructions of the layers one by one."""
        return sum(run[0].price for run in self._singles)

    def cheapest(self, room: int, limits: Mapping[int, int] | None = None) -> Fusion | None:
        """The cheapest way of which no step needs more than ``room`` bytes; None if there is none. ``limits``: layers
        that have less."""
        n = len(self._ops)
        rooms = [min(room, (limits or {}).get(i, room)) for i in range(n)]
        best: list[tuple[float, tuple[_Run, ...]] | None] = [(0.0, ())] + [None] * n
        for i in range(n):
            so_far = best[i]
            if so_far is None:
                continue
            for run in self._from(i, rooms):
                if run.peak > min(rooms[run.first : run.end]):
                    continue
                there, price = best[run.end], so_far[0] + run.price
                if there is None or price < there[0]:
                    best[run.end] = (price, (*so_far[1], run))
        found = best[n]
        if found is None:
            return None
        price, runs = found
        spans = tuple((r.first, r.end) for r in runs)
        machine = fused(self._machine, {(r.first, r.end): r.op for r in runs})
        return Fusion(machine, price, spans, tuple(r.peak for r in runs))

    def smallest(self, allowed: float) -> Fusion | None:
        """The one with the least peak whose price is at most ``allowed``."""
        low, high, best = 0, self.peak, self.cheapest(self.peak)
        if best is None or best.price > allowed:
            return None
        while high - low > max(ALIGN, high // 256):
            middle = (low + high) // 2
            found = self.cheapest(middle)
            if found is None or found.price > allowed:
                low = middle
            else:
                high, best = middle, found
        return best

    def _from(self, i: int, rooms: list[int]) -> list[_Run]:
        """The runs that begin with layer i and may fit."""
        found = list(self._singles[i])
        end, room = i + 1, rooms[i]
        needs_it = found[0].peak > room
        while end < min(len(self._ops), i + _LONGEST) and self._fit[end - 1] and self._fit[end]:
            room = min(room, rooms[end])
            needs_it = needs_it or self._singles[end][0].peak > rooms[end]
            end += 1
            # Layers that fit one by one are cheaper so.
            if needs_it and self._least(i, end) <= room:
                found += self._chains(i, end)
        return found

    def _single(self, i: int) -> tuple[_Run, ...]:
        op = self._ops[i]
        ways = [op]
        if isinstance(op, QConv):
            ways.append(small_tile(op))
        return tuple(_Run(i, i + 1, way, self._peak(i, i + 1, way), instructions(way)) for way in ways)

    def _chains(self, first: int, end: int) -> tuple[_Run, ...]:
        if (first, end) not in self._runs:
            made, seen = [], set[tuple[object, bool]]()
            for pixels, small in _VARIANTS:
                layers = self._ops[first:end]
                ops = (*self._ops[:first], *(map(small_tile, layers) if small else layers), *self._ops[end:])
                chain = chain_of(self._machine, ops, self._images, (first, end), pixels)
                if chain is None:
                    break
                if (chain.strip_layers, small) not in seen:  # wide rows hold as many pixels as any variant asks for
                    seen.add((chain.strip_layers, small))
                    chain = chain.with_room(chain.scratch_bytes)  # the largest scratch serves all layers
                    made.append(_Run(first, end, chain, self._peak(first, end, chain), instructions(chain)))
            self._runs[first, end] = tuple(made)
        return self._runs[first, end]

    def _least(self, first: int, end: int) -> int:
        """Bytes that a run cannot do without: what lives on, and the larger of its first input and its result."""
        ops = self._ops[first:end]
        through, dying = self._around(first, end)
        windows = 0
        for op in ops[1:]:
            rows = layer_rows(op)
            for v in op.inputs:
                if rows is not None and self._born.get(v, -1) >= first:
                    image = self._images[v]
                    windows += min(rows.geometry()[0], image.shape[1]) * image.shape[0] * image.shape[2]
        return through + max([0, *dying, *(self._size(v) for v in ops[-1].outputs)]) + windows

    def _around(self, first: int, end: int) -> tuple[int, list[int]]:
        """Bytes of the values that live before and after the layers, and sizes of those that they read last."""
        through, dying = 0, []
        for v, born in self._born.items():
            last = self._last.get(v, born)
            if v in self._outside or born >= first or last < first:
                continue
            if last >= end:
                through += self._size(v)
            else:
                dying.append(self._size(v))
        return through, dying

    def _peak(self, first: int, end: int, op: MachineOp) -> int:
        """Bytes that live while an op runs in the place of the layers, as the arena counts them."""
        through, dying = self._around(first, end)
        out = sum(self._size(v) for v in op.outputs)
        shared = 0
        for k in {*op.in_place, *((0,) if op.lag is not None else ())}:
            v = op.inputs[k]
            if v in self._outside or self._last[v] >= end or not out:
                continue
            size = self._size(v)
            if k in op.in_place and out <= size:
                shared = max(shared, out)
            elif k == 0 and op.lag is not None:
                shared = max(shared, size + out - max(_rounded(op.lag) + size, out))
        return through + sum(dying) + out - shared + _rounded(op.scratch_bytes)

    def _size(self, value: str) -> int:
        kind = self._machine.types[value]
        return 0 if value in self._outside else _rounded(kind.count * kind.dtype.size)


def _rounded(size: int) -> int:
    return -(-size // ALIGN) * ALIGN
