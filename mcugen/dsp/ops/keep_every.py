"""KeepEvery: one sample of several; the others end the push."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mcugen.core.op import Cost, Item, MachineOp, Names, OpText, StateMember
from mcugen.core.passes import value_type
from mcugen.core.types import Array, TensorType
from mcugen.errors import InternalError


@dataclass(frozen=True, slots=True, eq=False)
class KeepEvery(MachineOp):
    """Samples 0, factor, 2 factor... as they are, all channels: any type."""

    kernel: ClassVar[tuple[str, str]] = ("mcg_every", "include/mcg_filter_window.h")

    width: int
    factor: int

    @property
    def in_place(self) -> tuple[int, ...]:
        return (0,)

    @property
    def state(self) -> tuple[StateMember, ...]:
        return (StateMember("count", "uint32_t", 0, 4, 4, "samples since the last one that was kept"),)

    def due(self, pushes: int) -> Array:
        return np.asarray(np.arange(pushes) % self.factor == 0)

    def check(self, types: Mapping[str, TensorType]) -> None:
        x, y = (value_type(types, v, "KeepEvery") for v in (self.inputs[0], self.outputs[0]))
        if x.dtype is not y.dtype or x.shape != (self.width,) or y.shape != x.shape or self.factor < 1:
            raise InternalError(str(self.loc), f"KeepEvery: factor {self.factor}, {x} to {y}")

    def eval(self, *args: Array) -> tuple[Array, ...]:
        """(T, width) -> (ceil(T / factor), width)."""
        return (args[0][:: self.factor],)

    def items(self, prefix: str) -> tuple[Item, ...]:
        return ()

    def emit(self, prefix: str, args: tuple[str, ...], results: tuple[str, ...], names: Names) -> OpText:
        count = names.state["count"]
        text = f"if (!mcg_every({self.factor}u, &{count})) {{\n    return MCG_PENDING;\n}}"
        if args[0] != results[0]:
            text += f"\nfor (uint32_t i = 0; i < {self.width}u; ++i) {{\n    {results[0]}[i] = {args[0]}[i];\n}}"
        return OpText(("mcg_filter_window.h",), "", text, init=f"{count} = 0;")

    def cost(self) -> Cost:
        return Cost(0, 0, self.width / self.factor, self.width)
