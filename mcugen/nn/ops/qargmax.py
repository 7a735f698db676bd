"""QArgMax: the index of the largest element along one axis."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mcugen.core.op import Cost, Item, MachineOp, Names, OpText
from mcugen.core.types import Array, DType, TensorType
from mcugen.errors import InternalError
from mcugen.nn.ops.plain_call import SUFFIX, misfit, plain_call


@dataclass(frozen=True, slots=True, eq=False)
class QArgMax(MachineOp):
    """x (rows, k, inner) of ``dtype`` (int8, int16 or float32) -> int32 (rows, inner), the lowest index on ties.

    NaN is the largest, as in numpy.
    """

    kernel: ClassVar[tuple[str, str]] = ("mcg_argmax_rows_s8", "src/mcg_nn_softmax.c")

    rows: int
    k: int
    inner: int
    dtype: DType = DType.I8

    def check(self, types: Mapping[str, TensorType]) -> None:
        n = self.rows * self.inner
        problem = misfit(types, self.inputs[0], n * self.k, self.dtype, "QArgMax")
        problem = problem or misfit(types, self.outputs[0], n, DType.I32, "QArgMax")
        if self.dtype not in SUFFIX or n * self.k < 1:
            problem = f"{self.rows} x {self.k} x {self.inner} of {self.dtype.label}"
        if problem:
            raise InternalError(str(self.loc), f"QArgMax: {problem}")

    def eval(self, *args: Array) -> tuple[Array, ...]:
        """(N, ...) -> (N, rows * inner)."""
        x = args[0].reshape(len(args[0]), self.rows, self.k, self.inner)
        return (np.argmax(x, axis=2).astype(np.int32).reshape(len(x), -1),)

    def items(self, prefix: str) -> tuple[Item, ...]:
        return ()

    def emit(self, prefix: str, args: tuple[str, ...], results: tuple[str, ...], names: Names) -> OpText:
        function = f"mcg_argmax_rows_{SUFFIX[self.dtype]}"
        header = "mcg_nn_float.h" if self.dtype is DType.F32 else "mcg_nn_softmax.h"
        return plain_call(header, function, (args[0], results[0], self.rows, self.k, self.inner))

    def cost(self) -> Cost:
        n = self.rows * self.k * self.inner
        return Cost(0.0, n, float(n), n)
