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
    """Parts i of shape (outer, inners[i]) -> (outer, sum of inners), all of ``dtype`` and with one scale."""

    kernel: ClassVar[tuple[str, str]] = ("mcg_concat", "src/mcg_nn_move.c")

    outer: int
    inners: tuple[int, ...]
    dtype: DType = DType.I8

    def check(self, types: Mapping[str, TensorType]) -> None:
        counts = [self.outer * n for n in self.inners]
        if len(counts) != len(self.inputs):
            raise InternalError(str(self.loc), "QConcat: as many sizes as parts, please")
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
        return (np.concatenate(parts, axis=2).reshape(n, -1),)

    def items(self, prefix: str) -> tuple[Item, ...]:
        return ()

    def emit(self, prefix: str, args: tuple[str, ...], results: tuple[str, ...], names: Names) -> OpText:
        n = len(args)
        sizes = ", ".join(f"{k * self.dtype.size}u" for k in self.inners)
        text = f"static const uint32_t {prefix}_bytes[{n}] = {{{sizes}}};\n"
        parts = f"const void *const parts[{n}] = {{{', '.join(args)}}};"
        call = f"mcg_concat(parts, {prefix}_bytes, {n}u, {self.outer}u, {results[0]});"
        return OpText(("mcg_nn_move.h",), text, f"{{ {parts} {call} }}")

    def cost(self) -> Cost:
        n = self.outer * sum(self.inners)
        return Cost(0.0, 0, n / 4, -(-n // 4))
