"""Options of the command line: the words that each may be, and those that hold more than one value."""

from __future__ import annotations

import re
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from mcugen.errors import InputError
from mcugen.recipes.prepared import ExportOptions

OutFolder = Annotated[Path | None, typer.Option("--out", "-o", help="Folder to write; the model's name by default.")]
SpecFiles = Annotated[
    list[str] | None,
    typer.Option(metavar="[MODEL=]FILE", help="Trees: TOML with scale, offset and missing code of each input."),
]
CalibFiles = Annotated[
    list[str] | None,
    typer.Option(
        metavar="[MODEL=]FILE", help="Data (npz, npy, csv): scales of sensors and of nets, the error on them."
    ),
]
Places = Annotated[list[str] | None, typer.Option(metavar="SYMBOL=REGION", help="Put a symbol into a memory.")]


class InputType(StrEnum):
    """C types of inputs."""

    AUTO = "auto"
    FLOAT64 = "float64"
    FLOAT32 = "float32"
    INT32 = "int32"
    INT16 = "int16"
    UINT16 = "uint16"
    INT8 = "int8"
    UINT8 = "uint8"


class LeafType(StrEnum):
    """Types of stored leaves."""

    INT16 = "int16"
    INT32 = "int32"
    FLOAT32 = "float32"
    FLOAT64 = "float64"


class Output(StrEnum):
    """What y holds."""

    RAW = "raw"
    CLASS = "class"
    PROBA = "proba"


class CalibMethod(StrEnum):
    """How the range of a value is chosen from the data."""

    MINMAX = "minmax"
    PERCENTILE = "percentile"
    MSE = "mse"


class Project(StrEnum):
    """Projects around a model."""

    CUBEIDE = "cubeide"
    CMAKE = "cmake"


class Optimize(StrEnum):
    """What to spend."""

    BALANCED = "balanced"
    SPEED = "speed"
    SIZE = "size"
    RAM = "ram"


class Io(StrEnum):
    """Where inputs and outputs of a net live."""

    ARENA = "arena"
    CALLER = "caller"


PortPlaces = Annotated[
    Io | None, typer.Option(help="Nets: x and y have places in the arena (default), or are the caller's alone.")
]
InputDtype = Annotated[InputType, typer.Option(help="C type of the inputs; auto: float32 for trees, int8 for nets.")]
OutputKind = Annotated[Output, typer.Option(help="y: scores, class index, or (trees) the prediction as float.")]
Int16Layers = Annotated[
    list[str] | None, typer.Option(metavar="LAYER", help="Nets: int16 for a layer, of this node or value.")
]
InputShapes = Annotated[
    list[str] | None, typer.Option(metavar="NAME=1,3,96,96", help="ONNX: the shape of a dynamic input.")
]
Goal = Annotated[
    Optimize, typer.Option(help="Trees: cycles or flash. ram: the smallest arena of nets, no tables in RAM.")
]
MaxRam = Annotated[
    int | None, typer.Option(metavar="BYTES", help="Nets: the fastest plan whose arena is at most this.")
]
MaxFlash = Annotated[
    int | None, typer.Option(metavar="BYTES", help="Nets: larger tables for fewer instructions, up to this.")
]
MaxError = Annotated[float | None, typer.Option(help="Trees: the largest proven error of a score, in its units.")]
Explain = Annotated[
    bool, typer.Option("--explain", help="Print what was compared, and why each symbol stands where it does.")
]


def options_of_each(names: list[str], options: ExportOptions, spec: list[str], calib: list[str]) -> list[ExportOptions]:
    """The options of every model of ``names``: a file is for all, or for the one that stands before a ``=``."""
    if len(names) > 1 and options.name is not None:
        raise InputError("--name", "is for one model", "several have the names of their files")
    return [
        replace(options, spec=_file_of("--spec", spec, n, names), calib=_file_of("--calib", calib, n, names))
        for n in names
    ]


def _file_of(option: str, words: list[str], name: str, names: list[str]) -> Path | None:
    files: dict[str, list[str]] = {}
    for word in words:
        model, found, path = word.partition("=")
        mine = bool(found) and len(names) > 1 and model in names
        files.setdefault(model if mine else "", []).append(path if mine else word)
    chosen = files.get(name) or files.get("") or []
    if len(chosen) > 1:
        hint = "once for all models, or MODEL=FILE for each" if len(names) > 1 else ""
        raise InputError(option, f"{chosen[1]} is the second file", hint)
    return Path(chosen[0]) if chosen else None


def shapes_of(words: list[str]) -> dict[str, tuple[int, ...]]:
    shapes: dict[str, tuple[int, ...]] = {}
    for word in words:
        name, _, numbers = word.partition("=")
        sizes = numbers.split(",")
        if not name or not all(n.isascii() and n.isdigit() and 0 < int(n) < 2**24 for n in sizes):
            raise InputError("--shape", f"'{word}' is not NAME=SIZES", "for example --shape input=1,3,96,96")
        shapes[name] = tuple(int(n) for n in sizes)
    return shapes


def usage_text(message: str) -> str:
    """What the option parser says, as our errors say it: the option, and what is wrong with it."""
    found = re.fullmatch(r"Invalid value for '([^']+)'[^:]*: (?:Value error, )?(.*?)\.?", message, re.DOTALL)
    if found is None:
        return message
    what = re.sub(r"^Input should be (.*?), unable .*", r"must be \1", " ".join(found[2].split()))
    return f"{found[1]}: {what}"


def placements_of(words: list[str]) -> dict[str, str]:
    wishes: dict[str, str] = {}
    for word in words:
        symbol, found, region = word.partition("=")
        if not (found and symbol and region):
            raise InputError("--place", f"'{word}' is not SYMBOL=REGION", "for example --place model_nodes=dtcm")
        if symbol in wishes:
            raise InputError("--place", f"{symbol} is placed twice")
        wishes[symbol] = region
    return wishes
