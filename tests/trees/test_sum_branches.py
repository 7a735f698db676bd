"""SumBranches: sums are those of plain recursion; the compiled code reaches the same leaves, of all types."""

from __future__ import annotations

from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tree_models import (
    Leaf,
    Split,
    exact_sum,
    export_text,
    forest_of,
    leaves_of,
    lower,
    model_of,
    naive_leaf,
    rank_and_sum,
    spec_of,
    trees,
    ways,
)

from mcugen.core.types import DType
from mcugen.errors import UnsupportedError
from mcugen.trees import branches
from mcugen.trees.branches import group_trees
from mcugen.trees.forest import Missing
from mcugen.trees.ops import SumBranches
from mcugen.verify.compiler import find_host_compiler
from mcugen.verify.export_check import check_host

CHOOSE = ways("search", "branches")
LEAVES = (DType.I16, DType.I32, DType.F32, DType.F64)


@pytest.mark.parametrize("leaf_type", LEAVES)
@settings(max_examples=60, deadline=None)
@given(
    forest_trees=st.lists(trees(2, st.floats(-2.0, 2.0), cuts=st.integers(-3, 3).map(float)), min_size=1, max_size=6),
    outputs=st.integers(1, 3),
    wide=st.sampled_from([1.0, 300.0]),
    rows=st.lists(st.tuples(st.integers(-4, 4), st.integers(-4, 4)), min_size=1, max_size=8),
)
def test_equals_recursion(
    leaf_type: DType, forest_trees: list[Split | Leaf], outputs: int, wide: float, rows: list[tuple[int, int]]
) -> None:
    """Within the bound of the exact sum; float64 exactly as the library adds. One tree is wide: units differ."""
    some = [*forest_trees, Split(0, 0.0, Leaf(-wide), Leaf(wide))]
    base = [0.25, -3.0, 1e-3][:outputs]
    model = model_of(forest_of(some, 2, outputs), base=base)
    rank, total = rank_and_sum(lower(model, spec_of(DType.I8, 2), leaf=leaf_type, choose=CHOOSE))
    assert isinstance(total, SumBranches)
    score = total.eval(rank.eval(np.array(rows, np.int8))[0])[0]
    for row, found in zip(rows, score.tolist(), strict=True):
        leaf = [naive_leaf(t, row) for t in some]
        exact = exact_sum(some, leaf, base)
        library = list(base)
        for t, tree in enumerate(some):
            library[t % outputs] += float(leaves_of(tree)[leaf[t]].value)  # type: ignore[arg-type]
        for k in range(outputs):
            if leaf_type is DType.F64:
                assert found[k] == library[k]
            else:
                assert abs(Fraction(found[k]) * Fraction(total.unit) - exact[k]) <= Fraction(total.bound_error)


def _forest(count: int, wide: float = 1.0) -> list[Split | Leaf]:
    """Trees that differ in shape, with NaN both ways, categories, a single leaf and wide first trees."""
    some: list[Split | Leaf] = [Leaf(0.375)]
    for i in range(count):
        one, two = (
            Split(1, float(i % 5) - 2.5, Leaf(-0.1 * i), Leaf(0.3 + i), Missing.NAN, i % 2 == 0) for _ in range(2)
        )
        high = Split(2, 0.0, Leaf(0.7), one, categories=(1, 31, 32, 33)[: i % 4 + 1])
        some.append(Split(0, float(i % 7) / 3, high if i % 3 else Leaf(wide * (i + 1)), two, Missing.NONE))
    return some


