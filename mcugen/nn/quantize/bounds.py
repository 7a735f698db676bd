"""The range of a value from the scales of what it is computed from, where a file with scales leaves it out.

Only where that is no worse than data would be: functions of single elements, sums and products of two, and moves.
Means and layers with weights reach a small part of their bounds: for those the user's data must speak.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from mcugen.core.types import Array, QParams, TensorType
from mcugen.nn.quantize.ranges import Range
from mcugen.nn.source import Activation, Affine, Binary, Concat, Dense, Function, LogSoftmax, NetOp, Pad


def bounds_of(
    op: NetOp, low: float, high: float, params: Mapping[str, QParams], types: Mapping[str, TensorType]
) -> Range | None:
    """The least and the greatest result of ``op`` with a clamp to [``low``, ``high``] behind it; None if not known."""
    if any(v not in params for v in op.inputs):
        return None
    reached = _reached(op, [_ends(params[v]) for v in op.inputs], types[op.inputs[0]].shape)
    if reached is None:
        return None
    finite = np.clip(reached[np.isfinite(reached)], low, high)
    return Range(float(finite.min()), float(finite.max())) if finite.size else None


def _ends(q: QParams) -> Array:
    return (np.array([-128.0, 127.0]) - q.zero_point) * q.scale


def _reached(op: NetOp, ends: Sequence[Array], shape: tuple[int, ...]) -> Array | None:
    """Results that hold the least and the greatest; ``shape``: that of the first operand."""
    match op:
        case Activation() | Function():
            x = np.linspace(ends[0][0], ends[0][1], 256).astype(np.float32)
            return np.asarray(op.eval(x[None])[0], np.float64)
        case Affine():
            return np.asarray(np.outer(ends[0], op.scale) + op.offset)
        case Binary():
            a, b = np.meshgrid(*ends)
            return np.asarray(a + b if op.kind == "add" else a - b if op.kind == "sub" else a * b)
        case LogSoftmax():  # one element at the lower end, all others at the upper; a certain one is 0
            return np.array([ends[0][0] - ends[0][1] - np.log(shape[op.axis]), 0.0])
        case Concat():
            return np.concatenate(ends)
        case Dense() if _is_mean(op):
            return ends[0]
        case Pad():
            return np.append(ends[0], op.value)
    return None


def _is_mean(op: Dense) -> bool:
    """Whether every output is a weighted mean of inputs, as linear resizing gives it."""
    sums = op.weight.astype(np.float64).sum(axis=1)
    return bool((op.weight >= 0).all() and np.abs(sums - 1.0).max() < 1e-5 and not op.bias.any())
