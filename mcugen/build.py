"""The verbs: each is a few calls of the stages, in the order of the pipe. The command line and Python call these."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from mcugen.core.ports import split_rows
from mcugen.core.types import Model
from mcugen.ctext.idents import check_prefix, prefix_from
from mcugen.doctor.verbs import check_elf, check_ld
from mcugen.emit.artifact import Artifact
from mcugen.emit.files import WriteResult, write, write_once
from mcugen.emit.manifest import manifest_of
from mcugen.emit.model import group_of, model_files, runtime_files
from mcugen.emit.net import arena_ports
from mcugen.emit.parts import ABI, ports_of
from mcugen.emit.project import ProjectModel, project_files, project_name
from mcugen.errors import InputError
from mcugen.exported import compare, profile, run, verify
from mcugen.frontends.load import load_source
from mcugen.frontends.pipeline.load import Pipeline
from mcugen.recipes.net_report import describe_net, net_facts
from mcugen.recipes.net_streams import prepare_net_stream
from mcugen.recipes.nets import is_net, prepare_net
from mcugen.recipes.prepared import ExportOptions, Prepared
from mcugen.recipes.signals import describe_pipeline, pipeline_facts, prepare_signal
from mcugen.recipes.trees import prepare_trees
from mcugen.report.summary import Report
from mcugen.target.board import Board, load_board
from mcugen.target.placement import place_together
from mcugen.target.plan import Plan
from mcugen.trees.describe import describe, facts
from mcugen.verify.compiler import HostCompiler, find_host_compiler
from mcugen.verify.export_check import check_host
from mcugen.verify.golden import Golden, GoldenTensor, golden_bytes
from mcugen.version import VERSION

#: Code of the runtime that a model may pull in, in bytes (an estimate; the emulated board measures).
_RUNTIME_BYTES = 600
#: Calls of ``progress`` in one export.
EXPORT_STEPS = 7


@dataclass(frozen=True, slots=True, eq=False)
class ExportResult:
    """What an export did: where, the models of both levels, and the facts that the command line prints.

    ``reference`` and ``coverage`` are the family's account of the vectors that the C repeated.
    """

    out: Path
    source: Model | Pipeline
    model: Model
    plan: Plan
    coverage: Any
    reference: Any
    report: Report
    written: WriteResult


def load(source: str | Path | Any, name: str | None = None, **selection: Any) -> Model | Pipeline:
    """The source model (float meaning) of a file, a Booster, an estimator or an onnx.ModelProto."""
    return load_source(source, name or model_name(source), **selection)


def export(
    source: str | Path | Any,
    out: str | Path | None = None,
    options: ExportOptions | None = None,
    progress: Callable[[str], None] = lambda step: None,
    **changes: Any,
) -> ExportResult:
    """Translate, verify on this machine, and write the folder ``out`` (the model's name in the current one by
    default).

    ``source``: a path, a LightGBM Booster or wrapper, a scikit-learn estimator, an onnx.ModelProto, a ``Filter``, or
    the tables of a signal chain as a dict. Options come as an ExportOptions or as its fields by name. Raises a
    McugenError; nothing is written then.
    """
    options = (options or ExportOptions(**changes)).with_paths()
    options.validate()
    board = load_board(options.board) if options.board not in (None, "none") else None
    compiler = find_host_compiler(options.compiler) if options.verify else None
    model, ready = _prepare(source, options, progress)
    target = Path(out) if out is not None else Path(ready.machine.name)
    return finish(model, ready, target, options, board, compiler, progress)


def export_together(
    sources: Sequence[str | Path | Any],
    out: str | Path,
    options: Sequence[ExportOptions],
    progress: Callable[[str], None] = lambda step: None,
) -> tuple[ExportResult, ...]:
    """Several models in one memory budget, each into a folder of its name in ``out``.

    ``options``: one for each source; board, compiler and placements are those of the first. As ``export`` otherwise:
    all models are verified before the first folder is written.
    """
    for one in options:
        one.validate()
    first = options[0]
    board = load_board(first.board) if first.board not in (None, "none") else None
    compiler = find_host_compiler(first.compiler) if first.verify else None
    prepared = [_prepare(s, o, progress) for s, o in zip(sources, options, strict=True)]
    names = [ready.machine.name for _, ready in prepared]
    twice = next((n for n in names if names.count(n) > 1), None)
    if twice is not None:
        raise InputError("models", f"two of them are called {twice}", "rename a file: C names come from it")
    progress("placing")
    plans = _place([ready for _, ready in prepared], first.place, board)
    checked = [
        _check(ready, plan, replace(o, project=None), board, compiler, progress)
        for (_, ready), plan, o in zip(prepared, plans, options, strict=True)
    ]
    project = _projects(first.project, Path(out), [ready for _, ready in prepared], board)
    progress("writing")
    results = []
    for (model, ready), plan, artifact, o in zip(prepared, plans, checked, options, strict=True):
        written = write(artifact, Path(out) / ready.machine.name, force=o.force, check=o.check)
        results.append(_result(model, ready, plan, Path(out) / ready.machine.name, compiler, written))
    if not first.check:
        write_once(project, Path(out))
    return tuple(results)


def _prepare(
    source: str | Path | Any, options: ExportOptions, progress: Callable[[str], None]
) -> tuple[Model | Pipeline, Prepared]:
    progress("reading the model")
    name = check_prefix(options.name) if options.name is not None else model_name(source)
    model = load_source(source, name, options.num_iteration, options.start_iteration, options.shapes)
    if options.name is None and isinstance(model, Pipeline) and model.wanted is not None:
        model = model.called(model.wanted)
    return model, _recipe(model, options, progress)


def _recipe(model: Model | Pipeline, options: ExportOptions, progress: Callable[[str], None]) -> Prepared:
    """The recipe of the family."""
    if isinstance(model, Pipeline):
        return prepare_signal(model, options, progress)
    if is_net(model):
        return (prepare_net_stream if options.stream else prepare_net)(model, options, progress)
    return prepare_trees(model, options, progress)


def finish(
    source: Model | Pipeline,
    ready: Prepared,
    out: Path,
    options: ExportOptions,
    board: Board | None,
    compiler: HostCompiler | None,
    progress: Callable[[str], None] = lambda step: None,
) -> ExportResult:
    """The second half of an export, the same for every family: place, emit, compare with ``compiler`` (None: not
    verified), write the folder ``out``."""
    progress("placing")
    (plan,) = _place([ready], options.place, board)
    artifact = _check(ready, plan, options, board, compiler, progress, out)
    progress("writing")
    written = write(artifact, out, force=options.force, check=options.check)
    return _result(source, ready, plan, out, compiler, written)


def _place(models: Sequence[Prepared], wishes: Mapping[str, str], board: Board | None) -> tuple[Plan, ...]:
    groups = [group_of(m.machine, m.arena, m.buffers, m.spend_ram, m.move_kernels) for m in models]
    return place_together(groups, board, wishes, {"flash": _RUNTIME_BYTES} if board is not None else {})


def _check(
    ready: Prepared,
    plan: Plan,
    options: ExportOptions,
    board: Board | None,
    compiler: HostCompiler | None,
    progress: Callable[[str], None],
    out: Path = Path(),
) -> Artifact:
    """All files of an export, which ``compiler`` has built and run."""
    progress("emitting")
    proof = (
        f"Verified: the C equals the {ready.against} in Python, every bit." if compiler is not None else "NOT VERIFIED."
    )
    files = _files(ready, plan, options.output, proof, options.project == "cmake")
    arena = None if ready.arena is None or ready.status is not None else arena_ports(ready.machine, ready.arena)
    verification = {**ready.verification, "host": "not verified"}
    if compiler is not None:
        progress("compiling and comparing on this machine")
        verification |= check_host(files, ready.machine, ready.x, ready.y, ready.trace, compiler, ready.status, arena)
    manifest = manifest_of(ready.machine, plan, ready.recorded, verification, VERSION, arena)
    project = _project(options.project, out, ready, board)
    return Artifact({**files, **_golden_files(ready)}, manifest, project)


def _result(
    source: Model | Pipeline,
    ready: Prepared,
    plan: Plan,
    out: Path,
    compiler: HostCompiler | None,
    written: WriteResult,
) -> ExportResult:
    traced = ready.trace is not None
    shown = (ready.title, ready.machine, plan, len(ready.x), ready.facts, traced, compiler is not None, ready.details)
    report = Report(*shown, ready.against)
    return ExportResult(out, source, ready.machine, plan, ready.coverage, ready.proof, report, written)


def _files(ready: Prepared, plan: Plan, output: str, proof: str, app: bool) -> dict[str, str]:
    model = model_files(ready.machine, plan, output, ready.golden, proof, ready.arena, ready.about, app)
    return model | runtime_files(plan)


def _project(kind: str | None, out: Path, ready: Prepared, board: Board | None) -> dict[str, str]:
    if kind is None:
        return {}
    return project_files(kind, project_name(out), [_project_model(ready)], board)


def _project_model(ready: Prepared) -> ProjectModel:
    return ProjectModel.of(ready.machine, ready.arena is not None and ready.arena.ports)


def _projects(kind: str | None, out: Path, models: Sequence[Prepared], board: Board | None) -> dict[str, str]:
    """The project around several exports, each in a folder of its name."""
    if kind is None:
        return {}
    called = [_project_model(m) for m in models]
    return project_files(kind, project_name(out), called, board, tuple(m.name for m in called))


def _golden_files(ready: Prepared) -> dict[str, bytes]:
    name, sha256 = ready.machine.name, ready.machine.source.sha256
    ins, outs = ports_of(ready.machine)
    sides = ((ins, ready.golden.x, "input"), (outs, ready.golden.y, "output"))
    tensors = [
        GoldenTensor(p.name, role, a)
        for ports, rows, role in sides
        for p, a in zip(ports, split_rows(ports, rows), strict=True)
    ]
    if ready.golden.status is not None:
        tensors.append(GoldenTensor("status", "status", ready.golden.status))
    digest = bytes.fromhex(sha256) if len(sha256) == 64 else hashlib.sha256(sha256.encode("ascii")).digest()
    return {
        f"golden/{name}.golden.bin": golden_bytes(Golden(ABI, digest, tuple(tensors), len(ready.golden.x))),
        f"golden/{name}.reference.bin": ready.stored,
    }


def inspect(source: str | Path | Any) -> tuple[str, dict[str, Any]]:
    """One line on a model file or object, and its facts as JSON values."""
    model = load(source)
    if isinstance(model, Pipeline):
        return describe_pipeline(model), pipeline_facts(model)
    return (describe_net(model), net_facts(model)) if is_net(model) else (describe(model), facts(model))


def board_facts(board: Board) -> dict[str, Any]:
    """A board as JSON values."""
    regions = [{"name": r.name, "base": r.base, "size": r.size, "reserve": r.reserve} for r in board.regions]
    return {"name": board.name, "title": board.title, "regions": regions}


def model_name(source: str | Path | Any) -> str:
    """The prefix that a model gets where none is given: of its file, or of its class."""
    if isinstance(source, Mapping):
        return "pipeline"
    return prefix_from(Path(source).stem if isinstance(source, str | Path) else type(source).__name__.lower())


__all__ = [
    "EXPORT_STEPS",
    "ExportOptions",
    "ExportResult",
    "board_facts",
    "check_elf",
    "check_ld",
    "compare",
    "export",
    "export_together",
    "inspect",
    "load",
    "model_name",
    "profile",
    "run",
    "verify",
]
