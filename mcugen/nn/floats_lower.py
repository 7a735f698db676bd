"""A net in float32 machine ops as it grows: what the rules of floats.py share."""

from __future__ import annotations

from dataclasses import replace
from math import prod

import numpy as np

from mcugen.core.op import MachineOp
from mcugen.core.types import Array, DType, Loc, Model, TensorType
from mcugen.nn.ops.move import strided_copy

Shape = tuple[int, ...]


class Floats:
    """The machine model as it grows. ``at``: the machine value that holds each source value."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.read = {v for op in model.ops for v in op.inputs} | set(model.outputs)
        self.at = {v: v for v in model.inputs}
        self.types = {v: model.types[v] for v in model.inputs}
        self.ops: list[MachineOp] = []

    def shape(self, value: str) -> Shape:
        """The shape of a source value."""
        return self.model.types[value].shape

    def new(self, value: str) -> str:
        """Declares a source value as a machine value of its own."""
        self.at[value] = value
        self.types[value] = self.model.types[value]
        return value

    def between(self, value: str, what: str, shape: Shape) -> str:
        """Declares a float32 value that the source does not have; its name is not that of any other."""
        name = f"{value}_{what}"
        while name in self.types or name in self.model.types:
            name += "_"
        self.types[name] = TensorType(shape, DType.F32)
        return name

    def permuted(self, name: str, shape: Shape, perm: Shape, result: str, loc: Loc) -> None:
        """A copy of a machine value of ``shape``: axis i of ``result`` is its axis ``perm[i]``."""
        self.ops.append(strided_copy((name,), (result,), loc, shape, tuple(range(len(shape))), perm, DType.F32))

    def arranged(self, value: str, perm: Shape, loc: Loc) -> str:
        """A source value with its axes in ``perm``: itself where memory has them so, else a copy."""
        shape = self.shape(value)
        if same_sequence(shape, perm):
            return self.at[value]
        name = self.between(value, "".join(map(str, perm)), tuple(shape[a] for a in perm))
        self.permuted(self.at[value], shape, perm, name, loc)
        return name

    def finish(self) -> Model:
        """The machine model; its output has the shape of the file."""
        names = []
        for value in self.model.outputs:
            name = self.at[value]
            kind = self.model.types[value]
            if name in self.model.inputs or name in names:
                # x and y are the caller's, and apart: what only renames has to copy.
                copy = self.between(value, "copy", kind.shape)
                flat = (prod(kind.shape),)
                self.permuted(name, flat, (0,), copy, Loc(self.model.source.name, value))
                name = copy
            self.types[name] = replace(self.types[name], shape=kind.shape)
            names.append(name)
        return replace(self.model, level="machine", types=self.types, ops=tuple(self.ops), outputs=tuple(names))


def same_sequence(shape: Shape, perm: Shape) -> bool:
    """Whether the axes of ``shape`` in ``perm`` give the same sequence in memory: axes of length 1 don't matter."""
    moved = [a for a in perm if shape[a] != 1]
    return moved == sorted(moved)


def float32(array: Array) -> Array:
    """Weights as a table of the C holds them."""
    return np.ascontiguousarray(array, np.float32)


def shape3(shape: Shape) -> tuple[int, int, int]:
    """(C, H, W) of an image."""
    c, h, w = shape
    return c, h, w
