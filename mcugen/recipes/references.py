"""The references of an exported model, whatever its family: its inputs from a file, and what it gives for them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np

from mcugen.core.op import MachineOp
from mcugen.core.passes import evaluate
from mcugen.core.store import unpack
from mcugen.core.stream import has_state, respond
from mcugen.core.types import Array, Model
from mcugen.errors import InputError
from mcugen.frontends.data import as_input, load_table
from mcugen.frontends.tensors import as_net_input, load_samples
from mcugen.nn.float_gap import gap_between
from mcugen.nn.quantize.losses import dequantized
from mcugen.nn.stepping import evaluate_steps
from mcugen.nn.stored import REGISTRY as NET_CLASSES
from mcugen.nn.stored import NetReferences
from mcugen.recipes.signal_references import SIGNAL_CLASSES, SignalReference, SignalReferences
from mcugen.trees.proof import mean_of, reference, score_bound
from mcugen.trees.stored import REGISTRY as TREE_CLASSES
from mcugen.trees.stored import References


class ModelReference(Protocol):
    """What verify, run and profile need of a model."""

    @property
    def machine(self) -> Model:
        """The integer reference."""

    def read(self, path: Path) -> tuple[Array, tuple[str, ...]]:
        """Inputs of the C type from a user's file, and warnings about their conversion."""

    def answer(self, x: Array) -> tuple[Array, str]:
        """Outputs for inputs of the C type, and a line on the distance to the float model.

        A row for each input, also where a model with state gives no result yet: zeros then.
        """


@dataclass(frozen=True, slots=True, eq=False)
class TreeReference:
    """Tree models: tables of features; a proven bound."""

    refs: References

    @property
    def machine(self) -> Model:
        return self.refs.machine

    def read(self, path: Path) -> tuple[Array, tuple[str, ...]]:
        features = self.refs.machine.features
        x, warnings = as_input(load_table(path, features).x, self.refs.spec, str(path), features)
        return x, tuple(warnings)

    def answer(self, x: Array) -> tuple[Array, str]:
        ref = reference(self.refs.source, self.refs.machine, self.refs.spec, x)
        worst, bound = ref.worst / mean_of(self.refs.source), score_bound(self.refs.machine).error
        return ref.y, f"float model on these inputs: worst distance {worst:.4g}, proven bound {bound:.4g}"


@dataclass(frozen=True, slots=True, eq=False)
class NetReference:
    """Nets: samples in the shape of the model file; the distance to the float net is measured."""

    refs: NetReferences

    @property
    def machine(self) -> Model:
        return self.refs.machine

    def read(self, path: Path) -> tuple[Array, tuple[str, ...]]:
        kind = self.machine.types[self.machine.inputs[0]]
        return as_net_input(load_samples(path, kind.shape), kind, str(path)), ()

    def answer(self, x: Array) -> tuple[Array, str]:
        machine, source = self.refs.machine, self.refs.source
        (y,), _ = respond(machine, {machine.inputs[0]: x})
        real_x = x if x.dtype.kind == "f" else dequantized(x, machine.types[machine.inputs[0]]).astype(np.float32)
        if has_state([op for op in machine.ops if isinstance(op, MachineOp)]):
            real = evaluate_steps(source, real_x)
        else:
            with np.errstate(over="ignore", invalid="ignore"):
                real = evaluate(source, {source.inputs[0]: real_x})[source.outputs[0]]
        if x.dtype.kind == "f":
            return y, gap_between(real, y).text()
        gap = np.abs(dequantized(y, machine.types[machine.outputs[0]]).reshape(real.shape) - real)
        return y, f"float net on these inputs: mean distance {gap.mean():.4g}, largest {gap.max():.4g}"


#: What a file of each family may hold.
_CLASSES = {
    References.__name__: TREE_CLASSES,
    NetReferences.__name__: NET_CLASSES,
    SignalReferences.__name__: SIGNAL_CLASSES,
}


def read_references(data: bytes, where: str) -> ModelReference:
    """The references of an export's file; InputError if it is damaged or of another version."""
    value = unpack(data, _CLASSES, where)
    if isinstance(value, References):
        return TreeReference(value)
    if isinstance(value, NetReferences):
        return NetReference(value)
    if isinstance(value, SignalReferences):
        return SignalReference(value)
    raise InputError(where, "is not a reference file", "export the model again")
