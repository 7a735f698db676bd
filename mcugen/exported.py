"""Verbs on a folder that was exported: run, verify, compare. Reads; ``run`` writes its one result."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mcugen.core.types import Array, DType, Feature
from mcugen.emit.artifact import MANIFEST, SCHEMA
from mcugen.emit.files import write_file
from mcugen.emit.model import ABI
from mcugen.errors import DiffersError, InputError
from mcugen.frontends.data import as_input, load_table
from mcugen.frontends.load import read_bytes
from mcugen.trees.proof import reference
from mcugen.trees.stored import References, read_reference
from mcugen.verify.compare import compare_golden_device
from mcugen.verify.compiler import find_host_compiler
from mcugen.verify.export_check import require_equal, require_selftest, sources_of
from mcugen.verify.golden import read_golden
from mcugen.verify.hostbuild import HostModel, build_shared

_Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True, eq=False)
class ExportedFolder:
    """A folder with its manifest: what the C takes and gives, and the text of its files."""

    path: Path
    name: str
    manifest: dict[str, Any]
    files: dict[str, bytes]

    @property
    def features(self) -> tuple[Feature, ...]:
        """The columns of x."""
        return tuple(
            Feature(f["name"], f.get("scale"), f.get("offset", 0.0), f.get("missing"))
            for f in self.manifest["inputs"][0]["features"]
        )

    def references(self) -> References:
        """The float model, the integer reference, and what inputs mean."""
        path = f"golden/{self.name}.reference.bin"
        if path not in self.files:
            raise InputError(str(self.path), f"{path} is missing", "export the model again")
        return read_reference(self.files[path], path)

    @property
    def golden_path(self) -> str:
        return f"golden/{self.name}.golden.bin"

    @contextmanager
    def host(self, compiler: str | None = None) -> Iterator[HostModel]:
        """The C of the folder, compiled on this machine."""
        x, y = self.manifest["inputs"][0], self.manifest["outputs"][0]
        chosen = find_host_compiler(compiler)
        with (
            build_shared(self.files, sources_of(self.files), chosen) as library,
            HostModel(
                library,
                self.name,
                DType.of(x["dtype"]),
                int(np.prod(x["shape"])),
                DType.of(y["dtype"]),
                int(np.prod(y["shape"])),
            ) as host,
        ):
            yield host


def open_folder(path: Path) -> ExportedFolder:
    """The export in ``path``; InputError where it is none, or a file is missing."""
    if not path.is_dir():
        raise InputError(str(path), "there is no such folder", "give the folder that mcugen export wrote")
    if not (path / MANIFEST).is_file():
        raise InputError(str(path), f"holds no {MANIFEST}: not a folder that mcugen exported")
    where = str(path / MANIFEST)
    try:
        manifest = json.loads(read_bytes(path / MANIFEST))
        name, files, abi = manifest["name"], list(manifest["files"]), manifest["tool"]["abi"]
        known = manifest["schema"] == SCHEMA and isinstance(name, str) and manifest["inputs"] and manifest["outputs"]
    except (ValueError, KeyError, TypeError):
        raise InputError(where, "is damaged", "export the model again") from None
    if not known or abi != ABI:
        raise InputError(where, "is from another version of mcugen", "export the model again")
    return ExportedFolder(path, name, manifest, {f: read_bytes(path / f) for f in files})


def run(
    folder: Path, input_file: Path, output_file: Path, target: str = "host", progress: _Progress = lambda step: None
) -> tuple[Array, list[str]]:
    """What the C gives for the rows of ``input_file``, written to ``output_file`` (npy) in the C output type,
    unscaled.

    Also returns warnings about the conversion of the input.
    """
    _require_host(target)
    export = open_folder(folder)
    table = load_table(input_file, export.features)
    x, warnings = as_input(table.x, export.references().spec, str(input_file), export.features)
    progress("compiling")
    with export.host() as host:
        y = host.run(x)
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, y, allow_pickle=False)
    write_file(output_file, buffer.getvalue())
    return y, list(warnings)


def verify(
    folder: Path, data: Path | None = None, target: str = "host", progress: _Progress = lambda step: None
) -> list[str]:
    """Golden reference against the C in the folder, every bit; DiffersError names the first difference.

    ``data``: more inputs; the integer reference is computed for them, and the distance to the float model is told
    apart.
    """
    _require_host(target)
    export = open_folder(folder)
    golden = read_golden(export.files[export.golden_path], export.golden_path)
    x, expected = golden.of_role("input")[0].data, golden.of_role("output")[0].data
    progress("compiling")
    with export.host() as host:
        require_equal(expected, host.run(x), "golden vectors")
        require_selftest(host)
        lines = [f"{target}: {len(x)} golden vectors equal, every bit; self-test passes"]
        if data is not None:
            progress("computing references")
            lines += _verify_data(export, data, host)
    return lines


def _verify_data(export: ExportedFolder, data: Path, host: HostModel) -> list[str]:
    refs = export.references()
    table = load_table(data, export.features)
    x, warnings = as_input(table.x, refs.spec, str(data), export.features)
    ref = reference(refs.source, refs.machine, refs.spec, x)
    require_equal(ref.y, host.run(x), str(data))
    bound = refs.machine.bounds["score"].error
    lines = [f"warning: {w}" for w in warnings]
    lines.append(f"{data}: {len(x):,} rows equal, every bit")
    lines.append(f"float model on these inputs: worst distance {ref.worst:.4g}, proven bound {bound:.4g}")
    return lines


def compare(golden: Path, device: Path) -> str:
    """The outputs a device dumped against a golden file; DiffersError with the first difference of each tensor."""
    expected = read_golden(read_bytes(golden), str(golden))
    differences = compare_golden_device(expected, read_bytes(device), str(device))
    if differences:
        raise DiffersError(str(device), "; ".join(str(d) for d in differences))
    return f"{expected.vectors} vectors equal, every bit"


def _require_host(target: str) -> None:
    if target != "host":
        raise InputError("--target", f"'{target}' is not known", "known: host")
