"""Random int8 layers of a given shape, with scales that use the whole output range."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from hypothesis import strategies as st
from kernel_rigs import HostOp, in_shape

from mcugen.core.types import Loc, frozen_array
from mcugen.nn.ops.qconv import QConv
from mcugen.nn.ops.qdense import QDense
from mcugen.nn.ops.qdepthwise import QDepthwise
from mcugen.nn.packing import accumulator_range
from mcugen.nn.requant import Requant, requant_of

HERE = Loc("test", "layer")


def weights(rng: np.random.Generator, shape: Sequence[int], spread: float = 30.0) -> np.ndarray:
    """Bell-shaped, as trained weights are, clipped to +-127."""
    return frozen_array(np.clip(np.rint(rng.normal(0, spread, shape)), -127, 127), np.int8)


def requant_for(rng: np.random.Generator, w: np.ndarray, zero_point: int, low: int = -128, high: int = 127) -> Requant:
    """Factors that spread typical sums over about four times the output range, one per channel."""
    flat = w.reshape(len(w), -1).astype(np.float64)
    typical = 74.0 * np.sqrt((flat**2).sum(1)) + 1.0
    return requant_of(rng.uniform(0.5, 2.0, len(w)) * 120.0 / typical, zero_point, low, high)


def bias_for(rng: np.random.Generator, w: np.ndarray) -> np.ndarray:
    return frozen_array(rng.integers(-3000, 3001, len(w)), np.int32)


def random_input(op: HostOp, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(-128, 128, in_shape(op), dtype=np.int8)


def conv(
    seed: int,
    size: Sequence[int],
    outputs: int,
    window: Sequence[int],
    stride: Sequence[int] = (1, 1),
    pads: Sequence[int] = (0, 0, 0, 0),
    dilation: Sequence[int] = (1, 1),
    *,
    in_planar: bool = False,
    out_planar: bool = False,
    in_zp: int = -3,
    zero_point: int = 4,
    low: int = -128,
    high: int = 127,
    spread: float = 30.0,
) -> QConv:
    rng = np.random.default_rng(seed)
    w = weights(rng, (outputs, *window, size[0]), spread)
    r = requant_for(rng, w, zero_point, low, high)
    out = (outputs, *slid(size, window, stride, pads, dilation))
    return QConv(
        ("x",), ("y",), HERE, three(size), three(out), w, bias_for(rng, w), in_zp, r, (stride[0], stride[1]),
        (pads[0], pads[1], pads[2], pads[3]), (dilation[0], dilation[1]), in_planar, out_planar,
    )  # fmt: skip


def depthwise(
    seed: int,
    size: Sequence[int],
    multiplier: int,
    window: Sequence[int],
    stride: Sequence[int] = (1, 1),
    pads: Sequence[int] = (0, 0, 0, 0),
    dilation: Sequence[int] = (1, 1),
    *,
    in_planar: bool = True,
    out_planar: bool = False,
    in_zp: int = -3,
    zero_point: int = 4,
    low: int = -128,
    high: int = 127,
    spread: float = 60.0,
) -> QDepthwise:
    rng = np.random.default_rng(seed)
    w = weights(rng, (size[0] * multiplier, *window), spread)
    r = requant_for(rng, w, zero_point, low, high)
    out = (len(w), *slid(size, window, stride, pads, dilation))
    return QDepthwise(
        ("x",), ("y",), HERE, three(size), three(out), w, bias_for(rng, w), in_zp, r, (stride[0], stride[1]),
        (pads[0], pads[1], pads[2], pads[3]), (dilation[0], dilation[1]), multiplier, in_planar, out_planar,
    )  # fmt: skip


def dense(
    seed: int,
    inputs: int,
    outputs: int,
    *,
    in_zp: int = -3,
    zero_point: int = 4,
    low: int = -128,
    high: int = 127,
    spread: float = 30.0,
) -> QDense:
    rng = np.random.default_rng(seed)
    w = weights(rng, (outputs, inputs), spread)
    return QDense(("x",), ("y",), HERE, w, bias_for(rng, w), in_zp, requant_for(rng, w, zero_point, low, high))


def three(size: Sequence[int]) -> tuple[int, int, int]:
    return (int(size[0]), int(size[1]), int(size[2]))


def slid(
    size: Sequence[int], window: Sequence[int], stride: Sequence[int], pads: Sequence[int], dilation: Sequence[int]
) -> tuple[int, int]:
    """Rows and columns of the output; 0 or less where the window does not fit."""
    room = [size[1 + i] + pads[i] + pads[2 + i] - (window[i] - 1) * dilation[i] - 1 for i in (0, 1)]
    return (room[0] // stride[0] + 1, room[1] // stride[1] + 1)


def with_extremes(op: HostOp, rng: np.random.Generator, *, at_limit: bool = False) -> HostOp:
    """The op with weights of +-127 and, if ``at_limit``, biases so large that the accumulator just fits int32."""
    w = frozen_array(rng.choice([-127, 127], op.weight.shape), np.int8)
    bias = op.bias
    if at_limit:
        reach = accumulator_range(w, np.zeros(len(w), np.int32), op.in_zp)
        top = rng.integers(0, 2, len(w)).astype(bool)
        bias = frozen_array(np.where(top, (1 << 31) - 1 - reach.high, -(1 << 31) - reach.low), np.int32)
    return replace(op, weight=w, bias=bias)


def inputs_of(op: HostOp, seed: int) -> list[np.ndarray]:
    """Random, both ends, and the ends at random."""
    rng = np.random.default_rng(seed)
    shape = in_shape(op)
    ends = rng.choice(np.array([-128, 127], np.int8), shape)
    return [random_input(op, seed), np.full(shape, -128, np.int8), np.full(shape, 127, np.int8), ends]


@st.composite
def requants(draw: st.DrawFn, channels: int) -> Requant:
    """Any factors that have a shift, zero channels, any clamps."""
    exponents = draw(st.lists(st.integers(-30, 4), min_size=channels, max_size=channels))
    plain = draw(st.booleans())
    factors = [1.37 * 2.0 ** (-6 - e % 4 if plain else e) for e in exponents]
    if draw(st.booleans()):
        factors[0] = 0.0
    low, high = draw(st.sampled_from([(-128, 127), (-128, 127), (0, 127), (-128, 90), (-7, 6)]))
    return requant_of(factors, draw(st.integers(-128, 127)), low, high)


@st.composite
def changed(draw: st.DrawFn, op: HostOp) -> HostOp:
    """The op with other scales, zero points, biases and sometimes extreme weights."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    op = replace(op, in_zp=draw(st.integers(-128, 127)))
    extremes = draw(st.sampled_from(["no", "weights", "limit"]))
    if extremes != "no":
        op = with_extremes(op, rng, at_limit=extremes == "limit")
    if draw(st.booleans()):
        op = replace(op, requant=draw(requants(len(op.weight))))
    return op


