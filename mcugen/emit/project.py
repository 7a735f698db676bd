"""A whole firmware project around an export, as text: for STM32CubeIDE, or for CMake with presets.

The folder of the export is the project: the model in its root and in mcugen/ as always, the program in app/. What is of
the board (start-up, linker script, clock, SWO) comes from ``boards/NAME/project``. These files are written once
and are the user's from then on. No vendor code.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mcugen.core.stream import has_state
from mcugen.core.types import Model
from mcugen.emit.cubeide import cproject_text, project_text
from mcugen.emit.parts import machine_ops, place_functions, port_texts, ports_of
from mcugen.emit.render import render
from mcugen.errors import InputError
from mcugen.resources import resource_dir
from mcugen.target.board import Board

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_\-]*")
#: What --project may be.
KINDS = ("cubeide", "cmake")


@dataclass(frozen=True, slots=True)
class ProjectPort:
    """An input or output of a model: C type, the array or pointer that main.c has for it, the macro of its elements;
    ``place``: the function that tells where it lies in the model's arena, empty where it does not."""

    ctype: str
    symbol: str
    count: str
    place: str


@dataclass(frozen=True, slots=True)
class ProjectModel:
    """How main.c calls a model; ``run``: it has NAME_run, else it is stateful."""

    name: str
    run: bool
    ports: tuple[ProjectPort, ...]

    @classmethod
    def of(cls, model: Model, placed: bool = False) -> ProjectModel:
        """The call of a machine model. ``placed``: its arena has places for inputs and outputs."""
        texts, sides = port_texts(model), place_functions(model.name, *ports_of(model))
        places = (*sides[0], *sides[1]) if placed else ("",) * len(texts)
        ports = tuple(
            ProjectPort(p.port.dtype.ctype, f"{model.name}_{p.port.name}", p.count, place)
            for p, place in zip(texts, places, strict=True)
        )
        return cls(model.name, not has_state(machine_ops(model)), ports)


def project_name(out: Path) -> str:
    """The name of a project is that of its folder: an IDE does not import it otherwise. InputError if it cannot be."""
    name = out.resolve().name
    if not _NAME.fullmatch(name):
        what = f"{name!r} cannot be the name of a project"
        raise InputError(str(out), what, "letters, digits, - and _; name the folder with -o")
    return name


def project_files(
    kind: str, project: str, models: Sequence[ProjectModel], board: Board | None, folders: Sequence[str] = ("",)
) -> dict[str, str]:
    """Files of the project by path. ``project``: its name, which must be that of the folder. ``folders``: where the
    exports of the models are, from there; the folder itself for a single one.

    InputError for a kind that is unknown, or a board that brings no project.
    """
    where = f"--project {kind}"
    if kind not in KINDS:
        raise InputError(where, "is not known", f"known: {', '.join(KINDS)}")
    if board is None:
        raise InputError(where, "needs a board", "name one with --board")
    base = resource_dir("boards") / board.name / "project"
    if not base.is_dir() or (kind == "cubeide" and board.project is None):
        raise InputError(where, f"boards/{board.name} has no files for it", "--board stm32h743")
    files = {f"app/{p.name}": p.read_text(encoding="utf-8") for p in sorted(base.iterdir())}
    files["app/main.c"] = render("project_main.c.j2", models=models)
    if kind == "cubeide":
        assert board.project is not None
        return files | {".project": project_text(project), ".cproject": cproject_text(project, board.project, folders)}
    names = [m.name for m in models]
    files["app/CMakeLists.txt"] = render("project_app.cmake.j2", project=project, models=names)
    flags = " ".join(board.flags)
    files["cmake/gcc-arm-none-eabi.cmake"] = render("project_toolchain.cmake.j2", title=board.title, flags=flags)
    if folders != ("",):  # an export alone brings a CMakeLists.txt that is the project's too
        files["CMakeLists.txt"] = render("project_root.cmake.j2", project=project, folders=folders)
    files["CMakePresets.json"] = render("project_presets.json.j2")
    return files
