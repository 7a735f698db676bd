"""The TOML of a signal chain, read and checked field by field: every fault is one line with its place and a remedy."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from typing import Any, get_args

from pydantic import BaseModel, ValidationError

from mcugen.errors import InputError
from mcugen.frontends.names import nearest
from mcugen.frontends.pipeline import schema

#: The tables of the file by their key, with those that may come many times.
_TABLES: Mapping[str, type[BaseModel] | None] = {
    "signal": schema.SignalTable,
    "channel": schema.Channel,
    "filter": None,
    "window": schema.Window,
    "feature": schema.FeatureTable,
    "model": schema.ModelTable,
}
#: Complaints of pydantic in the words of TOML.
_PLAIN = {"tuple_type": "must be a list", "model_type": "must be a table", "bool_type": "must be true or false"}
#: What an empty list lacks.
_FILLED = {"channels": "name one, or leave it out", "kind": "name at least one"}
_FILLED |= dict.fromkeys(("sos", "b", "a", "weights", "taps"), "give at least one number")
_MANY = ("channel", "filter", "feature")
_FILTERS: Mapping[str, type[BaseModel]] = {
    kind: cls
    for cls in get_args(get_args(schema.AnyFilter)[0])
    for kind in get_args(cls.model_fields["kind"].annotation)
}


def read_tables(data: bytes, file: str) -> schema.PipelineTables:
    """The tables of a file called ``file``. InputError names the file, the table, the key and what to write."""
    try:
        tables = tomllib.loads(data.decode("utf-8-sig").replace("\r\n", "\n"))
    except UnicodeDecodeError:
        raise InputError(file, "is not UTF-8 text", "save it as UTF-8") from None
    except (tomllib.TOMLDecodeError, RecursionError) as e:
        raise InputError(file, f"is not TOML: {e}") from None
    except ValueError as e:  # an integer with thousands of digits
        raise InputError(file, f"holds a number that cannot be read: {e}") from None
    return checked_tables(tables, file)


def checked_tables(tables: Mapping[str, Any], file: str) -> schema.PipelineTables:
    """``tables`` as TOML gives them; InputError as above."""
    for key, value in tables.items():
        if key in _MANY and isinstance(value, dict):
            raise InputError(f"{file}: [{key}]", "is one table", f"write [[{key}]]")
        if key in _TABLES and key not in _MANY and isinstance(value, list):
            raise InputError(f"{file}: [[{key}]]", "there can be only one", f"write [{key}]")
    try:
        return schema.PipelineTables.model_validate(tables)
    except ValidationError as e:
        raise _explained(file, tables, e) from None


def _explained(file: str, tables: Mapping[str, Any], error: ValidationError) -> InputError:
    """The first complaint, as place, reason and remedy. A key that is unknown explains one that is missing."""
    first = min(error.errors(), key=lambda e: e["type"] != "extra_forbidden")
    kind, loc = first["type"], first["loc"]
    top = str(loc[0])
    if len(loc) == 1:
        if kind == "extra_forbidden":
            return InputError(f"{file}: {top}", "unknown table", nearest(top, _TABLES))
        brackets = f"[[{top}]]" if top in _MANY else f"[{top}]"
        if kind in ("missing", "too_short"):
            return InputError(file, f"has no {brackets} table")
        return InputError(f"{file}: {top}", "is no table", f"write {brackets}")
    rest = list(loc[1:])
    place = f"{file}: [{top}]"
    if top in _MANY:
        entry = tables[top][rest[0]]
        label = (entry.get("name") or entry.get("kind")) if isinstance(entry, dict) else None
        place = f"{file}: [[{top}]] {int(rest.pop(0)) + 1}" + (f" '{label}'" if isinstance(label, str) else "")
    return _field_fault(place, top, rest, dict(first))


def _field_fault(place: str, top: str, rest: list[Any], fault: dict[str, Any]) -> InputError:
    """A complaint about one field of one table; ``rest`` is the way to it inside of the table."""
    kind, found = fault["type"], fault["input"]
    if kind == "union_tag_not_found":
        return InputError(place, "the key kind is missing", f"known: {', '.join(_FILTERS)}")
    if kind == "union_tag_invalid":
        word = str(found.get("kind"))
        return InputError(f"{place}: kind", f"{word[:40]!r} is no filter", nearest(word, _FILTERS))
    fields = _TABLES[top]
    if top == "filter" and rest:
        fields = _FILTERS.get(str(rest.pop(0)))
    key = str(rest[0]) if rest else ""
    at = f"{place}: {key}" if key else place
    if kind == "extra_forbidden":
        return InputError(at, "unknown key", nearest(key, fields.model_fields if fields else ()))
    if kind == "missing":
        return InputError(place, f"the key {key} is missing")
    text = f"'{found}'" if isinstance(found, str) else str(found)
    if kind == "literal_error":
        known = fault["ctx"]["expected"].replace("'", "").replace(" or ", ", ").split(", ")
        hint = nearest(found, known) if isinstance(found, str) else ""
        hint = "" if hint.startswith("known") else hint  # they are named already
        return InputError(at, f"{text[:40]} is not one of {', '.join(known)}", hint)
    if isinstance(found, list | tuple | str) and not found:
        return InputError(at, "is empty", _FILLED.get(key, ""))
    if kind == "finite_number":
        return InputError(at, "is NaN or infinite")
    what = _PLAIN.get(kind) or str(fault["msg"]).replace("Input should be ", "must be ")
    return InputError(at, f"{what[:1].lower()}{what[1:]}, found {text[:40]}")
