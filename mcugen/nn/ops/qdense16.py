"""QDense16: int8 matrix times int16 vector."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mcugen.core.op import Cost, Item, MachineOp, Names, OpText
from mcugen.core.types import Array, TensorType
from mcugen.errors import InternalError
from mcugen.nn.ops.kernel_call import record, record_text
from mcugen.nn.ops.plain_call import plain_call, plain_table
from mcugen.nn.ops.wide_call import (
    HEADER,
    RANGE_FIELDS,
    channel_item,
    i16_misfit,
    range_values,
    wide_problem,
    wide_words,
)
from mcugen.nn.requant import Requant
from mcugen.nn.requant64 import requantize64


@dataclass(frozen=True, slots=True, eq=False)
class QDense16(MachineOp):
    """int16 (K,) -> int16 (N,). ``weight``: int8 (N, K), K in physical order. ``bias``: int64 (N,). ``in_zp`` is 0."""

    kernel: ClassVar[tuple[str, str]] = ("mcg_dense_s16", "src/mcg_nn_wide_conv.c")

    weight: Array
    bias: Array
    in_zp: int
    requant: Requant

    def check(self, types: Mapping[str, TensorType]) -> None:
        if self.weight.ndim != 2:
            raise InternalError(str(self.loc), f"QDense16: weights {self.weight.shape}")
        n, k = self.weight.shape
        problem = (
            i16_misfit(types, self.inputs[0], (k,), "QDense16")
            or i16_misfit(types, self.outputs[0], (n,), "QDense16")
            or wide_problem(self.weight, self.bias, self.in_zp, self.requant)
        )
        if problem:
            raise InternalError(str(self.loc), f"QDense16: {problem}")

    def eval(self, *args: Array) -> tuple[Array, ...]:
        """(B, K) -> (B, N)."""
        acc = args[0].reshape(len(args[0]), -1).astype(np.int64) @ self.weight.astype(np.int64).T + self.bias
        return (requantize64(acc, self.requant, -1).astype(np.int16),)

    def items(self, prefix: str) -> tuple[Item, ...]:
        words = wide_words(self.weight)
        weights = plain_table(f"{prefix}_weights", words, len(words), "weights: pairs of outputs, four a word")
        return weights, channel_item(prefix, self.bias, self.requant, len(self.bias))

    def emit(self, prefix: str, args: tuple[str, ...], results: tuple[str, ...], names: Names) -> OpText:
        n, k = self.weight.shape
        limits = record_text(
            "mcg_wide_range_t",
            f"{prefix}_range",
            record(RANGE_FIELDS, range_values(self.requant, self.weight, self.bias)),
        )
        tables = (names.table[f"{prefix}_weights"], names.table[f"{prefix}_channels"], f"&{prefix}_range")
        text = plain_call(HEADER, "mcg_dense_s16", (*tables, n, k, args[0], results[0]))
        return OpText(text.includes, limits, text.call)

    def cost(self) -> Cost:
        macs = int(self.weight.size)
        return Cost(float(macs), macs, float(macs), macs)
