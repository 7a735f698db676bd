"""What the ops without weight streams share: checks of operands, tables, descriptors, calls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from mcugen.core.op import Item, OpText
from mcugen.core.passes import value_type
from mcugen.core.types import Array, DType, TensorType
from mcugen.nn.ops.kernel_call import Fields, record, record_text
from mcugen.nn.requant import Requant

#: mcg_requant_t inside another struct.
REQUANT: Fields = tuple((f"requant.{f}", "<i4") for f in ("m", "shift", "c", "zp", "low", "high"))

_CTYPES = {t.np: t.ctype for t in DType}
#: The end of a kernel's name, by the type of its elements.
SUFFIX = {DType.I8: "s8", DType.I16: "s16", DType.F32: "f32"}


def requant_values(r: Requant) -> dict[str, int]:
    """The fields of mcg_requant_t for a Requant with one multiplier."""
    m, shift = int(r.multiplier[0]), int(r.shift[0])
    values = {"m": m, "shift": shift, "c": rounding_of(shift), "zp": r.zero_point, "low": r.low, "high": r.high}
    return {f"requant.{k}": v for k, v in values.items()}


def rounding_of(shift: int) -> int:
    """Half a unit of the result, in the upper word of the product."""
    return 1 << (shift - 33) if shift > 32 else 0


def plain_table(symbol: str, data: Array, reads: float, about: str) -> Item:
    """A constant table of numbers of its own dtype, flattened."""
    flat = np.ascontiguousarray(data).reshape(-1)
    flat.flags.writeable = False
    size = flat.dtype.itemsize
    return Item(symbol, "table", _CTYPES[flat.dtype], len(flat), flat.nbytes, size, float(reads), about, flat)


def plain_call(header: str, function: str, arguments: Sequence[str | int]) -> OpText:
    """A call without a descriptor; integers become unsigned literals."""
    text = ", ".join(f"{a}u" if isinstance(a, int) else a for a in arguments)
    return OpText((header,), "", f"{function}({text});")


def described_call(
    header: str,
    function: str,
    shape: tuple[str, str, Fields, Mapping[str, int]],
    arguments: Sequence[str],
    scratch: tuple[str, int] | None = None,
) -> OpText:
    """A call whose first argument is a descriptor. ``shape``: its C type, symbol, fields and values.

    ``scratch``: the kernel's own size in C and the size that was planned, asserted equal.
    """
    ctype, symbol, fields, values = shape
    text = record_text(ctype, symbol, record(fields, values))
    if scratch is not None:
        text += f'_Static_assert({scratch[0]} == {scratch[1]}u, "the kernel needs other scratch than was planned");\n'
    return OpText((header,), text, f"{function}({', '.join((f'&{symbol}', *arguments))});")


def misfit(
    types: Mapping[str, TensorType], value: str, count: int, dtype: DType, op: str, zero_point: int | None = None
) -> str:
    """Why a value cannot be an operand of so many elements of this type and zero point; empty if it can."""
    t = value_type(types, value, op)
    if t.dtype is not dtype or t.count != count:
        return f"{value} is {t.dtype.label} {t.shape}, expected {count} of {dtype.label}"
    if zero_point is not None and (t.q is None or t.q.zero_point != zero_point):
        return f"{value} has the quantization {t.q}, expected zero point {zero_point}"
    return ""


def range_misfit(requant: Requant, dtype: DType, channels: int = 1) -> str:
    """Why a Requant cannot give this type; empty if it can."""
    if requant.low < dtype.min or requant.high > dtype.max:
        return f"clamps {requant.low} and {requant.high} leave {dtype.label}"
    return requant.problem(channels)
