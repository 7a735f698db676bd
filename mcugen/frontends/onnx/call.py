"""One node on its way through: typed access to its operands and attributes, and the ways to end it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn

import numpy as np

from mcugen.core.types import Array, DType, Loc
from mcugen.errors import InputError
from mcugen.frontends.onnx.scanner import Foreign, Node, short
from mcugen.frontends.onnx.shapes import Shape
from mcugen.frontends.onnx.values import (
    Activated,
    ClassLabel,
    Compared,
    Constant,
    Known,
    Program,
    Quantized,
    Unknown,
    Value,
    activated,
    as_float32,
)
from mcugen.nn.source import NetOp


class Refused(Exception):
    """A node that is not supported: why, and what to do about it."""

    def __init__(self, reason: str, workaround: str) -> None:
        super().__init__(reason)
        self.reason = reason
        self.workaround = workaround


class Skipped(Exception):
    """A node that reads a result of a refused one: nothing to report."""


@dataclass(slots=True)
class Call:
    """A node with its operands.

    ``results`` collects what its outputs stand for; what a handler leaves out is refused if something reads it.
    """

    node: Node
    opset: int
    program: Program
    values: Mapping[str, Value]
    results: dict[str, Value] = field(default_factory=dict)

    @property
    def loc(self) -> Loc:
        return Loc(self.program.file, f"{self.node.op} {self.node.name}")

    @property
    def where(self) -> str:
        return f"{self.program.file}: node {short(self.node.name)} ({self.node.op})"

    # What ends a node.

    def refuse(self, reason: str, workaround: str) -> NoReturn:
        """End this node: mcugen cannot translate it."""
        raise Refused(reason, workaround)

    def broken(self, what: str, hint: str = "the file contradicts itself") -> NoReturn:
        """End the import: the file is wrong."""
        raise InputError(self.where, what, hint)

    # Operands.

    def has(self, index: int) -> bool:
        """Whether the optional operand is there."""
        return index < len(self.node.inputs) and self.node.inputs[index] != ""

    def operand(self, index: int) -> Known:
        """Whatever stands there."""
        if not self.has(index):
            self.broken(f"operand {index} is missing")
        value = self.values[self.node.inputs[index]]
        if isinstance(value, Unknown):
            if value.why:
                self.refuse(f"reads {short(self.node.inputs[index])}, {value.why}", "leave it out of the model")
            raise Skipped
        if isinstance(value, ClassLabel):
            self.refuse("works on the class label", "do it in the application, on the result")
        return value

    def is_constant(self, index: int) -> bool:
        return isinstance(self.operand(index), Constant)

    def activation(self, index: int) -> Activated:
        """An operand that depends on the input, of any element type."""
        value = self.operand(index)
        if isinstance(value, Quantized):
            self.refuse(
                f"works on the integers of a QuantizeLinear ({short(self.node.inputs[index])})",
                "quantize in the QDQ format, with a DequantizeLinear after every QuantizeLinear",
            )
        if isinstance(value, Compared):
            self.refuse("works on booleans", "only Where, Not and a Cast to float may read a comparison")
        if isinstance(value, Constant):
            what = f"operand {index} is a constant"
            self.refuse(what, "simplify the model before the export, so that constants are computed there")
        return value

    def x(self, index: int = 0) -> Activated:
        """A float32 operand that depends on the input."""
        value = self.activation(index)
        if value.dtype is not DType.F32:
            self.refuse("works on integers", "let the output of ArgMax be an output of the model")
        return value

    def condition(self, index: int) -> Activated:
        """A comparison, as 1 and 0."""
        value = self.operand(index)
        if not isinstance(value, Compared):
            self.refuse("its condition is no comparison of an activation", "compare with a constant in the model")
        return value.gate

    def constant(self, index: int, what: str) -> Constant:
        """A known operand; refused if it depends on the input."""
        value = self.operand(index)
        if not isinstance(value, Constant):
            self.refuse(f"{what} must be constant", "make it a parameter or a constant of the model")
        return value

    def weights(self, index: int, what: str) -> Array:
        """A known operand as finite float32."""
        data = self.constant(index, what).data
        if data.dtype.kind != "f":
            self.broken(f"{what} are {data.dtype}, not float")
        return as_float32(data, self.where)

    def integers(self, index: int, what: str) -> tuple[int, ...]:
        """A known operand, a scalar or a row of integers."""
        data = self.constant(index, what).data
        if data.dtype.kind not in "iu" or data.ndim > 1:
            self.broken(f"{what} are not a row of integers")
        return tuple(int(v) for v in data.reshape(-1))

    # Attributes.

    def get_int(self, name: str, default: int) -> int:
        value: int = self._attribute(name, default, int)
        return value

    def get_float(self, name: str, default: float) -> float:
        value = self.node.attributes.get(name, default)
        if not isinstance(value, int | float):
            self.broken(f"attribute {name} is not a number")
        return float(value)

    def get_str(self, name: str, default: str) -> str:
        value: str = self._attribute(name, default, str)
        return value

    def get_ints(self, name: str, default: tuple[int, ...] | None = None) -> tuple[int, ...] | None:
        """A row of integers, or the default where the attribute is absent."""
        value = self.node.attributes.get(name, default)
        if value is None:
            return None
        if not isinstance(value, tuple):
            self.broken(f"attribute {name} is not a row of integers")
        out = tuple(v for v in value if isinstance(v, int))
        if len(out) < len(value):
            self.broken(f"attribute {name} is not a row of integers")
        return out

    def attribute(self, name: str) -> Any:
        """The attribute as it stands, or None; refused where it is of a kind that is not read."""
        value = self.node.attributes.get(name)
        if isinstance(value, Foreign):
            self.refuse(f"attribute {name} is {value.what}", "export the model without it")
        return value

    def _attribute(self, name: str, default: Any, kind: type) -> Any:
        value = self.node.attributes.get(name, default)
        if not isinstance(value, kind):
            self.broken(f"attribute {name} is not of type {kind.__name__}")
        return value

    def axis(self, axis: int, rank: int) -> int:
        """``axis`` counted from the front."""
        if not -rank <= axis < max(rank, 1):
            self.broken(f"axis {axis} of {rank} axes")
        return axis + rank if axis < 0 else axis

    def axes(self, axes: tuple[int, ...], rank: int) -> tuple[int, ...]:
        """The same for several, none twice."""
        out = tuple(self.axis(a, rank) for a in axes)
        if len(set(out)) < len(out):
            self.broken(f"axes {list(axes)} name one axis twice")
        return out

    # Results.

    def add(self, op: Callable[..., NetOp], *inputs: str, hint: str = "", **fields: Any) -> str:
        """One op with one result; its name. ``hint`` goes into the name of what is not a result of the node."""
        base = self.node.outputs[0] or self.node.name
        out = self.program.fresh(f"{base}:{hint}" if hint else base)
        self.program.append(op(inputs, (out,), self.loc, **fields))
        return out

    def fake_quant(self, op: Callable[..., NetOp], source: str, parameters: tuple[float, int, DType]) -> str:
        """The FakeQuant of ``source`` with these parameters; one however many DequantizeLinear nodes there are."""
        key = (source, *parameters)
        if key not in self.program.fake_quants:
            scale, zero_point, dtype = parameters
            self.program.fake_quants[key] = self.add(op, source, scale=scale, zero_point=zero_point, dtype=dtype)
        return self.program.fake_quants[key]

    def give(self, value: Value, index: int = 0) -> None:
        """What the output with this index stands for."""
        if index < len(self.node.outputs) and self.node.outputs[index]:
            self.results[self.node.outputs[index]] = value

    def give_raw(self, name: str, shape: Shape, index: int = 0) -> None:
        """The output is the value ``name`` of the program; ``shape`` is the file's."""
        self.give(activated(self.program, name, shape, self.loc), index)

    def give_as(self, x: Activated, shape: Shape, index: int = 0) -> None:
        """The output is ``x`` with another shape in the file."""
        if x.dtype is not DType.F32 and x.raw != shape:
            self.refuse("reshapes the result of ArgMax", "let ArgMax be the last node of the model")
        self.give(activated(self.program, x.name, shape, self.loc) if x.dtype is DType.F32 else x, index)

    def give_constant(self, data: Array, index: int = 0) -> None:
        data = np.asarray(data)
        data.flags.writeable = False
        self.give(Constant(data), index)
