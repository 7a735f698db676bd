"""RankLookup: its small tables give the rank of every input, by arithmetic written out here and by the compiled C."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tree_models import (
    INPUT_TYPES,
    Leaf,
    Split,
    export_text,
    forest_of,
    lower,
    model_of,
    spec_of,
    thresholds,
    trees,
    ways,
)

from mcugen.core.types import DType, TensorType
from mcugen.errors import InternalError, UnsupportedError
from mcugen.trees.forest import Missing
from mcugen.trees.keys import key_range
from mcugen.trees.ops import RankLookup
from mcugen.trees.signals import Signal
from mcugen.verify.compiler import find_host_compiler
from mcugen.verify.export_check import check_host

CHOOSE = ways("lookup", "tables")
TYPES = tuple(t for t in INPUT_TYPES if t is not DType.F64)


def _op(cuts: list[float], dtype: DType) -> RankLookup:
    some: list[Split | Leaf] = [Split(0, c, Leaf(0.0), Leaf(1.0)) for c in cuts]
    op = lower(model_of(forest_of(some, 1)), spec_of(dtype, 1), choose=CHOOSE).ops[0]
    assert isinstance(op, RankLookup)
    return op


def _rank(op: RankLookup, key: int) -> int:
    """What the C does with a number's key in the first column, from the bytes that it reads."""
    columns, tables = (i.data for i in op.items("m")[1:3])
    assert columns is not None
    assert tables is not None
    column, cell_bytes = columns[0], 1 if op.columns.top_rank < 256 else 2
    table = tables[2 * int(column["table"]) :].tolist()
    width, count = int(column["width"]), int(column["cells"])

    def cell(i: int) -> int:
        return int.from_bytes(table[cell_bytes * i : cell_bytes * (i + 1)], "little")

    if key < column["from"]:
        return int(key > column["lowest"])
    units = key - int(column["from"]) >> int(column["unit"])
    at = units >> int(column["shift"])
    if at >= count:
        return cell(count + 1)
    low, high = cell(1 + at), cell(2 + at)
    keys = [int.from_bytes(table[cell_bytes * (count + 2) + width * i :][:width], "little") for i in range(low, high)]
    assert keys == sorted(keys)
    return low + len([k for k in keys if k < units % 256**width])


