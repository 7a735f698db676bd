"""A linear filter in one of its types: the machine ops, the scale of the result, and what is proven of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import ceil, floor, inf, log2

import numpy as np

from mcugen.core.op import MachineOp
from mcugen.core.types import Array, DType, Loc, frozen_array
from mcugen.dsp.analysis import SectionFacts
from mcugen.dsp.gains import impulse, l1, poles, settle_steps
from mcugen.dsp.ops import (
    BiquadF32,
    BiquadF64,
    BiquadQ15,
    BiquadQ31,
    BiquadQ63,
    FirF32,
    FirQ15,
    FirQ31,
    RealSamples,
    ScaleSamples,
    ShiftSamples,
)
from mcugen.dsp.quantize import RefusedError, Sections, quantize_sections, quantize_taps, spare_bits

#: From the cheapest to the dearest, the types of a linear filter.
TYPES = ("q15", "q31", "32x64", "float32", "float64")
#: q15 whose result has a coarser unit, so that it cannot clip.
HEADROOM = "q15 with headroom"
_WORD = 2.0**31 - 1
_NOT_WORTH = 2


@dataclass(frozen=True, slots=True)
class Place:
    """Where ops stand: the names of their operands, their channels among ``width``."""

    loc: Loc
    source: str
    result: str
    channels: tuple[int, ...]
    width: int


@dataclass(frozen=True, slots=True)
class Situation:
    """The samples before a filter: their type, the largest peak among its channels and among all.

    ``lows``: of each channel the least sample that the user promised, None where nothing has to be enforced: a filter
    that wraps must not rest on a promise. ``units``: scales and offsets of all channels, by which integers become real
    values where a filter takes floats; None: they stay the numbers that they are.
    """

    dtype: DType
    peak: float
    all_peak: float
    lows: tuple[int, ...] | None = None
    units: tuple[tuple[float, ...], tuple[float, ...]] | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Candidate:
    """A filter in one type. ``dtype``: of the result; ``before``: log2 of what all samples were multiplied by first;
    ``unit``: real value of 1 after, as a multiple of that before, for the filtered channels; ``peak``: largest result.

    ``clips``: whether the peak is cut off by the type.
    """

    type: str
    ops: tuple[MachineOp, ...]
    dtype: DType
    before: int
    unit: float
    peak: float
    guard_bits: float
    clips: bool
    noise: float | None = None
    sections: tuple[SectionFacts, ...] = ()
    notes: tuple[str, ...] = field(default=())


def fir_candidate(kind: str, taps: Array, situation: Situation, place: Place) -> Candidate:
    """A FIR filter in a type; RefusedError where the type cannot hold it."""
    values, dtype = np.asarray(taps, np.float64), situation.dtype
    gain = float(np.abs(values).sum())
    match kind:
        case "q15" | "q15 with headroom":
            _require(dtype is DType.I16, f"q15 filters take int16 samples, not {dtype.label}")
            q = quantize_taps(values, 15, 0 if kind == "q15" else _doublings(gain * situation.peak + 1))
            _require(bool(q.integers.any()), "every tap rounds to zero")
            op = FirQ15((place.source,), (place.result,), place.loc, place.channels, place.width, _i16(q.integers))
            peak = q.gain * situation.peak + 1
            guard = spare_bits(peak, 32767.0)
            sums = "32" if op.narrow else "64"
            note = f"{sums}-bit sums: the magnitudes of the taps sum to {int(np.abs(q.integers).sum())}"
            clips = peak > 32768
            unit = 2.0**q.shift
            return Candidate(
                "q15",
                (op,),
                dtype,
                before=0,
                unit=unit,
                peak=min(peak, 32768.0),
                guard_bits=guard,
                clips=clips,
                noise=unit,
                sections=(),
                notes=(note,),
            )
        case "q31":
            _require(not dtype.is_float, f"q31 filters take integers, not {dtype.label}")
            q = quantize_taps(values, 31)
            shift = _headroom(situation, q.gain, 1.0)
            convert, source = _converted(shift, situation, place)
            taken = (source,), (place.result,), place.loc, place.channels, place.width
            peak = q.gain * situation.peak * 2.0**shift + 1
            unit = 2.0 ** (q.shift - shift)
            wide = FirQ31(*taken, q.integers.astype(np.int32))
            guard = spare_bits(peak, _WORD)
            return Candidate(
                kind,
                (*convert, wide),
                DType.I32,
                before=shift,
                unit=unit,
                peak=peak,
                guard_bits=guard,
                clips=False,
                noise=unit,
            )
        case "float32":
            convert, source = _floats(situation, place)
            taps32 = _f32(values)
            taken = (source,), (place.result,), place.loc, place.channels, place.width
            peak = gain * situation.peak * (1 + 1e-6)
            return Candidate(
                kind,
                (*convert, FirF32(*taken, taps32)),
                DType.F32,
                before=0,
                unit=1.0,
                peak=peak,
                guard_bits=inf,
                clips=False,
            )
    raise RefusedError(f"a FIR filter has no type {kind}")


def iir_candidate(kind: str, rows: Array, situation: Situation, place: Place) -> Candidate:
    """Sections (S, 5) in a type; RefusedError where the type cannot hold them."""
    dtype = situation.dtype
    if kind in ("q15", HEADROOM):
        _require(dtype is DType.I16, f"q15 filters take int16 samples, not {dtype.label}")
        ratio, unit = 32767.0 / situation.peak, 1.0
        found = quantize_sections(rows, 15, ratio, 12, False)
        if kind == HEADROOM:
            unit = 2.0 ** _doublings(found.gains[-1] * situation.peak + found.noise)
            found = quantize_sections(rows, 15, ratio, 12, False, 1.0 / unit)
        taken = (place.source,), (place.result,), place.loc, place.channels, place.width
        op = BiquadQ15(*taken, _i16(found.coefficients), found.post_shift)
        peak = found.gains[-1] * situation.peak + found.noise
        facts = _facts(found, rows, situation.peak / 32768.0)
        note = f"{'32' if op.narrow else '64'}-bit sums"
        guard, clips = spare_bits(peak, 32767.0), peak > 32768
        top, noise = min(peak, 32768.0), found.noise * unit
        return Candidate(
            "q15",
            (op,),
            dtype,
            before=0,
            unit=unit,
            peak=top,
            guard_bits=guard,
            clips=clips,
            noise=noise,
            sections=facts,
            notes=(note,),
        )
    if kind in ("q31", "32x64"):
        _require(not dtype.is_float, f"{kind} filters take integers, not {dtype.label}")
        return _wide_iir(kind, rows, situation, place)
    return _float_iir(kind, rows, situation, place)


def _float_iir(kind: str, rows: Array, situation: Situation, place: Place) -> Candidate:
    """Sections in float32, or on float32 samples in float64."""
    convert, source = _floats(situation, place)
    taken = (source,), (place.result,), place.loc, place.channels, place.width
    zeros = (0,) * len(rows)
    op: BiquadF32 | BiquadF64
    if kind == "float64":
        op = BiquadF64(*taken, frozen_array(rows, np.float64), zeros)
    else:
        op = BiquadF32(*taken, _f32(rows), zeros)
    exact = op.coefficients.astype(np.float64)
    for i, row in enumerate(exact):
        _require(abs(poles(row)[0]) < 1.0, f"section {i + 1} is unstable once rounded to {kind}")
    steps = settle_steps(rows)
    gains = [l1(impulse(rows[: i + 1], steps)) for i in range(len(rows))]
    peak = gains[-1] * situation.peak * (1 + 1e-6)
    facts = tuple(SectionFacts(i, 0, poles(exact[i])[0], poles(rows[i])[0], g, 1.0) for i, g in enumerate(gains))
    return Candidate(
        kind,
        (*convert, op),
        DType.F32,
        before=0,
        unit=1.0,
        peak=peak,
        guard_bits=inf,
        clips=False,
        noise=None,
        sections=facts,
    )


def _wide_iir(kind: str, rows: Array, situation: Situation, place: Place) -> Candidate:
    gain = l1(impulse(rows, settle_steps(rows))) * (1 + 1e-9)
    shift, wide = _headroom(situation, gain, 2.0), kind == "32x64"
    while True:
        # The sections between use what the proof leaves; the last decides whether the shift was small enough.
        ratio = _WORD / (situation.peak * 2.0**shift) * 0.98
        found = quantize_sections(rows, 31, ratio, 30, wide)
        peak = max(found.gains) * situation.peak * 2.0**shift + found.noise
        if peak <= _WORD:
            break
        shift -= 1
        _require(shift >= -31, "no shift keeps its results within 32 bits")
    convert, source = _converted(shift, situation, place)
    taken = (source,), (place.result,), place.loc, place.channels, place.width
    make = BiquadQ63 if wide else BiquadQ31
    op = make(*taken, found.coefficients.astype(np.int32), found.post_shift)
    facts = _facts(found, rows, situation.peak * 2.0 ** (shift - 31))
    last = found.gains[-1] * situation.peak * 2.0**shift + found.noise
    unit, guard = 2.0**-shift, spare_bits(peak, _WORD)
    return Candidate(
        kind,
        (*convert, op),
        DType.I32,
        before=shift,
        unit=unit,
        peak=last,
        guard_bits=guard,
        clips=False,
        noise=found.noise * unit,
        sections=facts,
    )


def _facts(found: Sections, rows: Array, part: float) -> tuple[SectionFacts, ...]:
    quantized = found.rows()
    return tuple(
        SectionFacts(source, post, poles(quantized[i])[0], poles(rows[source])[0], gain * part, scale)
        for i, (source, post, gain, scale) in enumerate(
            zip(found.order, found.post_shift, found.gains, found.scales, strict=True)
        )
    )


def _headroom(situation: Situation, gain: float, noise: float) -> int:
    """By how many bits all samples can go to the left so that neither they nor the result leave 32 bits."""
    room = min(_WORD / situation.all_peak, (_WORD - noise) / (situation.peak * max(gain, 1e-9) + noise))
    shift = max(-31, min(30, floor(log2(room * (1 - 1e-12)))))
    # Samples of 32 bits that nearly fill their type stay as they are: two bits are not worth another op.
    return 0 if situation.dtype is DType.I32 and 0 < shift <= _NOT_WORTH else shift


def _converted(shift: int, situation: Situation, place: Place) -> tuple[tuple[MachineOp, ...], str]:
    """The op that brings samples to int32 with headroom, if one is needed, and the name of what comes out."""
    if shift == 0 and situation.dtype is DType.I32 and situation.lows is None:
        return (), place.source
    value = f"{place.result}_wide"
    lows = None if situation.lows is None else frozen_array(situation.lows, np.int32)
    types = (situation.dtype, DType.I32)
    return (ShiftSamples((place.source,), (value,), place.loc, place.width, *types, shift, lows),), value


def _floats(situation: Situation, place: Place) -> tuple[tuple[MachineOp, ...], str]:
    """The op that brings samples to float32, if one is needed: to the real values that they mean."""
    dtype = situation.dtype
    if dtype.is_float:
        return (), place.source
    value = f"{place.result}_float"
    scales, offsets = situation.units or ((1.0,) * place.width, (0.0,) * place.width)
    taken = (place.source,), (value,), place.loc, dtype, _f32(np.array(scales))
    return (RealSamples(*taken, _f32(np.array(offsets))) if any(offsets) else ScaleSamples(*taken),), value


def _doublings(peak: float) -> int:
    """How often int16 has to be doubled to hold a peak; with one unit to spare, for what rounding adds."""
    return max(0, ceil(log2(peak / 32766.0)))


def _require(ok: bool, why: str) -> None:
    if not ok:
        raise RefusedError(why)


def _i16(values: Array) -> Array:
    return values.astype(np.int16)


def _f32(values: Array) -> Array:
    with np.errstate(over="ignore", under="ignore"):
        found = np.asarray(values, np.float64).astype(np.float32)
    _require(bool(np.isfinite(found).all()), "a coefficient is too large for float32")
    return found
