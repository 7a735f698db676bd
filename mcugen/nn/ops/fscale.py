"""FScale: a scale and an offset per channel, in float32."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mcugen.core.op import Item, Names, OpText
from mcugen.core.types import Array
from mcugen.nn.ops.felement import FElement
from mcugen.nn.ops.float_math import finite, quiet
from mcugen.nn.ops.plain_call import plain_call, plain_table


@dataclass(frozen=True, slots=True, eq=False)
class FScale(FElement):
    """x (outer, channels, inner) -> ``x * scale[c] + offset[c]``, both float32 (channels,)."""

    kernel: ClassVar[tuple[str, str]] = ("mcg_scale_f32", "src/mcg_nn_float.c")

    outer: int
    channels: int
    inner: int
    scale: Array
    offset: Array

    @property
    def elements(self) -> int:
        return self.outer * self.channels * self.inner

    def own_problem(self) -> str:
        shapes = self.scale.shape == self.offset.shape == (self.channels,)
        return "" if shapes and finite(self.scale, self.offset) else "a table"

    @quiet
    def eval(self, *args: Array) -> tuple[Array, ...]:
        x = args[0].reshape(-1, self.outer, self.channels, self.inner)
        return ((x * self.scale[:, None] + self.offset[:, None]).reshape(args[0].shape),)

    def items(self, prefix: str) -> tuple[Item, ...]:
        scale = plain_table(f"{prefix}_scale", self.scale, self.elements, "factors of channels")
        return scale, plain_table(f"{prefix}_offset", self.offset, self.elements, "offsets of channels")

    def emit(self, prefix: str, args: tuple[str, ...], results: tuple[str, ...], names: Names) -> OpText:
        tables = (names.table[f"{prefix}_scale"], names.table[f"{prefix}_offset"])
        sizes = (self.outer, self.channels, self.inner)
        return plain_call("mcg_nn_float.h", "mcg_scale_f32", (*tables, args[0], results[0], *sizes))
