"""Expressions of GNU ld scripts, evaluated as far as they are known before the link: 64-bit, as ld computes.

What depends on the sizes of sections (the location counter, ADDR, SIZEOF) is None, and so is everything made of it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from mcugen.doctor.ld_scanner import Scanner
from mcugen.errors import InputError

Value = int | None

_MASK = 2**64 - 1
_NUMBER = re.compile(r"(?:0[xX][0-9a-fA-F]+|\$[0-9a-fA-F]+|[0-9][0-9a-fA-F]*[hHoObBdD]?)[kKmM]?(?![A-Za-z0-9_.])")
_NAME = re.compile(r'[A-Za-z_.\\][A-Za-z0-9_.$\\]*|"[^"]*"')
_OPERATORS = (
    ("||",),
    ("&&",),
    ("|",),
    ("&",),
    ("==", "!="),
    ("<=", ">=", "<", ">"),
    ("<<", ">>"),
    ("+", "-"),
    ("*", "/", "%"),
)
#: An operator must not be the beginning of a longer one.
_LONGER: dict[str, tuple[str, ...]] = {"|": ("||", "|="), "&": ("&&", "&="), "<": ("<<", "<="), ">": (">>", ">=")}
_LONGER |= {"<<": ("<<=",), ">>": (">>=",), "+": ("+=",), "-": ("-=",), "*": ("*=",), "/": ("/=",)}
_UNKNOWN_CALLS = {"ADDR", "SIZEOF", "LOADADDR", "ALIGNOF", "NEXT", "BLOCK", "DATA_SEGMENT_ALIGN", "DATA_SEGMENT_END"}
_UNKNOWN_CALLS |= {"DATA_SEGMENT_RELRO_END", "SIZEOF_HEADERS"}
_CONSTANTS = {"MAXPAGESIZE": 0x1000, "COMMONPAGESIZE": 0x1000}


@dataclass(slots=True)
class Scope:
    """What names mean. ``regions``: origin and length by name; ``symbols``: their values, None where not known.

    ``undefined``: names that were used and that nothing defines. ``early``: memories may still be declared further
    down, as ld reads a whole script before it computes a symbol.
    """

    regions: dict[str, tuple[Value, Value]] = field(default_factory=dict)
    symbols: dict[str, Value] = field(default_factory=dict)
    undefined: list[str] = field(default_factory=list)
    early: bool = False


def parse_expression(s: Scanner, scope: Scope) -> Value:
    """The value of the expression that stands here, as an unsigned 64-bit number."""
    condition = _binary(s, scope, 0)
    if not s.accept("?"):
        return condition
    yes = parse_expression(s, scope)
    s.expect(":", "expression")
    no = parse_expression(s, scope)
    return None if condition is None else yes if condition else no


def evaluate(text: str, scope: Scope, name: str) -> Value:
    """The value of a text that is one expression; ``name`` for messages."""
    s = Scanner(())
    s.enter(name, text)
    value = parse_expression(s, scope)
    if not s.at_end:
        raise s.fail(f"not an expression: {text!r}")
    return value


def _binary(s: Scanner, scope: Scope, level: int) -> Value:
    if level == len(_OPERATORS):
        return _unary(s, scope)
    left = _binary(s, scope, level + 1)
    while (operator := _operator(s, level)) is not None:
        right = _binary(s, scope, level + 1)
        left = _apply(s, operator, left, right)
    return left


def _operator(s: Scanner, level: int) -> str | None:
    for operator in _OPERATORS[level]:
        longer = _LONGER.get(operator, ())
        if not any(s.peek(re.compile(re.escape(m))) for m in longer) and s.accept(operator):
            return operator
    return None


def _apply(s: Scanner, operator: str, a: Value, b: Value) -> Value:
    if a is None or b is None:
        return None
    if operator in "/%":
        if b == 0:
            raise s.fail("division by zero")
        # ld divides with the sign of C.
        x, y = _signed(a), _signed(b)
        quotient = abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)
        return (quotient if operator == "/" else x - quotient * y) & _MASK
    functions: Mapping[str, Callable[[int, int], int]] = {
        "||": lambda x, y: int(bool(x or y)),
        "&&": lambda x, y: int(bool(x and y)),
        "|": lambda x, y: x | y,
        "&": lambda x, y: x & y,
        "==": lambda x, y: int(x == y),
        "!=": lambda x, y: int(x != y),
        "<=": lambda x, y: int(x <= y),
        ">=": lambda x, y: int(x >= y),
        "<": lambda x, y: int(x < y),
        ">": lambda x, y: int(x > y),
        "<<": lambda x, y: x << y if y < 64 else 0,
        ">>": lambda x, y: x >> y if y < 64 else 0,
        "+": lambda x, y: x + y,
        "-": lambda x, y: x - y,
        "*": lambda x, y: x * y,
    }
    return functions[operator](a, b) & _MASK


def _signed(value: int) -> int:
    return value - 2**64 if value >> 63 else value


def _unary(s: Scanner, scope: Scope) -> Value:
    for operator in "-~!+":
        if operator == "!" and s.peek(re.compile("!=")):
            continue
        if s.accept(operator):
            value = _unary(s, scope)
            if value is None:
                return None
            return {"-": -value, "~": ~value, "!": int(not value), "+": value}[operator] & _MASK
    return _primary(s, scope)


def _primary(s: Scanner, scope: Scope) -> Value:
    if s.accept("("):
        value = parse_expression(s, scope)
        s.expect(")", "expression")
        return value
    number = s.take(_NUMBER)
    if number is not None:
        return _number(s, number)
    name = s.take(_NAME)
    if name is None:
        raise s.fail(f"expression: a number or a name is expected, not {s.rest()!r}")
    if name != "." and s.peek(re.compile(r"\(")):
        return _call(s, name, scope)
    name = name.strip('"')
    if name in {".", "SIZEOF_HEADERS"}:
        return None
    if name not in scope.symbols:
        scope.undefined.append(name)
        return None
    return scope.symbols[name]


def _number(s: Scanner, text: str) -> int:
    unit = {"k": 1024, "m": 1024**2}.get(text[-1].lower(), 1)
    digits = text[:-1] if unit > 1 else text
    try:
        if digits[:2].lower() == "0x":
            return int(digits, 16) * unit & _MASK
        if digits[0] == "$":
            return int(digits[1:], 16) * unit & _MASK
        base = {"h": 16, "o": 8, "b": 2, "d": 10}.get(digits[-1].lower())
        if base is not None:
            return int(digits[:-1], base) * unit & _MASK
        return int(digits, 8 if digits[0] == "0" and len(digits) > 1 else 10) * unit & _MASK
    except ValueError:
        raise s.fail(f"not a number: {text}") from None


def _call(s: Scanner, name: str, scope: Scope) -> Value:
    """A function of ld. Names of regions and sections are no expressions."""
    if name in {"ORIGIN", "LENGTH"}:
        region = s.balanced(name).strip('" ')
        if region not in scope.regions:
            if scope.early:
                return None
            raise s.fail(f"{name}({region}): there is no such memory")
        return scope.regions[region][name == "LENGTH"]
    if name == "DEFINED":
        return int(s.balanced(name).strip() in scope.symbols)
    if name == "CONSTANT":
        return _CONSTANTS.get(s.balanced(name).strip())
    if name in _UNKNOWN_CALLS:
        s.balanced(name)
        return None
    s.expect("(", name)
    if name == "SEGMENT_START":
        s.take(_NAME)
        s.expect(",", name)
    arguments = [parse_expression(s, scope)]
    while s.accept(","):
        arguments.append(parse_expression(s, scope))
    s.expect(")", name)
    return _known_call(s, name, arguments)


def _known_call(s: Scanner, name: str, arguments: list[Value]) -> Value:
    known = [a for a in arguments if a is not None]
    whole = len(known) == len(arguments)
    if name in {"ABSOLUTE", "SEGMENT_START"} and len(arguments) == 1:
        return arguments[0]
    if name == "ASSERT":
        return arguments[0]
    if name == "ALIGN":  # of one argument: of the location counter
        if len(arguments) != 2 or not whole:
            return None
        value, unit = known
        return -(-value // unit) * unit & _MASK if unit else value
    if name == "LOG2CEIL" and len(arguments) == 1:
        return max(known[0] - 1, 0).bit_length() if whole else None
    if name in {"MAX", "MIN"} and len(arguments) == 2:
        return None if not whole else (max if name == "MAX" else min)(known)
    raise s.fail(f"unknown function {name}")


def parse_definition(word: str) -> tuple[str, Value]:
    """NAME=EXPRESSION, as ld's --defsym takes it."""
    name, found, text = word.partition("=")
    if not found or not _NAME.fullmatch(name.strip()):
        raise InputError("--defsym", f"{word!r} is not NAME=VALUE", "for example --defsym LD_MAX_SIZE=2097152")
    return name.strip(), evaluate(text, Scope(), "--defsym")
