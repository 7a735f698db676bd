"""From SciPy's filters to machine ops: the F rows of other tools' faults, proofs of ranges, the choice of a type."""

from __future__ import annotations

import re

import numpy as np
import pytest
from filter_cases import signals
from hypothesis import given, settings
from hypothesis import strategies as st
from push_rig import LOC
from scipy import signal

from mcugen.core.op import MachineOp
from mcugen.core.types import DType
from mcugen.dsp.gains import impulse, l1, rows_of, settle_steps
from mcugen.dsp.lower import FilterChoices, Lowered, lower_filters
from mcugen.dsp.ops import BiquadQ15, BiquadQ63, FirF32, FirQ15, FirQ31
from mcugen.dsp.quantize import quantize_sections, quantize_taps
from mcugen.dsp.signal import Signal
from mcugen.dsp.source import (
    FILTER_OPS,
    DcBlock,
    Decimate,
    Extreme,
    FilterSource,
    Fir,
    Iir,
    Median,
    MovingAverage,
    Smooth,
    WeightedAverage,
)
from mcugen.errors import InputError

TYPES = ("q15", "q31", "32x64", "float32")


def iir(sos: np.ndarray, channels: tuple[int, ...] = (0,)) -> Iir:
    return Iir(("x",), ("y",), LOC, channels, np.atleast_2d(sos))


def fir(taps: list[float] | np.ndarray, channels: tuple[int, ...] = (0,)) -> Fir:
    return Fir(("x",), ("y",), LOC, channels, np.asarray(taps, np.float64))


def lowered(op: FilterSource, dtype: DType = DType.I16, kind: str = "auto", error: float | None = None) -> Lowered:
    return lower_filters([op], Signal.of(("a",), dtype), FilterChoices(kind, error))


def run(found: Lowered, x: np.ndarray) -> np.ndarray:
    """Samples (T, C) through all ops, as real numbers."""
    value = x
    for op in found.ops:
        (value,) = op.eval(value)
    return value * np.array(found.signal.scales)


def only(found: Lowered, kind: type[MachineOp]) -> MachineOp:
    return next(op for op in found.ops if isinstance(op, kind))


# The F rows


def test_f1_signs_are_those_of_scipy() -> None:
    """b = 0.01126, 0.03050 with a pole as given: b and a in SciPy's order, the first two results known."""
    b, a = [0.02934421, 0.0], [1.0, -1.93806 + 0.0]
    sos = signal.tf2sos(b, a) if abs(np.roots(a)).max() < 1 else None
    assert sos is None  # the literal design is unstable: refused below; a stable one follows SciPy
    sos = signal.tf2sos(*signal.iirfilter(1, [0.01126, 0.03050]))
    expected = signal.lfilter(*signal.iirfilter(1, [0.01126, 0.03050]), [1.0, 2.0])
    np.testing.assert_allclose(expected, [0.02934421, 0.11555813], atol=5e-9)
    x = np.array([[1.0], [2.0]], np.float32)
    np.testing.assert_allclose(run(lowered(iir(sos), DType.F32), x)[:, 0], expected, atol=1e-7)
    scaled = (x * 10000).astype(np.int16)
    np.testing.assert_allclose(run(lowered(iir(sos), kind="q31"), scaled)[:, 0], expected * 10000, atol=0.01)


@pytest.mark.parametrize("kind", ["q15", "q31", "32x64"])
def test_f3_post_shift_comes_with_scaled_coefficients(kind: str) -> None:
    """Three sections: the fixed-point result is that of the float filter, and coefficients beyond 1 are not clipped."""
    sos = signal.butter(6, 0.2, output="sos")
    found = lowered(iir(sos), kind=kind)
    op = found.ops[-1]
    assert min(op.post_shift) >= 1
    x = signals(np.int16, 4, 2000)["random"][:, None] // 2
    expected = signal.sosfilt(sos, x[:, 0].astype(float))
    assert np.abs(run(found, x)[:, 0] - expected).max() <= {"q15": 16, "q31": 0.01, "32x64": 0.01}[kind]


