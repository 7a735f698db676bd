"""SumMixed: ranks to scores. Some trees are code, the rest words of 16 bits; two sums in one unit are added."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from mcugen.core.op import Cost, Item, Names, OpText
from mcugen.core.passes import value_type
from mcugen.core.types import Array, DType, TensorType
from mcugen.ctext.arrays import array_rows
from mcugen.errors import InternalError
from mcugen.trees.leaves import PackedLeaves
from mcugen.trees.mixed import leaves_of
from mcugen.trees.ops.sum_branches import SumBranches
from mcugen.trees.ops.sum_packed import SumPacked
from mcugen.trees.summing import Summing
from mcugen.trees.support import code_item


@dataclass(frozen=True, slots=True, eq=False)
class SumMixed(Summing):
    """rank (columns,) -> score (K,) int32 in units of ``leaves``.

    ``code`` and ``words`` sum the trees ``code_trees`` and ``word_trees``, by number, ascending; one unit of theirs is
    ``code_units`` and ``word_units`` of the whole. ``leaves``: of all trees, in units of the whole. ``words_at_once``:
    whether rows of a block go through the words together, too: that takes more instructions than one after the other.
    """

    kernel: ClassVar[tuple[str, str]] = ("mcg_trees_join", "include/mcg_trees_branch.h")

    leaves: PackedLeaves
    code: SumBranches
    words: SumPacked
    code_trees: Array
    word_trees: Array
    code_units: int
    word_units: int
    block: int = 1
    words_at_once: bool = True

    def row_bytes(self, types: Mapping[str, TensorType]) -> int:
        """The sum of the code, and what words take."""
        return DType.I32.size * self._outputs + (self.words.row_bytes(types) if self.words_at_once else 0)

    @property
    def bound_error(self) -> float:
        return self.leaves.bound.error

    @property
    def unit(self) -> float:
        return self.leaves.unit

    @property
    def _outputs(self) -> int:
        return int(self.leaves.base.size)

    def check(self, types: Mapping[str, TensorType]) -> None:
        rank = value_type(types, self.inputs[0], "SumMixed")
        score = value_type(types, self.outputs[0], "SumMixed")
        self.code.check(types)
        self.words.check(types)
        k, trees = self._outputs, np.concatenate([self.code_trees, self.word_trees])
        ok = rank.shape == (max(self.tables.n_columns, 1),) and score.shape == (k,) and score.dtype is DType.I32
        ok = ok and np.array_equal(np.sort(trees), np.arange(self.tables.n_trees))
        for part, own in ((self.code, self.code_trees), (self.words, self.word_trees)):
            # Each part takes its tree t for one of output t % K.
            ok = ok and part.tables.n_trees == own.size and np.array_equal(own % k, np.arange(own.size) % k)
        if not ok:
            raise InternalError(str(self.loc), "SumMixed: tables do not fit the types of its operands")

    def walk(self, rank: Array) -> Array:
        """(N, columns) ranks -> (N, T) leaves, counted over all trees."""
        leaf = np.empty((len(rank), self.tables.n_trees), np.int64)
        for part, trees in ((self.code, self.code_trees), (self.words, self.word_trees)):
            leaf[:, trees] = leaves_of(self.tables, trees)[part.walk(rank)]
        return leaf

    def eval(self, *args: Array) -> tuple[Array, ...]:
        """(N, columns) ranks -> (N, K) scores."""
        (code,), (words,) = self.code.eval(*args), self.words.eval(*args)
        out = code.astype(np.int64) * self.code_units + words.astype(np.int64) * self.word_units
        if out.size and np.abs(out).max() > DType.I32.max:
            raise InternalError(str(self.loc), "an int32 sum overflowed that was proven not to")
        return (out.astype(np.int32),)

    def items(self, prefix: str) -> tuple[Item, ...]:
        join = code_item(f"{prefix}_sum", 60, 20, "adds what trees as code and as words give")
        return join, *self.code.items(f"{prefix}_code"), *self.words.items(f"{prefix}_words")

    def trace_items(self, prefix: str) -> tuple[Item, ...]:
        # Names stand in the code and beside the words; what is left is their type.
        return tuple(replace(i, data=None, count=0, size=0) for i in self.tables.trace_items(prefix))

    def emit(self, prefix: str, args: tuple[str, ...], results: tuple[str, ...], names: Names) -> OpText:
        function, rank, k = f"{prefix}_sum", f"const {prefix}_rank_t *rank", self._outputs
        by_code, by_words = replace(self.code, block=self.block), self.words
        if self.words_at_once:
            by_words = replace(by_words, block=self.block)
        code = by_code.emit(f"{prefix}_code", ("rank",), ("code",), names)
        words = by_words.emit(f"{prefix}_words", ("rank",), ("sum",), names)
        types = "".join(f"typedef {prefix}_rank_t {prefix}_{part}_rank_t;\n" for part in ("code", "words"))
        lines = [
            f"{names.section[function]} static void {function}({rank}, int32_t *sum)",
            "{",
            f"    int32_t code[{k}];",
            f"    {words.call}",
            f"    {code.call}",
            f"    mcg_trees_join(sum, code, {k}u, {self.word_units}, {self.code_units});",
            "}",
            *(self._rows(prefix, code, words) if self.block > 1 else ()),
            *self._trace(prefix, rank, code.trace, words.trace),
            "",
        ]
        text = "\n".join([types, code.definitions, words.definitions, "\n".join(lines)])
        includes = (*code.includes, *words.includes)
        trace = f"{function}_leaves({args[0]}, leaf);"
        rows = f"{function}_rows({args[0]}_rows, {results[0]}_rows, n);" if self.block > 1 else ""
        return OpText(tuple(dict.fromkeys(includes)), text, f"{function}({args[0]}, {results[0]});", trace, rows=rows)

    def _rows(self, prefix: str, code: OpText, words: OpText) -> list[str]:
        """The function for several rows: words for all of them, code for all of them, then what both give."""
        k, operands = self._outputs, f"const {prefix}_rank_t *rank_rows, int32_t *sum_rows, uint32_t n"
        one_by_one = [
            "for (uint32_t i = 0; i < n; ++i) {",
            f"    const {prefix}_rank_t *const rank = rank_rows + i * {max(self.tables.n_columns, 1)}u;",
            f"    int32_t *const sum = sum_rows + i * {k}u;",
            f"    {words.call}",
            "}",
        ]
        return [
            f"MCG_UNUSED static void {prefix}_sum_rows({operands})",
            "{",
            f"    int32_t code_rows[{self.block * k}];",
            *(f"    {line}" for line in ([words.rows] if words.rows else one_by_one)),
            f"    {code.rows}",
            f"    mcg_trees_join(sum_rows, code_rows, n * {k}u, {self.word_units}, {self.code_units});",
            "}",
        ]

    def _trace(self, prefix: str, rank: str, code: str, words: str) -> list[str]:
        """The function that notes leaves: those of each part, put where the tree stands in the model."""
        kind, lines = self.tables.name_ctype, []
        for part, trees in (("code", self.code_trees), ("words", self.word_trees)):
            lines.append(f"static const uint32_t {prefix}_{part}_trees[{trees.size}] = {{\n{array_rows(trees)}}};")
        lines += [f"static void {prefix}_sum_leaves({rank}, {kind} *all)", "{"]
        for part, trees, call in (("code", self.code_trees, code), ("words", self.word_trees, words)):
            lines += [
                "    {",
                f"        {kind} leaf[{trees.size}];",
                f"        {call}",
                f"        for (uint32_t i = 0; i < {trees.size}u; ++i) {{",
                f"            all[{prefix}_{part}_trees[i]] = leaf[i];",
                "        }",
                "    }",
            ]
        return ["#if defined(MCG_TRACE)", *lines, "}", "#endif"]

    def cost(self) -> Cost:
        code, words = self.code.cost(), self.words.cost()
        return Cost(code.reads + words.reads, 0, code.steps + words.steps, code.worst_steps + words.worst_steps)
