"""What the signal chains of examples/ cost on the emulated STM32H743: instructions and cycles a push, RAM and flash.

    python benchmarks/pipelines.py

Writes ``results/pipelines.md`` beside this file. The samples are those that the examples ship; every push is compared
with the integer reference.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

import mcugen
from mcugen.core.stream import OK, respond
from mcugen.emulate.image import build_image
from mcugen.emulate.machine import EmulatedBoard
from mcugen.emulate.toolchain import find_cross_compiler
from mcugen.exported import open_folder
from mcugen.report.profile import measure
from mcugen.target.board import load_board

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
RESULT = Path(__file__).parent / "results" / "pipelines.md"
#: The recording, how many of its samples, and samples a second.
CHAINS = {"motion": ("samples.npy", 1000, 10), "thermo_life": ("samples.npy", 1000, 100), "ecg": ("ecg.npy", 1024, 360)}
HEAD = """\
# The signal chains of the examples on the emulated STM32H743

A push is one sample of all channels; where a result is due, it runs the features and the model. Instructions are exact,
for the pushes of the recordings that the examples ship. Cycles are estimated, not measured: of the slowest push with
empty caches and an empty branch predictor, and as a part of the time between two samples at 480 MHz. Bytes of flash are
code and tables; RAM is what `mcg_sections_init` fills with copies of hot ones (`--optimize ram` leaves them in flash);
state is the caller's, for each stream of samples. Made by `benchmarks/pipelines.py`.

| example | results | instructions, mean | with a result, at most | without, at most | cycles, at most | of the period \
| flash | RAM | state | stack |
|---|---|---|---|---|---|---|---|---|---|---|
"""


def row(name: str, folder: Path) -> str:
    """One line of the table."""
    file, count, rate = CHAINS[name]
    source = EXAMPLES / name
    mcugen.export(source / f"{name}.toml", folder / name, calib=source / file)
    export, board, compiler = open_folder(folder / name), load_board("stm32h743"), find_cross_compiler()
    model, machine = export.board_model(), export.references().machine
    x = np.load(source / file)[:count]
    image = build_image(model, board, compiler)
    calls = EmulatedBoard(image, board).calls(model, x)
    (want,), status = respond(machine, {machine.inputs[0]: x})
    assert calls.y.tobytes() == want.tobytes()
    assert np.array_equal(calls.status, status)
    due = status == OK
    profile = measure(model, machine.ops, board, image, x, compiler.kind)
    rest = f"{int(calls.instructions[~due].max()):,}" if not due.all() else "-"
    period = board.core.clock_hz / rate
    return (
        f"| {name} | {int(due.sum()):,} of {len(x):,} pushes | {profile.mean:,.0f} | {profile.largest:,} | {rest} "
        f"| {profile.cycles.worst:,.0f} | {100 * profile.cycles.worst / period:.2g} % | {profile.flash:,} "
        f"| {profile.ram:,} | {profile.state:,} | {profile.stack:,} |"
    )


def main() -> None:
    """Measure, write the table."""
    lines = []
    with tempfile.TemporaryDirectory() as folder:
        for name in CHAINS:
            lines.append(row(name, Path(folder)))
            print(lines[-1], flush=True)
    RESULT.write_text(HEAD + "\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
