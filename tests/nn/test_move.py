"""Move and QConcat: against numpy's own transposes, slices and pads, and the emitted C bit for bit."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest
from bare_core import RUNTIME, WARNINGS
from plain_rig import BUILDS, LOC, Case, _objects, check_board, check_c, ints

from mcugen.core.op import Names
from mcugen.core.types import DType, QParams, TensorType
from mcugen.ctext.arrays import array_rows
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
    for order in permutations(range(3)):
        parts = tuple(ints(k, 4 * n).reshape(4, n) for k, n in enumerate((21, 4, 35)))
        op = QConcat(("a", "b", "c"), Y, LOC, 4, (21, 4, 35), order=order)
        whole = np.concatenate([parts[i] for i in order], axis=1)
        np.testing.assert_array_equal(op.eval(*(p[None] for p in parts))[0][0], whole.reshape(-1))
        cases.append(Case(op, parts))
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
    for fields in ({"inners": (2, 2, 2)}, {"order": (0, 0)}, {"order": (0,)}):
        with pytest.raises(InternalError, match="QConcat"):
            replace(concat, **fields).check(whole)  # type: ignore[arg-type]


def concats() -> list[QConcat]:
    """Of rows of few and of many bytes, the part whose memory is taken over at any place."""
    found = []
    for dtype in (DType.I8, DType.F32):
        for outer in (1, 2, 7):
            for inners in ((5, 3), (1, 40), (33, 16, 7), (3, 1, 1, 20)):
                for order in list(permutations(range(len(inners))))[::2]:
                    found.append(QConcat(("a", "b", "c", "d")[: len(inners)], Y, LOC, outer, inners, dtype, order))
    return found


def test_the_result_over_a_part(tmp_path: Path) -> None:
    """y starts lag bytes before part 0, as the arena places them: the same bytes. One byte less is too near."""
    definitions, body, expected, near = [], [], [], []
    for i, op in enumerate(concats()):
        parts = [ints(i + k, op.outer * n * op.dtype.size).view(op.dtype.np) for k, n in enumerate(op.inners)]
        whole = op.eval(*(p[None] for p in parts))[0][0].view(np.int8)
        lag = op.lag
        assert lag is not None
        rows = [p.view(np.int8).reshape(op.outer, -1) for p in parts]
        near.append(copied(op, rows, lag - 1) is None)
        np.testing.assert_array_equal(copied(op, rows, lag), whole)
        names = [f"(block_{i} + {lag})", *(f"part_{i}_{k}" for k in range(1, len(parts)))]
        text = op.emit(f"n_{i}", tuple(names), (f"block_{i}",), Names({}, {}, ""))
        definitions += [
            f"static const int8_t part_{i}_{k}[] = {{\n{array_rows(p.view(np.int8))}}};" for k, p in enumerate(parts)
        ]
        definitions += [text.definitions, f"static int8_t block_{i}[{max(lag + parts[0].nbytes, whole.size)}];"]
        body.append(f"memcpy(block_{i} + {lag}, part_{i}_0, sizeof part_{i}_0); {text.call}")
        body.append(f"fwrite(block_{i}, 1, {whole.size}, stdout);")
        expected.append(whole)
    assert sum(near) > 30
    head = ["#include <stdio.h>", "#include <string.h>", '#include "mcg_nn_move.h"']
    source, program = tmp_path / "lag.c", tmp_path / "lag"
    source.write_text("\n".join([*head, *definitions, "int main(void)\n{", *body, "return 0;\n}\n"]), encoding="utf-8")
    for build in ("sanitized", "plain"):
        flags = [*BUILDS[build][1:], *WARNINGS, f"-I{RUNTIME / 'include'}"]
        subprocess.run(["gcc", *flags, str(source), *_objects(build), "-o", str(program)], check=True)
        done = subprocess.run([str(program)], capture_output=True, check=True)
        np.testing.assert_array_equal(np.frombuffer(done.stdout, np.int8), np.concatenate(expected))
    assert QConcat(("a", "a"), Y, LOC, 2, (3, 3)).lag is None


def copied(op: QConcat, rows: list[np.ndarray], lag: int) -> np.ndarray | None:
    """Row by row and part by part in one memory, as the kernel copies; None where a part was overwritten."""
    if lag < 0:
        return None
    width = [r.shape[1] for r in rows]
    memory = np.zeros(lag + op.outer * sum(width), np.int8)
    memory[lag : lag + rows[0].size] = rows[0].reshape(-1)
    at, written = 0, 0
    for o in range(op.outer):
        for i in op.order:
            start = lag + o * width[0]
            if i == 0 and written > start:
                return None
            part = memory[start : start + width[0]].copy() if i == 0 else rows[i][o]
            memory[at : at + width[i]] = part
            at = written = at + width[i]
    return memory[:at]