def test_f5_a_narrow_notch_keeps_its_precision() -> None:
    """iirnotch(50, 10, fs=125) against SciPy; the bound on the roundings is in the report and holds."""
    sos = signal.tf2sos(*signal.iirnotch(50, 10, fs=125))
    for kind in TYPES:
        found = lowered(iir(sos), kind=kind)
        x = signals(np.int16, 4, 3000)["random"][:, None] // 4
        error = np.abs(run(found, x)[:, 0] - signal.sosfilt(sos, x[:, 0].astype(float))).max()
        assert error <= {"q15": 12, "q31": 0.01, "32x64": 0.01, "float32": 0.02}[kind]
        if kind == "q31":
            assert re.search("roundings add at most", "\n".join(found.reports[0].lines()))
            assert error <= found.reports[0].noise + 1e-4  # and what the rounding of coefficients adds


@pytest.mark.parametrize("kind", ["q15", "q31", "float32"])
@pytest.mark.parametrize("taps", [[0.5], [0.25, 0.5, 0.25], [0.1, 0.2, 0.4, 0.2, 0.1]])
def test_f8_odd_numbers_of_taps(kind: str, taps: list[float]) -> None:
    x = signals(np.int16, 4, 500)["random"][:, None]
    error = run(lowered(fir(taps), kind=kind), x)[:, 0] - signal.lfilter(taps, 1, x[:, 0].astype(float))
    assert np.abs(error).max() <= {"q15": 1 + 0.5 * len(taps), "q31": 1e-3, "float32": 1e-2}[kind]


def test_f9_taps_stand_in_time_order() -> None:
    op = FirQ15(("x",), ("y",), LOC, (0,), 1, np.array([1000, 2000, 3000, 4000], np.int16))
    x = np.array([[32767], [0], [0], [0], [0]], np.int16)
    assert op.eval(x)[0][:, 0].tolist() == [999, 1999, 2999, 3999, 0]
    found = lowered(fir(np.array([1000, 2000, 3000, 4000]) / 32768))
    np.testing.assert_array_equal(only(found, FirQ15).taps, op.taps)


def test_f10_sums_of_full_scale_saturate() -> None:
    """64 taps near 1 on full-scale input: saturates; with the filter lowered in q31 a proof keeps it from wrapping."""
    op = FirQ15(("x",), ("y",), LOC, (0,), 1, np.full(64, 32767, np.int16))
    assert not op.narrow
    x = np.full((100, 1), 32767, np.int16)
    assert op.eval(x)[0][-1, 0] == 32767
    found = lowered(fir(np.full(64, 0.99)))
    assert found.reports[0].guard_bits is not None
    assert found.reports[0].guard_bits >= 0
    np.testing.assert_allclose(run(found, x)[-1, 0], 64 * 0.99 * 32767, rtol=1e-3)


def test_f13_dead_band_of_one_q15_section() -> None:
    """butter(2, 0.01): 19020 for a step of 20000, then stuck at -44: shown, and refused when the type is chosen."""
    sos = signal.butter(2, 0.01, output="sos")
    forced = lowered(iir(sos), kind="q15")
    op = only(forced, BiquadQ15)
    assert op.post_shift == (1,)
    y = op.eval(np.repeat(np.array([[20000], [0]], np.int16), 3000, axis=0))[0][:, 0]
    assert y[2999] == 19020
    assert y[-1] == -44
    text = "\n".join(forced.reports[0].lines())
    assert "19020 for a step of 20000" in text
    assert "stays at -44" in text
    assert "the error is above" in text
    auto = lowered(iir(sos))
    assert auto.reports[0].type == "q31"
    assert auto.reports[0].trials[0].type == "q15"
    assert "error above" in auto.reports[0].trials[0].refused


# Proofs


def designs() -> list[np.ndarray]:
    found = [signal.butter(n, w, output="sos") for n in (1, 2, 4) for w in (0.02, 0.2, 0.7)]
    found += [signal.butter(2, [0.1, 0.2], "bandpass", output="sos"), signal.butter(3, 0.3, "highpass", output="sos")]
    return [*found, signal.ellip(4, 1, 60, 0.3, output="sos"), signal.tf2sos(*signal.iirnotch(0.2, 30))]


