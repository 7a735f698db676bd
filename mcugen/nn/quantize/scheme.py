"""Which values are quantized how: activations fused into their producers, scales from FakeQuant or from calibration."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf

from mcugen.core.op import Op
from mcugen.core.types import DType, Model, QParams
from mcugen.errors import UnsupportedError
from mcugen.nn.quantize.bounds import bounds_of
from mcugen.nn.quantize.params import activation_params
from mcugen.nn.quantize.ranges import Range
from mcugen.nn.source import (
    Activation,
    Binary,
    Concat,
    Conv,
    Dense,
    DepthToSpace,
    FakeQuant,
    GlobalPool,
    Gru,
    Lstm,
    NetOp,
    Pad,
    Pool,
    Reduce,
    Repeat,
    Reshape,
    Slice,
    Softmax,
    Transpose,
)

#: Ops whose kernel ends with a requantize step, and so takes a clamp for nothing.
_FUSES = (Conv, Dense, Binary)
#: Results whose range is known: sigmoid, softmax 0 to 1; tanh -1 to 1.
_UNIT = QParams(1.0 / 256.0, -128)
_SIGNED_UNIT = QParams(1.0 / 128.0, 0)


@dataclass(frozen=True, slots=True)
class Fused:
    """A source op with what follows it inside one kernel: the clamp [low, high] in real numbers, and the value that it
    gives in the end."""

    op: NetOp
    low: float
    high: float
    result: str


def fuse(model: Model) -> tuple[Fused, ...]:
    """The ops of a float net in order, with ReLU and Clip folded into producers that only they read."""
    readers = _readers(model)
    done: set[int] = set()
    fused = []
    for i, op in enumerate(model.ops):
        if i in done:
            continue
        assert isinstance(op, NetOp)
        low, high, result = -inf, inf, op.outputs[0]
        if isinstance(op, _FUSES):
            j = _clamp_after(model, result, readers)
            if j is not None:
                clamp = model.ops[j]
                assert isinstance(clamp, Activation)
                low, high = (0.0, inf) if clamp.kind == "relu" else (clamp.low, clamp.high)
                result = clamp.outputs[0]
                done.add(j)
        fused.append(Fused(op, low, high, result))
    return tuple(fused)


def _readers(model: Model) -> dict[str, list[int]]:
    readers: dict[str, list[int]] = {}
    for i, op in enumerate(model.ops):
        for value in op.inputs:
            readers.setdefault(value, []).append(i)
    return readers


def _clamp_after(model: Model, value: str, readers: Mapping[str, list[int]]) -> int | None:
    """The ReLU or Clip that alone reads ``value``."""
    here = readers.get(value, [])
    if len(here) != 1 or value in model.outputs:
        return None
    op = model.ops[here[0]]
    return here[0] if isinstance(op, Activation) and op.kind in ("relu", "clip") else None


def choose_params(model: Model, steps: tuple[Fused, ...], ranges: Mapping[str, Range] | None) -> dict[str, QParams]:
    """QParams for every value that a kernel writes, and for the model's input.

    A value that a FakeQuant alone reads takes its scale: the file brought it. Else the range decides, where calibration
    is needed; without one, what is sure from the scales of the operands.
    """
    readers = _readers(model)
    params: dict[str, QParams] = {}
    for value in (*model.inputs, *(s.result for s in steps)):
        marked = _mark(model, value, readers)
        if marked is not None:
            params[value] = marked
        elif value in model.inputs:
            params[value] = activation_params(_range_of(model, value, ranges))
    for step in steps:
        if isinstance(step.op, Lstm | Gru):
            params |= _recurrent_params(model, step.op, readers, ranges)
            continue
        if step.result in params or model.types[step.result].dtype is not DType.F32:
            continue
        if _preserves(step.op):
            params[step.result] = params[step.op.inputs[0]]
            continue
        known = _known_params(step.op)
        seen = bounds_of(step.op, step.low, step.high, params, model.types) if ranges is None else None
        params[step.result] = known or activation_params(seen or _range_of(model, step.result, ranges))
    for step in steps:
        if isinstance(step.op, Concat):
            for value in step.op.inputs:
                # A part that nobody else reads is written with the scale of the whole: no rescaling on the device.
                if len(readers[value]) == 1 and _mark(model, value, readers) is None and value not in model.inputs:
                    params[value] = params[step.result]
    return params


def _recurrent_params(
    model: Model, op: Lstm | Gru, readers: Mapping[str, list[int]], ranges: Mapping[str, Range] | None
) -> dict[str, QParams]:
    """Hidden states are between -1 and 1; the cell of an LSTM has the range of the data."""
    params = {}
    for i, value in enumerate(op.outputs):
        if value not in readers and value not in model.outputs:
            continue
        marked = _mark(model, value, readers)
        params[value] = marked or (_SIGNED_UNIT if i < 2 else activation_params(_range_of(model, value, ranges)))
    return params


def _range_of(model: Model, value: str, ranges: Mapping[str, Range] | None) -> Range:
    if ranges is None or value not in ranges:
        what = f"the range of {value} is not known"
        raise UnsupportedError(model.source.name, what, "give typical inputs with --calib FILE.npz")
    return ranges[value]


def _preserves(op: NetOp) -> bool:
    """Whether results are elements of the operand, unchanged."""
    moves = isinstance(op, Reshape | Transpose | Slice | Repeat | DepthToSpace) or (
        isinstance(op, Pad) and op.value == 0.0
    )
    return moves or (isinstance(op, Pool | GlobalPool | Reduce) and op.kind == "max")


def _mark(model: Model, value: str, readers: Mapping[str, list[int]]) -> QParams | None:
    """The scale that the file gives a value: that of its FakeQuant, also of one behind an op that only chooses and
    moves elements, for rounding before it is rounding behind it."""
    ops: list[Op] = [model.ops[i] for i in readers.get(value, [])]
    if len(ops) == 1 and isinstance(ops[0], NetOp) and _preserves(ops[0]) and value not in model.outputs:
        return _mark(model, ops[0].outputs[0], readers)
    marks = [op for op in ops if isinstance(op, FakeQuant)]
    if not marks:
        return None
    first = QParams(marks[0].scale, marks[0].zero_point)
    same = all(QParams(m.scale, m.zero_point) == first for m in marks)
    return first if same and len(marks) == len(ops) else None


def _known_params(op: NetOp) -> QParams | None:
    if isinstance(op, FakeQuant):
        return QParams(op.scale, op.zero_point)
    if isinstance(op, Softmax):
        return _UNIT
    if isinstance(op, Activation) and op.kind in ("sigmoid", "hard_sigmoid"):
        return _UNIT
    if isinstance(op, Activation) and op.kind == "tanh":
        return _SIGNED_UNIT
    return None
