"""Models as bytes and back: dataclasses, tuples, enums and arrays, nothing else. Deterministic, and no pickle.

Used to keep the references (float and integer) beside an export, so that it can be verified on new data.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any

import numpy as np

from mcugen.core.types import Array
from mcugen.errors import InputError, InternalError

_FORMAT = "mcugen-store/1"


def pack(value: Any) -> bytes:
    """``value`` as a compressed container of one JSON tree and numbered arrays."""
    arrays: list[np.ndarray[Any, Any]] = []
    tree = _to_json(value, arrays)
    meta = np.frombuffer(json.dumps({"format": _FORMAT, "value": tree}).encode("utf-8"), np.uint8)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=4) as archive:
        for name, data in [("meta", meta), *((str(i), a) for i, a in enumerate(arrays))]:
            entry = io.BytesIO()
            np.lib.format.write_array(entry, np.ascontiguousarray(data), allow_pickle=False)
            # A fixed date: two exports of one model are the same bytes.
            info = zipfile.ZipInfo(f"{name}.npy", (1980, 1, 1, 0, 0, 0))
            archive.writestr(info, entry.getvalue(), zipfile.ZIP_DEFLATED, 4)
    return buffer.getvalue()


def npy_bytes(data: Array) -> bytes:
    """An array as a .npy file."""
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, np.ascontiguousarray(data), allow_pickle=False)
    return buffer.getvalue()


def npz_bytes(arrays: Mapping[str, Array]) -> bytes:
    """Named arrays as a .npz file; the same arrays give the same bytes."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for name, data in arrays.items():
            archive.writestr(zipfile.ZipInfo(f"{name}.npy", (1980, 1, 1, 0, 0, 0)), npy_bytes(data))
    return buffer.getvalue()


def unpack(data: bytes, registries: Mapping[str, Mapping[str, type]], where: str) -> Any:
    """The value packed in ``data``. ``registries``: for the class of the value itself, the classes that it may hold.

    Nothing else is ever made. Each root class has its own, because families may use one name for different classes.
    """
    try:
        with np.load(io.BytesIO(data), allow_pickle=False) as archive:
            meta = json.loads(archive["meta"].tobytes())
            if meta["format"] != _FORMAT:
                raise ValueError(meta["format"])
            arrays = [archive[str(i)] for i in range(len(archive.files) - 1)]
        return _from_json(meta["value"], arrays, registries[meta["value"]["class"]])
    except (OSError, ValueError, KeyError, TypeError, IndexError, EOFError, zipfile.BadZipFile) as e:
        what = f"is damaged or from another version of mcugen ({type(e).__name__})"
        raise InputError(where, what, "export the model again") from None


def _to_json(value: Any, arrays: list[np.ndarray[Any, Any]]) -> Any:
    if value is None or (isinstance(value, bool | int | float | str) and not isinstance(value, np.generic)):
        return value
    if isinstance(value, np.ndarray):
        arrays.append(value)
        return {"array": len(arrays) - 1}
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, Enum):
        return {"enum": type(value).__name__, "name": value.name}
    if isinstance(value, tuple | list):
        return {"tuple": [_to_json(v, arrays) for v in value]}
    if isinstance(value, Mapping):
        return {"map": [[k, _to_json(v, arrays)] for k, v in value.items()]}
    if is_dataclass(value) and not isinstance(value, type):
        inner = {f.name: _to_json(getattr(value, f.name), arrays) for f in fields(value)}
        return {"class": type(value).__name__, "fields": inner}
    raise InternalError("store", f"{type(value).__name__} cannot be packed")


def _from_json(tree: Any, arrays: list[np.ndarray[Any, Any]], registry: Mapping[str, type]) -> Any:
    if not isinstance(tree, dict):
        return tree
    if "array" in tree:
        array = arrays[tree["array"]]
        array.flags.writeable = False
        return array
    if "enum" in tree:
        return registry[tree["enum"]][tree["name"]]  # type: ignore[index]
    if "tuple" in tree:
        return tuple(_from_json(v, arrays, registry) for v in tree["tuple"])
    if "map" in tree:
        return {k: _from_json(v, arrays, registry) for k, v in tree["map"]}
    inner = {k: _from_json(v, arrays, registry) for k, v in tree["fields"].items()}
    return registry[tree["class"]](**inner)
