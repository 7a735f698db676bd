"""QNormalize: layer, instance and group normalization of int8, with integer sums and an integer root a row."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mcugen.core.op import Cost, Item, MachineOp, Names, OpText
from mcugen.core.types import Array, DType, QParams, TensorType, frozen_array
from mcugen.errors import InternalError, UnsupportedError
from mcugen.nn.ops.kernel_call import Fields
from mcugen.nn.ops.plain_call import described_call, misfit, plain_table

#: A row is no longer: normalized elements stay below 2^8, and k times the variance below 2^46.
MAX_ROW = 1 << 16
#: Normalized elements are at most 2^28; digits of a result behind the point.
_N_BITS, _MOST_SHIFT = 28, 30
#: Rounds of the loops of one root and one division.
_ROOT_STEPS = 60

_FIELDS: Fields = (
    ("epsilon", "<u8"),
    ("rows", "<u4"),
    ("k", "<u4"),
    ("inner", "<u4"),
    ("channels", "<u4"),
    ("up", "<i4"),
    ("digits", "<i4"),
    ("shift", "<u4"),
)


@dataclass(frozen=True, slots=True, eq=False)
class QNormalize(MachineOp):
    """int8 x (rows, k) -> int8; ``scale`` and ``offset``: int32 (channels,), for ``inner`` elements in a row each.

    With S and Q the sums of x and x^2 in a row, V = k * Q - S^2, left, r = ``reciprocal_roots(V)``, and upper(a, b) =
    ``(a * b + 2^31) >> 32``: ``n = upper((k * x - S) << left, r)`` in units of 2^-digits, and ``y = clamp((upper(n,
    scale[c]) + offset[c]) >> shift)``. ``offset`` holds the zero point and the rounding.
    """

    kernel: ClassVar[tuple[str, str]] = ("mcg_normalize_s8", "src/mcg_nn_normalize.c")

    rows: int
    k: int
    inner: int
    up: int
    epsilon: int
    scale: Array
    offset: Array
    shift: int

    @property
    def in_place(self) -> tuple[int, ...]:
        return (0,)

    @property
    def channels(self) -> int:
        """Numbers in a table."""
        return int(self.scale.size)

    @property
    def digits(self) -> int:
        """Binary digits of a normalized element behind the point: it is below the root of k."""
        return _digits(self.k)

    def check(self, types: Mapping[str, TensorType]) -> None:
        n = self.rows * self.k
        problem = misfit(types, self.inputs[0], n, DType.I8, "QNormalize")
        problem = problem or misfit(types, self.outputs[0], n, DType.I8, "QNormalize")
        tables = (self.scale, self.offset)
        if any(t.dtype != np.int32 or t.shape != (self.channels,) for t in tables) or not self.channels:
            problem = f"tables {self.scale.dtype} {self.scale.shape} and {self.offset.dtype} {self.offset.shape}"
        elif not 1 <= self.k <= MAX_ROW or self.k % self.inner or (n // self.inner) % self.channels:
            problem = f"rows of {self.k}, {self.channels} channels of {self.inner}"
        elif max(int(np.abs(t.astype(np.int64)).max()) for t in tables) > 1 << 30:
            problem = "a number in a table above 2^30"
        elif self.up % 2 or not -(1 << 20) <= self.up <= 62 or not 0 <= self.epsilon <= 1 << 62:
            problem = f"epsilon {self.epsilon}, variances times 2^{self.up}"
        elif (_top(self.k) << max(self.up, 0) >> max(-self.up, 0)) + self.epsilon > 1 << 62:
            problem = "a variance that leaves 62 bits"
        elif not 1 <= self.shift <= _MOST_SHIFT:
            problem = f"shift {self.shift}"
        if problem:
            raise InternalError(str(self.loc), f"QNormalize: {problem}")

    def eval(self, *args: Array) -> tuple[Array, ...]:
        x = args[0].astype(np.int64).reshape(-1, self.k)
        sums = x.sum(axis=1, keepdims=True)
        left, r = self.reciprocal_roots((self.k * (x * x).sum(axis=1, keepdims=True) - sums * sums).reshape(-1))
        n = _upper((self.k * x - sums) << left[:, None], r[:, None]).reshape(-1, self.channels, self.inner)
        v = _upper(n, self.scale.astype(np.int64)[:, None]) + self.offset.astype(np.int64)[:, None]
        return (np.clip(v >> self.shift, -128, 127).astype(np.int8).reshape(args[0].shape),)

    def reciprocal_roots(self, v: Array) -> tuple[Array, Array]:
        """int64 left and r: 2^digits over the root of v plus epsilon is r * 2^(left-32); r is 0 where v is.

        v (rows,): k^2 times the variance. Its sum with epsilon is shifted by an even number of digits to at least 2^60
        and below 2^62; the floor of the root has 31 bits, and so has r, unless it would be far below 1.
        """
        left, r = np.zeros(len(v), np.int64), np.zeros(len(v), np.int64)
        for i, value in enumerate(v.tolist()):
            if value == 0:
                continue
            w = (value << self.up if self.up >= 0 else value >> -self.up) + self.epsilon
            t = 61 - self.digits - self.up // 2
            while w < 1 << 60:
                w, t = w << 2, t - 1
            left[i] = max(32 - t, 0)
            r[i] = min((1 << 61) // math.isqrt(w), (1 << 31) - 1) >> min(max(t - 32, 0), 31)
        return left, r

    def items(self, prefix: str) -> tuple[Item, ...]:
        reads = self.rows * self.k // self.inner
        return (
            plain_table(f"{prefix}_scale", self.scale, reads, "factors of channels"),
            plain_table(f"{prefix}_offset", self.offset, reads, "offsets of channels"),
        )

    def emit(self, prefix: str, args: tuple[str, ...], results: tuple[str, ...], names: Names) -> OpText:
        values = {name: int(getattr(self, name)) for name, _ in _FIELDS}
        shape = ("mcg_normalize_t", f"{prefix}_shape", _FIELDS, values)
        tables = (names.table[f"{prefix}_scale"], names.table[f"{prefix}_offset"])
        return described_call("mcg_nn_normalize.h", "mcg_normalize_s8", shape, (*tables, args[0], results[0]))

    def cost(self) -> Cost:
        n = self.rows * self.k
        steps = 2 * n + _ROOT_STEPS * self.rows
        return Cost(2.0 * n / self.inner, 2 * n, float(steps), steps)


def _upper(a: Array, b: Array) -> Array:
    return (a * b + (1 << 31)) >> 32


def _digits(k: int) -> int:
    return _N_BITS - (math.ceil(math.log2(k)) + 1) // 2


def _top(k: int) -> int:
    """More than k^2 times the variance of k int8."""
    return k * k << 14


NormalizeParts = tuple[int, int, Array, Array, int]


def normalize_of(
    k: int, epsilon: float, scale: Array, offset: Array, q_in: QParams, q_out: QParams, where: str = "QNormalize"
) -> NormalizeParts:
    """``up``, ``epsilon``, ``scale``, ``offset`` and ``shift`` of a QNormalize.

    UnsupportedError for a row that is too long, and for results whose scale is too small for the factors.
    """
    if k > MAX_ROW:
        hint = "normalize smaller images, or use --float32"
        raise UnsupportedError(where, f"normalizes {k} elements together, at most {MAX_ROW} are supported", hint)
    real = k * k * epsilon / q_in.scale**2
    up = 62 - math.frexp(_top(k) + real)[1]
    up -= up % 2
    factor = scale.astype(np.float64) / q_out.scale
    added = offset.astype(np.float64) / q_out.scale + q_out.zero_point + 0.5
    high, far = (math.frexp(max(float(np.abs(v).max()), 2.0**-60))[1] for v in (factor, added))
    shift = min(_digits(k) - 2 - high, 30 - far, _MOST_SHIFT)
    if shift < 1:
        what = f"factors up to {float(np.abs(scale).max()):.3g} for results with the scale {q_out.scale:.3g}"
        raise UnsupportedError(where, what, "the output scale is too small")
    return (
        up,
        math.floor(math.ldexp(real, up) + 0.5),
        frozen_array(np.rint(factor * 2.0 ** (32 + shift - _digits(k))), np.int32),
        frozen_array(np.rint(added * 2.0**shift), np.int32),
        shift,
    )


__all__ = ["MAX_ROW", "QNormalize", "normalize_of"]
