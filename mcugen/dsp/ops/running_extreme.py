"""RunningExtreme: the least or the greatest of the last samples."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mcugen.core.op import Cost, Item, Names, OpText, StateMember
from mcugen.core.types import Array, DType
from mcugen.dsp.ops.base import ChannelOp, address, member, zeroed
from mcugen.dsp.ops.ordered import SUFFIX, keys, last_samples, values


@dataclass(frozen=True, slots=True, eq=False)
class RunningExtreme(ChannelOp):
    """The least or the greatest of the last ``length`` samples of int16, int32 or float32; of fewer at first."""

    kernel: ClassVar[tuple[str, str]] = ("mcg_extreme_q15_block", "src/mcg_filter_window.c")

    kind: DType
    length: int
    greatest: bool

    @property
    def dtype(self) -> DType:
        return self.kind

    def own_problem(self) -> str:
        return "" if self.kind in SUFFIX and 1 <= self.length <= 65535 else f"{self.kind.label}, {self.length}"

    def filtered(self, x: Array) -> Array:
        if not len(x):
            return x
        windows = last_samples(keys(x), self.length)
        return values(windows.max(axis=2) if self.greatest else windows.min(axis=2), self.kind)

    @property
    def state(self) -> tuple[StateMember, ...]:
        n = len(self.channels)
        kept = DType.I32 if self.kind.is_float else self.kind
        return (
            member("queue", DType.U32, 3 * n, "time, first candidate, number of candidates, by channel"),
            member("stamps", DType.U32, n * self.length, "when each candidate came, by channel"),
            member("values", kept, n * self.length, "the candidates, by channel"),
        )

    def items(self, prefix: str) -> tuple[Item, ...]:
        return ()

    def emit(self, prefix: str, args: tuple[str, ...], results: tuple[str, ...], names: Names) -> OpText:
        s, flip = names.state, -1 if self.greatest else 0

        def call(x: str, y: str, i: str) -> str:
            parts = [address(s["queue"], i, 3), *(address(s[m], i, self.length) for m in ("stamps", "values"))]
            return f"mcg_extreme_{SUFFIX[self.kind]}_block({self.length}u, {flip}, {', '.join(parts)}, {x}, {y}, 1u);"

        channels, text = self.loop(prefix, args, results, call)
        return OpText(("mcg_filter_window.h",), channels, text, init=zeroed(s, "queue", "stamps", "values"))

    def cost(self) -> Cost:
        n = len(self.channels)
        return Cost(0, 0, 2 * n, n * self.length)
