"""RankCoarse: its tables give the rank of every input, by arithmetic written out here and by the compiled C."""

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
    rank_and_sum,
    spec_of,
    thresholds,
    trees,
    ways,
)

from mcugen.core.types import Array, DType, TensorType
from mcugen.errors import InternalError
from mcugen.trees.coarse import FEW, SCALE, SEARCH, SHIFT
from mcugen.trees.forest import Missing
from mcugen.trees.keys import key_range, keys_of, values_of
from mcugen.trees.ops import RankCoarse
from mcugen.trees.signals import InputSpec, Signal
from mcugen.verify.compiler import find_host_compiler
from mcugen.verify.export_check import check_host

CHOOSE = ways("coarse", "tables")


def _chain(cuts: list[float], feature: int = 0, missing: Missing = Missing.NONE, left: bool = False) -> Split | Leaf:
    tree: Split | Leaf = Leaf(0.0)
    for i, cut in enumerate(cuts):
        tree = Split(feature, cut, Leaf(float(i)), tree, missing, left)
    return tree


def _coarse(cuts: list[float], dtype: DType) -> RankCoarse:
    machine = lower(model_of(forest_of([_chain([c]) for c in cuts], 1)), spec_of(dtype, 1), choose=CHOOSE)
    op = machine.ops[0]
    assert isinstance(op, RankCoarse)
    return op


def _rank(op: RankCoarse, s: int, key: int) -> int:
    """What the C does with a number's key in search ``s``."""
    t = op.coarse
    keys = [int(k) for k in t.keys[t.first_key[s] : t.first_key[s + 1]]]
    kind, amount, peel, most = int(t.kind[s]), int(t.amount[s]), int(t.peel[s]), int(t.most[s])
    if kind in (FEW, SEARCH):
        return sum(k < key for k in keys)
    if key > keys[-1]:
        return len(keys)
    if key <= keys[peel]:
        return int(key > keys[0])
    if kind == SHIFT:
        cell = (key - keys[peel] - 1) >> amount
    else:
        value = float(values_of(np.array([key]), op.dtype)[0])
        assert abs(value * 2.0**amount) < 2**31
        cell = int(value * 2.0**amount) - int(t.low[s])
    cells = t.cells[t.first_cell[s] : t.first_cell[s + 1]]
    assert 0 <= cell < len(cells)
    rank = int(cells[cell])
    if most <= 2:
        for _ in range(most):
            rank += keys[rank] < key
        return rank
    while keys[rank] < key:
        rank += 1
    return rank


