"""Function: several ops on single elements that together are one function of one element."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mcugen.core.types import Array
from mcugen.nn.source.base import NetOp, Shape, require


@dataclass(frozen=True, slots=True, eq=False)
class Function(NetOp):
    """``parts`` one after the other, each on results of those before and on x; every one keeps the shape.

    The last part writes the result. Values in between have the names that they had in the file.
    """

    parts: tuple[NetOp, ...]

    def result_shapes(self, *shapes: Shape) -> tuple[Shape, ...]:
        (x,) = shapes
        known = {self.inputs[0]}
        for op in self.parts:
            require(set(op.inputs) <= known, f"{op.inputs} before they are written")
            require(op.result_shapes(*(x for _ in op.inputs)) == (x,), "a part that changes the shape")
            known |= set(op.outputs)
        require(bool(self.parts) and self.parts[-1].outputs == self.outputs, "a result that is not of the last part")
        return (x,)

    def eval(self, *args: Array) -> tuple[Array, ...]:
        values = {self.inputs[0]: args[0]}
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            for op in self.parts:
                (values[op.outputs[0]],) = op.eval(*(values[v] for v in op.inputs))
        return (values[self.outputs[0]],)
