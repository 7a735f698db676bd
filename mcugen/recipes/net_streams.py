"""Nets that take one time step a push: quantized as the net over the whole sequence, and equal to it, bit for bit."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mcugen.core.passes import check_model, evaluate, run_passes
from mcugen.core.stream import respond
from mcugen.core.types import Array, Model
from mcugen.emit.parts import machine_ops
from mcugen.emit.selftest import Vectors
from mcugen.errors import InternalError, UnsupportedError
from mcugen.nn.float_gap import gap_between
from mcugen.nn.floats import lower_floats
from mcugen.nn.passes import FLOAT_STEPS, INTEGER_STEPS
from mcugen.nn.quantize.quantize import Quantized, quantize
from mcugen.nn.stepping import Stepped, evaluate_steps, one_step, with_state
from mcugen.nn.stored import net_reference_bytes
from mcugen.recipes.net_report import NetCoverage, describe_net, facts_of, layer_lines, verification_of
from mcugen.recipes.net_samples import Samples, as_net_inputs, load_net_samples, vectors_of
from mcugen.recipes.nets import loss_of, ranges_of, recorded_of, refuse_options, with_class
from mcugen.recipes.prepared import ExportOptions, Prepared, dumper
from mcugen.target.arena import plan_arena

#: Pushes that the C repeats, and those that travel with the export.
_PUSHES, _GOLDEN_BYTES = 2000, 64 * 1024


def prepare_net_stream(model: Model, options: ExportOptions, progress: Callable[[str], None]) -> Prepared:
    """A net with LSTM or GRU layers, one time step a push."""
    refuse_options(model, options)
    if options.io is not None:
        raise UnsupportedError("--io", "samples and results of a stream are the caller's", "remove it")
    for option, limit in (("--max-ram", options.max_ram), ("--max-flash", options.max_flash)):
        if limit is not None:
            raise UnsupportedError(
                option, "is for nets that are called once a sample; a stream has one plan", "remove it"
            )
    if len(model.inputs) != 1 or len(model.outputs) != 1:
        what = f"{model.source.name} has {len(model.inputs)} inputs and {len(model.outputs)} outputs"
        raise UnsupportedError("--stream", what, "export a net with one input and one output")
    model = with_class(model) if options.output == "class" else model
    dump = dumper(options.dump_ir)
    source = run_passes(model, FLOAT_STEPS if options.float32 else INTEGER_STEPS, None, dump)
    stepped = one_step(source)
    step = stepped.model
    check_model(step, "one step")
    dump("one_step", step)
    progress("lowering" if options.float32 else "quantizing")
    own = None if options.calib is None else load_net_samples(options.calib, source)
    whole, machine, quantized = _machines(source, step, own, options)
    check_model(machine, "stream")
    dump("stream", machine)
    ops = machine_ops(machine)
    arena = plan_arena(machine, ops)
    progress("computing references")
    rows = None if own is None else as_net_inputs(own, whole, str(options.calib))
    (runs,) = vectors_of(whole, rows)
    x = _one_run(stepped, whole, machine, runs)
    (y,), status = respond(machine, {machine.inputs[0]: x})
    loss = gap_between(evaluate_steps(step, x), y) if quantized is None else loss_of(source, quantized, own)
    coverage = NetCoverage.of(rows, len(runs))
    few = max(2, _GOLDEN_BYTES // max(x[:1].nbytes + y[:1].nbytes, 1))
    return Prepared(
        machine=machine,
        arena=arena,
        x=x,
        y=y,
        trace=None,
        golden=Vectors(x[:few], y[:few], status[:few]),
        stored=net_reference_bytes(step, machine),
        proof=loss,
        coverage=coverage,
        verification=verification_of(loss, x),
        recorded=recorded_of(options) | {"stream": True},
        spend_ram=False,  # weights stay in flash: the fast RAM is the arena's
        move_kernels=options.optimize != "ram",
        title=f"{describe_net(source)}; one time step a push",
        facts=facts_of(machine, ops, arena, loss, coverage),
        details=tuple(layer_lines(loss[0])) if isinstance(loss, tuple) else (),
        against="float32 reference" if options.float32 else "integer reference",
        status=status,
    )


def _machines(
    source: Model, step: Model, own: Samples | None, options: ExportOptions
) -> tuple[Model, Model, Quantized | None]:
    """The machine models of the whole sequence and of one step with state, and how the first was quantized.

    Both have the same scales: those of the values over all time steps.
    """
    if options.float32:
        return lower_floats(source), with_state(lower_floats(step)), None
    ranges = ranges_of(source, own, options)
    whole = quantize(source, ranges, options.int16)
    return whole.machine, with_state(quantize(step, ranges, options.int16).machine), whole


def _one_run(stepped: Stepped, whole: Model, machine: Model, runs: Array) -> Array:
    """Samples of one run: the sequences ``runs`` (N, ...) of the whole net, one after the other.

    InternalError unless each, from a fresh state, gives the bits of the whole net.
    """
    kind = machine.types[machine.inputs[0]]
    samples = np.moveaxis(runs, stepped.came + 1, 1)
    samples = samples.reshape(*samples.shape[:2], *kind.shape)
    expected = evaluate(whole, {whole.inputs[0]: runs})[whole.outputs[0]]
    for run, want in zip(samples, expected, strict=True):
        (y,), _ = respond(machine, {machine.inputs[0]: run})
        found = y[-1] if stepped.gone is None else y
        want = want if stepped.gone is None else np.moveaxis(want, stepped.gone, 0)  # noqa: PLW2901
        if found.tobytes() != want.tobytes():
            raise InternalError(machine.source.name, "step by step the net gives other bits than over the sequence")
    return samples.reshape(-1, *kind.shape)[:_PUSHES]
