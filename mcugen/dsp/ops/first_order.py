"""What ExpSmooth and DcRemove share: one number per channel and 64-bit arithmetic on Python integers."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite

import numpy as np

from mcugen.core.op import Cost, Item, Names, OpText
from mcugen.core.types import DType
from mcugen.ctext.literals import float32_literal
from mcugen.dsp.ops.base import ChannelOp, address, zeroed
from mcugen.dsp.ops.ordered import SUFFIX

#: The type of an element of state, by the type of the samples.
STATE = {DType.I16: ("int32_t", 4), DType.I32: ("int64_t", 8), DType.F32: ("float", 4)}


@dataclass(frozen=True, slots=True, eq=False)
class FirstOrderOp(ChannelOp):
    """``factor``: an integer in 2^-31, or for float32 samples a float32."""

    kind: DType
    factor: float

    @property
    def dtype(self) -> DType:
        return self.kind

    def own_problem(self) -> str:
        if self.kind is DType.F32:
            ok = isfinite(self.factor) and float(np.float32(self.factor)) == self.factor
        else:
            ok = self.kind in STATE and self.factor == int(self.factor) and 1 <= self.factor < 1 << 31
        return "" if ok else f"{self.kind.label} with the factor {self.factor}"

    def items(self, prefix: str) -> tuple[Item, ...]:
        return ()

    def text_of(
        self, operation: str, prefix: str, args: tuple[str, ...], results: tuple[str, ...], names: Names
    ) -> OpText:
        """The call of the kernel mcg_``operation``_..._block."""
        factor = float32_literal(self.factor) if self.kind.is_float else str(int(self.factor))
        each = self.state[0].count // len(self.channels)

        def call(x: str, y: str, i: str) -> str:
            memory = address(names.state["memory"], i, each)
            return f"mcg_{operation}_{SUFFIX[self.kind]}_block({factor}, {memory}, {x}, {y}, 1u);"

        channels, text = self.loop(prefix, args, results, call)
        return OpText(("mcg_filter_first.h",), channels, text, init=zeroed(names.state, "memory"))

    def cost(self) -> Cost:
        n = len(self.channels)
        return Cost(0, n, n, n)


def part(value: int, factor: int) -> int:
    """``value * factor / 2^31``, to the nearest, ties up."""
    return (value * factor + (1 << 30)) >> 31