@pytest.mark.parametrize("leaf_type", LEAVES)
@pytest.mark.parametrize(("outputs", "limit"), [(1, 1100), (1, 7), (3, 7), (4, 1100)])
def test_compiled(leaf_type: DType, outputs: int, limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every leaf and every bit, in one function, in many, with runs of several outputs in one."""
    monkeypatch.setattr("mcugen.trees.ops.sum_branches.group_trees", partial(group_trees, limit=limit))
    model = model_of(forest_of(_forest(12, 50.0), 3, outputs))
    done = export_text(model, spec_of(DType.F32, 3), leaf=leaf_type, choose=CHOOSE, limit=300)
    assert isinstance(done.machine.ops[1], SumBranches)
    assert (len(done.machine.ops[1].groups) > 1) == (limit == 7)
    check_host(done.files, done.machine, done.ref.x, done.ref.y, done.ref.trace, find_host_compiler(None))


def test_units_of_trees() -> None:
    """A wide tree stands first, and its sum is scaled to the unit of the others."""
    some: list[Split | Leaf] = [*_forest(3), Split(0, 0.5, Leaf(-100.0), Leaf(100.0))]
    _, total = rank_and_sum(lower(model_of(forest_of(some, 3)), spec_of(DType.F32, 3), leaf=DType.I16, choose=CHOOSE))
    assert isinstance(total, SumBranches)
    runs = [run for group in total.groups for run in group]
    assert runs[0].trees[0] == len(some) - 1
    assert max(runs[0].scale) > 1
    assert np.abs(total.leaves.leaf).max() <= 4095


def test_groups_hold_all_trees_once() -> None:
    """Whatever the limit, and in the order of the sum."""
    model = model_of(forest_of(_forest(9), 3, 3))
    _, total = rank_and_sum(lower(model, spec_of(DType.F32, 3), choose=CHOOSE))
    assert isinstance(total, SumBranches)
    for limit in (1, 3, 5, 10_000):
        runs = [r for g in group_trees(total.tables, 3, total.leaves.factor, total.order, limit) for r in g]
        assert [t for r in runs for t in r.trees] == total.order.tolist() == [0, 3, 6, 9, 1, 4, 7, 2, 5, 8]
        for k in range(3):
            mine = [r for r in runs if r.output == k]
            assert [r.first for r in mine] == [True] + [False] * (len(mine) - 1)
            assert [r.last for r in mine] == [False] * (len(mine) - 1) + [True]


def test_like_trees_stand_together() -> None:
    """Integer sums are free in their order: trees with the same tests follow each other."""
    some: list[Split | Leaf] = [Split(i % 2, 1.0, Leaf(0.0), Leaf(1.0)) for i in range(6)]
    _, total = rank_and_sum(lower(model_of(forest_of(some, 2)), spec_of(DType.I8, 2), leaf=DType.I16, choose=CHOOSE))
    assert isinstance(total, SumBranches)
    assert [t % 2 for t in total.order.tolist()] == [0, 0, 0, 1, 1, 1]


def test_too_deep() -> None:
    """Compilers limit how deep blocks nest."""
    tree: Split | Leaf = Leaf(0.0)
    for i in range(branches.MOST_DEPTH + 1):
        tree = Split(0, float(i), Leaf(float(i)), tree)
    with pytest.raises(UnsupportedError, match="101 nodes deep"):
        lower(model_of(forest_of([tree], 1)), spec_of(DType.F32, 1), choose=CHOOSE)


def test_deepest_compiles() -> None:
    tree: Split | Leaf = Leaf(0.0)
    for i in range(branches.MOST_DEPTH):
        tree = Split(0, float(-i), tree, Leaf(float(i)))
    done = export_text(model_of(forest_of([tree], 1)), spec_of(DType.I16, 1), leaf=DType.I32, choose=CHOOSE)
    check_host(done.files, done.machine, done.ref.x, done.ref.y, done.ref.trace, find_host_compiler(None))


def test_leaves_of_several_values() -> None:
    tree = Split(0, 0.0, Leaf((0.25, 0.5)), Leaf((1.0, 0.0)))
    with pytest.raises(UnsupportedError, match="several values"):
        lower(model_of(forest_of([tree], 1, 2)), spec_of(DType.I8, 1), choose=CHOOSE)
