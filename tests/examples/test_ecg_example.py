"""examples/ecg: the filters beside SciPy's, and heartbeats on this machine and on the emulated board."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from example_rig import EXAMPLES, Example, needs_gcc, script
from scipy import signal

import mcugen
import mcugen.features as mf

plot = script("ecg", "plot")
FOLDER = EXAMPLES / "ecg"
PRINTED = """\
self-test: every bit as in Python
beat at 525 ms
beat at 1436 ms
beat at 2352 ms
65 beats a minute
"""


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> Example:
    return Example.export("ecg", tmp_path_factory.mktemp("ecg") / "ecg", "ecg.npy")


def test_the_filters_are_those_of_scipy() -> None:
    """Within the error that the file allows, with a margin; the hum is gone."""
    counts = plot.recording()
    error, snr = plot.figures(counts)
    assert error < 0.0005  # mV: a tenth of a count
    assert snr > 60
    assert plot.hum(0.005 * counts[:, 0]) > 20 * plot.hum(plot.by_device(counts))


def test_the_beats_are_those_of_scipy() -> None:
    """The times that main.c prints, from SciPy's filters: where they rise above 0.6 mV."""
    above = np.flatnonzero(np.diff((plot.by_scipy(plot.recording()) > 0.6).astype(int)) == 1) + 1
    assert [int(i) * 1000 // 360 for i in above] == [int(t) for t in re.findall(r"beat at (\d+)", PRINTED)]
    peaks, _ = signal.find_peaks(plot.recording()[:, 0], height=120, distance=60)  # of the recording as it is
    assert round(60 * 360 / float(np.mean(np.diff(peaks)))) == 66
    assert np.all(np.abs(above - peaks) < 6)


def test_the_shipped_files_are_those_of_the_recording() -> None:
    text = (FOLDER / "recording.h").read_text()
    numbers = [int(n) for n in re.findall(r"-?\d+(?=,)", text[text.index("{") :])]
    assert numbers == plot.recording()[:, 0].tolist()
    readme = (FOLDER / "README.md").read_text()
    error, snr = plot.figures(plot.recording())
    assert f"largest error {1000 * error:.3f} uV, 5 uV a count; signal to error {snr:.1f} dB" in readme


def test_main_on_this_machine(example: Example, tmp_path: Path) -> None:
    assert example.host(tmp_path) == PRINTED


@needs_gcc
def test_main_on_the_board(example: Example, tmp_path: Path) -> None:
    assert example.board(tmp_path) == PRINTED


@needs_gcc
def test_the_whole_recording_on_the_board(example: Example, tmp_path: Path) -> None:
    y, warnings = mcugen.run(example.folder, FOLDER / "ecg.npy", tmp_path / "y.npy", "stm32h743")
    assert not warnings
    np.testing.assert_array_equal(y.reshape(-1), mf.load(FOLDER / "ecg.toml").device(plot.recording()).reshape(-1))
