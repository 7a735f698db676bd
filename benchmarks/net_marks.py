"""The four MLPerf Tiny reference nets: what they cost with each plan of memory, beside marks and other tools' figures.

    python benchmarks/net_marks.py MODELS

MODELS holds NAME.onnx and NAME.npz (x: inputs) of kws, vww, ic and ad. Each net is exported twice, `--optimize
balanced` and `--optimize ram`, and with limits of flash where it has layers for that (LIMITS), and runs its golden
vectors on the emulated board, where every bit is compared and instructions are counted. Writes
``results/net_marks.md``. Figures of other tools were read, not measured: see READ.
"""

from __future__ import annotations

import argparse
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import mcugen
from mcugen import exported
from mcugen.exported import open_folder
from mcugen.report.profile import profile_json
from mcugen.verify.board import counting_board, run_target

RESULTS = Path(__file__).parent / "results"


@dataclass(frozen=True)
class Read:
    """Figures of other tools on the same nets. Instructions of CMSIS-NN 7.0 (-Ofast) and of onnx2c (float) were counted
    on an emulated Cortex-M7; bytes of TFLM with CMSIS-NN; cycles of X-CUBE-AI 9.0 on an H7A3 board, as published."""

    cmsis: int
    onnx2c: float
    tflm_flash: int
    tflm_arena: int
    board_cycles: float


@dataclass(frozen=True)
class Mark:
    """At most: instructions, arena, flash of the fast plan; arena of the small one, at 1.25 times the instructions."""

    instructions: int
    arena: int
    flash: int
    small_arena: int


READ = {
    "kws": Read(7_757_217, 19.5e6, 105_592, 22_820, 3.17e6),
    "vww": Read(24_474_865, 53.5e6, 384_944, 100_708, 6.66e6),
    "ic": Read(29_930_456, 119.7e6, 146_456, 54_996, 11.44e6),
    "ad": Read(579_744, 1.34e6, 301_760, 2_580, 0.302e6),
}
#: Limits of --max-flash for a net whose convolutions can use it; the others have no layer for it.
LIMITS = {"ic": (None, 120_000, 150_000, 250_000)}
MARKS = {
    "kws": Mark(2_900_000, 17_000, 50_000, 12_000),
    "vww": Mark(5_000_000, 66_000, 90_000, 52_000),
    "ic": Mark(11_500_000, 54_000, 110_000, 30_000),
    "ad": Mark(280_000, 2_200, 300_000, 2_000),
}


@dataclass(frozen=True)
class Cost:
    """One export. ``ram``: the arena, input and output in it, and a few bytes of the runtime. ``cycles``: estimated,
    lowest and highest, caches warm and cold (docs/profile.md)."""

    instructions: float
    flash: int
    ram: int
    cycles: tuple[float, float]


