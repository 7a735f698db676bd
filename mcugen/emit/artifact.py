"""All files of an export as one value. Nothing here touches the disk: emit.files does."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any

from mcugen.errors import InternalError

#: The name and version of the manifest's schema; files.write accepts a folder by it.
SCHEMA = "mcugen-manifest/1"
MANIFEST = "manifest.json"

#: No trailing dot, which excludes . and .. too (and Windows drops it).
_PART = re.compile(r"[A-Za-z0-9_+\-.]*[A-Za-z0-9_+\-]")


@dataclass(frozen=True, slots=True, eq=False)
class Artifact:
    """``files``: content by path, relative and with ``/``, text being written in UTF-8 with its line ends as they are.

    ``manifest``: JSON values; ``schema`` and ``files`` (path to sha256) are added by manifest_text. The file
    manifest.json itself is not in ``files``.
    """

    files: Mapping[str, str | bytes]
    manifest: Mapping[str, Any]
    once: Mapping[str, str | bytes] = field(default_factory=dict)

    def once_contents(self) -> dict[str, bytes]:
        """The bytes of the files that are written once; InternalError as for contents()."""
        check_paths({**self.files, **self.once})
        return {path: _encode(path, self.once[path]) for path in sorted(self.once)}

    def contents(self) -> dict[str, bytes]:
        """The bytes of every file, manifest.json the last; InternalError for a path or text that cannot be one."""
        check_paths(self.files)
        data = {path: _encode(path, self.files[path]) for path in sorted(self.files)}
        digests = {path: hashlib.sha256(content).hexdigest() for path, content in data.items()}
        data[MANIFEST] = manifest_text(self.manifest, digests).encode("utf-8")
        return data


def manifest_text(manifest: Mapping[str, Any], digests: Mapping[str, str]) -> str:
    """manifest.json: ``manifest`` with the schema and ``digests`` (path to sha256), keys sorted, ASCII only."""
    own = {"schema": SCHEMA, "files": dict(digests)}
    for key in own.keys() & manifest.keys():
        raise InternalError(MANIFEST, f"key {key} is written by the manifest itself")
    try:
        # NaN would not be JSON.
        return json.dumps({**manifest, **own}, indent=2, sort_keys=True, allow_nan=False) + "\n"
    except (TypeError, ValueError, RecursionError) as error:
        raise InternalError(MANIFEST, f"not JSON: {error}") from error


def is_safe_path(path: str) -> bool:
    """Whether ``path`` stays inside its folder on every file system: relative, normal, of plain characters."""
    return all(_PART.fullmatch(part) for part in path.split("/"))


def check_paths(paths: Mapping[str, Any]) -> None:
    """Raise InternalError unless all can stand side by side, also where upper and lower case are the same."""
    folded: set[str] = {MANIFEST}
    for path in paths:
        if not is_safe_path(path):
            raise InternalError(path, "is not a safe relative path")
        if path.lower() in folded:
            raise InternalError(path, "is produced twice (upper and lower case count as the same)")
        folded.add(path.lower())
    for path in folded:
        for parent in PurePosixPath(path).parents:
            if str(parent) in folded:
                raise InternalError(path, f"{parent} is a file and a folder")


def _encode(path: str, content: str | bytes) -> bytes:
    try:
        return content.encode("utf-8") if isinstance(content, str) else bytes(content)
    except UnicodeEncodeError as error:
        raise InternalError(path, f"text is not valid Unicode: {error.reason}") from error
