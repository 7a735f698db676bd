"""SumBranches: ranks to scores. The trees are code: nested ifs, the likelier side first, many trees a function."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from mcugen.core.op import Cost, Item, Names, OpText
from mcugen.core.passes import value_type
from mcugen.core.types import Array, DType, TensorType
from mcugen.ctext.literals import float32_literal, float64_literal, int_literal
from mcugen.errors import InternalError
from mcugen.trees.branches import MOST_DEPTH, REGISTERS, TreeGroup, group_trees, tree_lines
from mcugen.trees.leaves import PackedLeaves
from mcugen.trees.summing import Summing
from mcugen.trees.support import code_item, table_item

#: Bytes a node and its leaf take at most, as GCC optimizes these functions in any build (13 to 20 on seven models).
_NODE_BYTES = 20

_NO_FAST_MATH = """\
#if defined(__FAST_MATH__)
#error "mcugen: float sums lose their order under -ffast-math; build without it, or export with --leaf int16"
#endif"""


@dataclass(frozen=True, slots=True, eq=False)
class SumBranches(Summing):
    """rank (columns,) -> score (K,): int32 in units of the leaves, or float32 or float64 added tree by tree.

    ``order`` (T,): the trees as the code adds them (``order_trees``).
    """

    kernel: ClassVar[tuple[str, str]] = ("MCG_BRANCH_ADD", "include/mcg_trees_branch.h")

    leaves: PackedLeaves
    order: Array
    block: int = 1

    @property
    def bound_error(self) -> float:
        return self.leaves.bound.error

    @property
    def unit(self) -> float:
        return self.leaves.unit

    @property
    def sum_dtype(self) -> DType:
        return self.leaves.dtype if self.leaves.dtype.is_float else DType.I32

    @property
    def _outputs(self) -> int:
        return int(self.leaves.base.size)

    @property
    def groups(self) -> tuple[TreeGroup, ...]:
        """What each function holds."""
        return group_trees(self.tables, self._outputs, self.leaves.factor, self.order)

    def check(self, types: Mapping[str, TensorType]) -> None:
        rank = value_type(types, self.inputs[0], "SumBranches")
        score = value_type(types, self.outputs[0], "SumBranches")
        t = self.tables
        ok = rank.shape == (max(t.n_columns, 1),) and score.shape == (self._outputs,)
        ok = ok and score.dtype is self.sum_dtype and self.leaves.leaf.shape == (t.column.size + t.n_trees, 1)
        factor = self.leaves.factor
        ok = (
            ok and factor.shape == (t.n_trees,) and bool(np.all(factor & (factor - 1) == 0)) and t.deepest <= MOST_DEPTH
        )
        ok = ok and np.array_equal(np.sort(self.order), np.arange(t.n_trees))
        by_output = self.order % self._outputs
        ok = ok and bool(np.all(np.diff(by_output) >= 0))
        same = np.flatnonzero(np.diff(by_output) == 0)
        # Floats in the order of the library, integers from coarse units to fine ones.
        step = np.diff(self.order if self.leaves.dtype.is_float else -factor[self.order])
        ok = ok and bool(np.all(step[same] >= 0))
        if not ok:
            raise InternalError(str(self.loc), "SumBranches: tables do not fit the types of its operands")

    @np.errstate(over="ignore", invalid="ignore")  # sums of doubles near 1e308, as in the library
    def eval(self, *args: Array) -> tuple[Array, ...]:
        """(N, columns) ranks -> (N, K) scores, in the order of the code: sums of coarse trees are scaled first."""
        leaf = self.walk(args[0])
        exact = np.int64 if self.sum_dtype is DType.I32 else self.sum_dtype.np
        value = self.leaves.leaf[:, 0].astype(exact)
        out = np.zeros((len(leaf), self._outputs), exact)
        if self.sum_dtype is not DType.I32:
            out += self.leaves.base.astype(exact)
        for run in (r for group in self.groups for r in group):
            column = out[:, run.output]
            for t, scale in zip(run.trees, run.scale, strict=True):
                if scale > 1:
                    column *= scale
                column += value[leaf[:, t]]
            if run.end > 1:
                column *= run.end
        if self.sum_dtype is DType.I32:
            out += self.leaves.base.astype(exact)
            if out.size and np.abs(out).max() > DType.I32.max:
                raise InternalError(str(self.loc), "an int32 sum overflowed that was proven not to")
        return (out.astype(self.sum_dtype.np),)

    def items(self, prefix: str) -> tuple[Item, ...]:
        t = self.tables
        found = [code_item(f"{prefix}_sum", 24 + 12 * len(self.groups), 8, "calls the functions of trees")]
        steps = t.steps_of_trees()
        for i, group in enumerate(self.groups):
            trees = [tree for run in group for tree in run.trees]
            nodes = int(t.sizes[trees].sum())
            mean = float(steps[trees].sum())
            size = _NODE_BYTES * nodes + 8 * len(trees) + 16 + 24 * len(group)
            found.append(code_item(f"{prefix}_trees_{i}", size, 2 * mean + len(trees), f"{len(trees)} trees as code"))
        if t.set_words.size:
            share = float(np.mean(t.column >= t.first_set)) if t.column.size else 0.0
            about = "categories that go left, a bit a code"
            found.append(table_item(f"{prefix}_sets", "uint32_t", t.set_words, share * t.steps[0], about))
        return tuple(found)

    def trace_items(self, prefix: str) -> tuple[Item, ...]:
        # Names stand in the code; what is left is their type.
        return tuple(replace(i, data=None, count=0, size=0) for i in self.tables.trace_items(prefix))

    def emit(self, prefix: str, args: tuple[str, ...], results: tuple[str, ...], names: Names) -> OpText:
        functions = [self._function(prefix, i, group, names) for i, group in enumerate(self.groups)]
        # Floats keep the order of the library.
        begin = "MCG_BRANCHES_BEGIN_FEW" if self.tables.n_columns <= REGISTERS else "MCG_BRANCHES_BEGIN"
        guard = [] if self.sum_dtype is DType.I32 else [_NO_FAST_MATH]
        text = "\n".join([*guard, begin, *functions, "MCG_BRANCHES_END", self._sum(prefix, names)])
        call = f"{prefix}_sum({args[0]}, {results[0]});"
        rows = f"{prefix}_sum_rows({args[0]}_rows, {results[0]}_rows, n);" if self.block > 1 else ""
        return OpText(("mcg_trees_branch.h",), text, call, f"{prefix}_sum_leaves({args[0]}, leaf);", rows=rows)

    def _literal(self, value: float) -> str:
        if self.sum_dtype is DType.I32:
            return int_literal(int(value))
        return float32_literal(float(value)) if self.sum_dtype is DType.F32 else float64_literal(float(value))

    def _function(self, prefix: str, number: int, group: TreeGroup, names: Names) -> str:
        kind, trace = self.sum_dtype.ctype, f"MCG_BRANCH_TRACE({self.tables.name_ctype})"
        symbol = f"{prefix}_trees_{number}"
        sets = names.table.get(f"{prefix}_sets", "NULL")
        literals = [self._literal(v) for v in self.leaves.leaf[:, 0].tolist()]
        fixed = self.sum_dtype is DType.I32
        lines = [
            f"{names.section[symbol]} static void {symbol}(const {prefix}_rank_t *r, {kind} *sum {trace})",
            "{",
            f"    {kind} a;",
        ]
        for run in group:
            base = self._literal(self.leaves.base[run.output])
            start = "0" if fixed else base
            lines.append(f"    a = {start if run.first else f'sum[{run.output}]'};")
            for t, scale in zip(run.trees, run.scale, strict=True):
                if scale > 1:
                    lines.append(f"    a *= {scale};")
                lines += tree_lines(self.tables, t, literals.__getitem__, sets)
            value = f"a * {run.end}" if run.end > 1 else "a"
            lines.append(f"    sum[{run.output}] = {f'{value} + {base}' if fixed and run.last else value};")
        # A forest may be all leaves.
        return "\n".join([*lines, "    (void)r;", "}", ""])

    def _sum(self, prefix: str, names: Names) -> str:
        """The function that calls the others, and its twin that notes leaves."""
        kind, name, rank = self.sum_dtype.ctype, self.tables.name_ctype, f"const {prefix}_rank_t *r"
        lines = [
            f"MCG_INLINE void {prefix}_sum_all({rank}, {kind} *sum MCG_BRANCH_TRACE({name}))",
            "{",
            *(f"    {prefix}_trees_{i}(r, sum MCG_BRANCH_PASS);" for i in range(len(self.groups))),
            "}",
            "",
            f"{names.section[f'{prefix}_sum']} static void {prefix}_sum({rank}, {kind} *sum)",
            "{",
            "#if defined(MCG_TRACE)",
            f"    {name} leaf[{self.tables.n_trees}];",
            "#endif",
            f"    {prefix}_sum_all(r, sum MCG_BRANCH_PASS);",
            "}",
            "#if defined(MCG_TRACE)",
            f"static void {prefix}_sum_leaves({rank}, {name} *leaf)",
            "{",
            f"    {kind} sum[{self._outputs}];",
            f"    {prefix}_sum_all(r, sum, leaf);",
            "}",
            "#endif",
            "",
            *(self._rows(prefix) if self.block > 1 else ()),
        ]
        return "\n".join(lines)

    def _rows(self, prefix: str) -> list[str]:
        """The function for several rows: one function of trees after the other, each for all rows."""
        kind, columns = self.sum_dtype.ctype, max(self.tables.n_columns, 1)
        at = f"r + i * {columns}u, sum + i * {self._outputs}u MCG_BRANCH_PASS"
        lines = [
            f"MCG_UNUSED static void {prefix}_sum_rows(const {prefix}_rank_t *r, {kind} *sum, uint32_t n)",
            "{",
            "#if defined(MCG_TRACE)",
            f"    {self.tables.name_ctype} leaf[{self.tables.n_trees}];",
            "#endif",
        ]
        for i in range(len(self.groups)):
            lines += ["    for (uint32_t i = 0; i < n; ++i) {", f"        {prefix}_trees_{i}({at});", "    }"]
        return [*lines, "}", ""]

    def cost(self) -> Cost:
        mean, worst = self.tables.steps
        return Cost(0.0, 0, mean, worst)