@pytest.mark.parametrize("dtype", TYPES)
@settings(max_examples=150, deadline=None)
@given(cuts=st.lists(thresholds, min_size=1, max_size=24))
@example(cuts=[1e-35, 0.5, 1.5, 2.5])
@example(cuts=[-4.0, 1.0, 127.0])
@example(cuts=[float(i) for i in range(200)])
def test_tables_give_the_rank(dtype: DType, cuts: list[float]) -> None:
    """Of all inputs at keys, one step to either side, and at the ends of the type."""
    op = _op(cuts, dtype)
    keys = op.columns.keys
    if not keys.size:
        return
    low, high = key_range(dtype)
    for key in [k + d for k in keys.tolist() for d in (-1, 0, 1)] + [low, high, 0, (low + high) // 2]:
        if low <= key <= high:
            assert _rank(op, key) == int(np.searchsorted(keys, key, side="left")), (cuts, key)


@pytest.mark.parametrize(
    ("cuts", "most"),
    [
        ([i + 0.5 for i in range(0, 4000, 37)], 1),
        ([i * 997 + 0.5 for i in range(60)], 2),
        ([i / 7 for i in range(1, 40)], 3),
    ],
)
def test_bytes_of_keys(cuts: list[float], most: int) -> None:
    """Thresholds of counts need less than half the bytes of a float."""
    op = _op(cuts, DType.F32)
    assert op.lookup.width.max() == most
    assert op.lookup.shift.max() <= 8 * most


def test_nan_in_the_last_cell() -> None:
    """Where the last cell reaches beyond infinity it holds NaN, too: then NaN is asked for first."""
    text = {}
    for name, cuts in (("apart", (1.0, 2.0, 3.0)), ("not", (1.0, 1e10, 3.4028234663852886e38, 1e30))):
        some: list[Split | Leaf] = [Split(0, c, Leaf(0.0), Leaf(1.0), Missing.NAN) for c in cuts]
        done = export_text(model_of(forest_of(some, 1)), spec_of(DType.F32, 1), choose=CHOOSE)
        check_host(done.files, done.machine, done.ref.x, done.ref.y, done.ref.trace, find_host_compiler(None))
        text[name] = str(done.files["m.c"])
    assert "MCG_T_APART 1" in text["apart"]
    assert "MCG_T_APART 0" in text["not"]


def test_check_finds_a_wrong_table() -> None:
    op = _op([i / 7 - 3 for i in range(40)], DType.F32)
    types = {"x": TensorType((1,), op.dtype), "rank": TensorType((1,), op.columns.rank_dtype)}
    op.check(types)
    for change in (
        {"cells": op.lookup.cells + 1},
        {"shift": op.lookup.shift + 1},
        {"unit": op.lookup.unit + 1},
        {"width": op.lookup.width * 0 + 1},
    ):
        with pytest.raises(InternalError):
            replace(op, lookup=replace(op.lookup, **change)).check(types)


@pytest.mark.parametrize("missing", [Missing.NONE, Missing.NAN, Missing.ZERO])
def test_what_it_refuses(missing: Missing) -> None:
    """Doubles, sentinels, and zeros that are missing."""
    model = model_of(forest_of([Split(0, 1.5, Leaf(0.0), Leaf(1.0), missing)], 1))
    with pytest.raises(UnsupportedError, match="64 bits"):
        lower(model, spec_of(DType.F64, 1), choose=CHOOSE)
    with pytest.raises(UnsupportedError, match="sentinel"):
        lower(model, spec_of(DType.I16, 1, Signal(missing=-1)), choose=CHOOSE)
    if missing == Missing.ZERO:
        with pytest.raises(UnsupportedError, match="zero is missing"):
            lower(model, spec_of(DType.F32, 1), choose=CHOOSE)
    else:
        lower(model, spec_of(DType.F32, 1), choose=CHOOSE)


@pytest.mark.parametrize("dtype", TYPES)
def test_compiled(dtype: DType) -> None:
    """The C repeats outputs and leaves, with NaN both ways and categories; few keys a cell, and many."""
    cuts = [-120.0, -3.5, -0.5, 0.0, 1e-35, 0.5, 1.5, 2.5, 3.5, 7.5, 100.0, 120.0]
    some: list[Split | Leaf] = []
    for kind, left in ((Missing.NONE, False), (Missing.NAN, True), (Missing.NAN, False)):
        some += [Split(f, c, Leaf(0.0), Leaf(1.0), kind, left) for f in range(3) for c in cuts[f : f + 4 * f + 3]]
    some += [Split(3, 0.0, Leaf(1.0), Leaf(2.0), categories=(1, 3, 40))]
    some += [Split(2, -1.0 + 1e-6 * i, Leaf(0.0), Leaf(1.0)) for i in range(12)]
    extra = np.array([[float(v)] * 4 for v in (0, 1, 2, 3, 40, 100, 101, 127)], dtype.np)
    done = export_text(model_of(forest_of(some, 4)), spec_of(dtype, 4), extra=extra, choose=CHOOSE)
    check_host(done.files, done.machine, done.ref.x, done.ref.y, done.ref.trace, find_host_compiler(None))


@settings(max_examples=8, deadline=None)
@given(
    forest_trees=st.lists(
        trees(2, st.floats(-2.0, 2.0)).filter(lambda t: "ZERO" not in repr(t)), min_size=1, max_size=5
    ),
    dtype=st.sampled_from(TYPES),
)
def test_compiled_forests(forest_trees: list[Split | Leaf], dtype: DType) -> None:
    done = export_text(model_of(forest_of(forest_trees, 2)), spec_of(dtype, 2), choose=CHOOSE)
    check_host(done.files, done.machine, done.ref.x, done.ref.y, done.ref.trace, find_host_compiler(None))
