"""Signal chains from Python: the features of one, to train on; and a filter on its own, to be exported.

f = mcugen.features.load("pipeline.toml")
X = f.transform(samples)                            # what the device computes, in the user's units
mcugen.export(mcugen.Filter(rate=1000.0, sos=sos))  # NAME_push: a sample in, a filtered one out
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from mcugen.core.types import Array, DType
from mcugen.dsp.chain import LoweredChain, lower_chain
from mcugen.dsp.lower_features import limits_of
from mcugen.dsp.samples import as_samples, quantize_samples
from mcugen.dsp.signal import Signal
from mcugen.errors import InputError
from mcugen.frontends.named_file import read_bytes
from mcugen.frontends.pipeline.load import FROM_PYTHON, chain_only

__all__ = ["Filter", "PipelineFeatures", "load"]

_HINT = "f.quantize(X) makes samples of real values"


@dataclass(frozen=True, slots=True, eq=False)
class PipelineFeatures:
    """What a signal chain computes before its model, in Python and exactly as the device.

    ``names``: of the features; of the channels where the chain ends with filters, or with a window as it is.
    ``signal``: the samples' type, scales and ranges. ``rate``: samples a second.
    """

    names: tuple[str, ...]
    signal: Signal
    where: str
    lowered: LoweredChain = field(repr=False)

    @property
    def channels(self) -> tuple[str, ...]:
        """The columns of X."""
        return self.signal.names

    @property
    def dtype(self) -> DType:
        """The type of X."""
        return self.signal.dtype

    @property
    def unit_scales(self) -> tuple[float, ...]:
        """What one unit of each result of the device is worth; 1 for float32."""
        return self.lowered.result.scales

    @property
    def unit_offsets(self) -> tuple[float, ...]:
        """What 0 of each result of the device is worth."""
        return self.lowered.result.offsets

    def quantize(self, real: npt.ArrayLike) -> Array:
        """Real values (..., C) to samples of the device's type: the nearest integers within the channels' ranges."""
        limits = () if self.dtype.is_float else limits_of(self.signal)
        return quantize_samples(real, self.signal, limits, self.where)

    def device(self, x: npt.ArrayLike) -> Array:
        """Samples (T, C) to what the device writes, (T', K); recordings (R, T, C), each started anew, to (R, T', K).

        T' is the number of results: 0 where a recording is too short. A window without features gives its samples,
        (T', length, C) or as its layout says. InputError for samples that are not of the device's type.
        """
        samples = as_samples(x, self.signal, self.where, _HINT)
        if samples.ndim == 2:
            return self.lowered.run(samples)
        runs = [self.lowered.run(r) for r in samples.reshape(-1, *samples.shape[-2:])]
        if not runs:
            raise InputError(self.where, "no recordings")
        return np.stack(runs).reshape(*samples.shape[:-2], *runs[0].shape)

    def transform(self, x: npt.ArrayLike) -> Array:
        """The results of ``device`` in the user's units, float64: what a model is to be trained on."""
        return self.lowered.real(self.device(x))


def load(source: str | Path | Mapping[str, Any]) -> PipelineFeatures:
    """The features of the signal chain in a TOML file, or in tables as ``mcugen.export`` takes them.

    The model that [model] names is not read: it need not exist yet. InputError for a file that is wrong, and as
    ``export`` for filters that cannot be.
    """
    if isinstance(source, Mapping):
        where = FROM_PYTHON
        chain, _ = chain_only(source, where, "features")
    else:
        where = Path(source).name
        chain, _ = chain_only(read_bytes(Path(source)), where, "features")
    if not chain.model.ops:
        raise InputError(where, "has no filter and no window", "write [[filter]], or [window] and [[feature]]")
    return PipelineFeatures(chain.names, chain.signal, where, lower_chain(chain.model, chain.signal, chain.choices))


@dataclass(frozen=True, slots=True, eq=False)
class Filter:
    """One filter, for ``mcugen.export(Filter(...))``: just one of ``sos``, ``taps``, or ``b`` with ``a``.

    ``sos`` (S, 6), ``b`` and ``a`` have SciPy's signs; ``taps`` are in time order. ``rate``: samples a second.
    ``channels``: how many, or their names. ``dtype``: int16, int32 or float32; ``real = scale * x + offset`` for
    integers. ``arithmetic`` and ``max_error``: as in [signal] of the TOML.
    """

    rate: float
    sos: npt.ArrayLike | None = None
    taps: npt.ArrayLike | None = None
    b: npt.ArrayLike | None = None
    a: npt.ArrayLike | None = None
    channels: int | Sequence[str] = 1
    dtype: str = "int16"
    scale: float = 1.0
    offset: float = 0.0
    arithmetic: str = "auto"
    max_error: float | None = None

    @property
    def pipeline_tables(self) -> Mapping[str, Any]:
        """The tables that say the same in TOML."""
        kinds = {"sos": self.sos is not None, "taps": self.taps is not None, "ba": self.b is not None}
        if sum(kinds.values()) != 1 or (self.a is not None and self.b is None):
            raise InputError("Filter", "takes one of sos, taps, or b and a")
        kind = next(k for k, given in kinds.items() if given)
        given = {"sos": {"sos": self.sos}, "taps": {"taps": self.taps}, "ba": {"b": self.b, "a": self.a}}[kind]
        if kind == "ba" and self.a is None:
            given["a"] = (1.0,)
        signal = {"rate": float(self.rate), "dtype": self.dtype, "arithmetic": self.arithmetic}
        if self.max_error is not None:
            signal["max_error"] = float(self.max_error)
        return {
            "signal": signal,
            "channel": [{"name": n, "scale": float(self.scale), "offset": float(self.offset)} for n in self._names()],
            "filter": [{"kind": kind, **{k: _numbers(k, v) for k, v in given.items()}}],
        }

    def _names(self) -> tuple[str, ...]:
        if isinstance(self.channels, int):
            if not 1 <= self.channels <= 4096:
                raise InputError("Filter", f"{self.channels} channels", "at least one")
            return tuple(f"x{i}" for i in range(self.channels)) if self.channels > 1 else ("x",)
        return tuple(self.channels)


def _numbers(name: str, value: npt.ArrayLike | None) -> Any:
    """Coefficients as lists of floats."""
    try:
        return np.asarray(value, np.float64).tolist()
    except (TypeError, ValueError):
        raise InputError(f"Filter: {name}", "holds something else than numbers") from None
