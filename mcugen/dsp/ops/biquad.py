"""What the biquad ops share: coefficients of sections in SciPy's signs, the table, the state, the call."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mcugen.core.op import Cost, Item, Names, OpText, StateMember
from mcugen.core.types import Array, DType
from mcugen.dsp.ops.base import ChannelOp, address, member, table, zeroed


@dataclass(frozen=True, slots=True, eq=False)
class BiquadOp(ChannelOp):
    """Second-order sections one after the other.

    ``coefficients`` (S, 5): b0, b1, b2, a1, a2 in the type of the samples, in SciPy's signs, integers in units of
    2^-15 or 2^-31 of ``2^post_shift``; ``post_shift`` (S,).
    """

    #: Words of a channel's state: for the input, and for each section.
    words: ClassVar[tuple[int, int]]

    coefficients: Array
    post_shift: tuple[int, ...]

    @property
    def _state_words(self) -> int:
        return self.words[0] + self.words[1] * len(self.coefficients)

    def own_problem(self) -> str:
        c = self.coefficients
        if c.dtype != self.dtype.np or c.ndim != 2 or c.shape[1] != 5 or len(c) == 0:
            return f"coefficients {c.dtype} {c.shape}"
        if len(self.post_shift) != len(c) or not all(0 <= p <= self.most_shift() for p in self.post_shift):
            return f"post shifts {self.post_shift} of {len(c)} sections"
        if not self.dtype.is_float and (c == self.dtype.min).any():
            return "a coefficient at the low end of the type, whose negative does not fit"
        return ""

    @abstractmethod
    def most_shift(self) -> int:
        """The largest post shift."""

    @abstractmethod
    def words_of(self) -> Array:
        """The table of the kernel."""

    @property
    def state(self) -> tuple[StateMember, ...]:
        about = "by channel: the last two inputs, then the memory of each section"
        count = len(self.channels) * self._state_words
        if self.dtype is DType.I16:
            return (StateMember("sections", "uint32_t", count, 4 * count, 4, f"{about}; two samples a word"),)
        return (member("sections", self.dtype, count, about),)

    def items(self, prefix: str) -> tuple[Item, ...]:
        words = self.words_of()
        return (table(f"{prefix}_sections", words, len(self.channels) * words.size, "coefficients by section"),)

    def function(self) -> str:
        """The kernel that is called."""
        return self.kernel[0]

    def emit(self, prefix: str, args: tuple[str, ...], results: tuple[str, ...], names: Names) -> OpText:
        words, state = names.table[f"{prefix}_sections"], names.state["sections"]

        def call(x: str, y: str, i: str) -> str:
            memory = address(state, i, self._state_words)
            return f"{self.function()}({words}, {len(self.coefficients)}u, {memory}, {x}, {y}, 1u);"

        channels, text = self.loop(prefix, args, results, call)
        return OpText(("mcg_filter_biquad.h",), channels, text, init=zeroed(names.state, "sections"))

    def cost(self) -> Cost:
        n = len(self.channels) * 5 * len(self.coefficients)
        return Cost(n, n, n, n)


def negated(coefficients: Array) -> Array:
    """b0, b1, b2, -a1, -a2: what the kernels add up."""
    return np.asarray(coefficients * np.array([1, 1, 1, -1, -1], coefficients.dtype))


def memory_of_inputs(column: Array, b: list[int]) -> list[int]:
    """``b0 x[n] + b1 x[n-1] + b2 x[n-2]`` exactly, as Python integers."""
    x = np.concatenate([[0, 0], column.astype(np.int64)]).astype(object)
    return list(b[0] * x[2:] + b[1] * x[1:-1] + b[2] * x[:-2])
