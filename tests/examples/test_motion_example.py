"""examples/motion: real motions to classes, on this machine and on the emulated board, beside the float pipeline."""

from __future__ import annotations

import re
from pathlib import Path

import lightgbm
import numpy as np
import pytest
from example_rig import EXAMPLES, Example, needs_gcc, script

train = script("motion", "train")
FOLDER = EXAMPLES / "motion"


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> Example:
    return Example.export("motion", tmp_path_factory.mktemp("motion") / "motion", "samples.npy")


@pytest.fixture(scope="module")
def test_half() -> tuple[np.ndarray, np.ndarray]:
    """Counts of the sensors (40, 100, 6) and classes (40,)."""
    real, classes = train.recordings()
    return train.device_features().quantize(real["test"]), classes["test"]


def by_python(counts: np.ndarray) -> np.ndarray:
    """(recordings, windows): the classes of the model on the features that Python computes."""
    shipped = lightgbm.Booster(model_file=FOLDER / "motion.txt")
    return np.stack([shipped.predict(t).argmax(axis=1) for t in train.device_features().transform(counts)])


def text_of(found: np.ndarray, classes: np.ndarray) -> str:
    """What main.c prints for these classes of windows."""
    lines = ["self-test: every bit as in Python"]
    for windows, k in zip(found, classes, strict=True):
        lines.append(" ".join([f"{train.CLASSES[k]}:", *(train.CLASSES[w][0] for w in windows)]))
    right = int(np.sum(found == classes[:, None]))
    return "\n".join([*lines, f"{right} of {found.size} windows right", ""])


def test_the_shipped_files_are_those_of_the_data(test_half: tuple[np.ndarray, np.ndarray]) -> None:
    counts, classes = test_half
    np.testing.assert_array_equal(np.load(FOLDER / "samples.npy"), counts.reshape(-1, 6))
    assert (FOLDER / "recordings.h").read_text() == train.header(*train.one_of_each(counts, classes))
    shipped = lightgbm.Booster(model_file=FOLDER / "motion.txt")
    assert tuple(shipped.feature_name()) == train.device_features().names


def test_main_on_this_machine(example: Example, test_half: tuple[np.ndarray, np.ndarray], tmp_path: Path) -> None:
    counts, classes = train.one_of_each(*test_half)
    assert example.host(tmp_path) == text_of(by_python(counts), classes)


@needs_gcc
def test_the_whole_test_half_on_the_board(
    example: Example, test_half: tuple[np.ndarray, np.ndarray], tmp_path: Path
) -> None:
    """main.c with all 40 recordings: every window is classified as in Python, and the accuracy is that of floats."""
    counts, classes = test_half
    printed = example.board(tmp_path, {"recordings.h": train.header(counts, classes)})
    assert printed == text_of(by_python(counts), classes)
    found = re.search(r"(\d+) of (\d+) windows right", printed)
    assert found is not None
    accuracy = int(found[1]) / int(found[2])
    real, by_half = train.recordings()
    plain = train.float_features()
    floats = train.trained(*train.rows(plain.transform(real["train"]), by_half["train"]), plain.names)
    x, y = train.rows(plain.transform(real["test"]), by_half["test"])
    assert accuracy >= np.mean(floats.predict(x).argmax(axis=1) == y) - 0.02
    assert accuracy >= 0.95
