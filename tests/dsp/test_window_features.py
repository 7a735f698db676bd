"""WindowFeatures: integer features equal rational arithmetic, fit int32 at worst, and the C gives every bit."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from bare_core import RUNTIME
from feature_cases import LOC, cases, op_of, oracle
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from window_rig import Case, check_board, check_host, run_text

from mcugen.core.types import DType, TensorType
from mcugen.dsp.feature_plan import SUM_KINDS, IntFeature, band_norm, fit_shift, plan_feature
from mcugen.dsp.feature_tracks import tracks_of
from mcugen.dsp.ops.window_features import WindowFeatures
from mcugen.dsp.signal import Signal
from mcugen.dsp.source.features import MAX_LENGTH, MIN_LENGTH, FeatureSpec
from mcugen.dsp.window_sums import WAVE, isqrt, waves_of
from mcugen.errors import InternalError

QUICK = settings(deadline=None, suppress_health_check=list(HealthCheck))
#: Many cases in one program: compilers take longer than cases. Not shrunk, the failing case is named.
BATCH = st.lists(cases(), min_size=40, max_size=40)
BATCHES = settings(QUICK, phases=[Phase.generate], report_multiple_bugs=False)


def exact_waves(n: int, first: int, last: int) -> list[list[int]]:
    """The tables from high-precision sines, rounded to nearest."""
    out = []
    for k in range(first, last + 1):
        for shift in (0, 1):  # cos(a) = sin(a + 90 degrees)
            out.append([math.floor(WAVE * _cos(4 * k * i - shift * n, 4 * n) + 0.5) for i in range(n)])
    return out


def _cos(numerator: int, denominator: int) -> float:
    """cos(2 pi numerator / denominator), with the exact values at multiples of 30 degrees."""
    r = numerator % denominator
    exact = {0: 1.0, 3: 0.0, 6: -1.0, 9: 0.0, 2: 0.5, 4: -0.5, 8: -0.5, 10: 0.5}
    twelfth = 12 * r / denominator
    return exact[int(twelfth)] if twelfth in exact else math.cos(2 * math.pi * r / denominator)


@settings(QUICK, max_examples=150)
@given(cases())
def test_equals_rational_arithmetic(case: tuple[WindowFeatures, np.ndarray]) -> None:
    op, x = case
    (y,) = op.eval(x)
    limit = np.array(op.limits, np.int64)
    clamped = np.clip(x.astype(np.int64), -limit - 1, limit)
    due = np.flatnonzero(op.due(len(x)))
    assert y.shape == (len(due), len(op.features))
    assert y.dtype == np.int32
    for row, last in zip(y, due, strict=True):
        for got, f in zip(row, op.features, strict=True):
            w = clamped[last - op.length + 1 : last + 1, f.channel].tolist()
            waves = exact_waves(op.length, *f.bins) if f.kind == "band_power" else []
            want = oracle(w, f, waves)
            assert -(2**31) <= want < 2**31, f
            assert int(got) == want, f


@settings(BATCHES, max_examples=2)
@given(batch=BATCH)
def test_c_on_the_host(
    batch: list[tuple[WindowFeatures, np.ndarray]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    check_host([Case(op, x) for op, x in batch], tmp_path_factory.mktemp("host"))


@settings(BATCHES, max_examples=2)
@given(batch=BATCH)
def test_c_on_the_board(
    batch: list[tuple[WindowFeatures, np.ndarray]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    check_board([Case(op, x) for op, x in batch], tmp_path_factory.mktemp("board"))


@pytest.mark.slow
@settings(BATCHES, max_examples=12)
@given(batch=BATCH)
def test_many_by_every_build(
    batch: list[tuple[WindowFeatures, np.ndarray]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    many = [Case(op, x) for op, x in batch]
    check_host(many, tmp_path_factory.mktemp("host"))
    check_board(many, tmp_path_factory.mktemp("board"))


def test_strategies_give_the_same_bits_over_a_long_run(tmp_path: Path) -> None:
    """What runs along for 700 pushes is what a scan finds: nothing creeps, nothing wraps."""
    kinds = [k for k in MIN_LENGTH if k not in ("lag", "band_power")]
    specs = tuple(FeatureSpec(f"{k}{c}", k, c, level=5.0) for c in range(2) for k in kinds)
    for dtype in (DType.I16, DType.I32):
        rng = np.random.default_rng(7)
        x = rng.choice([dtype.min, dtype.max, -1, 0, 1, 5], (700, 2)).astype(dtype.np)
        ops = [op_of(specs, 33, 3, Signal.of(("a", "b"), dtype), s) for s in ("scan", "run")]
        check_host([Case(op, x) for op in ops], tmp_path, ("sanitized",))
        np.testing.assert_array_equal(ops[0].eval(x)[0], ops[1].eval(x)[0])


def worst_cases(f: IntFeature, n: int, m: int) -> list[list[int]]:
    """Windows that bring a feature to the ends of its range."""
    low, high = -m, m - 1
    half = [low] * (n // 2) + [high] * (n - n // 2)
    zigzag = [low if i % 2 else high for i in range(n)]
    worst = [[low] * n, [high] * n, half, half[::-1], zigzag, zigzag[::-1]]
    if f.kind == "band_power":
        for wave in waves_of(n, *f.bins).tolist():
            worst.append([high if v > 0 else low for v in wave])
    return worst


@pytest.mark.parametrize("dtype", [DType.I16, DType.I32], ids=lambda d: d.label)
@pytest.mark.parametrize("length", [1, 2, 3, 128, 1000, MAX_LENGTH])
def test_nothing_overflows_at_worst(dtype: DType, length: int) -> None:
    """At full scale each exact integer stays within int64, each result within int32, for the longest windows too."""
    m = -dtype.min
    for kind, least in MIN_LENGTH.items():
        if least > length:
            continue
        spec = FeatureSpec(kind, kind, 0, bins=(1, 2) if length >= 4 else (0, length // 2))
        item, _ = plan_feature(spec, length, m, 0)
        for w in worst_cases(item, length, m):
            op = WindowFeatures(("x",), ("y",), LOC, dtype, length, length, (m - 1,), (item,), "stream")
            (y,) = op.eval(np.array(w, dtype.np)[:, None])
            waves = waves_of(length, *item.bins).tolist() if kind == "band_power" else []
            want = oracle(w, item, waves)
            assert -(2**31) <= want < 2**31, kind
            assert int(y[0, 0]) == want, kind


@given(st.integers(1, MAX_LENGTH), st.integers(1, 2**31), st.integers(0, 40))
@settings(QUICK, max_examples=200)
def test_a_band_is_bounded(length: int, m: int, bins: int) -> None:
    """The bound on a band's power, which its shifts come from, holds for the plan of every length and range."""
    first, last = 0, min(bins, length // 2)
    item, unit = plan_feature(FeatureSpec("b", "band_power", 0, bins=(first, last)), max(length, 2), m, 0)
    norm = band_norm(max(length, 2), first, last, m)
    assert norm < 2**63
    parts = (norm >> item.pre) + 1 + math.isqrt(last - first + 1) + 1
    assert parts < 2**31
    assert (parts**2 + (1 << item.shift >> 1)) >> item.shift < 2**31
    assert unit.factor > 0


@pytest.mark.parametrize("kind", ["mean", "variance", "std", "rms", "slope", "mean_abs_difference", "band_power"])
@pytest.mark.parametrize("length", [2, 100, 1000])
def test_range_is_used(kind: str, length: int) -> None:
    """No more bits are dropped than the worst case asks for: at full scale a result passes 2^27, or is exact."""
    item, _ = plan_feature(FeatureSpec(kind, kind, 0, bins=(1, 1)), length, 1 << 15, 0)
    if item.shift == 0 and item.up == 0:
        return
    largest = max(abs(oracle(w, item, waves_of(length, 1, 1).tolist())) for w in worst_cases(item, length, 1 << 15))
    assert largest >= 2**27


def test_waves_are_sines_rounded() -> None:
    """By exact values at multiples of 30 degrees, where a sine is half of the amplitude, and math elsewhere."""
    for n in (2, 3, 4, 12, 100, 127):
        last = n // 2
        np.testing.assert_array_equal(waves_of(n, 0, last), np.array(exact_waves(n, 0, last), np.int64))


@settings(QUICK, max_examples=300)
@given(st.integers(0, 2**31 - 1), st.integers(-2, 2))
def test_isqrt(root: int, beside: int) -> None:
    v = min(max(root * root + beside, 0), 2**62 - 1)
    assert int(isqrt(np.array([v], np.int64))[0]) == math.isqrt(v)


def test_isqrt_in_c(tmp_path: Path) -> None:
    """Beside every kind of square, on the host with sanitizers."""
    rng = np.random.default_rng(5)
    roots = np.concatenate(
        [np.arange(300), 2 ** np.arange(31), 2 ** np.arange(1, 32) - 1, rng.integers(0, 2**31, 4000)]
    )
    values = np.concatenate([roots**2, roots**2 - 1, roots**2 + 1, roots**2 + 2 * roots])
    values = values[(values >= 0) & (values < 2**62)].astype(np.int64)
    (tmp_path / "in.bin").write_bytes(values.tobytes())
    text = (
        '#include "mcg_features.h"\n#include <stdio.h>\nint main(void)\n{\nuint64_t v;\n'
        "while (fread(&v, 8, 1, stdin) == 1) { const uint32_t r = mcg_isqrt(v); fwrite(&r, 4, 1, stdout); }\n"
        "return 0;\n}\n"
    )
    output = run_text(text, values.tobytes(), tmp_path)
    assert np.frombuffer(output, "<u4").tolist() == [math.isqrt(v) for v in values.tolist()]


def test_kinds_are_those_of_the_header() -> None:
    """One list on each side, in the same order."""
    text = (RUNTIME / "include" / "mcg_features.h").read_text(encoding="utf-8")
    assert [k.lower() for k in re.findall(r"\bMCG_FEATURE_(\w+),? +/\*", text)] == list(SUM_KINDS)


def test_a_channel_has_one_track_a_level() -> None:
    items = (
        IntFeature("mean", 0),
        IntFeature("zero_crossings", 0, level=3),
        IntFeature("zero_crossings", 0, level=4),
        IntFeature("std", 0, 1),
        IntFeature("max", 1),
        IntFeature("lag", 1, lag=2),
    )
    tracks, of = tracks_of(items)
    assert [(t.channel, t.level, t.pre) for t in tracks] == [(0, 3, 1), (0, 4, 0), (1, 0, 0)]
    assert of == {0: 0, 1: 0, 2: 1, 3: 0, 4: 2}


def test_cheaper_strategy() -> None:
    """Sums run along where windows overlap much; a few long steps are scanned; a jump needs no ring."""
    specs = (FeatureSpec("m", "mean", 0), FeatureSpec("v", "variance", 0))
    signal = Signal.of(("a",), DType.I16)
    assert op_of(specs, 100, 1, signal).strategy == "run"
    assert op_of(specs, 100, 50, signal).strategy == "scan"
    jump = op_of(specs, 100, 100, signal)
    assert jump.strategy == "stream"
    assert not jump.has_ring
    assert op_of((FeatureSpec("l", "lag", 0, lag=3),), 100, 100, signal).has_ring


def test_shifts() -> None:
    assert fit_shift(2**31 - 1, -(2**31)) == 0
    assert fit_shift(2**31) == 1
    assert fit_shift(2**32 - 1) == 2  # rounded up it would be 2^31
    assert fit_shift(0, -(2**31) - 1) == 1


@pytest.mark.parametrize(
    ("fields", "types"),
    [
        ({"step": 0}, {}),
        ({"length": MAX_LENGTH + 1}, {}),
        ({"strategy": "stream"}, {}),
        ({"strategy": "guess"}, {}),
        ({"limits": (40000,)}, {}),
        ({"features": (IntFeature("mean", 1),)}, {}),
        ({"features": (IntFeature("lag", 0, lag=10),)}, {}),
        ({}, {"x": TensorType((2,), DType.I16)}),
        ({}, {"x": TensorType((1,), DType.I32)}),
        ({}, {"y": TensorType((1,), DType.I16)}),
        ({}, {"y": TensorType((2,), DType.I32)}),
    ],
)
def test_spec_check(fields: dict[str, object], types: dict[str, TensorType]) -> None:
    good = WindowFeatures(("x",), ("y",), LOC, DType.I16, 10, 1, (32767,), (IntFeature("mean", 0),), "scan")
    right = {"x": TensorType((1,), DType.I16), "y": TensorType((1,), DType.I32)}
    good.check(right)
    with pytest.raises(InternalError):
        replace(good, **fields).check({**right, **types})  # type: ignore[arg-type]
