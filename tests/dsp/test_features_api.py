"""mcugen.features: what a user trains on is what the device computes, and close to what the user means."""

from __future__ import annotations

import numpy as np
import pytest
from feature_cases import LOC
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import mcugen.features as mf
from mcugen.core.types import DType
from mcugen.dsp.feature_tracks import strategy_of
from mcugen.dsp.lower_features import integer_level, limits_of
from mcugen.dsp.ops.window_features import WindowFeatures
from mcugen.dsp.source.features import MIN_LENGTH, Features, FeatureSpec
from mcugen.errors import InputError, UnsupportedError

QUICK = settings(deadline=None, suppress_health_check=list(HealthCheck))
PLAIN = tuple(k for k in MIN_LENGTH if k not in ("lag", "band_power"))
ITEMS = (
    *mf.every(PLAIN, ("a", "b")),
    mf.Item("lag", "a", lag=3),
    mf.Item("band_power", "b", bins=(1, 3)),
    mf.Item("zero_crossings", "a", "a_half", level=0.5),
)


def noise(dtype: DType, shape: tuple[int, ...], seed: int = 0, amplitude: float = 0.3) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return (rng.uniform(-amplitude, amplitude, shape) * dtype.max).astype(dtype.np)


@pytest.mark.parametrize("dtype", ["int16", "int32"])
@pytest.mark.parametrize(("length", "step"), [(8, 1), (30, 7), (30, 30), (16, 40)])
def test_equals_the_machine_op(dtype: str, length: int, step: int) -> None:
    """Bit for bit, by any strategy: the device's integers, times a scale, plus an offset, in float64."""
    f = mf.Features(length, step, ITEMS, dtype, scales=(0.25, -3.0), bits=(12, 15))
    x = noise(DType.of(dtype), (200, 2))
    assert f.plan is not None
    op = WindowFeatures(
        ("x",),
        ("y",),
        LOC,
        DType.of(dtype),
        length,
        step,
        limits_of(f.signal),
        f.plan.items,
        strategy_of(length, step, DType.of(dtype), f.plan.items),
    )
    (y,) = op.eval(x)
    np.testing.assert_array_equal(f.device(x), y)
    want = np.array([[s * int(v) + o for v, s, o in zip(row, f.unit_scales, f.unit_offsets, strict=True)] for row in y])
    np.testing.assert_array_equal(f.transform(x), want)
    assert f.transform(x).shape == (len(range(length - 1, 200, step)), len(f.names))


@pytest.mark.parametrize("dtype", ["int16", "int32", "float32"])
def test_recordings_start_anew(dtype: str) -> None:
    f = mf.Features(10, 4, ITEMS, dtype)
    x = noise(DType.I16, (3, 5, 31, 2)).astype(dtype)
    y = f.transform(x)
    assert y.shape == (3, 5, 6, len(f.names))
    for i in range(3):
        for j in range(5):
            np.testing.assert_array_equal(y[i, j], f.transform(x[i, j]))


