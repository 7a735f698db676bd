"""A net over a sequence as a net that takes one time step a push: ``--stream``.

The net of the file reads T steps at once. Here the time axis shrinks to 1, the recurrent layers keep their state from
push to push, and what the net took from the last step it takes from this one: after T pushes the results are those of
the net on these T steps, bit for bit. Layers that mix time steps other than by recurrence have no such form.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from math import prod
from typing import Any

import numpy as np

from mcugen.core.op import Op
from mcugen.core.types import Array, Model, TensorType
from mcugen.errors import UnsupportedError
from mcugen.nn.ops.frecurrent import FGru, FLstm
from mcugen.nn.ops.frecurrent_step import FGruStep, FLstmStep
from mcugen.nn.ops.qgru import QGru
from mcugen.nn.ops.qgru_step import QGruStep
from mcugen.nn.ops.qlstm import QLstm
from mcugen.nn.ops.qlstm_step import QLstmStep
from mcugen.nn.source import (
    Activation,
    Affine,
    ArgMax,
    Binary,
    Concat,
    Dense,
    FakeQuant,
    Function,
    Gru,
    LogSoftmax,
    Lstm,
    NetOp,
    Normalize,
    Pad,
    Reduce,
    Repeat,
    Reshape,
    Slice,
    Softmax,
    Transpose,
)

_WHERE = "--stream"


class _Mixes(Exception):
    """Why an op has no form that takes one step at a time."""


@dataclass(frozen=True, slots=True)
class _Step:
    """An op for one time step, and the time axis of its results: None where they are of this step alone."""

    op: NetOp
    axes: tuple[int | None, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Stepped:
    """``model``: a float net of one time step. Time is axis ``came`` of the whole net's input and axis ``gone`` of its
    output; None where the output is that of the last step alone."""

    model: Model
    came: int
    gone: int | None


def one_step(model: Model) -> Stepped:
    """``model`` (float, one input, one output) with a time axis of size 1; UnsupportedError where it has no such form.

    The values keep their names. The time axis of the input is the first that brings all recurrent layers their steps.
    """
    if not any(isinstance(op, Lstm | Gru) for op in model.ops):
        hint = "leave the option out: without one there is nothing to remember"
        raise UnsupportedError(_WHERE, f"{model.source.name} has no LSTM or GRU layer", hint)
    (x,) = model.inputs
    reason = ""
    for axis in range(len(model.types[x].shape)):
        try:
            return _shrunk(model, x, axis)
        except _Mixes as e:
            reason = reason or str(e)
    hint = "layers before and after a recurrent one must work on each step by itself, or on the last"
    raise UnsupportedError(_WHERE, f"{model.source.name}: {reason}", hint)


def _shrunk(model: Model, x: str, axis: int) -> Stepped:
    """``model`` with the ``axis`` of its input ``x`` being time, and of size 1."""
    time: dict[str, int | None] = {x: axis}
    shape = model.types[x].shape
    types = {x: replace(model.types[x], shape=_with_one(shape, axis))}
    ops: list[Op] = []
    for op in model.ops:
        assert isinstance(op, NetOp)
        step = _step_of(op, model, tuple(time[v] for v in op.inputs))
        ops.append(step.op)
        shapes = step.op.result_shapes(*(types[v].shape for v in op.inputs))
        for value, new, a in zip(op.outputs, shapes, step.axes, strict=True):
            types[value] = TensorType(new, model.types[value].dtype)
            time[value] = a
    return Stepped(replace(model, types=types, ops=tuple(ops)), axis, time[model.outputs[0]])


def _with_one(shape: tuple[int, ...], axis: int) -> tuple[int, ...]:
    return (*shape[:axis], 1, *shape[axis + 1 :])


def _step_of(op: NetOp, model: Model, axes: tuple[int | None, ...]) -> _Step:
    if all(a is None for a in axes) and not isinstance(op, Lstm | Gru):
        return _Step(op, (None,) * len(op.outputs))
    rule = _RULES.get(type(op))
    shape = model.types[op.inputs[0]].shape
    if rule is None or any(a != axes[0] for a in axes) or axes[0] is None:
        raise _Mixes(f"{op.loc.item or op.loc} ({type(op).__name__}) works on several time steps at once")
    try:
        return rule(op, axes[0], shape)
    except _Mixes:
        raise _Mixes(f"{op.loc.item or op.loc} ({type(op).__name__}) works on several time steps at once") from None


def _require(ok: bool) -> None:
    if not ok:
        raise _Mixes


_Rule = Callable[[Any, int, tuple[int, ...]], _Step]


def _recurrent(op: Lstm | Gru, axis: int, shape: tuple[int, ...]) -> _Step:
    """All steps become this step; the last h and c are those after it."""
    _require(axis == 0)
    return _Step(op, (0, *(None for _ in op.outputs[1:])))


def _elementwise(op: NetOp, axis: int, shape: tuple[int, ...]) -> _Step:
    return _Step(op, (axis,))


def _affine(op: Affine, axis: int, shape: tuple[int, ...]) -> _Step:
    _require(op.per_tensor or op.axis != axis)
    return _Step(op, (axis,))


def _dense(op: Dense, axis: int, shape: tuple[int, ...]) -> _Step:
    _require(axis != len(shape) - 1)
    return _Step(op, (axis,))


def _along(op: Softmax | LogSoftmax | Concat, axis: int, shape: tuple[int, ...]) -> _Step:
    _require(op.axis != axis)
    return _Step(op, (axis,))


def _normalize(op: Normalize, axis: int, shape: tuple[int, ...]) -> _Step:
    """Rows of each step, every step with the same channels."""
    before, rows = prod(shape[: axis + 1]), op.rows // shape[axis]
    _require(op.rows % before == 0 and (prod(shape) // shape[axis]) % (op.inner * op.scale.size) == 0)
    return _Step(replace(op, rows=rows), (axis,))


def _argmax(op: ArgMax, axis: int, shape: tuple[int, ...]) -> _Step:
    _require(op.axis != axis)
    return _Step(op, (axis - int(not op.keepdims and op.axis < axis),))


def _reduce(op: Reduce, axis: int, shape: tuple[int, ...]) -> _Step:
    _require(axis not in op.axes)
    return _Step(op, (axis - (0 if op.keepdims else sum(a < axis for a in op.axes)),))


def _transpose(op: Transpose, axis: int, shape: tuple[int, ...]) -> _Step:
    return _Step(op, (op.perm.index(axis),))


def _reshape(op: Reshape, axis: int, shape: tuple[int, ...]) -> _Step:
    """An axis of the result with the same size and as many elements before it is time."""
    before = prod(shape[:axis])
    for b, n in enumerate(op.shape):
        if n == shape[axis] and prod(op.shape[:b]) == before:
            return _Step(replace(op, shape=_with_one(op.shape, b)), (b,))
    raise _Mixes


def _slice(op: Slice, axis: int, shape: tuple[int, ...]) -> _Step:
    """All steps, or the last one, which is this one."""
    start, step, count = op.starts[axis], op.steps[axis], op.shape[axis]
    every = (start, count) == (0, shape[axis]) and (step == 1 or count == 1)
    _require(every or (start, count) == (shape[axis] - 1, 1))
    starts = (*op.starts[:axis], 0, *op.starts[axis + 1 :])
    steps = (*op.steps[:axis], 1, *op.steps[axis + 1 :])
    found = replace(op, starts=starts, steps=steps, shape=_with_one(op.shape, axis))
    return _Step(found, (None if count == 1 else axis,))


def _pad(op: Pad, axis: int, shape: tuple[int, ...]) -> _Step:
    _require(op.pads[axis] == (0, 0))
    return _Step(op, (axis,))


def _repeat(op: Repeat, axis: int, shape: tuple[int, ...]) -> _Step:
    _require(op.factors[axis] == 1)
    return _Step(op, (axis,))


_RULES: dict[type, _Rule] = {
    Lstm: _recurrent,
    Gru: _recurrent,
    Activation: _elementwise,
    Function: _elementwise,
    Binary: _elementwise,
    FakeQuant: _elementwise,
    Affine: _affine,
    Dense: _dense,
    Softmax: _along,
    LogSoftmax: _along,
    Normalize: _normalize,
    Concat: _along,
    ArgMax: _argmax,
    Reduce: _reduce,
    Transpose: _transpose,
    Reshape: _reshape,
    Slice: _slice,
    Pad: _pad,
    Repeat: _repeat,
}

_KEEPING: dict[type, type] = {QLstm: QLstmStep, QGru: QGruStep, FLstm: FLstmStep, FGru: FGruStep}


def with_state(machine: Model) -> Model:
    """A machine model of one step whose recurrent layers keep their state."""
    ops = tuple(_kept(op) for op in machine.ops)
    return replace(machine, ops=ops)


def _kept(op: Any) -> Op:
    keeping = _KEEPING.get(type(op))
    found: Op = op if keeping is None else keeping(*(getattr(op, f.name) for f in fields(op)))
    return found


def evaluate_steps(model: Model, x: Array) -> Array:
    """The first output (T, ...) of a float net of one step for ``x`` (T, ...), the steps of one run."""
    values: dict[str, Array] = {model.inputs[0]: x}
    for op in model.ops:
        args = [values[v] for v in op.inputs]
        results = _run(op, args[0]) if isinstance(op, Lstm | Gru) else op.eval(*args)
        for name, value in zip(op.outputs, results, strict=True):
            values[name] = value.reshape(len(x), *model.types[name].shape)
    return values[model.outputs[0]]


def _run(op: Lstm | Gru, x: Array) -> tuple[Array, ...]:
    """A recurrent layer step by step, each from the state of the one before."""
    rows: list[tuple[Array, ...]] = []
    now = op
    for sample in x:
        every, *last = now.eval(sample[None])
        rows.append((every[0], *(v[0] for v in last)))
        more = {"h0": last[0][0]} | ({"c0": last[1][0]} if isinstance(op, Lstm) else {})
        now = replace(now, **more)
    return tuple(np.stack(column) for column in zip(*rows, strict=True))
