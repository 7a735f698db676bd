"""Batches of trees: row by row and tree by tree, on the emulated board. It decides the rule in mcugen/trees/batches.py.

    python benchmarks/batches.py MODELS [--only MODEL,...] [--ways WAY;...]

MODELS holds a folder a model with ``model.txt`` and ``expected.npz`` (x); linear trees are trained here. Every export
is made twice: as it is, and as if the rule said that its trees wait for memory. Writes ``results/batches.json`` and
``results/batches.md`` beside this file.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import textwrap
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any
from unittest import mock

import lightgbm
import numpy as np

import mcugen
from mcugen.core.op import Item
from mcugen.emulate.batches import BatchBoard
from mcugen.emulate.cycles import estimate
from mcugen.emulate.image import Image, build_image
from mcugen.emulate.isa import Decoder
from mcugen.emulate.machine import EmulatedBoard
from mcugen.emulate.recorder import Execution
from mcugen.emulate.toolchain import CrossCompiler, find_cross_compiler
from mcugen.errors import UnsupportedError
from mcugen.exported import ExportedFolder, open_folder
from mcugen.target.board import Board, load_board
from mcugen.trees.batches import waiting
from mcugen.trees.costs import Memory

RESULTS = Path(__file__).parent / "results"
#: Trees whose leaves are linear models: trained here.
LINEAR = "linear"
MODELS = ("reg12_small", "reg12_large", "digits", "cancer", "cancer_nan", "diabetes", "cat", LINEAR)
WAYS: dict[str, dict[str, Any]] = {
    "speed": {"optimize": "speed"},
    "balanced": {},
    "size": {"optimize": "size"},
    "in flash": {"optimize": "ram"},
    "packed, in flash": {"optimize": "ram", "ways": "coarse+packed"},
    "finer, in flash": {"optimize": "ram", "ways": "coarse+packed"},
    "float64": {"leaf": "float64"},
    "float64, in flash": {"leaf": "float64", "optimize": "ram"},
}
#: The way whose bound is this share of that of another: leaves need more bits of a word, so that its flag is shorter.
_FINER, _COARSER, _SHARE = "finer, in flash", "packed, in flash", 0.3
#: Rows of a call.
SIZES = (1, 4, 16, 64)
_BOARD = "stm32h743"
#: What the columns are, and what a reader should know of the figures; kept by hand.
_COLUMNS = """\
Estimated cycles a row of NAME_run_batch with so many rows, in the middle of their range (docs/profile.md): row by
row / tree by tree (how many times fewer). Row by row is a loop of NAME_run within one call: caches and the branch
predictor live on from row to row, and at the high end of the range begin empty. Instructions: a row with 64 rows.
Block: rows that go through a tree before the next tree. Stack: bytes of NAME_run / of NAME_run_batch. Taken: an
export goes tree by tree; elsewhere `NAME_run_batch` is the loop, and the right-hand figures are what it would be.
In flash: `--optimize ram`, nothing in fast memory. Packed: trees as 16-bit words; finer: the same with 0.3 times the
bound, so that leaves take more bits."""
_NOTES = """
## What decides

A tree that is loaded once for a block of rows saves the waits of the others, and nothing else. Where trees stand in
DTCM and ITCM, or in a cache that holds them from one row to the next, both ways take the same cycles within a few
per cent, and tree by tree takes stack. So an export goes tree by tree where more than a cache of tables or of code
is left outside of fast memory (`mcugen/trees/batches.py`).

- Words of 16 bits (packed) are walked two rows side by side, in place of two trees: without waits there is nothing more
  to hide, and up to 6 % more instructions to do. Feeding rows in as others end kept both lanes busy and took 40 % more
  instructions, for spills.
- Wider nodes are walked one row at a time: two side by side saved 1 to 2 % of the cycles.
- Of trees as code beside others as words (`balanced` and in flash of all these models but cat and linear), the words go
  row by row within a block where only the code waits. With both tree by tree, digits and cancer in flash took up to 6 %
  more cycles than row by row; so they take as many, or up to 4 % fewer.