_SIDE = st.integers(1, 9)


@st.composite
def windows(draw: st.DrawFn) -> tuple[list[int], list[int], tuple[int, int], list[int], tuple[int, int]]:
    """(C, H, W), window, stride, pads, dilation whose output is not empty."""
    window = [draw(st.integers(1, 5)), draw(st.integers(1, 5))]
    dilation = (draw(st.integers(1, 3)), draw(st.integers(1, 3)))
    pads = [draw(st.integers(0, 4)) for _ in range(4)]
    size = [draw(_SIDE), draw(_SIDE), draw(st.integers(1, 13))]
    for i in (0, 1):
        short = (window[i] - 1) * dilation[i] + 1 - size[1 + i] - pads[i] - pads[2 + i]
        size[1 + i] += max(short, 0)
    return size, window, (draw(st.integers(1, 3)), draw(st.integers(1, 3))), pads, dilation


@st.composite
def convs(draw: st.DrawFn) -> HostOp:
    size, window, stride, pads, dilation = draw(windows())
    if draw(st.integers(0, 3)) == 0:  # pointwise
        window, stride, pads, dilation = [1, 1], (1, 1), [0, 0, 0, 0], (1, 1)
        size[0] = draw(st.integers(1, 40))
    elif draw(st.integers(0, 2)) == 0:  # three kernel columns of whole groups
        size[0], window[1], stride, dilation = 4 * draw(st.integers(1, 4)), 3, (stride[0], 1), (dilation[0], 1)
        size[2] = max(size[2], 3 - pads[1] - pads[3])
    planar = {"in_planar": draw(st.booleans()), "out_planar": draw(st.booleans())}
    seed = draw(st.integers(0, 2**32 - 1))
    return draw(changed(conv(seed, size, draw(st.integers(1, 7)), window, stride, pads, dilation, **planar)))


