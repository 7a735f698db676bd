"""What a row of a batch costs on a board, where NAME_run_batch takes many rows through the trees together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mcugen.core.types import Array
from mcugen.emulate.batches import BatchBoard
from mcugen.emulate.cycles import estimate
from mcugen.emulate.image import BoardModel, Image
from mcugen.emulate.isa import Decoder
from mcugen.errors import InternalError
from mcugen.target.board import Board

#: Calls that are recorded block by block.
_CALLS = 4


@dataclass(frozen=True, slots=True)
class BatchProfile:
    """Means over calls of ``rows`` rows, for each row; ``low`` and ``high``: cycles, estimated; ``stack``: bytes."""

    rows: int
    instructions: float
    low: float
    high: float
    stack: int


def measure_batches(model: BoardModel, board: Board, image: Image, x: Array, block: int) -> BatchProfile:
    """Calls of NAME_run_batch with ``block`` rows of ``x`` (N, inputs), or all of them where they are fewer."""
    rows = min(block, image.rows, len(x))
    machine = BatchBoard(image, board)
    starts = range(0, len(x) - rows + 1, rows)[:_CALLS]
    executions = [e for e in (machine.record_batch(model, x[a : a + rows]) for a in starts) if e is not None]
    if not executions:
        raise InternalError("profile", "the recording changes what the program computes")
    decoder = Decoder(tuple((s.address, s.data) for s in machine.image.elf.segments))
    cycles = estimate(executions, decoder, board)
    total = sum(machine.instructions(e.blocks) for e in executions)
    return BatchProfile(
        rows, total / len(executions) / rows, cycles.low / rows, cycles.high / rows, machine.stack_bytes()
    )


def batch_json(b: BatchProfile) -> dict[str, Any]:
    """For machines; figures of a row."""
    return {
        "rows": b.rows,
        "instructions": b.instructions,
        "cycles": {"low": round(b.low), "high": round(b.high)},
        "stack_bytes": b.stack,
    }


def batch_line(b: BatchProfile) -> str:
    """For people."""
    cycles = f"{b.low:,.0f} to {b.high:,.0f} cycles a row"
    return f"batches       of {b.rows} rows: {b.instructions:,.0f} instructions, {cycles}; stack {b.stack:,}"
