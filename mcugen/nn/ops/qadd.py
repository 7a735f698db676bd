"""QAdd: the sum or difference of two int8 tensors with scales of their own, by a table for the finer one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mcugen.core.op import Cost, Item, MachineOp, Names, OpText
from mcugen.core.types import Array, DType, QParams, TensorType, frozen_array
from mcugen.errors import InternalError
from mcugen.nn.ops.kernel_call import Fields
from mcugen.nn.ops.plain_call import REQUANT, described_call, misfit, plain_table, range_misfit, requant_values
from mcugen.nn.requant import Requant, requant_of, requantize

#: One step of the first operand is 2^20 units of the accumulator.
SHIFT_LEFT = 20
#: MCG_ADD_SHIFT: one step of the output is so many powers of two units of the scaled form.
_SCALED_SHIFT = 20
_INT32 = (1 << 31) - 1
#: mcg_add_t
_FIELDS: Fields = (("n", "<u4"), ("unit", "<i4"), *REQUANT)


@dataclass(frozen=True, slots=True, eq=False)
class Scaled:
    """The sum in units of the output: ``(a * unit + table[b + 128]) >> 20``, clamped, is the result for all a and b."""

    unit: int
    table: Array


@dataclass(frozen=True, slots=True, eq=False)
class QAdd(MachineOp):
    """int8 a, b -> int8 ``requantize(((a - in_zp) << 20) + table[b + 128])`` for ``count`` elements.

    ``in_zp``: zero point of a. ``table``: int32 (256,), b in units of a's scale / 2^20, none beyond 2^28. With
    ``negate`` a is subtracted: table - a.
    """

    kernel: ClassVar[tuple[str, str]] = ("mcg_add_s8", "src/mcg_nn_elementwise.c")

    count: int
    table: Array
    in_zp: int
    requant: Requant
    negate: bool = False

    @property
    def in_place(self) -> tuple[int, ...]:
        return (0, 1)

    @property
    def _unit(self) -> int:
        return -(1 << SHIFT_LEFT) if self.negate else 1 << SHIFT_LEFT

    def check(self, types: Mapping[str, TensorType]) -> None:
        zero_points = (self.in_zp, None, self.requant.zero_point)
        values = zip((*self.inputs, *self.outputs), zero_points, strict=True)
        problems = [misfit(types, v, self.count, DType.I8, "QAdd", zp) for v, zp in values]
        problems.append(range_misfit(self.requant, DType.I8))
        if self.table.dtype != np.int32 or self.table.shape != (256,):
            problems.append(f"a table {self.table.dtype} {self.table.shape}")
        elif np.abs(self.table.astype(np.int64)).max() > 1 << 28:
            problems.append("an entry beyond 2^28")
        problem = next(filter(None, problems), "")
        if problem:
            raise InternalError(str(self.loc), f"QAdd: {problem}")

    def eval(self, *args: Array) -> tuple[Array, ...]:
        # One sequence of elements; axes of length 1 may stand elsewhere in b.
        a, b = args[0].astype(np.int64), args[1].astype(np.int64).reshape(args[0].shape)
        acc = (a - self.in_zp) * self._unit + self.table.astype(np.int64)[b + 128]
        return (requantize(acc, self.requant).astype(np.int8),)

    def scaled(self) -> Scaled | None:
        """The form that needs no multiplication after the sum, proven for all 65,536 pairs; None where it has none.

        For each b the entry must lie where all results of 256 a are met: at least at ``(y << 20) - a * unit`` (but if
        y is the lower clamp), below that of y + 1 (but if y is the upper one).
        """
        multiplier, shift = (int(v[0]) for v in self.requant.per_channel(1))
        unit = round(self._unit * multiplier * 2.0 ** (_SCALED_SHIFT - shift))
        a = np.arange(-128, 128, dtype=np.int64)[:, None]
        acc = (a - self.in_zp) * self._unit + self.table.astype(np.int64)
        y, r = requantize(acc, self.requant).astype(np.int64), self.requant
        far = np.int64(1) << 40
        least = np.where(y > r.low, (y << _SCALED_SHIFT) - a * unit, -far).max(0)
        most = np.where(y < r.high, ((y + 1) << _SCALED_SHIFT) - 1 - a * unit, far).min(0)
        if (least > most).any():
            return None
        table = np.where(least == -far, most, np.where(most == far, least, (least + most) >> 1))
        if np.abs(table).max() + 128 * abs(unit) > _INT32:
            return None
        return Scaled(unit, frozen_array(table, np.int32))

    def items(self, prefix: str) -> tuple[Item, ...]:
        scaled = self.scaled()
        if scaled is not None:
            return (plain_table(f"{prefix}_table", scaled.table, self.count, "second operand, in units of the output"),)
        # |table| <= 2^28 and |zp| <= 2^7: the difference is below 2^29.
        with_zp = (self.table.astype(np.int64) - self.in_zp * self._unit).astype(np.int32)
        return (plain_table(f"{prefix}_table", with_zp, self.count, "second operand, zero point of the first"),)

    def emit(self, prefix: str, args: tuple[str, ...], results: tuple[str, ...], names: Names) -> OpText:
        scaled = self.scaled()
        values = {"n": self.count, "unit": self._unit, **requant_values(self.requant)}
        if scaled is not None:
            values |= {"unit": scaled.unit, "requant.m": 0, "requant.shift": 0, "requant.c": 0}
        shape = ("mcg_add_t", f"{prefix}_shape", _FIELDS, values)
        arguments = (names.table[f"{prefix}_table"], args[0], args[1], results[0])
        return described_call("mcg_nn_elementwise.h", "mcg_add_s8", shape, arguments)

    def cost(self) -> Cost:
        return Cost(float(self.count), self.count, float(self.count), self.count)


def add_of(
    q_a: QParams, q_b: QParams, q_out: QParams, low: int = -128, high: int = 127, sign: int = 1
) -> tuple[bool, Array, Requant]:
    """Table and requantization for ``a + sign * b``; and whether the operands change places.

    The operand with the larger scale comes first. With ``sign`` -1 and changed places the op must negate its first
    operand: it computes ``table[a] - b``.
    """
    swap = q_b.scale > q_a.scale
    first, second = (q_b, q_a) if swap else (q_a, q_b)
    steps = np.arange(-128, 128, dtype=np.float64) - second.zero_point
    units = np.rint(steps * (second.scale / first.scale) * (1 << SHIFT_LEFT))
    table = frozen_array(units if swap else sign * units, np.int32)
    factor = first.scale / q_out.scale / (1 << SHIFT_LEFT)
    return swap, table, requant_of([factor], q_out.zero_point, low, high, where="QAdd")
