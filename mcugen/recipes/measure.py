"""What --explain measures of the candidates for a tree model: each built for its board, and run on the emulated one."""

from __future__ import annotations

from functools import partial

import numpy as np

from mcugen.core.passes import evaluate, run_passes
from mcugen.core.types import Array, Model
from mcugen.emit.model import group_of, model_files, runtime_files
from mcugen.emit.parts import ports_of
from mcugen.emit.selftest import Vectors
from mcugen.emulate.cycles import estimate
from mcugen.emulate.image import BoardModel, build_image
from mcugen.emulate.isa import Decoder
from mcugen.emulate.machine import EmulatedBoard
from mcugen.emulate.toolchain import CrossCompiler, find_cross_compiler
from mcugen.errors import McugenError
from mcugen.recipes.prepared import ExportOptions
from mcugen.target.board import Board, load_board
from mcugen.target.placement import place_together
from mcugen.trees.choose import Candidate, Choices, forced
from mcugen.trees.lower import TREE_PASSES, TreeOptions

_ROWS = 40
_RUNTIME = {"flash": 600}


def measured_lines(
    model: Model, passes: TreeOptions, options: ExportOptions, choices: Choices, x: Array
) -> tuple[str, ...]:
    """A line for each candidate that is possible, or one that says why nothing was measured.

    ``model``: of source ops; ``x`` (N, F): rows of the input type, of which a few are run.
    """
    if options.board in (None, "none"):
        return ("not measured: no board",)
    try:
        board, compiler = load_board(options.board), find_cross_compiler()
        rows = x[np.unique(np.linspace(0, len(x) - 1, _ROWS).astype(np.int64))]
        lines = [f"measured with {compiler.version}, -O2, on {len(rows)} test vectors, which take rare ways:"]
        for candidate in choices.candidates:
            if candidate.cost is not None:
                lines.append(_measured(model, passes, options, candidate, rows, board, compiler))
    except McugenError as e:
        return (f"not measured: {e.where}: {e.what}",)
    return tuple(lines)


def _measured(
    model: Model,
    passes: TreeOptions,
    options: ExportOptions,
    candidate: Candidate,
    x: Array,
    board: Board,
    compiler: CrossCompiler,
) -> str:
    """The line of one candidate; one that cannot be built, as it does not fit the board, leaves the others alone."""
    try:
        return _measure(model, passes, options, candidate, x, board, compiler)
    except McugenError as e:
        return f"{candidate.name:17}  not measured: {e.where}: {e.what}"


def _measure(
    model: Model,
    passes: TreeOptions,
    options: ExportOptions,
    candidate: Candidate,
    x: Array,
    board: Board,
    compiler: CrossCompiler,
) -> str:
    """Flash, mean instructions and the range of cycles of one candidate."""
    ways = f"{candidate.ranking}+{candidate.summing}"
    choose = partial(forced, ways=ways, limit=options.max_error, goal=options.optimize)
    machine = run_passes(model, TREE_PASSES, TreeOptions(passes.spec, passes.output, passes.leaf, choose))
    spend = options.optimize != "ram"
    (plan,) = place_together([group_of(machine, None, (), spend, spend)], board, {}, _RUNTIME)
    y = evaluate(machine, {machine.inputs[0]: x[:1]})[machine.outputs[0]]
    files = model_files(machine, plan, passes.output, Vectors(x[:1], y), "measured") | runtime_files(plan)
    content = {path: text.encode() for path, text in files.items()}
    regions = {a.item.symbol: a.region for a in plan.assignments}
    built = BoardModel(machine.name, content, *ports_of(machine), board.name, regions)
    image = build_image(built, board, compiler, "-O2")
    emulated = EmulatedBoard(image, board)
    _, counts = emulated.run(built, x)
    executions = [e for e in emulated.record(built, x) if e is not None]
    cycles = estimate(executions, Decoder(tuple((s.address, s.data) for s in image.elf.segments)), board)
    flash = image.model_bytes[board.home.name]
    return (
        f"{candidate.name:17}  {flash:8,} bytes  {np.mean(counts):10,.0f} instructions  "
        f"{cycles.low:9,.0f} to {cycles.high:,.0f} cycles (estimated)"
    )
