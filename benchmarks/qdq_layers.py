"""Holds each layer of int8 QDQ files against onnxruntime, on onnxruntime's own inputs of that layer.

    python benchmarks/qdq_layers.py MODELS

MODELS holds NAME_qdq.onnx and NAME.npz (x: inputs). onnxruntime runs with graph optimizations off; the integers of
each of its tensors are fed into the reference of the machine op that reads them, and what that gives is compared with
the next tensor. Writes ``results/qdq_layers.json`` and ``results/qdq_layers.md`` beside this file; exit code 1 if a
layer is off by more than one unit, or in more than 0.01 % of its values (one value in a small layer), exact ties apart.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np
import onnx
import onnxruntime

import mcugen
from mcugen.core.passes import run_passes
from mcugen.core.types import Array, Model, QParams
from mcugen.nn.passes import FLOAT_STEPS
from mcugen.nn.quantize.quantize import Quantized, quantize
from mcugen.nn.quantize.scheme import Fused, fuse
from mcugen.nn.source import Binary, Conv, Dense, FakeQuant, GlobalPool, NetOp, Pool, Reduce

RESULTS = Path(__file__).parent / "results"
_ROWS = 16
#: Of the values of a layer.
_SHARE = 1e-4
#: A real result this near to the middle between two integers is an exact tie: float64 holds it to about 1e-12.
_TIE = 1e-9


@dataclass(frozen=True)
class Layer:
    """One layer: ``values`` compared, of which ``differ``, by at most ``largest``; ``ties`` of them are exact ties."""

    name: str
    op: str
    values: int
    differ: int
    ties: int
    largest: int

    @property
    def fine(self) -> bool:
        """Whether the layer keeps the limits."""
        return self.largest <= 1 and self.differ - self.ties <= max(1, int(_SHARE * self.values))


@dataclass(frozen=True)
class Net:
    """One file."""

    net: str
    rows: int
    layers: list[Layer] = field(default_factory=list)


def main() -> None:
    """Compare, write, and judge."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", type=Path)
    folder = parser.parse_args().models
    nets = []
    for path in sorted(folder.glob("*_qdq.onnx")):
        x = np.load(path.with_name(path.stem.removesuffix("_qdq") + ".npz"))["x"][:_ROWS].astype(np.float32)
        nets.append(Net(path.stem, len(x), compare(path, x)))
        print(text_of(nets[-1]), flush=True)
    write(nets)
    sys.exit(0 if nets and all(v.fine for n in nets for v in n.layers) else 1)


def compare(path: Path, x: Array) -> list[Layer]:
    """Every layer of a QDQ file on inputs ``x`` (N, *shape without batch axis)."""
    source = run_passes(mcugen.load(path), FLOAT_STEPS, None)
    quantized = quantize(source, None)
    marks = {op.outputs[0]: op for op in source.ops if isinstance(op, FakeQuant)}
    real = tensors_of(onnx.load(path), tuple(marks), x)
    theirs: dict[str, Array] = {}
    for value, array in real.items():
        place = _place(quantized, value, marks[value])
        if place is not None:
            # The same memory may have several names: a Reshape is only another reading.
            theirs.setdefault(quantized.stored[place].name, integers(array, marks[value], quantized, place))
    exact = _Exact(source, marks, real)
    env = {v: theirs[v] for v in quantized.machine.inputs}
    layers = []
    for op in quantized.machine.ops:
        for name, found in zip(op.outputs, op.eval(*(env[v] for v in op.inputs)), strict=True):
            env[name] = found.reshape(len(x), *quantized.machine.types[name].shape)
            if name in theirs:
                layers.append(_layer(op.loc.item, env[name], theirs[name], exact.ties(name, quantized)))
                env[name] = theirs[name]
    return layers


def _place(quantized: Quantized, value: str, mark: FakeQuant) -> str | None:
    """The source value that holds the integers of ``mark``: its result, or its operand where a part of a Concat took
    the scale of the whole behind it."""
    for name in (value, mark.inputs[0]):
        stored = quantized.stored.get(name)
        if stored is not None and quantized.machine.types[stored.name].q == QParams(mark.scale, mark.zero_point):
            return name
    return None


def _layer(item: str, found: Array, expected: Array, ties: Array) -> Layer:
    gap = np.abs(found.astype(np.int64) - expected).reshape(-1)
    op, _, name = item.partition(" ")
    differ = gap > 0
    return Layer(name, op, gap.size, int(differ.sum()), int((differ & ties.reshape(-1)).sum()), int(gap.max()))


