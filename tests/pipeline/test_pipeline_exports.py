"""Whole signal chains, from the TOML to the C on this machine and the emulated board, against SciPy and LightGBM."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from chains import LOWPASS, WINDOW, booster, recording, tables, write_toml
from scipy import signal as scipy_signal

import mcugen
from mcugen.core.types import DType
from mcugen.errors import DiffersError


def ran(out: Path, x: np.ndarray, target: str = "host") -> np.ndarray:
    """What the C gives for the samples, a row a result."""
    np.save(out.parent / "x.npy", x)
    y, _ = mcugen.run(out, out.parent / "x.npy", out.parent / "y.npy", target)
    return np.asarray(y)


def real(x: np.ndarray) -> np.ndarray:
    """The real values of ``recording``, by the scales of ``tables``."""
    return x * np.array([0.0005, -0.001]) + np.array([0.0, 0.25])


def test_filter_alone_is_scipys(tmp_path: Path) -> None:
    """One channel filtered, one that passes: the first within the printed error of SciPy's, the second as it came."""
    given = tables(window=None, feature=None, signal={"rate": 100.0, "max_error": 0.002})
    result = mcugen.export(write_toml(tmp_path / "lp.toml", given), tmp_path / "out")
    x = recording()
    y = ran(tmp_path / "out", x)
    wanted = scipy_signal.sosfilt(scipy_signal.butter(4, 20.0, fs=100.0, output="sos"), real(x)[:, 0])
    scales = [r["scale"] for r in result_rows(tmp_path / "out")]
    np.testing.assert_allclose(y[:, 0] * scales[0], wanted, atol=0.002)
    np.testing.assert_allclose(y[:, 1] * scales[1] + 0.25, real(x)[:, 1], atol=1e-12)
    assert result.model.name == "lp"
    np.testing.assert_array_equal(mcugen.features.load(given).device(x), y)


