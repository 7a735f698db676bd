"""The inputs and outputs of the generated functions, and rows of them: what one call takes or gives.

Rows of one port are an array (N, *shape). Rows of several ports are a structured array (N,) with a field a port, laid
out as a C struct: each field lies on a multiple of its element's size. Nothing here knows C names or files.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from mcugen.core.types import Array, DType
from mcugen.errors import InternalError


@dataclass(frozen=True, slots=True)
class Port:
    """One input or output: its C name, element type, and shape in the order of the model file."""

    name: str
    dtype: DType
    shape: tuple[int, ...]

    @property
    def count(self) -> int:
        """Elements of a call."""
        n = 1
        for d in self.shape:
            n *= d
        return n

    @property
    def size(self) -> int:
        """Bytes of a call."""
        return self.count * self.dtype.size


Ports = tuple[Port, ...]


@dataclass(frozen=True, slots=True)
class ArenaPorts:
    """An arena of ``size`` bytes, and where the inputs and outputs lie in it: offsets in the order of the ports, none
    where they are the caller's alone."""

    size: int
    inputs: tuple[int, ...] = ()
    outputs: tuple[int, ...] = ()

    @property
    def placed(self) -> bool:
        """Whether the arena has places for inputs and outputs."""
        return bool(self.inputs)


def one_each(x: DType, inputs: int, y: DType, outputs: int) -> tuple[Ports, Ports]:
    """The ports of a model with x of ``inputs`` elements and y of ``outputs``."""
    return (Port("x", x, (inputs,)),), (Port("y", y, (outputs,)),)


def batch_slices(rows: int, most: int) -> Iterator[slice]:
    """``rows`` rows in batches of 1, 2, 3 up to ``most`` rows, and again: code with blocks meets all their ends."""
    at, size = 0, 1
    while at < rows:
        yield slice(at, min(at + size, rows))
        at, size = at + size, size % max(most, 1) + 1


def row_layout(ports: Ports) -> tuple[tuple[int, ...], int]:
    """The offset of each port in a row, and the bytes of a row."""
    at, align, offsets = 0, 1, []
    for p in ports:
        at += -at % p.dtype.size
        offsets.append(at)
        at, align = at + p.size, max(align, p.dtype.size)
    return tuple(offsets), at + -at % align


def row_type(ports: Ports) -> np.dtype[np.generic]:
    """The element type of rows of several ports."""
    offsets, size = row_layout(ports)
    formats = [(p.dtype.np, p.shape) for p in ports]
    return np.dtype({"names": [p.name for p in ports], "formats": formats, "offsets": offsets, "itemsize": size})


def join_rows(ports: Ports, arrays: Sequence[Array]) -> Array:
    """Rows of ``arrays``, one a port, each (N, ...) of the port's type and count."""
    if len(arrays) != len(ports) or any(a.dtype != p.dtype.np for a, p in zip(arrays, ports, strict=True)):
        raise InternalError("rows", f"{[str(a.dtype) for a in arrays]} for {[p.name for p in ports]}")
    shaped = [a.reshape(len(a), *p.shape) for a, p in zip(arrays, ports, strict=True)]
    if len(ports) == 1:
        return shaped[0]
    rows = np.zeros(len(shaped[0]), row_type(ports))
    for p, a in zip(ports, shaped, strict=True):
        rows[p.name] = a
    return rows


def split_rows(ports: Ports, rows: Array) -> tuple[Array, ...]:
    """One array (N, *shape) a port."""
    if len(ports) == 1:
        return (rows.reshape(len(rows), *ports[0].shape),)
    return tuple(np.ascontiguousarray(rows[p.name]) for p in ports)


def element_type(ports: Ports) -> np.dtype[np.generic]:
    """The element type of the array of rows: that of the only port, or of a row."""
    return ports[0].dtype.np if len(ports) == 1 else row_type(ports)


def rows_from(ports: Ports, data: bytes) -> Array:
    """Rows from their bytes, one after the other: (N, *shape) of one port, (N,) of several."""
    size = row_layout(ports)[1]
    rows = np.frombuffer(data, element_type(ports))
    return rows.reshape(len(data) // size, *ports[0].shape) if len(ports) == 1 else rows


def flat_rows(ports: Ports, rows: Array) -> Array:
    """Rows of one port as (N, count), as C has them; rows of several as they are."""
    return rows.reshape(len(rows), ports[0].count) if len(ports) == 1 else rows


def empty_rows(ports: Ports, count: int) -> Array:
    """``count`` rows of zeros."""
    return join_rows(ports, [np.zeros((count, p.count), p.dtype.np) for p in ports])