def main() -> None:
    """Measure and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", type=Path)
    folder = parser.parse_args().models
    rows = {name: (measure(folder, name, "balanced"), measure(folder, name, "ram")) for name in MARKS}
    limits = {name: {n: measure(folder, name, "balanced", n) for n in LIMITS[name]} for name in LIMITS}
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "net_marks.md").write_text(text(rows) + flash_text(limits), encoding="utf-8")


def measure(folder: Path, name: str, optimize: str, max_flash: int | None = None) -> Cost:
    """Exported, every golden vector equal on the emulated board, instructions counted."""
    x = np.load(folder / f"{name}.npz")["x"]
    with tempfile.TemporaryDirectory() as work:
        calib, out = Path(work) / "calib.npz", Path(work) / "out"
        np.savez(calib, x=x[:32].astype(np.float32))
        mcugen.export(folder / f"{name}.onnx", out, name=name, calib=calib, optimize=optimize, max_flash=max_flash)
        exported.verify(out, None, "stm32h743")
        export = open_folder(out)
        model, board = export.board_model(), counting_board("stm32h743")
        rows = next(t.data for t in export.golden().tensors if t.role == "input")[:4]
        run, _ = run_target(model, rows, board.name, None, "-O2")
        assert run.instructions is not None  # counting_board refuses others
        home = board.home.name
        flash = run.model_bytes.get(home, 0)
        ram = sum(n for r, n in run.model_bytes.items() if r != home)
        np.save(Path(work) / "few.npy", x[:2].astype(np.float32))
        cycles = profile_json(exported.profile(out, Path(work) / "few.npy"))["cycles"]
        return Cost(float(run.instructions.mean()), flash, ram, (cycles["low"], cycles["high"]))


def text(rows: dict[str, tuple[Cost, Cost]]) -> str:
    """The tables."""
    lines = [
        "# Nets: marks, and other tools",
        "",
        "Made by `python benchmarks/net_marks.py MODELS`. Measured here: int8, arm-none-eabi-gcc -O2, emulated",
        "STM32H743, every bit equal to the integer reference on host and board; instructions are counted. RAM is the",
        "arena with input, output and scratch, and a few bytes of the runtime. A mark that is missed is followed by",
        "how far.",
        "",
        "| net | instructions | mark | RAM | mark | flash | mark | RAM, `--optimize ram` | mark | its instructions |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for name, (fast, small) in rows.items():
        m = MARKS[name]
        price = small.instructions / fast.instructions
        cells = (
            beside(fast.instructions, m.instructions),
            beside(fast.ram, m.arena),
            beside(fast.flash, m.flash),
            beside(small.ram, m.small_arena),
            f"{small.instructions:,.0f} ({100 * (price - 1):+.0f} %)",
        )
        lines.append(f"| {name} | {' | '.join(cells)} |")
    lines += [
        "",
        "Read elsewhere, not measured here: CMSIS-NN 7.0 (-Ofast) and onnx2c (float) counted on an emulated Cortex-M7,",
        "flash and arena of TFLM with CMSIS-NN (input and output are in it, as in ours), and the best published",
        "cycles, X-CUBE-AI 9.0 on an H7A3 board. Ours are estimated for the H743, 35 a line from flash: ad, whose",
        "weights pass the cache once, waits for them half of the time.",
        "",
        "| net | ours | CMSIS-NN | times fewer | onnx2c | our flash | TFLM flash | our RAM | TFLM arena "
        "| our cycles, millions | published |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|---|---:|",
    ]
    for name, (fast, _) in rows.items():
        r = READ[name]
        lines.append(
            f"| {name} | {fast.instructions:,.0f} | {r.cmsis:,} | {r.cmsis / fast.instructions:.2f} | {r.onnx2c:,.0f} "
            f"| {fast.flash:,} | {r.tflm_flash:,} | {fast.ram:,} | {r.tflm_arena:,} "
            f"| {fast.cycles[0] / 1e6:.2f} to {fast.cycles[1] / 1e6:.2f} | {r.board_cycles / 1e6:.2f} |"
        )
    return "\n".join(lines) + "\n"


def flash_text(limits: dict[str, dict[int | None, Cost]]) -> str:
    """The table of what more flash gives."""
    lines = [
        "",
        "More flash for fewer instructions (QWinograd in docs/numerics_nn.md), every bit as before:",
        "",
        "| net | `--max-flash` | instructions | flash | RAM | cycles, estimated, millions |",
        "|---|---:|---:|---:|---:|---|",
    ]
    for name, costs in limits.items():
        for limit, c in costs.items():
            given = "-" if limit is None else f"{limit:,}"
            cycles = f"{c.cycles[0] / 1e6:.2f} to {c.cycles[1] / 1e6:.2f}"
            lines.append(f"| {name} | {given} | {c.instructions:,.0f} | {c.flash:,} | {c.ram:,} | {cycles} |")
    return "\n".join(lines) + "\n"


def beside(found: float, mark: int) -> str:
    """A figure, its mark, and by how much it is missed."""
    missed = f" (missed by {100 * (found / mark - 1):.1f} %)" if found > mark else ""
    return f"{found:,.0f} | {mark:,}{missed}"


if __name__ == "__main__":
    main()
