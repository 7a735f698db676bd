"""What is around a signal chain: recordings, reports, dumps, --check, inspect, buffers for DMA."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from chains import AXES, LOWPASS, booster, recording, tables, write_toml

import mcugen
from mcugen.errors import DiffersError, InputError, UnsupportedError
from mcugen.recipes.signals import describe_pipeline

sys.path.insert(0, str(Path(__file__).parents[1] / "cli"))
from cli_support import call, fails


@pytest.fixture(scope="module")
def chain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with chain.toml and its model.txt."""
    folder = tmp_path_factory.mktemp("chain")
    f = mcugen.features.load(tables())
    booster(f.transform(recording()), f.names).save_model(folder / "model.txt")
    return write_toml(folder / "chain.toml", tables(model={"file": "model.txt"}))


def test_command_line(chain: Path, tmp_path: Path) -> None:
    """Every verb takes the TOML or what was exported of it; nothing in the folder names a path."""
    out, rec = tmp_path / "out", tmp_path / "rec.csv"
    x = recording(300)
    rec.write_text("ay,ax\n" + "\n".join(f"{b},{a}" for a, b in x.tolist()) + "\n", encoding="utf-8")
    done = call("export", chain, "-o", out, "--calib", rec, "--explain", "--dump-ir", tmp_path / "ir")
    assert done.code == 0, done
    for text in (
        "chain.toml: 2 channels at 100 Hz, butter > 7 features of 20 samples, then model.txt",
        "chain_push(chain_state_t *s, const int16_t x[2], int32_t y[1])",
        "a result every 10 pushes, the first at push 20",
        "butter on ax in q15: error",
        "300 of your samples",
        "300 samples of yours: against the float pipeline: mean distance",
        "chain.toml: [[filter]] 1: butter: Iir on ax in q15 (error allowed",
    ):
        assert text in done.out, text
    assert sorted(p.name for p in (tmp_path / "ir").iterdir()) == ["00_source.txt", "01_lower.txt"]
    assert "[[filter]] 1: butter" in (tmp_path / "ir" / "00_source.txt").read_text(encoding="utf-8")
    assert call("export", chain, "-o", out, "--calib", rec, "--check").code == 0
    assert call("verify", out, "--data", rec).code == 0
    assert call("run", out, "--input", rec, "--output", tmp_path / "y.npy").code == 0
    assert len(np.load(tmp_path / "y.npy")) == 29
    facts = json.loads(call("inspect", chain, "--json").out)
    assert facts["channels"] == ["ax", "ay"]
    assert facts["ops"] == ["Iir", "Features"]
    assert len(facts["results"]) == 7
    manifest = (out / "manifest.json").read_text(encoding="utf-8")
    assert str(tmp_path) not in manifest
    assert json.loads(manifest)["options"]["model"]["name"] == "model.txt"


def test_iterations_of_the_model(chain: Path, tmp_path: Path) -> None:
    """--num-iteration goes to the model of the chain."""
    few, all_ = (mcugen.load(chain, num_iteration=n) for n in (3, None))
    assert "3 trees" in describe_pipeline(few)
    assert "8 trees" in describe_pipeline(all_)
    with pytest.raises(UnsupportedError, match="chooses iterations"):
        mcugen.export(write_toml(tmp_path / "p.toml", tables()), tmp_path / "out", num_iteration=3)


def test_profile_counts_a_push(chain: Path, tmp_path: Path) -> None:
    pytest.importorskip("unicorn")
    mcugen.export(chain, tmp_path / "out", verify=False)
    found = json.loads(call("profile", tmp_path / "out", "--json").out)
    assert 0 < found["instructions"]["mean"] < found["instructions"]["max"]
    assert found["ops"]


def test_check_finds_what_would_change(chain: Path, tmp_path: Path) -> None:
    mcugen.export(chain, tmp_path / "out", verify=False)
    other = chain.with_name("other.toml")
    other.write_text(chain.read_text(encoding="utf-8").replace("20.0", "21.0"), encoding="utf-8")
    with pytest.raises(DiffersError):
        mcugen.export(other, tmp_path / "out", name="chain", verify=False, check=True)


def test_recordings(chain: Path, tmp_path: Path) -> None:
    """npy and npz, counts and real values, are the same samples; others are refused."""
    x = recording(100)
    real = x * np.array([a["scale"] for a in AXES]) + np.array([a.get("offset", 0.0) for a in AXES])
    np.save(tmp_path / "counts.npy", x)
    np.savez(tmp_path / "real.npz", x=real)
    mcugen.export(chain, tmp_path / "out", verify=False)
    found = [mcugen.run(tmp_path / "out", tmp_path / f, tmp_path / "y.npy")[0] for f in ("counts.npy", "real.npz")]
    np.testing.assert_array_equal(*found)
    for name, bad, message in (
        ("wide", np.zeros((9, 3), np.int16), "3 columns"),
        ("nan", np.full((9, 2), np.nan), "has no int16 that stands for it"),
        ("big", np.full((9, 2), 70000), "is outside of int16"),
    ):
        np.save(tmp_path / f"{name}.npy", bad)
        line = fails(2, "export", chain, "-o", tmp_path / "o", "--calib", tmp_path / f"{name}.npy")
        assert message in line, line


