"""Exports the tree models, and measures them beside other generators: one compiler, one emulated board.

    python benchmarks/trees.py MODELS [--rows N] [--only MODEL,...] [--tools NAME,...]

MODELS holds a folder a model with ``model.txt`` and ``expected.npz`` (x, raw). Writes ``results/trees.json`` and
``results/trees.md`` beside this file. Needs: pip install m2cgen tl2cgen treelite emlearn, and arm-none-eabi-gcc.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import lightgbm
import numpy as np
from foreign import TOOLS, RefusedError, foreign_model

import mcugen
from mcugen.core.types import Array
from mcugen.emulate.cycles import estimate
from mcugen.emulate.image import BoardModel, Image, build_image
from mcugen.emulate.isa import Decoder
from mcugen.emulate.machine import EmulatedBoard
from mcugen.emulate.toolchain import CrossCompiler, find_cross_compiler
from mcugen.errors import McugenError
from mcugen.exported import ExportedFolder, open_folder
from mcugen.target.board import Board, load_board

RESULTS = Path(__file__).parent / "results"
MODELS = ("reg12_small", "reg12_large", "digits", "cancer", "cancer_nan", "diabetes", "cat")
#: Ways to use mcugen, as options of an export.
OURS: dict[str, dict[str, Any]] = {
    "mcugen speed": {"optimize": "speed"},
    "mcugen balanced": {},
    "mcugen size": {"optimize": "size"},
    "mcugen speed int16": {"optimize": "speed", "input_dtype": "int16"},
    "mcugen size int16": {"optimize": "size", "input_dtype": "int16"},
    "mcugen balanced in flash": {"optimize": "ram"},
    "mcugen balanced float64": {"leaf": "float64"},
}
#: Models of counts, whose inputs fit int16.
COUNTS = ("reg12_small", "reg12_large")
#: What a reader should know of the figures; kept by hand.
NOTES: tuple[str, ...] = (
    "",
    "## What stopped it",
    "",
    "The proven error is at most 0.03 % of the span of the scores in `speed`, 0.1 % in `size`. Build times are those",
    "of a loaded machine; 500 trees (reg12_large) take 13 s of CPU with gcc -O2.",
    "",
    "- `speed`: gcc joins the tests of trees that stand together, so trees stand by likeness: 4 to 22 % fewer",
    "  instructions. With ranks in registers (13 columns at most) most of -O2 only copies code, and is left out; with",
    "  more columns it saves a tenth of the instructions.",
    "- `size`, flash of reg12_small: 6.1 KB are nodes and leaves at two bytes each, 1.7 KB tables for ranks",
    "  (thresholds at a byte each, as the cell of a coarse table holds the rest), 0.9 KB code, 0.5 KB start-up and",
    "  copies in DTCM.",
    "- `balanced`: some trees as code, the rest as words, up to 1.8 times the flash of `size` as estimated, so that",
    "  less than twice is left when the estimate is off. Where ranges of trees fall slowly (reg12_large) code has",
    "  leaves that no short instruction holds, which takes bytes for little speed.",
    "- `size` on cat: sets of categories do not fit words of 16 bits, so its walker is the one of wider nodes.",
    "- Cycles of `speed` on the larger models are waits for flash: what ITCM does not hold is fetched once a",
    "  prediction.",
    "- Not built: assembly for trees as code with hot columns in registers (a prototype of it: 17.7 KB and 1,084",
    "  instructions on reg12_small, 155 KB and 8,620 on reg12_large). Batches: batches.md.",
)
_BOARD = "stm32h743"
_RECORDED = 2_000_000  # instructions to record block by block
_WRONG = 1e-4  # of the span of the raw scores: no rounding, another leaf


@dataclass(frozen=True)
class Row:
    """One model from one tool. Errors in units of the raw score; ``wrong_*``: rows that reached another leaf."""

    model: str
    tool: str
    opt: str
    failure: str = ""
    flash: int = 0
    ram: int = 0
    stack: int = 0
    mean: float = 0.0
    largest: int = 0
    low: int = 0
    high: int = 0
    error: float = 0.0
    span: float = 0.0
    wrong_data: int = 0
    wrong_edge: int = 0
    rows: int = 0
    edges: int = 0
    seconds: float = 0.0


@dataclass(frozen=True)
class Inputs:
    """Rows to run: ``data`` from the model's folder, ``edge`` at thresholds, zeros and NaN; raw scores of both."""

    data: Array
    data_raw: Array
    edge: Array
    edge_raw: Array


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("models", type=Path)
    arguments.add_argument("--rows", type=int, default=300)
    arguments.add_argument("--only", default=",".join(MODELS))
    arguments.add_argument("--tools", default="")
    given = arguments.parse_args()
    compiler, board = find_cross_compiler(), load_board(_BOARD)
    tools = set(filter(None, given.tools.split(",")))
    for name in given.only.split(","):
        _write(_model(given.models / name, given.rows, tools, compiler, board), compiler, board)


