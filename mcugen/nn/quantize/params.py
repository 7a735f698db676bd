"""Scales and zero points from ranges, and weights to int8."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mcugen.core.types import Array, QParams
from mcugen.nn.quantize.ranges import Range

#: Weights this small beside the largest of the net are zero: training leaves such dust (1e-30) in dead channels.
_DUST = 2.0**-60
#: A value that never varies still needs a scale.
_LEAST_SCALE = 2.0**-100


def activation_params(r: Range) -> QParams:
    """int8, asymmetric: the range widened to hold 0, which must be exact (padding, ReLU)."""
    low, high = min(r.low, 0.0), max(r.high, 0.0)
    scale = float(np.float32((high - low) / 255.0))
    if not scale > _LEAST_SCALE:
        return QParams(1.0, 0)
    zero = int(np.clip(np.rint(-128.0 - low / scale), -128, 127))
    return QParams(scale, zero)


def activation_params_16(r: Range) -> QParams:
    """int16, symmetric."""
    top = max(abs(r.low), abs(r.high))
    scale = float(np.float32(top / 32767.0))
    return QParams(scale, 0) if scale > _LEAST_SCALE else QParams(1.0, 0)


@dataclass(frozen=True, slots=True, eq=False)
class QuantizedWeight:
    """``q`` int8 in [-127, 127], ``scale`` (OC,) float64: weight = scale * q, channel by channel of the first axis."""

    q: Array
    scale: Array


def quantize_weight(weight: Array, least_scale: Array) -> QuantizedWeight:
    """Symmetric, per output channel. Channels that hold nothing but dust become zeros with scale 1.

    ``least_scale`` (OC,): below it the bias of the channel would leave int32.
    """
    flat = weight.reshape(len(weight), -1).astype(np.float64)
    top = np.abs(flat).max(axis=1)
    dead = top <= max(float(top.max()), 0.0) * _DUST
    scale = np.where(dead, 1.0, np.float32(np.where(dead, 127.0, top) / 127.0).astype(np.float64))
    scale = np.maximum(scale, least_scale)
    q = np.where(dead[:, None], 0, np.clip(np.rint(flat / scale[:, None]), -127, 127)).astype(np.int8)
    return QuantizedWeight(q.reshape(weight.shape), scale)


def quantize_bias(bias: Array, in_scale: float, weight_scale: Array) -> Array:
    """(OC,) int32 in units of ``in_scale * weight_scale``, saturated."""
    real = bias.astype(np.float64) / (in_scale * weight_scale)
    return np.asarray(np.clip(np.rint(real), -(2.0**31), 2.0**31 - 1), np.int64).astype(np.int32)


def quantize_values(real: Array, q: QParams, low: int = -128, high: int = 127) -> Array:
    """Real values to integers: ties to even, saturated (QuantizeLinear)."""
    return np.asarray(np.clip(np.rint(real.astype(np.float64) / q.scale) + q.zero_point, low, high))
