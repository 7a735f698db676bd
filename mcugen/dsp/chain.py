"""A whole chain of source ops, filters and then a window, as machine ops, and what the numbers at its end mean."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from mcugen.core.op import MachineOp
from mcugen.core.types import Array, Model, TensorType
from mcugen.dsp.analysis import FilterReport
from mcugen.dsp.lower import FilterChoices, lower_filters
from mcugen.dsp.lower_features import check_signal, lower_window
from mcugen.dsp.ops.frame_samples import FrameSamples
from mcugen.dsp.signal import Signal
from mcugen.dsp.source import Features, FilterSource, Frames
from mcugen.errors import InternalError


@dataclass(frozen=True, slots=True, eq=False)
class LoweredChain:
    """``ops`` in a line from value ``first`` to ``last``; ``reports`` one a filter.

    ``result``: the names of the K elements of a result, their type and what their numbers mean; of frames, of the
    channels.
    """

    ops: tuple[MachineOp, ...]
    types: Mapping[str, TensorType]
    first: str
    last: str
    result: Signal
    reports: tuple[FilterReport, ...]

    def run(self, samples: Array) -> Array:
        """(T, C) samples of the C type, from a fresh state, to the results (T', K) of its type, or frames (T', ...)."""
        value = samples
        for op in self.ops:
            (value,) = op.eval(value)
        return value

    def real(self, results: Array) -> Array:
        """What results (..., K) mean, float64; computed as trees fold it into their thresholds."""
        real = results.astype(np.float64)
        if self.result.dtype.is_float:
            return real
        scales, offsets = np.array(self.result.scales), np.array(self.result.offsets)
        if self.ops and isinstance(self.ops[-1], FrameSamples) and self.ops[-1].planar:
            scales, offsets = scales[:, None], offsets[:, None]
        return np.asarray(real * scales + offsets)


def lower_chain(model: Model, signal: Signal, choices: FilterChoices) -> LoweredChain:
    """The machine ops of a source model of filters and at most one Features or Frames op at its end.

    What is chosen depends on the model and the choices alone, not on recorded data: whoever computes features to
    train on gets those of the device. InputError or UnsupportedError for what cannot be computed.
    """
    check_signal(signal, model.source.name)
    filters = tuple(op for op in model.ops if isinstance(op, FilterSource))
    rest = model.ops[len(filters) :]
    lowered = lower_filters(filters, signal, choices)
    types = {model.inputs[0]: signal.type, **lowered.types}
    ops, result = lowered.ops, lowered.signal
    for op in rest:
        if isinstance(op, Frames) and len(rest) == 1:
            width = len(result.names)
            frame = FrameSamples(op.inputs, op.outputs, op.loc, result.dtype, width, op.length, op.step, op.planar)
            ops = (*ops, frame)
            types[op.outputs[0]] = TensorType(model.types[op.outputs[0]].shape, result.dtype)
            continue
        if not isinstance(op, Features) or len(rest) > 1:
            raise InternalError(str(op.loc), f"{type(op).__name__} at the end of a chain")
        machine, result = lower_window(op, result)
        ops = (*ops, machine)
        types[op.outputs[0]] = result.type
    return LoweredChain(ops, types, model.inputs[0], model.outputs[0], result, lowered.reports)
