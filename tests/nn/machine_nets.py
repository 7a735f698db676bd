"""Random nets of machine ops with channels that are constant, pinned by a clamp, or unread."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np

from mcugen.core.op import MachineOp
from mcugen.core.types import Array, DType, Loc, Model, QParams, Source, TensorType, frozen_array
from mcugen.nn.ops.move import padded_copy, strided_copy, strided_slice
from mcugen.nn.ops.pool_window import Windows
from mcugen.nn.ops.qadd import QAdd, add_of
from mcugen.nn.ops.qargmax import QArgMax
from mcugen.nn.ops.qconcat import QConcat
from mcugen.nn.ops.qconv import QConv
from mcugen.nn.ops.qdense import QDense
from mcugen.nn.ops.qdepthwise import QDepthwise
from mcugen.nn.ops.qgate import QGate
from mcugen.nn.ops.qmul import QMul
from mcugen.nn.ops.qpool import pool_of
from mcugen.nn.ops.qscale import QScale, scale_of
from mcugen.nn.ops.qtable import QTable
from mcugen.nn.ops.window import physical
from mcugen.nn.requant import Requant, requant_of

Shape3 = tuple[int, int, int]
LOC = Loc("net", "op")


@dataclass(frozen=True)
class Image:
    """A value, its shape (C, H, W) and how it lies in memory."""

    name: str
    shape: Shape3
    planar: bool
    q: QParams

    @property
    def physical(self) -> tuple[int, ...]:
        return physical(self.shape, self.planar)

    @property
    def count(self) -> int:
        return prod(self.shape)


class Maker:
    """Grows a net. Every method adds an op and returns its result."""

    def __init__(self, rng: np.random.Generator, shape: Shape3, planar: bool = True) -> None:
        self.rng = rng
        self.types: dict[str, TensorType] = {}
        self.ops: list[MachineOp] = []
        self.x = self.image("x", shape, planar, self.scale())

    def scale(self) -> QParams:
        """Scale and zero point of a value; the ends of the type often."""
        zero = int(self.rng.choice([-128, 127, 0, int(self.rng.integers(-128, 128))], p=[0.4, 0.1, 0.1, 0.4]))
        return QParams(float(np.float32(self.rng.uniform(0.02, 0.08))), zero)

    def image(self, name: str, shape: Shape3, planar: bool, q: QParams) -> Image:
        self.types[name] = TensorType(physical(shape, planar), DType.I8, q)
        return Image(name, shape, planar, q)

    def new(self, shape: Shape3, planar: bool, q: QParams) -> Image:
        return self.image(f"v{len(self.ops)}", shape, planar, q)

    def row_values(self, rows: int, shape: tuple[int, ...], dead: float) -> tuple[Array, Array]:
        """Weights (rows, *shape) and biases: rows that are zero, rows that a clamp pins, columns that are not read."""
        weight = self.rng.integers(-127, 128, (rows, *shape))
        weight = np.where(self.rng.random(weight.shape) < 0.2, 0, weight)
        bias = self.rng.integers(-3000, 3000, rows)
        kind = self.rng.random(rows)
        weight[kind < dead / 2] = 0
        pinned = (kind >= dead / 2) & (kind < dead)
        bias[pinned] = self.rng.choice([-(10**7), 10**7], int(pinned.sum()))
        return weight.astype(np.int8), bias.astype(np.int32)

    def requant(self, rows: int, terms: int, q: QParams) -> Requant:
        """Factors that spread sums over the type; clamps like those of ReLU now and then."""
        factors = self.rng.uniform(0.3, 2.0, rows if self.rng.random() < 0.7 else 1) / (127 * np.sqrt(terms))
        relu = self.rng.random() < 0.6
        return requant_of(factors, q.zero_point, q.zero_point if relu else -128, 127)

    def window(self, x: Image, kernel: tuple[int, int]) -> tuple[tuple[int, int], ...]:
        """Stride, pads, dilation and size of the result, of a window that fits."""
        stride = tuple(int(v) for v in self.rng.integers(1, 3, 2))
        dilation = tuple(int(v) for v in self.rng.integers(1, 3, 2))
        spans = [(k - 1) * d + 1 for k, d in zip(kernel, dilation, strict=True)]
        least = [max(0, s - n) for s, n in zip(spans, x.shape[1:], strict=True)]
        before = [int(self.rng.integers(0, s)) for s in spans]
        after = [int(self.rng.integers(0, s)) + m for s, m in zip(spans, least, strict=True)]
        sizes = zip(x.shape[1:], before, after, spans, stride, strict=True)
        size = tuple((n + b + a - s) // t + 1 for n, b, a, s, t in sizes)
        return stride, (before[0], before[1], after[0], after[1]), dilation, size  # type: ignore[return-value]

    def conv(self, x: Image, out: int, kernel: tuple[int, int], dead: float = 0.3) -> Image:
        stride, pads, dilation, size = self.window(x, kernel)
        q = self.scale()
        y = self.new((out, *size), bool(self.rng.random() < 0.5), q)  # type: ignore[arg-type]
        weight, bias = self.row_values(out, (*kernel, x.shape[0]), dead)
        weight[:, :, :, self.rng.random(x.shape[0]) < dead / 3] = 0
        requant = self.requant(out, weight[0].size, q)
        shapes = {"in_shape": x.shape, "out_shape": y.shape, "in_planar": x.planar, "out_planar": y.planar}
        geometry = {"stride": stride, "pads": pads, "dilation": dilation}
        numbers = {"weight": weight, "bias": bias, "in_zp": x.q.zero_point, "requant": requant}
        self.ops.append(QConv((x.name,), (y.name,), LOC, **shapes, **geometry, **numbers))  # type: ignore[arg-type]
        return y

    def depthwise(self, x: Image, multiplier: int, kernel: tuple[int, int], dead: float = 0.2) -> Image:
        stride, pads, dilation, size = self.window(x, kernel)
        q, out = self.scale(), x.shape[0] * multiplier
        y = self.new((out, *size), bool(self.rng.random() < 0.5), q)  # type: ignore[arg-type]
        weight, bias = self.row_values(out, kernel, dead)
        requant = self.requant(out, weight[0].size, q)
        shapes = {"in_shape": x.shape, "out_shape": y.shape, "in_planar": x.planar, "out_planar": y.planar}
        geometry = {"stride": stride, "pads": pads, "dilation": dilation, "multiplier": multiplier}
        numbers = {"weight": weight, "bias": bias, "in_zp": x.q.zero_point, "requant": requant}
        self.ops.append(QDepthwise((x.name,), (y.name,), LOC, **shapes, **geometry, **numbers))  # type: ignore[arg-type]
        return y

    def table(self, x: Image) -> Image:
        """A ReLU-like or constant table, or any."""
        q = self.scale()
        table = np.sort(self.rng.integers(-128, 128, 256))
        kind = self.rng.random()
        table = self.rng.permutation(table) if kind < 0.3 else np.maximum(table, 60) if kind < 0.7 else table
        y = self.new(x.shape, x.planar, q)
        self.ops.append(QTable((x.name,), (y.name,), LOC, x.count, frozen_array(table, np.int8)))
        return y

    def pool(self, x: Image, kind: str, kernel: tuple[int, int]) -> Image:
        kernel = (min(kernel[0], x.shape[1]), min(kernel[1], x.shape[2]))
        size = tuple((n - k) // 2 + 1 for n, k in zip(x.shape[1:], kernel, strict=True))
        q = x.q if kind == "max" else self.scale()
        y = self.new((x.shape[0], *size), x.planar, q)  # type: ignore[arg-type]
        windows = Windows(x.shape, y.shape, kernel, (2, 2))
        self.ops.append(pool_of(((x.name,), (y.name,), LOC), kind, windows, x.planar, x.q, q))
        return y

    def add(self, a: Image, b: Image, sign: int = 1) -> Image:
        """A sum or difference, with a ReLU now and then."""
        q = self.scale()
        low = q.zero_point if self.rng.random() < 0.5 else -128
        swap, table, requant = add_of(a.q, b.q, q, low, 127, sign)
        first, second = (b, a) if swap else (a, b)
        y = self.new(a.shape, a.planar, q)
        operands = ((first.name, second.name), (y.name,), LOC, a.count)
        self.ops.append(QAdd(*operands, table, first.q.zero_point, requant, swap and sign < 0))
        return y

    def mul(self, a: Image, b: Image) -> Image:
        q = self.scale()
        requant = requant_of([a.q.scale * b.q.scale / q.scale], q.zero_point)
        y = self.new(a.shape, a.planar, q)
        operands = ((a.name, b.name), (y.name,), LOC, a.count, a.q.zero_point, b.q.zero_point)
        self.ops.append(QMul(*operands, requant))
        return y

    def gate(self, x: Image) -> Image:
        """Times a factor a channel, made of the mean of the channel."""
        mean = self.pool(x, "avg", x.shape[1:])
        g, q = self.conv(mean, x.shape[0], (1, 1)), self.scale()
        requant = requant_of([x.q.scale * g.q.scale / q.scale], q.zero_point)
        y = self.new(x.shape, x.planar, q)
        pixels = x.shape[1] * x.shape[2]
        sizes = (1, x.shape[0], pixels) if x.planar else (pixels, x.shape[0], 1)
        operands = ((x.name, g.name), (y.name,), LOC)
        self.ops.append(QGate(*operands, *sizes, x.q.zero_point, g.q.zero_point, requant))
        return y

    def affine(self, x: Image) -> Image:
        q, c = self.scale(), x.shape[0]
        scale = np.where(self.rng.random(c) < 0.3, 0.0, self.rng.normal(0, 1, c))
        y = self.new(x.shape, x.planar, q)
        pixels = x.shape[1] * x.shape[2]
        sizes = (1, c, pixels) if x.planar else (pixels, c, 1)
        numbers = scale_of(scale, self.rng.normal(0, 1, c), x.q, q)
        self.ops.append(QScale((x.name,), (y.name,), LOC, *sizes, x.q.zero_point, *numbers))
        return y

    def arranged(self, x: Image, planar: bool) -> Image:
        if x.planar == planar:
            return x
        y = self.new(x.shape, planar, x.q)
        orders = [(0, 1, 2) if p else (1, 2, 0) for p in (x.planar, planar)]
        self.ops.append(strided_copy((x.name,), (y.name,), LOC, x.shape, *orders))
        return y

    def concat(self, a: Image, b: Image) -> Image:
        """Along the channels; the parts take one scale by a table that keeps the integers."""
        b = self.renamed(b, a.q)
        y = self.new((a.shape[0] + b.shape[0], *a.shape[1:]), a.planar, a.q)
        pixels = a.shape[1] * a.shape[2]
        outer, inners = (1, (a.count, b.count)) if a.planar else (pixels, (a.shape[0], b.shape[0]))
        self.ops.append(QConcat((a.name, b.name), (y.name,), LOC, outer, inners))
        return y

    def renamed(self, x: Image, q: QParams) -> Image:
        y = self.new(x.shape, x.planar, q)
        self.ops.append(QTable((x.name,), (y.name,), LOC, x.count, frozen_array(np.arange(-128, 128), np.int8)))
        return y

    def some_channels(self, x: Image, start: int, step: int, n: int) -> Image:
        y = self.new((n, *x.shape[1:]), x.planar, x.q)
        starts, steps = ((start, 0, 0), (step, 1, 1)) if x.planar else ((0, 0, start), (1, 1, step))
        self.ops.append(strided_slice((x.name,), (y.name,), LOC, x.physical, starts, steps, y.physical))
        return y

    def padded(self, x: Image, value: int) -> Image:
        c, h, w = x.shape
        y = self.new((c, h + 1, w + 2), x.planar, x.q)
        before = (0, 1, 1) if x.planar else (1, 1, 0)
        self.ops.append(padded_copy((x.name,), (y.name,), LOC, x.physical, y.physical, before, value))
        return y

    def dense(self, x: Image, out: int, dead: float = 0.3) -> Image:
        """Over all elements of an image."""
        q = self.scale()
        y = self.image(f"v{len(self.ops)}", (out, 1, 1), True, q)
        self.types[y.name] = TensorType((out,), DType.I8, q)
        weight, bias = self.row_values(out, (x.count,), dead)
        requant = self.requant(out, x.count, q)
        self.ops.append(QDense((x.name,), (y.name,), LOC, weight, bias, x.q.zero_point, requant))
        return y

    def argmax(self, x: Image) -> Image:
        y = self.image(f"v{len(self.ops)}", (1, 1, 1), True, x.q)
        self.types[y.name] = TensorType((1,), DType.I32)
        self.ops.append(QArgMax((x.name,), (y.name,), LOC, 1, x.count, 1))
        return y

    def model(self, *outputs: Image) -> Model:
        source = Source("net", "test", "")
        names = tuple(v.name for v in outputs)
        return Model("net", "machine", (self.x.name,), names, self.types, tuple(self.ops), source)


def random_model(seed: int) -> Model:
    """A net of 3 to 10 ops on small images, with branches that meet again."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 7, 3)
    m = Maker(rng, (int(sizes[0]), int(sizes[1]), int(sizes[2])), bool(rng.random() < 0.7))
    pool = [m.conv(m.x, int(rng.integers(2, 9)), (1, 1))]
    for _ in range(int(rng.integers(2, 9))):
        x = pool[int(rng.integers(max(0, len(pool) - 3), len(pool)))]
        pool.append(_step(m, rng, x, pool))
    y = m.dense(pool[-1], 4, 0.1)
    kind = rng.random()
    if kind < 0.2:
        y = m.argmax(m.dense(y, 3, 0.0))
    elif kind < 0.4:
        y = m.dense(y, 3, 0.3)
    outputs = [y]
    if rng.random() < 0.2:
        outputs.append(pool[-1])
    return m.model(*outputs)


