"""Filters without rounded coefficients, in the type of the samples: running mean, median, extremes, and their kin."""

from __future__ import annotations

from math import inf

import numpy as np

from mcugen.core.op import MachineOp
from mcugen.core.types import DType
from mcugen.dsp.analysis import FilterReport
from mcugen.dsp.ops import DcRemove, ExpSmooth, KeepEvery, RunningExtreme, RunningMean, RunningMedian
from mcugen.dsp.signal import Signal
from mcugen.dsp.source import DcBlock, Decimate, Extreme, FilterSource, Median, MovingAverage, Smooth
from mcugen.errors import InternalError

_ONE = 2**31


def lower_exact(op: FilterSource, s: Signal) -> tuple[tuple[MachineOp, ...], Signal, FilterReport]:
    """The machine ops of a filter, the signal after it, and the report."""
    if isinstance(op, Extreme):
        return _extremes(op, s), s, _report(op, s, "exact")
    taken = (op.inputs, op.outputs, op.loc)
    treated = (*taken, op.channels, len(s.names))
    after, note, kept = s, "exact", s.dtype
    made: MachineOp
    match op:
        case MovingAverage():
            made, note = RunningMean(*treated, kept, op.length), "an exact sum, rounded once to the nearest"
        case Median():
            made = RunningMedian(*treated, kept, op.length)
        case Smooth():
            made, note = ExpSmooth(*treated, kept, _factor(op.alpha, kept)), _first_order_note(op.alpha, kept, 15)
        case DcBlock():
            factor = _factor(op.pole if kept.is_float else 1.0 - op.pole, kept)
            made, note = DcRemove(*treated, kept, factor), _first_order_note(1.0 - op.pole, kept, 14)
            after = _blocked(op, s)
            if not kept.is_float and any(2 * s.peaks[c] > -kept.min for c in op.channels):
                note += (
                    "; a jump across more than half of the type's range clips: low and high of the channel rule it out"
                )
        case Decimate():
            made = KeepEvery(*taken, len(s.names), op.factor)
            rate = None if s.rate is None else s.rate / op.factor
            after = Signal(s.names, s.dtype, s.scales, s.offsets, s.peaks, rate)
            if op.factor > 1:
                note = "exact; frequencies above half the new rate fold back: filter them out before"
        case _:
            raise InternalError(str(op.loc), f"no lowering for {type(op).__name__}")
    return (made,), after, _report(op, s, note)


def _report(op: FilterSource, s: Signal, note: str) -> FilterReport:
    names = tuple(s.names[c] for c in op.channels)
    return FilterReport(str(op.loc), type(op).__name__, names, "exact", None, (), notes=(note,))


def _extremes(op: Extreme, s: Signal) -> tuple[MachineOp, ...]:
    """The greatest real value is the least number of a channel with a negative scale: an op for each direction."""
    greatest = op.kind == "max"
    falling = tuple(c for c in op.channels if s.scales[c] < 0)
    rising = tuple(c for c in op.channels if s.scales[c] > 0)
    made: list[MachineOp] = []
    value = op.inputs
    for channels, great in ((rising, greatest), (falling, not greatest)):
        if channels:
            last = op.outputs if great != greatest or not falling else (f"{op.outputs[0]}_rising",)
            made.append(RunningExtreme(value, last, op.loc, channels, len(s.names), s.dtype, op.length, great))
            value = last
    return tuple(made)


def _factor(value: float, dtype: DType) -> float:
    if dtype.is_float:
        return float(np.float32(value))
    return float(min(_ONE - 1, max(1, round(value * _ONE))))


def _first_order_note(speed: float, dtype: DType, bits: int) -> str:
    """What rounding leaves: half a unit of the state for each step of the memory, and half a unit of the result."""
    if dtype.is_float:
        return "one rounding a step"
    below = bits if dtype is DType.I16 else 2 * bits + (0 if bits == 15 else 1)
    return f"within {0.5 + 0.5 / speed * 2.0**-below:.3f} units of the exact filter, no dead band beyond that"


def _blocked(op: DcBlock, s: Signal) -> Signal:
    """The result reaches twice the peak before it clips; its mean is 0."""
    offsets, peaks = list(s.offsets), list(s.peaks)
    limit = inf if s.dtype.is_float else float(-s.dtype.min)
    for c in op.channels:
        offsets[c], peaks[c] = 0.0, min(2 * peaks[c], limit)
    return Signal(s.names, s.dtype, s.scales, tuple(offsets), tuple(peaks), s.rate)
