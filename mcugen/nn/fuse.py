"""Which layers can be computed together by rows, and the op that does so. Not here: which of them should be."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from mcugen.core.op import MachineOp
from mcugen.core.types import Loc, Model
from mcugen.nn.ops.row_chain import MOST_LAYERS, MOST_VALUES, RowChain
from mcugen.nn.ops.strip_layers import Image, layer_rows


def images_of(ops: Sequence[MachineOp]) -> dict[str, Image]:
    """Shape and layout of the values of which some layer knows them; ops on single elements hand them on."""
    known: dict[str, Image] = {}
    for op in ops:
        rows = layer_rows(op)
        if rows is not None and rows.images is not None:
            known.setdefault(op.inputs[0], rows.images[0])
            known[op.outputs[0]] = rows.images[1]
    # Forward, then backward, until nothing is learnt: a sum may stand before or after what knows.
    learnt = True
    while learnt:
        learnt = False
        for op in (*ops, *reversed(ops)):
            rows = layer_rows(op)
            if rows is None or rows.images is not None:
                continue
            values = (*op.inputs, *op.outputs)
            found = next((known[v] for v in values if v in known), None)
            for v in values:
                if found is not None and v not in known:
                    known[v], learnt = found, True
    return known


def can_take_part(op: MachineOp, images: Mapping[str, Image]) -> bool:
    """Whether a layer can be computed by rows."""
    rows = layer_rows(op)
    if rows is None or not rows.fits() or len(op.outputs) != 1 or not {*op.inputs, *op.outputs} <= set(images):
        return False
    found = [images[v] for v in (*op.inputs, *op.outputs)]
    if rows.images is not None:
        return tuple(found) == rows.images
    return len(set(found)) == 1 and not found[0].planar


def chain_of(
    model: Model, ops: Sequence[MachineOp], images: Mapping[str, Image], span: tuple[int, int], pixels: int
) -> RowChain | None:
    """The layers ``span`` (first, end) as one op; None where they cannot be."""
    first, end = span
    layers = tuple(ops[first:end])
    made = {v for op in layers for v in op.outputs}
    inputs = list(dict.fromkeys(v for op in layers for v in op.inputs if v not in made))
    later = {v for op in ops[end:] for v in op.inputs} | set(model.outputs)
    leaving = made & later
    if (
        leaving != set(layers[-1].outputs)
        or len(layers) > MOST_LAYERS
        or len(inputs) + len(layers) > MOST_VALUES
        or not all(can_take_part(op, images) for op in layers)
    ):
        return None
    # The input whose memory the output may take over comes first: the largest that nobody needs afterwards, rather one
    # between layers than the model's own, which may be the caller's.
    inputs.sort(key=lambda v: (v in later, v in model.inputs, -model.types[v].count))
    inner = {v: model.types[v] for op in layers[:-1] for v in op.outputs}
    values = {*inputs, *made}
    loc = Loc(layers[0].loc.file, " + ".join(op.loc.item for op in layers))
    return RowChain(tuple(inputs), layers[-1].outputs, loc, layers, inner, {v: images[v] for v in values}, pixels)


def fused(model: Model, spans: Mapping[tuple[int, int], MachineOp]) -> Model:
    """The model with each span of layers replaced by an op."""
    ops, i = [], 0
    ends = {first: (end, op) for (first, end), op in spans.items()}
    while i < len(model.ops):
        if i in ends:
            i, op = ends[i]
            ops.append(op)
        else:
            ops.append(model.ops[i])  # type: ignore[arg-type]
            i += 1
    return replace(model, ops=tuple(ops))
