"""Features of real values to features of the integers that a device has: ranges, levels, units."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from mcugen.core.op import MachineOp
from mcugen.core.types import DType
from mcugen.dsp.feature_plan import IntFeature, plan_feature
from mcugen.dsp.feature_tracks import strategy_of
from mcugen.dsp.ops.f_window_features import FWindowFeatures
from mcugen.dsp.ops.window_features import WindowFeatures
from mcugen.dsp.signal import Signal
from mcugen.dsp.source.features import Features, FeatureSpec, check_features
from mcugen.errors import InputError, UnsupportedError

#: A channel with a negative scale turns these round.
_MIRROR = {"min": "max", "max": "min"}


def check_signal(signal: Signal, where: str) -> None:
    """InputError unless every channel has a name of its own, a finite scale other than 0, an offset and a range."""
    if signal.dtype not in (DType.I16, DType.I32, DType.F32):
        raise InputError(where, f"samples of {signal.dtype.label}: int16, int32 and float32 are possible")
    for i, name in enumerate(signal.names):
        scale, offset, peak = signal.scales[i], signal.offsets[i], signal.peaks[i]
        at = f"{where}: channel '{name}'"
        if name in signal.names[:i]:
            raise InputError(at, "the name is there twice")
        if not (math.isfinite(scale) and scale != 0.0 and math.isfinite(offset)):
            raise InputError(at, f"scale {scale:g} and offset {offset:g}", "a scale is finite and not 0")
        if signal.dtype.is_float and (scale, offset) != (1.0, 0.0):
            raise InputError(at, "float32 samples are real values", "leave out scale and offset")
        if not signal.dtype.is_float and not 1 <= peak <= -signal.dtype.min:
            raise InputError(at, f"samples up to {peak:g} do not suit {signal.dtype.label}")


def limits_of(signal: Signal) -> tuple[int, ...]:
    """The largest sample of each channel of integers; the smallest is one below its negative."""
    return tuple(min(math.ceil(p), signal.dtype.max) for p in signal.peaks)


@dataclass(frozen=True, slots=True)
class IntFeatures:
    """Integer features and their meaning: ``real = scales[f] * y[f] + offsets[f]``, in float64."""

    items: tuple[IntFeature, ...]
    scales: tuple[float, ...]
    offsets: tuple[float, ...]


def lower_features(specs: Sequence[FeatureSpec], length: int, signal: Signal, where: str) -> IntFeatures:
    """The integer features of ``specs``, which ``check_features`` has accepted.

    UnsupportedError for what no scale can express: the RMS, or a band with bin 0, of a channel with an offset.
    """
    items, scales, offsets, limits = [], [], [], limits_of(signal)
    for spec in specs:
        c = spec.channel
        scale, offset = signal.scales[c], signal.offsets[c]
        if offset != 0.0 and (spec.kind == "rms" or (spec.kind == "band_power" and spec.bins[0] == 0)):
            what = f"{spec.kind} of channel '{signal.names[c]}' would depend on its offset of {offset:g}"
            raise UnsupportedError(f"{where}: feature '{spec.name}'", what, "take std, or bins from 1 on")
        limit = limits[c]
        level = integer_level(spec.level, scale, offset, limit)
        item, unit = plan_feature(_mirrored(spec, scale), length, limit + 1, level)
        items.append(item)
        scales.append(unit.scale(scale))
        offsets.append(offset if unit.offset else 0.0)
    return IntFeatures(tuple(items), tuple(scales), tuple(offsets))


def lower_window(op: Features, signal: Signal) -> tuple[MachineOp, Signal]:
    """The machine op of windows and features for these samples, and what its results mean: names, scales, offsets.

    The op reads and writes the values of ``op``. InputError and UnsupportedError as ``check_features``,
    ``check_signal`` and ``lower_features``.
    """
    where = str(op.loc)
    check_features(where, op.length, op.step, op.items, len(signal.names))
    check_signal(signal, where)
    names = tuple(item.name for item in op.items)
    rate = None if signal.rate is None else signal.rate / op.step
    if signal.dtype.is_float:
        machine = FWindowFeatures(op.inputs, op.outputs, op.loc, len(signal.names), op.length, op.step, op.items)
        infinite = (math.inf,) * len(names)
        return machine, Signal.of(names, DType.F32, rate=rate, peaks=infinite)
    plan = lower_features(op.items, op.length, signal, where)
    strategy = strategy_of(op.length, op.step, signal.dtype, plan.items)
    shape = (signal.dtype, op.length, op.step, limits_of(signal), plan.items, strategy)
    result = Signal.of(names, DType.I32, plan.scales, plan.offsets, rate)
    return WindowFeatures(op.inputs, op.outputs, op.loc, *shape), result


def _mirrored(spec: FeatureSpec, scale: float) -> FeatureSpec:
    kind = _MIRROR.get(spec.kind, spec.kind) if scale < 0 else spec.kind
    return FeatureSpec(spec.name, kind, spec.channel, spec.lag, spec.bins, spec.level)


def integer_level(level: float, scale: float, offset: float, limit: int) -> int:
    """The integer k so that neighbours x, y lie on two sides of it just if their real values lie on two sides of level.

    "Below" is ``scale * x + offset < level`` in float64, which is monotone in x: it is bisected as Python computes it,
    not solved. Where every sample lies on one side, k is the smallest sample: none is below.
    """
    low, high = -limit - 1, limit + 1  # high stands for "beyond the last sample"

    def below(x: int) -> bool:
        return scale * x + offset < level

    first = below(low)
    a, b = low, high  # below(a) == first; b is the end, or below(b) != first
    while b - a > 1:
        middle = (a + b) // 2
        a, b = (middle, b) if below(middle) == first else (a, middle)
    return b if b <= limit else low
