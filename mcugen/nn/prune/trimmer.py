"""What each machine op tells the pass: the range of its results, the elements it needs, and itself made smaller."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Generic, TypeVar

import numpy as np

from mcugen.core.op import MachineOp
from mcugen.core.types import Array, DType, TensorType
from mcugen.nn.prune.masks import Bounds, Gone

#: Stands for "not known" where a value is no small integer.
_UNKNOWN = 1 << 31

AnyOp = TypeVar("AnyOp", bound=MachineOp)


class Trimmer(ABC, Generic[AnyOp]):
    """One op under the pass. ``known``: the bounds of its operands."""

    def __init__(self, op: AnyOp, known: tuple[Bounds, ...], types: Mapping[str, TensorType]) -> None:
        self.op, self.known, self.types = op, known, types

    @property
    def x(self) -> str:
        """The first operand."""
        return self.op.inputs[0]

    @property
    def y(self) -> str:
        """The first result."""
        return self.op.outputs[0]

    @abstractmethod
    def bounds(self) -> tuple[Bounds, ...]:
        """Of every result, from those of the operands."""

    @abstractmethod
    def keep(self, gone: Gone) -> None:
        """Restores what this op cannot do without. Only called while something of the results is left."""

    @abstractmethod
    def trimmed(self, gone: Gone) -> AnyOp:
        """The op on what is left of its operands."""

    def between(self, low: Array, high: Array) -> tuple[Bounds, ...]:
        """One result, between the two."""
        return (Bounds(low.reshape(-1).astype(np.int64), high.reshape(-1).astype(np.int64)),)

    def monotonic(self) -> tuple[Bounds, ...]:
        """The bounds of an op whose result never falls where an operand rises: its results at both ends."""
        ends = []
        for side in ("low", "high"):
            args = [
                getattr(b, side).astype(self.types[v].dtype.np).reshape(1, *self.types[v].shape)
                for b, v in zip(self.known, self.op.inputs, strict=True)
            ]
            ends.append(self.op.eval(*args)[0])
        return self.between(*ends)


class Whole(Trimmer[MachineOp]):
    """An op that is left as it is, as long as anybody reads one of its results."""

    def bounds(self) -> tuple[Bounds, ...]:
        return tuple(type_bounds(self.types[v]) for v in self.op.outputs)

    def keep(self, gone: Gone) -> None:
        for value in (*self.op.inputs, *self.op.outputs):
            gone.restore(value, np.ones(self.types[value].count, bool))

    def trimmed(self, gone: Gone) -> MachineOp:
        return self.op


def type_bounds(kind: TensorType) -> Bounds:
    """All that a type can hold."""
    low, high = (kind.dtype.min, kind.dtype.max) if kind.dtype in (DType.I8, DType.I16) else (-_UNKNOWN, _UNKNOWN)
    return Bounds(np.full(kind.count, low, np.int64), np.full(kind.count, high, np.int64))
