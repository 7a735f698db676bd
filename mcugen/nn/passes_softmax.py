"""Softmax with what reads it: its logarithm as one op, and no softmax where only the largest is looked for."""

from __future__ import annotations

from dataclasses import replace

from mcugen.core.op import Op
from mcugen.core.types import Model
from mcugen.nn.passes_edit import Editor, joined, rewrite
from mcugen.nn.source import Activation, ArgMax, LogSoftmax, Softmax


def join_softmax(model: Model, context: object = None) -> Model:
    """``log(softmax(x))`` as LogSoftmax; ArgMax of x instead of that of its softmax."""
    return rewrite(model, _log_of_softmax, _largest_of_softmax)


def _log_of_softmax(e: Editor, place: int, op: Op) -> bool:
    """The logarithm of a small probability, which rounding has not made zero."""
    if not isinstance(op, Activation) or op.kind != "log" or not e.read_once(op.inputs[0]):
        return False
    found = e.writer(op.inputs[0])
    if found is None or not isinstance(found[1], Softmax):
        return False
    first = found[1]
    e.put(place, LogSoftmax(first.inputs, op.outputs, joined(first.loc, op.loc), first.axis))
    return True


def _largest_of_softmax(e: Editor, place: int, op: Op) -> bool:
    """Both grow with each element, so the largest is where it was."""
    found = e.writer(op.inputs[0]) if isinstance(op, ArgMax) else None
    if not isinstance(op, ArgMax) or found is None or not isinstance(found[1], Softmax | LogSoftmax):
        return False
    first = found[1]
    if first.axis != op.axis:
        return False
    e.put(place, replace(op, inputs=first.inputs))
    return True
