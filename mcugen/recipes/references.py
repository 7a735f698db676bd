"""The references of an exported model, whatever its family: its inputs from a file, and what it gives for them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np

from mcugen.core.op import MachineOp
from mcugen.core.passes import evaluate
from mcugen.core.ports import join_rows, split_rows
from mcugen.core.store import unpack
from mcugen.core.stream import has_state, respond
from mcugen.core.types import Array, Model
from mcugen.emit.parts import ports_of
from mcugen.errors import InputError
from mcugen.frontends.data import as_input, load_table
from mcugen.nn.float_gap import gap_between, worst_gap
from mcugen.nn.quantize.losses import dequantized
from mcugen.nn.stepping import evaluate_steps
from mcugen.nn.stored import REGISTRY as NET_CLASSES
from mcugen.nn.stored import NetReferences
from mcugen.recipes.net_samples import as_net_inputs, inputs_of, load_net_samples
from mcugen.recipes.signal_references import (
    SIGNAL_CLASSES,
    SIGNAL_NET_CLASSES,
    SignalNetReferences,
    SignalReference,
    SignalReferences,
)
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
        table = load_table(path, features)
        x, warnings = as_input(table.x, self.refs.spec, str(path), features)
        return x, (*table.notes, *warnings)

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
        samples = as_net_inputs(load_net_samples(path, self.machine), self.machine, str(path))
        return join_rows(inputs_of(self.machine), samples), ()

    def answer(self, x: Array) -> tuple[Array, str]:
        machine, source = self.refs.machine, self.refs.source
        ins, outs = ports_of(machine)
        inputs = split_rows(ins, x)
        outputs, _ = respond(machine, dict(zip(machine.inputs, inputs, strict=True)))
        is_float = ins[0].dtype.is_float
        kinds = [machine.types[v] for v in machine.inputs]
        real_x = [a if is_float else dequantized(a, t).astype(np.float32) for a, t in zip(inputs, kinds, strict=True)]
        real = self._real(real_x)
        y = join_rows(outs, outputs)
        if is_float:
            return y, worst_gap([gap_between(r, f) for r, f in zip(real, outputs, strict=True)]).text()
        gaps = [
            np.abs(dequantized(f, machine.types[v]).reshape(r.shape) - r)
            for v, f, r in zip(machine.outputs, outputs, real, strict=True)
        ]
        several = len(gaps) > 1
        texts = [
            f"{v + ' ' if several else ''}mean distance {gap.mean():.4g}, largest {gap.max():.4g}"
            for v, gap in zip(source.outputs, gaps, strict=True)
        ]
        return y, f"float net on these inputs: {'; '.join(texts)}"

    def _real(self, x: list[Array]) -> tuple[Array, ...]:
        """The outputs of the float net."""
        machine, source = self.refs.machine, self.refs.source
        if has_state([op for op in machine.ops if isinstance(op, MachineOp)]):
            return (evaluate_steps(source, x[0]),)
        with np.errstate(over="ignore", invalid="ignore"):
            values = evaluate(source, dict(zip(source.inputs, x, strict=True)))
        return tuple(values[v] for v in source.outputs)


#: What a file of each family may hold.
_CLASSES = {
    References.__name__: TREE_CLASSES,
    NetReferences.__name__: NET_CLASSES,
    SignalReferences.__name__: SIGNAL_CLASSES,
    SignalNetReferences.__name__: SIGNAL_NET_CLASSES,
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
