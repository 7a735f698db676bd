"""Arrays as the inside of a C initializer. Linear in time; at no moment are there literals of more than one chunk."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from mcugen.ctext.literals import float_literals, hex_literals, int_literals, uint_literals
from mcugen.errors import InternalError

Array = npt.NDArray[Any]

_CHUNK = 1 << 16
#: Literals a line that keep most lines below 110 columns: by kind and bits.
_PER_LINE = {8: 20, 16: 14, 32: 9, 64: 5}
_FLOATS_PER_LINE = {32: 6, 64: 4}


def array_rows(
    data: npt.ArrayLike, *, per_line: int | None = None, indent: str = "    ", hexadecimal: bool = False
) -> str:
    """The lines between the braces of an initializer, each with a comma and a line end: ``{\\n`` + rows + ``}``.

    ``data``: integers of 8 to 64 bits, bool (as 0 and 1), float32, float64. An (n,) array gives n literals,
    ``per_line`` of them a line. Further axes become nested braces, for an array of arrays or of structs whose fields
    share a type: (n, 3) gives n times ``{a, b, c}``, one a line. A structured array gives ``{a, b, c}`` with a
    literal by the type of each field. ``hexadecimal`` writes unsigned integers so; others are as ever.

    InternalError for an empty array (not C11), other element types, and values that are not finite.
    """
    return "".join(array_chunks(data, per_line=per_line, indent=indent, hexadecimal=hexadecimal))


def array_chunks(
    data: npt.ArrayLike, *, per_line: int | None = None, indent: str = "    ", hexadecimal: bool = False
) -> Iterator[str]:
    """The text of array_rows in pieces of whole lines."""
    a = np.asarray(data)
    if a.ndim == 0 or a.size == 0:
        raise InternalError("C array", f"shape {a.shape} has no initializer in C11")
    per_line = _default_per_line(a) if per_line is None else per_line
    if per_line < 1:
        raise InternalError("C array", f"{per_line} elements a line")
    literals_per_row = (a.size // len(a)) * max(1, len(a.dtype.names or ()))
    rows = max(1, _CHUNK // literals_per_row // per_line) * per_line
    end = ",\n"
    for start in range(0, len(a), rows):
        texts = _texts(a[start : start + rows], hexadecimal)
        lines = (", ".join(texts[i : i + per_line]) for i in range(0, len(texts), per_line))
        yield "".join(f"{indent}{line}{end}" for line in lines)


def _default_per_line(a: Array) -> int:
    if a.ndim > 1 or a.dtype.names:
        return 1
    widths = _FLOATS_PER_LINE if a.dtype.kind == "f" else _PER_LINE
    return widths.get(8 * a.dtype.itemsize, 1)


def _texts(a: Array, hexadecimal: bool) -> list[str]:
    """One text for each entry of the first axis of ``a``."""
    if a.dtype.names:
        columns = [_texts(a[name], hexadecimal) for name in a.dtype.names]
    elif a.ndim > 1:
        columns = [_texts(a[:, i], hexadecimal) for i in range(a.shape[1])]
    else:
        return _literals(a, hexadecimal)
    return list(map("{{{}}}".format, map(", ".join, zip(*columns, strict=True))))


def _literals(a: Array, hexadecimal: bool) -> list[str]:
    kind, bits = a.dtype.kind, 8 * a.dtype.itemsize
    if kind == "f" and bits in (32, 64):
        return float_literals(a.tolist(), bits)
    if kind == "i":
        return int_literals(a.tolist(), bits)
    if kind == "u":
        return hex_literals(a.tolist(), bits) if hexadecimal else uint_literals(a.tolist(), bits)
    if kind == "b":
        return uint_literals(a.astype(np.uint8).tolist(), 8)
    raise InternalError("C array", f"element type {a.dtype} has no literal in C")