@settings(QUICK, max_examples=60)
@given(
    st.sampled_from(["int16", "int32"]),
    st.integers(4, 70),
    st.sampled_from([(0.5, 0.0), (-0.125, 0.0), (1e-3, 0.0), (2.0, -40.0), (-3.0, 7.0)]),
    st.integers(0, 2**32 - 1),
)
def test_means_what_the_source_op_says(dtype: str, length: int, unit: tuple[float, float], seed: int) -> None:
    """Within a unit of each feature, and within what 24 bits of a sample give, of float64 on real values."""
    t, (scale, offset) = DType.of(dtype), unit
    level = offset + 1000 * scale
    shifts = [k for k in PLAIN if k != "rms" or offset == 0]
    items = [mf.Item(k, "a", level=level) for k in shifts]
    items += [mf.Item("lag", "a", lag=1), mf.Item("band_power", "a", bins=(1, length // 2))]
    f = mf.Features(length, 3, items, dtype, scales=(scale,), offsets=(offset,))
    amplitude = float(np.random.default_rng(seed).choice([0.001, 0.3, 1.0]))
    x = noise(t, (length + 12, 1), seed, amplitude)
    real = x * scale + offset
    (want,) = Features(("x",), ("y",), LOC, length, 3, f.specs).eval(real)
    got = f.transform(x)
    size = max(float(np.abs(x).max()), 1.0) * abs(scale)
    for i, spec in enumerate(f.specs):
        power = 2 if spec.kind in ("variance", "band_power") else 1
        slack = size**power * (2e-4 if spec.kind == "band_power" else 1e-5 if dtype == "int32" else 1e-9)
        error = np.abs(got[:, i] - want[:, i]).max()
        assert error <= abs(f.unit_scales[i]) * 1.5 + slack + 1e-9 * abs(offset), spec


@given(
    st.floats(-1e6, 1e6).filter(lambda s: abs(s) > 1e-6),
    st.floats(-1e6, 1e6),
    st.integers(1, 300),
    st.floats(-1.5, 1.5),
)
@settings(QUICK, max_examples=300)
def test_integer_level(scale: float, offset: float, limit: int, where: float) -> None:
    """Two samples lie on two sides of the integer just if their real values do, as Python computes them."""
    for level in (where * limit * scale + offset, round(where * limit) * scale + offset):
        k = integer_level(level, scale, offset, limit)
        assert -limit - 1 <= k <= limit
        x = np.arange(-limit - 1, limit + 1)
        real = [scale * int(v) + offset < level for v in x]
        np.testing.assert_array_equal(np.diff(real), np.diff(x < k))


def test_levels_at_the_ends() -> None:
    """A level beyond the samples is never crossed; at 0 with a scale of 1 it is 0."""
    assert integer_level(0.0, 1.0, 0.0, 32767) == 0
    assert integer_level(0.0, 0.5, 0.25, 32767) == 0  # -1 is -0.25, 0 is 0.25
    assert integer_level(1e9, 1.0, 0.0, 2**31 - 1) == 10**9
    assert integer_level(1e10, 1.0, 0.0, 2**31 - 1) == -(2**31)
    assert integer_level(-1e10, 1.0, 0.0, 2**31 - 1) == -(2**31)


def test_quantize() -> None:
    f = mf.Features(2, 1, mf.every(("mean",), ("a", "b")), scales=(0.5, 2.0), offsets=(1.0, 0.0), bits=(16, 8))
    q = f.quantize([[1.6, 1e9], [-1e9, -3.0]])
    assert q.dtype == np.int16
    assert q.tolist() == [[1, 127], [-32768, -2]]
    with pytest.raises(InputError, match="NaN or infinite"):
        f.quantize([[np.nan, 0.0]])


def test_names() -> None:
    assert mf.Features(8, 1, ITEMS).names[-3:] == ("a_lag3", "b_band_power1_3", "a_half")
    assert mf.every(("min", "max"), "ab") == tuple(mf.Item(k, c) for c in "ab" for k in ("min", "max"))


def test_too_few_samples() -> None:
    for dtype in ("int16", "float32"):
        f = mf.Features(8, 1, ITEMS, dtype)
        assert f.transform(np.zeros((7, 2), dtype)).shape == (0, len(f.names))
        assert f.transform(np.zeros((4, 0, 2), dtype)).shape == (4, 0, len(f.names))
        assert f.transform(np.zeros((0, 9, 2), dtype)).shape == (0, 2, len(f.names))


MEAN = mf.every(("mean",), ("a",))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"length": 0}, "features: a window of 0 samples: 1 to 32767 are possible"),
        ({"length": 32768}, "features: a window of 32768 samples: 1 to 32767 are possible"),
        ({"step": 0}, "features: a step of 0 samples: it must be at least 1"),
        ({"step": 2.0}, "features: a step of 2.0: it must be a whole number"),
        (
            {"items": (mf.Item("lag", "a", lag=1.5),)},  # type: ignore[arg-type]
            "features: a number in 'a_lag1.5' of 1.5: it must be a whole number",
        ),
        ({"items": ()}, "features: no channels"),
        ({"items": (), "channels": ("a",)}, "features: a window without features"),
        ({"items": MEAN * 2}, "features: feature 'a_mean': the name is there twice"),
        ({"items": mf.every(("men",), "a")}, "features: feature 'a_men': unknown kind 'men' (did you mean 'mean'?)"),
        ({"channels": ("b",)}, "features: feature 'a_mean': there is no channel 'a'"),
        ({"dtype": "int8"}, "features: samples of int8: int16, int32, float32 are possible"),
        ({"scales": (1.0, 2.0)}, "features: 2 scales for 1 channels"),
        ({"scales": (0.0,)}, "features: channel 'a': scale 0 and offset 0 (a scale is finite and not 0)"),
        ({"offsets": (np.nan,)}, "features: channel 'a': scale 1 and offset nan (a scale is finite and not 0)"),
        ({"bits": (17,)}, "features: bits [17]: 2 to 16 of an integer type are possible"),
        ({"channels": ("a", "a")}, "features: channel 'a': the name is there twice"),
        (
            {"dtype": "float32", "scales": (2.0,)},
            "features: channel 'a': float32 samples are real values (leave out scale and offset)",
        ),
        (
            {"length": 1, "items": mf.every(("slope",), "a")},
            "features: feature 'a_slope': slope needs a window of at least 2 samples, it has 1",
        ),
        (
            {"items": (mf.Item("lag", "a", lag=8),)},
            "features: feature 'a_lag8': lag needs a window of at least 9 samples, it has 8",
        ),
        ({"items": (mf.Item("lag", "a", lag=-1),)}, "features: feature 'a_lag-1': a lag of -1 looks into the future"),
        (
            {"items": (mf.Item("band_power", "a", bins=(2, 5)),)},
            "features: feature 'a_band_power2_5': bins 2 to 5: a window of 8 samples has the bins 0 to 4",
        ),
        (
            {"items": (mf.Item("zero_crossings", "a", level=np.inf),)},
            "features: feature 'a_zero_crossings': a level of inf is no level",
        ),
    ],
)
def test_wrong_arguments(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(InputError) as e:
        mf.Features(**{"length": 8, "step": 1, "items": MEAN, **arguments})  # type: ignore[arg-type]
    assert str(e.value) == message


@pytest.mark.parametrize("item", [mf.Item("rms", "a"), mf.Item("band_power", "a", bins=(0, 1))])
def test_an_offset_that_no_scale_expresses(item: mf.Item) -> None:
    with pytest.raises(UnsupportedError, match="would depend on its offset of 3"):
        mf.Features(8, 1, (item,), offsets=(3.0,))
    mf.Features(8, 1, (mf.Item("band_power", "a", bins=(1, 1)),), offsets=(3.0,))


@pytest.mark.parametrize(
    ("x", "message"),
    [
        (np.zeros((9, 1)), r"samples of float64, where the device has int16 \(f.quantize"),
        (np.zeros((9, 2), np.int16), r"samples of shape \(9, 2\) \(expected \(T, 1\)"),
        (np.zeros(9, np.int16), r"samples of shape \(9,\)"),
        (np.full((9, 1), 32768), "samples from 32768 to 32768 do not fit int16"),
        (np.array([["1"]] * 9), "samples of <U1"),
    ],
)
def test_wrong_samples(x: np.ndarray, message: str) -> None:
    with pytest.raises(InputError, match=message):
        mf.Features(8, 1, MEAN).transform(x)


def test_bins_of_a_band() -> None:
    assert mf.bins_of(0.3, 2.0, 10.0, 100) == (3, 20)
    assert mf.bins_of(0.0, 5.0, 10.0, 100) == (0, 50)
    with pytest.raises(InputError, match=r"no bin between 0.31 and 0.39 Hz: they are 0.1 Hz apart"):
        mf.bins_of(0.31, 0.39, 10.0, 100)
    for band in ((1.0, 6.0), (2.0, 1.0), (-1.0, 1.0), (float("nan"), 1.0)):
        with pytest.raises(InputError, match="no band below half of the rate"):
            mf.bins_of(*band, 10.0, 100)
    with pytest.raises(InputError, match="a rate of 0"):
        mf.bins_of(0.0, 1.0, 0.0, 100)


def test_all_bins_give_the_mean_square() -> None:
    """Parseval: the unit of band_power is that of the mean square."""
    x = np.random.default_rng(0).normal(size=(50, 1))
    for n in (7, 8):
        features = tuple(FeatureSpec(f"b{k}", "band_power", 0, bins=(k, k)) for k in range(n // 2 + 1))
        (y,) = Features(("x",), ("y",), LOC, n, 1, features).eval(x)
        squares = np.lib.stride_tricks.sliding_window_view(x[:, 0] ** 2, n).mean(axis=1)
        np.testing.assert_allclose(y.sum(axis=1), squares)
