"""QTable, QAdd, QMul, QGate, QScale: against real arithmetic, and the emitted C bit for bit."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from math import floor
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from plain_rig import LOC, Case, check_board, check_c, every_pair, i8, ints

from mcugen.core.types import QParams
from mcugen.errors import InternalError, UnsupportedError
from mcugen.nn.ops.qadd import QAdd, add_of
from mcugen.nn.ops.qgate import QGate
from mcugen.nn.ops.qmul import QMul
from mcugen.nn.ops.qscale import QScale, scale_of
from mcugen.nn.ops.qtable import QTable, table_of
from mcugen.nn.requant import requant_of

A, B = every_pair()
SCALES = st.floats(1e-3, 1e2)
ZERO = st.integers(-128, 127)


def added(q_a: QParams, q_b: QParams, q_out: QParams, sign: int = 1, limits: tuple[int, int] = (-128, 127)) -> QAdd:
    swap, table, requant = add_of(q_a, q_b, q_out, *limits, sign)
    first = q_b if swap else q_a
    names = ("b", "a") if swap else ("a", "b")
    return QAdd(names, ("y",), LOC, A.size, table, first.zero_point, requant, negate=swap and sign < 0)


def added_eval(op: QAdd) -> np.ndarray:
    operands = (A, B) if op.inputs == ("a", "b") else (B, A)
    return op.eval(*(x[None] for x in operands))[0][0]


def real(q: np.ndarray, p: QParams) -> np.ndarray:
    return (q.astype(np.float64) - p.zero_point) * p.scale


def assert_rounded(y: np.ndarray, exact: np.ndarray, slack: float) -> None:
    """y is exact rounded, where exact is farther than ``slack`` from a tie; else one of both neighbours."""
    clipped = np.clip(exact, -128, 127)
    assert np.abs(y - clipped).max() <= 0.5 + slack


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize(
    ("q_a", "q_b", "q_out"),
    [
        (QParams(0.052, 3), QParams(0.099, -14), QParams(0.049, 5)),  # another residual add, published as a bug
        (QParams(0.099, -128), QParams(0.052, 127), QParams(0.049, -128)),
        (QParams(1.0, 0), QParams(1.0, 0), QParams(1.0, 0)),
        (QParams(0.5, 7), QParams(1e-6, 7), QParams(300.0, 7)),
        (QParams(1e-7, 7), QParams(0.5, -7), QParams(0.01, 0)),
    ],
)
def test_add_is_the_rounded_sum(q_a: QParams, q_b: QParams, q_out: QParams, sign: int) -> None:
    op = added(q_a, q_b, q_out, sign)
    exact = (real(A, q_a) + sign * real(B, q_b)) / q_out.scale + q_out.zero_point
    # Half a unit of the table, and the multiplier's relative error of 2^-31.
    slack = max(q_a.scale, q_b.scale) / q_out.scale * (2.0**-21 + 510 * 2.0**-31) + 1e-9
    assert_rounded(added_eval(op), exact, slack)


@settings(max_examples=15, deadline=None)
@given(SCALES, SCALES, SCALES, ZERO, ZERO, ZERO, st.sampled_from([1, -1]))
def test_add_over_random_scales(sa: float, sb: float, so: float, za: int, zb: int, zo: int, sign: int) -> None:
    q_a, q_b, q_out = QParams(sa, za), QParams(sb, zb), QParams(so, zo)
    op = added(q_a, q_b, q_out, sign)
    op.check({"a": i8(A.size, q_a), "b": i8(A.size, q_b), "y": i8(A.size, q_out)})
    exact = (real(A, q_a) + sign * real(B, q_b)) / so + zo
    assert_rounded(added_eval(op), exact, max(sa, sb) / so * (2.0**-21 + 510 * 2.0**-31) + 1e-9)


@settings(max_examples=15, deadline=None)
@given(st.lists(st.floats(0.01, 0.1), min_size=3, max_size=3), st.lists(ZERO, min_size=3, max_size=3), st.booleans())
def test_scaled_sums_have_the_same_bits(scales: list[float], zeros: list[int], relu: bool) -> None:
    q_a, q_b, q_out = (QParams(s, z) for s, z in zip(scales, zeros, strict=True))
    op = added(q_a, q_b, q_out, limits=(min(zeros[2], 99), 127) if relu else (-128, 127))
    scaled = op.scaled()
    largest = max(scales[:2]) / scales[2]
    assert scaled is not None or largest > 4  # nearer scales always have it in practice, so that the kernel is fast
    if scaled is not None:
        first, second = (A, B) if op.inputs == ("a", "b") else (B, A)
        sums = first.astype(np.int64) * scaled.unit + scaled.table.astype(np.int64)[second.astype(np.int64) + 128]
        assert np.abs(sums).max() < 1 << 31
        np.testing.assert_array_equal(np.clip(sums >> 20, op.requant.low, op.requant.high), added_eval(op))


def test_sums_without_a_scaled_form() -> None:
    far = QParams(1.0, 0)
    assert added(far, far, QParams(0.01, 0)).scaled() is None  # sums leave int32
    assert added(far, far, QParams(2.0, 0), limits=(-5, 5)).scaled() is not None


@settings(max_examples=15, deadline=None)
@given(st.floats(1e-3, 10.0), ZERO, ZERO, ZERO)
def test_mul_is_the_rounded_product(factor: float, za: int, zb: int, zo: int) -> None:
    op = QMul(("a", "b"), ("y",), LOC, A.size, za, zb, requant_of([factor], zo))
    y = op.eval(A[None], B[None])[0][0]
    exact = factor * (A.astype(float) - za) * (B.astype(float) - zb) + zo
    assert_rounded(y, exact, 65025 * factor * 2.0**-31 + 1e-9)


@settings(max_examples=25, deadline=None)
@given(st.floats(1e-3, 10.0), ZERO, ZERO, ZERO, st.tuples(*[st.integers(1, 5)] * 3), st.integers(0, 99))
def test_gate_is_a_repeated_product(
    factor: float, zx: int, zg: int, zo: int, sizes: tuple[int, int, int], seed: int
) -> None:
    op = QGate(("x", "g"), ("y",), LOC, *sizes, zx, zg, requant_of([factor], zo))
    x, g = ints(seed, op.count).reshape(sizes), ints(seed + 1, sizes[1])
    g[0], x[0, 0, 0] = -128, 127
    y = op.eval(x[None], g[None])[0][0]
    exact = [factor * (float(v) - zx) * (float(g[c]) - zg) + zo for (_, c, _), v in np.ndenumerate(x)]
    assert_rounded(y.reshape(-1), np.array(exact), 65025 * factor * 2.0**-31 + 1e-9)
    product = QMul(("x", "g"), ("y",), LOC, op.count, zx, zg, op.requant)
    wide = np.broadcast_to(g[None, :, None], sizes)
    np.testing.assert_array_equal(y, product.eval(x[None], np.ascontiguousarray(wide)[None])[0][0])


def test_table_saturates_and_rounds_half_to_even() -> None:
    table = table_of(lambda x: x, QParams(0.5, 0), QParams(1.0, 0))
    assert table[np.array([-5, -3, -1, 0, 1, 3, 5]) + 128].tolist() == [-2, -2, 0, 0, 0, 2, 2]
    wide = table_of(lambda x: 3 * x, QParams(1.0, 0), QParams(1.0, 5))
    assert wide[[0, 255, 128]].tolist() == [-128, 127, 5]


@settings(max_examples=15, deadline=None)
@given(st.lists(st.floats(-50, 50), min_size=1, max_size=5), st.floats(-100, 100), SCALES, ZERO, ZERO)
def test_scale_is_the_rounded_value(scales: list[float], shift: float, so: float, zi: int, zo: int) -> None:
    q_in, q_out = QParams(0.05, zi), QParams(so, zo)
    scale = np.array(scales)
    offset = np.linspace(-shift, shift, len(scales)) if len(scales) > 1 else np.array([shift])
    try:
        parts = scale_of(scale, offset, q_in, q_out)
    except UnsupportedError:
        largest = max(np.abs(scale).max() * 255 * 0.05, np.abs(offset).max())
        assert largest / so < 2.0**-3 + 1e-9
        return
    x = np.tile(np.arange(-128, 128, dtype=np.int8), (len(scales), 1))
    op = QScale(("x",), ("y",), LOC, 1, len(scales), 256, zi, *parts)
    op.check({"x": i8(x.shape, q_in), "y": i8(x.shape, q_out)})
    y = op.eval(x[None])[0][0]
    exact = (real(x, q_in) * scale[:, None] + offset[:, None]) / so + zo
    largest = max(np.abs(scale).max() * 255 * 0.05, np.abs(offset).max()) / so
    assert_rounded(y, exact, largest * 2.0**-20 + 1e-6)


def test_scale_on_big_integers() -> None:
    q_in, q_out = QParams(0.1, -5), QParams(0.3, 4)
    m, add, r = scale_of(np.array([1.5, -0.2, 0.0]), np.array([0.4, 100.0, -2.0]), q_in, q_out)
    op = QScale(("x",), ("y",), LOC, 2, 3, 1, -5, m, add, r)
    x = ints(1, 6).reshape(2, 3, 1)
    y = op.eval(x[None])[0][0]
    for o, c, _ in np.ndindex(*x.shape):
        acc = (int(x[o, c, 0]) + 5) * int(m[c]) + int(add[c])
        exact = Fraction(acc * int(r.multiplier[0]), 1 << int(r.shift[0]))
        assert int(y[o, c, 0]) == min(max(floor(exact + Fraction(1, 2)) + 4, -128), 127)


def test_emitted_c(tmp_path: Path) -> None:
    cases = [
        Case(QTable(("x",), ("y",), LOC, 300, table_of(np.tanh, QParams(0.03, 4), QParams(1 / 128))), (ints(2, 300),))
    ]
    for i, (sa, sb, so) in enumerate([(0.052, 0.099, 0.049), (0.3, 0.01, 0.002), (1.0, 1.0, 2.0), (9, 9, 9)]):
        q_a, q_b, q_out = QParams(sa, -128), QParams(sb, 127), QParams(so, 10 * i)
        for sign in (1, -1):
            op = added(q_a, q_b, q_out, sign, (-128, 127) if i else (-20, 60))
            a, b = (A[::37], B[::37]) if i == 0 else (ints(i, 77), ints(i + 9, 77))
            cases.append(Case(replace(op, count=len(a)), (a, b)))
    for i, factor in enumerate([1e-4, 0.3, 0.5, 0.9, 7.0]):
        op = QMul(("a", "b"), ("y",), LOC, 99, -128, 127, requant_of([factor], 10 * i - 20))
        cases.append(Case(op, (ints(i + 20, 99), ints(i + 40, 99))))
    for i, sizes in enumerate([(1, 1, 1), (7, 5, 1), (1, 5, 7), (3, 5, 7), (1, 9, 1), (4, 1, 1), (1, 1, 9)]):
        for factor in (0.002, 0.7, 3.0):
            op = QGate(("x", "g"), ("y",), LOC, *sizes, 127, -128, requant_of([factor], 10 * i - 20, -90 * (i % 2), 99))
            cases.append(Case(op, (ints(i + 60, op.count), ints(i + 80, sizes[1]))))
    q_in = QParams(0.1, -128)
    for i, so in enumerate([0.01, 1.0, 30.0]):
        rng = np.random.default_rng(i)
        parts = scale_of(rng.normal(size=5) * 3, rng.normal(size=5) * 40, q_in, QParams(so, -i))
        cases.append(Case(QScale(("x",), ("y",), LOC, 3, 5, 7, -128, *parts), (ints(i, 105),)))
    check_c(cases, tmp_path)
    check_board(cases, tmp_path)


def test_broken_fields_are_our_bug() -> None:
    q = QParams(0.1, 3)
    op = added(q, q, q)
    types = {"a": i8(A.size, q), "b": i8(A.size, q), "y": i8(A.size, q)}
    op.check(types)
    for broken in (
        replace(op, count=5),
        replace(op, in_zp=4),
        replace(op, table=op.table.astype(np.int64)),
        replace(op, table=(op.table.astype(np.int64) * 4).astype(np.int32)),
        replace(op, requant=replace(op.requant, zero_point=0)),
        replace(op, requant=replace(op.requant, high=128)),
    ):
        with pytest.raises(InternalError, match="QAdd"):
            broken.check(types)
    gate = QGate(("a", "g"), ("y",), LOC, 256, 256, 1, 3, 3, requant_of([0.1], 3))
    types["g"] = i8(256, q)
    gate.check(types)
    for other in (replace(gate, outer=255), replace(gate, zp_g=4), replace(gate, requant=requant_of([0.1], 4))):
        with pytest.raises(InternalError, match="QGate"):
            other.check(types)
    table = QTable(("a",), ("y",), LOC, A.size, np.zeros(255, np.int8))
    with pytest.raises(InternalError, match="QTable"):
        table.check(types)