@pytest.mark.parametrize("kind", ["q31", "32x64"])
def test_no_input_makes_a_section_wrap(kind: str) -> None:
    """The worst input for each section (signs of its impulse response, turned round) stays below 2^31, at the peak that
    was proven."""
    for sos in designs():
        found = lowered(iir(sos), kind=kind)
        shift, op = found.ops
        rows = quantized_rows(op)
        steps = min(4000, settle_steps(rows, 1e-4))
        for k in range(len(rows)):
            h = impulse(rows[: k + 1], steps)
            x = np.where(h[::-1] < 0, -32768, 32767).astype(np.int16)[:, None]
            part = type(op)(("x",), ("y",), LOC, (0,), 1, op.coefficients[: k + 1], op.post_shift[: k + 1]).eval(
                shift.eval(x)[0]
            )[0]
            exact = signal.sosfilt(as_sos(rows[: k + 1]), shift.eval(x)[0][:, 0].astype(float))
            assert abs(exact[-1]) > 0.9 * l1(h) * 32767 * 2.0**shift.shift  # the input is as bad as it can be
            np.testing.assert_allclose(part[:, 0], exact, atol=2.0**31 * 1e-3)  # nothing has wrapped
        assert found.reports[0].guard_bits >= 0


def quantized_rows(op: MachineOp) -> np.ndarray:
    bits = 15 if isinstance(op, BiquadQ15) else 31
    return op.coefficients * 2.0 ** (np.array(op.post_shift) - bits)[:, None]


def as_sos(rows: np.ndarray) -> np.ndarray:
    return np.column_stack([rows[:, :3], np.ones(len(rows)), rows[:, 3:]])


@pytest.mark.parametrize("dtype", [DType.I16, DType.I32])
def test_a_sensor_that_breaks_its_promise_is_clamped(dtype: DType) -> None:
    """Samples beyond the promised range act like its end; without that a filter of 32 bits would wrap."""
    s = Signal.of(("a", "b"), dtype, peaks=(1000.0, 2047.0))
    chain = [
        Iir(("x",), ("v",), LOC, (0, 1), signal.butter(2, 0.3, output="sos")),
        Fir(("v",), ("y",), LOC, (0, 1), signal.firwin(9, 0.4)),
    ]
    found = lower_filters(chain, s, FilterChoices("q31"))
    assert [type(op).__name__ for op in found.ops[:2]] == ["ShiftSamples", "BiquadQ31"]
    assert found.proven
    wild = np.random.default_rng(3).choice([dtype.min, dtype.max, 500, -500], (300, 2)).astype(dtype.np)
    tame = np.clip(wild, [-1000, -2047], [1000, 2047]).astype(dtype.np)
    np.testing.assert_array_equal(run(found, wild), run(found, tame))
    exact = tame.astype(np.float64)
    for op in chain:
        (exact,) = op.eval(exact)
    np.testing.assert_allclose(run(found, wild), exact, atol=0.01)


def test_rounding_stays_within_the_proven_bound() -> None:
    for sos in designs():
        for kind in ("q31", "32x64"):
            found = lowered(iir(sos), kind=kind)
            op = found.ops[-1]
            x = signals(np.int16, 8, 1500)["random"][:, None] // 3
            y = run(found, x)[:, 0]
            same = signal.sosfilt(as_sos(quantized_rows(op)), x[:, 0].astype(float))
            assert np.abs(y - same * found.signal.scales[0] * 2.0 ** found.ops[0].shift).max() <= (
                found.reports[0].noise + 1e-6
            )


@settings(max_examples=60, deadline=None)
@given(st.lists(st.floats(-8, 8), min_size=1, max_size=20), st.sampled_from([15, 31]))
def test_taps_are_rounded_and_never_clipped(taps: list[float], bits: int) -> None:
    q = quantize_taps(np.array(taps), bits)
    assert np.abs(q.integers).max() <= 2**bits - 1
    error = np.abs(q.integers * 2.0 ** (q.shift - bits) - taps)
    assert error.max() <= 2.0 ** (q.shift - bits - 1)


