"""The motion example: integer features cost no accuracy, and the shipped files are those of its script."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import lightgbm
import numpy as np
import pytest

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "motion"


@pytest.fixture(scope="module")
def train() -> ModuleType:
    spec = importlib.util.spec_from_file_location("motion_train", FOLDER / "train.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_accuracy_is_within_two_points_of_float_features(train: ModuleType) -> None:
    with np.load(FOLDER / "basic_motions.npz") as data:
        real = {half: data[f"x_{half}"].transpose(0, 2, 1) for half in ("train", "test")}
        classes = {half: np.searchsorted(train.CLASSES, data[f"y_{half}"]) for half in ("train", "test")}
    device, plain = train.features(), train.features("float32")
    samples = np.load(FOLDER / "samples.npy")
    np.testing.assert_array_equal(samples, device.quantize(real["test"]))
    shipped = lightgbm.Booster(model_file=FOLDER / "motion.txt")
    assert tuple(shipped.feature_name()) == device.names
    x, y = train.rows(device.transform(samples), classes["test"])
    accuracy = np.mean(shipped.predict(x).argmax(axis=1) == y)
    floats = train.trained(*train.rows(plain.transform(real["train"]), classes["train"]), plain.names)
    x, y = train.rows(plain.transform(real["test"]), classes["test"])
    assert accuracy >= np.mean(floats.predict(x).argmax(axis=1) == y) - 0.02
    assert accuracy >= 0.95
