"""What a filter does in its type: measured against float64 on recorded and on hard signals, and told in lines."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, log10

import numpy as np

from mcugen.core.op import MachineOp
from mcugen.core.types import Array, DType
from mcugen.dsp.checks import pole_text
from mcugen.dsp.source import FilterSource

_CHIRP = 2048
_MOST_SETTLING = 12_000
_MOST_DATA = 4096


@dataclass(frozen=True, slots=True)
class Probe:
    """Figures of a filter in one type, in units of the signal (real numbers).

    ``error``: the largest difference to float64; ``snr``: of the signal-to-noise ratio in dB on the user's data or a
    chirp (inf where nothing differs). A step of ``step`` settles at ``step_result`` instead of ``step_expected``; when
    it has ended and the float filter is at rest, ``dead_band`` is what stays.
    """

    error: float
    snr: float
    step: float
    step_result: float
    step_expected: float
    dead_band: float

    def text(self) -> str:
        """One line."""
        step = f"{self.step_result:.6g} for a step of {self.step:.6g} (float: {self.step_expected:.6g})"
        rest = f"stays at {self.dead_band:.6g} after it" if self.dead_band else "returns to 0"
        snr = "exact" if self.snr == inf else f"SNR {self.snr:.1f} dB"
        return f"error {self.error:.4g}, {snr}, {step}, {rest}"


@dataclass(frozen=True, slots=True)
class Trial:
    """One type that was tried; ``refused``: why not, empty where it was within the limit."""

    type: str
    probe: Probe | None
    refused: str

    def text(self) -> str:
        """One line."""
        figures = "" if self.probe is None else self.probe.text()
        return f"{self.type}: {'; '.join(t for t in (self.refused, figures) if t)}"


@dataclass(frozen=True, slots=True)
class SectionFacts:
    """A section as it runs. ``source``: its place in the user's sos; ``l1``: its largest result for inputs within the
    peak of the signal, as a part of the range of the type."""

    source: int
    post_shift: int
    pole: complex
    wanted_pole: complex
    l1: float
    scale: float

    def text(self) -> str:
        """One line."""
        poles = f"pole {pole_text(self.pole)} (wanted {pole_text(self.wanted_pole)})"
        sizes = f"post-shift {self.post_shift}, scale {self.scale:g}, peak {self.l1:.3f}"
        return f"section {self.source + 1}: {sizes}, {poles}"


@dataclass(frozen=True, slots=True)
class FilterReport:
    """How one filter was lowered.

    ``type``: q15, q31, 32x64, float32, float64, ``exact`` where no coefficient is rounded. ``l1``, ``l_inf``: largest
    gains for any input and for a sine. ``guard_bits``: doublings left before the proven peak leaves the type; below 0
    the result can clip, which is told in ``notes``. ``noise``: proven bound on the sum of all roundings, in the unit of
    the signal.
    """

    where: str
    kind: str
    channels: tuple[str, ...]
    type: str
    limit: float | None
    trials: tuple[Trial, ...]
    sections: tuple[SectionFacts, ...] = ()
    l1: float | None = None
    l_inf: float | None = None
    guard_bits: float | None = None
    noise: float | None = None
    notes: tuple[str, ...] = ()

    def lines(self) -> tuple[str, ...]:
        """For a terminal."""
        head = f"{self.where}: {self.kind} on {', '.join(self.channels)} in {self.type}"
        found = [head if self.limit is None else f"{head} (error allowed: {self.limit:.4g})"]
        found += [f"  {t.text()}" for t in self.trials]
        if self.l1 is not None and self.l_inf is not None:
            found.append(f"  gain at most {self.l1:.4g} for any input, {self.l_inf:.4g} for a sine")
        if self.guard_bits is not None and self.guard_bits < inf:
            noise = "" if self.noise is None else f"; roundings add at most {self.noise:.4g}"
            found.append(f"  guard bits: {self.guard_bits:.2f}{noise}")
        found += [f"  {s.text()}" for s in self.sections]
        found += [f"  {n}" for n in self.notes]
        return tuple(found)


@dataclass(frozen=True, slots=True, eq=False)
class Bench:
    """Inputs that a filter is measured on: integers (or float32) of one channel a column. ``step`` lies in the middle.

    ``data``: (T, C), the user's or a chirp; ``steps``: (2 n, 1), n samples of ``step``, then n of 0. ``tone`` (n, 1): a
    sine where the filter is loudest, for filters of which the others see next to nothing: ``loud`` is how far it goes.
    """

    data: Array
    steps: Array
    step: float
    tone: Array
    loud: float


def bench(dtype: DType, peak: float, settle: int, data: Array | None, loudest: tuple[float, float]) -> Bench:
    """``peak``: the largest magnitude of a sample; ``settle``: samples until the filter is at rest; ``data`` (T, C).
    ``loudest``: the largest gain for a sine, and where, in radians a sample."""
    top = min(peak, 1e30 if dtype.is_float else dtype.max)
    step = top * 20000 / 32767 if dtype.is_float else float(round(top * 20000 / 32767))
    n = min(max(settle, 64), _MOST_SETTLING)
    steps = np.concatenate([np.full(n, step), np.zeros(n)])[:, None].astype(dtype.np)
    # A cosine: at half the sampling rate a sine is silent.
    tone = _samples(dtype, 0.9 * top * np.cos(loudest[1] * np.arange(n)))
    loud = 0.9 * top * loudest[0]
    if data is not None and len(data):
        return Bench(np.asarray(data[:_MOST_DATA], dtype.np), steps, step, tone, loud)
    t = np.arange(_CHIRP) / _CHIRP
    # From 0 to half the sampling rate, at 9/10 of the peak.
    chirp = 0.9 * top * np.sin(0.5 * np.pi * _CHIRP * t * t)
    return Bench(_samples(dtype, chirp), steps, step, tone, loud)


def _samples(dtype: DType, real: Array) -> Array:
    """(T,) to (T, 1) of the type."""
    return np.asarray((real if dtype.is_float else np.rint(real))[:, None].astype(dtype.np))


def probe(
    source: FilterSource, ops: tuple[MachineOp, ...], bench: Bench, units: tuple[float, float], whole: tuple[int, ...]
) -> Probe:
    """Runs machine ops on the bench, each op on (T, width of the bench); ``units``: real value of 1 before and after.

    ``whole``: the columns of data that the filter treats; ``ops`` are made for signals of one channel.
    """
    before, after = units
    y, expected = (_run(source, ops, bench.data[:, [c]], before, after) for c in whole[:1]).__next__()
    parts = [(y, expected)]
    parts += [_run(source, ops, bench.data[:, [c]], before, after) for c in whole[1:]]
    stepped, wanted = _run(source, ops, bench.steps, before, after)
    half = len(bench.steps) // 2
    heard = max(float(np.abs(b).max(initial=0.0)) for _, b in [*parts, (stepped, wanted)])
    # A narrow pass-band is loud for what dwells in it, and a chirp does not.
    tones = [_run(source, ops, bench.tone, before, after)] if heard < 0.5 * bench.loud * abs(before) else []
    error = max(float(np.abs(a - b).max(initial=0.0)) for a, b in [*parts, *tones, (stepped, wanted)])
    noise = sum(float(np.square(a - b).sum()) for a, b in parts)
    power = sum(float(np.square(b).sum()) for _, b in parts)
    snr = inf if noise == 0 else -inf if power == 0 else 10 * log10(power / noise)
    rest = stepped[-max(1, half // 8) :] - wanted[-max(1, half // 8) :]
    dead = float(rest[np.abs(rest).argmax()]) if rest.size else 0.0
    result, right = float(stepped[half - 1]), float(wanted[half - 1])
    return Probe(error, snr, bench.step * before, result, right, dead if abs(dead) > 1e-9 * abs(bench.step) else 0.0)


def _run(
    source: FilterSource, ops: tuple[MachineOp, ...], x: Array, before: float, after: float
) -> tuple[Array, Array]:
    value = x
    for op in ops:
        (value,) = op.eval(value)
    exact = source.filtered(x.astype(np.float64))
    return value[:, 0].astype(np.float64) * after, exact[:, 0] * before