@settings(max_examples=60, deadline=None)
@given(st.floats(0.05, 0.95), st.floats(0.02, 3.1), st.floats(0.001, 3.9), st.sampled_from([15, 31]))
def test_sections_are_rounded_and_never_clipped(r: float, angle: float, gain: float, bits: int) -> None:
    row = np.array([[gain, -gain / 3, gain / 2, -2 * r * np.cos(angle), r * r]])
    q = quantize_sections(row, bits, 1.0, 12, False)
    assert np.abs(q.coefficients).max() <= 2**bits - 1
    assert np.abs(q.rows() - row).max() <= 2.0 ** (q.post_shift[0] - bits - 1)


# Choice


def test_the_cheapest_type_within_the_limit() -> None:
    op = iir(signal.butter(2, 0.02, output="sos"))
    tight, loose = lowered(op, error=0.01), lowered(op, error=1000.0)
    assert (tight.reports[0].type, loose.reports[0].type) == ("q31", "q15")
    assert tight.reports[0].trials[-1].probe.error <= 0.01
    with pytest.raises(InputError, match="no type stays within"):
        lowered(op, error=1e-12)


def test_low_cut_offs_take_the_wide_memory() -> None:
    op = iir(signal.butter(2, 1e-3, output="sos"))
    found = lowered(op, error=2.5)
    assert found.reports[0].type == "32x64"
    assert isinstance(found.ops[-1], BiquadQ63)
    assert [t.type for t in found.reports[0].trials] == ["q15", "q15 with headroom", "q31", "32x64"]
    assert all(t.refused for t in found.reports[0].trials[:-1])


@pytest.mark.parametrize("dtype", [DType.I16, DType.I32, DType.F32])
def test_every_filter_is_near_its_source(dtype: DType) -> None:
    """Chains on some of the channels: values, scales, offsets and types stay together."""
    x = signals(dtype.np.type, 6, 800)["random"].reshape(-1, 2)
    x = np.clip(x, -3, 3) if dtype.is_float else x // 3
    chain = [
        Median(("x",), ("m",), LOC, (0,), 3),
        MovingAverage(("m",), ("n",), LOC, (0, 1), 4),
        Fir(("n",), ("f",), LOC, (1,), signal.firwin(9, 0.4)),
        WeightedAverage(("f",), ("w",), LOC, (0,), np.array([3.0, 2.0, 1.0])),
        Iir(("w",), ("i",), LOC, (0, 1), signal.butter(2, 0.2, output="sos")),
        Smooth(("i",), ("s",), LOC, (1,), 0.3),
        DcBlock(("s",), ("d",), LOC, (0,), 0.95),
        Extreme(("d",), ("e",), LOC, (1,), 3, "max"),
        Decimate(("e",), ("y",), LOC, (0, 1), 3),
    ]
    assert {type(op) for op in chain} == set(FILTER_OPS)
    s = Signal.of(
        ("a", "b"), dtype, scales=(0.5, 2.0), offsets=(1.0, -3.0), peaks=(4.0, 4.0) if dtype.is_float else None
    )
    found = lower_filters(chain, s, data=x)
    exact = x * np.array([0.5, 2.0])
    for op in chain:
        (exact,) = op.eval(exact)
    y = run(found, x)
    assert y.shape == exact.shape
    peak = 1.0 if dtype.is_float else 32768 if dtype is DType.I16 else 2.0**31
    np.testing.assert_allclose(y, exact, atol=(1e-5 if dtype is not DType.I16 else 2e-3) * peak)
    assert found.data is not None
    np.testing.assert_array_equal(found.data * np.array(found.signal.scales), y)
    assert found.signal.offsets == pytest.approx((0.0, -3.0))
    assert [t.shape for t in found.types.values()] == [(2,)] * len(found.types)
    assert all(line == line.strip("\n") for r in found.reports for line in r.lines())