@pytest.mark.parametrize("dtype", INPUT_TYPES)
@settings(max_examples=150, deadline=None)
@given(cuts=st.lists(thresholds, min_size=1, max_size=24), more=st.lists(thresholds, max_size=8))
@example(cuts=[0.0, 1.5, 2.5, 3.5, 15.5], more=[])
@example(cuts=[1e-35, 0.5, 1.5, 2.5], more=[])
@example(cuts=[-3.0, -1.0, 1.0, 3.0, 1e30], more=[0.0, -0.0])
@example(cuts=[float(i) for i in range(200)], more=[])
def test_tables_give_the_rank(dtype: DType, cuts: list[float], more: list[float]) -> None:
    """Of all inputs at keys, one step to either side, at the ends of the type and between."""
    op = _coarse(cuts, dtype)
    keys = op.columns.keys
    if not keys.size:
        return
    low, high = key_range(dtype)
    with np.errstate(over="ignore", invalid="ignore"):
        extra = keys_of(np.clip(more, *_ends(dtype)).astype(dtype.np), dtype).tolist()
    near = [k + d for k in keys.tolist() for d in (-1, 0, 1)] + extra + [low, high, 0, (low + high) // 2]
    for key in near:
        if low <= key <= high:
            assert _rank(op, 0, key) == int(np.searchsorted(keys, key, side="left")), (cuts, key)


def _ends(dtype: DType) -> tuple[float, float]:
    return (-np.inf, np.inf) if dtype.is_float else (float(dtype.min), float(dtype.max))


def test_kinds() -> None:
    """Each way is taken where it should: few keys, even spacing of floats around zero, keys as ends of cells."""
    assert _coarse([1.0, 2.0], DType.F32).coarse.kind.tolist() == [FEW]
    assert _coarse([i / 7 - 3 for i in range(40)], DType.F32).coarse.kind.tolist() == [SCALE]
    grid = _coarse([i + 0.5 for i in range(16)], DType.F32).coarse
    assert (grid.kind.tolist(), grid.most.tolist()) == ([SHIFT], [0])
    zero = _coarse([1e-35, *(i + 0.5 for i in range(1, 16))], DType.F32).coarse
    assert (zero.kind.tolist(), zero.most.tolist(), zero.peel.tolist()) == ([SHIFT], [0], [1])
    assert not zero.compares.any()


def test_columns_of_a_feature_share_a_search() -> None:
    """Missing values left and right: one search over the keys of both, and a map for each."""
    both = [_chain([float(i)], 0, Missing.NAN, bool(i % 2)) for i in range(300)]
    machine = lower(model_of(forest_of(both, 1)), spec_of(DType.F32, 1), choose=CHOOSE)
    op = machine.ops[0]
    assert isinstance(op, RankCoarse)
    assert op.columns.n_numeric == 2
    assert op.coarse.kind.size == 1
    assert op.coarse.maps.size == 2 * (300 + 2)
    # 300 keys, though no column has more than 150: the cells need 16 bits.
    assert {i.symbol: i.ctype for i in op.items("m")}["m_cells"] == "uint16_t"
    _verify([*both], 1, spec_of(DType.F32, 1), [])


def test_check_finds_a_wrong_table() -> None:
    """One cell too high, or a comparison too few."""
    op = _coarse([i / 7 - 3 for i in range(40)], DType.F32)
    types = {"x": TensorType((1,), op.dtype), "rank": TensorType((1,), op.columns.rank_dtype)}
    op.check(types)
    cells = op.coarse.cells.copy()
    cells[-1] += 1
    for change in (
        {"cells": cells},
        {"most": op.coarse.most - 1},
        {"first_map": op.coarse.first_map, "low": op.coarse.low + 1},
    ):
        with pytest.raises(InternalError):
            _replaced(op, **change).check(types)


def _replaced(op: RankCoarse, **change: Array) -> RankCoarse:
    return replace(op, coarse=replace(op.coarse, **change))


def _verify(forest_trees: list[Split | Leaf], n: int, spec: InputSpec, extra: list[list[float]]) -> None:
    """The compiled C repeats outputs and leaves."""
    rows = np.array(extra, spec.dtype.np).reshape(-1, n)
    done = export_text(model_of(forest_of(forest_trees, n)), spec, extra=rows, choose=CHOOSE)
    check_host(done.files, done.machine, done.ref.x, done.ref.y, done.ref.trace, find_host_compiler(None))


@pytest.mark.parametrize("dtype", INPUT_TYPES)
def test_compiled(dtype: DType) -> None:
    """All kinds of columns in one model, with NaN, infinities, sentinels and zeros that are missing."""
    cuts = [-120.0, -3.5, -0.5, 0.0, 1e-35, 0.5, 1.5, 2.5, 3.5, 7.5, 100.0, 120.0]
    some: list[Split | Leaf] = []
    for kind in (Missing.NONE, Missing.NAN, Missing.ZERO):
        some += [_chain([c], f, kind, f % 2 == 1) for f in range(3) for c in cuts[f : f + 4 * f + 3]]
    some += [
        Split(3, 0.0, Leaf(1.0), Leaf(2.0), categories=(1, 3, 40)),
        Split(3, 0.0, Leaf(0.0), Leaf(4.0), categories=(0, 100)),
    ]
    marks = (None, -1 if dtype.is_float or dtype.min < 0 else 1, None, None)
    spec = InputSpec(dtype, tuple(Signal(missing=None if dtype.is_float else m) for m in marks))
    extra = [[float(v)] * 4 for v in (0, 1, 2, 3, 40, 100, 101, 127)]
    _verify(some, 4, spec, extra)


@settings(max_examples=10, deadline=None)
@given(
    forest_trees=st.lists(trees(2, st.floats(-2.0, 2.0)), min_size=1, max_size=5), dtype=st.sampled_from(INPUT_TYPES)
)
def test_compiled_forests(forest_trees: list[Split | Leaf], dtype: DType) -> None:
    _verify(forest_trees, 2, spec_of(dtype, 2), [])


def test_ranks_are_those_of_a_search() -> None:
    """The same numbers as RankInputs, for the same inputs."""
    forest = model_of(forest_of([_chain([i / 3]) for i in range(50)], 1))
    x = np.linspace(-1, 20, 333, dtype=np.float32)[:, None]
    plain, _ = rank_and_sum(lower(forest, spec_of(DType.F32, 1)))
    coarse, _ = rank_and_sum(lower(forest, spec_of(DType.F32, 1), choose=CHOOSE))
    assert np.array_equal(plain.eval(x)[0], coarse.eval(x)[0])
