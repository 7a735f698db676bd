"""What an output folder holds now: whether it is ours, what its manifest promises, and what is on the disk."""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from mcugen.emit.artifact import MANIFEST, SCHEMA, is_safe_path
from mcugen.errors import InputError

#: Names of the folders in which a write is prepared; one that stays behind after a kill does not count as content.
STAGE = ".mcugen-stage-"

_SHA256 = re.compile(r"[0-9a-f]{64}")
_ELSEWHERE = "choose another folder with -o"


@dataclass(frozen=True, slots=True)
class Folder:
    """``listed``: path to sha256 in the manifest that was found. ``present``: the same of the files that exist, of
    those listed or about to be written."""

    exists: bool
    listed: Mapping[str, str]
    present: Mapping[str, str]


def read_folder(out: Path, root: Path, wanted: Iterable[str]) -> Folder:
    """The state of ``root``, the real path of ``out``, with regard to the paths ``wanted``.

    InputError if it is no folder, holds files but no manifest of ours, or has a link or a folder where a file is due.
    OSError where it cannot be read.
    """
    if not os.path.lexists(root):
        nearest = next(p for p in root.parents if os.path.lexists(p))
        if not nearest.is_dir():
            raise InputError(str(out), f"cannot be a folder: {nearest} is none", _ELSEWHERE)
        return Folder(False, {}, {})
    if not root.is_dir():
        raise InputError(str(out), "is not a folder", _ELSEWHERE)
    listed: dict[str, str] = {}
    if os.path.lexists(root / MANIFEST):
        _check_regular(out, root, MANIFEST)
        listed = _read_manifest(out / MANIFEST, root / MANIFEST)
    elif any(not entry.startswith(STAGE) for entry in os.listdir(root)):
        raise InputError(str(out), "holds files that mcugen did not write", _ELSEWHERE)
    present = {}
    for path in sorted({*wanted, *listed}):
        if _check_regular(out, root, path):
            with open(root / path, "rb") as stream:
                present[path] = hashlib.file_digest(stream, "sha256").hexdigest()
    return Folder(True, listed, present)


def _check_regular(out: Path, root: Path, path: str) -> bool:
    """Whether the file exists. InputError where something else stands in its place: links are never followed."""
    at = root
    parts = path.split("/")
    for i, part in enumerate(parts):
        at = at / part
        try:
            mode = at.lstat().st_mode
        except FileNotFoundError:
            return False
        last = i == len(parts) - 1
        if not (stat.S_ISREG(mode) if last else stat.S_ISDIR(mode)):
            kind = "link" if stat.S_ISLNK(mode) else "folder" if stat.S_ISDIR(mode) else "file"
            want = "file" if last else "folder"
            where = str(out / "/".join(parts[: i + 1]))
            raise InputError(where, f"is a {kind} where mcugen writes a {want}", "remove it")
    return True


def _read_manifest(shown: Path, path: Path) -> dict[str, str]:
    """``files`` of the manifest; InputError if it is not one of ours."""
    try:
        manifest = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise InputError(str(shown), "is not valid JSON", f"restore it, or {_ELSEWHERE}") from error
    schema = manifest.get("schema") if isinstance(manifest, dict) else None
    if not isinstance(schema, str) or not schema.startswith("mcugen-manifest/"):
        raise InputError(str(shown), "was not written by mcugen", _ELSEWHERE)
    if schema != SCHEMA:
        hint = "use that version, or remove the folder"
        raise InputError(str(shown), f"has schema {schema}: another version of mcugen wrote it", hint)
    files = manifest.get("files")
    if not isinstance(files, dict) or not all(
        is_safe_path(p) and p != MANIFEST and isinstance(d, str) and _SHA256.fullmatch(d) for p, d in files.items()
    ):
        raise InputError(str(shown), "is damaged: files is not a table of sha256", f"restore it, or {_ELSEWHERE}")
    return files
