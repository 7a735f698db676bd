"""SumMixed: trees as code and trees as words lead every row to the leaf of plain recursion, and add up to one score."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tree_models import (
    Leaf,
    Split,
    exact_sum,
    export_text,
    forest_of,
    lower,
    model_of,
    naive_leaf,
    rank_and_sum,
    spec_of,
    trees,
    ways,
)

from mcugen.core.ports import one_each
from mcugen.core.types import DType, TensorType
from mcugen.emulate.image import BoardModel, build_image
from mcugen.emulate.machine import EmulatedBoard
from mcugen.emulate.toolchain import find_cross_compiler
from mcugen.errors import InputError, InternalError, UnsupportedError
from mcugen.target.board import load_board
from mcugen.trees.forest import Missing
from mcugen.trees.ops import SumMixed
from mcugen.verify.compiler import find_host_compiler
from mcugen.verify.export_check import check_host

CHOOSE = ways("search", "mixed")
tree_lists = st.lists(trees(2, st.floats(-2.0, 2.0), cuts=st.integers(-3, 3).map(float)), min_size=1, max_size=5)
#: Gives the leaves of words a range, so that there is a unit.
SPAN = Split(0, 0.0, Leaf(-1.0), Leaf(1.0))


def _op(some: list[Split | Leaf], features: int, outputs: int, base: list[float], limit: float | None) -> SumMixed:
    model = model_of(forest_of(some, features, outputs), base=base)
    machine = lower(model, spec_of(DType.I8, features), leaf=DType.I16, choose=ways("search", "mixed", limit))
    total = rank_and_sum(machine)[1]
    assert isinstance(total, SumMixed)
    return total


@settings(max_examples=50, deadline=None)
@example([Split(0, 0.0, Leaf(0.0), Leaf(4.6e-286))], 1, 1.0, None, [(0, 0)])  # too narrow to give words a unit
@given(
    forest_trees=tree_lists,
    outputs=st.integers(1, 3),
    wide=st.sampled_from([1.0, 40.0, 1e4]),
    limit=st.sampled_from([None, 3.0]),
    rows=st.lists(st.tuples(st.integers(-4, 4), st.integers(-4, 4)), min_size=1, max_size=8),
)
def test_equals_recursion(
    forest_trees: list[Split | Leaf],
    outputs: int,
    wide: float,
    limit: float | None,
    rows: list[tuple[int, int]],
) -> None:
    """The same leaf in every tree, under the model's number of it; the score within the bound of the exact sum."""
    some = [*forest_trees, Split(0, 0.0, Leaf(-wide), Leaf(wide))]
    some += [SPAN] * (outputs + -(len(some) + outputs) % outputs)
    base = [0.25, -3.0, 1e-3][:outputs]
    model = model_of(forest_of(some, 2, outputs), base=base)
    chosen = ways("search", "mixed", limit)
    rank, total = rank_and_sum(lower(model, spec_of(DType.I8, 2), leaf=DType.I16, choose=chosen))
    assert isinstance(total, SumMixed)
    ranks = rank.eval(np.array(rows, np.int8))[0]
    names, score = total.leaf_names(ranks), total.eval(ranks)[0]
    whole = total.leaves.leaf[total.walk(ranks), 0].astype(np.int64)
    for r, row in enumerate(rows):
        leaf = [naive_leaf(t, row) for t in some]
        assert names[r].tolist() == leaf
        exact = exact_sum(some, leaf, base)
        for k in range(outputs):
            gap = abs(Fraction(int(score[r, k])) * Fraction(total.unit) - exact[k])
            assert gap <= Fraction(total.bound_error)
            assert score[r, k] == whole[r, k::outputs].sum() + total.leaves.base[k]
    assert limit is None or total.bound_error <= limit


def _chain(depth: int, scale: float = 1.0) -> Split | Leaf:
    tree: Split | Leaf = Leaf(0.5 * scale)
    for i in range(depth):
        tree = Split(i % 3, float(i) - depth / 2, Leaf(-0.1 * i * scale), tree, Missing.NAN, i % 2 == 0)
    return tree


