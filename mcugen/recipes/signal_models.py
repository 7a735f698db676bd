"""A lowered signal chain and the model at its end as one machine model, from samples to results."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from mcugen.core.op import MachineOp
from mcugen.core.passes import check_model, run_passes
from mcugen.core.types import Array, DType, Loc, Model, QParams, TensorType, frozen_array
from mcugen.dsp.chain import LoweredChain
from mcugen.dsp.ops import ConvertUnits, FrameSamples, QuantizeReals, RealSamples
from mcugen.dsp.ops.convert_units import units_of
from mcugen.emit.parts import machine_ops
from mcugen.errors import InputError, UnsupportedError
from mcugen.frontends.pipeline.load import Pipeline
from mcugen.nn.floats import lower_floats
from mcugen.nn.passes import FLOAT_STEPS, INTEGER_STEPS
from mcugen.nn.prune.prune import prune
from mcugen.nn.quantize.losses import losses
from mcugen.nn.quantize.quantize import quantize
from mcugen.nn.source import FakeQuant
from mcugen.recipes.nets import is_net, ranges_of, refuse_options, with_class
from mcugen.recipes.prepared import ExportOptions
from mcugen.recipes.trees import Ways, prove_trees
from mcugen.report.summary import bound_text
from mcugen.target.arena import ArenaPlan, plan_arena
from mcugen.trees.lower import TREE_PASSES, TreeOptions, select_output
from mcugen.trees.proof import score_bound
from mcugen.trees.signals import InputSpec
from mcugen.trees.signals import Signal as Column

#: Windows of a recording that a net is calibrated on, evenly spread.
_CALIBRATION = 512

Dump = Callable[[str, Model], None]


@dataclass(frozen=True, slots=True, eq=False)
class Joined:
    """The whole as one machine model.

    ``scales``, ``offsets``, ``names``: of the elements of a result. ``model`` and ``output``: the float model that it
    stands for and its value. ``lines``: facts for people. ``arena``: of a net.
    """

    machine: Model
    scales: tuple[float, ...]
    offsets: tuple[float, ...]
    names: tuple[str, ...]
    model: Model | None
    output: str
    lines: tuple[tuple[str, str], ...] = ()
    arena: ArenaPlan | None = None


def join(
    pipeline: Pipeline, lowered: LoweredChain, options: ExportOptions, recorded: Array | None, dump: Dump
) -> Joined:
    """Chain and model as one. ``recorded``: what the float chain gives for the user's recording, for nets."""
    if pipeline.model is None:
        return _alone(pipeline, lowered)
    if is_net(pipeline.model):
        return _with_net(pipeline, lowered, options, recorded, dump)
    return _with_trees(pipeline, lowered, options)


def _alone(pipeline: Pipeline, lowered: LoweredChain) -> Joined:
    result, types = lowered.result, dict(lowered.types)
    if len(set(result.scales)) == 1 and not any(result.offsets) and not result.dtype.is_float:
        # All elements share one scale without an offset: their type says so.
        types[lowered.last] = replace(types[lowered.last], q=QParams(result.scales[0]))
    ends = {"inputs": (lowered.first,), "outputs": (lowered.last,)}
    machine = replace(pipeline.chain.model, level="machine", types=types, ops=lowered.ops, **ends)  # type: ignore[arg-type]
    return Joined(machine, result.scales, result.offsets, result.names, None, lowered.last)


def _with_trees(pipeline: Pipeline, lowered: LoweredChain, options: ExportOptions) -> Joined:
    """Trees read the features' integers: the unit of each folds into their thresholds."""
    model, result = pipeline.model, lowered.result
    assert model is not None
    columns = tuple(
        Column() if result.dtype.is_float else Column(s, o) for s, o in zip(result.scales, result.offsets, strict=True)
    )
    ways = Ways(options)
    leaf = DType.of(options.leaf)
    tree_options = TreeOptions(InputSpec(result.dtype, columns), options.output, leaf, ways.decide)
    trees = run_passes(model, TREE_PASSES, tree_options)
    proof = prove_trees(model, trees, tree_options.spec)
    bound = score_bound(trees)
    ways.require_bound(trees)
    machine = _one_model(pipeline, lowered.ops, lowered.types, trees)
    last = trees.types[trees.outputs[0]]
    scale = 1.0 if last.q is None else last.q.scale
    value = {"raw": model.outputs[0], "proba": model.outputs[-1]}.get(options.output, "class")
    names = model.labels if last.count > 1 and model.labels else ("result",) * last.count
    lines = (("bound", bound_text(bound, proof.worst, proof.high - proof.low)),)
    told = select_output(model, tree_options) if options.output == "class" else model  # its value is made by that pass
    return Joined(machine, (scale,) * last.count, (0.0,) * last.count, names, told, value, lines)


