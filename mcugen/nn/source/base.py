"""What all source ops of nets share: the rule from the shapes of the operands to the shapes of the results."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from math import prod
from typing import ClassVar

from mcugen.core.op import SourceOp
from mcugen.core.passes import value_type
from mcugen.core.types import DType, TensorType
from mcugen.errors import InternalError

Shape = tuple[int, ...]


class ShapeError(ValueError):
    """Operands that an op does not accept; the text says why."""


class NetOp(SourceOp):
    """A source op on float32 values, shapes without the batch axis, axes in ONNX's order (C, H, W).

    ``eval`` takes and gives arrays with a leading batch axis: float32, sums taken in float64 and rounded once.
    """

    __slots__ = ()

    #: Element type of the results.
    result: ClassVar[DType] = DType.F32

    @abstractmethod
    def result_shapes(self, *shapes: Shape) -> tuple[Shape, ...]:
        """The shapes of the results for operands of these shapes; ShapeError if the op does not accept them."""

    def check(self, types: Mapping[str, TensorType]) -> None:
        name = type(self).__name__
        operands = [value_type(types, v, name) for v in self.inputs]
        if any(t.dtype is not DType.F32 for t in operands):
            raise InternalError(str(self.loc), f"{name}: operands must be float32")
        try:
            expected = self.result_shapes(*(t.shape for t in operands))
        except (ShapeError, TypeError) as e:  # TypeError: another number of operands
            raise InternalError(str(self.loc), f"{name}: {e}") from None
        found = tuple(value_type(types, v, name) for v in self.outputs)
        if tuple(t.shape for t in found) != expected or any(t.dtype is not self.result for t in found):
            raise InternalError(str(self.loc), f"{name}: results are {found}, expected {self.result.label} {expected}")


def require(ok: bool, what: str) -> None:
    """ShapeError unless ``ok``."""
    if not ok:
        raise ShapeError(what)


def require_axis(axis: int, shape: Shape) -> None:
    """ShapeError unless ``axis`` is one of ``shape``, counted from the front."""
    require(0 <= axis < len(shape), f"axis {axis} is outside of shape {shape}")


def count(shape: Shape) -> int:
    """Elements of one sample."""
    return prod(shape)
