"""A model on a board: build the image, run rows through it, and say what came out and what it took."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from mcugen.core.types import Array
from mcugen.emit.kernels import ELSEWHERE, kernels
from mcugen.emulate.batches import BatchBoard, proof_rows
from mcugen.emulate.elf import Elf, region_at
from mcugen.emulate.image import BoardModel, Image, build_image
from mcugen.emulate.machine import EmulatedBoard
from mcugen.emulate.qemu import run_under_qemu
from mcugen.emulate.toolchain import CrossCompiler
from mcugen.errors import DiffersError, InputError
from mcugen.target.board import Board


@dataclass(frozen=True, slots=True, eq=False)
class BoardRun:
    """``y`` (N, outputs) with ``status`` (N,), zeros where no result is due; ``instructions`` (N,) from entry to return
    of NAME_run or NAME_push, None where the emulator does not count; ``stack_bytes`` used below the caller;
    ``model_bytes``: what the model adds to each memory, stack and self-test apart; ``selftest``: 0, or 1 + the first
    vector that fails; ``batches``: ``y`` again by NAME_run_batch, of a model with batches."""

    y: Array
    status: Array
    instructions: Array | None
    stack_bytes: int
    model_bytes: Mapping[str, int]
    selftest: int
    elf: Elf
    batches: Array | None = None


def run_on_board(
    model: BoardModel, x: Array, board: Board, compiler: CrossCompiler, opt: str = "-O2", *, count: bool = True
) -> BoardRun:
    """Rows ``x`` (N, inputs) on the board's emulator, built with ``compiler`` at ``opt``.

    DiffersError if the program does what the board does not allow, or if the linker put an object into another memory
    than the plan; DoesNotFitError, InputError and InternalError as in ``build_image``.
    """
    require_emulator(board)
    image = build_image(model, board, compiler, opt, rows=proof_rows(model))
    require_placed(image, model, board)
    return run_image(image, model, x, board, count=count)


def run_image(image: Image, model: BoardModel, x: Array, board: Board, *, count: bool = True) -> BoardRun:
    """As ``run_on_board``, with an image that is built already. With ``count`` a net runs outside of its arena
    too: DiffersError if it makes a difference where inputs and outputs lie."""
    if board.qemu is not None:
        q = run_under_qemu(image, model, board, x)
        return BoardRun(q.y, q.status, None, q.stack, image.model_bytes, q.selftest, image.elf)
    machine = EmulatedBoard(image, board)
    calls = machine.calls(model, x, count)
    if model.placed and count:
        apart = machine.calls(model, x, count=False, placed=False)
        if apart.y.tobytes() != calls.y.tobytes():
            raise DiffersError(f"emulated {board.name}", "gives another result with input and output in the arena")
    stack = machine.stack_bytes()
    batches = None if image.batch is None else BatchBoard(image, board).batches(model, x)
    counts: Array | None = calls.instructions if count else None
    failed = machine.selftest(model)
    return BoardRun(calls.y, calls.status, counts, stack, image.model_bytes, failed, image.elf, batches)


def require_emulator(board: Board) -> None:
    """InputError if the board file names no emulator."""
    if board.unicorn is None and board.qemu is None:
        raise InputError(f"--target {board.name}", "its board.toml names no emulator")


def require_placed(image: Image, model: BoardModel, board: Board) -> None:
    """DiffersError if an object is not where the plan has it: the fragment was left out, or not read.

    Objects that the compiler has dissolved are nowhere, and fine. Only where the model was placed for this board.
    """
    if model.board != board.name:
        return
    symbols = image.elf.symbols
    for symbol, region in model.regions.items():
        names = [s for s in (symbol, f"{symbol}_copy") if s in symbols]
        names += [s for s in symbols if s.startswith((f"{symbol}.", f"{symbol}_copy."))]  # clones of the compiler
        for name in names:
            found = region_at(board, symbols[name].address)
            place = found.name if found is not None else "no memory"
            if place != region:
                hint = ELSEWHERE if symbol in kernels() else "is mcugen.ld part of the link?"
                raise DiffersError(name, f"stands in {place}, and the plan has it in {region}", hint)