def test_samples_beyond_the_promised_range(tmp_path: Path) -> None:
    """A range makes the features finer; a recording that leaves it is told, and stays exact."""
    narrow = [{"name": "a", "scale": 0.01, "low": -10.0, "high": 10.0}]
    given = tables(channel=narrow, filter=[], feature=[{"kind": ["std", "variance"]}])
    wide = mcugen.features.load(given | {"channel": [{"name": "a", "scale": 0.01}]})
    f = mcugen.features.load(given)
    assert all(a <= b for a, b in zip(f.unit_scales, wide.unit_scales, strict=True))
    assert f.unit_scales != wide.unit_scales
    x = np.array([[0], [900], [1100], [-1001], [0]] * 20, np.int16)
    np.save(tmp_path / "rec.npy", x)
    facts = mcugen.export(given, tmp_path / "out", name="narrow", calib=tmp_path / "rec.npy").report.facts
    assert ("note", "40 of 100 samples of a lie beyond its range (-10.01 to 11; low -10, high 10)") in facts
    y, _ = mcugen.run(tmp_path / "out", tmp_path / "rec.npy", tmp_path / "y.npy")
    np.testing.assert_array_equal(y, f.device(x))


def test_buffer_for_dma(tmp_path: Path) -> None:
    """Whole cache lines in a memory that DMA reaches; the object does not link without the linker fragment."""
    channels = [dict(a, dma=True) for a in AXES]
    signal = {"rate": 100.0, "dma_samples": 24}
    given = tables(signal=signal, channel=channels, filter=[LOWPASS], window=None, feature=None)
    out = mcugen.export(given, tmp_path / "out", name="adc").out
    header = (out / "adc.h").read_text(encoding="utf-8")
    assert "#define ADC_DMA_SAMPLES 24u" in header
    assert "#define ADC_DMA_BYTES 96u" in header
    assert "extern int16_t adc_dma[48];" in header
    symbol = next(s for s in json.loads((out / "manifest.json").read_text())["symbols"] if s["symbol"] == "adc_dma")
    assert (symbol["region"], symbol["align"]) == ("axi", 32)
    with pytest.raises(InputError, match="does not reach dtcm"):
        mcugen.export(given, tmp_path / "no", name="adc", place={"adc_dma": "dtcm"})
    gcc = shutil.which("arm-none-eabi-gcc")
    if gcc is None:
        pytest.skip("no arm-none-eabi-gcc")
    flags = ["-mcpu=cortex-m7", "-mthumb", "-O2", "-std=c11", "-Wall", "-Wextra", "-Werror", f"-I{out}"]
    subprocess.run([gcc, *flags, "-c", str(out / "adc.c"), "-o", str(tmp_path / "adc.o")], check=True)
    names = subprocess.run(["arm-none-eabi-nm", str(tmp_path / "adc.o")], capture_output=True, text=True, check=True)
    assert "U __mcg_fragment" in names.stdout
    plain = mcugen.export(given, tmp_path / "plain", name="adc", board=None, verify=False).out
    assert "__mcg_fragment" not in (plain / "adc.c").read_text(encoding="utf-8")


def test_features_need_no_model(chain: Path, tmp_path: Path) -> None:
    """What one trains on does not depend on the model, which need not be there yet; wrong samples are refused."""
    alone = tmp_path / "alone.toml"
    alone.write_bytes(chain.read_bytes())
    f, x = mcugen.features.load(alone), recording(60)
    np.testing.assert_array_equal(f.transform(x), mcugen.features.load(chain).transform(x))
    real = f.lowered.result
    np.testing.assert_array_equal(f.transform(x), f.device(x) * np.array(real.scales) + np.array(real.offsets))
    assert f.device(x[:19]).shape == (0, 7)
    assert f.device(np.stack([x, x, x])).shape == (3, 5, 7)
    np.testing.assert_array_equal(f.quantize(x * [0.0005, -0.001] + [0.0, 0.25]), x)
    with pytest.raises(InputError, match=r"samples of float64, where the device has int16 \(f.quantize"):
        f.transform(x.astype(float))
    with pytest.raises(InputError, match=r"samples of shape \(60, 3\)"):
        f.transform(np.zeros((60, 3), np.int16))
    with pytest.raises(InputError, match="there is no such file"):
        mcugen.features.load(tmp_path / "none.toml")
