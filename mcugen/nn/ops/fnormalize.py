"""FNormalize: layer, instance and group normalization of float32."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mcugen.core.op import Item, Names, OpText
from mcugen.core.types import Array
from mcugen.nn.ops.felement import FElement
from mcugen.nn.ops.float_math import finite, limit_text, quiet
from mcugen.nn.ops.plain_call import plain_call, plain_table


@dataclass(frozen=True, slots=True, eq=False)
class FNormalize(FElement):
    """x (rows, k) -> ``(x - mean) * (1 / sqrt(variance + epsilon)) * scale[c] + offset[c]``, row by row.

    ``scale`` and ``offset``: float32 (channels,), for ``inner`` elements in a row each.
    """

    kernel: ClassVar[tuple[str, str]] = ("mcg_normalize_f32", "src/mcg_nn_normalize.c")

    rows: int
    k: int
    inner: int
    epsilon: float
    scale: Array
    offset: Array

    @property
    def elements(self) -> int:
        return self.rows * self.k

    def own_problem(self) -> str:
        if self.scale.shape != self.offset.shape or self.scale.ndim != 1 or not finite(self.scale, self.offset):
            return "a table"
        parts = self.inner > 0 and self.k % self.inner == 0 and (self.elements // self.inner) % self.scale.size == 0
        return "" if parts and 1 <= self.k < 1 << 24 else f"rows of {self.k}, {self.scale.size} channels"

    @quiet
    def eval(self, *args: Array) -> tuple[Array, ...]:
        x = args[0].astype(np.float32).reshape(-1, self.k)
        count = np.float32(self.k)
        d = x - _sums(x) / count
        root = np.sqrt(_sums(d * d) / count + np.float32(self.epsilon))
        n = (d * (np.float32(1.0) / root)).reshape(-1, self.scale.size, self.inner)
        return ((n * self.scale[:, None] + self.offset[:, None]).reshape(args[0].shape),)

    def items(self, prefix: str) -> tuple[Item, ...]:
        reads = self.elements // self.inner
        scale = plain_table(f"{prefix}_scale", self.scale, reads, "factors of channels")
        return scale, plain_table(f"{prefix}_offset", self.offset, reads, "offsets of channels")

    def emit(self, prefix: str, args: tuple[str, ...], results: tuple[str, ...], names: Names) -> OpText:
        tables = (names.table[f"{prefix}_scale"], names.table[f"{prefix}_offset"])
        sizes = (self.rows, self.k, self.inner, int(self.scale.size))
        return plain_call(
            "mcg_nn_float.h", "mcg_normalize_f32", (*tables, limit_text(self.epsilon), args[0], results[0], *sizes)
        )


def _sums(x: Array) -> Array:
    """(rows, 1): each row from front to back."""
    total = np.zeros((len(x), 1), np.float32)
    for i in range(x.shape[1]):
        total[:, 0] = total[:, 0] + x[:, i]
    return total
