"""Move and QConcat: against numpy's own transposes, slices and pads, and the emitted C bit for bit."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest
from plain_rig import LOC, Case, check_board, check_c, ints

from mcugen.core.types import DType, QParams, TensorType
from mcugen.errors import InternalError, UnsupportedError
from mcugen.nn.ops.move import Move, fill_bits, padded_copy, strided_copy, strided_slice
from mcugen.nn.ops.qconcat import QConcat

X, Y = ("x",), ("y",)
DTYPES = (DType.I8, DType.I16, DType.I32, DType.F32)


def types_of(op: Move) -> dict[str, TensorType]:
    return {"x": TensorType((op.in_count,), op.dtype), "y": TensorType((op.out_count,), op.dtype)}


def transposes() -> list[Move]:
    shape = (2, 3, 4, 5)
    moves = []
    for i, perm in enumerate(permutations(range(4))):
        op = strided_copy(X, Y, LOC, shape, (0, 1, 2, 3), perm, DTYPES[i % 4])
        x = np.arange(120).astype(op.dtype.np).reshape(shape)
        np.testing.assert_array_equal(op.eval(x[None])[0][0], x.transpose(perm).reshape(-1))
        moves.append(op)
    return moves


def slices() -> list[Move]:
    shape = (4, 5, 6)
    moves = []
    for starts, steps, out in [
        ((0, 0, 0), (1, 1, 1), (4, 5, 6)),
        ((1, 4, 5), (2, -1, -2), (2, 5, 3)),
        ((3, 2, 0), (-3, 1, 5), (2, 1, 2)),
        ((2, 2, 2), (1, 1, 1), (1, 1, 1)),
    ]:
        op = strided_slice(X, Y, LOC, shape, starts, steps, out, DType.I16)
        x = np.arange(120, dtype=np.int16).reshape(shape)
        picked = x[np.ix_(*(s + d * np.arange(n) for s, d, n in zip(starts, steps, out, strict=True)))]
        np.testing.assert_array_equal(op.eval(x[None])[0][0], picked.reshape(-1))
        moves.append(op)
    return moves


def pads() -> list[Move]:
    moves = []
    for before, after, fill, dtype in [
        ((0, 1, 2), (1, 0, 3), -128, DType.I8),
        ((2, 0, 0), (0, 0, 0), 7, DType.I8),
        ((0, 0, 1), (0, 0, 0), -300, DType.I16),
        ((1, 1, 1), (1, 1, 1), 0, DType.F32),
        ((1, 0, 1), (1, 0, 1), -2.5, DType.F32),
        ((0, 0, 1), (0, 0, 1), -(1 << 31), DType.I32),
        ((0, 0, 0), (0, 0, 0), 5, DType.I8),
    ]:
        x = np.arange(1, 25).astype(dtype.np).reshape(2, 3, 4)
        padded = np.pad(x, list(zip(before, after, strict=True)), constant_values=fill)
        bits = fill_bits(fill) if dtype is DType.F32 else int(fill)
        op = padded_copy(X, Y, LOC, x.shape, padded.shape, before, bits, dtype)
        np.testing.assert_array_equal(op.eval(x[None])[0][0], padded.reshape(-1))
        moves.append(op)
    return moves


def test_meaning_and_emitted_c(tmp_path: Path) -> None:
    cases = []
    for i, op in enumerate((*transposes(), *slices(), *pads())):
        op.check(types_of(op))
        cases.append(Case(op, (ints(i, op.in_count).astype(op.dtype.np),)))
    for i, dtype in enumerate(DTYPES):
        parts = tuple(ints(i + k, 3 * n).astype(dtype.np).reshape(3, n) for k, n in enumerate((1, 5, 2, 8)))
        op = QConcat(("a", "b", "c", "d"), Y, LOC, 3, (1, 5, 2, 8), dtype)
        np.testing.assert_array_equal(
            op.eval(*(p[None] for p in parts))[0][0], np.concatenate(parts, axis=1).reshape(-1)
        )
        cases.append(Case(op, parts))
    cases.append(Case(QConcat(X, Y, LOC, 1, (9,)), (ints(3, 9),)))
    check_c(cases, tmp_path)
    check_board(cases, tmp_path)


def test_loops_that_run_on_are_one() -> None:
    assert strided_copy(X, Y, LOC, (2, 3, 4, 5), (0, 1, 2, 3), (0, 1, 2, 3)).dims == (120,)
    assert strided_copy(X, Y, LOC, (2, 3, 4, 5), (0, 1, 2, 3), (1, 0, 2, 3)).dims == (3, 2, 20)
    assert strided_copy(X, Y, LOC, (1, 1), (0, 1), (1, 0)).dims == (1,)
    with pytest.raises(UnsupportedError, match="dimensions"):
        strided_copy(X, Y, LOC, (2, 3, 2, 3, 2, 3), tuple(range(6)), tuple(reversed(range(6))))


def test_broken_fields_are_our_bug() -> None:
    op = strided_copy(X, Y, LOC, (2, 3), (0, 1), (1, 0))
    types = types_of(op)
    op.check(types)
    for broken in (
        replace(op, in_offset=1),
        replace(op, out_strides=(0, 1)),
        replace(op, dims=(3, 1)),
        replace(op, in_strides=(1,)),
        replace(op, out_count=7),
        replace(op, fill=128),
    ):
        with pytest.raises(InternalError, match="Move"):
            broken.check({**types, "y": TensorType((broken.out_count,), DType.I8)})
    part = TensorType((4,), DType.I8, QParams(0.5, 1))
    concat = QConcat(("a", "b"), Y, LOC, 2, (2, 2))
    whole = {"a": part, "b": part, "y": replace(part, shape=(2, 4))}
    concat.check(whole)
    with pytest.raises(InternalError, match="scales"):
        concat.check({**whole, "b": replace(part, q=QParams(0.5, 2))})
    with pytest.raises(InternalError, match="QConcat"):
        replace(concat, inners=(2, 2, 2)).check(whole)
