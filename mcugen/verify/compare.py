"""Compares results bit by bit: arrays with arrays, and a golden file with what a device computed.

All NaNs count as one value; apart from that floats compare as bits, so 0.0 and -0.0 differ.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mcugen.core.types import Array
from mcugen.errors import InputError
from mcugen.verify.golden import Golden, canonical_nan


@dataclass(frozen=True, slots=True)
class Difference:
    """How one tensor differs from its reference.

    ``vector`` and ``element`` (index inside one vector, () for a scalar) place the first value that differs;
    ``vector`` is None where shape or element type differ, and the texts then name those. ``expected`` and ``found``
    are a decimal number and its bits. ``count`` of ``total`` values differ.
    """

    name: str
    vector: int | None
    element: tuple[int, ...]
    expected: str
    found: str
    count: int
    total: int

    def __str__(self) -> str:
        if self.vector is None:
            return f"{self.name}: expected {self.expected}, found {self.found}"
        element = f" element {','.join(map(str, self.element))}" if self.element else ""
        return (
            f"{self.name}: vector {self.vector}{element}: expected {self.expected}, found {self.found}; "
            f"{self.count} of {self.total} values differ"
        )


def compare_bits(expected: Array, actual: Array, name: str) -> Difference | None:
    """The first value that differs, vectors on the first axis; None when every bit is the same."""
    if expected.dtype != actual.dtype or expected.shape != actual.shape:
        return Difference(name, None, (), _kind(expected), _kind(actual), actual.size, expected.size)
    differs = _bits(expected) != _bits(actual)
    count = int(np.count_nonzero(differs))
    if count == 0:
        return None
    flat = int(np.argmax(differs.reshape(-1)))
    vector, *element = (int(i) for i in np.unravel_index(flat, differs.shape or (1,)))
    want, got = expected.reshape(-1)[flat], actual.reshape(-1)[flat]
    return Difference(name, vector, tuple(element), _value(want), _value(got), count, expected.size)


def compare_golden_device(golden: Golden, device: bytes, where: str = "DEVICE.bin") -> list[Difference]:
    """The outputs of ``golden`` that ``device`` does not repeat, at most one Difference a tensor.

    ``device`` is the output arrays, one after the other in the order of the golden file, without padding. Steps
    whose expected status is not 0 wrote no output and are not compared. InputError if the length is not the
    expected one.
    """
    outputs = golden.of_role("output")
    need = sum(t.data.nbytes for t in outputs)
    if len(device) != need:
        raise InputError(
            where,
            f"expected {need} bytes ({_sizes(golden)}), found {len(device)}",
            "dump the whole output array of all vectors, and nothing else",
        )
    written = np.ones(golden.vectors, dtype=np.bool_)
    for status in golden.of_role("status"):
        written &= status.data == 0
    found: list[Difference] = []
    at = 0
    for t in outputs:
        raw = np.frombuffer(device, t.dtype.np, t.data.size, at).reshape(t.data.shape)
        at += t.data.nbytes
        actual = raw.copy()
        actual[~written] = t.data[~written]
        difference = compare_bits(t.data.astype(t.dtype.np, copy=False), actual, t.name)
        if difference is not None:
            found.append(difference)
    return found


def _sizes(golden: Golden) -> str:
    parts = [f"{t.name}: {' x '.join(map(str, t.data.shape))} {t.dtype.label}" for t in golden.of_role("output")]
    return ", ".join(parts)


def _bits(data: Array) -> Array:
    """The values as unsigned integers of their width, NaNs as the canonical one."""
    return np.ascontiguousarray(canonical_nan(data)).view(np.dtype(f"u{data.dtype.itemsize}"))


def _kind(data: Array) -> str:
    return f"{data.dtype} {data.shape}"


def _value(value: Any) -> str:
    """``value`` in decimal, floats with as many digits as tell them apart, and its bits."""
    bits = int(value.view(np.dtype(f"u{value.dtype.itemsize}")))
    return f"{value!s} (0x{bits:0{2 * value.dtype.itemsize}x})"
