"""Both references of a signal chain: filters and features in float64 with the library's model, and the integer one."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from mcugen.core.passes import evaluate
from mcugen.core.store import pack
from mcugen.core.stream import OK, respond
from mcugen.core.types import Array, Feature, Model
from mcugen.dsp.stored import CLASSES
from mcugen.frontends.data import as_input, load_table
from mcugen.nn.stored import REGISTRY as NET_CLASSES
from mcugen.trees.signals import InputSpec, Signal
from mcugen.trees.stored import REGISTRY as TREE_CLASSES


@dataclass(frozen=True, slots=True, eq=False)
class SignalReferences:
    """``chain``: source ops on real samples; ``model``: the float model of features, or None, with the value to read.

    ``machine``: the whole in integers. ``spec``: what samples mean; ``scales`` and ``offsets``: what the K elements of
    a result mean, in float64.
    """

    chain: Model
    model: Model | None
    output: str
    machine: Model
    spec: InputSpec
    scales: tuple[float, ...]
    offsets: tuple[float, ...]

    def real(self, x: Array) -> Array:
        """What the float pipeline gives for samples ``x`` (T, C) of the C type: (T', K) float64."""
        value = evaluate(self.chain, {self.chain.inputs[0]: self.spec.values(x)})[self.chain.outputs[0]]
        if self.model is None:
            return value
        return evaluate(self.model, {self.model.inputs[0]: self.model_input(value)})[self.output]

    def model_input(self, value: Array) -> Array:
        """What the float model reads of the chain's results."""
        return value

    def gap(self, x: Array, y: Array) -> Gap:
        """The float pipeline on ``x`` against rows ``y`` (T', K) that the C gives where a result is due."""
        real = np.asarray(self.real(x), np.float64).reshape(len(y), -1)
        found = y.reshape(len(y), -1) * np.array(self.scales) + np.array(self.offsets)
        with np.errstate(invalid="ignore"):
            distance = np.abs(found - real)
        distance = np.where((found == real) | (np.isnan(found) & np.isnan(real)), 0.0, distance)
        kinds = self.output == "class" and self.machine.types[self.machine.outputs[0]].count == 1
        flips = int(np.count_nonzero(found != real)) if kinds else None
        mean, largest = (float(distance.mean()), float(distance.max())) if distance.size else (0.0, 0.0)
        return Gap(len(y), mean, largest, flips)


@dataclass(frozen=True, slots=True, eq=False)
class SignalNetReferences(SignalReferences):
    """The same with a net: a class of its own, for trees and nets have ops of one name."""

    def model_input(self, value: Array) -> Array:
        """(N, *shape) float32, as the net takes it."""
        assert self.model is not None
        shape = self.model.types[self.model.inputs[0]].shape
        return value.astype(np.float32).reshape(len(value), *shape)


@dataclass(frozen=True, slots=True)
class Gap:
    """Over ``results``: distances in the unit of the result; ``flips``: other classes, None where there are none."""

    results: int
    mean: float
    largest: float
    flips: int | None

    def text(self) -> str:
        """One line."""
        if self.flips is not None:
            return f"{self.flips} of {self.results:,} classes differ from the float pipeline"
        return f"against the float pipeline: mean distance {self.mean:.4g}, largest {self.largest:.4g}"


@dataclass(frozen=True, slots=True, eq=False)
class SignalReference:
    """Signal chains: recordings of samples; the distance to the float pipeline is measured."""

    refs: SignalReferences

    @property
    def machine(self) -> Model:
        """The integer reference."""
        return self.refs.machine

    def read(self, path: Path) -> tuple[Array, tuple[str, ...]]:
        """A recording (T, C), see ``read_recording``."""
        return read_recording(path, self.refs.spec, self.machine.features)

    def answer(self, x: Array) -> tuple[Array, str]:
        """A row for each push, zeros where nothing is due; and the distance to the float pipeline."""
        (y,), status = respond(self.machine, {self.machine.inputs[0]: x})
        return y, self.refs.gap(x, y[status == OK]).text()


def read_recording(path: Path, spec: InputSpec, features: tuple[Feature, ...]) -> tuple[Array, tuple[str, ...]]:
    """(T, C) samples of the C type from a user's file, a row an instant, and warnings about their conversion.

    Integers are samples as the converter gives them; floats are real values and become the nearest samples.
    """
    x, warnings = as_input(load_table(path, features).x, spec, str(path), features)
    return x, tuple(warnings)


#: Every class that such a file may hold, by name: with trees, and with a net.
SIGNAL_CLASSES: dict[str, type] = {**TREE_CLASSES, **CLASSES, SignalReferences.__name__: SignalReferences}
SIGNAL_NET_CLASSES: dict[str, type] = {
    **NET_CLASSES,
    **CLASSES,
    **{c.__name__: c for c in (SignalNetReferences, InputSpec, Signal)},
}


def signal_reference_bytes(refs: SignalReferences) -> bytes:
    """The file. The same pipeline gives the same bytes."""
    return pack(refs)
