"""What the three FIR ops share: the delay line of a channel, the table of taps, the call."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

import numpy as np

from mcugen.core.op import Cost, Item, Names, OpText, StateMember
from mcugen.core.types import Array, DType
from mcugen.dsp.ops.base import ChannelOp, address, member, table, zeroed

#: A delay line takes at least this many new samples before its history is moved back to the start.
_LEAST_ROOM = 8
#: Lines of int16 up to this length have twice the room: their moves would show.
_SHORT = 128


@dataclass(frozen=True, slots=True, eq=False)
class FirOp(ChannelOp):
    """``y[n] = sum of taps[k] * x[n - k]``; ``taps`` (N,) in time order, in the type of the samples."""

    taps: Array

    @property
    def _padded(self) -> int:
        """Taps in the table: of integers a multiple of four; a zero tap times an infinite sample would be NaN."""
        return int(self.taps.size if self.dtype.is_float else -(-self.taps.size // 4) * 4)

    @property
    def _room(self) -> int:
        least = max(_LEAST_ROOM, self._padded + self._padded % 2)
        return 2 * least if self.dtype is DType.I16 and least <= _SHORT else least

    @property
    def _line(self) -> int:
        """Elements of state of a channel: position, spare, history, room, spare; even, so that channels are aligned."""
        return 2 * ((4 + self._padded + self._room) // 2)

    def own_problem(self) -> str:
        if self.taps.dtype != self.dtype.np or self.taps.ndim != 1 or self.taps.size == 0:
            return f"taps {self.taps.dtype} {self.taps.shape}"
        return "" if self.taps.size < 1 << 14 else f"{self.taps.size} taps"

    @property
    def state(self) -> tuple[StateMember, ...]:
        about = "by channel: position, spare, then the last samples"
        return (member("line", self.dtype, len(self.channels) * self._line, about),)

    def items(self, prefix: str) -> tuple[Item, ...]:
        reversed_taps = np.zeros(self._padded, self.dtype.np)
        reversed_taps[self._padded - self.taps.size :] = self.taps[::-1]
        return (table(f"{prefix}_taps", reversed_taps, len(self.channels) * self._padded, "taps, the oldest first"),)

    @abstractmethod
    def shape(self) -> str:
        """The initializer of the descriptor mcg_fir_t."""

    def emit(self, prefix: str, args: tuple[str, ...], results: tuple[str, ...], names: Names) -> OpText:
        taps, line = names.table[f"{prefix}_taps"], names.state["line"]

        def call(x: str, y: str, i: str) -> str:
            return f"{self.kernel[0]}(&{prefix}_fir, {taps}, {address(line, i, self._line)}, {x}, {y}, 1u);"

        channels, text = self.loop(prefix, args, results, call)
        shape = f"static const mcg_fir_t {prefix}_fir = {self.shape()};\n"
        return OpText(("mcg_filter_fir.h",), shape + channels, text, init=zeroed(names.state, "line"))

    def cost(self) -> Cost:
        n = len(self.channels) * self.taps.size
        return Cost(n, n, n, n)


def shape_text(padded: int, room: int, narrow: bool) -> str:
    """mcg_fir_t."""
    return f"{{.taps = {padded}u, .room = {room}u, .narrow = {int(narrow)}u}}"


def taps_sum(taps: Array) -> int:
    """Sum of the magnitudes of integer taps."""
    return int(np.abs(taps.astype(np.int64)).sum())
