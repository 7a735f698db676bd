"""Exports the nets of a folder, verifies them on host and emulated board, and measures them beside published figures.

    python benchmarks/nets.py MODELS

MODELS holds NAME.onnx, NAME_qdq.onnx and NAME.npz (x, y, y_qdq: inputs, float outputs, outputs of onnxruntime's int8).
The float nets are calibrated on the first 32 rows. Writes ``results/nets.json`` and ``results/nets.md`` beside this
file; exit code 1 if a bit differs. Figures of CMSIS-NN and TFLM in the table were read, not measured here: see FOREIGN.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

import mcugen
from mcugen import exported
from mcugen.core.types import Array
from mcugen.errors import McugenError
from mcugen.exported import open_folder
from mcugen.recipes.references import NetReference
from mcugen.report.profile import profile_json

RESULTS = Path(__file__).parent / "results"
#: CMSIS-NN 7.0 (-Ofast) instructions and TFLM's arena bytes on the same nets, counted on an emulated Cortex-M7.
FOREIGN = {"kws": (7_757_217, 22_820), "vww": (24_474_865, 100_708), "ic": (29_930_456, 54_996), "ad": (579_744, 2_580)}


@dataclass(frozen=True)
class Row:
    """One net. ``flips`` and ``flips_qdq``: rows whose argmax is not the float net's, ours and onnxruntime's int8."""

    net: str
    failure: str = ""
    macs: int = 0
    instructions: float = 0.0
    low: int = 0
    high: int = 0
    flash: int = 0
    arena: int = 0
    stack: int = 0
    rows: int = 0
    flips: int = 0
    flips_qdq: int = -1
    relative_error: float = 0.0
    verified: bool = False


def main() -> None:
    """Measure, write, and judge."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", type=Path)
    folder = parser.parse_args().models
    rows = []
    for path in sorted(folder.glob("*.onnx")):
        rows.append(measure(path))
        print(rows[-1], flush=True)
    write(rows)
    sys.exit(0 if rows and all(r.verified for r in rows) else 1)


def measure(path: Path) -> Row:
    """One net: exported, verified on both targets, run on all its rows, profiled."""
    name = path.stem
    data = np.load(path.with_name(name.removesuffix("_qdq").removesuffix("_folded") + ".npz"))
    with tempfile.TemporaryDirectory() as work:
        calib = Path(work) / "calib.npz"
        np.savez(calib, x=data["x"][:32].astype(np.float32))
        try:
            # A QDQ file keeps its scales; data is needed where it has a layer without.
            mcugen.export(path, Path(work) / "out", name=name, calib=calib)
            return figures(name, Path(work) / "out", data)
        except McugenError as e:
            return Row(name, failure=str(e))


def figures(name: str, out: Path, data: dict[str, Array]) -> Row:
    """What the export computes and costs."""
    exported.verify(out, None, "stm32h743")
    export = open_folder(out)
    refs = export.references()
    assert isinstance(refs, NetReference)
    kind = refs.machine.types[refs.machine.inputs[0]]
    x = data["x"].reshape(-1, *kind.shape).astype(np.float32)
    np.save(out.parent / "x.npy", x)
    y, _ = exported.run(out, out.parent / "x.npy", out.parent / "y.npy")
    tensor = export.manifest["outputs"][0]
    found = ((y.astype(np.float64) - tensor["zero_point"]) * tensor["scale"]).reshape(len(x), -1)
    real = data["y"].reshape(len(x), -1)
    qdq = data["y_qdq"] if "y_qdq" in data and data["y_qdq"].size else None
    np.save(out.parent / "few.npy", x[:2])
    profile = profile_json(exported.profile(out, out.parent / "few.npy"))
    return Row(
        name,
        macs=sum(op["macs"] for op in profile["ops"]),
        instructions=profile["instructions"]["mean"],
        low=profile["cycles"]["low"],
        high=profile["cycles"]["high"],
        flash=profile["flash_bytes"],
        arena=profile["ram_bytes"],
        stack=profile["stack_bytes"],
        rows=len(x),
        flips=flips(found, real),
        flips_qdq=-1 if qdq is None else flips(qdq.reshape(len(x), -1), real),
        relative_error=float(np.abs(found - real).mean() / np.abs(real).mean()),
        verified=True,
    )


def flips(a: Array, b: Array) -> int:
    """Rows whose largest element is another one."""
    return int(np.count_nonzero(a.argmax(axis=1) != b.argmax(axis=1)))


def write(rows: list[Row]) -> None:
    """The table and the figures behind it."""
    RESULTS.mkdir(exist_ok=True)
    lines = [
        "# Nets",
        "",
        "Made by `python benchmarks/nets.py MODELS`: int8, arm-none-eabi-gcc -O2, emulated STM32H743. Every bit",
        "equals the integer reference on host and emulated board. Instructions are counted; cycles are estimated,",
        "not measured. RAM is the arena with input, output and scratch, a few bytes of the runtime, and of small nets",
        "(lenet, mlp) the kernels that run from ITCM. Flips: rows whose argmax differs from the float net's, ours and",
        "that of onnxruntime's own int8 file. Figures of CMSIS-NN 7.0 and TFLM were counted elsewhere in the same way",
        "and are only read here.",
        "",
        "| net | MACs | instructions | per MAC | CMSIS-NN | cycles, estimated | flash | RAM | TFLM arena | stack "
        "| flips | int8 flips | mean error |",
        "|---|---:|---:|---:|---:|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for r in rows:
        if r.failure:
            lines.append(f"| {r.net} | {r.failure} |" + " |" * 11)
            continue
        instructions, arena = FOREIGN.get(r.net.removesuffix("_qdq"), (0, 0))
        theirs = f"{instructions:,} | " if instructions else "- | "
        lines.append(
            f"| {r.net} | {r.macs:,} | {r.instructions:,.0f} | {r.instructions / max(r.macs, 1):.2f} | {theirs}"
            f"{r.low:,} to {r.high:,} | {r.flash:,} | {r.arena:,} | {f'{arena:,}' if arena else '-'} | {r.stack} "
            f"| {r.flips} of {r.rows} | {r.flips_qdq if r.flips_qdq >= 0 else '-'} | {100 * r.relative_error:.2g} % |"
        )
    (RESULTS / "nets.md").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (RESULTS / "nets.json").write_text(json.dumps([asdict(r) for r in rows], indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
