"""Batches tree by tree: the bits of single predictions, whatever the number of rows, and when they are taken."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tree_models import (
    WAITING,
    Export,
    Leaf,
    Split,
    export_text,
    forest_of,
    lower,
    model_of,
    rank_and_sum,
    spec_of,
    trees,
    ways,
)

import mcugen
from mcugen.core.op import Item
from mcugen.core.ports import batch_slices, one_each
from mcugen.core.types import Array, DType
from mcugen.emit.parts import ports_of
from mcugen.emulate.batches import BatchBoard
from mcugen.emulate.image import BoardModel, build_image
from mcugen.emulate.toolchain import CrossCompiler, find_cross_compiler
from mcugen.errors import DiffersError, InputError, InternalError
from mcugen.target.board import load_board
from mcugen.trees.batches import BLOCK_BYTES, block_rows
from mcugen.trees.choose import plain_choice
from mcugen.trees.costs import Memory
from mcugen.trees.forest import Missing
from mcugen.trees.ops import SumMixed, SumPacked
from mcugen.trees.packed import Pairs, WordBits, form_for, word_forms
from mcugen.trees.tables import TreeTables
from mcugen.verify.compare import compare_bits
from mcugen.verify.compiler import compile_c, find_host_compiler
from mcugen.verify.export_check import check_host
from mcugen.verify.hostbuild import HostModel, build_shared

BOARD = "stm32h743"
FURNACE = Path(__file__).parents[2] / "examples" / "quickstart" / "furnace.txt"
#: The sum of float32 leaves differs in the order of trees: 2^24 + 1 - 2^24 is 0 or 1.
HOSTILE = (2.0**24, 1.0, -(2.0**24), 0.1, -0.1)


Form = Callable[[TreeTables, int], tuple[Pairs, WordBits] | None]
#: Ways of summing as words whose leaves have more bits: features, so that the flag is a part of the column, or of the
#: distance.
FINER = {"coded": 2, "apart": 5, "mixed coded": 2, "mixed apart": 5}
#: Of mixed trees only the code waits: words go row by row.
CODE_WAITS = Memory(data=10**6, cache=-1)


def finer(tables: TreeTables, most: int) -> tuple[Pairs, WordBits] | None:
    """As ``form_for``, but the shortest flag."""
    return next((form for form in reversed(word_forms(tables)) if form[1].most >= most), None)


def forest(trees_: int, features: int = 3, seed: int = 1, most: int = 9) -> list[Split | Leaf]:
    """Trees of 1 to ``most`` leaves, with missing values of all kinds."""
    rng = np.random.default_rng(seed)

    def grow(leaves: int) -> Split | Leaf:
        if leaves == 1:
            return Leaf(float(rng.choice(HOSTILE)) if seed == 2 else float(rng.normal()))
        left = int(rng.integers(1, leaves))
        missing = Missing(int(rng.integers(0, 3)))
        cut, feature = float(rng.integers(-20, 20)) / 2, int(rng.integers(0, features))
        return Split(feature, cut, grow(left), grow(leaves - left), missing, bool(rng.integers(0, 2)))

    return [grow(1 + t % most) for t in range(trees_)]


def sets(count: int) -> list[Split | Leaf]:
    """Trees that ask for categories in the last feature."""
    inner = [Split(2, 0.0, t, Leaf(0.5 + i), categories=(i, 31, 32, 33)) for i, t in enumerate(forest(count))]
    return [*inner]


def linear(trees_: int) -> list[Split | Leaf]:
    """Trees whose leaves are linear models, of none to three inputs."""
    rng = np.random.default_rng(3)

    def leaf(terms: int) -> Leaf:
        used = tuple((int(f), float(rng.normal())) for f in rng.permutation(3)[:terms])
        return Leaf(float(rng.normal()), (float(rng.choice(HOSTILE)), used))

    def inner(t: int) -> Split:
        return Split(0, 1.0, leaf(3), leaf(1), Missing.NAN, t % 2 == 0)

    return [Split(t % 3, float(t) / 2, leaf(t % 4), inner(t), Missing(t % 3)) for t in range(trees_)]


def exported(summing: str, leaf: DType, output: str = "raw", outputs: int = 1, board: str | None = None) -> Export:
    labels = ("a", "b", "c")[: max(outputs, 2)]
    link = ("softmax" if outputs > 1 else "sigmoid", 1.0)
    features, way = FINER.get(summing, 3), plain_choice
    if summing == "sets":
        some = sets(9)
    elif summing == "linear":
        some = linear(9 * outputs)
    else:
        some = forest(9 * outputs, features, 2 if leaf is DType.F32 else 1, 24 if summing in FINER else 9)
    if summing not in ("tables", "sets", "linear"):
        way = ways("search", {"coded": "packed", "apart": "packed"}.get(summing, summing.partition(" ")[0]))
    model = model_of(forest_of(some, features, outputs), link=link, labels=labels)
    memory = CODE_WAITS if summing == "mixed code" else WAITING
    with mock.patch("mcugen.trees.lower.form_for", finer if summing in FINER else form_for):
        return export_text(
            model, spec_of(DType.F32, features), output, leaf, choose=way, memory=memory, limit=150, board=board
        )


CASES = [
    ("tables", DType.I16, "raw", 1),
    ("tables", DType.F32, "raw", 3),
    ("tables", DType.F64, "proba", 3),
    ("sets", DType.F64, "class", 1),
    ("packed", DType.I16, "raw", 1),
    ("packed", DType.I16, "class", 3),
    ("branches", DType.F32, "raw", 3),
    ("branches", DType.I16, "proba", 1),
    ("coded", DType.I16, "raw", 3),
    ("apart", DType.I16, "proba", 1),
    ("mixed", DType.I16, "raw", 1),
    ("mixed coded", DType.I16, "class", 3),
    ("mixed apart", DType.I16, "raw", 3),
    ("mixed code", DType.I16, "proba", 3),
    ("linear", DType.F64, "raw", 3),
    ("linear", DType.F64, "proba", 1),
]
#: What the board runs of these.
FAST, SLOW = (1, 3, 5, 11, 14), (6, 8, 9, 13)
cases = pytest.mark.parametrize(("summing", "leaf", "output", "outputs"), CASES)


def rows_of(e: Export, count: int) -> Array:
    """``count`` of its vectors, which hold NaN, zeros and thresholds, again and again."""
    return e.ref.x[np.arange(count) % len(e.ref.x)]


@cases
def test_any_number_of_rows(summing: str, leaf: DType, output: str, outputs: int) -> None:
    """0, 1, one less and one more than a block, and many: as the reference says, and as NAME_run; nothing behind."""
    e = exported(summing, leaf, output, outputs)
    block = rank_and_sum(e.machine)[1].block
    assert block >= 4
    assert f"{e.name}_compute_rows" in str(e.files[f"{e.name}.c"])
    ins, outs = ports_of(e.machine)
    with (
        build_shared(e.files, e.sources, find_host_compiler()) as library,
        HostModel(library, e.name, ins, outs) as host,
    ):
        for n in (0, 1, 2, 3, block - 1, block, block + 1, block + 2, 2 * block - 1, 2 * block, 2 * block + 1, 200):
            x = rows_of(e, n)
            y = e.ref.y[np.arange(n) % len(e.ref.y)]
            assert all(compare_bits(y, found, "y") is None for found in (host.run(x), host.run_each(x))), n
    check_host(e.files, e.machine, e.ref.x, e.ref.y, e.ref.trace, find_host_compiler())


def test_forms_of_words() -> None:
    """What the cases above are: flags in the column and in the distance, beside code and alone."""
    for summing in ("packed", *FINER, "mixed code"):
        op = rank_and_sum(exported(summing, DType.I16, outputs=3).machine)[1]
        words = op.words if isinstance(op, SumMixed) else op
        assert isinstance(words, SumPacked)
        assert isinstance(op, SumMixed) == summing.startswith("mixed")
        assert (words.bits.flag < words.bits.distance) == (summing in FINER)
        assert words.bits.column_first == ("coded" in summing)
        assert not isinstance(op, SumMixed) or op.words_at_once == (summing != "mixed code")


MAIN = """\
#include "{n}.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const uint8_t rows[] = {{ {bytes} }};

