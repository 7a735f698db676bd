"""Exports to write, and what a folder holds afterwards."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mcugen.emit.artifact import Artifact

FIRST = {
    "m.h": "#pragma once\n",
    "m.c": "int m;\n",
    "mcugen/mcg.h": "/* é */\n",
    "golden/m.golden.bin": b"\x00\xff\r\n",
}
SECOND = {"m.h": "#pragma once\n", "m.c": "int changed;\n", "extra/new.c": "int n;\n", "mcugen/mcg.h": "/* é */\n"}


def artifact(content: dict[str, Any], **manifest: Any) -> Artifact:
    return Artifact(content, {"model": "m", **manifest})


def tree(folder: Path) -> dict[str, bytes | None]:
    """Everything below ``folder``: bytes of files, None for folders."""
    return {str(p.relative_to(folder)): p.read_bytes() if p.is_file() else None for p in sorted(folder.rglob("*"))}


def snapshot(folder: Path) -> dict[str, tuple[bytes | None, int]]:
    return {k: (v, (folder / k).stat().st_mtime_ns if v is not None else 0) for k, v in tree(folder).items()}
