"""The pass: intervals forward, needs backward, then every op on what is left of its operands."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mcugen.core.op import MachineOp
from mcugen.core.types import Model, TensorType
from mcugen.nn.ops.move import Move
from mcugen.nn.ops.qadd import QAdd
from mcugen.nn.ops.qconcat import QConcat
from mcugen.nn.ops.qconv import QConv
from mcugen.nn.ops.qdense import QDense
from mcugen.nn.ops.qdepthwise import QDepthwise
from mcugen.nn.ops.qgate import QGate
from mcugen.nn.ops.qmul import QMul
from mcugen.nn.ops.qpool import QPool
from mcugen.nn.ops.qscale import QScale
from mcugen.nn.ops.qtable import QTable
from mcugen.nn.prune.masks import Bounds, Gone, kept_shape
from mcugen.nn.prune.others import TrimAdd, TrimConcat, TrimGate, TrimMove, TrimMul, TrimPool, TrimScale, TrimTable
from mcugen.nn.prune.products import TrimConv, TrimDense, TrimDepthwise
from mcugen.nn.prune.trimmer import Trimmer, Whole, type_bounds

#: One row an op that can be made smaller. All others keep all operands and results.
TRIMMERS: dict[type[MachineOp], type[Trimmer[Any]]] = {
    QConv: TrimConv,
    QDepthwise: TrimDepthwise,
    QDense: TrimDense,
    QTable: TrimTable,
    QAdd: TrimAdd,
    QMul: TrimMul,
    QGate: TrimGate,
    QScale: TrimScale,
    QPool: TrimPool,
    QConcat: TrimConcat,
    Move: TrimMove,
}


@dataclass(frozen=True, slots=True)
class Trim:
    """What one layer with weights lost: weights and outputs (channels, or elements of a dense layer)."""

    layer: str
    outputs: int
    outputs_left: int
    weights: int
    weights_left: int


@dataclass(frozen=True, slots=True, eq=False)
class Pruned:
    """``machine``: the smaller net, or the same one where nothing was dead. ``trims``: layers that lost something."""

    machine: Model
    trims: tuple[Trim, ...]
    weights: tuple[int, int]
    macs: tuple[int, int]

    def text(self) -> str:
        """One line; empty if nothing was removed."""
        if not self.trims:
            return ""
        channels = sum(t.outputs - t.outputs_left for t in self.trims)
        share = 100.0 * self.macs[1] / max(self.macs[0], 1)
        return (
            f"{channels} channels are constant or unread: {self.weights[0]:,} weights became {self.weights[1]:,}, "
            f"{share:.1f} % of the multiply-accumulates are left, every bit is the same"
        )

    def lines(self) -> tuple[str, ...]:
        """A line a layer."""
        return tuple(
            f"{t.layer}: {t.outputs_left} of {t.outputs} outputs, {t.weights_left:,} of {t.weights:,} weights are left"
            for t in self.trims
        )


def prune(model: Model) -> Pruned:
    """A machine model to one that gives the same bits with fewer channels.

    Intervals of every element (exact for each op, its operands taken as independent) show what is constant; an element
    goes if each reader can do without it, a constant by folding it into its bias. Nothing depends on a tolerance.
    """
    trimmers = _trimmers(model)
    gone = _needs(model, trimmers)
    ops: list[MachineOp] = []
    trims: list[Trim] = []
    for trimmer in trimmers:
        op = trimmer.op
        values = (*op.inputs, *op.outputs)
        smaller = None if gone.all(op.outputs) else trimmer.trimmed(gone) if gone.any(values) else op
        if smaller is not None:
            ops.append(smaller)
        if smaller is not op and isinstance(op, QConv | QDepthwise | QDense):
            trims.append(_trim(op, smaller))
    before = [t.op for t in trimmers]
    pruned = model if ops == before else replace(model, ops=tuple(ops), types=_types(model, ops, gone))
    return Pruned(pruned, tuple(trims), (_weights(before), _weights(ops)), (_macs(before), _macs(ops)))


def _trimmers(model: Model) -> list[Trimmer[Any]]:
    """One for each op, with the bounds of its operands."""
    known: dict[str, Bounds] = {v: type_bounds(model.types[v]) for v in model.inputs}
    trimmers = []
    for op in model.ops:
        assert isinstance(op, MachineOp)
        trimmer = TRIMMERS.get(type(op), Whole)(op, tuple(known[v] for v in op.inputs), model.types)
        known |= zip(op.outputs, trimmer.bounds(), strict=True)
        trimmers.append(trimmer)
    return trimmers


def _needs(model: Model, trimmers: list[Trimmer[Any]]) -> Gone:
    """Everything is gone but inputs and outputs of the net; then ops take back what they need, until all have it."""
    ends = {*model.inputs, *model.outputs}
    written = [v for t in trimmers for v in t.op.outputs]
    gone = Gone({v: np.full(model.types[v].count, v not in ends) for v in (*model.inputs, *written)})
    gone.changed = True
    while gone.changed:
        gone.changed = False
        for trimmer in reversed(trimmers):
            if not gone.all(trimmer.op.outputs):
                trimmer.keep(gone)
    return gone


def _types(model: Model, ops: list[MachineOp], gone: Gone) -> Mapping[str, TensorType]:
    """The values that are left, each with the shape of what is left of it."""
    values = (*model.inputs, *(v for op in ops for v in op.outputs))
    types = {v: model.types[v] for v in values}
    return {v: replace(t, shape=kept_shape(t.shape, gone.of(v))) if gone.any((v,)) else t for v, t in types.items()}


def _trim(op: QConv | QDepthwise | QDense, left: MachineOp | None) -> Trim:
    assert left is None or isinstance(left, QConv | QDepthwise | QDense)
    outputs, weights = (0, 0) if left is None else (len(left.weight), int(left.weight.size))
    return Trim(op.loc.item, len(op.weight), outputs, int(op.weight.size), weights)


def _weights(ops: Iterable[MachineOp]) -> int:
    return sum(int(op.weight.size) for op in ops if isinstance(op, QConv | QDepthwise | QDense))


def _macs(ops: Iterable[MachineOp]) -> int:
    return sum(op.cost().macs for op in ops)
