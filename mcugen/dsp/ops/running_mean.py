"""RunningMean: the rounded mean of the last samples, from an exact sum."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mcugen.core.op import Cost, Item, Names, OpText, StateMember
from mcugen.core.types import Array, DType
from mcugen.dsp.ops.base import ChannelOp, address, member, zeroed

_KERNELS = {DType.I16: "mcg_mean_q15_block", DType.I32: "mcg_mean_q31_block"}


@dataclass(frozen=True, slots=True, eq=False)
class RunningMean(ChannelOp):
    """``floor((sum of the last length samples + floor(length / 2)) / length)``, int16 or int32, zeros at the start."""

    kernel: ClassVar[tuple[str, str]] = ("mcg_mean_q15_block", "src/mcg_filter_window.c")

    kind: DType
    length: int

    @property
    def dtype(self) -> DType:
        return self.kind

    def own_problem(self) -> str:
        return "" if self.kind in _KERNELS and 1 <= self.length <= 65535 else f"{self.kind.label}, {self.length}"

    def filtered(self, x: Array) -> Array:
        total = np.cumsum(x.astype(np.int64), axis=0)
        total[self.length :] -= total[: -self.length].copy()
        return np.asarray((total + self.length // 2) // self.length, x.dtype)

    @property
    def state(self) -> tuple[StateMember, ...]:
        n = len(self.channels)
        sums = DType.I32 if self.kind is DType.I16 else None
        wide = StateMember("sums", "int64_t", n, 8 * n, 8, "sum of the ring, by channel")
        return (
            wide if sums is None else member("sums", sums, n, "sum of the ring, by channel"),
            member("at", DType.U32, n, "place of the oldest sample, by channel"),
            member("ring", self.kind, n * self.length, "the last samples, by channel"),
        )

    def items(self, prefix: str) -> tuple[Item, ...]:
        return ()

    def emit(self, prefix: str, args: tuple[str, ...], results: tuple[str, ...], names: Names) -> OpText:
        s = names.state

        def call(x: str, y: str, i: str) -> str:
            parts = [address(s["at"], i, 1), address(s["sums"], i, 1), address(s["ring"], i, self.length)]
            return f"{_KERNELS[self.kind]}({self.length}u, {', '.join(parts)}, {x}, {y}, 1u);"

        channels, text = self.loop(prefix, args, results, call)
        return OpText(("mcg_filter_window.h",), channels, text, init=zeroed(s, "sums", "at", "ring"))

    def cost(self) -> Cost:
        n = len(self.channels)
        return Cost(0, 0, n, n)
