"""Numbers as C11 literals that give back the same bits. One function per kind of literal.

The plural functions are the fast path of arrays.py; each singular one checks its range and calls the plural one, so
that a table and a lone constant cannot differ. No compiler flag changes the value of what is written here, except
flags such as -fsingle-precision-constant that break the language.

Hex floats are C11 and C++17: in a header that older C++ reads, give the value another way.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Sequence

from mcugen.errors import InternalError

_BITS = (8, 16, 32, 64)
#: Zeros before the exponent that carry no information: 0x1.8000000000000p+1 is 0x1.8p+1.
_IDLE_ZEROS = re.compile(r"\.?0+p")


def int_literal(value: int, bits: int = 32) -> str:
    """``value`` as a signed integer of ``bits`` (8, 16, 32, 64); InternalError if it is out of range.

    64 bits carry LL. The smallest value is an expression in parentheses, because C has no negative literals and
    its magnitude alone does not fit.
    """
    _check_range(value, bits, -(1 << (bits - 1)), (1 << (bits - 1)) - 1)
    return int_literals([value], bits)[0]


def float32_literal(value: float) -> str:
    """``value`` as a hex float with suffix f. InternalError if it is not finite or not a float32 exactly."""
    try:
        exact = struct.unpack("<f", struct.pack("<f", value))[0] == value
    except OverflowError:
        exact = False
    if math.isfinite(value) and not exact:
        raise InternalError("float32 literal", f"{value!r} is not a float32; a pass has to round it")
    return float_literals([float(value)], 32)[0]


def float64_literal(value: float) -> str:
    """``value`` as a hex float. InternalError if it is not finite."""
    return float_literals([float(value)], 64)[0]


def int_literals(values: Sequence[int], bits: int) -> list[str]:
    """A signed literal for each of ``values``, which are known to fit ``bits``."""
    suffix = "LL" if bits == 64 else ""
    texts = [f"{v}LL" for v in values] if suffix else list(map(str, values))
    low = -(1 << (bits - 1))
    if bits >= 32 and low in values:
        smallest = f"({low + 1}{suffix} - 1)"
        texts = [smallest if v == low else t for v, t in zip(values, texts, strict=True)]
    return texts


def uint_literals(values: Sequence[int], bits: int) -> list[str]:
    """An unsigned decimal literal for each of ``values``, which are known to fit ``bits``."""
    if bits < 32:
        return list(map(str, values))
    suffix = "U" if bits == 32 else "ULL"
    return [f"{v}{suffix}" for v in values]


def hex_literals(values: Sequence[int], bits: int) -> list[str]:
    """An unsigned hexadecimal literal for each of ``values``, which are known to fit ``bits``."""
    suffix = {32: "U", 64: "ULL"}.get(bits, "")
    return list(map(f"0x{{:0{bits // 4}X}}{suffix}".format, values))


def float_literals(values: Sequence[float], bits: int) -> list[str]:
    """A hex float for each of ``values``, which are known to be floats of ``bits`` (32 or 64); all must be finite."""
    if not values:
        return []
    if not all(map(math.isfinite, values)):
        bad = next(v for v in values if not math.isfinite(v))
        raise InternalError(f"float{bits} literal", f"{bad} has no literal in C")
    suffix = "f" if bits == 32 else ""
    # One substitution over the joined text is several times faster than one per value.
    text = _IDLE_ZEROS.sub("p", f"{suffix}\n".join(map(float.hex, values)))
    return (text + suffix).split("\n")


def _check_range(value: int, bits: int, low: int, high: int) -> None:
    if bits not in _BITS:
        raise InternalError("integer literal", f"no C type has {bits} bits")
    if not low <= value <= high:
        raise InternalError("integer literal", f"{value} is outside {low}..{high} ({bits} bits)")
