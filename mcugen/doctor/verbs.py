"""The verbs of this package: from paths to reports. ``check_ld`` may write one file, through the project's writer."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from mcugen.doctor.check_elf import Buffer, ElfFinding, ElfReport, check_program
from mcugen.doctor.check_ld import LdReport, check_script
from mcugen.doctor.ld_script import load_script
from mcugen.doctor.program import Program, read_program
from mcugen.emit.artifact import MANIFEST
from mcugen.emit.files import write_file
from mcugen.emit.plan_note import PlanNote, note_in_c
from mcugen.errors import InputError
from mcugen.target.board import Board, did_you_mean, load_board


def check_ld(
    script: str | Path,
    board: str = "stm32h743",
    definitions: Sequence[str] = (),
    folders: Sequence[str | Path] = (),
    exports: Sequence[str | Path] = (),
    write: str | Path | None = None,
) -> LdReport:
    """What the linker script makes of mcugen's sections on a board.

    ``definitions``: NAME=VALUE, as ld's --defsym. ``folders``: where files are that it includes. ``exports``: exported
    folders whose bytes must fit. ``write``: a file for the fragment with the names of this script.
    InputError where the script cannot be read.
    """
    script, write = Path(script), None if write is None else Path(write)
    scripts = load_script(script, [Path(f) for f in folders], definitions)
    found = check_script(scripts, load_board(board), _needs([Path(e) for e in exports]))
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
        raise InputError(str(path), "was not written by mcugen", "give a folder that mcugen export wrote")
    return found


def check_elf(
    program: str | Path,
    board: str = "stm32h743",
    exports: Sequence[str | Path] = (),
    dma: Sequence[str] = (),
    mpu: Sequence[str] = (),
) -> ElfReport:
    """What a linked program has where, against the plans of the models in it.

    ``exports``: folders whose models must be in it, as they are there. ``dma``: buffers of the user's own that a DMA
    reads or writes, as SYMBOL or SYMBOL=CONTROLLER; ``mpu``: symbols that are an MPU region each.
    InputError where the program cannot be read, or holds no model.
    """
    part = load_board(board)
    buffers = [_buffer(word, part) for word in dma] + [Buffer(s, "", True) for s in mpu]
    read = read_program(Path(program))
    wanted = [(folder, _exported_note(folder)) for folder in map(Path, exports)]
    if not read.notes and not exports:
        what = "holds no model of mcugen: no object file brought its plan"
        raise InputError(str(program), what, "is NAME.c of the export compiled into it? --model FOLDER names one")
    found = check_program(read, part, buffers)
    return replace(found, findings=(*found.findings, *_differences(read, wanted)))


def _buffer(word: str, board: Board) -> Buffer:
    symbol, _, master = word.partition("=")
    masters = sorted({m for r in board.regions for m in r.dma})
    if master and master not in masters:
        raise InputError(
            f"--dma {word}", f"{board.name} has no DMA controller {master!r}", did_you_mean(master, masters)
        )
    return Buffer(symbol, master or board.dma_controller)


def _exported_note(folder: Path) -> PlanNote:
    """The plan that the C of an exported folder carries."""
    name = read_manifest(folder).get("name")
    path = folder / f"{name}.c"
    try:
        note = note_in_c(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        note = None
    if note is None:
        raise InputError(str(path), "carries no plan", "export the model again with this version")
    return note


def _differences(program: Program, wanted: Sequence[tuple[Path, PlanNote]]) -> list[ElfFinding]:
    inside = {n.model: n for n in program.notes}
    found = []
    for folder, note in wanted:
        mine = inside.get(note.model)
        if mine is None:
            found.append(ElfFinding(note.model, f"is not in the program, and {folder} holds it"))
        elif mine.source != note.source:
            found.append(ElfFinding(note.model, f"was made from another model file than {folder}", "build again"))
        elif mine != note:
            found.append(ElfFinding(note.model, f"is of another export than {folder}", "build again"))
    return found
