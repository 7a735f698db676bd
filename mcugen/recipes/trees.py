"""Tree ensembles: signals bound, lowered to ranks and tables, vectors at every threshold, both references."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mcugen.core.passes import run_passes
from mcugen.core.types import DType, Model
from mcugen.emit.selftest import Vectors
from mcugen.errors import InputError, UnsupportedError
from mcugen.frontends.calibrate import Calibration, bind_signals
from mcugen.frontends.spec import load_spec
from mcugen.recipes.measure import measured_lines
from mcugen.recipes.prepared import ExportOptions, Prepared, dumper
from mcugen.report.summary import bound_text, distance_text
from mcugen.target.board import load_board
from mcugen.trees.choose import Choices, choose, explain_lines, forced, what_keeps
from mcugen.trees.costs import Memory
from mcugen.trees.describe import describe
from mcugen.trees.lower import TREE_PASSES, TreeOptions, ensemble_of
from mcugen.trees.parts import Parts
from mcugen.trees.proof import Reference, distance, mean_of, reference, score_bound, walked
from mcugen.trees.signals import InputSpec
from mcugen.trees.stored import reference_bytes
from mcugen.trees.vectors import Coverage, make_vectors, select_golden

_GOLDEN_VECTORS = 256
#: Rows times trees or features, whichever is more, that the references are computed for.
_VECTOR_BUDGET = 2_000_000
_LINEAR = "trees with linear leaves: one way only, tables and doubles"


def prepare_trees(model: Model, options: ExportOptions, progress: Callable[[str], None]) -> Prepared:
    """A tree model, lowered and proven against itself."""
    if options.float32:
        raise UnsupportedError("--float32", "is for nets; trees take float32 inputs anyway", "remove it")
    if options.stream:
        raise UnsupportedError("--stream", "is for nets with LSTM or GRU layers; trees remember nothing", "remove it")
    if options.max_ram is not None:
        raise UnsupportedError("--max-ram", "is for nets; a tree model has no arena", "remove it")
    if options.max_flash is not None:
        raise UnsupportedError("--max-flash", "is for nets", "choose between code and tables with --optimize")
    if options.io is not None:
        raise UnsupportedError("--io", "is for nets; a tree model has no arena", "remove it")
    if options.int16:
        raise UnsupportedError("--int16", "is for layers of nets; --input-dtype int16 is for trees", "remove it")
    spec_file = load_spec(options.spec) if options.spec else None
    calibration = bind_signals(model, ensemble_of(model).forest, spec_file, options.input_dtype, options.calib)
    progress("lowering")
    ways = Ways(options)
    leaf, memory = DType.of(options.leaf), _memory(options)
    choices = TreeOptions(calibration.spec, options.output, leaf, ways.decide, memory)
    machine = run_passes(model, TREE_PASSES, choices, dumper(options.dump_ir))
    ways.require_bound(machine)
    progress("computing references")
    ref, coverage, golden = _vectors(model, machine, calibration)
    details = ways.lines()
    if options.explain and ways.chosen is not None:
        details += measured_lines(model, choices, options, ways.chosen, ref.x)
    return Prepared(
        machine=machine,
        arena=None,
        x=ref.x,
        y=ref.y,
        trace=ref.trace,
        golden=golden,
        stored=reference_bytes(model, machine, calibration.spec),
        proof=ref,
        coverage=coverage,
        verification=_verification(ref, coverage),
        recorded=_recorded(options, calibration),
        spend_ram=options.optimize != "ram",
        move_kernels=options.optimize != "ram",
        title=describe(model),
        facts=_facts(model, machine, calibration, ref, coverage),
        details=details,
    )


class Ways:
    """Decides how the trees of one export are ranked and summed, and remembers what was compared."""

    def __init__(self, options: ExportOptions) -> None:
        self._options = options
        self.chosen: Choices | None = None
        self._parts: Parts | None = None

    def decide(self, parts: Parts) -> Choices:
        """What the goal of the options asks for, or what they name."""
        o, self._parts = self._options, parts
        if o.ways:
            self.chosen = forced(parts, o.ways, o.max_error)
        else:
            self.chosen = choose(parts, o.optimize, _memory(o), o.max_error)
        return self.chosen

    def require_bound(self, machine: Model) -> None:
        """InputError where the bound of the score is above what the options allow."""
        limit, bound = self._options.max_error, score_bound(machine).error
        if limit is None or bound <= limit:
            return
        hint = "" if self._parts is None else f"use {what_keeps(self._parts, self._options.optimize, limit)}"
        raise InputError("--max-error", f"the proven bound is {bound:.6g}, above {limit:g}", hint)

    def lines(self) -> tuple[str, ...]:
        """What ``--explain`` prints: the candidates."""
        return (_LINEAR,) if self.chosen is None else explain_lines(self.chosen)


def prove_trees(model: Model, machine: Model, spec: InputSpec) -> Reference:
    """Both references of a tree model on vectors at all its thresholds: InternalError where they part."""
    rank, tables = walked(machine)
    width = max(tables.n_trees, machine.types[machine.inputs[0]].count)
    vectors = make_vectors(rank, tables, limit=int(np.clip(_VECTOR_BUDGET // width, 64, 4096)))
    return reference(model, machine, spec, vectors.x)


def _memory(options: ExportOptions) -> Memory:
    """What the estimates need of the board; nothing fast without one, or where nothing may move."""
    if options.board in (None, "none"):
        return Memory()
    board = load_board(options.board)
    core, home = board.core, board.home
    fast = [r for r in board.regions if not r.home and r.wait == 0 and options.optimize != "ram"]
    code, data = (sum(r.available for r in fast if role in r.auto) for role in ("code", "table"))
    return Memory(code, data, home.fill, core.cache_line, core.instruction_cache)


def _vectors(model: Model, machine: Model, calibration: Calibration) -> tuple[Reference, Coverage, Vectors]:
    """Vectors where faults hide, and the user's own rows; the references on them; the few that become golden."""
    rank, tables = walked(machine)
    width = max(tables.n_trees, machine.types[machine.inputs[0]].count)
    limit = int(np.clip(_VECTOR_BUDGET // width, 64, 4096))
    vectors = make_vectors(rank, tables, limit=limit)
    x = vectors.x if calibration.x is None else np.concatenate([vectors.x, calibration.x[:limit]])
    ref = reference(model, machine, calibration.spec, x)
    chosen = select_golden(x, _GOLDEN_VECTORS, rank, tables)
    return ref, vectors.coverage, Vectors(ref.x[chosen], ref.y[chosen])


def _facts(
    model: Model, machine: Model, calibration: Calibration, ref: Reference, coverage: Coverage
) -> tuple[tuple[str, str], ...]:
    count = mean_of(model)
    bound = bound_text(score_bound(machine), ref.worst / count, (ref.high - ref.low) / count)
    data = _on_data(model, machine, calibration)
    notes = (*calibration.lines, *machine.notes)
    return (
        ("bound", bound),
        ("coverage", coverage.text()),
        *((("data", data),) if data is not None else ()),
        *(("note", n) for n in notes),
    )


def _on_data(model: Model, machine: Model, calibration: Calibration) -> str | None:
    if calibration.x is None or calibration.real is None:
        return None
    d = distance(model, machine, calibration.x, calibration.real)
    return distance_text(d.rows, d.mean_error, d.max_error, d.span, d.flips)


def _verification(ref: Reference, coverage: Coverage) -> dict[str, Any]:
    return {
        "float_model": {"worst_error": ref.worst, "leaves": "equal", "vectors": len(ref.x)},
        "coverage": {
            "nodes": coverage.nodes,
            "both_ways": coverage.both_ways,
            "one_way": coverage.one_way,
            "never": coverage.never,
            "unreachable": coverage.unreachable,
        },
    }


def _recorded(options: ExportOptions, calibration: Calibration) -> dict[str, Any]:
    """The options that shaped the files, without paths."""
    return {
        "input_dtype": calibration.spec.dtype.label,
        "output": options.output,
        "leaf": options.leaf,
        "optimize": options.optimize,
        "place": dict(sorted(options.place.items())),
        "num_iteration": options.num_iteration,
        "start_iteration": options.start_iteration,
    }
