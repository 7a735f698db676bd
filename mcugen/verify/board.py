"""The generated C on an emulated board: which boards there are, one build and run, and a line about what it took."""

from __future__ import annotations

import re

from mcugen.core.types import Array
from mcugen.emulate.batches import proof_rows
from mcugen.emulate.image import BoardModel, Image, build_image
from mcugen.emulate.run import BoardRun, require_placed, run_on_board
from mcugen.emulate.toolchain import CrossCompiler, find_cross_compiler
from mcugen.errors import DiffersError, InputError
from mcugen.target.board import Board, did_you_mean, list_boards

#: The machine that mcugen runs on.
HOST = "host"
#: Where an export without a board is profiled.
DEFAULT_TARGET = "stm32h743"
_LEVELS = ("-O0", "-O1", "-O2", "-O3", "-Os", "-Og")


def target_board(target: str) -> Board:
    """The board of ``--target``; InputError if there is none of this name that an emulator runs."""
    boards = {b.name: b for b in list_boards() if b.unicorn is not None or b.qemu is not None}
    if target not in boards:
        raise InputError("--target", f"there is no target {target!r}", did_you_mean(target, [HOST, *boards]))
    return boards[target]


def counting_board(target: str) -> Board:
    """The board of ``--target`` for a profile; InputError if its emulator does not count."""
    counting = [b.name for b in list_boards() if b.unicorn is not None]
    if target not in counting:
        what = f"{target!r} cannot be profiled: it is no board whose emulator counts instructions"
        raise InputError("--target", what, did_you_mean(target, counting))
    return target_board(target)


def build_for(model: BoardModel, board: Board, compiler: str | None, opt: str) -> tuple[Image, str]:
    """The image of a model for a board, everything where the plan has it, and the compiler with its level as text."""
    _require_level(opt)
    cross = find_cross_compiler(compiler)
    image = build_image(model, board, cross, opt, rows=proof_rows(model))
    require_placed(image, model, board)
    return image, _compiler_text(cross, opt)


def run_target(
    model: BoardModel, x: Array, target: str, compiler: str | None, opt: str, count: bool = True
) -> tuple[BoardRun, str]:
    """Rows ``x`` (N, inputs) on a target, and a line about the build. DiffersError if the self-test fails."""
    board = target_board(target)
    _require_level(opt)
    cross = find_cross_compiler(compiler)
    run = run_on_board(model, x, board, cross, opt, count=count)
    if run.selftest:
        raise DiffersError(f"{model.name}_selftest on {target}", f"vector {run.selftest - 1} fails")
    return run, _line(run, cross, opt)


def _line(run: BoardRun, cross: CrossCompiler, opt: str) -> str:
    """Compiler, bytes by memory, stack and instructions."""
    memory = ", ".join(f"{region} {size:,}" for region, size in run.model_bytes.items() if size)
    text = f"{_compiler_text(cross, opt)}: bytes {memory}; stack {run.stack_bytes:,}"
    if run.instructions is not None and len(run.instructions):
        text += f"; instructions mean {run.instructions.mean():,.0f}, max {run.instructions.max():,}"
    return text


def _compiler_text(cross: CrossCompiler, opt: str) -> str:
    version = re.search(r"\d+\.\d+(\.\d+)?", cross.version.rpartition(")")[2] or cross.version)
    return f"{cross.kind} {version.group() if version else ''} {opt}"


def _require_level(opt: str) -> None:
    if opt not in _LEVELS:
        raise InputError("--opt", f"{opt!r} is no optimization level", f"known: {', '.join(_LEVELS)}")
