"""The verbs of this package: from paths to reports. ``check_ld`` may write one file, through the project's writer."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mcugen.doctor.check_ld import LdReport, check_script
from mcugen.doctor.ld_script import load_script
from mcugen.emit.artifact import MANIFEST
from mcugen.emit.files import write_file
from mcugen.errors import InputError
from mcugen.target.board import load_board


def check_ld(
    script: Path,
    board: str = "stm32h743",
    definitions: Sequence[str] = (),
    folders: Sequence[Path] = (),
    exports: Sequence[Path] = (),
    write: Path | None = None,
) -> LdReport:
    """What the linker script makes of mcugen's sections on a board.

    ``definitions``: NAME=VALUE, as ld's --defsym. ``folders``: where files are that it includes. ``exports``: exported
    folders whose bytes must fit. ``write``: a file for the fragment with the names of this script.
    InputError where the script cannot be read.
    """
    found = check_script(load_script(script, folders, definitions), load_board(board), _needs(exports))
    if write is not None:
        if write.resolve() == script.resolve():
            raise InputError(str(write), "is the linker script itself", "name another file for the fragment")
        write_file(write, found.adapted_text.encode("utf-8"))
    return found


def _needs(exports: Sequence[Path]) -> dict[str, int]:
    """Bytes by memory, over all exports."""
    total: dict[str, int] = {}
    for folder in exports:
        for entry in read_manifest(folder).get("memory", []):
            total[entry["region"]] = total.get(entry["region"], 0) + int(entry["used"])
    return total


def read_manifest(folder: Path) -> dict[str, Any]:
    """manifest.json of an exported folder; InputError if there is none."""
    path = folder / MANIFEST
    try:
        found = json.loads(path.read_bytes())
    except OSError:
        raise InputError(str(folder), f"holds no {MANIFEST}", "give a folder that mcugen export wrote") from None
    except ValueError:
        raise InputError(str(path), "is not valid JSON", "export the model again") from None
    if not isinstance(found, dict) or not str(found.get("schema", "")).startswith("mcugen-manifest/"):
        raise InputError(str(path), "was not written by mcugen")
    return found
