"""Source ops of signals: what the user's filters and features mean, in float64."""

from mcugen.dsp.source.base import FilterSource, LinearSource
from mcugen.dsp.source.features import Features, FeatureSpec
from mcugen.dsp.source.frames import Frames
from mcugen.dsp.source.linear import DcBlock, Fir, Iir, MovingAverage, Smooth, WeightedAverage
from mcugen.dsp.source.window import Decimate, Extreme, Median

#: Every filter of this level; the lowering must know each.
FILTER_OPS: tuple[type[FilterSource], ...] = (
    Fir,
    Iir,
    MovingAverage,
    WeightedAverage,
    Smooth,
    DcBlock,
    Median,
    Extreme,
    Decimate,
)

__all__ = [
    "FILTER_OPS",
    "DcBlock",
    "Decimate",
    "Extreme",
    "FeatureSpec",
    "Features",
    "FilterSource",
    "Fir",
    "Frames",
    "Iir",
    "LinearSource",
    "Median",
    "MovingAverage",
    "Smooth",
    "WeightedAverage",
]
