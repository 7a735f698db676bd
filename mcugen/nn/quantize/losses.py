"""What quantization costs, layer by layer and at the outputs, on the user's data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mcugen.core.passes import evaluate
from mcugen.core.types import Array, Model, TensorType
from mcugen.nn.quantize.params import quantize_values
from mcugen.nn.quantize.quantize import Quantized
from mcugen.nn.quantize.stored import Stored

_ROWS = 64


@dataclass(frozen=True, slots=True)
class LayerLoss:
    """One value: its float range, its scale, signal to quantization noise in dB, and saturated elements of all."""

    value: str
    op: str
    low: float
    high: float
    scale: float
    sqnr: float
    saturated: int
    count: int


@dataclass(frozen=True, slots=True)
class OutputLoss:
    """An output on ``rows`` samples: errors, the mean one relative to the mean magnitude, and argmax flips.

    ``flips`` is None where the output is one number. ``name``: of the output, empty where it is the only one.
    """

    name: str
    rows: int
    largest: float
    mean: float
    relative: float
    flips: int | None

    def text(self) -> str:
        """One line."""
        labels = "" if self.flips is None else f", {self.flips} argmax flips"
        name = f"{self.name}, " if self.name else ""
        return (
            f"{name}on {self.rows} rows of your data: mean error {self.mean:.3g} ({100 * self.relative:.2g} %), "
            f"largest {self.largest:.3g}{labels}"
        )


def losses(
    source: Model, quantized: Quantized, x: Sequence[Array]
) -> tuple[tuple[LayerLoss, ...], tuple[OutputLoss, ...]]:
    """Float and integer net side by side on float inputs ``x``, (N, *shape) for each; at most the first rows."""
    machine = quantized.machine
    rows = [data[:_ROWS] for data in x]
    real = evaluate(source, dict(zip(source.inputs, rows, strict=True)))
    integers = (as_integers(data, machine.types[v]) for v, data in zip(machine.inputs, rows, strict=True))
    found = evaluate(machine, dict(zip(machine.inputs, integers, strict=True)))
    table = []
    for op in source.ops:
        for value in op.outputs:
            stored = quantized.stored.get(value)
            if stored is not None and machine.types[stored.name].q is not None:
                table.append(_layer(value, type(op).__name__, real[value], found[stored.name], stored, machine))
    outputs = []
    for of_file, of_machine in zip(source.outputs, machine.outputs, strict=True):
        expected, y = real[of_file], dequantized(found[of_machine], machine.types[of_machine])
        name = of_file if len(source.outputs) > 1 else ""
        outputs.append(_output(name, expected, y.reshape(expected.shape)))
    return tuple(table), tuple(outputs)


def as_integers(real: Array, kind: TensorType) -> Array:
    """Real inputs as a quantized net takes them."""
    assert kind.q is not None
    return quantize_values(real, kind.q, kind.dtype.min, kind.dtype.max).astype(kind.dtype.np)


def dequantized(q: Array, kind: TensorType) -> Array:
    """Integers as real numbers; what has no scale is returned as it is."""
    if kind.q is None:
        return q.astype(np.float64)
    return np.asarray((q.astype(np.float64) - kind.q.zero_point) * kind.q.scale)


def _layer(value: str, op: str, real: Array, q: Array, stored: Stored, machine: Model) -> LayerLoss:
    kind = machine.types[stored.name]
    assert kind.q is not None
    inverse = np.argsort(stored.order)
    logical = q.reshape(len(q), *stored.physical).transpose(0, *(1 + i for i in inverse)).reshape(real.shape)
    noise = float(((dequantized(logical, kind) - real) ** 2).sum())
    signal = float((real.astype(np.float64) ** 2).sum())
    sqnr = 200.0 if noise == 0.0 else 10.0 * float(np.log10(max(signal, 1e-300) / noise))
    low, high = kind.dtype.min, kind.dtype.max
    real_low, real_high = ((v - kind.q.zero_point) * kind.q.scale for v in (low, high))
    beyond = (real < real_low - kind.q.scale / 2) | (real > real_high + kind.q.scale / 2)
    saturated = int(np.count_nonzero(beyond))
    return LayerLoss(value, op, float(real.min()), float(real.max()), kind.q.scale, sqnr, saturated, real.size)


def _output(name: str, real: Array, found: Array) -> OutputLoss:
    gap = np.abs(found - real)
    flat, got = real.reshape(len(real), -1), found.reshape(len(real), -1)
    flips = int(np.count_nonzero(flat.argmax(axis=1) != got.argmax(axis=1))) if flat.shape[1] > 1 else None
    scale = max(float(np.abs(real).mean()), 1e-300)
    return OutputLoss(name, len(real), float(gap.max()), float(gap.mean()), float(gap.mean()) / scale, flips)
