"""QTable16: a function of one int16 element, linear between 1025 results."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mcugen.core.op import Cost, Item, MachineOp, Names, OpText
from mcugen.core.types import Array, DType, QParams, TensorType, frozen_array
from mcugen.errors import InternalError
from mcugen.nn.ops.plain_call import misfit, plain_call, plain_table
from mcugen.nn.ops.wide_call import HEADER

_STEP = 64


@dataclass(frozen=True, slots=True, eq=False)
class QTable16(MachineOp):
    """int16 x -> int16 for ``count`` elements.

    ``table``: int16 (1025,), results for x = -32768, -32704, ..., 32768; linear between them, rounded half up.
    """

    kernel: ClassVar[tuple[str, str]] = ("mcg_table_s16", "src/mcg_nn_wide.c")

    count: int
    table: Array

    @property
    def in_place(self) -> tuple[int, ...]:
        return (0,)

    def check(self, types: Mapping[str, TensorType]) -> None:
        problems = [misfit(types, v, self.count, DType.I16, "QTable16", 0) for v in (*self.inputs, *self.outputs)]
        if self.table.dtype != np.int16 or self.table.shape != (1025,):
            problems.append(f"a table {self.table.dtype} {self.table.shape}")
        problem = next(filter(None, problems), "")
        if problem:
            raise InternalError(str(self.loc), f"QTable16: {problem}")

    def eval(self, *args: Array) -> tuple[Array, ...]:
        at, table = args[0].astype(np.int64) + 32768, self.table.astype(np.int64)
        low, high = table[at // _STEP], table[at // _STEP + 1]
        return ((low + (((high - low) * (at % _STEP) + 32) >> 6)).astype(np.int16),)

    def items(self, prefix: str) -> tuple[Item, ...]:
        return (plain_table(f"{prefix}_table", self.table, 2 * self.count, "results at every 64th int16"),)

    def emit(self, prefix: str, args: tuple[str, ...], results: tuple[str, ...], names: Names) -> OpText:
        arguments = (names.table[f"{prefix}_table"], args[0], results[0], self.count)
        return plain_call(HEADER, "mcg_table_s16", arguments)

    def cost(self) -> Cost:
        return Cost(2.0 * self.count, self.count, float(self.count), self.count)


def table16_of(function: Callable[[Array], Array], q_in: QParams, q_out: QParams) -> tuple[Array, float]:
    """int16 (1025,) of ``function`` (float64 to float64), and the largest error over all int16 in units of the result.

    The error is that of one rounding, 0.5, where the function is linear; kinks between entries make it larger.
    """
    q = np.arange(-32768, 32769, dtype=np.float64)
    exact = np.clip(np.asarray(function(q * q_in.scale), np.float64) / q_out.scale, -32768, 32767)
    table = frozen_array(np.rint(exact[::_STEP]), np.int16)
    at, t = np.arange(65536), table.astype(np.int64)
    low, high = t[at // _STEP], t[at // _STEP + 1]
    found = low + (((high - low) * (at % _STEP) + 32) >> 6)
    return table, float(np.abs(found - exact[:-1]).max())
