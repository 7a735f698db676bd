"""The golden file: inputs, expected outputs and statuses of one model, in one flat layout.

The records below are the only description of the layout; the writer and the reader both use it, and
``c/golden_reader.h`` follows it for C (a test holds the two together, and ``docs/golden.md`` as well). A file has
one form only: whatever the reader accepts, the writer would write again byte for byte. Not here: how inputs are
chosen, how outputs are computed, and files on disk.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from mcugen.core.types import Array, DType, frozen_array
from mcugen.errors import InputError, InternalError

MAGIC = b"MCGG\r\n\x1a\n"  # the line ends break visibly when a file was sent as text
FORMAT_VERSION = 1
ALIGN = 8
NAME_BYTES = 32
MAX_RANK = 7
MAX_TENSORS = 256

DTYPE_CODES: dict[DType, int] = {
    DType.F64: 1,
    DType.F32: 2,
    DType.I32: 3,
    DType.U32: 4,
    DType.I16: 5,
    DType.U16: 6,
    DType.I8: 7,
    DType.U8: 8,
}
ROLE_CODES: dict[str, int] = {"input": 1, "output": 2, "status": 3}

_DTYPE_OF = {code: dtype for dtype, code in DTYPE_CODES.items()}
_ROLE_OF = {code: role for role, code in ROLE_CODES.items()}


class Field(NamedTuple):
    """One field of a record: its name in messages, its ``struct`` code."""

    name: str
    code: str


class Record:
    """A packed little-endian record: fields without gaps, in order."""

    def __init__(self, *fields: Field) -> None:
        self.fields = fields
        self._struct = struct.Struct("<" + "".join(f.code for f in fields))
        self.size = self._struct.size

    def offset(self, name: str) -> int:
        """Bytes from the start of the record to this field."""
        names = [f.name for f in self.fields]
        return struct.calcsize("<" + "".join(f.code for f in self.fields[: names.index(name)]))

    def pack(self, values: tuple[int | bytes, ...]) -> bytes:
        """The record's bytes; ``values`` in the order of the fields."""
        return self._struct.pack(*values)

    def unpack(self, data: bytes, at: int) -> tuple[Any, ...]:
        """The values at byte ``at``, an int or bytes a field; the caller has checked the length."""
        return self._struct.unpack_from(data, at)


HEADER = Record(
    Field("magic", "8s"),
    Field("format", "I"),
    Field("abi", "I"),
    Field("model_sha256", "32s"),
    Field("vectors", "I"),
    Field("tensors", "I"),
    Field("file_bytes", "Q"),
)
TENSOR = Record(
    Field("name", f"{NAME_BYTES}s"),
    Field("role", "I"),
    Field("dtype", "I"),
    Field("rank", "I"),
    *(Field(f"dim{i}", "I") for i in range(MAX_RANK)),
    Field("offset", "Q"),
)


