"""ConvertUnits: integers with units of their own to the integers of a net's input."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import floor
from typing import ClassVar

import numpy as np

from mcugen.core.op import Cost, Item, MachineOp, Names, OpText
from mcugen.core.passes import value_type
from mcugen.core.types import Array, DType, QParams, TensorType, frozen_array
from mcugen.errors import InternalError, UnsupportedError

_KERNELS = {
    (DType.I16, DType.I8): "mcg_units_i16_i8",
    (DType.I32, DType.I8): "mcg_units_i32_i8",
    (DType.I16, DType.I16): "mcg_units_i16_i16",
    (DType.I32, DType.I16): "mcg_units_i32_i16",
}
#: mcg_unit_t
_UNIT = np.dtype([("add", "<i8"), ("multiplier", "<i4"), ("shift", "<i4")])
_MOST_SHIFT = 40


@dataclass(frozen=True, slots=True, eq=False)
class ConvertUnits(MachineOp):
    """``y = saturate((multiplier * x + add) >> shift)``, element by element.

    ``add`` int64, ``multiplier`` and ``shift`` int32, (width,) each; ``|add| + 2^31 |multiplier| < 2^63``.
    """

    kernel: ClassVar[tuple[str, str]] = ("mcg_units_i32_i8", "src/mcg_chain.c")

    source: DType
    target: DType
    add: Array
    multiplier: Array
    shift: Array

    @property
    def width(self) -> int:
        """Elements."""
        return len(self.add)

    def check(self, types: Mapping[str, TensorType]) -> None:
        x, y = (value_type(types, v, "ConvertUnits") for v in (self.inputs[0], self.outputs[0]))
        ok = (x.dtype, y.dtype) == (self.source, self.target) and x.count == y.count == self.width
        ok = ok and (self.source, self.target) in _KERNELS and self.add.dtype == np.int64
        ok = ok and self.multiplier.dtype == self.shift.dtype == np.int32
        ok = ok and self.multiplier.shape == self.shift.shape == self.add.shape == (self.width,)
        if not ok or not ((self.shift >= 1) & (self.shift <= _MOST_SHIFT)).all():
            raise InternalError(str(self.loc), f"ConvertUnits: {x} to {y}, shifts {self.shift}")
        rows = zip(self.add.tolist(), self.multiplier.tolist(), strict=True)
        if any(abs(a) + (abs(m) << 31) >= 1 << 63 for a, m in rows):
            raise InternalError(str(self.loc), "ConvertUnits: a sum leaves 64 bits")

    def eval(self, *args: Array) -> tuple[Array, ...]:
        x = args[0].astype(np.int64).reshape(len(args[0]), self.width)
        y = (x * self.multiplier.astype(np.int64) + self.add) >> self.shift.astype(np.int64)
        return (np.clip(y, self.target.min, self.target.max).astype(self.target.np),)

    def items(self, prefix: str) -> tuple[Item, ...]:
        rows = list(zip(self.add.tolist(), self.multiplier.tolist(), self.shift.tolist(), strict=True))
        data = frozen_array(np.array(rows, _UNIT))
        n = self.width
        about = "units of the net's input by element"
        return (Item(f"{prefix}_units", "table", "mcg_unit_t", n, data.nbytes, 8, float(n), about, data),)

    def emit(self, prefix: str, args: tuple[str, ...], results: tuple[str, ...], names: Names) -> OpText:
        function = _KERNELS[self.source, self.target]
        call = f"{function}({names.table[f'{prefix}_units']}, {args[0]}, {results[0]}, {self.width}u);"
        return OpText(("mcg_chain.h",), "", call)

    def cost(self) -> Cost:
        return Cost(3 * self.width, self.width, 12 * self.width, 12 * self.width)


def units_of(scales: Sequence[float], offsets: Sequence[float], q: QParams, where: str) -> tuple[Array, Array, Array]:
    """``add``, ``multiplier`` and ``shift`` for ``real = scale * x + offset`` and ``real = q.scale * (y - zero)``.

    Exact rationals, rounded once: for any x of 32 bits the result before its own rounding is off by less than 2^-9.
    UnsupportedError for an element whose unit is 2^30 times that of y, or whose offset lies that far beyond its range.
    """
    rows = [_unit_of(Fraction(s), Fraction(o), q, where) for s, o in zip(scales, offsets, strict=True)]
    add, multiplier, shift = (list(column) for column in zip(*rows, strict=True))
    return frozen_array(add, np.int64), frozen_array(multiplier, np.int32), frozen_array(shift, np.int32)


def _unit_of(scale: Fraction, offset: Fraction, q: QParams, where: str) -> tuple[int, int, int]:
    factor, base = scale / Fraction(q.scale), offset / Fraction(q.scale) + q.zero_point
    for shift in range(_MOST_SHIFT, 0, -1):
        multiplier = round(factor * (1 << shift))
        add = floor(base * (1 << shift)) + (1 << (shift - 1))
        if abs(multiplier) < 1 << 31 and abs(add) < 1 << 61:
            return add, multiplier, shift
    what = f"a unit of {float(scale):g} and an offset of {float(offset):g} do not suit an input of unit {q.scale:g}"
    raise UnsupportedError(where, what, "calibrate with a recording that is typical")