def tensors_of(model: onnx.ModelProto, names: tuple[str, ...], x: Array) -> dict[str, Array]:
    """The named tensors in onnxruntime, row by row: (N, *shape)."""
    known = {v.name for v in model.graph.output}
    model.graph.output.extend(onnx.helper.make_empty_tensor_value_info(n) for n in names if n not in known)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    full = onnx.shape_inference.infer_shapes(model).SerializeToString()
    session = onnxruntime.InferenceSession(full, options, providers=["CPUExecutionProvider"])
    (entry,) = session.get_inputs()
    shape = [n if isinstance(n, int) else 1 for n in entry.shape]
    rows = [session.run(list(names), {entry.name: row.reshape(shape)}) for row in x]
    return {name: np.stack([r[i] for r in rows]) for i, name in enumerate(names)}


def integers(real: Array, mark: FakeQuant, quantized: Quantized, value: str) -> Array:
    """Dequantized values (N, *shape) as the integers that they stand for, as the machine value has them in memory."""
    q = np.rint(real.astype(np.float64) / mark.scale) + mark.zero_point
    return in_memory(q.astype(np.int8), quantized, value)


def in_memory(array: Array, quantized: Quantized, value: str) -> Array:
    """(N, ...) in the order of the file to the order in memory."""
    stored = quantized.stored[value]
    logical = array.reshape(len(array), *stored.shape)
    return np.ascontiguousarray(logical.transpose(0, *(1 + a for a in stored.order)))


class _Exact:
    """Results of layers in float64 from onnxruntime's integers: which of them lie between two integers."""

    def __init__(self, source: Model, marks: Mapping[str, FakeQuant], real: Mapping[str, Array]) -> None:
        self.steps: dict[str, Fused] = {step.result: step for step in fuse(source)}
        self.source, self.marks, self.real = source, marks, real

    def ties(self, name: str, quantized: Quantized) -> Array:
        """Whether each element of a machine value is an exact tie, as in memory."""
        q = quantized.machine.types[name].q
        step = self.steps.get(name)
        shape = quantized.machine.types[name].shape
        rows = len(next(iter(self.real.values())))
        inputs = [self._input(v) for v in step.op.inputs] if step is not None else [None]
        if step is None or q is None or any(v is None for v in inputs):
            return np.zeros((rows, *shape), bool)
        result = exact_result(step.op, *(v for v in inputs if v is not None))
        if result is None:
            return np.zeros((rows, *shape), bool)
        return in_memory(between_two(np.clip(result, step.low, step.high), q), quantized, name)

    def _input(self, value: str) -> Array | None:
        """The exact real numbers of a value that onnxruntime quantized: integers times scale."""
        shape = self.source.types[value].shape
        for op in self.source.ops:
            if value in op.outputs and not isinstance(op, FakeQuant) and type(op).__name__ in ("Reshape", "Transpose"):
                inner = self._input(op.inputs[0])
                return None if inner is None else np.stack([op.eval(v[None])[0][0] for v in inner])
        if value not in self.marks:
            return None
        mark = self.marks[value]
        steps = np.rint(self.real[value].astype(np.float64) / mark.scale)
        return np.asarray(steps * mark.scale).reshape(-1, *shape)


def between_two(real: Array, q: QParams) -> Array:
    """Whether real numbers lie in the middle between two steps."""
    units = real / q.scale
    return np.asarray(np.abs(units - np.floor(units) - 0.5) < _TIE)


def exact_result(op: NetOp, *args: Array) -> Array | None:
    """A source op in float64, batch axis first; None for ops that give no exact ties."""
    match op:
        case Conv():
            return _conv(op, args[0])
        case Dense():
            weight, bias = weights64(op)
            return np.asarray(args[0] @ weight.T + bias)
        case Binary():
            function = {"add": np.add, "sub": np.subtract, "mul": np.multiply}[op.kind]
            return np.asarray(function(*args))
        case Pool() if op.kind == "avg":
            sums = _windows(args[0], op.kernel, op.stride, op.pads, op.dilation, op.elements(args[0].shape[1:]).shape)
            return np.asarray(sum(v for _, _, v in sums) / op.elements(args[0].shape[1:]))
        case GlobalPool() if op.kind == "avg":
            return np.asarray(args[0].mean(axis=(2, 3), keepdims=True))
        case Reduce():
            return np.asarray(args[0].mean(axis=tuple(a + 1 for a in op.axes), keepdims=op.keepdims))
    return None


