"""Which images lie in planes and which with their channels interleaved: what costs less to read, in copied elements.

Convolutions write either layout at the same cost. Depthwise ones read planes, all others interleaved channels; ops on
single elements and pools keep the layout that they find. So values fall into groups that lie the same way, and each
group takes the layout for which its readers copy less.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from mcugen.core.types import Model
from mcugen.nn.quantize.scheme import Fused
from mcugen.nn.source import (
    Activation,
    Affine,
    ArgMax,
    Binary,
    Concat,
    Conv,
    DepthToSpace,
    FakeQuant,
    Function,
    GlobalPool,
    Normalize,
    Pad,
    Pool,
    Repeat,
    Slice,
)

_SAME_LAYOUT = (Activation, Affine, FakeQuant, Function, Slice, Pad, Concat, Pool, Repeat, DepthToSpace)
#: How much longer a pool takes on planes, for each element of a window; copying an element is 1 (10 instructions).
_PLANAR_POOL = 0.5


def planar_values(model: Model, steps: tuple[Fused, ...]) -> frozenset[str]:
    """The values that should lie in planes, where they can: those of groups that save copies so.

    On a tie channels are interleaved.
    """
    group = _groups(model, steps)
    planar: dict[str, float] = {}
    interleaved: dict[str, float] = {}
    copies = {(v, False): model.types[v].count for v in model.outputs}  # the caller's order is that of the file
    for step in steps:
        for value in step.op.inputs:
            planes = _reads_planes(step) if not _keeps_layout(model, step) else None
            if planes is not None:
                copies[value, not planes] = model.types[value].count  # one copy serves all who want the same
            root = group[value]
            planar[root] = planar.get(root, 0.0) + _PLANAR_POOL * _pooled(model, step)
    for (value, from_planes), count in copies.items():
        cost = planar if from_planes else interleaved
        cost[group[value]] = cost.get(group[value], 0.0) + count
    return frozenset(v for v, root in group.items() if planar.get(root, 0.0) < interleaved.get(root, 0.0))


def _groups(model: Model, steps: tuple[Fused, ...]) -> Mapping[str, str]:
    """For each value one that stands for its group."""
    parent = {v: v for v in (*model.types, *model.inputs)}

    def root(value: str) -> str:
        while parent[value] != value:
            value = parent[value]
        return value

    for step in steps:
        if _keeps_layout(model, step):
            for value in step.op.inputs:
                # What is repeated is copied anyway, into the layout of the other operand.
                if not isinstance(step.op, Binary) or model.types[value].shape == model.types[step.result].shape:
                    parent[root(value)] = root(step.result)
    return {v: root(v) for v in parent}


def _keeps_layout(model: Model, step: Fused) -> bool:
    op = step.op
    if isinstance(op, Binary):
        return any(model.types[v].shape == model.types[step.result].shape for v in op.inputs)
    return isinstance(op, _SAME_LAYOUT)


def _reads_planes(step: Fused) -> bool | None:
    """Whether an op insists on planes (True) or on interleaved channels (False); None: it takes what it finds."""
    op = step.op
    if isinstance(op, Conv):
        return op.groups > 1 and op.weight.shape[1] == 1
    # Indices are those of the file, and rows, too.
    return True if isinstance(op, ArgMax | Normalize) else None


def _pooled(model: Model, step: Fused) -> int:
    """Elements that a pool adds up or compares."""
    op = step.op
    if isinstance(op, Pool):
        return model.types[step.result].count * prod(op.kernel)
    return model.types[op.inputs[0]].count if isinstance(op, GlobalPool) else 0
