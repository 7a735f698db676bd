"""QAdd16 and QMul16: sum, difference and product of int16 tensors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mcugen.core.op import Cost, Item, MachineOp, Names, OpText
from mcugen.core.types import Array, DType, QParams, TensorType
from mcugen.errors import InternalError
from mcugen.nn.ops.kernel_call import Fields
from mcugen.nn.ops.plain_call import REQUANT, described_call, misfit, range_misfit, requant_values
from mcugen.nn.ops.wide_call import HEADER
from mcugen.nn.requant import Requant, requant_of, requantize
from mcugen.nn.requant64 import requantize64

#: The factor of the operand with the larger scale.
_UNIT = 1 << 22
#: mcg_wide_add_t
ADD_FIELDS: Fields = (("n", "<u4"), ("a", "<i4"), ("b", "<i4"), *REQUANT)


class _Elementwise16(MachineOp):
    """Two int16 tensors of ``count`` elements and zero point 0 to one."""

    __slots__ = ()

    count: int
    requant: Requant

    @property
    def in_place(self) -> tuple[int, ...]:
        return (0, 1)

    def check(self, types: Mapping[str, TensorType]) -> None:
        name = type(self).__name__
        problems = [misfit(types, v, self.count, DType.I16, name, 0) for v in (*self.inputs, *self.outputs)]
        problem = next(filter(None, (*problems, range_misfit(self.requant, DType.I16), self.own_problem())), "")
        if problem:
            raise InternalError(str(self.loc), f"{name}: {problem}")

    def own_problem(self) -> str:
        """What else is wrong with the fields."""
        return "" if self.requant.zero_point == 0 else "a zero point"

    def items(self, prefix: str) -> tuple[Item, ...]:
        return ()

    def cost(self) -> Cost:
        return Cost(0.0, self.count, float(self.count), self.count)


@dataclass(frozen=True, slots=True, eq=False)
class QAdd16(_Elementwise16):
    """int16 a, b -> int16 ``requantize(a * factor_a + b * factor_b)``; factors at most 2^22 in magnitude."""

    kernel: ClassVar[tuple[str, str]] = ("mcg_add_s16", "src/mcg_nn_wide.c")

    count: int
    factor_a: int
    factor_b: int
    requant: Requant

    def own_problem(self) -> str:
        if max(abs(self.factor_a), abs(self.factor_b)) > _UNIT or self.requant.zero_point:
            return f"factors {self.factor_a} and {self.factor_b}, zero point {self.requant.zero_point}"
        return ""

    def eval(self, *args: Array) -> tuple[Array, ...]:
        # One sequence of elements; axes of length 1 may stand elsewhere in b.
        a, b = args[0].astype(np.int64), args[1].astype(np.int64).reshape(args[0].shape)
        return (requantize64(a * self.factor_a + b * self.factor_b, self.requant).astype(np.int16),)

    def emit(self, prefix: str, args: tuple[str, ...], results: tuple[str, ...], names: Names) -> OpText:
        values = {"n": self.count, "a": self.factor_a, "b": self.factor_b, **requant_values(self.requant)}
        shape = ("mcg_wide_add_t", f"{prefix}_shape", ADD_FIELDS, values)
        return described_call(HEADER, "mcg_add_s16", shape, (*args, results[0]))


@dataclass(frozen=True, slots=True, eq=False)
class QMul16(_Elementwise16):
    """int16 a, b -> int16 ``requantize(a * b)``."""

    kernel: ClassVar[tuple[str, str]] = ("mcg_mul_s16", "src/mcg_nn_wide.c")

    count: int
    requant: Requant

    def eval(self, *args: Array) -> tuple[Array, ...]:
        # One sequence of elements; axes of length 1 may stand elsewhere in b.
        a, b = args[0].astype(np.int64), args[1].astype(np.int64).reshape(args[0].shape)
        return (requantize(a * b, self.requant).astype(np.int16),)

    def emit(self, prefix: str, args: tuple[str, ...], results: tuple[str, ...], names: Names) -> OpText:
        values = {"n": self.count, "a": 0, "b": 0, **requant_values(self.requant)}
        shape = ("mcg_wide_add_t", f"{prefix}_shape", ADD_FIELDS, values)
        return described_call(HEADER, "mcg_mul_s16", shape, (*args, results[0]))


def add16_of(
    q_a: QParams, q_b: QParams, q_out: QParams, low: int = -32768, high: int = 32767, sign: int = 1
) -> tuple[int, int, Requant]:
    """Both factors and the requantization of ``a + sign * b``."""
    largest = max(q_a.scale, q_b.scale)
    factor_a, factor_b = (round(q.scale / largest * _UNIT) for q in (q_a, q_b))
    requant = requant_of([largest / q_out.scale / _UNIT], 0, low, high, where="QAdd16")
    return factor_a, sign * factor_b, requant