CASES: dict[str, tuple[list[Split | Leaf], int]] = {
    "two trees": ([_chain(5), _chain(6, 2.0)], 1),
    "stumps and a leaf": ([_chain(1), _chain(1, 3.0), Leaf(0.25), _chain(1, 0.5)], 1),
    "widths far apart": ([_chain(4), _chain(3, 6000.0), _chain(4, 7.0), _chain(2, 900.0), _chain(5, 0.1)], 1),
    "three outputs": ([_chain(d % 4 + 1, 1.0 + d) for d in range(12)], 3),
    "300 trees": ([_chain(i % 3 + 1, 1.0 + i % 7) for i in range(300)], 1),
    "nine outputs": ([_chain(i % 3 + 1, 1.0 + i % 5) for i in range(27)], 9),
}


def test_wide_trees_are_code() -> None:
    """The wider trees of every output; each part has a whole round of outputs."""
    some, outputs = CASES["three outputs"]
    total = _op(some, 3, outputs, [0.0] * 3, None)
    assert total.code_trees.size % 3 == 0
    assert total.word_trees.size > 0
    assert total.code_trees.tolist() == sorted(total.code_trees.tolist())
    assert set(total.code_trees.tolist()) >= {9, 10, 11}


def test_check_finds_wrong_trees() -> None:
    some, outputs = CASES["three outputs"]
    total = _op(some, 3, outputs, [0.0] * 3, None)
    types = {"rank": TensorType((total.tables.n_columns,), DType.U8), "score": TensorType((3,), DType.I32)}
    total.check(types)
    with pytest.raises(InternalError):
        replace(total, code_trees=np.roll(total.code_trees, 1)).check(types)
    with pytest.raises(InternalError):
        replace(total, word_trees=total.word_trees + 1).check(types)


@pytest.mark.parametrize("dtype", [DType.F32, DType.I16])
@pytest.mark.parametrize("case", CASES)
def test_compiled(case: str, dtype: DType) -> None:
    """Outputs and leaves, at all thresholds and one step either side, at the ends of the type, NaN among them."""
    some, outputs = CASES[case]
    model = model_of(forest_of(some, 3, outputs))
    done = export_text(model, spec_of(dtype, 3), leaf=DType.I16, choose=CHOOSE, limit=300)
    assert isinstance(rank_and_sum(done.machine)[1], SumMixed)
    check_host(done.files, done.machine, done.ref.x, done.ref.y, done.ref.trace, find_host_compiler(None))


def test_on_the_board() -> None:
    board = load_board("stm32h743")
    try:
        compiler = find_cross_compiler()
    except InputError:
        pytest.skip("no cross compiler")
    pytest.importorskip("unicorn")
    some, outputs = CASES["three outputs"]
    model = model_of(forest_of(some, 3, outputs))
    done = export_text(model, spec_of(DType.F32, 3), leaf=DType.I16, choose=CHOOSE, limit=100, board=board.name)
    files = {k: v.encode() if isinstance(v, str) else v for k, v in done.files.items()}
    x, y = done.ref.x, done.ref.y
    on_board = BoardModel("m", files, *one_each(DType.F32, x.shape[1], DType.I32, y.shape[1]))
    found, _ = EmulatedBoard(build_image(on_board, board, compiler, "-O2"), board).run(on_board, x)
    assert np.array_equal(found.reshape(y.shape), y)


def test_what_it_refuses() -> None:
    """One tree, outputs of unequal trees, categories, leaves of other types, bounds that no leaves keep."""

    def refused(
        some: list[Split | Leaf], match: str, outputs: int = 1, leaf: DType = DType.I16, limit: float | None = None
    ) -> None:
        model = model_of(forest_of(some, 3, outputs))
        with pytest.raises(UnsupportedError, match=match):
            lower(model, spec_of(DType.F32, 3), leaf=leaf, choose=ways("search", "mixed", limit))

    refused([SPAN], "single tree")
    refused([SPAN, Leaf(1.0)], "no room")
    refused([SPAN] * 5, "more trees", outputs=3)
    refused([SPAN, Split(1, 0.0, Leaf(0.0), Leaf(1.0), categories=(1, 2))], "categorical")
    refused([SPAN, SPAN], "type float64", leaf=DType.F64)
    refused([_chain(5), _chain(6, 1.7)], "exact", limit=1e-12)
