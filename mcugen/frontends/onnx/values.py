"""What a name of the file stands for while it is translated, and the growing list of source ops.

The shapes of the file carry a batch axis, and other axes of size 1 that come and go with Squeeze, Unsqueeze and
Transpose. All of them are one to a flat buffer: so an Activated value keeps the shape its op gave it (``raw``), which
differs from the file's shape by axes of size 1 only. ``view`` gives another form, by a Reshape op where it must.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import prod

import numpy as np

from mcugen.core.types import Array, DType, Loc, TensorType
from mcugen.errors import InputError
from mcugen.frontends.onnx.shapes import Shape, sample_shape, squeezed
from mcugen.nn.source import NetOp, Reshape, ShapeError


@dataclass(frozen=True, slots=True)
class Activated:
    """A value that depends on the input: its name in the Model, its shape there, its shape in the file."""

    name: str
    raw: Shape
    shape: Shape
    dtype: DType = DType.F32


@dataclass(frozen=True, slots=True, eq=False)
class QuantizedConst:
    """Integers as the file has them; real = (q - zero_point) * scale, both (1,) or along ``axis``."""

    q: Array
    scale: Array
    zero_point: Array
    axis: int | None


@dataclass(frozen=True, slots=True, eq=False)
class Constant:
    """A value that is known; ``quantized``: where it came from, if from a DequantizeLinear."""

    data: Array
    quantized: QuantizedConst | None = None

    @property
    def shape(self) -> Shape:
        return tuple(self.data.shape)


@dataclass(frozen=True, slots=True)
class Quantized:
    """The integers of a QuantizeLinear: only a DequantizeLinear with the same parameters may read them."""

    source: Activated
    scale: float
    zero_point: int
    dtype: DType

    @property
    def shape(self) -> Shape:
        return self.source.shape


@dataclass(frozen=True, slots=True)
class Compared:
    """Booleans: ``gate`` is 1 where they are true, and 0 elsewhere."""

    gate: Activated

    @property
    def shape(self) -> Shape:
        return self.gate.shape


@dataclass(frozen=True, slots=True)
class Unknown:
    """The result of a node that could not be translated, or something that is not read.

    ``why`` is for a reader that is the first to meet it; empty where the fault is reported already.
    """

    why: str = ""


@dataclass(frozen=True, slots=True)
class ClassLabel:
    """A label looked up by the index of the largest of some scores; ``source`` names the scores or that index."""

    source: str


Known = Activated | Constant | Quantized | Compared
Value = Known | ClassLabel | Unknown


@dataclass(slots=True)
class Program:
    """The source ops so far. The only thing in the front end that changes."""

    file: str
    types: dict[str, TensorType] = field(default_factory=dict)
    inputs: set[str] = field(default_factory=set)
    ops: list[NetOp] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    labels: tuple[str, ...] = ()
    fake_quants: dict[tuple[str, float, int, DType], str] = field(default_factory=dict)
    _views: dict[tuple[str, Shape], str] = field(default_factory=dict)

    def fresh(self, name: str) -> str:
        """``name``, or with a number where it is taken."""
        k, out = 1, name
        while out in self.types:
            k, out = k + 1, f"{name}:{k}"
        return out

    def vacate(self, name: str, value: str) -> str:
        """Make ``name`` free by another name for the result that has it; the name of ``value`` after that."""
        if name not in self.types:
            return value
        other = self.fresh(f"{name}:raw")
        self.types[other] = self.types.pop(name)
        for k, op in enumerate(self.ops):
            if name in op.inputs or name in op.outputs:
                inputs, outputs = (tuple(other if v == name else v for v in vs) for vs in (op.inputs, op.outputs))
                self.ops[k] = replace(op, inputs=inputs, outputs=outputs)
        return other if value == name else value

    def declare(self, name: str, shape: Shape, dtype: DType = DType.F32) -> None:
        """A new value."""
        self.types[name] = TensorType(shape, dtype)

    def append(self, op: NetOp) -> tuple[Shape, ...]:
        """``op`` with its results declared; InputError where the operands do not fit."""
        try:
            shapes = op.result_shapes(*(self.types[v].shape for v in op.inputs))
        except ShapeError as e:
            raise InputError(str(op.loc), f"{e}", "the file contradicts itself") from None
        for name, shape in zip(op.outputs, shapes, strict=True):
            self.declare(name, shape, op.result)
        self.ops.append(op)
        return shapes

    def view(self, x: Activated, shape: Shape, loc: Loc) -> str:
        """The name of ``x`` in another shape with as many elements."""
        return self.reshape(x.name, shape, loc)

    def reshape(self, name: str, shape: Shape, loc: Loc) -> str:
        """The name of a value in another shape with as many elements; one Reshape however often it is asked for."""
        if self.types[name].shape == shape:
            return name
        if (name, shape) not in self._views:
            out = self.fresh(f"{name}:{'x'.join(map(str, shape))}")
            self.append(Reshape((name,), (out,), loc, shape))
            self._views[name, shape] = out
        return self._views[name, shape]

    def located(self, x: Activated, axes: tuple[int, ...], loc: Loc) -> tuple[str, Shape, tuple[int, ...]]:
        """A form of ``x`` in which each of the file's ``axes`` is an axis: name, shape, and where they are.

        The value as it is if none of the axes has size 1, else the sample's shape, or the full one for axis 0.
        """
        if all(x.shape[a] != 1 for a in axes):
            places = [k for k, n in enumerate(x.raw) if n != 1]
            real = [k for k, n in enumerate(x.shape) if n != 1]
            return x.name, x.raw, tuple(places[real.index(a)] for a in axes)
        if 0 in axes:
            return self.view(x, x.shape, loc), x.shape, axes
        shape = sample_shape(x.shape)
        gone = len(x.shape) - len(shape)
        return self.view(x, shape, loc), shape, tuple(a - gone for a in axes)


def activated(program: Program, name: str, shape: Shape, loc: Loc) -> Activated:
    """The value ``name`` of the program with the file's ``shape``; reshaped where the two differ by more than ones."""
    raw = program.types[name].shape
    if squeezed(raw) != squeezed(shape):
        name = program.reshape(name, sample_shape(shape), loc)
    return Activated(name, program.types[name].shape, shape, program.types[name].dtype)


def as_float32(data: Array, where: str) -> Array:
    """Weights as float32; InputError for NaN, infinity, or values that float32 cannot hold."""
    with np.errstate(over="ignore"):
        out = np.ascontiguousarray(data, np.float32)
    if out.size != prod(data.shape) or not np.isfinite(out).all():
        raise InputError(where, "weights hold NaN or infinity", "train the model again")
    out.flags.writeable = False
    return out
