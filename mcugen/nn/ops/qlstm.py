"""QLstm: an LSTM layer over a whole sequence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mcugen.core.op import Names, OpText
from mcugen.core.types import Array, QParams, TensorType
from mcugen.nn.ops.recurrent_math import (
    CELL_SCALE,
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
from mcugen.nn.source import Lstm


@dataclass(frozen=True, slots=True, eq=False)
class QLstm(RecurrentOp):
    """x (T, I) int8 -> h of every step (T, H), the last h (H,), the last c (H,), int8, each only if wanted.

    ``gates``: i, o, f, g. ``start``: int32 (2H,) h and c before the first step, None for zeros. ``every``, ``last``,
    ``cell``: how results become int8; None where a result is not wanted (and not among the outputs).
    c = f * c + i * g (int32 in units of 2^-20, saturated), h = o * tanh(c) (units of 2^-15), each rounded once.
    """

    kernel: ClassVar[tuple[str, str]] = ("mcg_lstm_s8", "src/mcg_nn_recurrent.c")

    steps: int
    gates: Gates
    in_zp: int
    start: Array | None
    every: Requant | None
    last: Requant | None
    cell: Requant | None

    @property
    def wanted(self) -> tuple[Requant | None, ...]:
        return (self.every, self.last, self.cell)

    def check(self, types: Mapping[str, TensorType]) -> None:
        self.check_parts(types, 4, 2 * self.gates.shape[1])

    def eval(self, *args: Array) -> tuple[Array, ...]:
        """(N, T, I) -> (N, T, H), (N, H), (N, H)."""
        every, cells = self.sequence(self.input_steps(args[0]))
        return self.results_of(every, every[:, -1], cells[:, -1])

    def sequence(self, x: Array) -> tuple[Array, Array]:
        """Inputs without zero point (N, T, I) to h and c after every step, (N, T, H) int64 in their own units."""
        h, c = self.start_state(len(x), 0), self.start_state(len(x), 1)
        every, cells = (np.zeros((*x.shape[:2], h.shape[1]), np.int64) for _ in range(2))
        for t in range(x.shape[1]):
            i, o, f, g = (self.gates.from_x(x[:, t], k) + self.gates.from_h(h, k) for k in range(4))
            c = rounded15(sigmoid_fixed(f) * c + sigmoid_fixed(i) * tanh_fixed(g) * 32)
            c = np.clip(c, -(1 << 31), (1 << 31) - 1)
            h = rounded15(sigmoid_fixed(o) * tanh_fixed((c >> 4) + ((c >> 3) & 1)))
            every[:, t], cells[:, t] = h, c
        return every, cells

    def emit(self, prefix: str, args: tuple[str, ...], results: tuple[str, ...], names: Names) -> OpText:
        return self.recurrent_call(prefix, "lstm", args, results, names)


def lstm_of(
    op: Lstm,
    inputs: tuple[str, ...],
    outputs: tuple[str, ...],
    steps: int,
    q_x: QParams,
    q_results: tuple[QParams | None, QParams | None, QParams | None],
) -> QLstm:
    """The integer layer of a float one. ``q_results``: all steps, last h, last c; None: not wanted, no output."""
    where = str(op.loc)
    gates = gates_of(op.w, op.r, op.b, np.zeros_like(op.b), q_x.scale, where)
    units = (STATE_SCALE, STATE_SCALE, CELL_SCALE)
    every, last, cell = (result_requant(u, q, where) for u, q in zip(units, q_results, strict=True))
    start = start_words(op.h0, op.c0, where)
    return QLstm(inputs, outputs, op.loc, steps, gates, q_x.zero_point, start, every, last, cell)
