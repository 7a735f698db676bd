"""FSoftmax: softmax of float32 rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mcugen.core.float_math import softmax_f32
from mcugen.core.op import Names, OpText
from mcugen.core.types import Array
from mcugen.nn.ops.felement import FElement
from mcugen.nn.ops.plain_call import plain_call


@dataclass(frozen=True, slots=True, eq=False)
class FSoftmax(FElement):
    """x (rows, k) -> ``exp(x - max)`` over its sum, row by row."""

    kernel: ClassVar[tuple[str, str]] = ("mcg_softmax_rows_f32", "src/mcg_nn_softmax.c")

    rows: int
    k: int

    @property
    def elements(self) -> int:
        return self.rows * self.k

    def eval(self, *args: Array) -> tuple[Array, ...]:
        return (softmax_f32(args[0].reshape(-1, self.k)).reshape(args[0].shape),)

    def emit(self, prefix: str, args: tuple[str, ...], results: tuple[str, ...], names: Names) -> OpText:
        arguments = (args[0], results[0], self.rows, self.k)
        return plain_call("mcg_nn_float.h", "mcg_softmax_rows_f32", arguments)
