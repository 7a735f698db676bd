"""QPool: against the float pool, the published cases, and the emitted C bit for bit."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from plain_rig import LOC, Case, check_board, check_c, ints

from mcugen.core.types import DType, QParams, TensorType
from mcugen.errors import InternalError
from mcugen.nn.ops.pool_window import Windows
from mcugen.nn.ops.qpool import QPool, pool_of
from mcugen.nn.ops.window import physical
from mcugen.nn.source import Pool, ShapeError

Q = QParams(0.1, -7)


def quantized(pool: Pool, shape: tuple[int, int, int], q_out: QParams, planar: bool, dtype: DType = DType.I8) -> QPool:
    ((c, oh, ow),) = pool.result_shapes(shape)
    windows = Windows(shape, (c, oh, ow), pool.kernel, pool.stride, pool.pads, pool.dilation, pool.count_include_pad)
    q_in = Q if dtype is DType.I8 else QParams(0.1, 0)
    return pool_of((("x",), ("y",), LOC), pool.kind, windows, planar, q_in, q_out, dtype)


def types_of(op: QPool) -> dict[str, TensorType]:
    zp = op.in_zp if op.requant is None else op.requant.zero_point
    return {
        "x": TensorType(physical(op.in_shape, op.planar), op.dtype, QParams(0.1, op.in_zp)),
        "y": TensorType(physical(op.out_shape, op.planar), op.dtype, QParams(0.1, zp)),
    }


def source(**fields: Any) -> Pool:
    return Pool(("x",), ("y",), LOC, **fields)


def test_ceil_mode_pads_with_minus_infinity() -> None:
    pool = source(kind="max", kernel=(2, 2), stride=(2, 2), ceil_mode=True)
    op = quantized(pool, (1, 5, 5), Q, True)
    x = -np.arange(1, 26, dtype=np.int8).reshape(1, 1, 5, 5)
    assert op.eval(x)[0][0, 0].tolist() == [[-1, -3, -5], [-11, -13, -15], [-21, -23, -25]]


@pytest.mark.parametrize(("include", "expected"), [(True, [4, 2, 2, 1]), (False, [4, 4, 4, 4])])
def test_count_include_pad(include: bool, expected: list[int]) -> None:
    pool = source(kind="avg", kernel=(2, 2), pads=(0, 0, 1, 1), count_include_pad=include)
    op = quantized(pool, (1, 2, 2), QParams(0.25, 0), True)
    ones = np.full((1, 1, 2, 2), Q.zero_point + 10, np.int8)
    assert op.eval(ones)[0].reshape(-1).tolist() == expected


POOLS = st.builds(
    source,
    kind=st.sampled_from(["max", "avg"]),
    kernel=st.tuples(st.integers(1, 4), st.integers(1, 4)),
    stride=st.tuples(st.integers(1, 3), st.integers(1, 3)),
    pads=st.tuples(*[st.integers(0, 2)] * 4),
    dilation=st.tuples(st.integers(1, 2), st.integers(1, 2)),
    count_include_pad=st.booleans(),
    ceil_mode=st.booleans(),
)
SHAPES = st.tuples(st.integers(1, 5), st.integers(1, 7), st.integers(1, 7))


@settings(max_examples=40, deadline=None)
@given(POOLS, SHAPES, st.booleans(), st.integers(0, 9), st.sampled_from([DType.I8, DType.I16]))
def test_against_the_float_pool(pool: Pool, shape: tuple[int, int, int], planar: bool, seed: int, dtype: DType) -> None:
    try:
        pool.result_shapes(shape)
    except ShapeError:
        return
    q_out = QParams(0.07, 11 if dtype is DType.I8 else 0)
    op = quantized(pool, shape, q_out, planar, dtype)
    op.check(types_of(op))
    np.testing.assert_array_equal(op.elements(pool.count_include_pad), pool.elements(shape))
    x = ints(seed, int(np.prod(shape)), dtype.min, dtype.max, dtype.np.type).reshape(1, *physical(shape, planar))
    y = op.eval(x)[0]
    if pool.kind == "max":
        exact = pool.eval(op.image(x).astype(np.float32))[0]
        np.testing.assert_array_equal(y, op.layout(exact.astype(dtype.np)))
        return
    sums = op.sums(op.image(x).astype(np.int64) - op.in_zp)
    exact = np.clip(sums / op.elements() * (0.1 / 0.07) + q_out.zero_point, dtype.min, dtype.max)
    assert np.abs(y - op.layout(exact)).max() <= 0.5 + 2**-12


def four_channels_at_a_time() -> list[Case]:
    """Sums beyond int16, rows too long for one, channels that are left over."""
    cases = []
    for kind in ("max", "avg"):
        for shape in ((9, 17, 30), (6, 2, 255), (5, 2, 256), (4, 255, 1), (13, 3, 3)):
            op = quantized(source(kind=kind, kernel=shape[1:], stride=(1, 1)), shape, Q, False)
            for low, high in ((-128, -127), (126, 127), (-128, 127)):
                x = ints(shape[0], int(np.prod(shape)), low, high)
                cases.append(Case(op, (x.reshape(physical(shape, False)),)))
    return cases


def test_emitted_c(tmp_path: Path) -> None:
    rng = np.random.default_rng(7)
    cases: list[Case] = []
    while len(cases) < 40:
        pick = rng.integers
        pool = source(
            kind=("max", "avg")[pick(2)],
            kernel=(int(pick(1, 5)), int(pick(1, 5))),
            stride=(int(pick(1, 4)), int(pick(1, 4))),
            pads=tuple(int(p) for p in pick(0, 3, 4)),
            dilation=(int(pick(1, 3)), int(pick(1, 3))),
            count_include_pad=bool(pick(2)),
            ceil_mode=bool(pick(2)),
        )
        shape = (int(pick(1, 6)), int(pick(1, 8)), int(pick(1, 8)))
        try:
            pool.result_shapes(shape)
        except ShapeError:
            continue
        dtype = (DType.I8, DType.I16)[pick(2)]
        scale = (0.01, 0.1, 0.3)[pick(3)]
        op = quantized(pool, shape, QParams(scale, 9 if dtype is DType.I8 else 0), bool(pick(2)), dtype)
        op.check(types_of(op))
        x = ints(len(cases), int(np.prod(shape)), dtype.min, dtype.max, dtype.np.type)
        cases.append(Case(op, (x.reshape(physical(shape, op.planar)),)))
    whole = source(kind="avg", kernel=(256, 300))
    op = quantized(whole, (1, 256, 300), QParams(0.1, 0), True, DType.I16)
    cases.append(Case(op, (np.full((1, 256, 300), -32768, np.int16),)))
    assert int(op.eval(np.full((1, 1, 256, 300), -32768, np.int16))[0][0, 0, 0, 0]) == -32768
    cases += four_channels_at_a_time()
    check_c(cases, tmp_path)
    check_board(cases, tmp_path)


def test_broken_fields_are_our_bug() -> None:
    op = quantized(source(kind="avg", kernel=(2, 2)), (3, 4, 5), Q, False)
    types = types_of(op)
    op.check(types)
    assert op.requant is not None
    for broken in (
        replace(op, planar=True),
        replace(op, in_zp=1),
        replace(op, counts=np.array([3], np.int32)),
        replace(op, kind="max"),
        replace(op, out_shape=(2, 3, 4)),
        replace(op, stride=(0, 1)),
        replace(op, requant=replace(op.requant, low=-129)),
    ):
        with pytest.raises(InternalError, match="QPool"):
            broken.check(types)
