"""QSoftmax16: softmax of int16 rows by two tables of exponentials and one division an element."""

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
SOFTMAX16_PARAMS = QParams(1.0 / 32768.0, 0)


@dataclass(frozen=True, slots=True, eq=False)
class QSoftmax16(MachineOp):
    """int16 x (rows, k) -> int16 with scale 1/32768 and zero point 0.

    With d = largest of the row - x, e = ``(table[d >> 8] * table[256 + (d & 255)] + 2^22) >> 23`` and s their sum:
    ``min((32768 * e + s // 2) // s, 32767)``. ``table``: uint32 (512,) in units of 2^-23.
    """

    kernel: ClassVar[tuple[str, str]] = ("mcg_softmax_s16", "src/mcg_nn_softmax.c")

    rows: int
    k: int
    table: Array

    def check(self, types: Mapping[str, TensorType]) -> None:
        n = self.rows * self.k
        problem = misfit(types, self.inputs[0], n, DType.I16, "QSoftmax16", 0)
        problem = problem or misfit(types, self.outputs[0], n, DType.I16, "QSoftmax16", 0)
        if not problem and types[self.outputs[0]].q != SOFTMAX16_PARAMS:
            problem = f"the result has the scale {types[self.outputs[0]].q}"
        if self.table.dtype != np.uint32 or self.table.shape != (512,) or self.table.max() != 1 << 23:
            problem = f"a table {self.table.dtype} {self.table.shape}"
        if problem or self.k < 1:
            raise InternalError(str(self.loc), f"QSoftmax16: {problem}")

    def eval(self, *args: Array) -> tuple[Array, ...]:
        x, table = args[0].astype(np.int64).reshape(-1, self.k), self.table.astype(np.int64)
        d = x.max(axis=1, keepdims=True) - x
        e = (table[d >> 8] * table[256 + (d & 255)] + (1 << 22)) >> 23
        s = e.sum(axis=1, keepdims=True)
        y = np.minimum((e * 32768 + s // 2) // s, 32767)
        return (y.astype(np.int16).reshape(args[0].shape),)

    def items(self, prefix: str) -> tuple[Item, ...]:
        reads = 4 * self.rows * self.k
        return (
            plain_table(f"{prefix}_exp", self.table, reads, "exp(-256 * i * scale), exp(-i * scale) in units of 2^-23"),
        )

    def emit(self, prefix: str, args: tuple[str, ...], results: tuple[str, ...], names: Names) -> OpText:
        arguments = (names.table[f"{prefix}_exp"], args[0], results[0], self.rows, self.k)
        return plain_call("mcg_nn_softmax.h", "mcg_softmax_s16", arguments)

    def cost(self) -> Cost:
        n = self.rows * self.k
        return Cost(4.0 * n, n, 3.0 * n, 3 * n)


def softmax16_table(q_in: QParams) -> Array:
    """uint32 (512,): ``round(2^23 * exp(-256 * i * scale))``, then ``round(2^23 * exp(-i * scale))``, i in 0..255."""
    i = np.arange(256.0) * q_in.scale
    return frozen_array(np.rint(np.exp(-np.concatenate([256 * i, i])) * (1 << 23)), np.uint32)
