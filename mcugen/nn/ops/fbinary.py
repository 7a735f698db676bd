"""FBinary: sum, difference or product of two float32 tensors."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import ClassVar

from mcugen.core.op import Names, OpText
from mcugen.core.types import Array
from mcugen.nn.ops.felement import FElement
from mcugen.nn.ops.float_math import clamp_f32, limit_text, quiet
from mcugen.nn.ops.plain_call import plain_call


@dataclass(frozen=True, slots=True, eq=False)
class FBinary(FElement):
    """``kind`` add, sub or mul of ``count`` elements, clamped to ``low``, ``high``."""

    kernel: ClassVar[tuple[str, str]] = ("mcg_add_f32", "src/mcg_nn_float.c")

    kind: str
    count: int
    low: float = -inf
    high: float = inf

    @property
    def elements(self) -> int:
        return self.count

    def own_problem(self) -> str:
        return "" if self.kind in ("add", "sub", "mul") else f"kind {self.kind}"

    @quiet
    def eval(self, *args: Array) -> tuple[Array, ...]:
        a, b = args[0], args[1].reshape(args[0].shape)  # of one size, perhaps read with other axes
        y = a + b if self.kind == "add" else a - b if self.kind == "sub" else a * b
        return (clamp_f32(y, self.low, self.high),)

    def emit(self, prefix: str, args: tuple[str, ...], results: tuple[str, ...], names: Names) -> OpText:
        arguments: tuple[str | int, ...] = (*args, limit_text(self.low), limit_text(self.high), results[0], self.count)
        return plain_call("mcg_nn_float.h", f"mcg_{self.kind}_f32", arguments)
