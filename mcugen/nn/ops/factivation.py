"""FActivation: a function of each float32 element."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import ClassVar

import numpy as np

from mcugen.core.float_math import exp_f32, log1p_exp_f32, sigmoid_f32
from mcugen.core.op import Names, OpText
from mcugen.core.types import Array
from mcugen.nn.ops.felement import FElement
from mcugen.nn.ops.float_math import clamp_f32, erf_f32, limit_text, log_f32, quiet, tanh_f32
from mcugen.nn.ops.plain_call import plain_call
from mcugen.nn.source import ACTIVATIONS

_F = np.float32


#: Kinds of the source Activation that have no float32 form; power has one for the exponent -1.
_MISSING = ("power", "step", "step_from")
#: mcg_..._f32, where it is not called as the kind; and the header, where that is another.
_FUNCTIONS = {"relu": "clip", "exp": "exponential", "softplus": "log1p_exp", "power": "reciprocal", "sqrt": "roots"}
_HEADERS = dict.fromkeys(("sigmoid", "exp", "softplus"), "mcg_scores.h") | {"sqrt": "mcg_features_float.h"}


def is_known(kind: str, alpha: float) -> bool:
    """Whether the function has a float32 form."""
    return kind in ACTIVATIONS and (kind not in _MISSING or (kind, alpha) == ("power", -1.0))


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
        return "" if is_known(self.kind, self.alpha) else f"kind {self.kind}"

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
            case "hard_swish":
                inner = clamp_f32(_F(float.fromhex("0x1.555556p-3")) * x + _F(0.5), 0.0, 1.0)
                return (np.asarray(x * inner),)
        return (self._later_kinds(x),)

    def _later_kinds(self, x: Array) -> Array:
        positive = np.where(x < 0, -x, x + _F(0.0))
        match self.kind:
            case "elu":
                y = np.where(x < 0, _F(self.alpha) * (exp_f32(x) - _F(1.0)), x)
            case "thresholded_relu":
                y = np.where(x <= _F(self.alpha), _F(0.0), x)
            case "softplus":
                y = log1p_exp_f32(x)
            case "softsign":
                y = x / (_F(1.0) + positive)
            case "abs":
                y = positive
            case "exp":
                y = exp_f32(x)
            case "erf":
                y = erf_f32(x)
            case "sqrt":
                y = np.sqrt(x)
            case "log":
                y = log_f32(x)
            case _:
                assert self.kind == "power"
                y = _F(1.0) / x
        return y.astype(np.float32)

    def emit(self, prefix: str, args: tuple[str, ...], results: tuple[str, ...], names: Names) -> OpText:
        low, high = (limit_text(v) for v in self._limits)
        parameters: dict[str, tuple[str, ...]] = {
            "clip": (low, high),
            "leaky_relu": (limit_text(self.alpha),),
            "sigmoid": ("1.0f",),
            "hard_sigmoid": (limit_text(self.alpha), limit_text(self.beta)),
            "elu": (limit_text(self.alpha),),
            "thresholded_relu": (limit_text(self.alpha),),
        }
        name = _FUNCTIONS.get(self.kind, self.kind)
        header = _HEADERS.get(self.kind, "mcg_nn_float.h")
        arguments: tuple[str | int, ...] = (args[0], *parameters.get(name, ()), results[0], self.count)
        return plain_call(header, f"mcg_{name}_f32", arguments)
