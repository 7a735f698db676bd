"""Ops that treat each element by itself: Affine, Binary, Activation, FakeQuant."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import erf, inf

import numpy as np

from mcugen.core.types import Array, DType
from mcugen.nn.source.base import NetOp, Shape, require, require_axis

BINARY = ("add", "sub", "mul")


@dataclass(frozen=True, slots=True, eq=False)
class Affine(NetOp):
    """``x * scale + offset``, both float32 (C,) along ``axis``, or both (1,) for the whole tensor."""

    scale: Array
    offset: Array
    axis: int = 0

    def result_shapes(self, *shapes: Shape) -> tuple[Shape, ...]:
        (x,) = shapes
        require(self.scale.ndim == 1 and self.scale.shape == self.offset.shape, "scale and offset of two shapes")
        if not self.per_tensor:
            require_axis(self.axis, x)
            require(self.scale.shape == (x[self.axis],), f"{self.scale.size} scales for axis {self.axis} of {x}")
        return (x,)

    @property
    def per_tensor(self) -> bool:
        """One scale and one offset for all elements."""
        return self.scale.size == 1

    def eval(self, *args: Array) -> tuple[Array, ...]:
        x = np.asarray(args[0], np.float64)
        along = [1] * x.ndim
        if not self.per_tensor:
            along[self.axis + 1] = -1
        y = x * self.scale.astype(np.float64).reshape(along) + self.offset.astype(np.float64).reshape(along)
        return (y.astype(np.float32),)


@dataclass(frozen=True, slots=True, eq=False)
class Binary(NetOp):
    """a + b, a - b or a * b (``kind`` add, sub, mul) of operands of one rank; axes of size 1 are repeated."""

    kind: str

    def result_shapes(self, *shapes: Shape) -> tuple[Shape, ...]:
        a, b = shapes
        require(self.kind in BINARY, f"unknown kind {self.kind}")
        require(len(a) == len(b) and all(m == n or 1 in (m, n) for m, n in zip(a, b, strict=True)), f"{a} with {b}")
        return (tuple(n if m == 1 else m for m, n in zip(a, b, strict=True)),)

    def eval(self, *args: Array) -> tuple[Array, ...]:
        a, b = (np.asarray(x, np.float32) for x in args)
        # float32 operations round once, as the sum in float64 would.
        y = a + b if self.kind == "add" else a - b if self.kind == "sub" else a * b
        return (y.astype(np.float32),)


@dataclass(frozen=True, slots=True, eq=False)
class Select(NetOp):
    """``a`` where ``gate`` is not 0, else ``b``; all three of one shape. Inputs: gate, a, b."""

    def result_shapes(self, *shapes: Shape) -> tuple[Shape, ...]:
        gate, a, b = shapes
        require(gate == a == b, f"a choice by {gate} of {a} and {b}")
        return (a,)

    def eval(self, *args: Array) -> tuple[Array, ...]:
        gate, a, b = (np.asarray(x, np.float32) for x in args)
        return (np.where(gate != 0, a, b),)


def _sigmoid(x: Array) -> Array:
    e = np.exp(-np.abs(x))
    return np.where(x >= 0, 1.0 / (1.0 + e), e / (1.0 + e))


@dataclass(frozen=True, slots=True, eq=False)
class Activation(NetOp):
    """A function of one element.

    ``kind``: relu; leaky_relu (``alpha`` x below 0); clip to [``low``, ``high``]; sigmoid;
    hard_sigmoid clip(``alpha`` x + ``beta``, 0, 1); tanh; hard_swish x * clip(x / 6 + 1/2, 0, 1);
    elu ``alpha`` (exp(x) - 1) below 0; thresholded_relu 0 up to ``alpha``; step 1 above ``alpha``, else 0; step_from 1
    from ``alpha`` on; softplus log(1 + exp(x)); softsign x / (1 + abs(x)); erf; abs; exp; log; sqrt;
    power x ** ``alpha``.
    Where a function has no real value (the root of a negative number) the result is NaN.
    """

    kind: str
    alpha: float = 0.0
    beta: float = 0.0
    low: float = -inf
    high: float = inf

    def result_shapes(self, *shapes: Shape) -> tuple[Shape, ...]:
        (x,) = shapes
        require(self.kind in ACTIVATIONS, f"unknown kind {self.kind}")
        require(self.low <= self.high, f"clip from {self.low} to {self.high}")
        return (x,)

    def eval(self, *args: Array) -> tuple[Array, ...]:
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            return (ACTIVATIONS[self.kind](self, np.asarray(args[0], np.float64)).astype(np.float32),)


_erf = np.frompyfunc(erf, 1, 1)


#: From the kind to its function, float64 to float64.
ACTIVATIONS: dict[str, Callable[[Activation, Array], Array]] = {
    "relu": lambda a, x: np.maximum(x, 0.0),
    "leaky_relu": lambda a, x: np.where(x < 0, a.alpha * x, x),
    "clip": lambda a, x: np.clip(x, a.low, a.high),
    "sigmoid": lambda a, x: _sigmoid(x),
    "hard_sigmoid": lambda a, x: np.clip(a.alpha * x + a.beta, 0.0, 1.0),
    "tanh": lambda a, x: np.tanh(x),
    "hard_swish": lambda a, x: x * np.clip(x / 6.0 + 0.5, 0.0, 1.0),
    "elu": lambda a, x: np.where(x < 0, a.alpha * np.expm1(np.minimum(x, 0.0)), x),
    "thresholded_relu": lambda a, x: np.where(x > a.alpha, x, 0.0),
    "step": lambda a, x: np.where(x > a.alpha, 1.0, 0.0),
    "step_from": lambda a, x: np.where(x >= a.alpha, 1.0, 0.0),
    "softplus": lambda a, x: np.logaddexp(x, 0.0),
    "softsign": lambda a, x: x / (1.0 + np.abs(x)),
    "erf": lambda a, x: np.asarray(_erf(x), np.float64),
    "abs": lambda a, x: np.abs(x),
    "exp": lambda a, x: np.exp(x),
    "log": lambda a, x: np.log(x),
    "sqrt": lambda a, x: np.sqrt(x),
    "power": lambda a, x: np.power(x, a.alpha),
}


@dataclass(frozen=True, slots=True, eq=False)
class FakeQuant(NetOp):
    """What a pair of QuantizeLinear and DequantizeLinear means: x to its nearest quantized value, as float32.

    ``q = saturate(round_half_even(x / scale) + zero_point)``, result ``(q - zero_point) * scale``; ``scale`` is a
    float32 value. ``dtype`` is int8 or int16: unsigned files are re-based when they are read. NaN goes through.
    """

    scale: float
    zero_point: int
    dtype: DType = DType.I8

    def result_shapes(self, *shapes: Shape) -> tuple[Shape, ...]:
        (x,) = shapes
        require(self.dtype in (DType.I8, DType.I16), f"FakeQuant to {self.dtype.label}")
        require(0 < self.scale < inf, f"scale {self.scale}")
        require(self.dtype.min <= self.zero_point <= self.dtype.max, f"zero point {self.zero_point}")
        return (x,)

    def quantize(self, x: Array) -> Array:
        """The integers, as float32."""
        with np.errstate(over="ignore"):
            ratio = np.rint(np.asarray(x, np.float32) / np.float32(self.scale))
        out: Array = np.clip(ratio + np.float32(self.zero_point), self.dtype.min, self.dtype.max)
        return out

    def eval(self, *args: Array) -> tuple[Array, ...]:
        q = self.quantize(args[0])
        return (((q - np.float32(self.zero_point)) * np.float32(self.scale)).astype(np.float32),)
