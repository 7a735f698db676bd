"""The int16 ops: against big integers and real arithmetic, and the emitted C bit for bit."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from plain_rig import LOC, Case, check_board, check_c, i8, ints

from mcugen.core.types import DType, QParams, TensorType
from mcugen.errors import InternalError
from mcugen.nn.ops.qadd16 import QAdd16, QMul16, add16_of
from mcugen.nn.ops.qconv16 import QConv16
from mcugen.nn.ops.qdense16 import QDense16
from mcugen.nn.ops.qrescale import QRescale, rescale_of
from mcugen.nn.ops.qsoftmax16 import SOFTMAX16_PARAMS, QSoftmax16, softmax16_table
from mcugen.nn.ops.qtable16 import QTable16, table16_of
from mcugen.nn.requant import Requant, requant_of
from mcugen.nn.requant64 import requantize64
from mcugen.nn.source import Conv

X, Y = ("x",), ("y",)


def i16(shape: tuple[int, ...], scale: float = 0.01) -> TensorType:
    return TensorType(shape, DType.I16, QParams(scale))


def wide(seed: int, n: int) -> np.ndarray:
    return ints(seed, n, -32768, 32767, np.int16)


def limits(factor: object) -> Requant:
    return requant_of(factor, 0, -32768, 32767)  # type: ignore[arg-type]


def exact(acc: int, m: int, s: int, r: Requant) -> int:
    return min(max(((acc * m + (1 << (s - 1))) >> s) + r.zero_point, r.low), r.high)


def test_requantize64_is_the_big_integer_value() -> None:
    rng = np.random.default_rng(0)
    acc = np.concatenate(
        [
            rng.integers(-(1 << 47) + 1, 1 << 47, 500),
            rng.integers(-(1 << 33), 1 << 33, 500),
            [0, 1, -1, (1 << 47) - 1, 1 - (1 << 47), 1 << 31, (1 << 31) - 1, -(1 << 31), -(1 << 31) - 1],
        ]
    )
    for shift in range(1, 63):
        for m in (0, 1 << 30, (1 << 31) - 1, int(rng.integers(1 << 30, 1 << 31))):
            r = Requant(np.array([m], np.int32), np.array([shift], np.int32), -3, -32768, 32000)
            assert requantize64(acc, r).tolist() == [exact(a, m, shift, r) for a in acc.tolist()]
    with pytest.raises(InternalError, match="47 bits"):
        requantize64(np.array([1 << 47]), limits(0.1))


def conv(seed: int, groups: int = 1, **change: object) -> QConv16:
    rng = np.random.default_rng(seed)
    c, oc = 4 * groups if groups < 3 else groups, 2 * groups
    fields: dict[str, object] = {
        "in_shape": (c, 7, 5),
        "out_shape": (oc, 4, 5),
        "weight": rng.integers(-127, 128, (oc, 3, 2, c // groups)).astype(np.int8),
        "bias": rng.integers(-(1 << 34), 1 << 34, oc),
        "in_zp": 0,
        "requant": limits(rng.uniform(1e-4, 3e-3, oc)),
        "stride": (2, 1),
        "pads": (1, 0, 1, 1),
        "dilation": (1, 1),
        "in_planar": seed % 2 == 0,
        "out_planar": seed % 3 == 0,
        "groups": groups,
    }
    return QConv16(X, Y, LOC, **(fields | change))  # type: ignore[arg-type]


def test_conv_is_the_source_conv_on_integers() -> None:
    for seed, groups in enumerate((1, 2, 3, 1)):
        op = conv(seed, groups)
        op.check({"x": i16(op.in_physical), "y": i16(op.out_physical)})
        x = wide(seed, 2 * int(np.prod(op.in_shape))).reshape(2, *op.in_physical)
        float_conv = Conv(
            X, Y, LOC, op.weight.transpose(0, 3, 1, 2).astype(np.float64), np.zeros(op.out_shape[0]),
            op.stride, op.dilation, op.pads, groups,
        )  # fmt: skip
        # Sums below 2^24 are exact in the float32 results of the source op.
        small = (x >> 6).astype(np.int16)
        sums = float_conv.eval(op.image(small))[0].astype(np.int64)
        assert np.abs(sums).max() < 1 << 24
        expected = requantize64(sums + op.bias[:, None, None], op.requant, 1)
        np.testing.assert_array_equal(op.eval(small)[0], op.layout(expected))


def test_long_sums_do_not_overflow(tmp_path: Path) -> None:
    weight = np.full((2, 2048), 127, np.int8)
    weight[1, ::2] = -127
    op = QDense16(X, Y, LOC, weight, np.array([5, 1 << 40]), 0, limits([2.0**-19, 2.0**-26]))
    x = np.full(2048, 32767, np.int16)
    x[1::2] = -32767
    full = np.full(2048, -32768, np.int16)
    for row in (x, full):
        acc = [sum(int(w) * int(v) for w, v in zip(r, row, strict=True)) for r in weight]
        expected = [
            exact(a + int(b), int(op.requant.multiplier[i]), int(op.requant.shift[i]), op.requant)
            for i, (a, b) in enumerate(zip(acc, op.bias, strict=True))
        ]
        assert op.eval(row[None])[0][0].tolist() == expected
    check_c([Case(op, (x,)), Case(op, (full,))], tmp_path)


def test_add_mul_rescale_table_against_real_numbers() -> None:
    a, b = wide(1, 5000), wide(2, 5000)
    q_a, q_b, q_out = QParams(0.003), QParams(0.0001), QParams(0.005)
    for sign in (1, -1):
        op = QAdd16(("a", "b"), Y, LOC, 5000, *add16_of(q_a, q_b, q_out, sign=sign))
        real = np.clip((a * q_a.scale + sign * b.astype(float) * q_b.scale) / q_out.scale, -32768, 32767)
        assert np.abs(op.eval(a[None], b[None])[0][0] - real).max() <= 0.5 + 2.0**-7
    mul = QMul16(("a", "b"), Y, LOC, 5000, limits(2.0**-15))
    real = np.clip(a.astype(float) * b / 32768, -32768, 32767)
    assert np.abs(mul.eval(a[None], b[None])[0][0] - real).max() <= 0.5
    down = QRescale(X, Y, LOC, 5000, DType.I16, DType.I8, *rescale_of(QParams(0.001), QParams(0.25, 7), DType.I8))
    assert np.abs(down.eval(a[None])[0][0] - np.clip(a * 0.004 + 7, -128, 127)).max() <= 0.5 + 1e-4
    table, error = table16_of(np.tanh, QParams(8 / 32768), QParams(1 / 32768))
    assert error < 2.0
    found = QTable16(X, Y, LOC, 5000, table).eval(a[None])[0][0]
    assert np.abs(found - 32768 * np.tanh(a * (8 / 32768))).max() <= error + 1e-6


@pytest.mark.parametrize("scale", [1e-5, 6e-4, 0.01, 1.0])
def test_softmax_within_a_unit(scale: float) -> None:
    op = QSoftmax16(X, Y, LOC, 3, 9, softmax16_table(QParams(scale)))
    op.check({"x": i16((3, 9), scale), "y": TensorType((3, 9), DType.I16, SOFTMAX16_PARAMS)})
    x = wide(5, 27).reshape(1, 3, 9) // 7
    e = np.exp((x - x.max(axis=2, keepdims=True)) * scale)
    real = np.minimum(32768 * e / e.sum(axis=2, keepdims=True), 32767)
    assert np.abs(op.eval(x.astype(np.int16))[0] - real).max() <= 0.5 + 32768 * 1.5 * 10 * 2.0**-23


def random_conv(seed: int) -> Case:
    """Pointwise, grouped, depthwise, odd sizes, all at the ends of their types now and then."""
    rng = np.random.default_rng(seed)

    def pick(low: int, high: int) -> int:
        return int(rng.integers(low, high + 1))

    kind, groups = seed % 4, pick(1, 3)
    inside = (4 * pick(1, 5), pick(1, 7), 1, 1)[kind]
    groups = (1, groups, pick(1, 9), groups)[kind]
    kernel, dilation, stride, pads = (1, 1), (1, 1), (1, 1), (0, 0, 0, 0)
    if kind > 0:
        kernel, stride = (pick(1, 5), pick(1, 6)), (pick(1, 2), pick(1, 3))
        dilation, pads = (pick(1, 2), pick(1, 2)), (pick(0, 3), pick(0, 5), pick(0, 3), pick(0, 3))
    out = groups * pick(1, 5)
    size = [pick(1, 9) + max(0, (k - 1) * d + 1 - b) for k, d, b in zip(kernel, dilation, pads[:2], strict=True)]
    room = [n + pads[i] + pads[i + 2] - (kernel[i] - 1) * dilation[i] - 1 for i, n in enumerate(size)]
    shape = [n // s + 1 for n, s in zip(room, stride, strict=True)]
    low = 127 if seed % 3 == 0 else -128
    weight = rng.integers(low, 128, (out, *kernel, inside)).astype(np.int8)
    op = QConv16(
        X, Y, LOC, (inside * groups, size[0], size[1]), (out, shape[0], shape[1]), weight,
        rng.integers(-(1 << 34), 1 << 34, out), 0, limits(rng.uniform(1e-4, 3e-3, out)), stride, pads, dilation,
        bool(pick(0, 1)), bool(pick(0, 1)), groups,
    )  # fmt: skip
    op.check({"x": i16(op.in_physical), "y": i16(op.out_physical)})
    x = np.full(op.in_physical, 32767, np.int16) if seed % 3 == 0 else wide(seed, int(np.prod(op.in_shape)))
    return Case(op, (x.reshape(op.in_physical),))


def test_random_convs(tmp_path: Path) -> None:
    cases = [random_conv(seed) for seed in range(80)]
    many = replace(conv(0), weight=np.full((2, 11, 11, 4), -128, np.int8), in_shape=(4, 11, 11), out_shape=(2, 1, 1))
    many = replace(many, stride=(1, 1), pads=(0, 0, 0, 0))  # 484 products of the largest magnitude
    cases.append(Case(many, (np.full(many.in_physical, -32768, np.int16),)))
    edge = replace(many, weight=np.full((4, 16, 16, 1), -128, np.int8), in_shape=(4, 16, 16), out_shape=(4, 1, 1))
    edge = replace(edge, groups=4, bias=np.zeros(4, np.int64), requant=limits(2.0**-16))  # 256 of them, depthwise
    cases.append(Case(edge, (np.full(edge.in_physical, -32768, np.int16),)))
    check_c(cases, tmp_path)
    check_board(cases, tmp_path)


def test_emitted_c(tmp_path: Path) -> None:
    cases = []
    for seed, groups in enumerate((1, 2, 3, 1, 5, 1)):
        op = conv(seed, groups)
        cases.append(Case(op, (wide(seed, int(np.prod(op.in_shape))).reshape(op.in_physical),)))
    far = conv(3, out_shape=(2, 3, 2), stride=(1, 3), pads=(0, 2, 0, 2), dilation=(2, 1))
    cases.append(Case(far, (wide(9, 140).reshape(far.in_physical),)))
    rng = np.random.default_rng(3)
    for k in (1, 255, 256, 257, 600):
        weight = rng.integers(-128, 128, (3, k)).astype(np.int8)
        bias = rng.integers(-(1 << 44), 1 << 44, 3)
        cases.append(Case(QDense16(X, Y, LOC, weight, bias, 0, limits([1e-9, 1e-5, 0.7])), (wide(k, k),)))
    for i, (sa, sb, so) in enumerate([(0.01, 0.01, 0.02), (0.5, 0.001, 7.0), (0.001, 0.5, 0.001)]):
        op = QAdd16(("a", "b"), Y, LOC, 99, *add16_of(QParams(sa), QParams(sb), QParams(so), sign=1 - 2 * (i % 2)))
        cases.append(Case(op, (wide(i, 99), wide(i + 5, 99))))
        cases.append(Case(QMul16(("a", "b"), Y, LOC, 99, limits(sa * sb / so)), (wide(i, 99), wide(i + 5, 99))))
    tables = [np.tanh, lambda x: np.maximum(x, 0), lambda x: 1e9 * x]
    cases += [
        Case(QTable16(X, Y, LOC, 300, table16_of(f, QParams(2e-4), QParams(3e-5))[0]), (wide(7, 300),)) for f in tables
    ]
    for source, target in ((DType.I8, DType.I16), (DType.I16, DType.I8), (DType.I16, DType.I16)):
        q_in = QParams(0.1, -5 if source is DType.I8 else 0)
        for scale in (0.01, 3.0):
            q_out = QParams(scale, 9 if target is DType.I8 else 0)
            op = QRescale(X, Y, LOC, 80, source, target, *rescale_of(q_in, q_out, target))
            cases.append(Case(op, (ints(4, 80, source.min, source.max, source.np.type),)))
    cases += [
        Case(QSoftmax16(X, Y, LOC, r, k, softmax16_table(QParams(s))), (wide(r, r * k).reshape(r, k),))
        for r, k, s in [(3, 9, 1e-3), (1, 1, 1.0), (1, 1000, 1e-6)]
    ]
    check_c(cases, tmp_path)
    check_board(cases, tmp_path)


def test_broken_fields_are_our_bug() -> None:
    op = conv(0)
    types = {"x": i16(op.in_physical), "y": i16(op.out_physical)}
    op.check(types)
    for broken in (
        replace(op, in_zp=1),
        replace(op, groups=3),
        replace(op, bias=op.bias.astype(np.int32)),
        replace(op, bias=op.bias + (1 << 47)),
        replace(op, pads=(0, 0, 0, 0)),
        replace(op, in_planar=not op.in_planar),
        replace(op, weight=op.weight[:, :, :, :3]),
    ):
        with pytest.raises(InternalError, match="QConv16"):
            broken.check(types)
    rescale = QRescale(X, Y, LOC, 5, DType.I8, DType.I8, 0, requant_of([1.0]))
    with pytest.raises(InternalError, match="from int8 to int8"):
        rescale.check({"x": i8(5, QParams(0.1)), "y": i8(5, QParams(0.1))})
