"""FLogSoftmax: logarithms of softmax of float32 rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mcugen.core.float_math import exp_f32
from mcugen.core.op import Names, OpText
from mcugen.core.types import Array
from mcugen.nn.ops.felement import FElement
from mcugen.nn.ops.float_math import log_f32, quiet
from mcugen.nn.ops.plain_call import plain_call


@dataclass(frozen=True, slots=True, eq=False)
class FLogSoftmax(FElement):
    """x (rows, k) -> ``(x - max) - log(sum of exp(x - max))``, row by row."""

    kernel: ClassVar[tuple[str, str]] = ("mcg_log_softmax_rows_f32", "src/mcg_nn_softmax.c")

    rows: int
    k: int

    @property
    def elements(self) -> int:
        return self.rows * self.k

    @quiet
    def eval(self, *args: Array) -> tuple[Array, ...]:
        x = args[0].astype(np.float32).reshape(-1, self.k)
        d = x - x.max(axis=1, keepdims=True)
        e, total = exp_f32(d), np.zeros((len(x), 1), np.float32)
        for i in range(self.k):
            total[:, 0] = total[:, 0] + e[:, i]
        return (np.asarray(d - log_f32(total)).reshape(args[0].shape),)

    def emit(self, prefix: str, args: tuple[str, ...], results: tuple[str, ...], names: Names) -> OpText:
        arguments = (args[0], results[0], self.rows, self.k)
        return plain_call("mcg_nn_float.h", "mcg_log_softmax_rows_f32", arguments)
