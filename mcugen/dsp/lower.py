"""From source filters to machine ops: checks, the choice of a type by measurement, conversions, and the report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import ceil, inf, isfinite

import numpy as np

from mcugen.core.op import MachineOp
from mcugen.core.types import Array, DType, TensorType
from mcugen.dsp.analysis import FilterReport, Probe, Trial, bench, probe
from mcugen.dsp.candidates import HEADROOM, TYPES, Candidate, Place, Situation, fir_candidate, iir_candidate
from mcugen.dsp.checks import check_filter
from mcugen.dsp.gains import impulse, l1, loudest_of_rows, loudest_of_taps, rows_of, settle_steps
from mcugen.dsp.lower_exact import lower_exact
from mcugen.dsp.ops import ShiftSamples
from mcugen.dsp.quantize import RefusedError
from mcugen.dsp.signal import Signal
from mcugen.dsp.source import FilterSource, Fir, Iir, LinearSource, MovingAverage, WeightedAverage
from mcugen.errors import InputError, InternalError

#: Largest error by default, as a part of the peak of the result for a sine of full scale (60 dB).
DEFAULT_ERROR = 1e-3
AUTO = "auto"


@dataclass(frozen=True, slots=True)
class FilterChoices:
    """``type``: of all linear filters, q15, q31, 32x64, float32, float64, or auto: the cheapest within ``max_error``.

    ``max_error``: largest difference to the float filter, in real numbers (scale * q); None: a thousandth of the
    result's peak. ``types``: for single filters, by their place among the ops.
    """

    type: str = AUTO
    max_error: float | None = None
    types: Mapping[int, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class Lowered:
    """Machine ops in a line, the types of all their values, the meaning of the last, and a report for each filter.

    ``data``: what came of the user's samples, (T', C) of the result's type; None where there were none. ``proven``:
    whether the peaks of the signal hold for every input, or rest on what the user promised of the samples.
    """

    ops: tuple[MachineOp, ...]
    types: Mapping[str, TensorType]
    signal: Signal
    reports: tuple[FilterReport, ...]
    data: Array | None = None
    proven: bool = False


def lower_filters(
    ops: Sequence[FilterSource], signal: Signal, choices: FilterChoices | None = None, data: Array | None = None
) -> Lowered:
    """Source filters, each of which reads what the one before has written, as machine ops.

    ``signal``: of the first input; ``data`` (T, C) in its type, recorded samples to measure on. InputError for filters
    that cannot run, a type that cannot hold one, or an error that no type reaches.
    """
    choices = choices or FilterChoices()
    _check_choices(choices, len(ops))
    state = Lowered((), {ops[0].inputs[0]: signal.type} if ops else {}, signal, (), _checked_data(signal, data))
    for i, op in enumerate(ops):
        if i and op.inputs != ops[i - 1].outputs:
            raise InternalError(str(op.loc), "filters do not stand in a line")
        check_filter(op, len(signal.names))
        wanted = choices.types.get(i, choices.type)
        if isinstance(op, LinearSource) and _has_coefficients(op, state.signal.dtype):
            state = _linear(op, state, wanted, choices.max_error)
        else:
            made, after, report = lower_exact(op, state.signal)
            state = _with(state, made, after, report)
    return state


def _has_coefficients(op: LinearSource, dtype: DType) -> bool:
    """Whether a type has to be chosen; a running mean of floats is a FIR filter, its sum would drift."""
    return isinstance(op, Fir | Iir | WeightedAverage) or (isinstance(op, MovingAverage) and dtype.is_float)


def _check_choices(choices: FilterChoices, count: int) -> None:
    for wanted in (choices.type, *choices.types.values()):
        if wanted not in (AUTO, *TYPES):
            raise InputError("type", f"{wanted!r} is no type of a filter", f"one of {', '.join((AUTO, *TYPES))}")
    if choices.max_error is not None and not (isfinite(choices.max_error) and choices.max_error >= 0):
        raise InputError("max-error", f"{choices.max_error} is no limit", "a number of the signal's unit, 0 or more")
    if any(not 0 <= i < count for i in choices.types):
        raise InternalError("type", f"types for filters {tuple(choices.types)} of {count}")


def _checked_data(signal: Signal, data: Array | None) -> Array | None:
    if data is None:
        return None
    if data.ndim != 2 or data.shape[1] != len(signal.names) or data.dtype != signal.dtype.np:
        what = f"samples of {data.dtype} {data.shape}, expected {signal.dtype.label} (T, {len(signal.names)})"
        raise InputError("recorded samples", what)
    if signal.dtype.is_float and not np.isfinite(data).all():
        raise InputError("recorded samples", "a sample is not finite", "leave such rows out")
    return data


def _with(
    state: Lowered, made: tuple[MachineOp, ...], after: Signal, report: FilterReport, middle: DType | None = None
) -> Lowered:
    """The state after more ops; ``middle``: the type of the values between them."""
    types, data = dict(state.types), state.data
    for op in made:
        last = op is made[-1]
        types[op.outputs[0]] = TensorType((len(after.names),), after.dtype if last or middle is None else middle)
        if data is not None:
            (data,) = op.eval(data)
    proven = state.proven or any(isinstance(op, ShiftSamples) for op in made)
    return Lowered((*state.ops, *made), types, after, (*state.reports, report), data, proven)


def _lows(state: Lowered, channels: Sequence[int]) -> tuple[int, ...] | None:
    """The least samples of channels as the user promised them; None where nothing less than the type was."""
    s = state.signal
    if state.proven or s.dtype.is_float or all(p >= -s.dtype.min for p in s.peaks):
        return None
    return tuple(max(s.dtype.min, -ceil(s.peaks[c])) for c in channels)


def _linear(op: LinearSource, state: Lowered, wanted: str, max_error: float | None) -> Lowered:
    """A filter with coefficients, in the type that was asked for or in the cheapest that is good enough."""
    s = state.signal
    channels = list(op.channels)
    peaks = max(s.peaks[c] for c in channels), max(s.peaks)
    situation = Situation(s.dtype, *peaks, _lows(state, range(len(s.names))), (s.scales, s.offsets))
    real_peak = max(abs(s.scales[c]) * s.peaks[c] for c in channels)
    loudest = loudest_of(op)
    limit = max_error if max_error is not None else DEFAULT_ERROR * real_peak * loudest[0]
    channel = max(channels, key=lambda c: abs(s.scales[c]))
    trials: list[Trial] = []
    found: list[tuple[float, Candidate]] = []
    for kind in _possible(op, s.dtype, wanted):
        place = Place(op.loc, op.inputs[0], op.outputs[0], op.channels, len(s.names))
        try:
            figures = _measured(op, kind, situation, state, (channel, settle_of(op), loudest))
            candidate = _candidate(op, kind, situation, place)
        except RefusedError as e:
            trials.append(Trial(kind, None, str(e)))
            continue
        too_far = figures.error > limit
        trials.append(Trial(kind, figures, f"error above {limit:.4g}" if too_far else ""))
        found.append((figures.error, candidate))
        if not too_far:
            break
    best = min(found, key=lambda f: f[0], default=None)
    # A type that the user names is taken whatever its error. So is the best for a filter that attenuates all there is,
    # if it is off by no more than a thousandth of what goes in.
    enough = inf if wanted != AUTO else limit if max_error is not None else max(limit, DEFAULT_ERROR * real_peak)
    if best is None or best[0] > enough:
        raise _no_type(op, trials, wanted, limit)
    chosen = best[1]
    return _with(state, chosen.ops, _after(op, s, chosen), _report(op, s, chosen, tuple(trials), limit), chosen.dtype)


def _no_type(op: LinearSource, trials: list[Trial], wanted: str, limit: float) -> InputError:
    if wanted != AUTO:
        return InputError(
            str(op.loc), f"type {wanted}: {trials[-1].refused}", "choose a wider arithmetic in [signal], or auto"
        )
    best = min((t.probe.error for t in trials if t.probe is not None), default=None)
    if best is None:
        return InputError(str(op.loc), f"no type can hold the filter; {trials[-1].type}: {trials[-1].refused}")
    what = f"no type stays within an error of {limit:.4g}; the best has {best:.4g}"
    return InputError(str(op.loc), what, "allow a larger max_error in [signal]")


def _possible(op: LinearSource, dtype: DType, wanted: str) -> tuple[str, ...]:
    """The forms that are tried, the cheapest first: of the wanted type, or of all that the signal can have.

    Memory wider than samples is for filters with feedback; others take the type beside it.
    """
    if not isinstance(op, Iir):
        wanted = {"32x64": "q31", "float64": "float32"}.get(wanted, wanted)
    if wanted != AUTO:
        return ("q15", HEADROOM) if wanted == "q15" else (wanted,)
    if dtype.is_float:
        return ("float32", "float64") if isinstance(op, Iir) else ("float32",)
    wide = TYPES[1:] if isinstance(op, Iir) else ("q31", "float32")
    return ("q15", HEADROOM, *wide) if dtype is DType.I16 else wide


def taps_of(op: LinearSource) -> Array | None:
    """The taps of a filter without feedback; None for the others."""
    match op:
        case Fir() | WeightedAverage():
            return np.asarray(op.taps, np.float64)
        case MovingAverage():
            return np.full(op.length, 1.0 / op.length)
    return None


def settle_of(op: LinearSource) -> int:
    """Samples until the filter has forgotten its past."""
    taps = taps_of(op)
    if taps is not None:
        return int(taps.size)
    assert isinstance(op, Iir)
    return settle_steps(rows_of(op.sos), 1e-6)


def loudest_of(op: LinearSource) -> tuple[float, float]:
    """The largest gain for a sine, and where, in radians a sample."""
    taps = taps_of(op)
    if taps is not None:
        return loudest_of_taps(taps)
    assert isinstance(op, Iir)
    return loudest_of_rows(rows_of(op.sos))


def _candidate(op: LinearSource, kind: str, situation: Situation, place: Place) -> Candidate:
    taps = taps_of(op)
    if taps is not None:
        return fir_candidate(kind, taps, situation, place)
    assert isinstance(op, Iir)
    return iir_candidate(kind, rows_of(op.sos), situation, place)


def _measured(
    op: LinearSource, kind: str, situation: Situation, state: Lowered, at: tuple[int, int, tuple[float, float]]
) -> Probe:
    """The filter in a type on one channel at a time; ``at``: the channel, samples until rest, where it is loudest."""
    channel, settle, loudest = at
    alone = replace(situation, lows=_lows(state, (channel,)), units=None)
    one = _candidate(op, kind, alone, Place(op.loc, "x", "y", (0,), 1))
    scale = state.signal.scales[channel]
    tests = bench(situation.dtype, situation.peak, settle, state.data, loudest)
    columns = (0,) if state.data is None or not len(state.data) else op.channels[:4]
    return probe(op, one.ops, tests, (scale, scale * one.unit), columns)


def _after(op: LinearSource, s: Signal, c: Candidate) -> Signal:
    """What the numbers mean after the filter: integers that became floats are real values; channels that pass are
    multiplied by the headroom only."""
    if c.dtype.is_float and not s.dtype.is_float:
        reals = [abs(k) * p + abs(o) for k, o, p in zip(s.scales, s.offsets, s.peaks, strict=True)]
        gain = c.peak / max(s.peaks[i] for i in op.channels)
        reals = [r * gain if i in op.channels else r for i, r in enumerate(reals)]
        return Signal.of(s.names, c.dtype, rate=s.rate, peaks=tuple(reals))
    scales, offsets, peaks = list(s.scales), list(s.offsets), list(s.peaks)
    for i in range(len(scales)):
        scales[i] *= 2.0**-c.before
        peaks[i] *= 2.0**c.before
    for i in op.channels:
        scales[i] = s.scales[i] * c.unit
        offsets[i] = s.offsets[i] * op.dc_gain()
        peaks[i] = c.peak
    return Signal(s.names, c.dtype, tuple(scales), tuple(offsets), tuple(peaks), s.rate)


def _report(op: LinearSource, s: Signal, c: Candidate, trials: tuple[Trial, ...], limit: float) -> FilterReport:
    taps = taps_of(op)
    if taps is not None:
        most = float(np.abs(taps).sum())
    else:
        assert isinstance(op, Iir)
        rows = rows_of(op.sos)
        most = l1(impulse(rows, settle_steps(rows)))
    gains = most, loudest_of(op)[0]
    scale = max(abs(s.scales[i]) for i in op.channels)
    notes = list(c.notes)
    if c.clips:
        notes.append(f"the result clips for some inputs: it can reach {gains[0]:.4g} times the input's peak")
    if all(t.refused for t in trials):
        notes.append(f"the error is above {limit:.4g}: choose a wider arithmetic in [signal], or auto")
    noise = None if c.noise is None else c.noise * scale
    names = tuple(s.names[i] for i in op.channels)
    kind = type(op).__name__
    facts = (c.sections, *gains, c.guard_bits, noise)
    return FilterReport(str(op.loc), kind, names, c.type, limit, trials, *facts, tuple(notes))


__all__ = ["AUTO", "DEFAULT_ERROR", "FilterChoices", "Lowered", "lower_filters"]
