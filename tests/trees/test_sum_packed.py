"""SumPacked: the words lead every row to the leaf of plain recursion, and the compiled walk does the same."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tree_models import (
    Export,
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
from mcugen.errors import InputError, UnsupportedError
from mcugen.target.board import load_board
from mcugen.trees.forest import Missing
from mcugen.trees.ops import RankInputs, SumPacked
from mcugen.trees.packed import WordBits, pair_up
from mcugen.verify.compiler import find_host_compiler
from mcugen.verify.export_check import check_host

CHOOSE = ways("search", "packed")
tree_lists = st.lists(trees(2, st.floats(-2.0, 2.0), cuts=st.integers(-3, 3).map(float)), min_size=1, max_size=7)
#: Gives the leaves a range, so that there is a unit.
SPAN = Split(0, 0.0, Leaf(-1.0), Leaf(1.0))


@settings(max_examples=150, deadline=None)
@given(
    forest_trees=tree_lists,
    outputs=st.integers(1, 3),
    wide=st.sampled_from([1.0, 40.0]),
    rows=st.lists(st.tuples(st.integers(-4, 4), st.integers(-4, 4)), min_size=1, max_size=8),
)
def test_equals_recursion(
    forest_trees: list[Split | Leaf], outputs: int, wide: float, rows: list[tuple[int, int]]
) -> None:
    """The same leaf in every tree; the score within the bound of the exact sum."""
    some = [*forest_trees, SPAN, Split(0, 0.0, Leaf(-wide), Leaf(wide))]
    base = [0.25, -3.0, 1e-3][:outputs]
    model = model_of(forest_of(some, 2, outputs), base=base)
    rank, total = rank_and_sum(lower(model, spec_of(DType.I8, 2), leaf=DType.I16, choose=CHOOSE))
    assert isinstance(total, SumPacked)
    ranks = rank.eval(np.array(rows, np.int8))[0]
    names, score = total.leaf_names(ranks), total.eval(ranks)[0]
    for r, row in enumerate(rows):
        leaf = [naive_leaf(t, row) for t in some]
        assert names[r].tolist() == leaf
        exact = exact_sum(some, leaf, base)
        for k in range(outputs):
            gap = abs(Fraction(int(score[r, k])) * Fraction(total.unit) - exact[k])
            assert gap <= Fraction(total.bound_error)


@settings(max_examples=60, deadline=None)
@given(forest_trees=tree_lists, flag=st.sampled_from([1, 2, 3, 16]))
def test_pairs_do_not_overlap(forest_trees: list[Split | Leaf], flag: int) -> None:
    """Every slot of a tree is taken once; children stand behind their parents, not a multiple of 2^flag away."""
    _, total = rank_and_sum(lower(model_of(forest_of(forest_trees, 2)), spec_of(DType.F32, 2)))
    t = total.tables
    pairs = pair_up(t, flag)
    for i in range(t.n_trees):
        a, b = int(t.first[i]), int(t.first[i + 1])
        slots = [*pairs.place[a:b].tolist(), *pairs.leaf_place[a + i : b + i + 1].tolist()]
        assert len(set(slots)) == 2 * (b - a) + 1
        assert max(slots) <= 2 * int(pairs.pairs[i])
        unused = set(range(2 * int(pairs.pairs[i]) + 1)) - set(slots)
        assert {s + 1 if s % 2 else s - 1 for s in unused} == unused  # whole pairs
        assert not (flag == 16 and unused)
    assert np.all(pairs.distance >= 1)
    assert np.all(pairs.distance % 2**flag)


#: 12 columns, which leave 4 of 16 codes; 16 leave none. Trees whose subtrees are of all sizes.
def _forest(columns: int) -> list[Split | Leaf]:
    def grow(size: int, at: int) -> Split | Leaf:
        if size == 0:
            return Leaf(((at * 7919) % 10007) / 10007)
        left = (at * 31 + size) % size
        return Split(at % columns, float(at % 5) - 2.0, grow(left, 3 * at + 1), grow(size - 1 - left, 5 * at + 2))

    return [grow(size, at) for at, size in enumerate((30, 30, 30, 29, 30, 17, 3, 1, 15, 30, 8, 16))]


def _every_form(columns: int) -> list[tuple[WordBits, SumPacked, RankInputs]]:
    """The same trees in each form of words, by bounds that fall."""
    found: dict[WordBits, tuple[WordBits, SumPacked, RankInputs]] = {}
    for error in np.geomspace(1.0, 1e-6, 40):
        chosen = ways("search", "packed", limit=float(error))
        try:
            rank, total = rank_and_sum(
                lower(
                    model_of(forest_of(_forest(columns), columns)),
                    spec_of(DType.F32, columns),
                    leaf=DType.I16,
                    choose=chosen,
                )
            )
        except UnsupportedError:
            break
        assert isinstance(total, SumPacked)
        assert isinstance(rank, RankInputs)
        assert total.bound_error <= error
        found.setdefault(total.bits, (total.bits, total, rank))
    return list(found.values())


@pytest.mark.parametrize("columns", [12, 16])
def test_forms_of_words(columns: int) -> None:
    """Shorter flags, in the distance and in the column, lead to the same leaves, within bounds that fall."""
    forms = _every_form(columns)
    assert [b.flag for b, _, _ in forms] == sorted((b.flag for b, _, _ in forms), reverse=True)
    assert {b.leaf for b, _, _ in forms} >= {12, 13}
    if columns == 12:
        assert any(b.column_first for b, _, _ in forms)
    else:
        assert not any(b.column_first for b, _, _ in forms)
    x = np.random.default_rng(1).integers(-3, 4, (60, columns)).astype(np.float32)
    x[0] = np.nan
    some = _forest(columns)
    for _, total, rank in forms:
        ranks = rank.eval(x)[0]
        names, score = total.leaf_names(ranks), total.eval(ranks)[0]
        types = {"rank": TensorType((columns,), DType.U8), "score": TensorType((1,), DType.I32)}
        total.check(types)
        for r, row in enumerate(x.tolist()):
            leaf = [naive_leaf(t, row) for t in some]
            assert names[r].tolist() == leaf
            gap = abs(Fraction(int(score[r, 0])) * Fraction(total.unit) - exact_sum(some, leaf, [0.0])[0])
            assert gap <= Fraction(total.bound_error)


@pytest.mark.parametrize("columns", [12, 16])
def test_forms_compiled(columns: int) -> None:
    """The C of every form, on the host, and where there is a board on it, with assembly or without."""
    for bits, total, _ in _every_form(columns):
        chosen = ways("search", "packed", limit=total.bound_error)
        done = export_text(
            model_of(forest_of(_forest(columns), columns)),
            spec_of(DType.F32, columns),
            leaf=DType.I16,
            choose=chosen,
            limit=200,
            board="stm32h743",
        )
        op = rank_and_sum(done.machine)[1]
        assert isinstance(op, SumPacked)
        assert op.bits == bits
        check_host(done.files, done.machine, done.ref.x, done.ref.y, done.ref.trace, find_host_compiler(None))
        _check_on_board(done, bits.flag % 2 == 0)


def _check_on_board(done: Export, plain: bool) -> None:
    """Nothing without a cross compiler and emulator."""
    board = load_board("stm32h743")
    try:
        compiler = find_cross_compiler()
    except InputError:
        return
    pytest.importorskip("unicorn")
    files = {k: v.encode() if isinstance(v, str) else v for k, v in done.files.items()}
    if plain:
        files["m.c"] = b"#define MCG_NO_ASM 1\n" + files["m.c"]
    x, y = done.ref.x, done.ref.y
    on_board = BoardModel("m", files, *one_each(DType.F32, x.shape[1], DType.I32, y.shape[1]))
    found, _ = EmulatedBoard(build_image(on_board, board, compiler, "-O2"), board).run(on_board, x)
    assert np.array_equal(found.reshape(y.shape), y)


def _chain(depth: int, scale: float = 1.0) -> Split | Leaf:
    tree: Split | Leaf = Leaf(0.5 * scale)
    for i in range(depth):
        tree = Split(i % 3, float(i) - depth / 2, Leaf(-0.1 * i * scale), tree, Missing.NAN, i % 2 == 0)
    return tree


CASES: dict[str, tuple[list[Split | Leaf], int]] = {
    "one size, an even count": ([_chain(5), _chain(5, 2.0), _chain(5, 3.0), _chain(5, 1.5)], 1),
    "one size, an odd count": ([_chain(6), _chain(6, 2.0), _chain(6, 1.3)], 1),
    "all sizes": ([_chain(d) for d in (1, 7, 2, 3, 9)] + [Leaf(0.25)], 1),
    "units": ([_chain(4), _chain(3, 60.0), _chain(4, 7.0), _chain(2, 900.0), _chain(5, 0.1)], 1),
    "three outputs": ([_chain(d % 4 + 1, 1.0 + d) for d in range(11)], 3),
    "two trees deep at once": ([Split(0, 0.0, _chain(4), _chain(4)), Split(1, 0.0, _chain(4), _chain(5))], 1),
}


@pytest.mark.parametrize("dtype", [DType.F32, DType.I16])
@pytest.mark.parametrize("case", CASES)
def test_compiled(case: str, dtype: DType) -> None:
    some, outputs = CASES[case]
    done = export_text(
        model_of(forest_of(some, 3, outputs)), spec_of(dtype, 3), leaf=DType.I16, choose=CHOOSE, limit=300
    )
    check_host(done.files, done.machine, done.ref.x, done.ref.y, done.ref.trace, find_host_compiler(None))


@pytest.mark.parametrize("plain", [False, True])
@pytest.mark.parametrize("case", ["all sizes", "units", "three outputs"])
def test_on_the_board(case: str, plain: bool) -> None:
    """The carry of a comparison as the child, in assembly and in C: the same bits."""
    board = load_board("stm32h743")
    try:
        compiler = find_cross_compiler()
    except InputError:
        pytest.skip("no cross compiler")
    pytest.importorskip("unicorn")
    some, outputs = CASES[case]
    model = model_of(forest_of(some, 3, outputs))
    done = export_text(model, spec_of(DType.F32, 3), leaf=DType.I16, choose=CHOOSE, limit=100, board=board.name)
    files = {k: v.encode() if isinstance(v, str) else v for k, v in done.files.items()}
    if plain:
        files["m.c"] = b"#define MCG_NO_ASM 1\n" + files["m.c"]
    x, y = done.ref.x, done.ref.y
    on_board = BoardModel("m", files, *one_each(DType.F32, x.shape[1], DType.I32, y.shape[1]))
    found, _ = EmulatedBoard(build_image(on_board, board, compiler, "-O2"), board).run(on_board, x)
    assert np.array_equal(found.reshape(y.shape), y)


def test_what_it_refuses() -> None:
    """Categories, leaves of other types, nodes that 16 bits do not hold."""
    sets = [SPAN, Split(1, 0.0, Leaf(0.0), Leaf(1.0), categories=(1, 2))]
    with pytest.raises(UnsupportedError, match="categorical"):
        lower(model_of(forest_of(sets, 2)), spec_of(DType.F32, 2), leaf=DType.I16, choose=CHOOSE)
    for leaf in (DType.I32, DType.F32, DType.F64):
        with pytest.raises(UnsupportedError, match=f"type {leaf.label}"):
            lower(model_of(forest_of([SPAN], 1)), spec_of(DType.F32, 1), leaf=leaf, choose=CHOOSE)
    many = [Split(i % 200, float(i), Leaf(0.0), Leaf(1.0)) for i in range(200 * 130)]
    with pytest.raises(UnsupportedError, match="16 bits"):
        lower(model_of(forest_of(many, 200)), spec_of(DType.I16, 200), leaf=DType.I16, choose=CHOOSE)
