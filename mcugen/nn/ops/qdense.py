"""QDense: int8 matrix times vector, requantized to int8."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mcugen.core.op import Cost, Item, MachineOp, Names, OpText
from mcugen.core.types import Array, TensorType
from mcugen.errors import InternalError
from mcugen.nn.ops.kernel_call import (
    Fields,
    kernel_text,
    operand_problem,
    record,
    shift_of,
    weight_item,
    weight_problem,
)
from mcugen.nn.packing import Stream, accumulator_range, matmul_stream
from mcugen.nn.requant import Requant, requantize

#: mcg_dense_t
_FIELDS: Fields = (
    ("inputs", "<u4"),
    ("outputs", "<u4"),
    ("out_zp", "<i2"),
    ("low", "<i2"),
    ("high", "<i2"),
    ("reserved", "<i2"),
)


@dataclass(frozen=True, slots=True, eq=False)
class QDense(MachineOp):
    """int8 (K,) -> int8 (N,).

    ``weight``: int8 (N, K), K in physical order. ``bias``: int32 (N,), without the input zero point.
    The accumulator of every output must fit int32 for every input (``accumulator_range``).
    """

    kernel: ClassVar[tuple[str, str]] = ("mcg_dense_s8", "src/mcg_nn_dense.c")

    weight: Array
    bias: Array
    in_zp: int
    requant: Requant

    def check(self, types: Mapping[str, TensorType]) -> None:
        n, k = self.weight.shape
        problem = (
            operand_problem(types, self.inputs[0], (k,), self.in_zp, "QDense")
            or operand_problem(types, self.outputs[0], (n,), self.requant.zero_point, "QDense")
            or weight_problem(self.weight, self.bias, self.requant, (n, k))
        )
        if not problem and not accumulator_range(self.weight, self.bias, self.in_zp).fits:
            problem = "an accumulator leaves int32"
        if problem:
            raise InternalError(str(self.loc), f"QDense: {problem}")

    def eval(self, *args: Array) -> tuple[Array, ...]:
        """(B, K) -> (B, N)."""
        acc = shift_of(args[0].reshape(len(args[0]), -1), self.in_zp) @ self.weight.astype(np.float64).T
        return (requantize(acc.astype(np.int64) + self.bias, self.requant, -1).astype(np.int8),)

    @property
    def scratch_bytes(self) -> int:
        return -(-int(self.weight.shape[1]) // 4) * 8

    @property
    def lag(self) -> int:
        """All of the input is packed before an output is written."""
        return 0

    def stream(self) -> Stream:
        """The weight table: four outputs at a time."""
        return matmul_stream(self.weight, self.bias, self.in_zp, self.requant, 4)

    def descriptor(self) -> Array:
        """The record mcg_dense_t."""
        r, (n, k) = self.requant, self.weight.shape
        values = {"inputs": k, "outputs": n, "out_zp": r.zero_point, "low": r.low, "high": r.high, "reserved": 0}
        return record(_FIELDS, values)

    def function(self, stream: Stream) -> str:
        """The kernel that reads this table."""
        return "mcg_dense_s8" if stream.packed else "mcg_dense_s8_any"

    def items(self, prefix: str) -> tuple[Item, ...]:
        about = f"dense layer {'x'.join(map(str, self.weight.shape))}: four outputs at a time, four weights a word"
        return (weight_item(prefix, self.stream().words, 1, about),)

    def emit(self, prefix: str, args: tuple[str, ...], results: tuple[str, ...], names: Names) -> OpText:
        scratch = (f"MCG_DENSE_SCRATCH({self.weight.shape[1]}u)", self.scratch_bytes, "uint32_t")
        function = self.function(self.stream())
        return kernel_text(prefix, function, "mcg_dense_t", self.descriptor(), scratch, (args[0], results[0]), names)

    @property
    def floor(self) -> float:
        """15 instructions for 16 products, 5 an output, 5 for each four inputs."""
        n, k = self.weight.shape
        return float(15.0 / 16.0 * n * k + 5.0 * n + 1.25 * k)

    def cost(self) -> Cost:
        n, k = self.weight.shape
        steps = -(-n // 4) * -(-k // 4)
        return Cost(n * k / 4, n * k, steps, steps)
