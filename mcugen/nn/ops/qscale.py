"""QScale: a scale and an offset per channel."""

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

#: mcg_scale_t
_FIELDS: Fields = (("outer", "<u4"), ("channels", "<u4"), ("inner", "<u4"), ("zp", "<i4"), *REQUANT)
#: Largest magnitude of a product, and of an added number.
_LIMIT = 1 << 29


@dataclass(frozen=True, slots=True, eq=False)
class QScale(MachineOp):
    """int8 x (outer, channels, inner) -> int8 ``requantize((x - in_zp) * multiplier[c] + add[c])``.

    ``multiplier`` and ``add``: int32 (channels,); no accumulator leaves int32 for any x.
    """

    kernel: ClassVar[tuple[str, str]] = ("mcg_scale_s8", "src/mcg_nn_elementwise.c")

    outer: int
    channels: int
    inner: int
    in_zp: int
    multiplier: Array
    add: Array
    requant: Requant

    @property
    def _count(self) -> int:
        return self.outer * self.channels * self.inner

    @property
    def in_place(self) -> tuple[int, ...]:
        return (0,)

    def check(self, types: Mapping[str, TensorType]) -> None:
        problems = [
            misfit(types, self.inputs[0], self._count, DType.I8, "QScale", self.in_zp),
            misfit(types, self.outputs[0], self._count, DType.I8, "QScale", self.requant.zero_point),
            range_misfit(self.requant, DType.I8),
        ]
        for table in (self.multiplier, self.add):
            if table.dtype != np.int32 or table.shape != (self.channels,):
                problems.append(f"a table {table.dtype} {table.shape} for {self.channels} channels")
        for x in (-128, 127):
            acc = (x - self.in_zp) * self.multiplier.astype(np.int64)
            both = np.concatenate([acc, acc + self.add])
            if both.max() > DType.I32.max or both.min() < DType.I32.min:
                problems.append("an accumulator leaves int32")
        problem = next(filter(None, problems), "")
        if problem:
            raise InternalError(str(self.loc), f"QScale: {problem}")

    def eval(self, *args: Array) -> tuple[Array, ...]:
        x = args[0].astype(np.int64).reshape(-1, self.outer, self.channels, self.inner)
        along = (self.channels, 1)
        acc = (x - self.in_zp) * self.multiplier.astype(np.int64).reshape(along) + self.add.reshape(along)
        return (requantize(acc, self.requant).astype(np.int8).reshape(args[0].shape),)

    def items(self, prefix: str) -> tuple[Item, ...]:
        reads = self.outer * self.channels
        return (
            plain_table(f"{prefix}_multiplier", self.multiplier, reads, "factors of channels"),
            plain_table(f"{prefix}_add", self.add, reads, "offsets of channels"),
        )

    def emit(self, prefix: str, args: tuple[str, ...], results: tuple[str, ...], names: Names) -> OpText:
        sizes = {"outer": self.outer, "channels": self.channels, "inner": self.inner, "zp": self.in_zp}
        shape = ("mcg_scale_t", f"{prefix}_shape", _FIELDS, {**sizes, **requant_values(self.requant)})
        tables = (names.table[f"{prefix}_multiplier"], names.table[f"{prefix}_add"])
        return described_call("mcg_nn_elementwise.h", "mcg_scale_s8", shape, (*tables, args[0], results[0]))

    def cost(self) -> Cost:
        n = self._count
        return Cost(2.0 * self.outer * self.channels, n, float(n), n)


def scale_of(
    scale: Array, offset: Array, q_in: QParams, q_out: QParams, low: int = -128, high: int = 127
) -> tuple[Array, Array, Requant]:
    """``multiplier``, ``add`` and requantization of ``x * scale + offset`` (float64 (C,) each).

    One unit of the accumulator is 2^-29 of the largest product or offset.
    """
    s, b = np.asarray(scale, np.float64) * q_in.scale, np.asarray(offset, np.float64)
    unit = max(255.0 * float(np.abs(s).max()), float(np.abs(b).max())) / _LIMIT
    divisor = unit or 1.0
    multiplier, add = (frozen_array(np.rint(v / divisor), np.int32) for v in (s, b))
    return multiplier, add, requant_of([unit / q_out.scale], q_out.zero_point, low, high, where="QScale")
