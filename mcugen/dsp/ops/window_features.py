"""WindowFeatures: integer samples into a ring, and features of the window of the last ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mcugen.core.op import Cost, Item, MachineOp, Names, OpText, StateMember
from mcugen.core.passes import value_type
from mcugen.core.types import Array, DType, TensorType
from mcugen.dsp.feature_plan import SUM_KINDS, IntFeature, int_features
from mcugen.dsp.feature_tracks import (
    EXTREMES,
    FEATURE_STEPS,
    ROOT_STEPS,
    STRATEGIES,
    Track,
    needs_ring,
    renew_cost,
    run_cost,
    scan_cost,
    tracks_of,
)
from mcugen.dsp.source.features import MAX_LENGTH, due_pushes
from mcugen.dsp.window_sums import waves_of
from mcugen.errors import InternalError

#: mcg_track_t, mcg_feature_t, mcg_sums_t in bytes.
_TRACK = np.dtype([("channel", "<u2"), ("uses", "u1"), ("pre", "u1"), ("level", "<i4")])
_FEATURE = np.dtype([("out", "<u2"), ("track", "<u2"), ("kind", "u1"), ("shift", "u1")])
_SUMS_BYTES = 64
#: Instructions of a push, and of a sample and bin of a band.
_PUSH_STEPS = 25
_BAND_STEPS = {DType.I16: 4, DType.I32: 7}


@dataclass(frozen=True, slots=True, eq=False)
class WindowFeatures(MachineOp):
    """x (C,) int16 or int32 -> y (F,) int32, due when ``length`` samples are there, then at each ``step``-th.

    ``limits``: (C,) samples beyond ``[-limit - 1, limit]`` are clamped. ``strategy``: how sums are made (STRATEGIES),
    which changes no bit.
    """

    kernel: ClassVar[tuple[str, str]] = ("mcg_features", "src/mcg_features.c")

    dtype: DType
    length: int
    step: int
    limits: tuple[int, ...]
    features: tuple[IntFeature, ...]
    strategy: str

    @property
    def channels(self) -> int:
        """C."""
        return len(self.limits)

    @property
    def tracks(self) -> tuple[Track, ...]:
        """The sums that the op keeps or makes."""
        return tracks_of(self.features)[0]

    @property
    def has_ring(self) -> bool:
        """Whether samples are kept."""
        return needs_ring(self.strategy, self.features)

    def check(self, types: Mapping[str, TensorType]) -> None:
        x, y = value_type(types, self.inputs[0], "WindowFeatures"), value_type(types, self.outputs[0], "WindowFeatures")
        problem = ""
        if self.dtype not in (DType.I16, DType.I32) or x.dtype is not self.dtype or x.shape != (self.channels,):
            problem = f"x is {x.dtype.label} {x.shape}, expected {self.channels} of {self.dtype.label}"
        elif y.dtype is not DType.I32 or y.shape != (len(self.features),):
            problem = f"y is {y.dtype.label} {y.shape}, expected {len(self.features)} of int32"
        elif not 1 <= self.length <= MAX_LENGTH or not 1 <= self.step < 1 << 31:
            problem = f"windows of {self.length} samples, step {self.step}"
        elif self.strategy not in STRATEGIES or (self.strategy == "stream") != (self.step >= self.length):
            problem = f"strategy {self.strategy} for windows of {self.length} samples, step {self.step}"
        elif any(not 1 <= limit <= self.dtype.max for limit in self.limits):
            problem = f"limits {self.limits}"
        elif any(not 0 <= f.channel < self.channels or f.lag >= self.length for f in self.features):
            problem = "a feature of another channel, or a lag beyond the window"
        if problem:
            raise InternalError(str(self.loc), f"WindowFeatures: {problem}")

    @property
    def state(self) -> tuple[StateMember, ...]:
        members = [StateMember("wait", "uint32_t", 0, 4, 4, "pushes to the next result")]
        if self.has_ring:
            n, size = self.channels * self.length, self.dtype.size
            members.append(StateMember("at", "uint32_t", 0, 4, 4, "where the next sample goes in the ring"))
            members.append(StateMember("ring", self.dtype.ctype, n, n * size, size, "the samples, channel by channel"))
        if self.strategy != "scan" and self.tracks:
            n = len(self.tracks)
            members.append(StateMember("sums", "mcg_sums_t", n, n * _SUMS_BYTES, 8, "sums of the window"))
        return tuple(members)

    def due(self, pushes: int) -> Array:
        return due_pushes(pushes, self.length, self.step)

    def eval(self, *args: Array) -> tuple[Array, ...]:
        """x (T, C) -> (T', F) int32."""
        limit = np.array(self.limits, np.int64)
        x = np.clip(args[0].astype(np.int64), -limit - 1, limit)
        return (int_features(x, self.length, self.step, self.features),)

    def items(self, prefix: str) -> tuple[Item, ...]:
        tracks, of = tracks_of(self.features)
        tables = []
        if tracks:
            rows = [(t.channel, t.uses, t.pre, t.level) for t in tracks]
            pushes = self.step if self.strategy != "scan" else 1
            tables.append(_table(f"{prefix}_tracks", "mcg_track_t", rows, _TRACK, 4, pushes, "sums of the window"))
            rows_of = [
                (i, of[i], SUM_KINDS.index(f.kind), f.up or f.shift) for i, f in enumerate(self.features) if i in of
            ]
            tables.append(_table(f"{prefix}_features", "mcg_feature_t", rows_of, _FEATURE, 2, 1, "features of sums"))
        if self._clamps:
            data = np.array(self.limits, self.dtype.np)
            tables.append(_plain(f"{prefix}_limits", self.dtype.ctype, data, self.step, "largest sample by channel"))
        bands = Counter(f.bins for _, f in self._of_kind("band_power"))  # channels share the waves of a band
        for bins, features in bands.items():
            waves = waves_of(self.length, *bins).reshape(-1)
            tables.append(_plain(_waves(prefix, bins), "int16_t", waves, features, "cosine and sine of each bin"))
        return tuple(tables)

    @property
    def _clamps(self) -> bool:
        return any(limit < self.dtype.max for limit in self.limits)

    def _of_kind(self, kind: str) -> list[tuple[int, IntFeature]]:
        return [(i, f) for i, f in enumerate(self.features) if f.kind == kind]

    def emit(self, prefix: str, args: tuple[str, ...], results: tuple[str, ...], names: Names) -> OpText:
        end = {DType.I16: "s16", DType.I32: "s32"}[self.dtype]
        tracks, of = tracks_of(self.features)
        window = f"&{prefix}_window"
        text = (
            f"static const mcg_window_t {prefix}_window = {{.channels = {self.channels}u, .length = {self.length}u, "
            f".step = {self.step}u, .tracks = {len(tracks)}u, .features = {len(of)}u}};\n"
        )
        x, lines = args[0], []
        if self._clamps:
            x = f"{prefix}_x"
            lines.append(f"{self.dtype.ctype} {x}[{self.channels}];")
            limits = names.table[f"{prefix}_limits"]
            lines.append(f"mcg_window_clamp_{end}({args[0]}, {limits}, {x}, {self.channels}u);")
        lines += self._push(prefix, end, window, x, names)
        for i, f in self._of_kind("lag"):
            ring = f"{window}, {names.state['ring']}, {names.state['at']}"
            lines.append(f"{results[0]}[{i}] = mcg_window_lag_{end}({ring}, {f.channel}u, {f.lag}u);")
        for i, f in self._of_kind("band_power"):
            text += self._band(prefix, i, f)
            ring = f"{names.table[_waves(prefix, f.bins)]}, {names.state['ring']}, {names.state['at']}"
            lines.append(f"{results[0]}[{i}] = mcg_band_power_{end}({window}, &{prefix}_band{i}, {ring});")
        if tracks:
            sums = names.state.get("sums", f"{prefix}_sums")
            table = names.table[f"{prefix}_features"]
            lines.append(f"mcg_features({window}, {table}, {sums}, {results[0]});")
        return OpText(("mcg_features.h",), text, "\n    ".join(lines), init=self._init(end, names))

    def _push(self, prefix: str, end: str, window: str, x: str, names: Names) -> list[str]:
        """The statements that take the sample, end the push where no window is due, and make the sums."""
        tracks, state, lines = self.tracks, names.state, []
        table = names.table.get(f"{prefix}_tracks", "")
        if self.strategy == "stream" and tracks:
            lines.append(f"mcg_window_stream_{end}({window}, {table}, {state['wait']}, {state['sums']}, {x});")
        if self.strategy == "run" and tracks:
            ring = f"{state['ring']}, {state['at']}"
            lines.append(f"mcg_window_run_{end}({window}, {table}, {ring}, {state['sums']}, {x});")
        due = f"mcg_window_due({window}, &{state['wait']})"
        if self.has_ring:
            due = f"mcg_window_push_{end}({window}, {state['ring']}, &{state['at']}, &{state['wait']}, {x})"
        lines += [f"if ({due} == 0u) {{", "    return MCG_PENDING;", "}"]
        sums = state.get("sums", f"{prefix}_sums")
        if self.strategy == "scan" and tracks:
            lines.append(f"mcg_sums_t {sums}[{len(tracks)}];")
        if (self.strategy == "scan" and tracks) or (self.strategy == "run" and any(t.uses & EXTREMES for t in tracks)):
            kernel = "scan" if self.strategy == "scan" else "renew"
            ring = f"{state['ring']}, {state['at']}"
            lines.append(f"mcg_window_{kernel}_{end}({window}, {table}, {ring}, {sums});")
        return lines

    def _band(self, prefix: str, i: int, f: IntFeature) -> str:
        first, last = f.bins
        single = int(2 * first in (0, self.length)) | int(2 * last in (0, self.length)) << 1
        return (
            f"static const mcg_band_t {prefix}_band{i} = {{.channel = {f.channel}u, .bins = {last - first + 1}u, "
            f".single = {single}u, .pre = {f.pre}u, .shift = {f.shift}u}};\n"
        )

    def _init(self, end: str, names: Names) -> str:
        s = names.state
        lines = [f"{s['wait']} = {self.length}u;"]
        if self.has_ring:
            lines += [f"{s['at']} = 0;", f"mcg_window_init_{end}({s['ring']}, {self.channels * self.length}u);"]
        if "sums" in s:
            lines.append(f"mcg_window_init_sums({s['sums']}, {len(self.tracks)}u);")
        return "\n    ".join(lines)

    def cost(self) -> Cost:
        """Work of one push, on average and at worst."""
        uses = [t.uses for t in self.tracks]
        always = _PUSH_STEPS + 4 * self.channels
        due = sum((ROOT_STEPS if f.up else 0) + FEATURE_STEPS for f in self.features)
        macs = sum(2 * self.length * (f.bins[1] - f.bins[0] + 1) for _, f in self._of_kind("band_power"))
        due += macs * _BAND_STEPS[self.dtype] // 2
        worst, mean = due, float(due)
        if self.strategy == "scan":
            scan = sum(scan_cost(u, self.length, self.dtype) for u in uses)
            worst, mean = worst + round(scan), mean + scan
        else:
            always += round(sum(run_cost(u) for u in uses))
        if self.strategy == "run":
            mean += sum(renew_cost(u, self.length, self.step, self.dtype) for u in uses)
            worst += round(sum(renew_cost(u, self.length, self.length, self.dtype) for u in uses))
        reads = len(uses) + (macs + len(self.features)) / self.step
        return Cost(reads, macs, always + mean / self.step, always + worst)


def _table(
    symbol: str,
    ctype: str,
    rows: Sequence[tuple[int, ...]],
    dtype: np.dtype[np.void],
    align: int,
    reads: float,
    about: str,
) -> Item:
    data = np.array(rows, dtype)
    data.flags.writeable = False
    return Item(symbol, "table", ctype, len(data), data.nbytes, align, len(data) * float(reads), about, data)


def _waves(prefix: str, bins: tuple[int, int]) -> str:
    """The table of a band's waves."""
    return f"{prefix}_waves_{bins[0]}_{bins[1]}"


def _plain(symbol: str, ctype: str, data: Array, reads: float, about: str) -> Item:
    data.flags.writeable = False
    return Item(symbol, "table", ctype, len(data), data.nbytes, data.itemsize, len(data) * float(reads), about, data)