def test_types_of_single_filters() -> None:
    chain = [
        Fir(("x",), ("f",), LOC, (0,), signal.firwin(9, 0.4)),
        Fir(("f",), ("y",), LOC, (0,), signal.firwin(9, 0.4)),
    ]
    found = lower_filters(chain, Signal.of(("a",), DType.I16), FilterChoices(types={1: "q31"}))
    assert [type(op) for op in found.ops if "Fir" in type(op).__name__] == [FirQ15, FirQ31]
    found = lower_filters(chain, Signal.of(("a",), DType.I16), FilterChoices("float32"))
    assert [type(op) for op in found.ops if "Fir" in type(op).__name__] == [FirF32, FirF32]


# Bad input


BAD = {
    "zero taps": (fir([]), "zero taps"),
    "nan": (fir([0.5, np.nan]), r"taps\[1\] is nan"),
    "inf": (iir(np.array([1, 0, np.inf, 1, 0, 0])), r"sos\[2\] is inf"),
    "all zero": (fir([0.0, 0.0]), "all taps are zero"),
    "unstable": (iir(np.array([1, 0, 0, 1, -2.1, 1.2])), r"section 1 is unstable: pole 1.05 .*magnitude 1.0954451"),
    "on the circle": (iir(np.array([1, 0, 0, 1, -2, 1])), "section 1 is unstable: pole 1"),
    "near the circle": (iir(np.array([1, 0, 0, 1, -0.9999999, 0])), "too close to the unit circle"),
    "a0": (iir(np.array([1, 0, 0, 0, 0, 0])), "a0 of section 1 is 0"),
    "shape": (iir(np.array([[1.0, 2.0]])), r"sos of shape \(1, 2\)"),
    "weights": (WeightedAverage(("x",), ("y",), LOC, (0,), np.array([1.0, -1.0])), "sum to zero"),
    "window": (MovingAverage(("x",), ("y",), LOC, (0,), 0), "a window of 0 samples"),
    "even median": (Median(("x",), ("y",), LOC, (0,), 4), "no middle"),
    "kind": (Extreme(("x",), ("y",), LOC, (0,), 4, "most"), "'most' is unknown"),
    "alpha": (Smooth(("x",), ("y",), LOC, (0,), 0.0), "alpha is 0.0"),
    "alpha nan": (Smooth(("x",), ("y",), LOC, (0,), float("nan")), "alpha is nan"),
    "pole": (DcBlock(("x",), ("y",), LOC, (0,), 1.0), "pole is 1.0"),
    "factor": (Decimate(("x",), ("y",), LOC, (0,), 0), "decimation by 0"),
    "channel": (fir([1.0], (3,)), "channel 3 does not exist"),
    "no channel": (fir([1.0], ()), "no channel"),
    "twice": (fir([1.0], (0, 0)), "named twice"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_filters_are_one_line(name: str) -> None:
    op, text = BAD[name]
    with pytest.raises(InputError, match=text) as caught:
        lowered(op)
    assert "\n" not in str(caught.value)
    assert str(caught.value).startswith("filter.toml: filter[0]: ")


def test_forced_types_that_cannot_hold_the_filter() -> None:
    slow = iir(signal.butter(4, 0.002, output="sos"))
    text = r"unstable once quantized: pole .* \(choose a wider arithmetic in \[signal\], or auto\)"
    with pytest.raises(InputError, match=text):
        lowered(slow, kind="q15")
    with pytest.raises(InputError, match="q15 filters take int16 samples, not int32"):
        lowered(fir([0.5]), DType.I32, "q15")
    with pytest.raises(InputError, match="q31 filters take integers, not float32"):
        lowered(fir([0.5]), DType.F32, "q31")
    with pytest.raises(InputError, match="'q7' is no type"):
        lowered(fir([0.5]), kind="q7")
    with pytest.raises(InputError, match="no limit"):
        lowered(fir([0.5]), error=float("nan"))
    with pytest.raises(InputError, match=r"samples of float64 \(4, 1\)"):
        lower_filters([fir([0.5])], Signal.of(("a",), DType.I16), data=np.zeros((4, 1)))


def test_gains_are_those_of_scipy() -> None:
    for sos in designs():
        rows, n = rows_of(sos), settle_steps(rows_of(sos))
        unit = np.zeros(n)
        unit[0] = 1
        np.testing.assert_allclose(impulse(rows, n), signal.sosfilt(sos, unit), atol=1e-12)
