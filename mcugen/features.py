"""Features of windows, computed in Python exactly as the device computes them: what to train a model on.

    items = features.every(("mean", "std", "slope"), ("tc1", "tc2"))
    f = features.Features(length=128, step=16, items=items, dtype="int16", scales=(0.25, 0.25))
    X = f.transform(samples)          # samples (T, 2) int16, as the converter delivers them

``transform`` and the reference that the generated C is compared with are one piece of code. The features of a signal
chain, after its filters: ``features.load("pipeline.toml").transform(samples)``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from mcugen.core.types import Array, DType
from mcugen.dsp.feature_plan import int_features
from mcugen.dsp.feature_tracks import strategy_of
from mcugen.dsp.float_features import float_features
from mcugen.dsp.lower_features import IntFeatures, check_signal, limits_of, lower_features
from mcugen.dsp.samples import as_samples, quantize_samples
from mcugen.dsp.signal import Signal
from mcugen.dsp.source.features import MIN_LENGTH, FeatureSpec, bins_of, check_features
from mcugen.errors import InputError
from mcugen.pipelines import PipelineFeatures, load

__all__ = ["MIN_LENGTH", "FeatureSpec", "Features", "Item", "PipelineFeatures", "bins_of", "every", "load"]

_WHERE, _HINT = "features", "f.quantize(X) makes samples of real values"


@dataclass(frozen=True, slots=True)
class Item:
    """One feature by the name of its channel; see FeatureSpec. ``name`` empty: ``channel_kind``."""

    kind: str
    channel: str
    name: str = ""
    lag: int = 0
    bins: tuple[int, int] = (0, 0)
    level: float = 0.0

    @property
    def label(self) -> str:
        """The name of the feature."""
        if self.name:
            return self.name
        end = {"lag": f"{self.lag}", "band_power": f"{self.bins[0]}_{self.bins[1]}"}.get(self.kind, "")
        return f"{self.channel}_{self.kind}{end}"


def every(kinds: Iterable[str], channels: Iterable[str]) -> tuple[Item, ...]:
    """Each kind of each channel, channel by channel."""
    kinds = tuple(kinds)
    return tuple(Item(kind, channel) for channel in channels for kind in kinds)


@dataclass(frozen=True, slots=True)
class Features:
    """Features of the last ``length`` samples, computed when ``length`` are there and at every ``step``-th after.

    ``dtype``: int16, int32 (integer arithmetic, int32 features) or float32. ``channels``: names in the order of the
    columns of X; without them, those of the items in the order in which they come. ``real = scales[c] * x +
    offsets[c]`` for integer samples; ``bits``: how many bits of the type a channel uses, beyond which samples are
    clamped; fewer bits leave more of them to the features. A wrong argument is an InputError, what no integer feature
    can express an UnsupportedError.
    """

    length: int
    step: int
    items: Sequence[Item]
    dtype: str = "int16"
    channels: Sequence[str] = ()
    scales: Sequence[float] | None = None
    offsets: Sequence[float] | None = None
    bits: Sequence[int] | None = None
    signal: Signal = field(init=False)
    specs: tuple[FeatureSpec, ...] = field(init=False)
    plan: IntFeatures | None = field(init=False)

    def __post_init__(self) -> None:
        names = tuple(self.channels) or tuple(dict.fromkeys(i.channel for i in self.items))
        signal = self._signal(names)
        specs = tuple(_spec(item, names) for item in self.items)
        check_features(_WHERE, self.length, self.step, specs, len(names))
        plan = None if signal.dtype.is_float else lower_features(specs, self.length, signal, _WHERE)
        for key, value in (("signal", signal), ("specs", specs), ("plan", plan)):
            object.__setattr__(self, key, value)

    def _signal(self, names: tuple[str, ...]) -> Signal:
        labels = {t.label: t for t in (DType.I16, DType.I32, DType.F32)}
        if self.dtype not in labels:
            raise InputError(_WHERE, f"samples of {self.dtype}: {', '.join(labels)} are possible")
        if not names:
            raise InputError(_WHERE, "no channels")
        dtype, n = labels[self.dtype], len(names)
        for what, values in (("scales", self.scales), ("offsets", self.offsets), ("bits", self.bits)):
            if values is not None and len(values) != n:
                raise InputError(_WHERE, f"{len(values)} {what} for {n} channels")
        width = 8 * dtype.size
        if any(not 2 <= b <= width or dtype.is_float for b in self.bits or ()):
            raise InputError(_WHERE, f"bits {list(self.bits or ())}: 2 to {width} of an integer type are possible")
        scales, offsets = (None if v is None else tuple(map(float, v)) for v in (self.scales, self.offsets))
        peaks = None if self.bits is None else tuple(float((1 << (b - 1)) - 1) for b in self.bits)
        signal = Signal.of(names, dtype, scales, offsets, peaks=peaks)
        check_signal(signal, _WHERE)
        return signal

    @property
    def names(self) -> tuple[str, ...]:
        """(F,) names of the features."""
        return tuple(s.name for s in self.specs)

    @property
    def unit_scales(self) -> tuple[float, ...]:
        """(F,) what one unit of each feature on the device is worth; 1 for float32."""
        return (1.0,) * len(self.specs) if self.plan is None else self.plan.scales

    @property
    def unit_offsets(self) -> tuple[float, ...]:
        """(F,) what 0 of each feature on the device is worth."""
        return (0.0,) * len(self.specs) if self.plan is None else self.plan.offsets

    @property
    def strategy(self) -> str:
        """How the device makes the sums of a window: scan, run or stream."""
        if self.plan is None:
            return "scan"
        return strategy_of(self.length, self.step, self.signal.dtype, self.plan.items)

    def quantize(self, real: npt.ArrayLike) -> Array:
        """Real values (..., C) to samples of the dtype: the nearest integer, clamped to the channel's bits."""
        limits = limits_of(self.signal) if self.plan is not None else ()
        return quantize_samples(real, self.signal, limits, _WHERE)

    def device(self, x: npt.ArrayLike) -> Array:
        """Samples (T, C), or (recordings, T, C) that each start anew, to what the device writes: (..., T', F).

        int32 for integer samples, float32 for float32. T' is 0 where there are fewer than ``length`` samples.
        """
        samples = as_samples(x, self.signal, _WHERE, _HINT)
        if self.plan is None:
            return float_features(samples, self.length, self.step, self.specs)
        limit = np.array(limits_of(self.signal), np.int64)
        clamped = np.clip(samples.astype(np.int64), -limit - 1, limit)
        return int_features(clamped, self.length, self.step, self.plan.items)

    def transform(self, x: npt.ArrayLike) -> Array:
        """The features of ``device`` in the user's units, float64: ``scale * y + offset``, as a model folds it."""
        y = self.device(x).astype(np.float64)
        if self.plan is None:
            return y
        return np.asarray(y * np.array(self.plan.scales) + np.array(self.plan.offsets))


def _spec(item: Item, names: Sequence[str]) -> FeatureSpec:
    if item.channel not in names:
        raise InputError(f"{_WHERE}: feature '{item.label}'", f"there is no channel '{item.channel}'")
    channel = list(names).index(item.channel)
    return FeatureSpec(item.label, item.kind, channel, item.lag, item.bins, item.level)
