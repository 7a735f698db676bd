"""How LSTM and GRU layers become integer kernels: only the results that somebody reads are written."""

from __future__ import annotations

from mcugen.core.types import QParams
from mcugen.nn.ops.qgru import gru_of
from mcugen.nn.ops.qlstm import lstm_of
from mcugen.nn.quantize.lower import Lowering
from mcugen.nn.quantize.scheme import Fused
from mcugen.nn.quantize.stored import plain
from mcugen.nn.source import Gru, Lstm


def _results(to: Lowering, op: Lstm | Gru) -> tuple[list[QParams | None], tuple[str, ...]]:
    """The scale of each result, None where nobody reads it; and the names of those that are written."""
    scales: list[QParams | None] = []
    names = []
    for value in op.outputs:
        q = to.params.get(value)
        scales.append(q)
        if q is not None:
            stored = plain(value, to.model.types[value].shape)
            to.new_value(value, stored)
            names.append(stored.name)
    return scales, tuple(names)


def lower_lstm(to: Lowering, step: Fused) -> None:
    """The whole sequence in one call."""
    op = step.op
    assert isinstance(op, Lstm)
    x = to.in_sequence(op.inputs[0])
    (every, last, cell), names = _results(to, op)
    steps = to.model.types[op.inputs[0]].shape[0]
    to.add(lstm_of(op, (x.name,), names, steps, to.q(op.inputs[0]), (every, last, cell)))


def lower_gru(to: Lowering, step: Fused) -> None:
    """The whole sequence in one call."""
    op = step.op
    assert isinstance(op, Gru)
    x = to.in_sequence(op.inputs[0])
    (every, last), names = _results(to, op)
    steps = to.model.types[op.inputs[0]].shape[0]
    to.add(gru_of(op, (x.name,), names, steps, to.q(op.inputs[0]), (every, last)))
