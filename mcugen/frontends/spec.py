"""The user's --spec file: what the caller's integers mean. TOML, one ``[[input]]`` table a feature.

Two steps: ``load_spec`` checks the file by itself, ``resolve_spec`` checks it against a model. Whether whole numbers
are what the model was trained on is not asked here but in ``scales``.
"""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from mcugen.core.types import DType, Feature
from mcugen.errors import InputError
from mcugen.frontends.named_file import read_bytes
from mcugen.frontends.names import feature_hint, feature_positions, find_feature, nearest
from mcugen.trees.signals import InputSpec, Signal

DTypeLabel = Literal["float64", "float32", "int32", "int16", "uint16", "int8", "uint8"]
Number = Annotated[float, Field(strict=True, allow_inf_nan=False)]


class InputEntry(BaseModel):
    """One ``[[input]]`` table: the model's value is ``scale * x + offset``, computed in ``arithmetic``.

    ``scale`` of 1.0 says that the integers are the model's values. ``missing``: the integer that stands for NaN.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: Annotated[str, Field(strict=True, min_length=1)]
    dtype: DTypeLabel | None = None
    scale: Number | None = None
    offset: Number | None = None
    missing: Annotated[int, Field(strict=True)] | None = None
    arithmetic: Literal["float64", "float32"] | None = None

    @property
    def has_map(self) -> bool:
        """Whether the entry says what value an integer means."""
        return self.scale is not None or self.offset is not None

    @property
    def signal(self) -> Signal:
        """The entry as a Signal. A map that changes nothing becomes none: it would only cost time."""
        single = self.arithmetic == "float32"
        scale, offset = 1.0 if self.scale is None else self.scale, self.offset or 0.0
        if not self.has_map or (scale == 1.0 and offset == 0.0 and not single):
            return Signal(missing=self.missing)
        return Signal(scale, offset, self.missing, single)


class _Tables(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    input: tuple[InputEntry, ...]


@dataclass(frozen=True, slots=True)
class SpecFile:
    """A spec that is right in itself. ``file``: its path as the user gave it, for messages."""

    file: str
    inputs: tuple[InputEntry, ...]

    def where(self, number: int, key: str = "") -> str:
        """The place of entry ``number`` (from 0), and of a key in it."""
        name = self.inputs[number].name
        return f"{self.file}: [[input]] {number + 1} '{name}'" + (f": {key}" if key else "")


def load_spec(path: Path) -> SpecFile:
    """Read and check a spec file. InputError names the file, the entry, the key and the nearest known key."""
    file = str(path)
    try:
        table = tomllib.loads(read_bytes(path).decode("utf-8-sig").replace("\r\n", "\n"))
    except UnicodeDecodeError:
        raise InputError(file, "is not UTF-8 text", "save the spec as UTF-8") from None
    except (tomllib.TOMLDecodeError, RecursionError) as e:
        raise InputError(file, f"is not TOML: {e}") from None
    except ValueError as e:  # an integer with thousands of digits
        raise InputError(file, f"holds a number that cannot be read: {e}") from None
    if isinstance(table.get("input"), dict):
        raise InputError(f"{file}: [input]", "is one table", "write [[input]], once for each feature")
    try:
        spec = SpecFile(file, _Tables.model_validate(table).input)
    except ValidationError as e:
        raise _explained(file, table, e) from None
    if not spec.inputs:
        raise InputError(file, "has no [[input]] table")
    _check_entries(spec)
    return spec


def resolve_spec(features: Sequence[Feature], spec: SpecFile | None, input_dtype: DType | None) -> InputSpec:
    """The type of the input and the signal of each of the (F,) features.

    ``input_dtype`` None: the type that the spec names, else float32. InputError for a name that the model does not
    have, for types that disagree, and for maps and codes that the type cannot hold.
    """
    entries = () if spec is None else spec.inputs
    positions = feature_positions(features)
    signals = [Signal()] * len(features)
    owner: dict[int, int] = {}
    for n, entry in enumerate(entries):
        assert spec is not None
        i = find_feature(entry.name, positions)
        if i is None:
            hint = feature_hint(entry.name, features)
            raise InputError(spec.where(n), "the model has no feature of this name", hint)
        if i in owner:
            raise InputError(spec.where(n), f"means the same feature as entry {owner[i] + 1}")
        owner[i] = n
        signals[i] = entry.signal
    dtype = _common_dtype(spec, input_dtype)
    if spec is not None:
        for i, n in owner.items():
            _check_signal(signals[i], entries[n], dtype, spec, n)
    return InputSpec(dtype, tuple(signals))


def mapped_features(features: Sequence[Feature], spec: SpecFile | None) -> frozenset[int]:
    """Features whose entry gives a scale or an offset; ``scale = 1.0`` counts: the user confirms whole numbers."""
    positions = feature_positions(features)
    found = (find_feature(e.name, positions) for e in (spec.inputs if spec else ()) if e.has_map)
    return frozenset(i for i in found if i is not None)


def _explained(file: str, table: dict[str, Any], error: ValidationError) -> InputError:
    """The first complaint, as place, reason and remedy."""
    # A key that is not known explains one that is missing.
    first = min(error.errors(), key=lambda e: e["type"] != "extra_forbidden")
    path, kind = first["loc"], first["type"]
    if len(path) < 2:
        key = str(path[0]) if path else ""
        if kind == "extra_forbidden":
            return InputError(f"{file}: {key}", "unknown key", "a spec holds [[input]] tables only")
        if kind == "missing":
            return InputError(file, "has no [[input]] table")
        return InputError(f"{file}: {key}", first["msg"], "write [[input]], once for each feature")
    place = f"{file}: [[input]] {int(path[1]) + 1}"
    entry = table["input"][path[1]]
    if isinstance(entry, dict) and isinstance(entry.get("name"), str):
        place += f" '{entry['name']}'"
    key = str(path[2]) if len(path) > 2 else ""
    if kind == "extra_forbidden":
        return InputError(f"{place}: {key}", "unknown key", nearest(key, InputEntry.model_fields))
    if kind == "missing":
        return InputError(place, f"the key {key} is missing")
    found = first["input"]
    text = f"'{found}'" if isinstance(found, str) else str(found)
    if kind == "literal_error":
        known = get_args(DTypeLabel) if key == "dtype" else ("float64", "float32")
        hint = nearest(found, known) if isinstance(found, str) else ""
        return InputError(f"{place}: {key}", f"{text[:40]} is not one of {', '.join(known)}", hint)
    return InputError(f"{place}: {key}" if key else place, f"{first['msg']}, found {text[:40]}")


def _check_entries(spec: SpecFile) -> None:
    """What one entry can get wrong without a model, and names that come twice."""
    seen: dict[str, int] = {}
    for n, entry in enumerate(spec.inputs):
        if entry.name in seen:
            raise InputError(spec.where(n), f"the name was used in entry {seen[entry.name] + 1}")
        seen[entry.name] = n
        if entry.scale == 0.0:
            raise InputError(spec.where(n, "scale"), "0 would make every input the same value")
        if entry.arithmetic == "float32" and not entry.has_map:
            raise InputError(spec.where(n, "arithmetic"), "has no meaning without scale or offset")
        if entry.dtype is not None:
            _check_signal(entry.signal, entry, DType.of(entry.dtype), spec, n)


def _common_dtype(spec: SpecFile | None, input_dtype: DType | None) -> DType:
    """The one type that everybody names."""
    named = [] if spec is None else [(n, e.dtype) for n, e in enumerate(spec.inputs) if e.dtype is not None]
    if spec is None or not named:
        return DType.F32 if input_dtype is None else input_dtype
    first, label = named[0]
    for n, other in named:
        if other != label:
            what = f"{other}, but {label} in entry {first + 1}"
            raise InputError(spec.where(n, "dtype"), what, "all inputs of a model have one type")
    if input_dtype is not None and input_dtype.label != label:
        what = f"{label}, but --input-dtype says {input_dtype.label}"
        raise InputError(spec.where(first, "dtype"), what, "leave one of them out")
    return DType.of(label)


def _check_signal(signal: Signal, entry: InputEntry, dtype: DType, spec: SpecFile, n: int) -> None:
    """Whether inputs of ``dtype`` can carry the signal."""
    if dtype.is_float:
        hint = "give an integer dtype, in the spec or with --input-dtype"
        if signal.missing is not None:
            what = f"{signal.missing} has no meaning for {dtype.label} inputs: NaN stands for a missing value"
            raise InputError(spec.where(n, "missing"), what, hint)
        if signal.scale is not None:
            key = "offset" if entry.scale is None else "scale"
            raise InputError(spec.where(n, key), f"{dtype.label} inputs are the model's values already", hint)
        return
    if signal.missing is not None and not dtype.min <= signal.missing <= dtype.max:
        what = f"{signal.missing} is outside of {dtype.label}, {dtype.min} to {dtype.max}"
        raise InputError(spec.where(n, "missing"), what)
    if signal.scale is None:
        return
    key = "offset" if entry.scale is None else "scale"
    with np.errstate(over="ignore", invalid="ignore"):
        ends = Signal(signal.scale, signal.offset, None, signal.single).value(np.array([dtype.min, dtype.max]))
    arithmetic = "float32" if signal.single else "float64"
    if not np.isfinite(ends).all():
        raise InputError(spec.where(n, key), f"values of {dtype.label} inputs overflow {arithmetic}")
    if ends[0] == ends[1]:
        raise InputError(spec.where(n, key), f"every {dtype.label} input becomes the same {arithmetic} value")