@st.composite
def depthwises(draw: st.DrawFn) -> HostOp:
    size, window, stride, pads, dilation = draw(windows())
    if draw(st.booleans()):
        window, dilation, stride = [3, 3], (1, 1), (stride[0], min(stride[1], 2))
        size[1], size[2] = max(size[1], 3), max(size[2], 3)
    planar = {"in_planar": draw(st.booleans()), "out_planar": draw(st.booleans())}
    seed = draw(st.integers(0, 2**32 - 1))
    return draw(changed(depthwise(seed, size, draw(st.integers(1, 3)), window, stride, pads, dilation, **planar)))


@st.composite
def denses(draw: st.DrawFn) -> HostOp:
    seed = draw(st.integers(0, 2**32 - 1))
    return draw(changed(dense(seed, draw(st.integers(1, 70)), draw(st.integers(1, 11)))))


def named_cases() -> dict[str, HostOp]:
    """Shapes at which kernels of this kind have failed elsewhere, and the shapes of each fast path's edges."""
    cases: dict[str, HostOp] = {}
    for n, (window, stride) in enumerate([((1, 3), (1, 2)), ((3, 1), (2, 1)), ((1, 7), (2, 2)), ((5, 1), (1, 1))]):
        cases[f"N8 conv {window} stride {stride}"] = conv(n, (3, 9, 11), 4, window, stride, (0, 1, 1, 0))
        cases[f"N8 depthwise {window} stride {stride}"] = depthwise(n, (3, 9, 11), 1, window, stride, (0, 1, 1, 0))
    for m in (1, 2, 3):
        for c in (1, 3, 4, 5, 17):
            cases[f"N10 depthwise {c} channels times {m}"] = depthwise(c, (c, 7, 5), m, (3, 3), (1, 1), (1, 1, 1, 1))
            cases[f"N10 depthwise 5x4 {c} times {m}"] = depthwise(c, (c, 7, 5), m, (5, 4), (2, 1), (2, 1, 2, 2))
    for k in (257, 1024):
        cases[f"N12 pointwise {k} channels"] = conv(k, (k, 1, 4), 3, (1, 1))
        cases[f"N12 pointwise to {k} channels"] = conv(k, (8, 2, 2), k, (1, 1))
        cases[f"N12 dense {k}"] = dense(k, k, 5)
        cases[f"N12 depthwise {k}"] = depthwise(k, (k, 3, 4), 1, (3, 3), (1, 1), (1, 1, 1, 1))
    for w in range(1, 10):
        for stride in (1, 2):
            name = f"depthwise 3x3 width {w} stride {stride}"
            cases[name] = depthwise(w, (2, 4, w), 1, (3, 3), (stride, stride), (1, 1, 1, 1))
    for w in (13, 14, 15, 60, 61, 62, 63, 64):  # where the pitch changes
        cases[f"depthwise 3x3 width {w}"] = depthwise(w, (1, 3, w), 1, (3, 3), (1, 1), (1, 1, 1, 1))
        cases[f"depthwise 3x3 width {w}, any"] = depthwise(w, (1, 3, w), 1, (3, 3), (1, 1), (1, 1, 1, 1), low=-1)
    cases["depthwise 3x3 in strips"] = depthwise(5, (2, 70, 33), 2, (3, 3), (2, 2), (1, 0, 2, 1))
    cases["depthwise 7x7 dilated in strips"] = depthwise(6, (2, 90, 21), 1, (7, 7), (1, 2), (9, 9, 9, 9), (3, 3))
    cases["depthwise only padding to the left"] = depthwise(7, (2, 2, 1), 1, (3, 3), (1, 2), (3, 6, 3, 6))
    cases["conv kernel larger than the input"] = conv(8, (3, 2, 2), 4, (5, 5), (1, 1), (2, 2, 2, 2))
    cases["conv kernel larger, planar"] = conv(8, (3, 2, 2), 4, (5, 5), (1, 1), (2, 2, 2, 2), in_planar=True)
    cases["conv only padding"] = conv(9, (4, 1, 1), 2, (3, 3), (3, 3), (3, 3, 3, 3))
    cases["conv dilated, interleaved"] = conv(10, (5, 9, 9), 3, (3, 3), (1, 1), (2, 2, 2, 2), (2, 2))
    cases["conv taller than its planes"] = conv(10, (3, 3, 8), 3, (2, 1), (1, 1), (0, 0, 0, 0), (2, 1), in_planar=True)
    cases["conv rows dilated, planes of a row"] = conv(2, (2, 1, 4), 1, (1, 1), dilation=(2, 1), in_planar=True)
    cases["conv dilated, planar"] = conv(10, (5, 9, 9), 3, (3, 3), (1, 1), (2, 2, 2, 2), (2, 2), in_planar=True)
    cases["conv one channel to one"] = conv(11, (1, 3, 3), 1, (1, 1))
    for pixels in range(1, 8):
        cases[f"pointwise {pixels} pixels"] = conv(pixels, (12, 1, pixels), 3, (1, 1), out_planar=True)
    for oc in range(1, 6):
        cases[f"conv to {oc} channels"] = conv(oc, (3, 6, 7), oc, (3, 3), (2, 2), (0, 0, 1, 1), in_planar=True)
        cases[f"dense to {oc}"] = dense(oc, 21 + oc, oc)
    cases["conv of many weights, large tiles"] = conv(12, (64, 5, 5), 32, (3, 3), (1, 1), (1, 1, 1, 1))
    for n, planar in enumerate((False, True)):
        cases[f"pointwise with tiles of 18 pixels, {planar}"] = conv(n, (96, 5, 8), 97, (1, 1), out_planar=planar)
        cases[f"the same, any, {planar}"] = conv(n, (96, 5, 8), 97, (1, 1), out_planar=planar, high=126)
    cases |= shared_columns()
    for factor in (0.2499, 0.25, 0.4999, 0.5, 1.0, 300.0):  # shifts 33, 32, 32, 31, 30, 22
        small = replace(dense(3, 9, 4, spread=0.6), requant=requant_of(factor, 4))
        cases[f"dense with the factor {factor}"] = replace(small, bias=frozen_array([1, -1, 0, 2], np.int32))
    cases["conv beyond the packed bound"] = conv(13, (1024, 1, 4), 3, (1, 1), spread=900.0)
    cases["dense beyond the packed bound"] = dense(14, 640, 5, spread=900.0)
    cases["conv with narrow clamps"] = conv(15, (7, 5, 5), 5, (3, 3), (1, 1), (1, 1, 1, 1), low=-100, high=60)
    cases["depthwise with narrow clamps"] = depthwise(16, (4, 5, 5), 1, (3, 3), (1, 1), (1, 1, 1, 1), low=0)
    cases["dense with narrow clamps"] = dense(17, 33, 6, low=-5, high=5)
    return cases