- A last block of one row goes as NAME_run does.
- What tree by tree gains ends where code or tables are in a cache for a whole block: a block of 32 rows leaves a
  32nd of the waits, and most of what remains is issue."""


@dataclass(frozen=True)
class Row:
    """One export. Cycles a row in the middle of their range, by rows of a call; ``block``: rows that tree by tree takes
    at once; ``taken``: whether an export goes tree by tree."""

    model: str
    way: str
    flash: int
    stack: int
    batch_stack: int
    block: int
    taken: bool
    instructions: tuple[float, float]
    by_row: tuple[float, ...]
    by_tree: tuple[float, ...]


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("models", type=Path)
    arguments.add_argument("--only", default=",".join(MODELS))
    arguments.add_argument("--ways", default=";".join(WAYS), help="some of: %(default)s")
    given = arguments.parse_args()
    ways = given.ways.split(";")
    compiler, board = find_cross_compiler(), load_board(_BOARD)
    for name in given.only.split(","):
        with tempfile.TemporaryDirectory() as scratch:
            folder = _train(Path(scratch)) if name == LINEAR else given.models / name
            rows = [r for r in (_row(folder, way, compiler, board) for way in ways) if r]
        _write(name, ways, rows, compiler, board)


def _train(scratch: Path) -> Path:
    """100 linear trees of 31 leaves over 12 normal inputs."""
    rng, folder = np.random.default_rng(3), scratch / LINEAR
    folder.mkdir()
    x = rng.normal(0, 1, (6000, 12))
    y = np.sin(2 * x[:, 0]) + x[:, 1] * x[:, 2] + np.where(x[:, 3] > 0.3, x[:, 4], -x[:, 5])
    options = {"linear_tree": True, "num_leaves": 31, "num_threads": 1, "deterministic": True, "seed": 1, "verbose": -1}
    options |= {"objective": "regression", "learning_rate": 0.05}
    data = lightgbm.Dataset(x, y + 0.1 * rng.normal(size=len(y)), params={"linear_tree": True, "verbose": -1})
    lightgbm.train(options, data, 100).save_model(folder / "model.txt")
    np.savez(folder / "expected.npz", x=rng.normal(0, 1, (max(SIZES), 12)))
    return folder


def _row(folder: Path, way: str, compiler: CrossCompiler, board: Board) -> Row | None:
    """Row by row and tree by tree; None where the model cannot have this way, or room for no block."""
    with tempfile.TemporaryDirectory() as scratch:
        out, forced = Path(scratch) / "out", Path(scratch) / "forced"
        try:
            options = _options(folder, way)
            mcugen.export(folder / "model.txt", out, options)
        except UnsupportedError:
            return None
        with mock.patch("mcugen.trees.batches.waiting", _forced), mock.patch("mcugen.trees.lower.waiting", _forced):
            mcugen.export(folder / "model.txt", forced, options)
        plain, trees = open_folder(out), open_folder(forced)
        block = _block(trees)
        if block == 1:
            return None
        x = np.load(folder / "expected.npz")["x"][: max(SIZES)].astype(plain.inputs[0].dtype.np)
        image = build_image(trees.board_model(), board, compiler, rows=max(SIZES))
        single, many = EmulatedBoard(image, board), BatchBoard(image, board)
        model = trees.board_model()
        rows = [e for e in single.record(model, x) if e is not None]
        calls = [many.record_batch(model, x[:n]) for n in SIZES]
        assert len(rows) == len(x)
        assert None not in calls
        row = Row(
            model=folder.name,
            way=way,
            flash=image.model_bytes[board.home.name],
            stack=single.stack_bytes(),
            batch_stack=many.stack_bytes(),
            block=block,
            taken=_block(plain) > 1,
            instructions=(
                sum(single.instructions(e.blocks) for e in rows) / len(x),
                many.instructions(calls[-1].blocks) / max(SIZES),
            ),
            by_row=tuple(_cycles([_joined(rows[:n])], single.image, board) / n for n in SIZES),
            by_tree=tuple(_cycles([c], many.image, board) / n for n, c in zip(SIZES, calls, strict=True)),
        )
    print(f"{row.model:12} {row.way:18} {_cells(row)}", flush=True)
    return row


def _options(folder: Path, way: str) -> mcugen.ExportOptions:
    """UnsupportedError where the model has no such way."""
    options = mcugen.ExportOptions(name="model", **WAYS[way])
    if way != _FINER:
        return options
    with tempfile.TemporaryDirectory() as scratch:
        mcugen.export(folder / "model.txt", Path(scratch), mcugen.ExportOptions(name="model", **WAYS[_COARSER]))
        bounds = open_folder(Path(scratch)).references().machine.bounds
    return replace(options, max_error=_SHARE * bounds["score"].error)


def _forced(items: Sequence[Item], memory: Memory) -> tuple[bool, bool]:
    """As the rule says, or, where that is row by row, as if everything waited."""
    found = waiting(items, memory)
    return found if any(found) else (True, True)


def _block(export: ExportedFolder) -> int:
    return max(int(op.block) for op in export.references().machine.ops)


def _joined(rows: list[Execution]) -> Execution:
    """One call that does the rows one by one: caches and predictor live on from row to row."""
    return Execution(
        tuple(chain.from_iterable(e.blocks for e in rows)), tuple(chain.from_iterable(e.accesses for e in rows))
    )


def _cycles(calls: list[Execution], image: Image, board: Board) -> float:
    """The middle of the range."""
    found = estimate(calls, Decoder(tuple((s.address, s.data) for s in image.elf.segments)), board)
    return (found.low + found.high) / 2


def _write(model: str, made: list[str], rows: list[Row], compiler: CrossCompiler, board: Board) -> None:
    """Replaces the rows of a model that were made anew in the results."""
    RESULTS.mkdir(exist_ok=True)
    file = RESULTS / "batches.json"
    old = json.loads(file.read_text())["rows"] if file.exists() else []
    known = {(r["model"], r["way"]): r for r in old if r["model"] != model or r["way"] not in made}
    known |= {(r.model, r.way): asdict(r) for r in rows}
    ways = list(WAYS)
    found = sorted(known.values(), key=lambda r: (MODELS.index(r["model"]), ways.index(r["way"])))
    facts = {"compiler": compiler.version, "board": board.name, "rows": found}
    file.write_text(json.dumps(facts, indent=1) + "\n")
    (RESULTS / "batches.md").write_text(_markdown([Row(**r) for r in found], facts))


def _cells(r: Row) -> list[str]:
    return [
        f"{r.flash:,}",
        *_pairs(r),
        f"{r.instructions[0]:,.0f} / {r.instructions[1]:,.0f}",
        str(r.block),
        f"{r.stack:,} / {r.batch_stack:,}",
        "yes" if r.taken else "no",
    ]


def _pairs(r: Row) -> list[str]:
    """Row by row / tree by tree, for each number of rows."""
    return [f"{a:,.0f} / {b:,.0f} ({a / b:.2f})" for a, b in zip(r.by_row, r.by_tree, strict=True)]


def _summary(rows: list[Row]) -> list[str]:
    """The exports that go tree by tree."""
    head = ["model", "export", *(f"{n} rows" for n in SIZES[1:]), "block", "stack"]
    lines = ["", "## Exports that go tree by tree", "", "Columns as below.", "", f"| {' | '.join(head)} |"]
    lines.append("|" + "---|" * len(head))
    for r in (r for r in rows if r.taken):
        cells = [*_pairs(r)[1:], str(r.block), f"{r.stack:,} / {r.batch_stack:,}"]
        lines.append(f"| {r.model} | {r.way} | {' | '.join(cells)} |")
    return lines


def _markdown(rows: list[Row], facts: dict[str, Any]) -> str:
    head = ["model", "export", "flash", *(f"{n} row{'s' if n > 1 else ''}" for n in SIZES)]
    head += ["instructions", "block", "stack", "taken"]
    lines = [
        "# Batches of trees: row by row, and tree by tree",
        "",
        f"{facts['compiler']}, emulated {facts['board']}. Written by `python benchmarks/batches.py MODELS`.",
        *_summary(rows),
        "",
        "## All, both ways",
        "",
        *textwrap.wrap(_COLUMNS, 118),
        "",
        f"| {' | '.join(head)} |",
        "|" + "---|" * len(head),
        *(f"| {r.model} | {r.way} | {' | '.join(_cells(r))} |" for r in rows),
        *_NOTES.splitlines(),
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
