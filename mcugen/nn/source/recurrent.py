"""LSTM and GRU over a whole sequence, forward. One step at a time with a kept state is a matter of lowering."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mcugen.core.types import Array
from mcugen.nn.source.base import NetOp, Shape, require


def _sigmoid(x: Array) -> Array:
    return 0.5 * (1.0 + np.tanh(0.5 * x))


def _check_weights(name: str, gates: int, x: Shape, w: Array, r: Array, biases: tuple[Array, ...]) -> int:
    """The hidden size, or ShapeError."""
    hidden = int(r.shape[-1])
    require(len(x) == 2 and w.shape == (gates * hidden, x[1]), f"{name} over {x} with weights {w.shape}")
    require(r.shape == (gates * hidden, hidden), f"recurrent weights {r.shape}")
    require(all(b.shape == (gates * hidden,) for b in biases), "biases of another size")
    return hidden


@dataclass(frozen=True, slots=True, eq=False)
class Lstm(NetOp):
    """x (T, I) -> all steps (T, H), last h (H,), last c (H,).

    ``w`` (4H, I), ``r`` (4H, H), ``b`` (4H,) the sum of both biases, all float32, gates in ONNX's order: input,
    output, forget, cell. ``h0``, ``c0`` (H,): the state before the first step. Sigmoid for gates, tanh for the rest.
    """

    w: Array
    r: Array
    b: Array
    h0: Array
    c0: Array

    @property
    def hidden(self) -> int:
        """H."""
        return int(self.r.shape[-1])

    def result_shapes(self, *shapes: Shape) -> tuple[Shape, ...]:
        (x,) = shapes
        hidden = _check_weights("LSTM", 4, x, self.w, self.r, (self.b,))
        require(self.h0.shape == self.c0.shape == (hidden,), "an initial state of another size")
        return (x[0], hidden), (hidden,), (hidden,)

    def eval(self, *args: Array) -> tuple[Array, ...]:
        """x (N, T, I) -> (N, T, H), (N, H), (N, H)."""
        x = np.asarray(args[0], np.float64)
        n, steps, _ = x.shape
        w, r = self.w.astype(np.float64), self.r.astype(np.float64)
        h, c = np.tile(self.h0.astype(np.float64), (n, 1)), np.tile(self.c0.astype(np.float64), (n, 1))
        every = np.zeros((n, steps, self.hidden))
        for t in range(steps):
            i, o, f, g = np.split(x[:, t] @ w.T + h @ r.T + self.b, 4, axis=1)
            c = _sigmoid(f) * c + _sigmoid(i) * np.tanh(g)
            h = _sigmoid(o) * np.tanh(c)
            every[:, t] = h
        return every.astype(np.float32), h.astype(np.float32), c.astype(np.float32)


@dataclass(frozen=True, slots=True, eq=False)
class Gru(NetOp):
    """x (T, I) -> all steps (T, H), last h (H,).

    ``w`` (3H, I), ``r`` (3H, H), ``bw`` and ``br`` (3H,), all float32, gates in ONNX's order: update z, reset r,
    hidden n. ``linear_before_reset``: n = tanh(wx + bw + r * (rh + br)), as PyTorch has it; else
    n = tanh(wx + bw + rec(r * h) + br). h = (1 - z) * n + z * h. ``h0`` (H,): the state before the first step.
    """

    w: Array
    r: Array
    bw: Array
    br: Array
    h0: Array
    linear_before_reset: bool

    @property
    def hidden(self) -> int:
        """H."""
        return int(self.r.shape[-1])

    def result_shapes(self, *shapes: Shape) -> tuple[Shape, ...]:
        (x,) = shapes
        hidden = _check_weights("GRU", 3, x, self.w, self.r, (self.bw, self.br))
        require(self.h0.shape == (hidden,), "an initial state of another size")
        return (x[0], hidden), (hidden,)

    def eval(self, *args: Array) -> tuple[Array, ...]:
        """x (N, T, I) -> (N, T, H), (N, H)."""
        x = np.asarray(args[0], np.float64)
        n, steps, _ = x.shape
        k = self.hidden
        w, r = self.w.astype(np.float64), self.r.astype(np.float64)
        bw, br = self.bw.astype(np.float64), self.br.astype(np.float64)
        h = np.tile(self.h0.astype(np.float64), (n, 1))
        every = np.zeros((n, steps, k))
        for t in range(steps):
            from_x = x[:, t] @ w.T + bw
            gates = _sigmoid(from_x[:, : 2 * k] + h @ r[: 2 * k].T + br[: 2 * k])
            z, reset = gates[:, :k], gates[:, k:]
            if self.linear_before_reset:
                from_h = reset * (h @ r[2 * k :].T + br[2 * k :])
            else:
                from_h = (reset * h) @ r[2 * k :].T + br[2 * k :]
            h = (1.0 - z) * np.tanh(from_x[:, 2 * k :] + from_h) + z * h
            every[:, t] = h
        return every.astype(np.float32), h.astype(np.float32)