def _write(rows: list[Row], compiler: CrossCompiler, board: Board) -> None:
    """Replaces these rows in the results, after each model: a run takes long and may be stopped."""
    RESULTS.mkdir(exist_ok=True)
    file = RESULTS / "trees.json"
    old = json.loads(file.read_text())["rows"] if file.exists() else []
    tools = [*OURS, *(t.name for t in TOOLS)]
    known = {(r["model"], r["tool"]): Row(**r) for r in old if r["tool"] in tools}
    known |= {(r.model, r.tool): r for r in rows}
    rows = sorted(known.values(), key=lambda r: (MODELS.index(r.model), tools.index(r.tool)))
    facts = {"compiler": compiler.version, "board": board.name, "versions": _versions()}
    file.write_text(json.dumps(facts | {"rows": [asdict(r) for r in rows]}, indent=1) + "\n")
    (RESULTS / "trees.md").write_text(_markdown(rows, facts))


def _model(folder: Path, limit: int, tools: set[str], compiler: CrossCompiler, board: Board) -> list[Row]:
    """All tools on one model."""
    found = []
    with tempfile.TemporaryDirectory() as scratch:
        exports = {}
        for n, (name, options) in enumerate(OURS.items()):
            if (tools and name not in tools) or ("input_dtype" in options and folder.name not in COUNTS):
                continue
            out = Path(scratch) / str(n)
            mcugen.export(folder / "model.txt", out, mcugen.ExportOptions(name="model", **options))
            exports[name] = open_folder(out)
        for name, export in exports.items():
            model, inputs = export.board_model(), _inputs(folder, limit, export)
            found.append(_measure(folder.name, name, "-O2", model, _meaning(export), inputs, compiler, board))
            _tell(found[-1])
        asked = [t for t in TOOLS if not tools or t.name in tools]
        if asked:
            plain = Path(scratch) / "plain"
            mcugen.export(folder / "model.txt", plain, mcugen.ExportOptions(name="model", ways="search+tables"))
            inputs = _inputs(folder, limit, open_folder(plain))
    for tool in asked:
        try:
            model = foreign_model(tool.generator, folder / "model.txt", inputs.data_raw.shape[1])
            found.append(_measure(folder.name, tool.name, tool.opt, model, (1.0, 0.0), inputs, compiler, board))
        except RefusedError as e:
            found.append(Row(folder.name, tool.name, tool.opt, f"refuses: {e}"))
        except McugenError as e:
            found.append(Row(folder.name, tool.name, tool.opt, f"fails: {e.what}"))
        _tell(found[-1])
    return found


def _meaning(export: ExportedFolder) -> tuple[float, float]:
    """What one unit of y is, and the proven bound of the error."""
    return float(export.manifest["outputs"][0].get("scale", 1.0)), float(export.manifest["bounds"]["score"]["error"])


def _inputs(folder: Path, limit: int, export: ExportedFolder) -> Inputs:
    """Raw scores are LightGBM's, for inputs of the type that the export takes: float32, or int16."""
    booster = lightgbm.Booster(model_file=str(folder / "model.txt"))
    edge = export.golden().of_role("input")[0].data
    x = np.load(folder / "expected.npz")["x"][:limit].astype(edge.dtype)

    def raw(rows: Array) -> Array:
        with np.errstate(invalid="ignore"):  # categories that no integer holds
            scores = booster.predict(rows.astype(np.float64), raw_score=True)
        return np.asarray(scores).reshape(len(rows), -1)

    return Inputs(x, raw(x), edge, raw(edge))


def _measure(
    name: str,
    tool: str,
    opt: str,
    model: BoardModel,
    meaning: tuple[float, float],
    inputs: Inputs,
    compiler: CrossCompiler,
    board: Board,
) -> Row:
    scale, bound = meaning
    started = time.monotonic()
    image = build_image(model, board, compiler, opt)
    seconds = time.monotonic() - started
    machine = EmulatedBoard(image, board)
    y, counts = machine.run(model, inputs.data)
    y_edge, _ = machine.run(model, inputs.edge, count=False)
    span = float(np.ptp(inputs.data_raw))
    error = np.abs(y * scale - inputs.data_raw).max(axis=1)
    edge = np.abs(y_edge * scale - inputs.edge_raw).max(axis=1)
    wrong = max(_WRONG * span, bound)
    low, high = _cycles(machine, model, image, inputs.data, float(counts.mean()), board)
    return Row(
        model=name,
        tool=tool,
        opt=opt,
        flash=image.model_bytes[board.home.name],
        ram=sum(n for r, n in image.model_bytes.items() if r != board.home.name),
        stack=machine.stack_bytes(),
        mean=float(counts.mean()),
        largest=int(counts.max()),
        low=low,
        high=high,
        error=float(error.max()),
        span=span,
        wrong_data=int(np.sum(~(error <= wrong))),
        wrong_edge=int(np.sum(~(edge <= wrong))),
        rows=len(y),
        edges=len(edge),
        seconds=round(seconds, 1),
    )


