"""Instructions of windows and features on the emulated Cortex-M7: a push on average and at worst, and the state.

    python benchmarks/windows.py

Writes ``results/windows.md`` beside this file. Samples are noise; every push is compared with the integer reference.
"""

from __future__ import annotations

import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import mcugen.features as mf
from mcugen.build import finish
from mcugen.core.op import MachineOp
from mcugen.core.stream import respond
from mcugen.core.types import DType, Loc, Model, Source, TensorType
from mcugen.dsp.lower_features import limits_of
from mcugen.dsp.ops import FWindowFeatures, WindowFeatures
from mcugen.emulate.run import run_on_board
from mcugen.emulate.toolchain import find_cross_compiler
from mcugen.exported import open_folder
from mcugen.recipes.prepared import ExportOptions
from mcugen.target.board import load_board

TESTS = Path(__file__).resolve().parent.parent / "tests"
sys.path[:0] = [str(TESTS), str(TESTS / "stream")]
from stream_ops import prepared  # noqa: E402

RESULT = Path(__file__).parent / "results" / "windows.md"
SETS = {
    "mean": ("mean",),
    "mean, std": ("mean", "std"),
    "min, max": ("min", "max"),
    "all eleven": tuple(k for k in mf.MIN_LENGTH if k not in ("lag", "band_power")),
}


@dataclass(frozen=True)
class Setting:
    """A window of the last ``length`` samples of 12 channels, and the kinds of features of each."""

    kinds: str
    dtype: str
    length: int
    step: int

    def ops(self) -> dict[str, MachineOp]:
        """The op by each strategy that there is for the step."""
        names = [f"tc{i + 1}" for i in range(12)]
        f = mf.Features(self.length, self.step, mf.every(SETS[self.kinds], names), self.dtype, names)
        loc = Loc("benchmark", self.kinds)
        if f.plan is None:
            return {"scan": FWindowFeatures(("x",), ("y",), loc, 12, self.length, self.step, f.specs)}
        shape = (f.signal.dtype, self.length, self.step, limits_of(f.signal), f.plan.items)
        ways = ("stream",) if self.step >= self.length else ("scan", "run")
        return {way: WindowFeatures(("x",), ("y",), loc, *shape, way) for way in ways}


def measured(op: MachineOp, dtype: DType, length: int, step: int) -> tuple[float, int, int]:
    """Instructions a push, on average over whole steps in the steady state, and at most; bytes of state."""
    outputs = op.eval(np.zeros((length, 12), dtype.np))[0]
    types = {"x": TensorType((12,), dtype), "y": TensorType(outputs.shape[1:], DType.of(str(outputs.dtype)))}
    model = Model("win", "machine", ("x",), ("y",), types, (op,), Source("benchmark", "signal", "0" * 64))
    steps = max(4, -(-length // step))
    x = np.random.default_rng(1).normal(0, 3000, (length + steps * step, 12)).astype(dtype.np)
    board = load_board("stm32h743")
    with tempfile.TemporaryDirectory() as folder:
        finish(model, prepared(model, 8), Path(folder) / "out", ExportOptions(verify=False), board, None)
        export = open_folder(Path(folder) / "out")
        run = run_on_board(export.board_model(), x, board, find_cross_compiler())
        state = export.state_bytes
    (want,), _ = respond(model, {"x": x})
    assert run.instructions is not None
    assert run.y.tobytes() == want.tobytes()
    steady = run.instructions[-steps * step :]
    return float(steady.mean()), int(steady.max()), state


def main() -> None:
    """Measure, write the table."""
    settings = [
        Setting(kinds, dtype, 100, step)
        for dtype in ("int16", "int32", "float32")
        for kinds in SETS
        for step in (1, 10, 50, 100)
    ]
    lines = [
        "# Windows of 12 channels and 100 samples, instructions a push on the emulated Cortex-M7",
        "",
        "By strategy; the one that mcugen takes has a star. State in bytes. Made by `benchmarks/windows.py`.",
        "",
        "| samples | features a channel | step | strategy | mean | worst | state |",
        "|---|---|---|---|---|---|---|",
    ]
    for s in settings:
        names = [f"tc{i + 1}" for i in range(12)]
        ops = s.ops()
        chosen = mf.Features(s.length, s.step, mf.every(SETS[s.kinds], names), s.dtype, names).strategy
        for way, op in ops.items():
            mean, worst, state = measured(op, DType.of(s.dtype), s.length, s.step)
            star = "*" if way == chosen else ""
            row = f"| {s.dtype} | {s.kinds} | {s.step} | {way}{star} | {mean:,.0f} | {worst:,} | {state:,} |"
            print(row, flush=True)
            lines.append(row)
    RESULT.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
