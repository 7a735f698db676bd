"""Small helpers that the ops of this family share: items and macro blocks."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from mcugen.core.op import Item, MachineOp
from mcugen.core.types import Array, DType


class TreeOp(MachineOp):
    """An op of this family: its operands are ranks and scores, small enough for the stack."""

    __slots__ = ()
    on_stack: ClassVar[bool] = True


def short_type(dtype: DType) -> str:
    """The suffix of runtime names for an element type, such as f32 or u8."""
    return dtype.label.replace("float", "f").replace("uint", "u").replace("int", "i")


def table_item(symbol: str, ctype: str, data: Array, reads: float, about: str) -> Item:
    """A constant table; the last axis of 2-D data is the fields of a struct."""
    packed = np.ascontiguousarray(data)
    packed.flags.writeable = False
    align = packed.dtype.itemsize
    return Item(symbol, "table", ctype, len(packed), packed.nbytes, align, float(reads), about, packed)


def never_empty(data: Array) -> Array:
    """One element where there is none: C has no empty arrays, and steps of 0 from a null pointer are undefined."""
    return data if data.size else np.zeros(1, data.dtype)


def code_item(symbol: str, size: int, instructions: float, about: str) -> Item:
    """A function of the generated file; its size is an estimate until a cross compiler has seen it."""
    return Item(symbol, "code", "function", 1, size, 4, float(instructions), about)


def define(prefix: str, macros: dict[str, str]) -> str:
    """``#define`` lines for a template of the runtime."""
    return "".join(f"#define {prefix}_{key} {value}".rstrip() + "\n" for key, value in macros.items())