def shared_columns() -> dict[str, HostOp]:
    """Neighbouring pixels that share packed columns, runs that lie side by side, ends of the unrolled loop."""
    cases: dict[str, HostOp] = {}
    for w in range(1, 14):  # three kernel columns: the borders at each place in a block of four pixels
        cases[f"conv nx3 width {w}"] = conv(w, (4, 5, w), 3, (3, 3), (1, 1), (1, 1, 1, 1))
        cases[f"conv nx3 width {w}, wide padding"] = conv(w, (8, 3, w), 2, (2, 3), (1, 1), (3, 4, 2, 3), (2, 1))
    for h, rows, step in ((1, 5, 1), (6, 1, 2), (9, 4, 3), (2, 3, 2)):
        cases[f"conv nx3 of {rows} rows"] = conv(h, (12, h, 9), 5, (rows, 3), (step, 1), (3, 1, 2, 1), out_planar=True)
    cases["conv nx3, any"] = conv(3, (4, 6, 9), 3, (3, 3), (1, 1), (1, 1, 1, 1), low=-128, high=100, spread=900.0)
    cases["conv nx3 in tiles across rows"] = conv(4, (16, 9, 11), 18, (3, 3), (1, 1), (1, 1, 1, 1))
    for n in (12, 13, 14, 24, 25, 26):  # groups: turns of the unrolled loop and where it is entered
        cases[f"pointwise of {n} groups"] = conv(n, (4 * n, 1, 5), 3, (1, 1))
    for n in range(1, 12):  # runs of three bytes, side by side
        cases[f"{n} runs of three"] = conv(n, (n, 1, 9), 2, (1, 3), (1, 1), (0, 1, 0, 1), in_planar=True)
        cases[f"{2 * n} runs of three"] = conv(n, (n, 4, 6), 2, (2, 3), (1, 2), (1, 1, 0, 1), in_planar=True)
    return cases