def weights64(op: Conv | Dense) -> tuple[Array, Array]:
    """Weights and bias in float64, from the integers where the file has them."""
    weight, bias = op.weight.astype(np.float64), op.bias.astype(np.float64)
    if op.weight_q is not None and op.weight_scale is not None:
        weight = op.weight_q * op.weight_scale.astype(np.float64).reshape(-1, *(1,) * (weight.ndim - 1))
    if op.bias_q is not None and op.bias_scale is not None:
        bias = op.bias_q * op.bias_scale.astype(np.float64)
    return weight, bias


def _conv(op: Conv, x: Array) -> Array:
    weight, bias = weights64(op)
    out, inside, kh, kw = weight.shape
    ((_, oh, ow),) = op.result_shapes(x.shape[1:])
    w = weight.reshape(op.groups, out // op.groups, inside, kh, kw)
    y = np.zeros((len(x), op.groups, out // op.groups, oh * ow))
    for i, j, view in _windows(x, (kh, kw), op.stride, op.pads, op.dilation, (oh, ow)):
        y += w[..., i, j] @ view.reshape(len(x), op.groups, inside, oh * ow)
    return np.asarray(y.reshape(len(x), out, oh, ow) + bias[:, None, None])


def _windows(
    x: Array,
    kernel: tuple[int, int],
    stride: tuple[int, int],
    pads: tuple[int, int, int, int],
    dilation: tuple[int, int],
    size: tuple[int, ...],
) -> list[tuple[int, int, Array]]:
    """For each place of the kernel what it meets: (N, C, OH, OW)."""
    far = [kernel[a] * dilation[a] + stride[a] * size[a] for a in (0, 1)]
    wide = np.pad(x, ((0, 0), (0, 0), (pads[0], far[0]), (pads[1], far[1])))
    found = []
    for i, j in np.ndindex(*kernel):
        y, z = i * dilation[0], j * dilation[1]
        view = wide[:, :, y : y + stride[0] * size[0] : stride[0], z : z + stride[1] * size[1] : stride[1]]
        found.append((i, j, view))
    return found


def text_of(net: Net) -> str:
    """One line a net."""
    values, differ, ties = (sum(getattr(v, f) for v in net.layers) for f in ("values", "differ", "ties"))
    largest = max(v.largest for v in net.layers)
    bad = [v.name for v in net.layers if not v.fine]
    counts = f"{len(net.layers)} layers, {values:,} values, {differ} differ ({ties} exact ties), by at most {largest}"
    return f"{net.net}: {counts}" + (f"; beyond the limits: {', '.join(bad)}" if bad else "")


def write(nets: list[Net]) -> None:
    """The table and the figures behind it."""
    RESULTS.mkdir(exist_ok=True)
    lines = [
        "# QDQ files, layer by layer",
        "",
        f"Made by `python benchmarks/qdq_layers.py MODELS`, onnxruntime {onnxruntime.__version__}, graph optimizations",
        "off. Each layer's integer reference gets onnxruntime's own inputs of that layer; its results are compared",
        "with onnxruntime's. Limits: one unit, 0.01 % of the values of a layer or one value, exact ties apart (a tie",
        "goes up here and to the even number there). Layers without any difference are not listed below.",
        "",
        "| net | rows | layers | values | differ | exact ties | largest |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    for n in nets:
        values, differ, ties = (sum(getattr(v, f) for v in n.layers) for f in ("values", "differ", "ties"))
        largest = max(v.largest for v in n.layers)
        lines.append(f"| {n.net} | {n.rows} | {len(n.layers)} | {values:,} | {differ} | {ties} | {largest} |")
    lines += ["", "| net | layer | op | values | differ | exact ties | largest | within limits |"]
    lines += ["|---|---|---|---:|---:|---:|---:|---|"]
    for n in nets:
        for v in n.layers:
            if v.differ:
                fine = "yes" if v.fine else "no"
                row = f"| {n.net} | {v.name} | {v.op} | {v.values:,} | {v.differ} | {v.ties} | {v.largest} | {fine} |"
                lines.append(row)
    (RESULTS / "qdq_layers.md").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (RESULTS / "qdq_layers.json").write_text(json.dumps([asdict(n) for n in nets], indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