/* Batches of 0 to {most} rows, each array in a block of exactly its size. */
int main(void)
{{
    for (uint32_t n = 0; n <= {most}u; ++n) {{
        float *x = malloc(n * {U}_INPUTS * sizeof *x + (n == 0u));
        {y} *y = malloc(n * {U}_OUTPUTS * sizeof *y + (n == 0u));
        {y} *one = malloc({U}_OUTPUTS * sizeof *one);
        memcpy(x, rows, n * {U}_INPUTS * sizeof *x);
        if ({n}_run_batch(x, y, n) != MCG_OK) {{
            return 1;
        }}
        for (uint32_t i = 0; i < n; ++i) {{
            const {y} *row = y + i * {U}_OUTPUTS;
            if ({n}_run(x + i * {U}_INPUTS, one) != MCG_OK || memcmp(one, row, {U}_OUTPUTS * sizeof *y) != 0) {{
                return 2;
            }}
        }}
        free(x);
        free(y);
        free(one);
    }}
    return {n}_run_batch(NULL, NULL, 1u) == MCG_ERR_ARG ? 0 : 3;
}}
"""


@pytest.mark.parametrize(
    ("summing", "leaf"),
    [
        ("tables", DType.F64),
        ("linear", DType.F64),
        *((s, DType.I16) for s in ("packed", "branches", "coded", "mixed coded", "mixed code")),
    ],
)
def test_memory(summing: str, leaf: DType, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Under ASan and UBSan: batches read and write their rows and nothing else."""
    e = exported(summing, leaf, outputs=3)
    x, y = rows_of(e, 70), e.machine.types[e.machine.outputs[0]].dtype
    text = ", ".join(str(b) for b in x.tobytes())
    main = MAIN.format(n=e.name, U=e.name.upper(), bytes=text, most=len(x), y=y.ctype)
    flags = ("-std=gnu11", "-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
    folder = tmp_path_factory.mktemp("memory")
    program = compile_c(
        folder, {**e.files, "main.c": main}, [*e.sources, "main.c"], find_host_compiler(), flags, "main"
    )
    done = subprocess.run([str(program)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[:1500]


def cross() -> CrossCompiler:
    pytest.importorskip("unicorn")
    try:
        return find_cross_compiler()
    except InputError:
        pytest.skip("no cross compiler")


@pytest.mark.parametrize(
    ("summing", "leaf", "output", "outputs"),
    [*(CASES[i] for i in FAST), *(pytest.param(*CASES[i], marks=pytest.mark.slow) for i in SLOW)],
)
def test_on_the_board(summing: str, leaf: DType, output: str, outputs: int) -> None:
    """The emulated board gives the same bits; a program that calls NAME_run alone holds nothing of it."""
    compiler, board = cross(), load_board(BOARD)
    e = exported(summing, leaf, output, outputs, BOARD)
    files = {k: v.encode() if isinstance(v, str) else v for k, v in e.files.items()}
    y = e.machine.types[e.machine.outputs[0]]
    ports = one_each(DType.F32, e.ref.x.shape[1], y.dtype, y.count)
    model = BoardModel(e.name, files, *ports, BOARD, batches=True)
    image = build_image(model, board, compiler, rows=40)
    machine = BatchBoard(image, board)
    assert compare_bits(e.ref.y, machine.batches(model, e.ref.x).reshape(e.ref.y.shape), "y") is None
    assert image.batch is not None
    names = [{f.name.split(".")[0] for f in elf.functions()} for elf in (image.elf, image.batch)]
    assert {n for n in names[0] if n.endswith(("_rows", "_run_batch"))} == set()
    assert f"{e.name}_run_batch" in names[1]
    assert machine.stack_bytes() < BLOCK_BYTES + 512


def test_rows_without_room() -> None:
    """Rows that the board cannot hold take nothing away: the program without batches is there."""
    compiler, board = cross(), load_board(BOARD)
    e = exported("tables", DType.I16)
    files = {k: v.encode() if isinstance(v, str) else v for k, v in e.files.items()}
    model = BoardModel(e.name, files, *one_each(DType.F32, 3, DType.I32, 1), batches=True)
    image = build_image(model, board, compiler, rows=100_000)
    assert image.batch is None
    with pytest.raises(InternalError, match="NAME_run_batch"):
        BatchBoard(image, board)


@settings(max_examples=10, deadline=None)
@given(
    data=st.data(),
    outputs=st.sampled_from([1, 2]),
    block=st.sampled_from([2, 4, 6]),
    way=st.sampled_from(["tables", "branches", "packed", "mixed"]),
    form=st.sampled_from([finer, form_for]),
)
def test_small_blocks(data: st.DataObject, outputs: int, block: int, way: str, form: Form) -> None:
    """Forests of any shape, blocks of any size: the C equals the reference."""
    words = way in ("packed", "mixed")
    kind = trees(2, st.floats(-8, 8, width=16), categorical=not words)
    some = data.draw(st.lists(kind, min_size=outputs, max_size=5))
    some = some[: len(some) // outputs * outputs]
    if words:  # two rounds of trees, with a range that gives leaves a unit
        some += [Split(0, 0.0, Leaf(-1.0), Leaf(1.0))] * (2 * outputs)
    model, memory = model_of(forest_of(some, 2, outputs)), data.draw(st.sampled_from([WAITING, CODE_WAITS]))
    memory = memory if way == "mixed" else WAITING
    with mock.patch("mcugen.trees.lower.form_for", form):
        e = export_text(
            model, spec_of(DType.F32, 2), leaf=DType.I16, choose=ways("search", way), memory=memory, limit=40
        )
    most = rank_and_sum(e.machine)[1].block
    assert most >= 24
    smaller = str(e.files["m.c"]).replace(f"n < {most}u ? n : {most}u", f"n < {block}u ? n : {block}u")
    assert smaller != e.files["m.c"]
    check_host(e.files | {"m.c": smaller}, e.machine, e.ref.x, e.ref.y, e.ref.trace, find_host_compiler())


# When


def item(role: str, size: int) -> Item:
    return Item("m", role, "uint8_t", size, size, 4, 1.0, "")


@pytest.mark.parametrize(
    ("items", "memory", "rows"),
    [
        ([item("table", 16_384)], Memory(), 1),  # a cache holds it
        ([item("table", 16_385)], Memory(), 32),
        ([item("table", 70_000)], Memory(data=65_536), 1),  # 4 KB in flash
        ([item("table", 90_000)], Memory(data=65_536), 32),
        ([item("code", 25_000)], Memory(), 1),  # at most 20 bytes a node, 13 on average
        ([item("code", 26_000)], Memory(), 32),
        ([item("code", 26_000)], Memory(code=4_000), 1),
        ([item("table", 12_000), item("code", 12_000)], Memory(), 1),  # two caches
        ([], Memory(), 1),
    ],
)
def test_only_where_trees_wait(items: list[Item], memory: Memory, rows: int) -> None:
    assert block_rows(items, 16, memory) == rows


@pytest.mark.parametrize(
    ("row", "rows"), [(1, 32), (32, 32), (33, 30), (100, 10), (200, 4), (204, 4), (256, 4), (257, 1), (5000, 1)]
)
def test_blocks_fit_the_stack(row: int, rows: int) -> None:
    """An even number of rows, at least four, within 1,024 bytes."""
    assert block_rows([item("table", 10**6)], row, Memory()) == rows


def test_no_batches_unasked() -> None:
    """Chains call trees by themselves: nothing is generated that they do not use."""
    plain = lower(model_of(forest_of(forest(4), 3)), spec_of(DType.F32, 3))
    assert rank_and_sum(plain)[1].block == 1
    small = lower(model_of(forest_of(forest(4), 3)), spec_of(DType.F32, 3), memory=Memory())
    assert rank_and_sum(small)[1].block == 1
    e = export_text(model_of(forest_of(forest(4), 3)), spec_of(DType.F32, 3), memory=Memory())
    assert "_rows" not in str(e.files["m.c"])
    assert "row after row" in str(e.files["m.h"])


@pytest.mark.parametrize(
    ("summing", "leaf", "output", "scores"),
    [
        ("tables", DType.F64, "raw", 0),
        ("tables", DType.F64, "proba", 3 * 8),
        ("linear", DType.F64, "raw", 0),
        ("coded", DType.I16, "raw", 16),  # ranks by code
        ("mixed", DType.I16, "raw", 3 * 4),  # the sum of the code
        ("mixed coded", DType.I16, "proba", 3 * 4 + 3 * 4 + 16),
    ],
)
def test_header_says_what_it_takes(summing: str, leaf: DType, output: str, scores: int) -> None:
    """Stack is the caller's to have: ranks of a block, its scores where they are not the output itself, and sums."""
    e = exported(summing, leaf, output, 3)
    block, columns = rank_and_sum(e.machine)[1].block, e.machine.types["rank"].count
    assert f"{block} rows" in str(e.files["m.h"])
    assert f"{block * (columns + scores)} bytes" in str(e.files["m.h"])


@given(rows=st.integers(0, 300), most=st.integers(1, 50))
def test_slices(rows: int, most: int) -> None:
    """All rows once, in order, in batches of 1, 2, 3 up to most."""
    found = list(batch_slices(rows, most))
    assert [i for s in found for i in range(s.start, s.stop)] == list(range(rows))
    sizes = [s.stop - s.start for s in found]
    assert all(b == a % most + 1 for a, b in pairwise(sizes[:-1]))
    assert all(s <= most for s in sizes)


def test_block_is_part_of_the_reference() -> None:
    """What an op takes at once changes no result."""
    e = exported("packed", DType.I16)
    op = rank_and_sum(e.machine)[1]
    rank = rank_and_sum(e.machine)[0].eval(e.ref.x)[0]
    assert np.array_equal(op.eval(rank)[0], replace(op, block=1).eval(rank)[0])


def in_blocks(folder: Path, words: bool = True, **options: str) -> Path:
    """An export with blocks, as of a model that waits for flash: its ``words`` too, or its code alone."""
    out, waits = folder / "furnace", (words, True)
    with (
        mock.patch("mcugen.trees.batches.waiting", return_value=waits),
        mock.patch("mcugen.trees.lower.waiting", return_value=waits),
    ):
        mcugen.export(FURNACE, out, **options)
    return out


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return in_blocks(tmp_path_factory.mktemp("batches"), optimize="speed")


@pytest.fixture(scope="module")
def mixed_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return in_blocks(tmp_path_factory.mktemp("batches"), optimize="ram", ways="coarse+mixed")


@pytest.fixture(scope="module")
def code_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return in_blocks(tmp_path_factory.mktemp("batches"), words=False, optimize="ram", ways="coarse+mixed")


@pytest.mark.parametrize(
    ("fixture", "right", "wrong"),
    [
        ("folder", r"(furnace_sum_rows\([^;]*), n\);", r"\1, n - 1u);"),
        ("mixed_folder", r"(furnace_words_sum_rows\([^;]*), n\);", r"\1, n - 1u);"),
        ("mixed_folder", r"(furnace_code_sum_rows\([^;]*), n\);", r"\1, n - 1u);"),
        ("mixed_folder", r"_join\(sum_rows, code_rows, n \*", "_join(sum_rows, code_rows, (n - 1u) *"),
        ("code_folder", r"rank_t \*const rank = rank_rows \+ i \*", "rank_t *const rank = rank_rows + 0u *"),
    ],
    ids=["code", "words beside code", "code beside words", "their sum", "words row by row"],
)
def test_a_wrong_batch_is_found(
    fixture: str, right: str, wrong: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """Single predictions stay right: only batches can show it."""
    folder: Path = request.getfixturevalue(fixture)
    mcugen.verify(folder)
    copy = tmp_path / "wrong"
    shutil.copytree(folder, copy)
    source = copy / "furnace.c"
    text, count = re.subn(right, wrong, source.read_text())
    assert count == 1
    source.write_text(text)
    with pytest.raises(DiffersError, match=r"golden vectors.*values differ"):
        mcugen.verify(copy)


def test_a_board_without_the_proof_says_so(folder: Path) -> None:
    if shutil.which("qemu-system-arm") is None or shutil.which("arm-none-eabi-gcc") is None:
        pytest.skip("no qemu-system-arm, or no cross compiler")
    lines = mcugen.verify(folder, target="mps2_an500")
    assert "NAME_run_batch was not run on mps2_an500: verify it on the host" in lines
