"""Checked tables to what they mean: the signal, the ops on it, and the names of what comes out."""

from __future__ import annotations

from dataclasses import dataclass, replace

from mcugen.core.op import SourceOp
from mcugen.core.types import DType, Feature, Loc, Model, Source, TensorType
from mcugen.dsp.lower import FilterChoices
from mcugen.dsp.signal import Signal
from mcugen.dsp.source import Decimate, Frames
from mcugen.dsp.source.features import MAX_LENGTH, Features, FeatureSpec, bins_of, check_features
from mcugen.dsp.source.frames import frame_shape
from mcugen.errors import InputError
from mcugen.frontends.names import nearest
from mcugen.frontends.pipeline import schema


@dataclass(frozen=True, slots=True, eq=False)
class Chain:
    """Samples to filtered samples or features, in float64, and what the numbers of the samples mean.

    ``model`` has input ``sample`` (C,) and one output: (C,), features (F,), or a frame of two axes; ``names``: of its
    elements, of the channels of a frame. ``units``: of the channels, as the user wrote them. ``arithmetic`` and
    ``max_error`` as in the file; ``dma_samples``: size of the buffer that DMA fills, 0 where there is none.
    """

    model: Model
    signal: Signal
    names: tuple[str, ...]
    units: tuple[str, ...]
    arithmetic: str
    max_error: float | None
    dma_samples: int

    @property
    def choices(self) -> FilterChoices:
        """How the filters are to be computed."""
        return FilterChoices("32x64" if self.arithmetic == "q31x64" else self.arithmetic, self.max_error)


def chain_of(tables: schema.PipelineTables, file: str, name: str, sha256: str, planar: bool = False) -> Chain:
    """The chain of a file. ``planar``: a window without features is (C, length).

    InputError for channels that are not there, and for what a rate or a window cannot give.
    """
    channels = _channels(tables, file)
    ops, value, rate = _filters(tables, file, channels)
    names = tuple(channels)
    shapes: dict[str, tuple[int, ...]] = {v: (len(names),) for v in ("sample", *(op.outputs[0] for op in ops))}
    if tables.window is None and tables.feature:
        raise InputError(file, "features need a [window]", "write [window] with its length")
    if tables.window is not None and tables.feature:
        items = _features(tables, file, channels, rate)
        check_features(f"{file}: [window]", tables.window.length, tables.window.step, items, len(names))
        ops.append(Features((value,), ("x",), Loc(file, "[window]"), tables.window.length, tables.window.step, items))
        names, value = tuple(i.name for i in items), "x"
        shapes["x"] = (len(names),)
    elif tables.window is not None:
        length, step = tables.window.length, tables.window.step
        if length > MAX_LENGTH:
            raise InputError(f"{file}: [window]", f"a window of {length} samples: 1 to {MAX_LENGTH} are possible")
        ops.append(Frames((value,), ("x",), Loc(file, "[window]"), length, step, planar))
        value, shapes["x"] = "x", frame_shape(len(names), length, planar)
    features = tuple(
        Feature(c.name, None if tables.signal.dtype == "float32" else c.scale, c.offset, low=c.low, high=c.high)
        for c in tables.channel
    )
    types = {v: TensorType(shape, DType.F64) for v, shape in shapes.items()}
    source = Source(file, "signal chain", sha256)
    model = Model(name, "source", ("sample",), (value,), types, tuple(ops), source, features)
    settings = tables.signal
    units = tuple(c.unit for c in tables.channel)
    samples = _dma_samples(tables, file)
    return Chain(model, _signal(tables, file), names, units, settings.arithmetic, settings.max_error, samples)


def _dma_samples(tables: schema.PipelineTables, file: str) -> int:
    """A sample is one row of all channels: DMA writes whole rows, for the cache knows whole lines only."""
    by_dma = [c.dma for c in tables.channel]
    if any(by_dma) and not all(by_dma):
        other = by_dma.index(False)
        where = f"{file}: [[channel]] {other + 1} '{tables.channel[other].name}': dma"
        hint = "set it for all, or for none and copy the samples"
        raise InputError(where, "DMA fills whole samples: all channels come by DMA, or none", hint)
    return tables.signal.dma_samples if all(by_dma) else 0


def _channels(tables: schema.PipelineTables, file: str) -> dict[str, int]:
    positions: dict[str, int] = {}
    for i, c in enumerate(tables.channel):
        where = f"{file}: [[channel]] {i + 1} '{c.name}'"
        if c.name in positions:
            raise InputError(where, f"the name was used in entry {positions[c.name] + 1}")
        if c.scale == 0.0:
            raise InputError(f"{where}: scale", "0 would make every sample the same value")
        if tables.signal.dtype == "float32" and (c.scale != 1.0 or c.offset != 0.0):
            raise InputError(f"{where}: scale", "float32 samples are the real values", "leave out scale and offset")
        if c.low is not None and c.high is not None and not c.low < c.high:
            raise InputError(where, f"low {c.low:g} is not below high {c.high:g}")
        positions[c.name] = i
    return positions


