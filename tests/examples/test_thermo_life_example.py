"""examples/thermo_life: twelve thermocouples to hours and a valve, on this machine and on the emulated board.

The cycles of the worst push are held against those of its period of 10 ms: that is what the example promises.
"""

from __future__ import annotations

import re
from pathlib import Path

import lightgbm
import numpy as np
import pytest
from example_rig import BOARD, EXAMPLES, Example, needs_gcc, script

from mcugen.emulate.image import build_image
from mcugen.emulate.toolchain import find_cross_compiler
from mcugen.exported import open_folder
from mcugen.report.profile import measure

train = script("thermo_life", "train")
FOLDER = EXAMPLES / "thermo_life"
PERIOD = 4_800_000
LINE = re.compile(r"(\d+) ms: (\d+) h left, valve (\d+) %")


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> Example:
    return Example.export("thermo_life", tmp_path_factory.mktemp("thermo") / "thermo_life", "samples.npy")


def recording() -> np.ndarray:
    """(400, 12) int16: what main.c plays."""
    text = (FOLDER / "recording.h").read_text()
    rows = re.findall(r"^    \{([-\d, ]+)\}", text, re.MULTILINE)
    return np.array([[int(v) for v in row.split(",")] for row in rows], np.int16)


def hours_by_python(counts: np.ndarray) -> np.ndarray:
    """The library's model on the features that Python computes."""
    model = lightgbm.Booster(model_file=FOLDER / "thermo_life.txt")
    assert tuple(model.feature_name()) == train.device_features().names
    return np.asarray(model.predict(train.device_features().transform(counts)))


def valves_by_python(counts: np.ndarray, hours: np.ndarray) -> list[float]:
    """The controller of main.c in float64; ``hours`` by window, the first of which it leaves out."""
    valves, integral, last, left = [], 0.0, None, 200.0
    for i, sample in enumerate(counts):
        window, rest = divmod(i + 1 - 200, 25)
        if rest == 0 and window > 0:
            left = hours[window]
        degrees = float(sample[4:8].mean()) * 0.25
        error = degrees - (215.0 if left < 200 else 225.0)
        integral = float(np.clip(integral + 1.0 * error * 0.01, 0, 100))
        slope = 0.0 if last is None else (degrees - last) / 0.01
        last = degrees
        valves.append(float(np.clip(integral + 2.0 * error + 0.05 * slope, 0, 100)))
    return valves


def test_the_simulation_gives_the_shipped_recording() -> None:
    shipped = np.load(FOLDER / "samples.npy")
    assert shipped.shape == (10 * train.SAMPLES, 12)
    _, test = train.plates()
    counts = train.device_features().quantize(test.real[:10])
    np.testing.assert_array_equal(shipped, counts.reshape(-1, 12))
    worn = int(np.argmin(test.hours[:10]))
    assert (FOLDER / "recording.h").read_text() == train.header(counts[worn], test.hours[worn])


def test_main_tells_the_hours_and_sets_the_valve(example: Example, tmp_path: Path) -> None:
    told = LINE.findall(example.host(tmp_path))
    counts = recording()
    hours = hours_by_python(counts)
    valves = valves_by_python(counts, hours)
    assert [int(ms) for ms, _, _ in told] == list(range(2250, 4001, 250))
    for (ms, left, valve), want in zip(told, hours[1:], strict=True):
        assert abs(int(left) - want) <= 1
        assert abs(int(valve) - valves[int(ms) // 10 - 1]) <= 1
    assert 0 < max(int(v) for _, _, v in told) < 100


@needs_gcc
def test_main_on_the_board_counts_its_steps(example: Example, tmp_path: Path) -> None:
    """The same lines as here, and two on its steps: the emulator's counter counts instructions."""
    lines = example.board(tmp_path, count=True).splitlines()
    assert lines[:-2] == example.host(tmp_path).splitlines()
    steps = [re.fullmatch(r"a step \w+ [\w ]*: (\d+) of 4800000 cycles", line) for line in lines[-2:]]
    with_result, without = (int(s[1]) for s in steps if s is not None)
    assert without < with_result < PERIOD / 10


@needs_gcc
def test_the_worst_push_is_a_small_part_of_the_period(
    example: Example, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The upper end of the estimated cycles of any push, caches and branch predictor empty."""
    export, compiler = open_folder(example.folder), find_cross_compiler()
    model = export.board_model()
    image = build_image(model, BOARD, compiler)
    x = recording()[:250]
    profile = measure(model, export.references().machine.ops, BOARD, image, x, "gcc")
    assert profile.due == 3
    assert profile.largest < profile.cycles.worst < PERIOD / 20
    # Windows cost most by far, the filters about the same at each push, and nothing is left to the wrong op.
    means = {op.kind: op.instructions for op in profile.ops}
    assert max(means, key=lambda kind: means[kind]) == "WindowFeatures"
    assert all(200 < means[kind] < 1000 for kind in ("RunningMedian", "ShiftSamples", "BiquadQ31", "call"))
    for step in ("Rank", "Sum"):
        (cost,) = (means[kind] for kind in means if kind.startswith(step))
        assert 0 < cost < means["WindowFeatures"] / 4
    with capsys.disabled():
        share = 100 * profile.cycles.worst / PERIOD
        print(f"\nthermo_life: worst push {profile.cycles.worst:,.0f} of {PERIOD:,} cycles ({share:.1f} %), estimated")
