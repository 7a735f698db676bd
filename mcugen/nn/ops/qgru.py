"""QGru: a GRU layer over a whole sequence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mcugen.core.op import Names, OpText
from mcugen.core.types import Array, QParams, TensorType
from mcugen.nn.ops.recurrent_math import (
    ONE,
    STATE_SCALE,
    Gates,
    gates_of,
    result_requant,
    rounded15,
    sigmoid_fixed,
    start_words,
    tanh_fixed,
)
from mcugen.nn.ops.recurrent_op import RecurrentOp
from mcugen.nn.requant import Requant
from mcugen.nn.source import Gru


@dataclass(frozen=True, slots=True, eq=False)
class QGru(RecurrentOp):
    """x (T, I) int8 -> h of every step (T, H), the last h (H,), int8, each only if wanted.

    ``gates``: z, r, n. ``linear_before_reset``: r multiplies the product with h, else h itself. ``start``: int32 (H,)
    or None for zeros. ``every``, ``last``: how results become int8; None where a result is not wanted (and no output).
    h = z * h + (1 - z) * n in units of 2^-15, rounded once.
    """

    kernel: ClassVar[tuple[str, str]] = ("mcg_gru_s8", "src/mcg_nn_recurrent.c")

    steps: int
    gates: Gates
    in_zp: int
    start: Array | None
    every: Requant | None
    last: Requant | None
    linear_before_reset: bool

    def check(self, types: Mapping[str, TensorType]) -> None:
        self.check_parts(types, 3, self.gates.shape[1])

    def words(self) -> Array:
        if self.linear_before_reset:
            return self.gates.blocks((0, 1, 2))
        return np.concatenate([self.gates.blocks((0, 1)), self.gates.blocks((2,))])

    def eval(self, *args: Array) -> tuple[Array, ...]:
        """(N, T, I) -> (N, T, H), (N, H)."""
        every = self.sequence(self.input_steps(args[0]))
        return self.results_of(every, every[:, -1])

    def sequence(self, x: Array) -> Array:
        """Inputs without zero point (N, T, I) to h after every step, (N, T, H) int64 in units of 2^-15."""
        g, h = self.gates, self.start_state(len(x), 0)
        every = np.zeros((*x.shape[:2], h.shape[1]), np.int64)
        for t in range(x.shape[1]):
            z, r = (sigmoid_fixed(g.from_x(x[:, t], k) + g.from_h(h, k)) for k in (0, 1))
            from_h = rounded15(r * g.from_h(h, 2)) if self.linear_before_reset else g.from_h(rounded15(r * h), 2)
            n = tanh_fixed(g.from_x(x[:, t], 2) + from_h)
            h = rounded15(z * h + (ONE - z) * n)
            every[:, t] = h
        return every

    def emit(self, prefix: str, args: tuple[str, ...], results: tuple[str, ...], names: Names) -> OpText:
        return self.recurrent_call(prefix, "gru", args, results, names)


def gru_of(
    op: Gru,
    inputs: tuple[str, ...],
    outputs: tuple[str, ...],
    steps: int,
    q_x: QParams,
    q_results: tuple[QParams | None, QParams | None],
) -> QGru:
    """The integer layer of a float one. ``q_results``: all steps, last h; None: not wanted, no output."""
    where = str(op.loc)
    gates = gates_of(op.w, op.r, op.bw, op.br, q_x.scale, where)
    every, last = (result_requant(STATE_SCALE, q, where) for q in q_results)
    start = start_words(op.h0, None, where)
    return QGru(inputs, outputs, op.loc, steps, gates, q_x.zero_point, start, every, last, op.linear_before_reset)
