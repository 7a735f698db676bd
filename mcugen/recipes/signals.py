"""Signal chains: filters and features lowered, a model joined to them, samples where faults hide, both references."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mcugen.core.op import Item, MachineOp, Op
from mcugen.core.passes import check_model, evaluate
from mcugen.core.stream import OK, Rhythm, respond, rhythm
from mcugen.core.types import Array
from mcugen.dsp.analysis import FilterReport
from mcugen.dsp.chain import LoweredChain, lower_chain
from mcugen.dsp.source import Frames
from mcugen.dsp.source.features import Features
from mcugen.dsp.vectors import chain_samples
from mcugen.emit.buffers import DMA_ALIGN
from mcugen.emit.selftest import Vectors
from mcugen.errors import InputError, UnsupportedError
from mcugen.frontends.pipeline.chain import Chain
from mcugen.frontends.pipeline.load import Pipeline
from mcugen.recipes.net_report import describe_net
from mcugen.recipes.nets import is_net
from mcugen.recipes.prepared import ExportOptions, Prepared, dumper
from mcugen.recipes.signal_models import Joined, join
from mcugen.recipes.signal_references import (
    Gap,
    SignalNetReferences,
    SignalReferences,
    read_recording,
    signal_reference_bytes,
)
from mcugen.trees.describe import describe
from mcugen.trees.signals import InputSpec
from mcugen.trees.signals import Signal as Column

#: Pushes of a verification: at least, per result, and at most; nets take long in numpy: their results, and windows of
#: a recording that the distance to the float pipeline is measured on.
_LEAST, _RESULTS, _MOST = 1024, 96, 65_536
_NET_RESULTS, _NET_WINDOWS = 24, 256
#: Bytes of samples in the golden file, and results.
_GOLDEN_BYTES, _GOLDEN_RESULTS = 256 * 1024, 12
#: Features that are squares, and the steps of a sample from which on it is worth a word that they round to zero.
_SQUARES, _COARSE = ("variance", "band_power"), 1024.0


@dataclass(frozen=True, slots=True)
class SignalCoverage:
    """What the samples are."""

    own: int
    made: int

    def text(self) -> str:
        """One line."""
        return f"{self.own:,} of your samples, {self.made:,} of chirps, steps, noise and extremes"


def prepare_signal(pipeline: Pipeline, options: ExportOptions, progress: Callable[[str], None]) -> Prepared:
    """A signal chain, lowered, joined with its model, and its references computed."""
    options = _refuse(pipeline, options)
    dump = dumper(options.dump_ir)
    chain = pipeline.chain
    check_model(chain.model, "front end")
    dump("source", chain.model)
    progress("lowering")
    lowered = lower_chain(chain.model, chain.signal, chain.choices)
    if not lowered.ops:
        raise InputError(chain.model.source.name, "has no filter and no window", "write [[filter]], or [window]")
    spec = spec_of(chain)
    own = None if options.calib is None else read_recording(options.calib, spec, chain.model.features)
    net = pipeline.model is not None and is_net(pipeline.model)
    recorded = None
    if net and own is not None:
        recorded = evaluate(chain.model, {chain.model.inputs[0]: spec.values(own[0])})[chain.model.outputs[0]]
    joined = join(pipeline, lowered, options, recorded, dump)
    machine = joined.machine
    check_model(machine, "lower")
    dump("lower", machine)
    progress("computing references")
    rhythm_of = rhythm([op for op in machine.ops if isinstance(op, MachineOp)])
    x = chain_samples(chain.signal, _pushes(rhythm_of, pipeline.name, net), None if own is None else own[0])
    (y,), status = respond(machine, {machine.inputs[0]: x})
    kind = SignalNetReferences if net else SignalReferences
    refs = kind(chain.model, joined.model, joined.output, machine, spec, joined.scales, joined.offsets)
    gap = _gap(refs, _measured(x, own, rhythm_of, net))
    used = 0 if own is None else min(len(own[0]), len(x) // 2)
    coverage = SignalCoverage(used, len(x) - used)
    return Prepared(
        machine=machine,
        arena=joined.arena,
        x=x,
        y=y,
        trace=None,
        golden=_golden(x, y, status),
        stored=signal_reference_bytes(refs),
        proof=gap,
        coverage=coverage,
        verification={"vectors": len(x), "float_model": {"results": gap.results, "worst_error": gap.largest}},
        recorded=_recorded(pipeline, joined, options),
        spend_ram=options.optimize != "ram" and not net,  # a net's weights stay in flash: the fast RAM is the arena's
        move_kernels=options.optimize != "ram",
        title=describe_pipeline(pipeline),
        facts=_facts(chain, joined, lowered, coverage, gap, own),
        details=tuple(line for r in lowered.reports for line in r.lines()),
        against="reference" if net and options.float32 else "integer reference",
        status=status,
        about=_about(pipeline, joined),
        buffers=_buffers(chain, pipeline.name),
    )


def spec_of(chain: Chain) -> InputSpec:
    """What the samples mean, in the terms of tables: so recordings are read as those are."""
    s = chain.signal
    if s.dtype.is_float:
        return InputSpec(s.dtype, (Column(),) * len(s.names))
    return InputSpec(s.dtype, tuple(Column(k, o) for k, o in zip(s.scales, s.offsets, strict=True)))


def _refuse(pipeline: Pipeline, options: ExportOptions) -> ExportOptions:
    """The options with the file's own; those that mean nothing here are errors."""
    if options.spec is not None:
        raise UnsupportedError("--spec", "the [[channel]] tables say what samples mean", "remove it")
    if options.input_dtype != "auto":
        raise UnsupportedError("--input-dtype", "dtype in [signal] says what the C gets", "remove it")
    if options.stream:
        raise UnsupportedError("--stream", "a signal chain takes one sample a call anyway", "remove it")
    if options.io is not None:
        raise UnsupportedError("--io", "samples and results of a signal chain are the caller's", "remove it")
    for option, limit in (("--max-ram", options.max_ram), ("--max-flash", options.max_flash)):
        if limit is not None:
            raise UnsupportedError(option, "is for nets that are exported alone", "remove it")
    net = pipeline.model is not None and is_net(pipeline.model)
    if (options.float32 or options.int16) and not net:
        given = "--float32" if options.float32 else "--int16"
        raise UnsupportedError(given, "is for nets", "set arithmetic in [signal]")
    trees = pipeline.model is not None and not net
    if options.max_error is not None and not trees:
        raise UnsupportedError("--max-error", "is for trees", "set max_error in [signal]")
    if (options.num_iteration is not None or options.start_iteration) and not trees:
        given = "--num-iteration" if options.num_iteration is not None else "--start-iteration"
        raise UnsupportedError(given, "chooses iterations of a LightGBM model, and of nothing else", "leave it out")
    if pipeline.model is None and options.output != "raw":
        raise UnsupportedError("--output", f"{options.output} without a model", "remove it")
    if pipeline.output is not None and options.output == "raw":
        return replace(options, output=pipeline.output)
    return options


