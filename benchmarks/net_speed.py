"""How long the export of nets takes: a float file of 10 MB, and a net with calibration on 32 images.

    python benchmarks/net_speed.py                 the net of 10 MB only
    python benchmarks/net_speed.py MODELS          and MODELS/vww.onnx, calibrated on 32 rows of MODELS/vww.npz

The large net is made on the spot: six convolutions, residual sums and three dense layers, 2.7 million float32 weights,
a 2 x 32 x 32 image. Each export is a process of its own, verification on the host included; CPU seconds and peak memory
are those of the process and of the compiler that it calls. Results: benchmarks/results/net_speed.{json,md}. Exit code 1
where an export takes 60 s of CPU or more.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

RESULTS = Path(__file__).resolve().parent / "results"
CPU_SECONDS = 60.0
CHANNELS, SIDE, HIDDEN, CLASSES = 96, 32, 1400, 100


@dataclass(frozen=True, slots=True)
class Row:
    """One export; ``peak_bytes`` is the largest resident set of the process or its compiler."""

    net: str
    command: str
    file_bytes: int
    exit_code: int
    cpu_seconds: float
    wall_seconds: float
    peak_bytes: int
    error: str = ""


def large_net() -> onnx.ModelProto:
    """About 10 MB of float32 weights."""
    rng = np.random.default_rng(0)
    constants: dict[str, np.ndarray] = {}

    def weight(*shape: int) -> str:
        name = f"w{len(constants)}"
        constants[name] = rng.normal(0, np.sqrt(2 / np.prod(shape[1:])), shape).astype(np.float32)
        return name

    nodes = [helper.make_node("Conv", ["x", weight(CHANNELS, 2, 3, 3)], ["a0"], strides=[2, 2], pads=[1] * 4)]
    value = "a0"
    for i in range(5):
        nodes += [
            helper.make_node("Relu", [value], [f"r{i}"]),
            helper.make_node("Conv", [f"r{i}", weight(CHANNELS, CHANNELS, 3, 3)], [f"c{i}"], pads=[1] * 4),
            helper.make_node("Add", [f"c{i}", f"r{i}"], [f"s{i}"]),
        ]
        value = f"s{i}"
    nodes += [
        helper.make_node("AveragePool", [value], ["p"], kernel_shape=[4, 4], strides=[4, 4]),
        helper.make_node("Flatten", ["p"], ["f"]),
        helper.make_node("Gemm", ["f", weight(HIDDEN, CHANNELS * 16)], ["h"], transB=1),
        helper.make_node("Relu", ["h"], ["hr"]),
        helper.make_node("Gemm", ["hr", weight(CLASSES, HIDDEN)], ["z"], transB=1),
        helper.make_node("Gemm", ["z", weight(10, CLASSES)], ["y"], transB=1),
    ]
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 2, SIDE, SIDE])]
    outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 10])]
    tensors = [numpy_helper.from_array(v, k) for k, v in constants.items()]
    graph = helper.make_graph(nodes, "large", inputs, outputs, tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def measure(name: str, path: Path, calib: Path, work: Path, *options: str) -> Row:
    """One export in a process of its own."""
    out = work / f"out_{name}{len(list(work.iterdir()))}"
    arguments = ["export", str(path), "-o", str(out), "--name", "net", "--calib", str(calib), *options]
    start = time.monotonic()
    with subprocess.Popen(
        [sys.executable, "-m", "mcugen", *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        error = process.stderr.read().strip()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    wall = time.monotonic() - start
    cpu, code = usage.ru_utime + usage.ru_stime, process.returncode
    command = f"export {path.name} --calib {calib.name} {' '.join(options)}".strip()
    shown = error.splitlines()[-1] if code and error else ""
    return Row(name, command, path.stat().st_size, code, cpu, wall, usage.ru_maxrss * 1024, shown)


def main() -> None:
    """Measure, write, and judge."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", type=Path, nargs="?")
    parser.add_argument("--no-save", action="store_true")
    arguments = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        onnx.save(large_net(), work / "large.onnx")
        x = np.random.default_rng(1).normal(0, 1, (32, 2, SIDE, SIDE)).astype(np.float32)
        np.savez(work / "large.npz", x=x)
        # Its weights fit the flash of no such part beside a program; --board none asks for the C only.
        rows.append(measure("large", work / "large.onnx", work / "large.npz", work, "--board", "none"))
        if arguments.models is not None:
            np.savez(work / "vww.npz", x=np.load(arguments.models / "vww.npz")["x"][:32].astype(np.float32))
            for options in ((), ("--calib-method", "mse")):
                rows.append(measure("vww", arguments.models / "vww.onnx", work / "vww.npz", work, *options))
    for row in rows:
        print(row)
    if not arguments.no_save:
        write(rows)
    sys.exit(0 if all(r.exit_code == 0 and r.cpu_seconds < CPU_SECONDS for r in rows) else 1)


def write(rows: list[Row]) -> None:
    """The table and the figures behind it."""
    RESULTS.mkdir(exist_ok=True)
    lines = [
        "# How long nets take",
        "",
        "Made by `python benchmarks/net_speed.py MODELS`: exports as processes of their own, verified on the host, one",
        f"core of {platform.machine()}. Limit: 60 s of CPU. The large net is made on the spot; vww is calibrated on 32",
        "images.",
        "",
        "| net | command | file MB | CPU s | wall s | peak MB |",
        "|---|---|---:|---:|---:|---:|",
    ]
    for r in rows:
        sizes = f"{r.file_bytes / 1e6:.1f} | {r.cpu_seconds:.1f} | {r.wall_seconds:.1f} | {r.peak_bytes / 1e6:.0f}"
        lines.append(f"| {r.net} | `{r.command}` | {sizes} |")
    (RESULTS / "net_speed.md").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (RESULTS / "net_speed.json").write_text(json.dumps([asdict(r) for r in rows], indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