def _step(  # noqa: PLR0912
    m: Maker, rng: np.random.Generator, x: Image, pool: list[Image]
) -> Image:
    kernel = (int(rng.integers(1, 4)), int(rng.integers(1, 4)))
    peers = [v for v in pool if v.shape == x.shape]
    peer = m.arranged(peers[int(rng.integers(len(peers)))], x.planar)
    kinds = (
        "conv",
        "point",
        "deep",
        "table",
        "max",
        "avg",
        "add",
        "mul",
        "gate",
        "affine",
        "turn",
        "cat",
        "slice",
        "pad",
    )
    match str(rng.choice(kinds)):
        case "conv":
            return m.conv(x, int(rng.integers(1, 9)), kernel)
        case "point":
            return m.conv(x, int(rng.integers(1, 9)), (1, 1))
        case "deep":
            return m.depthwise(x, int(rng.integers(1, 3)), kernel)
        case "table":
            return m.table(x)
        case "max":
            return m.pool(x, "max", (2, 2))
        case "avg":
            return m.pool(x, "avg", x.shape[1:])
        case "add":
            return m.add(x, peer, int(rng.choice([-1, 1])))
        case "mul":
            return m.mul(x, peer)
        case "gate":
            return m.gate(x)
        case "affine":
            return m.affine(x)
        case "turn":
            return m.arranged(x, not x.planar)
        case "cat":
            return m.concat(x, peer) if x.shape[0] < 12 else m.table(x)
        case "slice":
            start = int(rng.integers(0, x.shape[0]))
            step = int(rng.integers(1, 3))
            return m.some_channels(x, start, step, (x.shape[0] - 1 - start) // step + 1)
        case _:
            return m.padded(x, int(rng.choice([x.q.zero_point, 17])))
