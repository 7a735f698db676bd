"""FActivation: a function of each float32 element."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import ClassVar

import numpy as np

from mcugen.core.float_math import sigmoid_f32
from mcugen.core.op import Names, OpText
from mcugen.core.types import Array
from mcugen.nn.ops.felement import FElement
from mcugen.nn.ops.float_math import clamp_f32, limit_text, quiet, tanh_f32
from mcugen.nn.ops.plain_call import plain_call
from mcugen.nn.source import ACTIVATIONS

_F = np.float32


@dataclass(frozen=True, slots=True, eq=False)
class FActivation(FElement):
    """``kind`` with its parameters as the source Activation has them, for ``count`` elements."""

    kernel: ClassVar[tuple[str, str]] = ("mcg_clip_f32", "src/mcg_nn_float.c")

    kind: str
    count: int
    alpha: float = 0.0
    beta: float = 0.0
    low: float = -inf
    high: float = inf

    @property
    def elements(self) -> int:
        return self.count

    def own_problem(self) -> str:
        return "" if self.kind in ACTIVATIONS else f"kind {self.kind}"

    @property
    def _limits(self) -> tuple[float, float]:
        return (0.0, inf) if self.kind == "relu" else (self.low, self.high)

    @quiet
    def eval(self, *args: Array) -> tuple[Array, ...]:
        x = args[0]
        match self.kind:
            case "relu" | "clip":
                return (clamp_f32(x, *self._limits),)
            case "leaky_relu":
                return (np.where(x < 0, _F(self.alpha) * x, x).astype(np.float32),)
            case "sigmoid":
                return (sigmoid_f32(x, 1.0),)
            case "tanh":
                return (tanh_f32(x),)
            case "hard_sigmoid":
                return (clamp_f32(_F(self.alpha) * x + _F(self.beta), 0.0, 1.0),)
        inner = clamp_f32(_F(float.fromhex("0x1.555556p-3")) * x + _F(0.5), 0.0, 1.0)
        return (np.asarray(x * inner),)

    def emit(self, prefix: str, args: tuple[str, ...], results: tuple[str, ...], names: Names) -> OpText:
        low, high = (limit_text(v) for v in self._limits)
        parameters: dict[str, tuple[str, ...]] = {
            "clip": (low, high),
            "leaky_relu": (limit_text(self.alpha),),
            "sigmoid": ("1.0f",),
            "hard_sigmoid": (limit_text(self.alpha), limit_text(self.beta)),
        }
        name = "clip" if self.kind == "relu" else self.kind
        header = "mcg_scores.h" if name == "sigmoid" else "mcg_nn_float.h"
        arguments: tuple[str | int, ...] = (args[0], *parameters.get(name, ()), results[0], self.count)
        return plain_call(header, f"mcg_{name}_f32", arguments)
