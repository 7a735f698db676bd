"""Tables as text: comma, semicolon or tab; numbers with a decimal point; a header row or none.

With a header, columns are found by the names of the model's features; beside them one column may hold the target.
Without one, the columns are the features in the model's order, and there is no other column. Words are the labels of
categories, as pandas writes them; so are True and False for 1 and 0.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from pathlib import Path

import numpy as np

from mcugen.core.types import Array, Feature
from mcugen.errors import InputError
from mcugen.frontends.names import feature_hint, feature_positions, find_feature, nearest

#: Names of a column, or of an array, that holds the target; in any mix of capitals.
TARGETS = ("y", "label", "labels", "target", "class")
_MISSING = frozenset({"", "na", "n/a", "nan", "+nan", "-nan", "null", "none", "?", "#n/a"})
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|[+-]?inf(?:inity)?", re.IGNORECASE)
_FRACTION = re.compile(r"[^0-9+\-]")
_CHUNK = 65536
_TRUTH = {"true": "1", "false": "0"}

Rows = Iterator[tuple[int, list[str]]]


def read_text(path: Path, features: Sequence[Feature]) -> tuple[Array, Array | None]:
    """(N, F) samples, int64 if no cell has a fraction, an exponent or is empty, else float64; and the target, if any.

    Empty cells, NA, NaN and the like are NaN; labels of categories become their codes. Blank lines are skipped. The
    target is numeric, or text as it stands. InputError with the line for anything that is not such a table. OSError
    goes through.
    """
    file = str(path)
    try:
        with path.open(encoding="utf-8-sig", newline="") as stream:
            first = next((line for line in stream if line.strip()), "")
            stream.seek(0)
            reader = csv.reader(stream, delimiter=_delimiter(first, len(features)), strict=True)
            stripped = ((reader.line_num, [c.strip() for c in row]) for row in reader if row)
            # One blank cell is a blank line, unless there is but one column: there it is a missing value.
            rows = (r for r in stripped if len(features) == 1 or r[1] != [""])
            return _read_rows(rows, features, file)
    except UnicodeDecodeError:
        raise InputError(file, "is not UTF-8 text", "save the table as CSV in UTF-8") from None
    except csv.Error as e:
        raise InputError(file, f"is no table: {e}") from None


def _delimiter(line: str, width: int) -> str:
    """The separator that gives ``width`` cells, else the first of tab, semicolon, comma that occurs."""
    present = [d for d in "\t;," if d in line]
    return next((d for d in present if len(next(csv.reader([line], delimiter=d))) == width), (present or [","])[0])


def _read_rows(rows: Rows, features: Sequence[Feature], file: str) -> tuple[Array, Array | None]:
    first = next(rows, None)
    if first is None:
        raise InputError(file, "is empty")
    columns, target, width = list(range(len(features))), None, len(first[1])
    if _is_header(first[1], features):
        columns, target = _columns(first[1], features, f"{file}: line {first[0]}")
    else:
        if width != len(features):
            hint = "a table with a target needs a header row with the names of the features"
            raise InputError(file, f"{width} columns, the model has {len(features)} features", hint)
        rows = chain([first], rows)
    chunks: list[Array] = []
    labels: list[str] = []
    for chunk in _chunks(rows):
        for line, row in chunk:
            if len(row) != width:
                raise InputError(f"{file}: line {line}", f"{len(row)} cells, the first line has {width}")
        chunks.append(_numbers(chunk, columns, features, file))
        if target is not None:
            labels += [row[target] for _, row in chunk]
    if not chunks:
        raise InputError(file, "holds a header and no samples")
    return np.concatenate(chunks), _target(labels) if target is not None else None


def _chunks(rows: Rows) -> Iterator[list[tuple[int, list[str]]]]:
    while chunk := list(islice(rows, _CHUNK)):
        yield chunk


def _is_number(cell: str) -> bool:
    return cell.lower() in _MISSING or _NUMBER.fullmatch(cell) is not None


def _is_header(row: list[str], features: Sequence[Feature]) -> bool:
    """Some cell is no number; or all features have numbers for names, as pandas gives them, and all are there."""
    if not all(_is_number(c) for c in row):
        # Three decimal commas among semicolons are bad data, not names.
        return not all(_is_number(c.replace(",", ".")) for c in row)
    return len(features) > 1 and {f.name for f in features} <= set(row)


def _columns(header: list[str], features: Sequence[Feature], where: str) -> tuple[list[int], int | None]:
    """For each feature its column; and the column of the target, if there is one."""
    positions = feature_positions(features)
    found: dict[int, int] = {}
    others: list[int] = []
    for column, name in enumerate(header):
        i = find_feature(name, positions)
        if i is None:
            others.append(column)
        elif i in found:
            raise InputError(where, f"column '{name}' comes twice")
        else:
            found[i] = column
    lacking = [f.name for i, f in enumerate(features) if i not in found]
    stray = [c for c in others if header[c].casefold() not in TARGETS]
    if lacking:
        # "known: ..." helps only with the name that the file has and the model lacks.
        hint = f"'{header[stray[0]]}': {feature_hint(header[stray[0]], features)}" if stray else ""
        more = f" and {len(lacking) - 1} more" if len(lacking) > 1 else ""
        raise InputError(where, f"no column for feature '{lacking[0]}'{more}", hint)
    if stray:
        hint = "remove it; beside the features only a target is read, called " + ", ".join(TARGETS)
        raise InputError(where, f"column {stray[0] + 1} '{header[stray[0]]}' is no feature of the model", hint)
    if len(others) > 1:
        raise InputError(where, f"columns '{header[others[0]]}' and '{header[others[1]]}' could both be the target")
    return [found[i] for i in range(len(features))], others[0] if others else None


def _numbers(chunk: list[tuple[int, list[str]]], columns: list[int], features: Sequence[Feature], file: str) -> Array:
    """int64 or float64 (rows, F)."""
    codes = [{label: str(i) for i, label in enumerate(f.categories or ())} for f in features]
    cells = [_code(row[c], known) for _, row in chunk for c, known in zip(columns, codes, strict=True)]
    shape = len(chunk), len(columns)
    if "" not in cells and not _FRACTION.search("".join(cells)):
        try:
            return np.array([int(c) for c in cells], np.int64).reshape(shape)
        except (ValueError, OverflowError):
            pass  # "+-1", or a number beyond int64: the general way decides
    try:
        if "_" in "".join(cells):
            raise ValueError  # Python would read 1_000
        return np.array([np.nan if c.lower() in _MISSING else float(c) for c in cells]).reshape(shape)
    except ValueError:
        k = next(k for k, c in enumerate(cells) if not _is_number(c))
    line, column = chunk[k // len(columns)][0], columns[k % len(columns)] + 1
    feature = features[k % len(columns)]
    where = f"{file}: line {line}, column {column}"
    if feature.categories:
        what = f"'{cells[k][:40]}' is no category of feature '{feature.name}'"
        raise InputError(where, what, nearest(cells[k], feature.categories))
    hint = "use a decimal point" if _is_number(cells[k].replace(",", ".")) else ""
    raise InputError(where, f"'{cells[k][:40]}' is not a number", hint)


def _code(cell: str, known: Mapping[str, str]) -> str:
    """A cell, or the number that its word stands for; numbers stay what they are, see ``codes_of_labels``."""
    if _is_number(cell):
        return cell
    return known.get(cell) or _TRUTH.get(cell.lower(), cell)


def codes_of_labels(x: Array, features: Sequence[Feature], file: str) -> tuple[Array, tuple[str, ...]]:
    """``x`` (N, F) with codes where a column of numbers can only be labels of categories; and warnings.

    Labels that are numbers themselves (10, 20, 30) look like codes (0, 1, 2). A column is labels where all of it are
    labels and something is no code; where it could be both it is codes, as in every other file, and that is told.
    """
    notes = []
    for i, f in enumerate(features):
        labels = f.categories or ()
        if not labels or not all(_NUMBER.fullmatch(label) for label in labels):
            continue
        values = np.array([float(label) for label in labels])
        column = x[:, i].astype(np.float64)
        given = np.unique(column[~np.isnan(column)])
        if not np.isin(given, values).all() or (values == np.arange(len(values))).all() or not given.size:
            continue
        shown = ", ".join(labels[:4]) + (", ..." if len(labels) > 4 else "")
        if np.isin(given, np.arange(len(values))).all():
            notes.append(f"{file}: feature '{f.name}' is read as codes from 0 on, not as its labels {shown}")
            continue
        order = np.argsort(values)
        at = np.minimum(np.searchsorted(values[order], column), len(values) - 1)
        x = x.copy()
        x[:, i] = np.where(np.isnan(column), column, order[at]) if np.isnan(column).any() else order[at]
        notes.append(f"{file}: feature '{f.name}' is read as labels: {shown}")
    return x, tuple(notes)


def _target(cells: Iterable[str]) -> Array:
    """Numbers where all cells are numbers, else text."""
    words = list(cells)
    if all(_is_number(c) for c in words):
        return np.array([np.nan if c.lower() in _MISSING else float(c) for c in words])
    return np.array(words)
