"""What the machine ops of filters share: channels, operands, tables, and the loop over channels as C."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mcugen.core.op import Item, MachineOp, StateMember
from mcugen.core.passes import value_type
from mcugen.core.types import Array, DType, TensorType
from mcugen.errors import InternalError

_CTYPES = {t.np: t.ctype for t in DType}


@dataclass(frozen=True, slots=True, eq=False)
class ChannelOp(MachineOp):
    """A kernel that treats ``channels`` of a sample (width,), one after the other, each with a state of its own.

    The other channels pass unchanged. ``eval`` takes and gives (T, width): the leading axis is time.
    """

    on_stack: ClassVar[bool] = False

    channels: tuple[int, ...]
    width: int

    @property
    @abstractmethod
    def dtype(self) -> DType:
        """The type of the samples, before and after."""

    @abstractmethod
    def filtered(self, x: Array) -> Array:
        """(T, channels) -> (T, channels), both of ``dtype``: what the kernel computes."""

    @property
    def in_place(self) -> tuple[int, ...]:
        return (0,)

    def own_problem(self) -> str:
        """What is wrong with the op's own fields; empty if nothing is."""
        return ""

    def check(self, types: Mapping[str, TensorType]) -> None:
        name = type(self).__name__
        problem = self.own_problem()
        for value in (self.inputs[0], self.outputs[0]):
            t = value_type(types, value, name)
            if t.dtype is not self.dtype or t.shape != (self.width,):
                problem = problem or f"{value} is {t.dtype.label} {t.shape}, expected {self.dtype.label} {self.width}"
        inside = all(0 <= c < self.width for c in self.channels)
        if not self.channels or not inside or len(set(self.channels)) < len(self.channels):
            problem = problem or f"channels {self.channels} of {self.width}"
        if problem:
            raise InternalError(str(self.loc), f"{name}: {problem}")

    def eval(self, *args: Array) -> tuple[Array, ...]:
        """(T, width) -> (T, width)."""
        y = np.array(args[0])
        columns = list(self.channels)
        y[:, columns] = self.filtered(y[:, columns])
        return (y,)

    def loop(
        self, prefix: str, args: tuple[str, ...], results: tuple[str, ...], call: Callable[[str, str, str], str]
    ) -> tuple[str, str]:
        """Definitions and statements that call the kernel for every channel.

        ``call(x, y, i)`` gives the statement for the addresses of a channel in sample and result; ``i`` is the number
        of the channel among ``channels``.
        """
        x, y = args[0], results[0]
        count, first = len(self.channels), self.channels[0]
        text = ""
        if count < self.width and x != y:
            text = f"for (uint32_t i = 0; i < {self.width}u; ++i) {{\n    {y}[i] = {x}[i];\n}}\n"
        if count == 1:
            return "", text + call(f"&{x}[{first}]", f"&{y}[{first}]", "0u")
        definitions, at = "", "i" if first == 0 else f"i + {first}u"
        if self.channels != tuple(range(first, first + count)):
            rows = ", ".join(f"{c}u" for c in self.channels)
            definitions = f"static const uint16_t {prefix}_channels[{count}] = {{{rows}}};\n"
            at = f"{prefix}_channels[i]"
        body = call(f"&{x}[{at}]", f"&{y}[{at}]", "i").replace("\n", "\n    ")
        return definitions, text + f"for (uint32_t i = 0; i < {count}u; ++i) {{\n    {body}\n}}"


def table(symbol: str, data: Array, reads: float, about: str) -> Item:
    """A constant table of numbers of its own dtype, flattened; aligned to words for kernels that read pairs."""
    flat = np.ascontiguousarray(data).reshape(-1)
    flat.flags.writeable = False
    align = max(4, flat.dtype.itemsize)
    return Item(symbol, "table", _CTYPES[flat.dtype], len(flat), flat.nbytes, align, float(reads), about, flat)


def member(name: str, dtype: DType, count: int, about: str, ctype: str = "") -> StateMember:
    """An array in the state of the caller."""
    return StateMember(name, ctype or dtype.ctype, count, count * dtype.size, dtype.size, about)


def zeroed(names: Mapping[str, str], *members: str) -> str:
    """The statements that set members of the state to zero."""
    return "\n".join(f"mcg_zero({names[m]}, sizeof {names[m]});" for m in members)


def address(array: str, index: str, stride: int) -> str:
    """The part of channel ``index`` in an array with ``stride`` elements a channel."""
    return array if index == "0u" else f"&{array}[{index} * {stride}u]"


def saturate(value: Array, dtype: DType) -> Array:
    """int64 clamped to an integer type."""
    return np.clip(value, dtype.min, dtype.max).astype(dtype.np)


def low_word(value: Array) -> Array:
    """The low 32 bits of int64, as int32."""
    return value.astype(np.uint64).astype(np.uint32).view(np.int32)