def _signal(tables: schema.PipelineTables, file: str) -> Signal:
    """Names, scales and the largest number of each channel, by its range where one is given."""
    dtype = DType.of(tables.signal.dtype)
    peaks = []
    for i, c in enumerate(tables.channel):
        whole = float("inf") if dtype.is_float else float(-dtype.min)
        ends = [abs((v - c.offset) / c.scale) for v in (c.low, c.high) if v is not None]
        if ends and max(ends) > whole:
            what = f"{c.low} to {c.high} does not fit {dtype.label} at scale {c.scale:g}"
            raise InputError(f"{file}: [[channel]] {i + 1} '{c.name}'", what, "choose a larger scale")
        peaks.append(max(ends) if len(ends) == 2 else (1.0 if dtype.is_float else whole))
    return Signal.of(
        tuple(c.name for c in tables.channel),
        dtype,
        tuple(c.scale for c in tables.channel),
        tuple(c.offset for c in tables.channel),
        tables.signal.rate,
        tuple(peaks),
    )


def _filters(tables: schema.PipelineTables, file: str, channels: dict[str, int]) -> tuple[list[SourceOp], str, float]:
    """The ops, the name of the last value, and the rate that is left after decimation."""
    # scipy.signal takes a second to import, and every command imports this module.
    from mcugen.frontends.pipeline.design import filter_op  # noqa: PLC0415

    ops: list[SourceOp] = []
    value, rate = "sample", tables.signal.rate
    rest = [0.0 if tables.signal.dtype == "float32" else c.offset for c in tables.channel]
    for i, table in enumerate(tables.filter):
        where = f"{file}: [[filter]] {i + 1}"
        chosen = _positions(table.channels, channels, where)
        if isinstance(table, schema.DecimateTable) and len(chosen) < len(channels):
            raise InputError(where, "decimate must treat all channels", "leave out channels")
        op = filter_op(table, rate, chosen, (value, f"v{i + 1}"), where)
        op = replace(op, rest=tuple(rest[c] for c in chosen))
        ops.append(op)
        for channel in chosen:
            rest[channel] *= op.dc_gain()
        value = op.outputs[0]
        if isinstance(op, Decimate):
            rate /= op.factor
    return ops, value, rate


def _positions(names: tuple[str, ...] | None, channels: dict[str, int], where: str) -> tuple[int, ...]:
    """Indices of channels by name; all of them for None."""
    if names is None:
        return tuple(range(len(channels)))
    for n in names:
        if n not in channels:
            raise InputError(f"{where}: channels", f"there is no channel '{n}'", nearest(n, channels))
    if len(set(names)) < len(names):
        raise InputError(f"{where}: channels", "a channel is named twice")
    return tuple(channels[n] for n in names)


def _features(
    tables: schema.PipelineTables, file: str, channels: dict[str, int], rate: float
) -> tuple[FeatureSpec, ...]:
    """Each kind of each channel of each table, in the order of the file: channel by channel, then kind by kind."""
    assert tables.window is not None
    items = []
    for i, t in enumerate(tables.feature):
        where = f"{file}: [[feature]] {i + 1}"
        kinds = (t.kind,) if isinstance(t.kind, str) else t.kind
        if t.channel is not None and t.channels is not None:
            raise InputError(where, "has both channel and channels", "leave one out")
        names = (t.channel,) if t.channel is not None else (t.channels or tuple(channels))
        _positions(names, channels, where)
        if t.name is not None and len(kinds) * len(names) > 1:
            raise InputError(f"{where}: name", f"one name for {len(kinds) * len(names)} features", "leave it out")
        for key, kind in (("band", "band_power"), ("lag", "lag"), ("level", "zero_crossings")):
            if getattr(t, key) is not None and kind not in kinds:
                raise InputError(f"{where}: {key}", f"has a meaning for {kind} only")
        if "band_power" in kinds and t.band is None:
            raise InputError(where, "band_power needs a band", "write band = [low, high] in Hz")
        bins = (0, 0) if t.band is None else bins_of(*t.band, rate, tables.window.length, f"{where}: band")
        for n in names:
            for kind in kinds:
                label = t.name or f"{n}_{kind}{_suffix(t, kind)}"
                lag = (t.lag or 0) if kind == "lag" else 0
                level = (t.level or 0.0) if kind == "zero_crossings" else 0.0
                own = bins if kind == "band_power" else (0, 0)
                items.append(FeatureSpec(label, kind, channels[n], lag, own, level))
    return tuple(items)


def _suffix(t: schema.FeatureTable, kind: str) -> str:
    """What tells two features of one kind and channel apart."""
    if kind == "lag":
        return str(t.lag or 0)
    return f"_{t.band[0]:g}_{t.band[1]:g}" if kind == "band_power" and t.band is not None else ""
