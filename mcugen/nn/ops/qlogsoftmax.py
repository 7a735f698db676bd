"""QLogSoftmax: logarithms of softmax of int8 rows, by a table of exponentials and one logarithm a row."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mcugen.core.op import Cost, Item, MachineOp, Names, OpText
from mcugen.core.types import Array, DType, QParams, TensorType
from mcugen.errors import InternalError
from mcugen.nn.ops.kernel_call import Fields
from mcugen.nn.ops.plain_call import described_call, misfit, plain_table

#: A row is shorter: the sum of its exponentials is below 2^47, its logarithm below 24 * 2^24.
_MAX_K = 1 << 24
#: Binary digits of a logarithm to the base 2 behind the point.
_LOG_BITS = 24
#: Binary digits of a result behind the point, at most and at least, and the largest step: 255 steps and 129 units fit.
_MOST_SHIFT, _LEAST_SHIFT, _LARGEST_STEP = 22, 13, 1 << 22
_LONGEST_LOG_SHIFT = 63
#: Rounds of the loops of one logarithm, at most.
_LOG_STEPS = 47

_FIELDS: Fields = (
    ("rows", "<u4"),
    ("k", "<u4"),
    ("step", "<u4"),
    ("shift", "<u4"),
    ("log_m", "<u4"),
    ("log_shift", "<u4"),
    ("zero_point", "<i4"),
)


@dataclass(frozen=True, slots=True, eq=False)
class QLogSoftmax(MachineOp):
    """int8 x (rows, k) -> int8 with any scale.

    With d = largest of the row - x, s the sum of ``table[d]`` over the row and b = log2_q24(s):
    ``y = clamp((start - d * step) >> shift)`` with ``start = zero_point * 2^shift + 2^(shift-1) - ((b * log_m +
    2^(log_shift-1)) >> log_shift)``, not below ``-129 * 2^shift``. ``table``: uint32 (256,), exp in units of 2^-23.
    ``step``: a unit of x in units of y times 2^shift; ``log_m * 2^-log_shift``: one of b.
    """

    kernel: ClassVar[tuple[str, str]] = ("mcg_log_softmax_s8", "src/mcg_nn_softmax.c")

    rows: int
    k: int
    table: Array
    step: int
    shift: int
    log_m: int
    log_shift: int
    zero_point: int

    @property
    def in_place(self) -> tuple[int, ...]:
        return (0,)

    def check(self, types: Mapping[str, TensorType]) -> None:
        n = self.rows * self.k
        problem = misfit(types, self.inputs[0], n, DType.I8, "QLogSoftmax")
        problem = problem or misfit(types, self.outputs[0], n, DType.I8, "QLogSoftmax", self.zero_point)
        if self.table.dtype != np.uint32 or self.table.shape != (256,) or self.table[0] != 1 << 23:
            problem = f"a table {self.table.dtype} {self.table.shape}"
        elif self.table.max() > 1 << 23 or not 1 <= self.k < _MAX_K:
            problem = f"{self.k} elements, table up to {self.table.max()}"
        elif not (0 <= self.step <= _LARGEST_STEP and _LEAST_SHIFT <= self.shift <= _MOST_SHIFT):
            problem = f"steps of {self.step} / 2^{self.shift}"
        elif not (0 <= self.log_m < 1 << 32 and 1 <= self.log_shift <= _LONGEST_LOG_SHIFT):
            problem = f"a logarithm times {self.log_m} / 2^{self.log_shift}"
        elif not -128 <= self.zero_point <= 127:
            problem = f"zero point {self.zero_point}"
        if problem:
            raise InternalError(str(self.loc), f"QLogSoftmax: {problem}")

    def eval(self, *args: Array) -> tuple[Array, ...]:
        x = args[0].astype(np.int64).reshape(-1, self.k)
        d = x.max(axis=1, keepdims=True) - x
        s = self.table.astype(np.int64)[d].sum(axis=1, keepdims=True)
        lost = (log2_q24(s) * self.log_m + (1 << (self.log_shift - 1))) >> self.log_shift
        start = self.zero_point * (1 << self.shift) + (1 << (self.shift - 1)) - lost
        acc = np.maximum(start, -129 << self.shift) - d * self.step
        return (np.clip(acc >> self.shift, -128, 127).astype(np.int8).reshape(args[0].shape),)

    def items(self, prefix: str) -> tuple[Item, ...]:
        return (plain_table(f"{prefix}_exp", self.table, self.rows * self.k, "exp(-d * scale) in units of 2^-23"),)

    def emit(self, prefix: str, args: tuple[str, ...], results: tuple[str, ...], names: Names) -> OpText:
        values = {name: int(getattr(self, name)) for name, _ in _FIELDS}
        shape = ("mcg_log_softmax_t", f"{prefix}_shape", _FIELDS, values)
        arguments = (names.table[f"{prefix}_exp"], args[0], results[0])
        return described_call("mcg_nn_softmax.h", "mcg_log_softmax_s8", shape, arguments)

    def cost(self) -> Cost:
        n = self.rows * self.k
        steps = 3 * n + _LOG_STEPS * self.rows
        return Cost(float(n), n, float(steps), steps)


def log2_q24(s: Array) -> Array:
    """int64: the logarithm to the base 2 of s / 2^23 in units of 2^-24, for integers s in [2^23, 2^47).

    Digit by digit: the square of a number from 1 to 2 is 2 or more where the next digit of its logarithm is 1. All that
    is cut off makes it less, by at most 1 + 2^-5 units.
    """
    m, y = s.astype(np.uint64) << np.uint64(8), np.zeros(s.shape, np.int64)
    for _ in range(24):
        large = m >> np.uint64(32) > 0
        m, y = np.where(large, m >> np.uint64(1), m), y + large
    for _ in range(_LOG_BITS):
        square = m * m  # m has 32 bits, the first is 1
        bit = square >> np.uint64(63)
        m, y = square >> (np.uint64(31) + bit), 2 * y + bit.astype(np.int64)
    return y


def log_softmax_of(q_in: QParams, q_out: QParams) -> tuple[int, int, int, int, int]:
    """``step``, ``shift``, ``log_m``, ``log_shift`` and ``zero_point`` for these scales.

    Factors so large that one unit saturates every result are cut to ones that do so as well.
    """
    ratio = q_in.scale / q_out.scale
    _, exponent = math.frexp(ratio)
    shift = min(max(_MOST_SHIFT - max(exponent, 0), _LEAST_SHIFT), _MOST_SHIFT)
    step = _LARGEST_STEP if ratio >= 1 << 9 else min(round(ratio * 2.0**shift), _LARGEST_STEP)
    mantissa, exponent = math.frexp(math.log(2.0) / q_out.scale)
    log_m, log_shift = math.floor(mantissa * 2.0**32 + 0.5), 32 - exponent - shift + _LOG_BITS
    log_m = min(log_m, (1 << 32) - 1)
    if log_shift > _LONGEST_LOG_SHIFT:
        log_m, log_shift = 0, 1  # not an eighth of a unit of the sum, whatever the row
    elif log_shift < 1:
        log_m, log_shift = (1 << 32) - 1, 1
    return step, shift, log_m, log_shift, q_out.zero_point


__all__ = ["QLogSoftmax", "log2_q24", "log_softmax_of"]