def _cycles(
    machine: EmulatedBoard, model: BoardModel, image: Image, x: Array, mean: float, board: Board
) -> tuple[int, int]:
    few = x[: max(20, int(_RECORDED / mean))]
    executions = [e for e in machine.record(model, few) if e is not None]
    decoder = Decoder(tuple((s.address, s.data) for s in image.elf.segments))
    found = estimate(executions, decoder, board)
    return round(found.low), round(found.high)


def _versions() -> dict[str, str]:
    from importlib.metadata import PackageNotFoundError, version  # noqa: PLC0415

    found = {}
    for package in ("mcugen", "lightgbm", "m2cgen", "tl2cgen", "treelite", "emlearn", "unicorn"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = mcugen.__version__ if package == "mcugen" else "absent"
    return found


def _tell(row: Row) -> None:
    print(f"{row.model:12} {row.tool:24} {row.failure or _cells(row)}", flush=True)


def _cells(r: Row) -> list[str]:
    return [
        f"{r.flash:,}",
        f"{r.ram:,}",
        f"{r.stack:,}",
        f"{r.mean:,.0f}",
        f"{r.largest:,}",
        f"{r.low:,} to {r.high:,}",
        f"{r.error / r.span:.1e}",
        f"{r.wrong_data} of {r.rows}",
        f"{r.wrong_edge} of {r.edges}",
        f"{r.seconds:.0f}",
    ]


def _summary(rows: list[Row]) -> list[str]:
    """One line a model: ours beside the best of the others; cycles in the middle of their range."""
    found = {(r.model, r.tool): r for r in rows if not r.failure}
    lines = [
        "",
        "## Side by side",
        "",
        "KB / instructions / cycles, in the middle of their range (1 KB = 1,000 bytes).",
        "",
    ]
    columns = ("mcugen speed", "mcugen balanced", "mcugen size", "m2cgen", "tl2cgen", "tl2cgen quantize")
    lines += [f"| model | {' | '.join(columns)} | speed gains | size gains |", "|" + "---|" * (len(columns) + 3)]
    for name in dict.fromkeys(r.model for r in rows):
        cells = [_short(found.get((name, tool))) for tool in columns]
        mine, small = found.get((name, "mcugen speed")), found.get((name, "mcugen size"))
        others = [_middle(found[name, t]) for t in ("m2cgen", "tl2cgen") if (name, t) in found]
        quantized = found.get((name, "tl2cgen quantize"))
        gain = f"{min(others) / _middle(mine):.1f}" if mine and others else ""
        less = f"{_middle(quantized) / _middle(small):.1f}" if small and quantized else ""
        lines.append(f"| {name} | {' | '.join(cells)} | {gain} | {less} |")
    lines += [
        "",
        "Speed gains: cycles of the better of m2cgen and tl2cgen by those of `speed`. Size gains: cycles of tl2cgen",
        "quantize by those of `size`.",
    ]
    return lines


def _middle(r: Row) -> float:
    return (r.low + r.high) / 2


def _short(r: Row | None) -> str:
    return "refuses" if r is None else f"{r.flash / 1000:.1f} / {r.mean:,.0f} / {_middle(r):,.0f}"


def _markdown(rows: list[Row], facts: dict[str, Any]) -> str:
    versions = ", ".join(f"{k} {v}" for k, v in facts["versions"].items())
    lines = [
        "# Tree models: mcugen beside other generators",
        "",
        f"{facts['compiler']}, emulated {facts['board']}; {versions}. Written by `python benchmarks/trees.py MODELS`.",
        "",
        "Every tool gets float32 inputs (rows named int16: int16) and gives raw scores. In flash: nothing in RAM.",
        "Bytes are what the model adds to an image. Instructions",
        "are counted, cycles are estimated, not measured (docs/profile.md). Error: largest, as a part of the span of",
        "the raw scores. Wrong: rows that reach another leaf than LightGBM, on data, and on vectors at thresholds,",
        "zeros, infinities and NaN.",
        *_summary(rows),
        *NOTES,
    ]
    head = (
        "tool",
        "flash",
        "RAM",
        "stack",
        "instructions",
        "max",
        "cycles",
        "error",
        "wrong, data",
        "wrong, edges",
        "build, s",
    )
    for name in dict.fromkeys(r.model for r in rows):
        lines += ["", f"## {name}", "", f"| {' | '.join(head)} |", "|" + "---|" * len(head)]
        for r in (r for r in rows if r.model == name):
            cells = [r.failure[:100]] + [""] * (len(head) - 2) if r.failure else _cells(r)
            lines.append(f"| {r.tool} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
