"""What the int8 ops that multiply by weights share: tables, descriptors and calls as C, checks of operands."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from mcugen.core.op import Item, Names, OpText
from mcugen.core.passes import value_type
from mcugen.core.types import Array, DType, TensorType
from mcugen.errors import UnsupportedError
from mcugen.nn.ops.window import same_memory
from mcugen.nn.requant import Requant

#: A descriptor: the fields of the C struct in its order, with numpy types: a record has the bytes of the struct.
Fields = tuple[tuple[str, str], ...]


def record(fields: Fields, values: Mapping[str, int]) -> Array:
    """One record with the layout of the C struct; UnsupportedError for a size that does not fit its field."""
    r = np.zeros((), dtype=np.dtype(list(fields), align=True))
    for name, code in fields:
        info = np.iinfo(np.dtype(code))
        if not int(info.min) <= values[name] <= int(info.max):
            raise UnsupportedError("layer", f"{name} is {values[name]}, the kernels take at most {info.max}")
        r[name] = values[name]
    return r


def record_text(ctype: str, symbol: str, r: Array) -> str:
    """The definition of a descriptor."""
    parts = [f".{name} = {int(r[name])}{'u' if r.dtype[name].kind == 'u' else ''}" for name in r.dtype.names or ()]
    lines = [", ".join(parts[i : i + 6]) for i in range(0, len(parts), 6)]
    return f"static const {ctype} {symbol} = {{\n    " + ",\n    ".join(lines) + "};\n"


def weight_item(prefix: str, words: Array, times_read: float, about: str) -> Item:
    """The table ``prefix_weights``; ``times_read``: how often an inference reads all of it."""
    data = np.ascontiguousarray(words, np.uint32)
    data.flags.writeable = False
    return Item(
        f"{prefix}_weights", "table", "uint32_t", len(data), data.nbytes, 4, len(data) * times_read, about, data
    )


def kernel_text(
    prefix: str,
    function: str,
    ctype: str,
    shape: Array,
    scratch: tuple[str, int, str],
    operands: tuple[str, str],
    names: Names,
) -> OpText:
    """Descriptor, assertion and call. ``scratch``: the kernel's own size in C, our size, and the element type."""
    expression, size, element = scratch
    text = record_text(ctype, f"{prefix}_shape", shape)
    text += f'_Static_assert({expression} == {size}u, "the kernel needs other scratch than was planned");\n'
    weights = names.table[f"{prefix}_weights"]
    pointer = f"({element} *)(void *){names.scratch}"
    call = f"{function}(&{prefix}_shape, {weights}, {pointer}, {operands[0]}, {operands[1]});"
    return OpText(("mcg_nn_conv.h",), text, call)


def operand_problem(
    types: Mapping[str, TensorType], value: str, shape: tuple[int, ...], zero_point: int, op: str
) -> str:
    """Why a value cannot be an int8 operand with this physical shape and zero point; empty if it can.

    A value may be read with other axes than it was written with (Flatten, Reshape).
    """
    t = value_type(types, value, op)
    if t.dtype is not DType.I8 or not same_memory(t.shape, shape):
        return f"{value} is {t.dtype.label} {t.shape}, expected int8 {shape}"
    if t.q is None or t.q.zero_point != zero_point:
        return f"{value} has the quantization {t.q}, expected zero point {zero_point}"
    return ""


def weight_problem(weight: Array, bias: Array, requant: Requant, shape: tuple[int, ...]) -> str:
    """Why weights, bias and requantization do not fit together; empty if they do."""
    if weight.dtype != np.int8 or weight.shape != shape or bias.dtype != np.int32 or bias.shape != shape[:1]:
        return f"weights {weight.dtype} {weight.shape} and bias {bias.dtype} {bias.shape}, expected {shape}"
    if requant.low < -128 or requant.high > 127:
        return f"clamps {requant.low} and {requant.high} leave int8"
    return requant.problem(shape[0])


def shift_of(x: Array, zero_point: int) -> Array:
    """Activations (N, ...) int8 without their zero point, as float64: sums below 2^53 of integers are exact in it."""
    return x.astype(np.float64) - zero_point
