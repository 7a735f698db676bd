"""QRescale: the same numbers with another scale and type, between int8 and int16 layers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mcugen.core.op import Cost, Item, MachineOp, Names, OpText
from mcugen.core.types import Array, DType, QParams, TensorType
from mcugen.errors import InternalError
from mcugen.nn.ops.plain_call import SUFFIX, described_call, misfit, range_misfit, requant_values
from mcugen.nn.ops.qadd16 import ADD_FIELDS
from mcugen.nn.ops.wide_call import HEADER
from mcugen.nn.requant import Requant, requant_of, requantize

_PAIRS = ((DType.I8, DType.I16), (DType.I16, DType.I8), (DType.I16, DType.I16))


@dataclass(frozen=True, slots=True, eq=False)
class QRescale(MachineOp):
    """``count`` elements of ``source`` -> ``requantize(x - in_zp)`` of ``target``; one of both is int16.

    (From int8 to int8 a QTable is shorter.)
    """

    kernel: ClassVar[tuple[str, str]] = ("mcg_rescale_s16_s8", "src/mcg_nn_wide.c")

    count: int
    source: DType
    target: DType
    in_zp: int
    requant: Requant

    @property
    def in_place(self) -> tuple[int, ...]:
        return (0,) if self.source is self.target else ()

    def check(self, types: Mapping[str, TensorType]) -> None:
        problem = (
            misfit(types, self.inputs[0], self.count, self.source, "QRescale", self.in_zp)
            or misfit(types, self.outputs[0], self.count, self.target, "QRescale", self.requant.zero_point)
            or range_misfit(self.requant, self.target)
        )
        if (self.source, self.target) not in _PAIRS:
            problem = f"from {self.source.label} to {self.target.label}"
        if problem:
            raise InternalError(str(self.loc), f"QRescale: {problem}")

    def eval(self, *args: Array) -> tuple[Array, ...]:
        return (requantize(args[0].astype(np.int64) - self.in_zp, self.requant).astype(self.target.np),)

    def items(self, prefix: str) -> tuple[Item, ...]:
        return ()

    def emit(self, prefix: str, args: tuple[str, ...], results: tuple[str, ...], names: Names) -> OpText:
        values = {"n": self.count, "a": self.in_zp, "b": 0, **requant_values(self.requant)}
        shape = ("mcg_wide_add_t", f"{prefix}_shape", ADD_FIELDS, values)
        function = f"mcg_rescale_{SUFFIX[self.source]}_{SUFFIX[self.target]}"
        return described_call(HEADER, function, shape, (args[0], results[0]))

    def cost(self) -> Cost:
        return Cost(0.0, self.count, float(self.count), self.count)


def rescale_of(q_in: QParams, q_out: QParams, target: DType) -> tuple[int, Requant]:
    """The fields ``in_zp`` and ``requant``."""
    factor = q_in.scale / q_out.scale
    return q_in.zero_point, requant_of([factor], q_out.zero_point, target.min, target.max, where="QRescale")
