"""QGate: the product of an int8 tensor and a smaller one that is repeated along its other axes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mcugen.core.op import Cost, Item, MachineOp, Names, OpText
from mcugen.core.types import Array, DType, TensorType
from mcugen.errors import InternalError
from mcugen.nn.ops.kernel_call import Fields
from mcugen.nn.ops.plain_call import REQUANT, described_call, misfit, range_misfit, requant_values
from mcugen.nn.requant import Requant, requantize

#: mcg_gate_t
_FIELDS: Fields = (("outer", "<u4"), ("gates", "<u4"), ("inner", "<u4"), ("zp_x", "<i4"), ("zp_g", "<i4"), *REQUANT)


@dataclass(frozen=True, slots=True, eq=False)
class QGate(MachineOp):
    """int8 x (outer, gates, inner), int8 g (gates,) -> int8 ``requantize((x - zp_x) * (g[c] - zp_g))``, shaped as x.

    Such as a squeeze-and-excitation block weights its channels, or spatial attention its pixels.
    """

    kernel: ClassVar[tuple[str, str]] = ("mcg_gate_s8", "src/mcg_nn_elementwise.c")

    outer: int
    gates: int
    inner: int
    zp_x: int
    zp_g: int
    requant: Requant

    @property
    def count(self) -> int:
        """Elements of x."""
        return self.outer * self.gates * self.inner

    @property
    def in_place(self) -> tuple[int, ...]:
        return (0,)

    def check(self, types: Mapping[str, TensorType]) -> None:
        problems = (
            misfit(types, self.inputs[0], self.count, DType.I8, "QGate", self.zp_x),
            misfit(types, self.inputs[1], self.gates, DType.I8, "QGate", self.zp_g),
            misfit(types, self.outputs[0], self.count, DType.I8, "QGate", self.requant.zero_point),
            range_misfit(self.requant, DType.I8),
        )
        problem = next(filter(None, problems), "")
        if problem:
            raise InternalError(str(self.loc), f"QGate: {problem}")

    def eval(self, *args: Array) -> tuple[Array, ...]:
        n = len(args[0])
        x = args[0].astype(np.int64).reshape(n, self.outer, self.gates, self.inner)
        g = args[1].astype(np.int64).reshape(n, 1, self.gates, 1)
        y = requantize((x - self.zp_x) * (g - self.zp_g), self.requant).astype(np.int8)
        return (y.reshape(args[0].shape),)

    def items(self, prefix: str) -> tuple[Item, ...]:
        return ()

    def emit(self, prefix: str, args: tuple[str, ...], results: tuple[str, ...], names: Names) -> OpText:
        values = {"outer": self.outer, "gates": self.gates, "inner": self.inner, "zp_x": self.zp_x, "zp_g": self.zp_g}
        shape = ("mcg_gate_t", f"{prefix}_shape", _FIELDS, {**values, **requant_values(self.requant)})
        return described_call("mcg_nn_elementwise.h", "mcg_gate_s8", shape, (args[0], args[1], results[0]))

    def cost(self) -> Cost:
        return Cost(0.0, self.count, float(self.count), self.count)
