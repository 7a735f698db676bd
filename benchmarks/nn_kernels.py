"""Instructions of the int8 kernels on an emulated Cortex-M7, layer by layer, for the shapes of ONNX nets.

    python benchmarks/nn_kernels.py NET.onnx ...                        measure, write results/nn_kernels.md
    python benchmarks/nn_kernels.py NET.onnx ... --json [--flags "-Os"] [--compiler arm-none-eabi-gcc]    print only

Weights are random: no kernel branches on them. Beside each layer stand the instructions per multiply-accumulate of
CMSIS-NN 7.0 (-Ofast) for layers of this type. Outputs are compared with the integer reference.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import unicorn
from onnx import shape_inference

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))
from kernel_cases import conv, dense, depthwise, random_input
from kernel_rigs import Board, HostOp

RESULT = Path(__file__).parent / "results" / "nn_kernels.md"
HEAD = """# Int8 kernels: instructions per layer

Made by `python benchmarks/nn_kernels.py NETS`: {compiler}, {flags}, emulated Cortex-M7
(unicorn {unicorn}); instructions executed, not cycles. Random weights; outputs equal the integer reference. CMSIS-NN:
7.0, -Ofast, instructions per MAC for layers of this type.

"""
#: CMSIS-NN 7.0, instructions of the whole net.
CMSIS = {"kws": 7_757_217, "vww": 24_474_865, "ic": 29_930_456, "ad": 579_744}


@dataclass(frozen=True)
class Layer:
    """One layer of a net: its kind, its op and CMSIS-NN's instructions per MAC for its type."""

    kind: str
    op: HostOp
    cmsis: str


def layers(path: Path) -> list[Layer]:
    """The layers that multiply by weights. Depthwise ones read planar and write interleaved, pointwise before them the
    other way round."""
    model = shape_inference.infer_shapes(onnx.load(str(path)))
    graph = model.graph
    values = [*graph.value_info, *graph.input, *graph.output]
    shape = {v.name: [d.dim_value for d in v.type.tensor_type.shape.dim] for v in values}
    weights = {i.name: list(i.dims) for i in graph.initializer}
    nodes = [n for n in graph.node if n.op_type in {"Conv", "Gemm"}]
    found = []
    for i, node in enumerate(nodes):
        after = nodes[i + 1] if i + 1 < len(nodes) else None
        w = weights[node.input[1]]
        a = {x.name: onnx.helper.get_attribute_value(x) for x in node.attribute}
        if node.op_type == "Gemm":
            found.append(Layer("dense", dense(i, w[1], w[0]), "1.95-2.27"))
            continue
        size = shape[node.input[0]][1:]
        flat = len(size) == 2
        if flat:
            size, w = [size[0], 1, size[1]], [w[0], w[1], 1, w[2]]
        stride = (1, *a["strides"]) if flat else tuple(a["strides"])
        pads = (0, a["pads"][0], 0, a["pads"][1]) if flat else tuple(a["pads"])
        if a["group"] > 1:
            found.append(Layer("depthwise", depthwise(i, size, w[0] // size[0], w[2:], stride, pads), "7.4-9.8"))
            continue
        planar_out = after is not None and is_depthwise(after, weights)
        op = conv(i, size, w[0], w[2:], stride, pads, in_planar=i == 0, out_planar=planar_out)
        found.append(Layer("conv" if w[2] * w[3] > 1 else "pointwise", op, cmsis_per_mac(i, w)))
    return found


def is_depthwise(node: onnx.NodeProto, weights: dict[str, list[int]]) -> bool:
    return node.op_type == "Conv" and weights[node.input[1]][1] == 1 and weights[node.input[1]][0] > 1


def cmsis_per_mac(index: int, w: list[int]) -> str:
    if index == 0:
        return "3.5-6.2"
    if w[2] * w[3] > 1:
        return "1.76-2.33"
    return {8: "6.7", 16: "3.9-4.3", 32: "2.7-3.2"}.get(w[1], "1.80-2.12")


def measure(path: Path, board: Board) -> list[dict[str, Any]]:
    rows = []
    for layer in layers(path):
        x = random_input(layer.op, 1)
        y, instructions = board.run(layer.op, x)
        if not np.array_equal(y, layer.op.eval(x[None])[0][0]):
            raise SystemExit(f"{path.name}: a {layer.kind} layer differs from its reference")
        macs = layer.op.cost().macs
        row = {"kind": layer.kind, "weights": list(layer.op.weight.shape), "macs": macs, "instructions": instructions}
        function = layer.op.function(layer.op.stream())
        row |= {"scratch": layer.op.scratch_bytes, "cmsis_per_mac": layer.cmsis, "function": function}
        rows.append(row)
    return rows


def table(name: str, rows: list[dict[str, Any]]) -> str:
    """Markdown: one line a layer, then the total."""
    lines = [f"## {name}", "", "| layer | weights | MACs | instructions | per MAC | CMSIS-NN | scratch |"]
    lines.append("|---|---|---:|---:|---:|---:|---:|")
    for r in rows:
        weights, per = "x".join(map(str, r["weights"])), r["instructions"] / r["macs"]
        cells = (r["kind"], weights, f"{r['macs']:,}", f"{r['instructions']:,}", f"{per:.2f}", r["cmsis_per_mac"])
        lines.append(f"| {' | '.join(cells)} | {r['scratch']:,} |")
    macs, total = sum(r["macs"] for r in rows), sum(r["instructions"] for r in rows)
    against = f" CMSIS-NN, the whole net: {CMSIS[name]:,}." if name in CMSIS else ""
    return "\n".join(
        [*lines, "", f"Total: {macs:,} MACs, {total:,} instructions, {total / macs:.2f} per MAC.{against}\n"]
    )


def main() -> None:
    parser = argparse.ArgumentParser(description="instructions of the int8 kernels per layer")
    parser.add_argument("nets", nargs="+", type=Path)
    parser.add_argument("--compiler", default="arm-none-eabi-gcc")
    parser.add_argument("--flags", default="-O2")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        board = Board.build(Path(folder), args.compiler, *args.flags.split())
        results = {net.stem: measure(net, board) for net in args.nets}
    if args.json:
        print(json.dumps(results))
        return
    RESULT.write_text(HEAD.format(**_versions(args)) + "\n".join(table(*r) for r in results.items()), encoding="utf-8")


def _versions(args: argparse.Namespace) -> dict[str, str]:
    done = subprocess.run([args.compiler, "--version"], capture_output=True, text=True, check=True)
    return {"compiler": done.stdout.splitlines()[0], "flags": args.flags, "unicorn": unicorn.__version__}


if __name__ == "__main__":
    main()