@dataclass(frozen=True, slots=True, eq=False)
class GoldenTensor:
    """One tensor of all vectors. ``data`` has the vectors on its first axis; ``role`` is a key of ROLE_CODES."""

    name: str
    role: str
    data: Array

    @property
    def dtype(self) -> DType:
        """The element type; InternalError if a golden file has no code for it."""
        return _dtype_of_array(self.name, self.data)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of one vector."""
        return self.data.shape[1:]


@dataclass(frozen=True, slots=True, eq=False)
class Golden:
    """Inputs, then expected outputs, then statuses (int32, one a vector) of ``vectors`` calls of one model."""

    abi: int
    model_sha256: bytes
    tensors: tuple[GoldenTensor, ...]
    vectors: int

    def of_role(self, role: str) -> tuple[GoldenTensor, ...]:
        """The tensors of this role, in order."""
        return tuple(t for t in self.tensors if t.role == role)


def canonical_nan(data: Array) -> Array:
    """``data`` with each NaN replaced by the one positive quiet NaN; itself where there is none."""
    if data.dtype.kind != "f":
        return data
    nan = np.isnan(data)
    if not nan.any():
        return data
    out = data.copy()
    out[nan] = np.array(np.nan, dtype=data.dtype)
    return out


def golden_bytes(g: Golden) -> bytes:
    """The file. NaNs of outputs become canonical, those of inputs stay; InternalError if ``g`` breaks the rules."""
    _check_value(g)
    at = HEADER.size + TENSOR.size * len(g.tensors)
    records: list[bytes] = []
    blocks: list[bytes] = []
    for t in g.tensors:
        data = canonical_nan(t.data) if t.role == "output" else t.data
        block = np.ascontiguousarray(data, dtype=t.dtype.np).tobytes()
        dims = t.shape + (1,) * (MAX_RANK - len(t.shape))
        records.append(
            TENSOR.pack((t.name.encode("ascii"), ROLE_CODES[t.role], DTYPE_CODES[t.dtype], len(t.shape), *dims, at))
        )
        blocks.append(block + bytes(-len(block) % ALIGN))
        at += len(blocks[-1])
    header = HEADER.pack((MAGIC, FORMAT_VERSION, g.abi, g.model_sha256, g.vectors, len(g.tensors), at))
    return b"".join((header, *records, *blocks))


def read_golden(data: bytes, where: str) -> Golden:
    """The value that ``golden_bytes`` wrote. InputError that names ``where``, the offset and the field, if not."""
    cursor = _Reader(data, where)
    abi, sha256, vectors, count = cursor.header()
    at = HEADER.size + TENSOR.size * count
    tensors: list[GoldenTensor] = []
    for i in range(count):
        tensor, at = cursor.tensor(HEADER.size + TENSOR.size * i, vectors, at)
        if any(t.name == tensor.name for t in tensors):
            raise cursor.bad(TENSOR, HEADER.size + TENSOR.size * i, "name", f"{tensor.name!r} stands there twice")
        tensors.append(tensor)
    if at != len(data):
        raise cursor.bad(HEADER, 0, "file_bytes", f"the tensors end at {at}, the file at {len(data)}")
    roles = [ROLE_CODES[t.role] for t in tensors]
    if roles != sorted(roles):
        raise InputError(where, "the order of the tensors is not inputs, outputs, status", _HINT)
    return Golden(abi, sha256, tuple(tensors), vectors)


_HINT = "export the model again"


class _Reader:
    """Reads one file; each complaint says where in the file it arose."""

    def __init__(self, data: bytes, where: str) -> None:
        self.data = bytes(data)
        self.where = where

    def bad(self, record: Record, base: int, field: str, what: str) -> InputError:
        return InputError(self.where, f"offset {base + record.offset(field)}, field {field}: {what}", _HINT)

    def _need(self, record: Record, base: int, what: str) -> None:
        if len(self.data) < base + record.size:
            raise InputError(
                self.where,
                f"offset {len(self.data)}: the file ends inside {what} (bytes {base} to {base + record.size})",
                _HINT,
            )

    def header(self) -> tuple[int, bytes, int, int]:
        """ABI, model sha256, count of vectors, count of tensors."""
        if self.data[: len(MAGIC)] != MAGIC[: len(self.data)]:
            raise self.bad(HEADER, 0, "magic", "not a golden file of mcugen")
        self._need(HEADER, 0, "the header")
        _, version, abi, sha256, vectors, count, size = HEADER.unpack(self.data, 0)
        if version != FORMAT_VERSION:
            raise self.bad(HEADER, 0, "format", f"{version}, this mcugen reads {FORMAT_VERSION}")
        if size != len(self.data):
            raise self.bad(HEADER, 0, "file_bytes", f"{size}, but the file has {len(self.data)} bytes")
        if count > MAX_TENSORS:
            raise self.bad(HEADER, 0, "tensors", f"{count}, at most {MAX_TENSORS} are possible")
        return abi, sha256, vectors, count

    def tensor(self, base: int, vectors: int, expected_at: int) -> tuple[GoldenTensor, int]:
        """The tensor whose record is at ``base``, and where the next one's data begins."""
        self._need(TENSOR, base, "a tensor record")
        raw, role_code, dtype_code, rank, *dims, at = TENSOR.unpack(self.data, base)
        name = self._name(base, raw)
        role = _ROLE_OF.get(role_code)
        if role is None:
            raise self.bad(TENSOR, base, "role", f"{role_code} is no role")
        dtype = _DTYPE_OF.get(dtype_code)
        if dtype is None:
            raise self.bad(TENSOR, base, "dtype", f"{dtype_code} is no element type")
        shape = self._shape(base, rank, tuple(dims))
        if role == "status" and (dtype is not DType.I32 or shape):
            raise self.bad(TENSOR, base, "dtype", "a status is one int32 a vector")
        if at != expected_at:
            raise self.bad(TENSOR, base, "offset", f"{at}, expected {expected_at}")
        array, end = self._data(name, dtype, (vectors, *shape), expected_at)
        return GoldenTensor(name, role, array), end

    def _name(self, base: int, raw: bytes) -> str:
        text = raw.rstrip(b"\0")
        if not 0 < len(text) < NAME_BYTES or not all(0x20 < c < 0x7F for c in text):
            raise self.bad(TENSOR, base, "name", f"1 to {NAME_BYTES - 1} printable ASCII characters expected")
        return text.decode("ascii")

    def _shape(self, base: int, rank: int, dims: tuple[int, ...]) -> tuple[int, ...]:
        if rank > MAX_RANK:
            raise self.bad(TENSOR, base, "rank", f"{rank}, at most {MAX_RANK} is possible")
        for i, d in enumerate(dims):
            if i >= rank and d != 1:
                raise self.bad(TENSOR, base, f"dim{i}", f"{d}, but 1 is expected beyond the rank")
        return dims[:rank]

    def _data(self, name: str, dtype: DType, shape: tuple[int, ...], at: int) -> tuple[Array, int]:
        count = 1
        for d in shape:
            count *= d
        stop = at + count * dtype.size
        end = stop + -stop % ALIGN
        if end > len(self.data):
            raise InputError(
                self.where, f"offset {at}: the data of {name} need {end - at} bytes, {len(self.data) - at} are left"
            )
        if any(self.data[stop:end]):
            raise InputError(self.where, f"offset {stop}: the padding after {name} is not zero", _HINT)
        if count == 0:
            return frozen_array(_empty(self.where, name, dtype, shape)), end
        return np.frombuffer(self.data, dtype.np, count, at).reshape(shape), end


