"""Verbs on a folder that was exported: run, verify, profile, compare. Reads; ``run`` writes its one result."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from mcugen.core.ports import ArenaPorts, Port, Ports, join_rows, split_rows
from mcugen.core.store import npy_bytes, npz_bytes
from mcugen.core.stream import OK, statuses
from mcugen.core.types import Array, DType, Feature
from mcugen.ctext.idents import check_prefix
from mcugen.emit.artifact import MANIFEST, SCHEMA, is_safe_path
from mcugen.emit.files import write_file
from mcugen.emit.parts import ABI, machine_ops, ports_of
from mcugen.emit.sources import sources_of
from mcugen.emulate.image import BoardModel
from mcugen.errors import DiffersError, InputError, InternalError, McugenError
from mcugen.frontends.named_file import read_bytes
from mcugen.recipes.references import ModelReference, read_references
from mcugen.report.profile import Profile, measure
from mcugen.verify.board import DEFAULT_TARGET, HOST, build_for, counting_board, run_target, target_board
from mcugen.verify.compare import compare_golden_device
from mcugen.verify.compiler import find_host_compiler
from mcugen.verify.export_check import require_all_ways, require_equal, require_same_run, require_selftest
from mcugen.verify.golden import Golden, read_golden
from mcugen.verify.hostbuild import HostModel, build_shared

_Progress = Callable[[str], None]
_AGAIN = "export the model again"
_GIVE = "give the folder that mcugen export wrote"
_IDENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True, slots=True, eq=False)
class ExportedFolder:
    """A folder with its manifest: what the C takes and gives, and the text of its files."""

    path: Path
    name: str
    manifest: dict[str, Any]
    files: dict[str, bytes]
    features: tuple[Feature, ...]
    inputs: Ports
    outputs: Ports
    state_bytes: int = 0
    arena: ArenaPorts | None = None

    @property
    def changed(self) -> tuple[str, ...]:
        """Files that are not as they were exported."""
        digests = self.manifest["files"]
        return tuple(f for f, data in self.files.items() if hashlib.sha256(data).hexdigest() != digests[f])

    def references(self) -> ModelReference:
        """The float model, the integer reference, and what inputs mean."""
        path = f"golden/{self.name}.reference.bin"
        if path not in self.files:
            raise InputError(str(self.path), f"{path} is missing", _AGAIN)
        if path in self.changed:
            raise InputError(str(self.path / path), "was changed after the export", _AGAIN)
        found = read_references(self.files[path], path)
        if ports_of(found.machine) != (self.inputs, self.outputs):
            raise InputError(str(self.path / path), f"its tensors are not those of {MANIFEST}", _AGAIN)
        return found

    def golden(self) -> Golden:
        """The vectors that were exported, of the shapes that the C takes and gives."""
        path = self.golden_path
        if path not in self.files:
            raise InputError(str(self.path), f"{path} is missing", _AGAIN)
        golden = read_golden(self.files[path], str(self.path / path))
        for role, ports in (("input", self.inputs), ("output", self.outputs)):
            tensors = golden.of_role(role)
            if tuple(Port(t.name, t.dtype, t.shape) for t in tensors) != ports:
                raise InputError(str(self.path / path), f"its {role} is not that of {MANIFEST}", _AGAIN)
        return golden

    @property
    def golden_path(self) -> str:
        return f"golden/{self.name}.golden.bin"

    def board_model(self) -> BoardModel:
        """What a test image for a board needs of this export."""
        placed = self.manifest.get("symbols", [])
        return BoardModel(
            self.name,
            self.files,
            self.inputs,
            self.outputs,
            self.manifest.get("board"),
            {s["symbol"]: s["region"] for s in placed},
            self.state_bytes,
            self.arena is not None and self.arena.placed,
        )

    @property
    def batches(self) -> bool:
        """Whether NAME_run_batch may be more than a loop of NAME_run: for trees, which have no arena. Of these it is
        where rows go in blocks; the manifest does not say which."""
        arena = any(s["role"] == "arena" for s in self.manifest.get("symbols", []))
        return not arena and not self.state_bytes and len(self.inputs) == len(self.outputs) == 1

    @contextmanager
    def blaming_changes(self) -> Iterator[None]:
        """Turns an InternalError of a build into an InputError if somebody changed a file."""
        try:
            yield
        except InternalError as e:
            if not self.changed:
                raise
            where = str(self.path / self.changed[0])
            raise InputError(where, f"was changed after the export, and the C does not build: {e.what}", _AGAIN) from e

    @contextmanager
    def host(self, compiler: str | None = None) -> Iterator[HostModel]:
        """The C of the folder, compiled on this machine; InputError if that fails and somebody changed it."""
        chosen = find_host_compiler(compiler)
        with (
            self.blaming_changes(),
            build_shared(self.files, sources_of(self.files), chosen) as library,
            HostModel(library, self.name, self.inputs, self.outputs, state_bytes=self.state_bytes) as host,
        ):
            yield host


def open_folder(path: str | Path) -> ExportedFolder:
    """The export in ``path``; InputError where it is none, or a file is missing."""
    path = Path(path)
    if not path.is_dir():
        raise InputError(str(path), "there is no such folder", _GIVE)
    if not (path / MANIFEST).is_file():
        raise InputError(str(path), f"holds no {MANIFEST}: not a folder that mcugen exported", _GIVE)
    where = str(path / MANIFEST)
    try:
        manifest = json.loads(read_bytes(path / MANIFEST))
        known = manifest["schema"] == SCHEMA and manifest["tool"]["abi"] == ABI
    except (ValueError, KeyError, TypeError, RecursionError):
        raise InputError(where, "is damaged", _AGAIN) from None
    if not known:
        raise InputError(where, "is from another version of mcugen", _AGAIN)
    try:
        name, paths = check_prefix(manifest["name"]), list(manifest["files"].items())
        x, y = (tuple(map(_port, manifest[side])) for side in ("inputs", "outputs"))
        features = tuple(map(_feature, manifest["inputs"][0]["features"]))
        state_bytes = manifest["state"]["bytes"] if "state" in manifest else 0
        good = type(state_bytes) is int and 0 <= state_bytes < 2**24 and ("state" not in manifest or state_bytes > 0)
        arena = None if state_bytes else _arena(name, manifest, x, y)
        good = good and all(is_safe_path(p) and isinstance(digest, str) for p, digest in paths)
        good = good and (not features or [p.shape for p in x] == [(len(features),)])
        good = good and bool(x and y) and len({p.name for p in (*x, *y)}) == len(x) + len(y)
    except (ValueError, KeyError, TypeError, AttributeError, IndexError, McugenError):
        good = False
    if not good:
        raise InputError(where, "is damaged", _AGAIN)
    files = {p: read_bytes(path / p) for p, _ in paths}
    return ExportedFolder(path, name, manifest, files, features, x, y, state_bytes, arena)


def _arena(name: str, manifest: dict[str, Any], inputs: Ports, outputs: Ports) -> ArenaPorts | None:
    """The arena of a net, or None; an exception of any of the usual kinds if that is damaged."""
    size = next((s["size"] for s in manifest["symbols"] if s["symbol"] == f"{name}_arena"), None)
    entries = (*manifest["inputs"], *manifest["outputs"])
    places = tuple(t["arena_offset"] for t in entries if "arena_offset" in t)
    if size is None and not places:
        return None
    ends = [at + p.size for at, p in zip(places, (*inputs, *outputs), strict=bool(places))]
    if type(size) is not int or not all(type(at) is int and at >= 0 for at in places) or size < max(ends, default=0):
        raise ValueError(places)
    return ArenaPorts(size, places[: len(inputs)], places[len(inputs) :])


def _port(entry: dict[str, Any]) -> Port:
    """An input or output; an exception of any of the usual kinds if it is none."""
    shape = tuple(entry["shape"])
    if not shape or not all(type(d) is int and 0 < d < 2**24 for d in shape) or not _IDENT.fullmatch(entry["name"]):
        raise ValueError(shape)
    return Port(entry["name"], DType.of(entry["dtype"]), shape)


def _feature(entry: dict[str, Any]) -> Feature:
    name, scale, offset, missing = entry["name"], entry.get("scale"), entry.get("offset", 0.0), entry.get("missing")
    if not isinstance(name, str) or not isinstance(missing, int | None):
        raise TypeError(name)
    return Feature(name, None if scale is None else float(scale), float(offset), missing)


def run(
    folder: str | Path,
    input_file: str | Path,
    output_file: str | Path,
    target: str = HOST,
    progress: _Progress = lambda step: None,
    compiler: str | None = None,
) -> tuple[Array, list[str]]:
    """What the C gives for the rows of ``input_file``, written to ``output_file`` in the C output type,
    unscaled: npy, shaped as in the model file, or npz with a key for each of several outputs.

    Rows for a model with state are the pushes of one run from a fresh state; it gives a row for each push that is due.
    ``target``: the host or a board with an emulator; ``compiler``: a C compiler for it, found by default. Also returns
    warnings about the conversion of the input.
    """
    _check_target(target)
    export = open_folder(folder)
    x, warnings = export.references().read(Path(input_file))
    progress("compiling")
    if target == HOST:
        with export.host(compiler) as host:
            y, status = _calls(export, host, x)
    else:
        with export.blaming_changes():
            ran = run_target(export.board_model(), x, target, compiler, "-O2", count=False)[0]
        y, status = ran.y, ran.status
    y = y[status == OK]
    results = split_rows(export.outputs, y)
    named = {p.name: a for p, a in zip(export.outputs, results, strict=True)}
    write_file(Path(output_file), npy_bytes(results[0]) if len(results) == 1 else npz_bytes(named))
    return results[0] if len(results) == 1 else y, list(warnings)


def verify(
    folder: str | Path,
    data: str | Path | None = None,
    target: str = HOST,
    progress: _Progress = lambda step: None,
    compiler: str | None = None,
    opt: str = "-O2",
) -> list[str]:
    """Golden reference against the C in the folder, every bit; DiffersError names the first difference.

    ``data``: more inputs; the integer reference is computed for them, and the distance to the float model is told
    apart. ``target``, ``compiler``: as for ``run``; ``opt``: the optimization level of a board build.
    """
    _check_target(target)
    export = open_folder(folder)
    golden = export.golden()
    runs = [_golden_run(golden)]
    more = None if data is None else _references(export, Path(data), progress)
    runs += [] if more is None else [more.run]
    progress("compiling")
    built: list[str] = []
    if target == HOST:
        with export.host(compiler) as host:
            _require_runs(export, runs, lambda x: _calls(export, host, x))
            if export.arena is not None:
                for run in runs:
                    require_all_ways(run.y, host, run.x, export.arena, f" on {run.what}")
            if export.batches:
                _require_runs(export, runs, lambda x: (host.run_pieces(x), _oks(x)), " in batches")
                _require_runs(export, runs, lambda x: (host.run_each(x), _oks(x)), " one by one")
            require_selftest(host)  # says less than the golden vectors
    else:
        board = replace(export.board_model(), batches=export.batches)
        batches: list[Array] = []

        def on_board(x: Array) -> tuple[Array, Array]:
            with export.blaming_changes():
                ran, line = run_target(board, x, target, compiler, opt)
            built[:] = [line]
            if ran.batches is not None:
                batches.append(ran.batches)
            return ran.y, ran.status

        _require_runs(export, runs, on_board, f" on {target}")
        if batches:
            _require_runs(export, runs, lambda x: (batches[0], _oks(x)), f" in batches on {target}")
        elif export.batches:
            built.append(f"NAME_run_batch was not run on {target}: verify it on the host")
    what = "pushes" if export.state_bytes else "vectors"
    lines = [f"{target}: {golden.vectors} golden {what} equal, every bit; self-test passes", *built]
    if export.changed:
        lines.append(f"changed after the export: {', '.join(export.changed)}")
    if more is not None:
        lines += [*more.warnings, f"{data}: {len(more.run.x):,} rows equal, every bit", more.distance]
    return lines


@dataclass(frozen=True, slots=True, eq=False)
class _Run:
    """Inputs (N, ...) and what the C must give: outputs, and statuses (N,)."""

    what: str
    x: Array
    y: Array
    status: Array


def _golden_run(golden: Golden) -> _Run:
    status = golden.of_role("status")
    zeros = np.zeros(golden.vectors, np.int32)
    x, y = _rows_of(golden, "input"), _rows_of(golden, "output")
    return _Run("golden vectors", x, y, status[0].data if status else zeros)


def _rows_of(golden: Golden, role: str) -> Array:
    """Rows of the tensors of a role."""
    tensors = golden.of_role(role)
    return join_rows(tuple(Port(t.name, t.dtype, t.shape) for t in tensors), [t.data for t in tensors])


def _calls(export: ExportedFolder, host: HostModel, x: Array) -> tuple[Array, Array]:
    """Outputs and statuses of the C on this machine; the rows are one run, if the model has state."""
    return host.push(x) if export.state_bytes else (host.run(x), _oks(x))


def _oks(x: Array) -> Array:
    """A status for each row: a model without state has a result for every one."""
    return np.full(len(x), OK, np.int32)


def _require_runs(
    export: ExportedFolder, runs: list[_Run], call: Callable[[Array], tuple[Array, Array]], where: str = ""
) -> None:
    """DiffersError unless the C repeats all runs, each from a fresh state; others than pushes run at once."""
    if export.state_bytes:
        for run in runs:
            require_same_run(run.y, run.status, call(run.x), f"{run.what}{where}")
        return
    y, _ = call(np.concatenate([run.x for run in runs]))
    at = 0
    for run in runs:
        require_equal(run.y, y[at : at + len(run.x)], f"{run.what}{where}")
        at += len(run.x)


def profile(
    folder: str | Path,
    input_file: str | Path | None = None,
    target: str | None = None,
    progress: _Progress = lambda step: None,
    compiler: str | None = None,
    opt: str = "-O2",
) -> Profile:
    """What one inference costs on a board: instructions, an estimate of cycles, bytes by memory.

    Over the rows of ``input_file``, or the golden vectors. ``target``: a board whose emulator counts, by default that
    of the export; ``compiler``, ``opt``: as for ``verify``.
    """
    export = open_folder(folder)
    board = counting_board(target or export.manifest.get("board") or DEFAULT_TARGET)
    refs = export.references()
    x = _rows_of(export.golden(), "input")
    if input_file is not None:
        x, _ = refs.read(Path(input_file))
    progress("compiling")
    with export.blaming_changes():
        model = replace(export.board_model(), batches=export.batches)
        image, text = build_for(model, board, compiler, opt)
    roles = {s["symbol"]: s["role"] for s in export.manifest["symbols"]}
    return measure(model, machine_ops(refs.machine), board, image, x, text, roles, progress)


@dataclass(frozen=True, slots=True, eq=False)
class _More:
    """References for a user's inputs, and what is to be told about them."""

    run: _Run
    warnings: tuple[str, ...]
    distance: str


def _references(export: ExportedFolder, data: Path, progress: _Progress) -> _More:
    progress("computing references")
    refs = export.references()
    x, warnings = refs.read(data)
    y, distance = refs.answer(x)
    status = statuses(machine_ops(refs.machine), len(x))
    return _More(_Run(str(data), x, y, status), tuple(f"warning: {w}" for w in warnings), distance)


def compare(golden: str | Path, device: str | Path) -> str:
    """The outputs a device dumped against a golden file; DiffersError with the first difference of each tensor."""
    expected = read_golden(read_bytes(Path(golden)), str(golden))
    differences = compare_golden_device(expected, read_bytes(Path(device)), str(device))
    if differences:
        raise DiffersError(str(device), "; ".join(str(d) for d in differences))
    return f"{expected.vectors} vectors equal, every bit"


def _check_target(target: str) -> None:
    """InputError before any work if there is no such target."""
    if target != HOST:
        target_board(target)
