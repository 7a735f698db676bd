"""QSoftmax: softmax of int8 rows by a table of exponentials and one division an element."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mcugen.core.op import Cost, Item, MachineOp, Names, OpText
from mcugen.core.types import Array, DType, QParams, TensorType, frozen_array
from mcugen.errors import InternalError
from mcugen.nn.ops.plain_call import misfit, plain_call, plain_table

#: Scale and zero point of the result.
SOFTMAX_PARAMS = QParams(1.0 / 256.0, -128)
_MAX_K = 1 << 24
#: A scale this near to 1 / units, relative, is that: it was rounded to float32.
_NEAR = 2.0**-23


@dataclass(frozen=True, slots=True, eq=False)
class QSoftmax(MachineOp):
    """int8 x (rows, k) -> int8 with scale 1 / ``units`` (1 to 256) and zero point -128.

    With d = largest of the row - x, e = ``table[d]``, s their sum: ``min((units * e + s // 2) // s, 255) - 128``.
    ``table``: uint32 (256,), exp in units of 2^-23.
    """

    kernel: ClassVar[tuple[str, str]] = ("mcg_softmax_s8", "src/mcg_nn_softmax.c")

    rows: int
    k: int
    table: Array
    units: int = 256

    @property
    def in_place(self) -> tuple[int, ...]:
        return (0,)

    def check(self, types: Mapping[str, TensorType]) -> None:
        n = self.rows * self.k
        problem = misfit(types, self.inputs[0], n, DType.I8, "QSoftmax")
        problem = problem or misfit(types, self.outputs[0], n, DType.I8, "QSoftmax", SOFTMAX_PARAMS.zero_point)
        q_out = types[self.outputs[0]].q
        if not problem and (q_out is None or softmax_units(q_out) != self.units):
            problem = f"the result has the scale {q_out} and {self.units} units"
        if self.table.dtype != np.uint32 or self.table.shape != (256,) or self.table[0] != 1 << 23:
            problem = f"a table {self.table.dtype} {self.table.shape}"
        elif self.table.max() > 1 << 23 or not 1 <= self.k < _MAX_K:
            problem = f"{self.k} elements, table up to {self.table.max()}"
        if problem:
            raise InternalError(str(self.loc), f"QSoftmax: {problem}")

    def eval(self, *args: Array) -> tuple[Array, ...]:
        x = args[0].astype(np.int64).reshape(-1, self.k)
        e = self.table.astype(np.int64)[x.max(axis=1, keepdims=True) - x]
        s = e.sum(axis=1, keepdims=True)
        y = np.minimum((e * self.units + s // 2) // s, 255) - 128
        return (y.astype(np.int8).reshape(args[0].shape),)

    def items(self, prefix: str) -> tuple[Item, ...]:
        return (plain_table(f"{prefix}_exp", self.table, 2 * self.rows * self.k, "exp(-d * scale) in units of 2^-23"),)

    def emit(self, prefix: str, args: tuple[str, ...], results: tuple[str, ...], names: Names) -> OpText:
        arguments = (names.table[f"{prefix}_exp"], args[0], results[0], self.rows, self.k, self.units)
        return plain_call("mcg_nn_softmax.h", "mcg_softmax_s8", arguments)

    def cost(self) -> Cost:
        n = self.rows * self.k
        return Cost(2.0 * n, n, 3.0 * n, 3 * n)


def softmax_units(q: QParams) -> int | None:
    """``units`` for results of this scale and zero point; None where the op has none. (Files say float32(1/255).)"""
    units = round(1.0 / q.scale)
    fits = q.zero_point == SOFTMAX_PARAMS.zero_point and 1 <= units <= 256
    return units if fits and abs(units * q.scale - 1.0) <= _NEAR else None


def softmax_table(q_in: QParams) -> Array:
    """uint32 (256,): ``round(2^23 * exp(-d * scale))`` for d in 0..255."""
    return frozen_array(np.rint(np.exp(-np.arange(256.0) * q_in.scale) * (1 << 23)), np.uint32)
