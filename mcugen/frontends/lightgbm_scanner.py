"""LightGBM's text format, first step: lines to keys and raw values. Knows the grammar, not the meaning.

    tree
    KEY=VALUE ...            header; one key may stand alone (average_output)
    Tree=0                   a block a tree
    KEY=VALUE ...
    end of trees
    feature_importances: ... parameters: ... pandas_categorical:JSON

One pass over the bytes, no recursion.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from mcugen.errors import InputError

_END = b"end of trees"
_TREE = b"Tree="


@dataclass(frozen=True, slots=True)
class Block:
    """Keys and values of one tree, with the number of its first line in the file."""

    index: int
    line: int
    fields: dict[str, bytes]


@dataclass(frozen=True, slots=True)
class Scan:
    """The file as keys and values. ``trees`` is consumed once, in order."""

    header: dict[str, str]
    trees: Iterator[Block]
    parameters: dict[str, str]
    pandas_categorical: list[list[Any]] | None


def scan(data: bytes, file: str) -> Scan:
    """The parts of a model file. InputError where the text is not a LightGBM model or stops short."""
    if not data.strip():
        raise InputError(file, "the file is empty", "save the model with booster.save_model(path)")
    if b"\0" in data[:65536]:
        raise InputError(file, "this is a binary file, not a LightGBM text model", "use booster.save_model(path)")
    lines = data[:4096].splitlines()
    if lines[0].strip() != b"tree":
        raise InputError(
            f"{file}:1", "a LightGBM text model begins with the line 'tree'", "use booster.save_model(path)"
        )
    first = _find_line(data, _TREE, 0)
    end = _find_line(data, _END, max(first, 0))
    if end < 0:
        raise InputError(file, "the line 'end of trees' is missing: the file is truncated", "save the model again")
    head_end = first if 0 <= first < end else end
    header = _header(data[:head_end], file)
    tail = _text(data[end + len(_END) :], file, data.count(b"\n", 0, end) + 1)
    return Scan(
        header=header,
        trees=_trees(data, first, end, file) if 0 <= first < end else iter(()),
        parameters=_parameters(tail),
        pandas_categorical=_pandas(tail, file),
    )


def _find_line(data: bytes, start: bytes, begin: int) -> int:
    """The offset of the first line from ``begin`` on that starts with ``start``, or -1."""
    if data.startswith(start, begin):
        return begin
    at = data.find(b"\n" + start, begin)
    return at + 1 if at >= 0 else -1


def _text(data: bytes, file: str, line: int) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as e:
        number = line + data.count(b"\n", 0, e.start)
        raise InputError(f"{file}:{number}", "bytes that are not UTF-8") from None


def _header(data: bytes, file: str) -> dict[str, str]:
    header: dict[str, str] = {}
    for number, line in enumerate(_text(data, file, 1).split("\n"), 1):
        text = line.rstrip("\r")
        if number == 1 or not text.strip():
            continue
        key, separator, value = text.partition("=")
        key = key.strip()
        if key in header:
            raise InputError(f"{file}:{number}", f"the key '{key}' stands twice in the header")
        header[key] = value if separator else ""
    return header


def _trees(data: bytes, begin: int, end: int, file: str) -> Iterator[Block]:
    """Tree blocks, one at a time: a file of 100 MB is never split as a whole."""
    line = data.count(b"\n", 0, begin) + 1
    expected = 0
    while begin < end:
        stop = _find_line(data, _TREE, begin + len(_TREE))
        stop = end if stop < 0 or stop > end else stop
        rows = data[begin:stop].split(b"\n")
        head = rows[0].strip()[len(_TREE) :]
        if head != str(expected).encode():
            raise InputError(
                f"{file}:{line}", f"'Tree={expected}' is missing", "trees must be in order; save the model again"
            )
        yield Block(expected, line, _fields(rows, file, line))
        line += len(rows) - 1
        expected += 1
        begin = stop


def _fields(rows: list[bytes], file: str, line: int) -> dict[str, bytes]:
    fields: dict[str, bytes] = {}
    for offset, row in enumerate(rows[1:], 1):
        text = row.strip()
        if not text:
            continue
        key, separator, value = text.partition(b"=")
        name = key.decode("ascii", "backslashreplace")
        if not separator:
            raise InputError(f"{file}:{line + offset}", f"expected KEY=VALUE, found '{name[:40]}'")
        if name in fields:
            raise InputError(f"{file}:{line + offset}", f"the key '{name}' stands twice in a tree")
        fields[name] = value
    return fields


def _parameters(tail: str) -> dict[str, str]:
    """The ``[name: value]`` lines after ``parameters:``."""
    _, found, text = tail.partition("\nparameters:")
    if not found:
        return {}
    result = {}
    for line in text.partition("end of parameters")[0].split("\n"):
        body = line.strip()
        if body.startswith("[") and body.endswith("]"):
            key, _, value = body[1:-1].partition(":")
            result[key.strip()] = value.strip()
    return result


def _pandas(tail: str, file: str) -> list[list[Any]] | None:
    for line in tail.split("\n"):
        if line.startswith("pandas_categorical:"):
            try:
                value = json.loads(line.partition(":")[2])
            except (json.JSONDecodeError, RecursionError):
                raise InputError(file, "the line pandas_categorical is not valid JSON") from None
            if value is None:
                return None
            if not isinstance(value, list) or not all(isinstance(v, list) for v in value):
                raise InputError(file, "pandas_categorical must be a list of lists")
            return value
    return None
