"""QTable: any function of one int8 element, as 256 answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mcugen.core.op import Cost, Item, MachineOp, Names, OpText
from mcugen.core.types import Array, DType, QParams, TensorType, frozen_array
from mcugen.errors import InternalError
from mcugen.nn.ops.plain_call import misfit, plain_call, plain_table


@dataclass(frozen=True, slots=True, eq=False)
class QTable(MachineOp):
    """int8 x -> ``table[x + 128]``, int8 (256,), for ``count`` elements."""

    kernel: ClassVar[tuple[str, str]] = ("mcg_table_s8", "src/mcg_nn_elementwise.c")

    count: int
    table: Array

    @property
    def in_place(self) -> tuple[int, ...]:
        return (0,)

    def check(self, types: Mapping[str, TensorType]) -> None:
        problem = next(filter(None, (misfit(types, v, self.count, DType.I8, "QTable") for v in self._values)), "")
        if self.table.dtype != np.int8 or self.table.shape != (256,):
            problem = f"a table {self.table.dtype} {self.table.shape}"
        if problem:
            raise InternalError(str(self.loc), f"QTable: {problem}")

    @property
    def _values(self) -> tuple[str, ...]:
        return (*self.inputs, *self.outputs)

    def eval(self, *args: Array) -> tuple[Array, ...]:
        return (self.table[args[0].astype(np.int64) + 128],)

    def items(self, prefix: str) -> tuple[Item, ...]:
        return (plain_table(f"{prefix}_table", self.table, self.count, "one result for each int8"),)

    def emit(self, prefix: str, args: tuple[str, ...], results: tuple[str, ...], names: Names) -> OpText:
        arguments = (names.table[f"{prefix}_table"], args[0], results[0], self.count)
        return plain_call("mcg_nn_elementwise.h", "mcg_table_s8", arguments)

    def cost(self) -> Cost:
        return Cost(float(self.count), 0, float(self.count), self.count)


def table_of(function: Callable[[Array], Array], q_in: QParams, q_out: QParams) -> Array:
    """int8 (256,): ``function`` (float64 to float64) of every int8, rounded half to even and saturated."""
    q = np.arange(-128, 128, dtype=np.float64)
    y = np.asarray(function((q - q_in.zero_point) * q_in.scale), np.float64)
    return frozen_array(np.clip(np.rint(y / q_out.scale) + q_out.zero_point, -128, 127), np.int8)
