"""What is told of a net: in one line, in the summary of an export, in its manifest, and as JSON."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from mcugen.core.op import MachineOp
from mcugen.core.types import Array, Model, TensorType
from mcugen.nn.float_gap import FloatGap
from mcugen.nn.prune.prune import Pruned
from mcugen.nn.quantize.losses import LayerLoss, OutputLoss
from mcugen.nn.vectors import MOST_OWN
from mcugen.recipes.net_samples import Samples
from mcugen.target.arena import ArenaPlan

#: What is known of the distance to the float net.
Loss = tuple[tuple[LayerLoss, ...], tuple[OutputLoss, ...]] | FloatGap | None


@dataclass(frozen=True, slots=True)
class NetCoverage:
    """What the vectors are."""

    own: int
    made: int

    @classmethod
    def of(cls, rows: Samples | None, count: int) -> NetCoverage:
        """Of ``count`` vectors, of which the user's ``rows`` are the first."""
        own = 0 if rows is None else min(len(rows[0]), MOST_OWN)
        return cls(own, count - own)

    def text(self) -> str:
        """One line."""
        return f"{self.own} of your samples, {self.made} of noise and extremes"


def facts_of(
    machine: Model,
    ops: tuple[MachineOp, ...],
    arena: ArenaPlan,
    loss: Loss,
    coverage: NetCoverage,
) -> tuple[tuple[str, str], ...]:
    """Facts for people."""
    macs = sum(op.cost().macs for op in ops)
    facts = [
        ("layers", f"{len(ops)} kernels, {macs:,} multiply-accumulates"),
        ("arena", arena_text(machine, arena)),
        ("vectors", coverage.text()),
    ]
    if isinstance(loss, FloatGap):
        facts.append(("float", loss.text()))
    elif loss is not None:
        layers, outputs = loss
        facts += [("data", output.text()) for output in outputs]
        if layers:
            worst = min(layers, key=lambda v: v.sqnr)
            facts.append(("worst", f"layer {worst.op} {worst.value}: signal to noise {worst.sqnr:.1f} dB"))
    return (*facts, *(("note", n) for n in machine.notes))


def arena_text(machine: Model, arena: ArenaPlan) -> str:
    """The size of the arena, what is in it, and the bound."""
    ports = sum(machine.types[v].count * machine.types[v].dtype.size for v in (*machine.inputs, *machine.outputs))
    io = f"with the {ports:,} of input and output" if arena.ports else f"input and output are yours, {ports:,} more"
    return f"{arena.size:,} bytes, {io}; no plan can need less than {arena.lower_bound:,}"


def removed_facts(pruned: Pruned | None) -> tuple[tuple[str, str], ...]:
    return (("removed", pruned.text()),) if pruned is not None and pruned.trims else ()


def layer_lines(layers: tuple[LayerLoss, ...]) -> list[str]:
    """The table of layers: range, scale, signal to noise, saturated elements."""
    lines = [f"{'op':<12} {'low':>10} {'high':>10} {'scale':>12} {'SQNR dB':>8} {'saturated':>12}  value"]
    for v in layers:
        saturated = f"{v.saturated}/{v.count}"
        lines.append(
            f"{v.op:<12} {v.low:>10.4g} {v.high:>10.4g} {v.scale:>12.6g} {v.sqnr:>8.1f} {saturated:>12}  {v.value}"
        )
    return lines


def verification_of(loss: Loss, x: Array) -> dict[str, Any]:
    """The family's part of the manifest's entry."""
    entry: dict[str, Any] = {"vectors": len(x)}
    if isinstance(loss, FloatGap):
        entry["float_model"] = {"rows": loss.vectors, "worst_error": loss.largest, "worst_relative": loss.relative}
        if loss.flips is not None:
            entry["float_model"]["flips"] = loss.flips
    elif loss is not None:
        layers, outputs = loss
        first = outputs[0]
        entry["float_model"] = {
            "rows": first.rows,
            "worst_error": max(out.largest for out in outputs),
            "mean_error": max(out.mean for out in outputs),
            "flips": first.flips,
            "layers": [
                {"value": v.value, "op": v.op, "sqnr": round(v.sqnr, 2), "saturated": v.saturated} for v in layers
            ],
        }
        if len(outputs) > 1:
            entry["float_model"]["outputs"] = [
                {"name": o.name, "worst_error": o.largest, "mean_error": o.mean, "flips": o.flips} for o in outputs
            ]
    return entry


def describe_net(source: Model) -> str:
    """One line on a net."""
    x, y = (" + ".join(_shape(source.types[v]) for v in side) for side in (source.inputs, source.outputs))
    sizes = f"{x} in, {y} out, {_weights(source):,} weights"
    return f"{source.source.name}: net of {len(source.ops)} ops, {sizes}"


def _shape(t: TensorType) -> str:
    return "x".join(map(str, t.shape))


def _weights(source: Model) -> int:
    arrays = [getattr(op, name, None) for op in source.ops for name in ("weight", "w", "r")]
    return sum(prod(a.shape) for a in arrays if isinstance(a, np.ndarray))


def net_facts(source: Model) -> dict[str, Any]:
    """Facts on a net as JSON values."""
    kinds: dict[str, int] = {}
    for op in source.ops:
        kinds[type(op).__name__] = kinds.get(type(op).__name__, 0) + 1
    return {
        "source": source.source.name,
        "format": source.source.format,
        "sha256": source.source.sha256,
        "inputs": {v: list(source.types[v].shape) for v in source.inputs},
        "outputs": {v: list(source.types[v].shape) for v in source.outputs},
        "ops": kinds,
        "weights": _weights(source),
        "notes": list(source.notes),
    }
