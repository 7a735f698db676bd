"""Small nets: simplified in float, quantized with the file's own scales or the user's data, planned into an arena."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np

from mcugen.core.passes import check_model, run_passes
from mcugen.core.ports import join_rows
from mcugen.core.stream import respond
from mcugen.core.types import Array, DType, Loc, Model, TensorType
from mcugen.emit.parts import machine_ops, ports_of
from mcugen.emit.selftest import Vectors
from mcugen.errors import InputError, InternalError, UnsupportedError
from mcugen.nn.float_gap import float_gaps
from mcugen.nn.floats import lower_floats
from mcugen.nn.passes import FLOAT_STEPS, INTEGER_STEPS
from mcugen.nn.prune.prune import prune
from mcugen.nn.quantize.losses import losses
from mcugen.nn.quantize.quantize import Quantized, quantize
from mcugen.nn.quantize.ranges import Range, check_calibration, value_ranges
from mcugen.nn.source import ArgMax, FakeQuant, LogSoftmax, NetOp, Reshape, Softmax, Transpose
from mcugen.nn.stored import net_reference_bytes
from mcugen.recipes.flash import spend_flash
from mcugen.recipes.memory import LoweredNet, choose_memory, too_small
from mcugen.recipes.net_report import (
    Loss,
    NetCoverage,
    describe_net,
    facts_of,
    layer_lines,
    removed_facts,
    verification_of,
)
from mcugen.recipes.net_samples import (
    Samples,
    as_net_inputs,
    load_net_samples,
    real_samples,
    require_real,
    vectors_of,
)
from mcugen.recipes.prepared import ExportOptions, Prepared, dumper
from mcugen.target.arena import ArenaPlan, plan_arena

#: Bytes of inputs and outputs in the golden file.
_GOLDEN_BYTES = 256 * 1024

#: Of each output of the model file, without the batch axis.
Shapes = tuple[tuple[int, ...], ...]


def is_net(model: Model) -> bool:
    """Whether a source model is of this family."""
    return isinstance(model.ops[0], NetOp)


def prepare_net(model: Model, options: ExportOptions, progress: Callable[[str], None]) -> Prepared:
    """A net, quantized or in float32, planned, and its reference computed."""
    refuse_options(model, options)
    model = with_class(model) if options.output == "class" else model
    dump = dumper(options.dump_ir)
    source = run_passes(model, FLOAT_STEPS if options.float32 else INTEGER_STEPS, None, dump)
    shapes = tuple(model.types[v].shape for v in model.outputs)
    progress("lowering" if options.float32 else "quantizing")
    own = None if options.calib is None else load_net_samples(options.calib, source)
    if options.float32:
        quantized, pruned, plan, (full, arena) = None, None, None, _floats(source, shapes, options)
        machine = full
    else:
        plan = spend_flash(choose_memory(options, _lowerer(source, shapes, own, options)), options)
        quantized, full, pruned = plan.net.quantized, plan.net.full, plan.net.pruned
        machine, arena = plan.machine, plan.arena
    step = "lower" if quantized is None else "quantize"
    check_model(full, step)
    dump(step, full)
    if machine is not full:
        check_model(machine, "prune")
        dump("prune", machine)
    ops = machine_ops(machine)
    progress("computing references")
    rows = None if own is None else as_net_inputs(own, machine, str(options.calib))
    inputs = vectors_of(machine, rows)
    outputs = _outputs(full, machine, inputs)
    x, y = (join_rows(p, v) for p, v in zip(ports_of(machine), (inputs, outputs), strict=True))
    golden = _golden(x, y)
    loss = float_gaps(source, inputs, outputs) if quantized is None else loss_of(source, quantized, own)
    coverage = NetCoverage.of(rows, len(x))
    return Prepared(
        machine=machine,
        arena=arena,
        x=x,
        y=y,
        trace=None,
        golden=golden,
        stored=net_reference_bytes(source, machine),
        proof=loss,
        coverage=coverage,
        verification=verification_of(loss, x),
        recorded=recorded_of(options) | {"io": "arena" if in_arena(options) else "caller"},
        spend_ram=False,  # weights stay in flash: the fast RAM is the arena's
        move_kernels=options.optimize != "ram",
        title=describe_net(source),
        facts=(
            *facts_of(machine, ops, arena, loss, coverage),
            *removed_facts(pruned),
            *(plan.facts() if plan else ()),
        ),
        details=(
            *(layer_lines(loss[0]) if isinstance(loss, tuple) else ()),
            *(pruned.lines() if pruned else ()),
            *(plan.details() if plan else ()),
        ),
        against="float32 reference" if options.float32 else "integer reference",
    )


def _outputs(full: Model, machine: Model, inputs: tuple[Array, ...]) -> tuple[Array, ...]:
    """What the net gives, with all its channels and without the dead ones; InternalError where that is not the same."""
    outputs, _ = respond(full, dict(zip(full.inputs, inputs, strict=True)))
    if machine is not full:
        again, _ = respond(machine, dict(zip(machine.inputs, inputs, strict=True)))
        if any((a != b).any() for a, b in zip(outputs, again, strict=True)):
            raise InternalError(machine.source.name, "without its dead channels the net gives other bits")
    return outputs


def refuse_options(model: Model, options: ExportOptions) -> None:
    """Options that mean nothing for a net."""
    if options.spec is not None:
        raise UnsupportedError("--spec", "is for tree models; a net's input scale comes from --calib", "remove it")
    if options.max_error is not None:
        raise UnsupportedError("--max-error", "is for trees; the loss of a net is measured on --calib", "remove it")
    if options.output == "proba":
        raise UnsupportedError("--output", "proba for a net", "end the net with a Softmax")
    dtype, other = ("float32", "int8") if options.float32 else ("int8", "float32")
    if options.input_dtype not in ("auto", dtype):
        hint = f"use {dtype}, or leave it out"
        if options.input_dtype == other:
            hint = "leave out --float32" if options.float32 else "use --float32 for a net in float32"
        raise UnsupportedError("--input-dtype", f"{options.input_dtype} for a net in {dtype}", hint)
    if options.float32 and options.max_flash is not None:
        raise UnsupportedError("--max-flash", "is for nets in int8", "leave one of the two out")


def in_arena(options: ExportOptions) -> bool:
    """Whether inputs and outputs of a net get places in its arena."""
    return options.io != "caller"


def _floats(source: Model, shapes: Shapes, options: ExportOptions) -> tuple[Model, ArenaPlan]:
    """The net in float32, which has one plan."""
    machine = with_outputs_of(lower_floats(source), source.outputs, shapes)
    arena = plan_arena(machine, machine_ops(machine), ports=in_arena(options))
    if options.max_ram is not None and arena.size > options.max_ram:
        raise too_small(options.max_ram, arena)
    return machine, arena


def _lowerer(
    source: Model, shapes: Shapes, own: Samples | None, options: ExportOptions
) -> Callable[[bool], LoweredNet]:
    """Quantizes the net, with planes for depthwise layers (False) or without (True)."""
    ranges = ranges_of(source, own, options)

    def lower(interleaved: bool) -> LoweredNet:
        quantized = quantize(source, ranges, options.int16, interleaved)
        full = with_outputs_of(quantized.machine, source.outputs, shapes)
        return LoweredNet(quantized, full, prune(full), in_arena(options))

    return lower


def with_outputs_of(machine: Model, names: tuple[str, ...], shapes: Shapes) -> Model:
    """A machine model whose outputs have the names and shapes of the model file.

    Several outputs are told apart by their names; a Flatten at the end of a file leaves its shape, and no kernel.
    """
    machine = _with_output_names(machine, names)
    types = dict(machine.types)
    for value, shape in zip(machine.outputs, shapes, strict=True):
        if types[value].count == prod(shape):
            types[value] = replace(types[value], shape=shape)
    return replace(machine, types=types)


def _with_output_names(machine: Model, names: tuple[str, ...]) -> Model:
    if len(names) == len(machine.inputs) == 1 or machine.outputs == names:
        return machine
    new = dict(zip(machine.outputs, names, strict=True))
    taken = (set(machine.types) - set(machine.outputs)) & set(names)
    new |= {v: f"{v} inside" for v in taken}

    def renamed(values: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(new.get(v, v) for v in values)

    ops = tuple(replace(op, inputs=renamed(op.inputs), outputs=renamed(op.outputs)) for op in machine.ops)
    types = {new.get(v, v): t for v, t in machine.types.items()}
    return replace(machine, ops=ops, types=types, outputs=names)


def with_class(model: Model) -> Model:
    """With the index of the largest element of the output instead of the output, the lowest on ties."""
    if len(model.outputs) != 1:
        what = f"{model.source.name} has {len(model.outputs)} outputs"
        raise UnsupportedError("--output class", what, "leave the option out")
    (scores,) = model.outputs
    shape = model.types[scores].shape
    if model.types[scores].dtype is not DType.F32:
        return model  # the file ends with an index
    axis = max(range(len(shape)), key=lambda a: shape[a])
    if not 1 < shape[axis] == prod(shape):
        what = f"{model.source.name} has an output of shape {list(shape)}"
        raise UnsupportedError("--output class", what, "leave the option out")
    scores, shape, axis = _before_softmax(model, scores, axis)
    op = ArgMax((scores,), ("class",), Loc(model.source.name, "class"), axis=axis, keepdims=True)
    kind = TensorType(op.result_shapes(shape)[0], op.result)
    return replace(model, ops=(*model.ops, op), types={**model.types, "class": kind}, outputs=("class",))


def _before_softmax(model: Model, scores: str, axis: int) -> tuple[str, tuple[int, ...], int]:
    """What the last softmax, or logarithm of one, gets, with its shape and axis: it is the largest where the result is.
    ``scores`` and ``axis`` where there is none, or where a QDQ file quantizes its result: then equals of rounding are
    equals of the file."""
    writers = {v: op for op in model.ops for v in op.outputs}
    found, value = (scores, axis), scores
    while value in writers:
        op = writers[value]
        shape = model.types[value].shape
        if isinstance(op, Softmax | LogSoftmax) and shape[op.axis] == prod(shape):
            found = (op.inputs[0], op.axis)
        elif not isinstance(op, Reshape | Transpose):
            break
        value = op.inputs[0]
    return found[0], model.types[found[0]].shape, found[1]


def ranges_of(source: Model, own: Samples | None, options: ExportOptions) -> dict[str, Range] | None:
    """The range of every value on the user's data; None where the file brings scales, and there is no data."""
    brings_scales = any(isinstance(op, FakeQuant) for op in source.ops)
    if own is None:
        if not brings_scales:
            hint = "give typical inputs with --calib FILE.npz (samples under the key x), or use --float32"
            raise InputError(source.source.name, "a float net needs data to be quantized", hint)
        return None
    where = str(options.calib)
    require_real(own, where)
    shapes = [source.types[v].shape for v in source.inputs]
    data = [check_calibration(x, shape, where) for x, shape in zip(own, shapes, strict=True)]
    return value_ranges(source, data, options.calib_method)


def loss_of(source: Model, quantized: Quantized, own: Samples | None) -> Loss:
    """What quantization costs on the user's data, if there is any."""
    real = real_samples(own)
    return None if real is None else losses(source, quantized, real)


def _golden(x: Array, y: Array) -> Vectors:
    """As many vectors as fit, from the front (the user's own) and from the back (extremes)."""
    size = x[:1].nbytes + y[:1].nbytes
    count = int(np.clip(_GOLDEN_BYTES // max(size, 1), 2, len(x)))
    chosen = np.unique(np.concatenate([np.arange((count + 1) // 2), len(x) - 1 - np.arange(count // 2)]))
    return Vectors(x[chosen], y[chosen])


def recorded_of(options: ExportOptions) -> dict[str, Any]:
    """The options that shaped the files, for the manifest."""
    return {
        "input_dtype": "float32" if options.float32 else "int8",
        "calib_method": options.calib_method,
        "int16": list(options.int16),
        "optimize": options.optimize,
        "max_ram": options.max_ram,
        "max_flash": options.max_flash,
        "place": dict(sorted(options.place.items())),
    }
