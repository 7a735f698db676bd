"""Filters that are easily wrong: extreme cut-offs and gains, falling scales, offsets, delays. SciPy and numpy judge."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from chains import write_toml
from scipy import signal

import mcugen
from mcugen.core.stream import OK, respond
from mcugen.errors import InputError

RATE = 100.0


def given(
    kind: dict[str, Any], dtype: str = "int16", channel: dict[str, Any] | None = None, **more: Any
) -> dict[str, Any]:
    tables = {"signal": {"rate": RATE, "dtype": dtype, "name": "m"}, "channel": [{"name": "a", **(channel or {})}]}
    tables["signal"] |= more
    return {**tables, "filter": [kind]}


def filtered(tables: dict[str, Any], out: Path, x: np.ndarray) -> np.ndarray:
    """Real values (T',) of one channel, by the reference that every export compares the C with."""
    result = mcugen.export(tables, out, verify=False)
    (meaning,) = json.loads((out / "manifest.json").read_text(encoding="utf-8"))["options"]["results"]
    (y,), status = respond(result.model, {result.model.inputs[0]: x[:, None]})
    return y[status == OK][:, 0] * meaning["scale"] + meaning["offset"]


def tone(frequency: float, count: int = 1500) -> np.ndarray:
    """Full scale of int16; a cosine, for at half the rate a sine is silent."""
    return np.rint(32000 * np.cos(2 * np.pi * frequency / RATE * np.arange(count))).astype(np.int16)


@pytest.mark.parametrize(
    ("table", "frequency"),
    [
        ({"kind": "bessel", "order": 7, "cutoff": 49.9, "type": "highpass"}, 50.0),
        ({"kind": "peak", "frequency": 50 / 3, "quality": 1000.0}, 50 / 3),
        (
            {"kind": "ellip", "order": 2, "cutoff": [0.1, 0.2], "type": "bandpass", "ripple": 0.5, "attenuation": 60.0},
            0.14,
        ),
        ({"kind": "cheby2", "order": 1, "cutoff": 45.0, "type": "highpass", "attenuation": 40.0}, 50.0),
    ],
)
def test_narrow_bands_pass_what_they_should(table: dict[str, Any], frequency: float, tmp_path: Path) -> None:
    """A chirp hardly touches such a band: a form in which all coefficients round to zero must not look good."""
    x = tone(frequency)
    y = filtered(given(table), tmp_path / "m", x)
    design = {k: v for k, v in table.items() if k not in ("kind", "cutoff", "type", "order", "frequency", "quality")}
    if table["kind"] == "peak":
        wanted = signal.lfilter(*signal.iirpeak(frequency, 1000.0, fs=RATE), x.astype(float))
    else:
        make = getattr(signal, table["kind"])
        levels = [design[k] for k in ("ripple", "attenuation") if k in design]
        sos = make(table["order"], *levels, table["cutoff"], btype=table["type"], fs=RATE, output="sos")
        wanted = signal.sosfilt(sos, x.astype(float))
    assert np.abs(wanted).max() > 1000
    assert np.abs(y - wanted).max() < 2e-3 * 32768


@pytest.mark.parametrize("gain", [1e-6, 1e-3, 1.0, 1e4])
@pytest.mark.parametrize("feedback", [False, True])
def test_errors_are_judged_by_the_result(gain: float, feedback: bool, tmp_path: Path) -> None:
    """Neither is a filter of small gain rounded away, nor one of large gain refused."""
    x = tone(3.0, 600)
    row = [0.5 * gain, 0.2 * gain, 0.0, 1.0, -0.3, 0.0]
    table = {"kind": "sos", "sos": [row]} if feedback else {"kind": "taps", "taps": [gain, 0.3 * gain]}
    y = filtered(given(table), tmp_path / "m", x)
    wanted = signal.sosfilt([row], x.astype(float)) if feedback else signal.lfilter(table["taps"], 1, x.astype(float))
    assert np.abs(y - wanted).max() < 2e-3 * np.abs(wanted).max()


def test_a_slow_integrator(tmp_path: Path) -> None:
    x = tone(0.1, 1200)
    y = filtered(given({"kind": "ba", "b": [1.0], "a": [1.0, -0.9999]}), tmp_path / "m", x)
    wanted = signal.lfilter([1.0], [1.0, -0.9999], x.astype(float))
    assert np.abs(y - wanted).max() < 1e-3 * 32768 * 1e4


@pytest.mark.parametrize("dtype", ["float32", "int16"])
@pytest.mark.parametrize("order", [2, 3])
def test_low_cut_offs_in_floating_point(dtype: str, order: int, tmp_path: Path) -> None:
    """float32 coefficients are too coarse here: the sections are computed in float64."""
    x = np.random.default_rng(order).normal(size=1500).cumsum() / 40
    x = x.astype(np.float32) if dtype == "float32" else np.rint(300 * x).astype(np.int16)
    more = {} if dtype == "float32" else {"arithmetic": "float64"}
    result = mcugen.export(given({"kind": "butter", "order": order, "cutoff": 0.05}, dtype, **more), tmp_path / "m")
    assert "BiquadF64" in {type(op).__name__ for op in result.model.ops}
    np.save(tmp_path / "x.npy", x[:, None])
    y, _ = mcugen.run(tmp_path / "m", tmp_path / "x.npy", tmp_path / "y.npy")
    wanted = signal.sosfilt(signal.butter(order, 0.05, fs=RATE, output="sos"), x.astype(float))
    np.testing.assert_allclose(y[:, 0], wanted, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("kind", ["min", "max"])
def test_extremes_of_falling_scales(kind: str, tmp_path: Path) -> None:
    """The greatest real value of a channel with a negative scale is its least number."""
    x = np.random.default_rng(0).integers(-3000, 3000, (200, 3)).astype(np.int16)
    scales = np.array([0.1, -0.1, -0.25])
    table = {"kind": kind, "length": 5}
    tables = given(table) | {"channel": [{"name": n, "scale": float(k)} for n, k in zip("abc", scales, strict=True)]}
    mcugen.export(tables, tmp_path / "m")
    np.save(tmp_path / "x.npy", x)
    y, _ = mcugen.run(tmp_path / "m", tmp_path / "x.npy", tmp_path / "y.npy")
    pick = np.max if kind == "max" else np.min
    wanted = [pick(x[max(0, t - 4) : t + 1] * scales, axis=0) for t in range(len(x))]
    np.testing.assert_array_equal(y * scales, wanted)


@pytest.mark.parametrize("arithmetic", ["float32", "float64"])
@pytest.mark.parametrize("offset", [0.0, 5.0])
def test_integers_become_real_values_before_floating_point(arithmetic: str, offset: float, tmp_path: Path) -> None:
    """Features, and whoever reads the result, get the values that the scales say."""
    channel = {"scale": -0.01, "offset": offset}
    tables = given({"kind": "butter", "order": 2, "cutoff": 5.0}, channel=channel, arithmetic=arithmetic)
    x = tone(1.0, 400)[:, None]
    sos = signal.butter(2, 5.0, fs=RATE, output="sos")
    wanted = signal.sosfilt(sos, -0.01 * x[:, 0] + offset)
    np.testing.assert_allclose(filtered(tables, tmp_path / "m", x[:, 0]), wanted, atol=1e-3)
    windowed = tables | {"window": {"length": 20, "step": 20}, "feature": [{"kind": ["mean", "max"]}]}
    found = mcugen.features.load(windowed).transform(x)
    frames = wanted.reshape(-1, 20)
    np.testing.assert_allclose(found, np.stack([frames.mean(axis=1), frames.max(axis=1)], axis=1), atol=1e-3)


@pytest.mark.parametrize("kind", ["butter", "smooth", "median", "dc_block"])
def test_offsets_are_no_steps(kind: str, tmp_path: Path) -> None:
    """A thermometer at -273.15 for 0: filters start there, in the C and in the float pipeline it is compared with."""
    tables = {
        "butter": {"kind": "butter", "order": 2, "cutoff": 1.0, "type": "highpass"},
        "smooth": {"kind": "smooth", "alpha": 0.1},
        "median": {"kind": "median", "length": 5},
        "dc_block": {"kind": "dc_block", "pole": 0.99},
    }
    result = mcugen.export(
        given(tables[kind], channel={"scale": 0.01, "offset": -273.15}), tmp_path / "m", verify=False
    )
    assert result.reference.largest < 0.05


@pytest.mark.parametrize(
    ("b", "a"),
    [
        ([0.0, 0.2], [1.0, -0.8]),
        ([0.0, 0.0, 1.0], [1.0, -0.5]),
        ([0.0, 0.1, 0.05, 0.2], [2.0, -0.9, 0.3]),
        ([0.0, 0.0, 0.0, 0.3, 0.1], [1.0, -0.2, 0.1, 0.05]),
    ],
)
def test_delays_of_transfer_functions(b: list[float], a: list[float], tmp_path: Path) -> None:
    """Zeros at the start of b are delays, as of every plant that is discretized."""
    x = tone(7.0, 300)
    y = filtered(given({"kind": "ba", "b": b, "a": a}, arithmetic="float64"), tmp_path / "m", x)
    np.testing.assert_allclose(y, signal.lfilter(b, a, x.astype(float)), atol=0.01)


def test_windows_with_parameters(tmp_path: Path) -> None:
    table = {"kind": "firwin", "length": 31, "cutoff": 10.0, "window": ["kaiser", 8.0]}
    source = mcugen.load(write_toml(tmp_path / "m.toml", given(table)))
    wanted = signal.firwin(31, 10.0, window=("kaiser", 8.0), fs=RATE)
    np.testing.assert_array_equal(source.chain.model.ops[0].taps, wanted)


def test_wide_types_of_filters_without_feedback(tmp_path: Path) -> None:
    for arithmetic, op in (("q31x64", "FirQ31"), ("float64", "FirF32")):
        tables = given({"kind": "taps", "taps": [0.5, 0.25]}, arithmetic=arithmetic)
        result = mcugen.export(tables, tmp_path / arithmetic, verify=False)
        assert op in {type(o).__name__ for o in result.model.ops}


def test_a_notch_as_wide_as_the_band(tmp_path: Path) -> None:
    table = {"kind": "notch", "frequency": 49.0, "quality": 0.5}
    text = r"quality: 0.5 makes it 98 Hz wide, at 100 samples a second \(take more than 0.98\)"
    with pytest.raises(InputError, match=text):
        mcugen.export(given(table), tmp_path / "m")


@pytest.mark.parametrize(
    ("dtype", "low", "told"), [("int32", None, True), ("int32", 5000.0, False), ("int16", None, False)]
)
def test_squares_that_round_to_zero_are_told(dtype: str, low: float | None, told: bool, tmp_path: Path) -> None:
    """A 32-bit variance of full-scale int32 has steps of 2**31: what a converter of 24 bits gives may vanish in it."""
    channel = {} if low is None else {"low": -low, "high": low}
    window = {"window": {"length": 16, "step": 16}, "feature": [{"kind": ["variance", "std"]}], "filter": []}
    tables = given({}, dtype, channel) | window
    result = mcugen.export(tables, tmp_path / "m", verify=False)
    notes = [text for key, text in result.report.facts if key == "note"]
    assert any("a_variance comes in steps of" in n and "std is finer" in n for n in notes) == told
    x = np.random.default_rng(0).normal(0, 1000, (64, 1)).astype(dtype)
    y = mcugen.features.load(tables).transform(x)[:, 0]
    assert (y == 0).all() == told


@pytest.mark.parametrize(("channel", "told"), [({}, True), ({"low": -10000.0, "high": 10000.0}, False)])
def test_a_dc_block_that_may_clip_says_so(channel: dict[str, float], told: bool, tmp_path: Path) -> None:
    """Its result reaches twice the peak."""
    result = mcugen.export(given({"kind": "dc_block", "pole": 0.99}, channel=channel), tmp_path / "m", verify=False)
    assert any("clips" in line for line in result.report.details) == told