def _empty(where: str, name: str, dtype: DType, shape: tuple[int, ...]) -> Array:
    """An array without elements; a hostile shape such as (0, 2**32 - 1, ...) is refused."""
    try:
        return np.empty(shape, dtype.np)
    except (ValueError, MemoryError):
        raise InputError(where, f"the shape {shape} of {name} is too large", _HINT) from None


def _dtype_of_array(name: str, data: Array) -> DType:
    for t in DType:
        if t.np == data.dtype.newbyteorder("<"):
            return t
    raise InternalError(f"golden tensor {name}", f"no code for the element type {data.dtype}")


def _check_value(g: Golden) -> None:
    """Our own rules, before anything is written."""

    def fail(what: str) -> None:
        raise InternalError("golden file", what)

    if len(g.model_sha256) != 32:
        fail("model_sha256 is not 32 bytes")
    if not 0 <= g.vectors < 2**32 or not 0 <= g.abi < 2**32 or len(g.tensors) > MAX_TENSORS:
        fail("a count is out of range")
    if len({t.name for t in g.tensors}) != len(g.tensors):
        fail("two tensors have one name")
    if any(t.role not in ROLE_CODES for t in g.tensors):
        fail("a tensor has an unknown role")
    roles = [ROLE_CODES[t.role] for t in g.tensors]
    if roles != sorted(roles):
        fail("the order must be inputs, outputs, status")
    for t in g.tensors:
        if not 0 < len(t.name) < NAME_BYTES or not all(0x20 < ord(c) < 0x7F for c in t.name):
            fail(f"the name {t.name!r} is not 1 to {NAME_BYTES - 1} printable ASCII characters")
        if (
            t.data.ndim < 1
            or t.data.shape[0] != g.vectors
            or len(t.shape) > MAX_RANK
            or max(t.shape, default=0) >= 2**32
        ):
            fail(f"{t.name} has shape {t.data.shape} in a file of {g.vectors} vectors")
        if t.role == "status" and (t.dtype is not DType.I32 or t.shape):
            fail(f"the status {t.name} is not one int32 a vector")
