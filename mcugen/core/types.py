"""Values that flow through the pipe: dtypes, tensor types, constants, features, models.

All are frozen; arrays in them are read-only. ``eq=False`` where a value holds arrays: identity is what
a pass needs, and comparing arrays with ``==`` would give an array.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from mcugen.core.op import Op

Array = npt.NDArray[Any]


class DType(Enum):
    """An element type: its name in options and manifests, its numpy dtype, its C type."""

    F64 = ("float64", "<f8", "double")
    F32 = ("float32", "<f4", "float")
    I32 = ("int32", "<i4", "int32_t")
    U32 = ("uint32", "<u4", "uint32_t")
    I16 = ("int16", "<i2", "int16_t")
    U16 = ("uint16", "<u2", "uint16_t")
    I8 = ("int8", "i1", "int8_t")
    U8 = ("uint8", "u1", "uint8_t")

    def __init__(self, label: str, code: str, ctype: str) -> None:
        self.label = label
        self.np = np.dtype(code)
        self.ctype = ctype

    @property
    def is_float(self) -> bool:
        return self.np.kind == "f"

    @property
    def size(self) -> int:
        """Bytes per element."""
        return self.np.itemsize

    @property
    def min(self) -> int:
        """Smallest value of an integer type."""
        return int(np.iinfo(self.np).min)

    @property
    def max(self) -> int:
        """Largest value of an integer type."""
        return int(np.iinfo(self.np).max)

    @classmethod
    def of(cls, label: str) -> DType:
        """The type with this label; KeyError if there is none."""
        for t in cls:
            if t.label == label:
                return t
        raise KeyError(label)


@dataclass(frozen=True, slots=True)
class Loc:
    """Where an op came from: a file (its name, no path) and the item in it, such as ``Tree=3``."""

    file: str
    item: str

    def __str__(self) -> str:
        return f"{self.file}: {self.item}" if self.item else self.file


@dataclass(frozen=True, slots=True)
class QParams:
    """``real = scale * (q - zero_point)``."""

    scale: float
    zero_point: int = 0


@dataclass(frozen=True, slots=True)
class TensorType:
    """Shape without the batch axis, element type, and the meaning of integers (``q``), if any."""

    shape: tuple[int, ...]
    dtype: DType
    q: QParams | None = None
    axis: int | None = None

    @property
    def count(self) -> int:
        n = 1
        for d in self.shape:
            n *= d
        return n


@dataclass(frozen=True, slots=True)
class Feature:
    """One column of a tabular input, as the caller of the generated code sees it.

    ``scale`` and ``offset``: the model's value is ``scale * x + offset``; scale None means that x is the value.
    ``missing``: the integer that stands for a missing value. ``categories``: the labels that pandas had, in
    the order of their codes.
    """

    name: str
    scale: float | None = None
    offset: float = 0.0
    missing: int | None = None
    categories: tuple[str, ...] | None = None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class Source:
    """The file or object a model came from."""

    name: str
    format: str
    sha256: str


@dataclass(frozen=True, slots=True)
class Bound:
    """A proven limit on ``|C score - library score|``, in the unit of the score, over all inputs.

    ``range_low`` and ``range_high`` enclose every score the model can give (sums of the extreme leaves).
    """

    error: float
    range_low: float
    range_high: float


@dataclass(frozen=True, slots=True, eq=False)
class Const:
    """A named read-only array."""

    name: str
    data: Array


@dataclass(frozen=True, slots=True)
class State:
    """A named tensor that lives from one call to the next."""

    name: str
    type: TensorType


@dataclass(frozen=True, slots=True, eq=False)
class Model:
    """A straight-line program over named values.

    ``level`` is ``source`` (float meaning) or ``machine`` (integers or float32, one C kernel an op). ``types`` has
    one entry for each value that an op or the caller produces. ``class_above``: a classifier with one score means
    class 1 where the score is greater than this (inf: it knows one class only).
    """

    name: str
    level: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    types: Mapping[str, TensorType]
    ops: tuple[Op, ...]
    source: Source
    features: tuple[Feature, ...] = ()
    labels: tuple[str, ...] = ()
    consts: tuple[Const, ...] = ()
    states: tuple[State, ...] = ()
    bounds: Mapping[str, Bound] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    class_above: float = 0.0


def frozen_array(data: npt.ArrayLike, dtype: npt.DTypeLike | None = None) -> Array:
    """A read-only array of ``data``; copies only if it must."""
    a = np.asarray(data, dtype=dtype)
    if a.flags.writeable:
        a = a.view()
        a.flags.writeable = False
    return a