def result_rows(out: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads((out / "manifest.json").read_text(encoding="utf-8"))["options"]["results"]
    return rows


def test_filters_on_subsets_and_decimation(tmp_path: Path) -> None:
    """Several filters, each on its channels, one behind the other at the rate that is left."""
    filters = [
        {"kind": "median", "length": 3, "channels": ["ay"]},
        {"kind": "moving_average", "length": 4},
        {"kind": "decimate", "factor": 4},
        {"kind": "butter", "order": 2, "cutoff": 5.0, "type": "highpass", "channels": ["ax"]},
    ]
    given = tables(filter=filters, window=None, feature=None)
    mcugen.export(given, tmp_path / "out", name="many")
    x = recording(400)
    y = ran(tmp_path / "out", x)
    assert len(y) == 100
    ax, ay = real(x).T
    before = np.concatenate([np.repeat(ay[:1], 2), ay])
    ay = np.median(np.lib.stride_tricks.sliding_window_view(before, 3), axis=1)
    means = [scipy_signal.lfilter(np.ones(4) / 4, 1.0, v - v[0])[::4] + v[0] for v in (ax, ay)]
    sos = scipy_signal.butter(2, 5.0, "highpass", fs=25.0, output="sos")
    found = mcugen.features.load(given).transform(x)
    # The first means are of fewer samples on the device; the high-pass remembers them for a while.
    np.testing.assert_allclose(found[1:, 1], means[1][1:], atol=2e-3)
    np.testing.assert_allclose(found[40:, 0], scipy_signal.sosfilt(sos, means[0])[40:], atol=5e-3)
    np.testing.assert_array_equal(mcugen.features.load(given).device(x), y)


@pytest.mark.parametrize("dtype", ["int16", "float32", pytest.param("int32", marks=pytest.mark.slow)])
def test_features_are_those_of_python(dtype: str, tmp_path: Path) -> None:
    """The C writes, bit for bit, what ``features.load`` computes: for one run, and after a reset for another."""
    channels = [{"name": "ax"}, {"name": "ay"}]
    given = tables(signal={"rate": 100.0, "dtype": dtype}, channel=channels)
    mcugen.export(given, tmp_path / "out", name=f"feat_{dtype}")
    f = mcugen.features.load(given)
    assert f.names == ("ax_mean", "ax_std", "ax_slope", "ay_mean", "ay_std", "ay_slope", "ax_zero_crossings")
    assert f.dtype is DType.of(dtype)
    x = recording(dtype=dtype)
    y = ran(tmp_path / "out", x)
    np.testing.assert_array_equal(f.device(x), y)
    np.testing.assert_array_equal(f.device(np.stack([x, x[::-1]]))[0], y)
    smooth = scipy_signal.sosfilt(scipy_signal.butter(4, 20.0, fs=100.0, output="sos"), x[:, 0].astype(float))
    means = np.lib.stride_tricks.sliding_window_view(smooth, 20)[::10].mean(axis=1)
    np.testing.assert_allclose(f.transform(x)[:, 0], means, atol=1e-3 * np.abs(x).max())


OUTPUTS = [
    ("regression", "raw", "int16"),
    ("binary", "proba", "int16"),
    ("multiclass", "class", "float32"),
    pytest.param("multiclass", "raw", "int16", marks=pytest.mark.slow),
]


@pytest.mark.parametrize(("objective", "output", "dtype"), OUTPUTS)
def test_lightgbm_on_the_features(objective: str, output: str, dtype: str, tmp_path: Path) -> None:
    """LightGBM on ``transform(x)`` is the oracle: raw scores as bits, the same class, probabilities to rounding."""
    changes = {} if dtype == "int16" else {"channel": [{"name": "ax"}, {"name": "ay"}]}
    given = tables(signal={"rate": 100.0, "dtype": dtype}, window={"length": 20, "step": 3}, **changes)
    f = mcugen.features.load(given)
    model = booster(f.transform(recording(dtype=dtype)), f.names, objective)
    model.save_model(tmp_path / "model.txt")
    toml = write_toml(tmp_path / "chain.toml", given | {"model": {"file": "model.txt", "output": output}})
    result = mcugen.export(toml, tmp_path / "out", leaf="float64")
    assert result.model.name == "chain"
    x = recording(600, seed=5, dtype=dtype)
    y = ran(tmp_path / "out", x)
    raw = model.predict(f.transform(x), raw_score=True).reshape(len(y), -1)
    if output == "raw":
        np.testing.assert_array_equal(y.view("<u8"), raw.view("<u8"))
    elif output == "class":
        wanted = raw.argmax(axis=1) if raw.shape[1] > 1 else (raw[:, 0] > 0).astype(int)
        assert len(set(wanted)) > 1
        np.testing.assert_array_equal(y[:, 0], wanted)
    else:
        np.testing.assert_allclose(y[:, 0], model.predict(f.transform(x)), rtol=1e-6)


def test_on_the_board(tmp_path: Path) -> None:
    """The emulated Cortex-M7 gives the bits of the reference over a recording of the user's."""
    pytest.importorskip("unicorn")
    given = tables(window=WINDOW)
    f = mcugen.features.load(given)
    given["model"] = booster(f.transform(recording()), f.names)
    out = mcugen.export(given, tmp_path / "out", name="on_board").out
    x = recording(150, seed=3)
    np.save(tmp_path / "more.npy", x)
    lines = mcugen.verify(out, tmp_path / "more.npy", "stm32h743")
    assert "equal, every bit" in lines[0]
    assert any("150 rows equal, every bit" in line for line in lines)


def test_a_changed_coefficient_is_found(tmp_path: Path) -> None:
    """verify compares the C, not what the manifest says of it."""
    out = mcugen.export(tables(window=None, feature=None), tmp_path / "out", name="lp", board=None).out
    text = (out / "lp.c").read_text(encoding="utf-8")
    table = text.index("lp_0_sections[")
    at = text.index("{", table) + 1
    first = text[at : text.index("U,", at)].strip()
    changed = text[:at] + text[at:].replace(first, str(int(first) + (64 << 16)), 1)
    (out / "lp.c").write_text(changed, encoding="utf-8")
    with pytest.raises(DiffersError):
        mcugen.verify(out)


def test_filters_from_arrays(tmp_path: Path) -> None:
    """mcugen.Filter: sos, taps, or b and a, as numpy arrays."""
    sos = scipy_signal.butter(2, 0.2, output="sos")
    b, a = scipy_signal.butter(2, 0.2)
    x = recording(300, 1)
    found = []
    for i, f in enumerate((mcugen.Filter(rate=10.0, sos=sos), mcugen.Filter(rate=10.0, b=b, a=a))):
        found.append(ran(mcugen.export(f, tmp_path / f"out{i}", board=None).out, x))
        assert (tmp_path / f"out{i}" / "filter.h").is_file()
    np.testing.assert_allclose(found[0][:, 0], scipy_signal.sosfilt(sos, x[:, 0]), atol=33)
    np.testing.assert_allclose(found[1], found[0], atol=2)
    taps = mcugen.Filter(rate=10.0, taps=np.array([0.25, 0.5, 0.25]), channels=("left", "right"), dtype="float32")
    two = recording(50, 2, dtype="float32")
    y = ran(mcugen.export(taps, tmp_path / "taps", board=None).out, two)
    np.testing.assert_allclose(y, scipy_signal.lfilter([0.25, 0.5, 0.25], 1.0, two, axis=0), atol=1e-6)
    with pytest.raises(mcugen.errors.InputError, match="takes one of sos, taps, or b and a"):
        mcugen.load(mcugen.Filter(rate=10.0))
    with pytest.raises(mcugen.errors.InputError, match=r"there are none"):
        mcugen.load(mcugen.Filter(rate=10.0, taps=[]))


def test_name_of_the_file_and_of_the_signal(tmp_path: Path) -> None:
    """--name before [signal] name before the file's name."""
    given = tables(signal={"rate": 100.0, "name": "pump"}, filter=[LOWPASS], window=None, feature=None)
    toml = write_toml(tmp_path / "file.toml", given)
    for options, name in (({}, "pump"), ({"name": "mine"}, "mine")):
        result = mcugen.export(toml, tmp_path / name, verify=False, **options)
        assert result.model.name == name
        assert (tmp_path / name / f"{name}.h").is_file()
