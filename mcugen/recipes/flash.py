"""Flash for speed: which convolutions take a larger table and fewer instructions, within a limit of flash.

A 3 x 3 convolution by minimal filtering (``QWinograd``) has 16 factors of two bytes where the plain one has 9 weights
of one byte, and 0.54 (64 channels) to 0.76 (16) of the instructions. The layers that save most for a byte come first.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from mcugen.core.op import MachineOp
from mcugen.emit.calls import calls_of
from mcugen.emit.kernels import kernels
from mcugen.emit.parts import machine_ops
from mcugen.errors import DoesNotFitError
from mcugen.nn.estimate import instructions
from mcugen.nn.ops.qconv import QConv
from mcugen.nn.ops.qwinograd import QWinograd, can_filter, filtered
from mcugen.recipes.memory import MemoryPlan, planned
from mcugen.recipes.prepared import ExportOptions
from mcugen.target.board import load_board

#: Code of the model itself, each call with its descriptor.
_CALL = 160


@dataclass(frozen=True, slots=True)
class _Flash:
    """What it costs to read a table: cycles a byte, and bytes up to which a data cache keeps it for the next pass."""

    cycles: float = 0.0
    cache: int = 0

    @classmethod
    def of(cls, name: str | None) -> _Flash:
        """Of a board; without one nothing is known of it, and instructions alone decide."""
        if name in (None, "none"):
            return cls()
        board = load_board(name)
        return cls(board.home.fill / board.core.cache_line, board.core.data_cache)


@dataclass(frozen=True, slots=True)
class _Way:
    """A layer that may take the other kernel: its place among the ops, cycles that it saves, bytes that it costs."""

    at: int
    op: QConv
    saved: float
    bytes: int


def spend_flash(plan: MemoryPlan, options: ExportOptions) -> MemoryPlan:
    """The plan with layers by minimal filtering, as many as pay and ``max_flash`` allows; the same without that option.

    The arena stays within ``max_ram``, or grows where a layer needs it; under ``--optimize ram`` it stays as it is.
    DoesNotFitError where the net takes more flash as it is.
    """
    if options.max_flash is None:
        return plan
    least = flash_bytes(machine_ops(plan.machine))
    if least > options.max_flash:
        what = f"{options.max_flash:,} bytes are too few: this net takes about {least:,}"
        raise DoesNotFitError("--max-flash", what, "allow that much, or leave the option out")
    flash = _Flash.of(options.board)
    ways = [w for at, op in enumerate(machine_ops(plan.machine)) if (w := _way(at, op, flash)) is not None]
    best, left = plan, options.max_flash - least - kernels()[QWinograd.kernel[0]].size
    for way in sorted(ways, key=lambda w: w.saved / w.bytes, reverse=True):
        found = _taken(best, way, options, flash) if way.bytes <= left else None
        if found is not None:
            best, left = found, left - way.bytes
    if best is plan:
        return plan
    taken = sum(isinstance(op, QWinograd) for op in best.machine.ops)
    fewer = 100 * (1 - best.price / plan.price)
    more = flash_bytes(machine_ops(best.machine)) - least
    layers = f"{taken} convolution{'' if taken == 1 else 's'} by minimal filtering"
    text = f"{layers}: about {more:,} bytes more, {fewer:.0f} % fewer instructions"
    return replace(best, about=plan.about, fastest=plan.fastest, spent=text)


def _way(at: int, op: MachineOp, flash: _Flash) -> _Way | None:
    """If the other kernel can pay at all: in one pass, whatever memory that takes."""
    if not isinstance(op, QConv) or not can_filter(op):
        return None
    once = filtered(op, _most_rows(op))
    saved = _cycles(op, flash) - _cycles(once, flash)
    return _Way(at, op, saved, _table(once) - _table(op)) if saved > 0 else None


def _taken(plan: MemoryPlan, way: _Way, options: ExportOptions, flash: _Flash) -> MemoryPlan | None:
    """The plan with this layer; None if it does not fit, or does not pay with as many rows a pass as fit.

    Under a limit the fewest cycles count, else the smallest arena: more rows are worth no memory of their own.
    """
    allowed = plan.arena.size if options.optimize == "ram" else options.max_ram
    found = []
    for rows in {min(1 << k, _most_rows(way.op)) for k in range(16)}:
        op = filtered(way.op, rows)
        cycles, with_it = _cycles(op, flash), _with(plan, way.at, op)
        if cycles < _cycles(way.op, flash) and (allowed is None or with_it.arena.size <= allowed):
            keys = (with_it.arena.size, cycles)
            found.append((keys if allowed is None else keys[::-1], rows, with_it))
    return min(found, key=lambda f: f[:2])[2] if found else None


def _most_rows(op: QConv) -> int:
    return -(-op.out_shape[1] // 2)


def _with(plan: MemoryPlan, at: int, op: QWinograd) -> MemoryPlan:
    ops = machine_ops(plan.machine)
    return planned(plan.net, replace(plan.machine, ops=(*ops[:at], op, *ops[at + 1 :])), plan.about)


def _table(op: QConv) -> int:
    return op.stream().words.nbytes


def _cycles(op: QConv, flash: _Flash) -> float:
    """Of a run of the layer, roughly: instructions, and waiting for its table."""
    size = _table(op)
    pixels = op.out_shape[1] * op.out_shape[2]
    passes = op.passes if isinstance(op, QWinograd) else -(-pixels // int(op.descriptor()["tile"]))
    return instructions(op) + flash.cycles * size * (passes if size > flash.cache else 1)


def flash_bytes(ops: tuple[MachineOp, ...]) -> int:
    """Flash of a net, estimated: tables, the functions of the runtime that it calls, its own calls and descriptors."""
    prefixes = (f"_{i}" for i in range(len(ops)))
    tables = sum(item.size for op, prefix in zip(ops, prefixes, strict=True) for item in op.items(prefix))
    sizes: dict[str, int] = {}
    for kernel in (kernels().get(name) for found in calls_of("_", ops, inside=True) for name in found):
        if kernel is not None:
            sizes |= {**kernel.helpers, kernel.symbol: kernel.size - sum(kernel.helpers.values())}
    return tables + sum(sizes.values()) + _CALL * len(ops)
