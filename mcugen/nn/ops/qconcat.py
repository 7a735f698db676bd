"""QConcat: parts side by side."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mcugen.core.op import Cost, Item, MachineOp, Names, OpText
from mcugen.core.types import Array, DType, TensorType
from mcugen.errors import InternalError
from mcugen.nn.ops.plain_call import misfit


@dataclass(frozen=True, slots=True, eq=False)
class QConcat(MachineOp):
    """Parts i of shape (outer, inners[i]) -> (outer, sum of inners), all of ``dtype`` and with one scale.

    ``order``: the indices of the parts as they stand in the result, () for that of the operands. So any part can be
    operand 0, whose memory the result may take over.
    """

    kernel: ClassVar[tuple[str, str]] = ("mcg_concat", "src/mcg_nn_move.c")

    outer: int
    inners: tuple[int, ...]
    dtype: DType = DType.I8
    order: tuple[int, ...] = ()

    @property
    def _order(self) -> tuple[int, ...]:
        return self.order or tuple(range(len(self.inners)))

    @property
    def lag(self) -> int | None:
        """Rows are written from front to back, each from its parts in a row: all that is written ends before what is
        still read of part 0 if that holds for the last row, and there for the parts before it."""
        if self.inputs[0] in self.inputs[1:]:
            return None
        others = sum(self.inners[1:])
        before = sum(self.inners[i] for i in self._order[: self._order.index(0)])
        return (others * (self.outer - 1) + before) * self.dtype.size

    def check(self, types: Mapping[str, TensorType]) -> None:
        counts = [self.outer * n for n in self.inners]
        if len(counts) != len(self.inputs):
            raise InternalError(str(self.loc), "QConcat: as many sizes as parts, please")
        if sorted(self._order) != list(range(len(counts))):
            raise InternalError(str(self.loc), f"QConcat: the order {self.order} of {len(counts)} parts")
        pairs = zip((*self.inputs, self.outputs[0]), (*counts, sum(counts)), strict=True)
        problems = [misfit(types, v, n, self.dtype, "QConcat") for v, n in pairs]
        if not any(problems) and len({types[v].q for v in (*self.inputs, *self.outputs)}) > 1:
            problems.append("parts of several scales")
        problem = next(filter(None, problems), "")
        if problem:
            raise InternalError(str(self.loc), f"QConcat: {problem}")

    def eval(self, *args: Array) -> tuple[Array, ...]:
        """(N, ...) each -> (N, outer * sum of inners)."""
        n = len(args[0])
        parts = [a.reshape(n, self.outer, k) for a, k in zip(args, self.inners, strict=True)]
        return (np.concatenate([parts[i] for i in self._order], axis=2).reshape(n, -1),)

    def items(self, prefix: str) -> tuple[Item, ...]:
        return ()

    def emit(self, prefix: str, args: tuple[str, ...], results: tuple[str, ...], names: Names) -> OpText:
        n = len(args)
        sizes = ", ".join(f"{self.inners[i] * self.dtype.size}u" for i in self._order)
        text = f"static const uint32_t {prefix}_bytes[{n}] = {{{sizes}}};\n"
        parts = f"const void *const parts[{n}] = {{{', '.join(args[i] for i in self._order)}}};"
        call = f"mcg_concat(parts, {prefix}_bytes, {n}u, {self.outer}u, {results[0]});"
        return OpText(("mcg_nn_move.h",), text, f"{{ {parts} {call} }}")

    def cost(self) -> Cost:
        n = self.outer * sum(self.inners)
        return Cost(0.0, 0, n / 4, -(-n // 4))