def _one_model(
    pipeline: Pipeline, front: tuple[MachineOp, ...], types: Mapping[str, TensorType], model: Model
) -> Model:
    """``front``, whose last op writes what ``model`` reads. Its values get names that the model does not have."""
    taken = set(model.types)
    names = {front[-1].outputs[0]: model.inputs[0]}
    for value in (front[0].inputs[0], *(v for op in front[:-1] for v in op.outputs)):
        name = value
        while name in taken:
            name = f"{name}_"
        names[value] = name
        taken.add(name)
    moved = tuple(
        replace(op, inputs=tuple(names[v] for v in op.inputs), outputs=tuple(names[v] for v in op.outputs))
        for op in front
    )
    own = {names[v]: t for v, t in types.items() if v in names and names[v] != model.inputs[0]}
    chain = pipeline.chain.model
    return replace(
        model,
        name=pipeline.name,
        inputs=(names[front[0].inputs[0]],),
        types={**model.types, **own},
        ops=(*moved, *model.ops),
        source=chain.source,
        features=chain.features,
    )


def _with_net(
    pipeline: Pipeline, lowered: LoweredChain, options: ExportOptions, recorded: Array | None, dump: Dump
) -> Joined:
    """A net reads features or the window in its own integers, or as float32."""
    model = pipeline.model
    assert model is not None
    refuse_options(model, options)
    model = with_class(model) if options.output == "class" else model
    source = run_passes(
        model, FLOAT_STEPS if options.float32 else INTEGER_STEPS, None, lambda step, m: dump(f"net_{step}", m)
    )
    kind = source.types[source.inputs[0]]
    rows = None if recorded is None else _typical(recorded, kind)
    lines: list[tuple[str, str]] = []
    if options.float32:
        net = lower_floats(source)
    else:
        if rows is None and not any(isinstance(op, FakeQuant) for op in source.ops):
            hint = "give a recording of typical samples with --calib, or use --float32"
            raise InputError(source.source.name, "a float net needs data to be quantized", hint)
        quantized = quantize(source, ranges_of(source, None if rows is None else (rows,), options), options.int16)
        net = prune(quantized.machine).machine
        if rows is not None and len(rows):
            lines.append(
                ("net", losses(source, quantized, (rows,))[1][0].text().replace("rows of your data", "windows"))
            )
    check_model(net, "net")
    front, types = _front(lowered, net)
    machine = _one_model(pipeline, front, types, net)
    ops = machine_ops(machine)
    arena = plan_arena(machine, ops)
    lines.insert(0, ("layers", f"{len(ops)} kernels, {sum(op.cost().macs for op in ops):,} multiply-accumulates"))
    lines.insert(1, ("arena", f"{arena.size:,} bytes; no plan can need less than {arena.lower_bound:,}"))
    last = net.types[net.outputs[0]]
    q, n = last.q or QParams(1.0), last.count
    names = tuple(f"{net.outputs[0]}[{i}]" for i in range(n)) if n > 1 else (net.outputs[0],)
    facts = (source, source.outputs[0], tuple(lines), arena)
    return Joined(machine, (q.scale,) * n, (-q.scale * q.zero_point,) * n, names, *facts)


def _typical(recorded: Array, kind: TensorType) -> Array:
    """(N, *shape) float32 of what the chain gives, at most _CALIBRATION of them."""
    chosen = np.unique(np.linspace(0, len(recorded) - 1, min(len(recorded), _CALIBRATION)).astype(int))
    return np.asarray(recorded[chosen], np.float32).reshape(-1, *kind.shape)


def _front(lowered: LoweredChain, net: Model) -> tuple[tuple[MachineOp, ...], dict[str, TensorType]]:
    """The chain's ops and what makes the net's input of their result; samples are converted before they are kept."""
    kind, result = net.types[net.inputs[0]], lowered.result
    types, last = dict(lowered.types), lowered.ops[-1]
    loc = Loc(last.loc.file, "input of the net")
    if not isinstance(last, FrameSamples):
        convert = _conversion(lowered, kind, (last.outputs[0], "net_input"), loc)
        types["net_input"] = kind
        if convert is None:
            return lowered.ops, types
        return (*lowered.ops, convert), types
    convert = _conversion(lowered, kind, (last.inputs[0], "net_sample"), loc)
    if convert is None:
        return lowered.ops, types
    types["net_sample"] = TensorType((len(result.names),), kind.dtype)
    framed = replace(last, inputs=("net_sample",), dtype=kind.dtype)
    return (*lowered.ops[:-1], convert, framed), types


def _conversion(lowered: LoweredChain, kind: TensorType, ends: tuple[str, str], loc: Loc) -> MachineOp | None:
    """The op from what the chain's numbers mean to what the net's mean; None where both are real values."""
    result, place = lowered.result, ((ends[0],), (ends[1],), loc)
    if kind.dtype.is_float:
        if result.dtype.is_float:
            return None
        scales, offsets = (frozen_array(v, np.float32) for v in (result.scales, result.offsets))
        return RealSamples(*place, result.dtype, scales, offsets)
    if kind.q is None:
        raise UnsupportedError(str(loc), f"the net takes {kind.dtype.label} without a scale", "export a float net")
    if result.dtype.is_float:
        return QuantizeReals(*place, kind.dtype, len(result.names), float(np.float32(kind.q.scale)), kind.q.zero_point)
    units = units_of(result.scales, result.offsets, kind.q, str(loc))
    return ConvertUnits(*place, result.dtype, kind.dtype, *units)
