"""QMul: the product of two int8 tensors, element by element."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mcugen.core.op import Cost, Item, MachineOp, Names, OpText
from mcugen.core.types import Array, DType, TensorType
from mcugen.errors import InternalError
from mcugen.nn.ops.kernel_call import Fields
from mcugen.nn.ops.plain_call import REQUANT, described_call, misfit, range_misfit, requant_values
from mcugen.nn.requant import Requant, requantize

#: mcg_mul_t
_FIELDS: Fields = (("n", "<u4"), ("zp_a", "<i4"), ("zp_b", "<i4"), *REQUANT)


@dataclass(frozen=True, slots=True, eq=False)
class QMul(MachineOp):
    """int8 a, b -> int8 ``requantize((a - zp_a) * (b - zp_b))`` for ``count`` elements."""

    kernel: ClassVar[tuple[str, str]] = ("mcg_mul_s8", "src/mcg_nn_elementwise.c")

    count: int
    zp_a: int
    zp_b: int
    requant: Requant

    @property
    def in_place(self) -> tuple[int, ...]:
        return (0, 1)

    def check(self, types: Mapping[str, TensorType]) -> None:
        zero_points = (self.zp_a, self.zp_b, self.requant.zero_point)
        values = zip((*self.inputs, *self.outputs), zero_points, strict=True)
        problems = [misfit(types, v, self.count, DType.I8, "QMul", zp) for v, zp in values]
        problem = next(filter(None, (*problems, range_misfit(self.requant, DType.I8))), "")
        if problem:
            raise InternalError(str(self.loc), f"QMul: {problem}")

    def eval(self, *args: Array) -> tuple[Array, ...]:
        # One sequence of elements; axes of length 1 may stand elsewhere in b.
        a, b = args[0].astype(np.int64), args[1].astype(np.int64).reshape(args[0].shape)
        return (requantize((a - self.zp_a) * (b - self.zp_b), self.requant).astype(np.int8),)

    def items(self, prefix: str) -> tuple[Item, ...]:
        return ()

    def emit(self, prefix: str, args: tuple[str, ...], results: tuple[str, ...], names: Names) -> OpText:
        values = {"n": self.count, "zp_a": self.zp_a, "zp_b": self.zp_b, **requant_values(self.requant)}
        shape = ("mcg_mul_t", f"{prefix}_shape", _FIELDS, values)
        return described_call("mcg_nn_elementwise.h", "mcg_mul_s8", shape, (args[0], args[1], results[0]))

    def cost(self) -> Cost:
        return Cost(0.0, self.count, float(self.count), self.count)
