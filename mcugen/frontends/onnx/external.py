"""Weights in a file beside the model, as torch writes them by default: put into the model before it is read.

Only files in the model's own folder, or below it, are read.
"""

from __future__ import annotations

from math import prod
from pathlib import Path, PurePosixPath

import onnx
from google.protobuf.message import DecodeError
from onnx import helper

from mcugen.errors import InputError
from mcugen.frontends.onnx.scanner import MAX_BYTES, short

_ONE_FILE = "keep both files in one folder, or save them as one: onnx.save(onnx.load(path), path)"


def embedded(data: bytes, folder: Path, file: str) -> bytes:
    """The model ``data`` with the values of its initializers inside; ``data`` itself where they are already.

    ``file`` is a name for messages. InputError: a file that is missing, too short, or outside of ``folder``. What is no
    model comes back as it is.
    """
    model = onnx.ModelProto()
    try:
        model.ParseFromString(data)
    except (DecodeError, RecursionError):
        return data
    outside = [t for t in model.graph.initializer if t.data_location == onnx.TensorProto.EXTERNAL]
    if not outside:
        return data
    files: dict[str, bytes] = {}
    for tensor in outside:
        _embed(tensor, folder, file, files)
    return bytes(model.SerializeToString(deterministic=True))


def _embed(tensor: onnx.TensorProto, folder: Path, file: str, files: dict[str, bytes]) -> None:
    where = f"{file}: tensor {short(tensor.name)}"
    found = {e.key: e.value for e in tensor.external_data}
    location = found.get("location", "")
    if location not in files:
        files[location] = _read(folder, location, where)
    size = prod(tensor.dims) * _itemsize(tensor, where)
    try:
        start, length = int(found.get("offset", 0)), int(found.get("length", size))
    except ValueError:
        raise InputError(where, "its place in another file is not a number", "export the model again") from None
    values = files[location][start : start + length] if start >= 0 else b""
    if length != size or len(values) != size:
        what = f"{size} bytes at {start} of {short(location)}, which has {len(files[location])}"
        raise InputError(where, what, "export the model again: the two files do not belong together")
    tensor.ClearField("external_data")
    tensor.data_location = onnx.TensorProto.DEFAULT
    tensor.raw_data = values


def _itemsize(tensor: onnx.TensorProto, where: str) -> int:
    try:
        return int(helper.tensor_dtype_to_np_dtype(tensor.data_type).itemsize)
    except KeyError:
        raise InputError(where, f"element type {tensor.data_type}", "export the model again") from None


def _read(folder: Path, location: str, where: str) -> bytes:
    parts = PurePosixPath(location).parts
    root, path = folder.resolve(), folder.joinpath(*parts).resolve()
    if not parts or ".." in parts or not path.is_relative_to(root):
        raise InputError(where, f"its values are in another file, {short(location)}, outside of the folder", _ONE_FILE)
    try:
        size = path.stat().st_size
        if size > MAX_BYTES:
            raise InputError(where, f"{short(location)} has {size} bytes; the limit is {MAX_BYTES}")
        return path.read_bytes()
    except OSError:
        raise InputError(where, f"its values are in {short(location)}, which cannot be read", _ONE_FILE) from None
