"""Which sums the integer features of a window need, and how they are made at the least cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from mcugen.core.types import DType
from mcugen.dsp.feature_plan import SUM_KINDS, IntFeature

#: MCG_SUM and the others of mcg_window.h.
SUM, SQUARES, RAMP, EXTREMES, TRAVEL, CROSSINGS, LAST = (1 << i for i in range(7))

_USES: Mapping[str, int] = {
    "mean": SUM,
    "variance": SQUARES,
    "std": SQUARES,
    "rms": SQUARES,
    "min": EXTREMES,
    "max": EXTREMES,
    "peak_to_peak": EXTREMES,
    "slope": SUM | RAMP,
    "zero_crossings": CROSSINGS,
    "mean_abs_difference": TRAVEL,
    "last": LAST,
}

#: How sums are made: from the ring when a window is due; by what enters and leaves; from one window after the other.
STRATEGIES = ("scan", "run", "stream")

#: Instructions a sample of a scan, measured on the emulated Cortex-M7: (int16, int32).
_SCAN: Mapping[int, tuple[float, float]] = {
    SUM: (1.75, 5.0),
    SQUARES: (0.5, 4.0),
    RAMP: (1.0, 2.0),
    EXTREMES: (3.5, 7.0),
    TRAVEL: (6.5, 10.0),
    CROSSINGS: (6.0, 9.0),
}
#: Instructions a push and track of mcg_window_run, measured likewise.
_RUN: Mapping[int, float] = {SUM: 9.0, SQUARES: 22.0, RAMP: 15.0, EXTREMES: 19.0, TRAVEL: 20.0, CROSSINGS: 24.0}
_RUN_BASE = 30.0
#: Instructions of a feature of sums, and of its root.
FEATURE_STEPS, ROOT_STEPS = 25, 130


@dataclass(frozen=True, slots=True)
class Track:
    """Sums of one channel (mcg_track_t): which, the bits that squares drop, and the level of crossings."""

    channel: int
    uses: int
    pre: int = 0
    level: int = 0


def tracks_of(items: tuple[IntFeature, ...]) -> tuple[tuple[Track, ...], Mapping[int, int]]:
    """The tracks, and the track of each feature that is made of sums, by the feature's place in ``items``.

    A channel has one track, and one more for each further level that its crossings are counted of.
    """
    tracks: list[Track] = []
    of: dict[int, int] = {}
    for i, f in enumerate(items):
        if f.kind not in SUM_KINDS:
            continue
        t = next((k for k, t in enumerate(tracks) if t.channel == f.channel and _joins(t, f)), None)
        if t is None:
            t = len(tracks)
            tracks.append(Track(f.channel, 0))
        old, uses = tracks[t], _USES[f.kind]
        pre = f.pre if uses & SQUARES else old.pre
        tracks[t] = Track(f.channel, old.uses | uses, pre, f.level if uses & CROSSINGS else old.level)
        of[i] = t
    return tuple(tracks), of


def _joins(t: Track, f: IntFeature) -> bool:
    uses = _USES[f.kind]
    crossings = not uses & t.uses & CROSSINGS or f.level == t.level
    return crossings and (not uses & t.uses & SQUARES or f.pre == t.pre)


def needs_ring(strategy: str, items: tuple[IntFeature, ...]) -> bool:
    """Whether the samples of a window are kept."""
    return strategy != "stream" or any(f.kind not in SUM_KINDS for f in items)


def scan_cost(uses: int, length: int, dtype: DType) -> float:
    """Instructions to make these sums from the ring."""
    wide = dtype is not DType.I16
    if uses & (SQUARES | RAMP):
        uses |= SUM  # the loop is the same
    return length * sum(cost[wide] for flag, cost in _SCAN.items() if uses & flag)


def run_cost(uses: int) -> float:
    """Instructions a push to keep these sums."""
    return _RUN_BASE + sum(cost for flag, cost in _RUN.items() if uses & flag)


def renew_cost(uses: int, length: int, step: int, dtype: DType) -> float:
    """Instructions a result, on average over noise, to find extremes that have left the window.

    Of two extremes each stays for half a window or so; a search for their ages follows the scan.
    """
    if not uses & EXTREMES:
        return 0.0
    return 25.0 + min(1.0, 4 * step / length) * (scan_cost(EXTREMES, length, dtype) + 4 * length)


def strategy_of(length: int, step: int, dtype: DType, items: tuple[IntFeature, ...]) -> str:
    """The strategy with the fewest instructions from one result to the next. All give the same bits."""
    if step >= length:
        return "stream"
    tracks, _ = tracks_of(items)
    scan = sum(scan_cost(t.uses, length, dtype) for t in tracks)
    run = sum(step * run_cost(t.uses) + renew_cost(t.uses, length, step, dtype) for t in tracks)
    return "run" if run < scan else "scan"