def _pushes(found: Rhythm, name: str, net: bool) -> int:
    if found.first is None:
        raise InputError(name, "no result within a million samples", "choose a shorter window or a smaller factor")
    every = found.every or found.first
    least, results = (1, _NET_RESULTS) if net else (_LEAST, _RESULTS)
    return int(min(max(least, found.first + results * every), max(_MOST, found.first + 4 * every)))


def _measured(x: Array, own: tuple[Array, tuple[str, ...]] | None, found: Rhythm, net: bool) -> Array:
    """The samples that the distance to the float pipeline is measured on.

    Without a recording: the chirp and the steps; on the rest a sensor leaves its range and filters clip.
    """
    samples = x[: max(len(x) // 3, found.first or 0)] if own is None else own[0]
    if net and found.first is not None:
        return samples[: found.first + _NET_WINDOWS * (found.every or found.first)]
    return samples


def _golden(x: Array, y: Array, status: Array) -> Vectors:
    """The first pushes: a dozen results if they fit, at least one."""
    due = np.flatnonzero(status == OK)
    fit = max(1, _GOLDEN_BYTES // (x[:1].nbytes + y[:1].nbytes + 4))
    wanted = int(due[min(len(due), _GOLDEN_RESULTS) - 1]) + 1
    count = max(int(due[0]) + 1, min(max(wanted, 64), fit, len(x)))
    return Vectors(x[:count], y[:count], status[:count])


def _gap(refs: SignalReferences, x: Array) -> Gap:
    values = evaluate(refs.machine, {refs.machine.inputs[0]: x})
    return refs.gap(x, values[refs.machine.outputs[0]])


def _facts(
    chain: Chain,
    joined: Joined,
    lowered: LoweredChain,
    coverage: SignalCoverage,
    gap: Gap,
    own: tuple[Array, tuple[str, ...]] | None,
) -> tuple[tuple[str, str], ...]:
    filters = [("filter", _filter_text(r, len(chain.signal.names))) for r in lowered.reports]
    whose = "made-up samples" if own is None else f"{len(own[0]):,} samples of yours"
    notes = (*_coarse(chain, lowered), *(() if own is None else (*own[1], *_beyond(chain, own[0]))))
    data = (("vectors", coverage.text()), ("data", f"{whose}: {gap.text()}"))
    return (*filters, *joined.lines, *data, *(("note", n) for n in notes))


def _coarse(chain: Chain, lowered: LoweredChain) -> list[str]:
    """A line for each feature of squares whose step is far above the square of a sample's: 32 bits hold no more."""
    lines = []
    for op in (o for o in chain.model.ops if isinstance(o, Features)):
        for item, step in zip(op.items, lowered.result.scales, strict=True):
            fine = abs(chain.signal.scales[item.channel])
            if item.kind in _SQUARES and not lowered.result.dtype.is_float and step**0.5 > _COARSE * fine:
                rest = f"what deviates by less than about {step**0.5:.3g} gives 0"
                way = "low and high of the channel make them finer" + (
                    ", std is finer" if item.kind == "variance" else ""
                )
                lines.append(f"{item.name} comes in steps of {step:.3g}: {rest} ({way})")
    return lines


def _beyond(chain: Chain, x: Array) -> list[str]:
    """A line for each channel whose recorded samples leave the range that the file promises."""
    lines = []
    for i, f in enumerate(chain.model.features):
        real = x[:, i].astype(np.float64)
        real = real if f.scale is None else f.scale * real + f.offset
        low, high = (-np.inf if f.low is None else f.low), (np.inf if f.high is None else f.high)
        outside = int(np.count_nonzero((real < low) | (real > high)))
        if outside:
            span = f"{real.min():.6g} to {real.max():.6g}"
            promise = f"low {low:g}, high {high:g}"
            lines.append(f"{outside:,} of {len(x):,} samples of {f.name} lie beyond its range ({span}; {promise})")
    return lines


def _filter_text(report: FilterReport, channels: int) -> str:
    """A filter in one line, as the file calls it: its type, and what was measured of it."""
    chosen = next((t.probe for t in reversed(report.trials) if t.probe is not None), None)
    figures = "" if chosen is None else f": {chosen.text()}"
    every = f"all {channels} channels" if 1 < channels == len(report.channels) else ", ".join(report.channels)
    how = "exactly" if report.type == "exact" else f"in {report.type}"
    return f"{report.where.rpartition(': ')[2]} on {every} {how}{figures}"


def _about(pipeline: Pipeline, joined: Joined) -> tuple[str, ...]:
    """Lines of the header."""
    chain, lines = pipeline.chain, ["Sample (one instant, all channels):"]
    if pipeline.model is not None:
        given = pipeline.model.source
        lines = [f"Model {given.name}: {given.format}, sha256 {given.sha256}", "", *lines]
    s = chain.signal
    for i, (name, unit) in enumerate(zip(s.names, chain.units, strict=True)):
        meaning = "the real value" if s.dtype.is_float else f"real = {s.scales[i]!r} * x{_plus(s.offsets[i])}"
        lines.append(f"  x[{i}] {name}: {meaning}{f' {unit}' if unit else ''}")
    lines.append("Result:")
    kind = joined.machine.types[joined.machine.outputs[0]]
    if kind.count == 1 and joined.output == "class":
        labels = joined.machine.labels
        return (*lines, f"  y[0]: {_class_text(labels)}")
    for i, name in enumerate(joined.names):
        scale, offset = joined.scales[i], joined.offsets[i]
        meaning = "" if kind.dtype.is_float else f": real = {scale!r} * y{_plus(offset)}"
        lines.append(f"  y[{i}] {name}{meaning}")
    return tuple(lines)


def _class_text(labels: tuple[str, ...]) -> str:
    """What a class is. LightGBM's text knows numbers only."""
    if labels == tuple(map(str, range(len(labels)))):
        return f"the class, 0 to {len(labels) - 1}" if labels else "the class"
    return f"the class, an index into {', '.join(labels)}"


def _plus(offset: float) -> str:
    return "" if offset == 0.0 else f" {'-' if offset < 0 else '+'} {abs(offset)!r}"


def _recorded(pipeline: Pipeline, joined: Joined, options: ExportOptions) -> dict[str, Any]:
    """The options that shaped the files, for the manifest."""
    chain, model = pipeline.chain, pipeline.model
    s = chain.signal
    rows = zip(s.names, s.scales, s.offsets, chain.units, strict=True)
    results = zip(joined.names, joined.scales, joined.offsets, strict=True)
    source = None if model is None else model.source
    return {
        "input_dtype": s.dtype.label,
        "rate": s.rate,
        "channels": [{"name": n, "scale": k, "offset": o, "unit": u} for n, k, o, u in rows],
        "results": [{"name": n, "scale": k, "offset": o} for n, k, o in results],
        "model": None if source is None else {"name": source.name, "format": source.format, "sha256": source.sha256},
        "output": options.output,
        "leaf": options.leaf,
        "float32": options.float32,
        "int16": list(options.int16),
        "calib_method": options.calib_method,
        "optimize": options.optimize,
        "place": dict(sorted(options.place.items())),
    }


def _buffers(chain: Chain, name: str) -> tuple[Item, ...]:
    """The buffer that DMA fills: whole samples, in whole cache lines."""
    if not chain.dma_samples:
        return ()
    s = chain.signal
    count = chain.dma_samples * len(s.names)
    about = f"{chain.dma_samples} samples of {len(s.names)} channels that DMA fills"
    symbol = f"{name}_dma"
    size = count * s.dtype.size
    return (Item(symbol, "arena", s.dtype.ctype, count, size, DMA_ALIGN, float(len(s.names)), about, dma=True),)


def describe_pipeline(pipeline: Pipeline) -> str:
    """One line on a signal chain."""
    chain = pipeline.chain
    model = "" if pipeline.model is None else f", then {_describe(pipeline)}"
    steps = " > ".join(_step(op) for op in chain.model.ops) or "no filter"
    n = len(chain.signal.names)
    return f"{chain.model.source.name}: {n} channel{'s' if n > 1 else ''} at {chain.signal.rate:g} Hz, {steps}{model}"


def _step(op: Op) -> str:
    """A filter by its name in the file, a window by what it gives."""
    if isinstance(op, Features):
        return f"{len(op.items)} features of {op.length} samples"
    return f"windows of {op.length} samples" if isinstance(op, Frames) else op.loc.item.rpartition(": ")[2]


def _describe(pipeline: Pipeline) -> str:
    model = pipeline.model
    assert model is not None
    return describe_net(model) if is_net(model) else describe(model)


def pipeline_facts(pipeline: Pipeline) -> dict[str, Any]:
    """Facts on a signal chain as JSON values."""
    chain = pipeline.chain
    return {
        "source": chain.model.source.name,
        "format": chain.model.source.format,
        "sha256": chain.model.source.sha256,
        "rate": chain.signal.rate,
        "channels": list(chain.signal.names),
        "ops": [type(op).__name__ for op in chain.model.ops],
        "results": list(chain.names),
        "model": None if pipeline.model is None else _describe(pipeline),
    }
