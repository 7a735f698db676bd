"""FWindowFeatures: float32 samples into a ring, and float32 features of the window of the last ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mcugen.core.op import Cost, Item, MachineOp, Names, OpText, StateMember
from mcugen.core.passes import value_type
from mcugen.core.types import Array, DType, TensorType
from mcugen.dsp.float_features import FLOAT_KINDS, divisor_of, float_features, float_waves
from mcugen.dsp.source.features import FeatureSpec, check_features, due_pushes
from mcugen.errors import InputError, InternalError

#: mcg_float_feature_t
_FEATURE = np.dtype(
    [("out", "<u2"), ("channel", "<u2"), ("kind", "<u2"), ("lag", "<u2"), ("divisor", "<f4"), ("level", "<f4")]
)
#: Instructions a sample of each feature and of each bin, and of a push.
_SAMPLE_STEPS, _BIN_STEPS, _PUSH_STEPS = 6, 8, 20


@dataclass(frozen=True, slots=True, eq=False)
class FWindowFeatures(MachineOp):
    """x (C,) float32 -> y (F,) float32, due when ``length`` samples are there, then at each ``step``-th.

    Sums run from the oldest sample to the newest in float32, each product rounded before it is added.
    """

    kernel: ClassVar[tuple[str, str]] = ("mcg_features_f32", "src/mcg_features_float.c")

    channels: int
    length: int
    step: int
    features: tuple[FeatureSpec, ...]

    def check(self, types: Mapping[str, TensorType]) -> None:
        x, y = (value_type(types, v, "FWindowFeatures") for v in (*self.inputs, *self.outputs))
        try:
            check_features(str(self.loc), self.length, self.step, self.features, self.channels)
        except InputError as e:
            raise InternalError(e.where, e.what) from None
        if x.dtype is not DType.F32 or x.shape != (self.channels,):
            raise InternalError(str(self.loc), f"FWindowFeatures: x is {x.dtype.label} {x.shape}")
        if y.dtype is not DType.F32 or y.shape != (len(self.features),):
            raise InternalError(str(self.loc), f"FWindowFeatures: y is {y.dtype.label} {y.shape}")

    @property
    def state(self) -> tuple[StateMember, ...]:
        n = self.channels * self.length
        return (
            StateMember("wait", "uint32_t", 0, 4, 4, "pushes to the next result"),
            StateMember("at", "uint32_t", 0, 4, 4, "where the next sample goes in the ring"),
            StateMember("ring", "float", n, 4 * n, 4, "the samples, channel by channel"),
        )

    def due(self, pushes: int) -> Array:
        return due_pushes(pushes, self.length, self.step)

    def eval(self, *args: Array) -> tuple[Array, ...]:
        """x (T, C) -> (T', F) float32."""
        return (float_features(args[0], self.length, self.step, self.features),)

    def _plain(self) -> list[tuple[int, FeatureSpec]]:
        return [(i, f) for i, f in enumerate(self.features) if f.kind != "band_power"]

    def _bands(self) -> list[tuple[int, FeatureSpec]]:
        return [(i, f) for i, f in enumerate(self.features) if f.kind == "band_power"]

    def items(self, prefix: str) -> tuple[Item, ...]:
        tables = []
        rows = []
        for i, f in self._plain():
            lag = f.lag if f.kind == "lag" else 0
            kind = FLOAT_KINDS.index("lag" if f.kind == "last" else f.kind)
            rows.append((i, f.channel, kind, lag, divisor_of(f.kind, self.length), float(np.float32(f.level))))
        if rows:
            data = np.array(rows, _FEATURE)
            data.flags.writeable = False
            symbol, n = f"{prefix}_features", len(rows)
            tables.append(
                Item(symbol, "table", "mcg_float_feature_t", n, data.nbytes, 4, float(n), "features of a window", data)
            )
        for bins, features in Counter(f.bins for _, f in self._bands()).items():  # channels share the waves of a band
            waves = float_waves(self.length, *bins).reshape(-1)
            waves.flags.writeable = False
            about, n = "cosine and sine of each bin", len(waves)
            tables.append(Item(_waves(prefix, bins), "table", "float", n, 4 * n, 4, float(n * features), about, waves))
        return tuple(tables)

    def emit(self, prefix: str, args: tuple[str, ...], results: tuple[str, ...], names: Names) -> OpText:
        s, window, y = names.state, f"&{prefix}_window", results[0]
        plain = self._plain()
        text = (
            f"static const mcg_window_t {prefix}_window = {{.channels = {self.channels}u, .length = {self.length}u, "
            f".step = {self.step}u, .tracks = 0u, .features = {len(plain)}u}};\n"
        )
        due = f"mcg_window_push_f32({window}, {s['ring']}, &{s['at']}, &{s['wait']}, {args[0]})"
        lines = [f"if ({due} == 0u) {{", "    return MCG_PENDING;", "}"]
        if plain:
            table = names.table[f"{prefix}_features"]
            lines.append(f"mcg_features_f32({window}, {table}, {s['ring']}, {s['at']}, {y});")
        for i, f in self._bands():
            first, last = f.bins
            single = int(2 * first in (0, self.length)) | int(2 * last in (0, self.length)) << 1
            text += (
                f"static const mcg_band_t {prefix}_band{i} = {{.channel = {f.channel}u, .bins = {last - first + 1}u, "
                f".single = {single}u}};\n"
            )
            ring = f"{names.table[_waves(prefix, f.bins)]}, {s['ring']}, {s['at']}"
            lines.append(f"{y}[{i}] = mcg_band_power_f32({window}, &{prefix}_band{i}, {ring});")
        init = [
            f"{s['wait']} = {self.length}u;",
            f"{s['at']} = 0;",
            f"mcg_window_init_f32({s['ring']}, {self.channels * self.length}u);",
        ]
        return OpText(("mcg_features_float.h",), text, "\n    ".join(lines), init="\n    ".join(init))

    def cost(self) -> Cost:
        """Work of one push, on average and at worst."""
        passes = sum(2 if f.kind in ("variance", "std") else 1 for _, f in self._plain())
        bins = sum(f.bins[1] - f.bins[0] + 1 for _, f in self._bands())
        always = _PUSH_STEPS + 4 * self.channels
        at_due = self.length * (passes * _SAMPLE_STEPS + bins * _BIN_STEPS)
        macs = 2 * self.length * bins
        return Cost((macs + len(self.features)) / self.step, macs, always + at_due / self.step, always + at_due)


def _waves(prefix: str, bins: tuple[int, int]) -> str:
    """The table of a band's waves."""
    return f"{prefix}_waves_{bins[0]}_{bins[1]}"
