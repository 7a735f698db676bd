"""RunningMedian: the median of the last samples."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mcugen.core.op import Cost, Item, Names, OpText, StateMember
from mcugen.core.types import Array, DType
from mcugen.dsp.ops.base import ChannelOp, address, member, zeroed
from mcugen.dsp.ops.ordered import SUFFIX, keys, last_samples, values


@dataclass(frozen=True, slots=True, eq=False)
class RunningMedian(ChannelOp):
    """The median of the last ``length`` samples (odd) of int16, int32 or float32; the first stands for those before."""

    kernel: ClassVar[tuple[str, str]] = ("mcg_median_q15_block", "src/mcg_filter_window.c")

    kind: DType
    length: int

    @property
    def dtype(self) -> DType:
        return self.kind

    def own_problem(self) -> str:
        ok = self.kind in SUFFIX and self.length % 2 == 1 and 1 <= self.length <= 1023
        return "" if ok else f"{self.kind.label}, {self.length}"

    def filtered(self, x: Array) -> Array:
        if not len(x):
            return x
        middle = np.partition(last_samples(keys(x), self.length), self.length // 2, axis=2)[:, :, self.length // 2]
        return values(middle, self.kind)

    @property
    def state(self) -> tuple[StateMember, ...]:
        n = len(self.channels)
        kept = DType.I32 if self.kind.is_float else self.kind
        return (
            member("at", DType.U32, n, "0, then 1 + the place of the oldest sample, by channel"),
            member("ring", kept, n * self.length, "the last samples, by channel"),
            member("sorted", kept, n * self.length, "the same in order, by channel"),
        )

    def items(self, prefix: str) -> tuple[Item, ...]:
        return ()

    def emit(self, prefix: str, args: tuple[str, ...], results: tuple[str, ...], names: Names) -> OpText:
        s = names.state

        def call(x: str, y: str, i: str) -> str:
            parts = [address(s["at"], i, 1), *(address(s[m], i, self.length) for m in ("ring", "sorted"))]
            return f"mcg_median_{SUFFIX[self.kind]}_block({self.length}u, {', '.join(parts)}, {x}, {y}, 1u);"

        channels, text = self.loop(prefix, args, results, call)
        return OpText(("mcg_filter_window.h",), channels, text, init=zeroed(s, "at", "ring", "sorted"))

    def cost(self) -> Cost:
        n = len(self.channels) * self.length
        return Cost(0, 0, n, n)
