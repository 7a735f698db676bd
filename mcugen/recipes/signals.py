"""Signal chains: filters and features lowered, a model joined to them, samples where faults hide, both references."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mcugen.core.op import MachineOp
from mcugen.core.passes import check_model, evaluate, run_passes
from mcugen.core.stream import OK, Rhythm, respond, rhythm
from mcugen.core.types import Array, DType, Model, QParams, TensorType
from mcugen.dsp.analysis import FilterReport
from mcugen.dsp.chain import LoweredChain, lower_chain
from mcugen.dsp.lower import FilterChoices
from mcugen.dsp.vectors import chain_samples
from mcugen.emit.model import Vectors
from mcugen.errors import InputError, UnsupportedError
from mcugen.frontends.pipeline.chain import Chain
from mcugen.frontends.pipeline.load import Pipeline
from mcugen.recipes.nets import is_net
from mcugen.recipes.prepared import ExportOptions, Prepared, dumper
from mcugen.recipes.signal_references import (
    Gap,
    SignalReferences,
    read_recording,
    signal_reference_bytes,
)
from mcugen.recipes.trees import prove_trees
from mcugen.report.summary import bound_text
from mcugen.trees.describe import describe
from mcugen.trees.lower import TREE_PASSES, TreeOptions
from mcugen.trees.proof import score_bound
from mcugen.trees.signals import InputSpec
from mcugen.trees.signals import Signal as Column

#: Pushes of a verification: at least, per result, and at most; and bytes of samples in the golden file.
_LEAST, _RESULTS, _MOST = 1024, 96, 65_536
_GOLDEN_BYTES, _GOLDEN_RESULTS = 256 * 1024, 12
_ARITHMETIC = {"q31x64": "32x64"}


@dataclass(frozen=True, slots=True)
class SignalCoverage:
    """What the samples are."""

    own: int
    made: int

    def text(self) -> str:
        """One line."""
        return f"{self.own:,} of your samples, {self.made:,} of chirps, steps, noise and extremes"


@dataclass(frozen=True, slots=True, eq=False)
class _Joined:
    """The whole as one machine model; ``output``: the value of the float model that it stands for."""

    machine: Model
    scales: tuple[float, ...]
    offsets: tuple[float, ...]
    names: tuple[str, ...]
    output: str
    lines: tuple[tuple[str, str], ...]


def prepare_signal(pipeline: Pipeline, options: ExportOptions, progress: Callable[[str], None]) -> Prepared:
    """A signal chain, lowered, joined with its model, and its references computed."""
    _refuse(pipeline, options)
    dump = dumper(options.dump_ir)
    chain = pipeline.chain
    check_model(chain.model, "front end")
    dump("source", chain.model)
    progress("lowering")
    lowered = lower_chain(chain.model, chain.signal, choices_of(chain))
    joined = _joined(pipeline, lowered, options)
    machine = joined.machine
    check_model(machine, "lower")
    dump("lower", machine)
    progress("computing references")
    spec = spec_of(chain)
    own = None if options.calib is None else read_recording(options.calib, spec, chain.model.features)
    rhythm_of = rhythm([op for op in machine.ops if isinstance(op, MachineOp)])
    x = chain_samples(chain.signal, _pushes(rhythm_of, pipeline.name), None if own is None else own[0])
    (y,), status = respond(machine, {machine.inputs[0]: x})
    refs = SignalReferences(chain.model, pipeline.model, joined.output, machine, spec, joined.scales, joined.offsets)
    # Without a recording: the chirp and the steps; on the rest a sensor leaves its range and filters clip.
    gap = _gap(refs, x[: len(x) // 3] if own is None else own[0])
    used = 0 if own is None else min(len(own[0]), len(x) // 2)
    coverage = SignalCoverage(used, len(x) - used)
    return Prepared(
        machine=machine,
        arena=None,
        x=x,
        y=y,
        trace=None,
        golden=_golden(x, y, status),
        stored=signal_reference_bytes(refs),
        proof=gap,
        coverage=coverage,
        verification={"vectors": len(x), "float_model": {"results": gap.results, "worst_error": gap.largest}},
        recorded=_recorded(chain, joined, options),
        spend_ram=options.optimize != "ram",
        title=describe_pipeline(pipeline),
        facts=_facts(joined, lowered, coverage, gap, own),
        details=tuple(line for r in lowered.reports for line in r.lines()),
        status=status,
        about=_about(chain, joined),
    )


def choices_of(chain: Chain) -> FilterChoices:
    """How the filters of a file are to be computed."""
    return FilterChoices(_ARITHMETIC.get(chain.arithmetic, chain.arithmetic), chain.max_error)


def spec_of(chain: Chain) -> InputSpec:
    """What the samples mean, in the terms of tables: so recordings are read as those are."""
    s = chain.signal
    if s.dtype.is_float:
        return InputSpec(s.dtype, (Column(),) * len(s.names))
    return InputSpec(s.dtype, tuple(Column(k, o) for k, o in zip(s.scales, s.offsets, strict=True)))


def _refuse(pipeline: Pipeline, options: ExportOptions) -> None:
    """Options that mean nothing here."""
    if options.spec is not None:
        raise UnsupportedError("--spec", "the [[channel]] tables say what samples mean", "remove it")
    if options.input_dtype != "auto":
        raise UnsupportedError("--input-dtype", "dtype in [signal] says what the C gets", "remove it")
    if options.float32 or options.int16:
        raise UnsupportedError("--float32, --int16", "are for nets", "set arithmetic in [signal]")
    if pipeline.model is None and options.output != "raw":
        raise UnsupportedError("--output", f"{options.output} without a model", "remove it")
    if pipeline.model is not None and is_net(pipeline.model):
        raise UnsupportedError(pipeline.model.source.name, "nets in pipelines are not supported by this version")


def _joined(pipeline: Pipeline, lowered: LoweredChain, options: ExportOptions) -> _Joined:
    chain = pipeline.chain.model
    if pipeline.model is None:
        machine = replace(
            chain,
            level="machine",
            types=_with_scale(lowered),
            ops=lowered.ops,
            inputs=(lowered.first,),
            outputs=(lowered.last,),
        )
        return _Joined(machine, lowered.result.scales, lowered.result.offsets, lowered.result.names, lowered.last, ())
    columns = tuple(
        Column() if lowered.result.dtype.is_float else Column(s, o)
        for s, o in zip(lowered.result.scales, lowered.result.offsets, strict=True)
    )
    tree_options = TreeOptions(InputSpec(lowered.result.dtype, columns), options.output, DType.of(options.leaf))
    trees = run_passes(pipeline.model, TREE_PASSES, tree_options)
    proof = prove_trees(pipeline.model, trees, tree_options.spec)
    bound = score_bound(trees)
    if options.max_error is not None and not bound.error <= options.max_error:
        hint = "use --leaf int32, float32 or float64"
        raise InputError("--max-error", f"the proven bound is {bound.error:.6g}, above {options.max_error:g}", hint)
    last = trees.types[trees.outputs[0]]
    machine = replace(
        trees,
        name=pipeline.name,
        inputs=(lowered.first,),
        types={**trees.types, **lowered.types},
        ops=(*lowered.ops, *trees.ops),
        source=chain.source,
        features=chain.features,
    )
    scale = 1.0 if last.q is None else last.q.scale
    value = {"raw": pipeline.model.outputs[0], "proba": pipeline.model.outputs[-1]}.get(options.output, "class")
    names = pipeline.model.labels if last.count > 1 and pipeline.model.labels else ("result",) * last.count
    lines = (("bound", bound_text(bound, proof.worst, proof.high - proof.low)),)
    return _Joined(machine, (scale,) * last.count, (0.0,) * last.count, names, value, lines)


def _with_scale(lowered: LoweredChain) -> dict[str, TensorType]:
    """The types; where all elements of the result share one scale without an offset, its type says so."""
    types = dict(lowered.types)
    same = (
        len(set(lowered.result.scales)) == 1 and not any(lowered.result.offsets) and not lowered.result.dtype.is_float
    )
    if same:
        types[lowered.last] = replace(types[lowered.last], q=QParams(lowered.result.scales[0]))
    return types


def _pushes(found: Rhythm, name: str) -> int:
    if found.first is None:
        raise InputError(name, "no result within a million samples", "choose a shorter window or a smaller factor")
    every = found.every or found.first
    return int(min(max(_LEAST, found.first + _RESULTS * every), max(_MOST, found.first + 4 * every)))


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
    joined: _Joined,
    lowered: LoweredChain,
    coverage: SignalCoverage,
    gap: Gap,
    own: tuple[Array, tuple[str, ...]] | None,
) -> tuple[tuple[str, str], ...]:
    filters = [("filter", _filter_text(r)) for r in lowered.reports]
    whose = "made-up samples" if own is None else f"{len(own[0]):,} samples of yours"
    warnings = () if own is None else tuple(("note", w) for w in own[1])
    return (*filters, *joined.lines, ("vectors", coverage.text()), ("data", f"{whose}: {gap.text()}"), *warnings)


def _filter_text(report: FilterReport) -> str:
    """A filter in one line: its type, and what was measured of it."""
    chosen = next((t.probe for t in reversed(report.trials) if t.probe is not None), None)
    figures = "" if chosen is None else f": {chosen.text()}"
    return f"{report.kind} on {', '.join(report.channels)} in {report.type}{figures}"


def _about(chain: Chain, joined: _Joined) -> tuple[str, ...]:
    """Lines of the header."""
    lines = ["Sample (one instant, all channels):"]
    s = chain.signal
    for i, (name, unit) in enumerate(zip(s.names, chain.units, strict=True)):
        meaning = "the real value" if s.dtype.is_float else f"real = {s.scales[i]!r} * x{_plus(s.offsets[i])}"
        lines.append(f"  x[{i}] {name}: {meaning}{f' {unit}' if unit else ''}")
    lines.append("Result:")
    kind = joined.machine.types[joined.machine.outputs[0]]
    if joined.machine.labels and kind.count == 1 and joined.output == "class":
        return (*lines, f"  y[0]: the class, an index into {', '.join(joined.machine.labels)}")
    for i, name in enumerate(joined.names):
        scale, offset = joined.scales[i], joined.offsets[i]
        meaning = "" if kind.dtype.is_float else f": real = {scale!r} * y{_plus(offset)}"
        lines.append(f"  y[{i}] {name}{meaning}")
    return tuple(lines)


def _plus(offset: float) -> str:
    return "" if offset == 0.0 else f" {'-' if offset < 0 else '+'} {abs(offset)!r}"


def _recorded(chain: Chain, joined: _Joined, options: ExportOptions) -> dict[str, Any]:
    s = chain.signal
    rows = zip(s.names, s.scales, s.offsets, chain.units, strict=True)
    results = zip(joined.names, joined.scales, joined.offsets, strict=True)
    return {
        "input_dtype": s.dtype.label,
        "rate": s.rate,
        "channels": [{"name": n, "scale": k, "offset": o, "unit": u} for n, k, o, u in rows],
        "results": [{"name": n, "scale": k, "offset": o} for n, k, o in results],
        "output": options.output,
        "leaf": options.leaf,
        "optimize": options.optimize,
        "place": dict(sorted(options.place.items())),
    }


def describe_pipeline(pipeline: Pipeline) -> str:
    """One line on a signal chain."""
    chain = pipeline.chain
    kinds = [type(op).__name__ for op in chain.model.ops]
    model = "" if pipeline.model is None else f", then {describe(pipeline.model)}"
    steps = " > ".join(kinds) if kinds else "no filter"
    return f"{chain.model.source.name}: {len(chain.signal.names)} channels at {chain.signal.rate:g} Hz, {steps}{model}"


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
        "model": None if pipeline.model is None else describe(pipeline.model),
    }
