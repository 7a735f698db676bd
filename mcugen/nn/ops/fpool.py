"""FPool: maximum or mean of windows in float32."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mcugen.core.op import Cost, Item, MachineOp, Names, OpText
from mcugen.core.types import Array, DType, TensorType
from mcugen.errors import InternalError
from mcugen.nn.ops.float_math import quiet
from mcugen.nn.ops.plain_call import described_call, misfit
from mcugen.nn.ops.pool_window import POOL_FIELDS, PoolWindow, Shape3, pool_values


@dataclass(frozen=True, slots=True, eq=False)
class FPool(PoolWindow, MachineOp):
    """float32 (C, H, W) -> (C, OH, OW), planar unless ``planar`` says (H, W, C); ``out_shape`` says how many windows.

    ``kind`` max: padding is minus infinity, NaN in a window gives NaN. avg: the sum row by row, divided by the count.
    """

    kernel: ClassVar[tuple[str, str]] = ("mcg_max_pool_f32", "src/mcg_nn_pool.c")

    kind: str
    in_shape: Shape3
    out_shape: Shape3
    kernel_size: tuple[int, int]
    stride: tuple[int, int]
    pads: tuple[int, int, int, int]
    dilation: tuple[int, int]
    count_include_pad: bool = False
    planar: bool = True

    def check(self, types: Mapping[str, TensorType]) -> None:
        problem = (
            misfit(types, self.inputs[0], int(np.prod(self.in_shape)), DType.F32, "FPool")
            or misfit(types, self.outputs[0], int(np.prod(self.out_shape)), DType.F32, "FPool")
            or self.window_problem()
        )
        if problem:
            raise InternalError(str(self.loc), f"FPool: {problem}")

    @quiet
    def eval(self, *args: Array) -> tuple[Array, ...]:
        x = self.image(args[0].astype(np.float32))
        inside = self.taps(np.ones((1, 1, *self.in_shape[1:]), np.float32), 0.0)
        start = np.float32(-np.inf if self.kind == "max" else 0.0)
        best: Array = np.full((len(x), *self.out_shape), start)
        for view, mask in zip(self.taps(x, 0.0), inside, strict=True):
            value = np.where((view > best) | np.isnan(view), view, best) if self.kind == "max" else best + view
            best = np.where(mask > 0, value, best)
        if self.kind == "avg":
            best = best / self.elements().astype(np.float32)
        return (self.layout(best.astype(np.float32)),)

    def items(self, prefix: str) -> tuple[Item, ...]:
        return ()

    def emit(self, prefix: str, args: tuple[str, ...], results: tuple[str, ...], names: Names) -> OpText:
        shape = ("mcg_pool_t", f"{prefix}_shape", POOL_FIELDS, pool_values(self, 0, 0, (0, 0, 0)))
        return described_call("mcg_nn_float.h", f"mcg_{self.kind}_pool_f32", shape, (args[0], results[0]))

    def cost(self) -> Cost:
        return self.window_cost()
