"""The verbs: each is a few calls of the stages, in the order of the pipe. The command line and Python call these."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np

from mcugen.core.dump import dump_text
from mcugen.core.passes import run_passes
from mcugen.core.types import DType, Model
from mcugen.ctext.idents import check_prefix, prefix_from
from mcugen.emit.artifact import Artifact
from mcugen.emit.files import WriteResult, write, write_note
from mcugen.emit.manifest import manifest_of
from mcugen.emit.model import ABI, Vectors, items_of, model_files, runtime_files
from mcugen.errors import InputError
from mcugen.exported import compare, profile, run, verify
from mcugen.frontends.calibrate import Calibration, bind_signals
from mcugen.frontends.load import load_source
from mcugen.frontends.spec import load_spec
from mcugen.report.summary import Report, distance_text
from mcugen.target.board import Board, load_board
from mcugen.target.placement import place
from mcugen.target.plan import Plan
from mcugen.trees.describe import describe, facts
from mcugen.trees.lower import TREE_PASSES, TreeOptions, ensemble_of
from mcugen.trees.proof import Reference, distance, reference, walked
from mcugen.trees.stored import reference_bytes
from mcugen.trees.vectors import Coverage, make_vectors, select_golden
from mcugen.verify.compiler import find_host_compiler
from mcugen.verify.export_check import check_host
from mcugen.verify.golden import Golden, GoldenTensor, golden_bytes
from mcugen.version import VERSION

#: Code of the runtime that a model may pull in, in bytes (an estimate; the emulated board measures).
_RUNTIME_BYTES = 600
_GOLDEN_VECTORS = 256
_VECTOR_BUDGET = 2_000_000
#: Calls of ``progress`` in one export.
EXPORT_STEPS = 7


@dataclass(frozen=True, slots=True)
class ExportOptions:
    """What ``mcugen export`` can be told; the defaults are those of the command line."""

    name: str | None = None
    board: str | None = "stm32h743"
    spec: Path | None = None
    input_dtype: str = "auto"
    output: str = "raw"
    calib: Path | None = None
    optimize: str = "balanced"
    leaf: str = "int16"
    max_error: float | None = None
    place: Mapping[str, str] = field(default_factory=dict)
    num_iteration: int | None = None
    start_iteration: int = 0
    dump_ir: Path | None = None
    verify: bool = True
    force: bool = False
    check: bool = False
    compiler: str | None = None


@dataclass(frozen=True, slots=True, eq=False)
class ExportResult:
    """What an export did: where, the models of both levels, and the facts that the command line prints."""

    out: Path
    source: Model
    model: Model
    plan: Plan
    coverage: Coverage
    reference: Reference
    report: Report
    written: WriteResult


def load(source: str | Path | Any, name: str | None = None, **selection: int) -> Model:
    """The source model (float meaning) of a file, a Booster or an estimator."""
    return load_source(source, name or _default_name(source), **selection)


def export(
    source: str | Path | Any,
    out: str | Path | None = None,
    options: ExportOptions | None = None,
    progress: Callable[[str], None] = lambda step: None,
    **changes: Any,
) -> ExportResult:
    """Translate, verify on this machine, and write the folder ``out`` (the model's name in the current one by
    default).

    ``source``: a path, a LightGBM Booster or wrapper, or a scikit-learn estimator. Options come as an ExportOptions
    or as its fields by name. Raises a McugenError; nothing is written then.
    """
    options = options or ExportOptions(**changes)
    if options.max_error is not None and not options.max_error >= 0:
        raise InputError("--max-error", f"{options.max_error:g} is no limit", "give a number from 0 on")
    board = load_board(options.board) if options.board not in (None, "none") else None
    compiler = find_host_compiler(options.compiler) if options.verify else None
    progress("reading the model")
    name = check_prefix(options.name) if options.name is not None else _default_name(source)
    model = load_source(source, name, options.num_iteration, options.start_iteration)
    spec_file = load_spec(options.spec) if options.spec else None
    calibration = bind_signals(model, ensemble_of(model).forest, spec_file, options.input_dtype, options.calib)
    tree_options = TreeOptions(calibration.spec, options.output, DType.of(options.leaf))
    progress("lowering")
    machine = run_passes(model, TREE_PASSES, tree_options, _watch(options.dump_ir))
    _require_bound(machine, options.max_error)
    progress("placing")
    plan = place(
        items_of(machine),
        board,
        options.place,
        _runtime_usage(plan_board=board is not None),
        spend_ram=options.optimize != "ram",
    )
    progress("computing references")
    ref, coverage, golden = _vectors(model, machine, calibration)
    progress("emitting")
    verification = _verification(ref, coverage)
    files = _files(machine, plan, options.output, golden, verified=True)
    if compiler is not None:
        progress("compiling and comparing on this machine")
        verification |= check_host(files, machine, ref.x, ref.y, ref.trace, compiler)
    else:
        files = _files(machine, plan, options.output, golden, verified=False)
        verification |= {"host": "not verified"}
    contents: dict[str, str | bytes] = {**files, **_golden_files(model, machine, calibration, golden)}
    manifest = manifest_of(machine, plan, _recorded(options, calibration), verification, VERSION)
    target = Path(out) if out is not None else Path(name)
    progress("writing")
    written = write(Artifact(contents, manifest), target, force=options.force, check=options.check)
    report = _report(model, machine, plan, ref, coverage, calibration, compiler is not None)
    return ExportResult(target, model, machine, plan, coverage, ref, report, written)


def _watch(folder: Path | None) -> Callable[[str, Model], None]:
    """Writes the model after each pass, if asked to: what was reached is there when a later pass fails."""
    steps = count()

    def dump(step: str, model: Model) -> None:
        if folder is not None:
            write_note(folder, f"{next(steps):02d}_{step}.txt", dump_text(model, step))

    return dump


def _report(
    model: Model,
    machine: Model,
    plan: Plan,
    ref: Reference,
    coverage: Coverage,
    calibration: Calibration,
    verified: bool,
) -> Report:
    data = None
    if calibration.x is not None and calibration.real is not None:
        d = distance(model, machine, calibration.x, calibration.real)
        data = distance_text(d.rows, d.mean_error, d.max_error, d.span, d.flips)
    notes = (*calibration.lines, *machine.notes)
    span = ref.high - ref.low
    return Report(describe(model), machine, plan, len(ref.x), coverage.text(), ref.worst, span, verified, data, notes)


def inspect(source: str | Path | Any) -> tuple[str, dict[str, Any]]:
    """One line on a model file or object, and its facts as JSON values."""
    model = load(source)
    return describe(model), facts(model)


def board_facts(board: Board) -> dict[str, Any]:
    """A board as JSON values."""
    regions = [{"name": r.name, "base": r.base, "size": r.size, "reserve": r.reserve} for r in board.regions]
    return {"name": board.name, "title": board.title, "regions": regions}


def _default_name(source: str | Path | Any) -> str:
    return prefix_from(Path(source).stem if isinstance(source, str | Path) else type(source).__name__.lower())


def _require_bound(machine: Model, limit: float | None) -> None:
    bound = machine.bounds["score"].error
    if limit is not None and not bound <= limit:
        hint = "use --leaf int32, float32 or float64"
        raise InputError("--max-error", f"the proven bound is {bound:.6g}, above {limit:g}", hint)


def _runtime_usage(plan_board: bool) -> Mapping[str, int]:
    return {"flash": _RUNTIME_BYTES} if plan_board else {}


def _vectors(model: Model, machine: Model, calibration: Calibration) -> tuple[Reference, Coverage, Vectors]:
    """Vectors where faults hide, and the user's own rows; the references on them; the few that become golden."""
    rank, tables = walked(machine)
    limit = int(np.clip(_VECTOR_BUDGET // max(tables.n_trees, 1), 64, 4096))
    vectors = make_vectors(rank, tables, limit=limit)
    x = vectors.x if calibration.x is None else np.concatenate([vectors.x, calibration.x[:limit]])
    ref = reference(model, machine, calibration.spec, x)
    chosen = select_golden(x, _GOLDEN_VECTORS, rank, tables)
    return ref, vectors.coverage, Vectors(ref.x[chosen], ref.y[chosen])


def _files(machine: Model, plan: Plan, output: str, golden: Vectors, verified: bool) -> dict[str, str]:
    proof = "Verified: the C equals the integer reference in Python, every bit." if verified else "NOT VERIFIED."
    return model_files(machine, plan, output, golden, proof) | runtime_files(plan)


def _golden_files(model: Model, machine: Model, calibration: Calibration, golden: Vectors) -> dict[str, bytes]:
    name = machine.name
    tensors = (GoldenTensor("x", "input", golden.x), GoldenTensor("y", "output", golden.y))
    digest = hashlib.sha256(machine.source.sha256.encode("ascii")).digest()
    digest = bytes.fromhex(machine.source.sha256) if len(machine.source.sha256) == 64 else digest
    file = golden_bytes(Golden(ABI, digest, tensors, len(golden.x)))
    return {
        f"golden/{name}.golden.bin": file,
        f"golden/{name}.reference.bin": reference_bytes(model, machine, calibration.spec),
    }


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


__all__ = [
    "EXPORT_STEPS",
    "ExportOptions",
    "ExportResult",
    "board_facts",
    "compare",
    "export",
    "inspect",
    "load",
    "profile",
    "run",
    "verify",
]
