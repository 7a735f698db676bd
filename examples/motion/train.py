"""Trains the example: what the wearer of a smart watch does, from its accelerometer and gyroscope.

Reads basic_motions.npz and writes motion.txt (the model) and samples.npy (the recordings of the test half as the
sensors deliver them, int16). Prints the accuracy on the test half, by windows, beside that of float features. Run it
in this folder:

    python train.py

Data: BasicMotions of the UEA multivariate time series archive (www.timeseriesclassification.com), recorded by students
with a smart watch: 40 recordings for training and 40 for testing, 10 s each at 10 Hz. As shipped in the package aeon
(BSD 3-Clause).
"""

from __future__ import annotations

from pathlib import Path

import lightgbm as lgb
import numpy as np

import mcugen.features as mf

CHANNELS = ("ax", "ay", "az", "gx", "gy", "gz")
#: A count in m/s^2, and in rad/s: that of a gyroscope of 5000 degrees a second and 16 bits, the grid of the data.
SCALES = (0.001,) * 3 + (float(np.deg2rad(5000 / 32768)),) * 3
RATE, LENGTH, STEP = 10.0, 40, 10
KINDS = ("mean", "std", "min", "max", "mean_abs_difference", "zero_crossings")
CLASSES = ("Badminton", "Running", "Standing", "Walking")
PARAMS = {
    "objective": "multiclass",
    "num_class": len(CLASSES),
    "num_leaves": 7,
    "learning_rate": 0.15,
    "min_data_in_leaf": 5,
    "feature_fraction": 0.5,
    "deterministic": True,
    "force_row_wise": True,
    "num_threads": 1,
    "seed": 1,
    "verbosity": -1,
}


def features(dtype: str = "int16") -> mf.Features:
    """4 s of samples, once a second: what each channel does, and its power in three bands."""
    bands = [mf.bins_of(low, high, RATE, LENGTH) for low, high in ((0.5, 1.5), (1.75, 3.0), (3.25, 5.0))]
    items = mf.every(KINDS, CHANNELS) + tuple(mf.Item("band_power", c, bins=b) for c in CHANNELS for b in bands)
    return mf.Features(LENGTH, STEP, items, dtype, CHANNELS, SCALES if dtype == "int16" else None)


def rows(table: np.ndarray, classes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(recordings, windows, F) and a class a recording to a row and a class a window."""
    return table.reshape(-1, table.shape[-1]), np.repeat(classes, table.shape[1])


def trained(x: np.ndarray, y: np.ndarray, names: tuple[str, ...]) -> lgb.Booster:
    """A small model of the rows."""
    return lgb.train(PARAMS, lgb.Dataset(x, y, feature_name=list(names)), num_boost_round=30)


def main() -> None:
    here = Path(__file__).resolve().parent
    with np.load(here / "basic_motions.npz") as data:
        # (recordings, channels, T) as the archive has them, to (recordings, T, channels)
        real = {half: data[f"x_{half}"].transpose(0, 2, 1) for half in ("train", "test")}
        classes = {half: np.searchsorted(CLASSES, data[f"y_{half}"]) for half in ("train", "test")}
    device, plain = features(), features("float32")
    counts = {half: device.quantize(x) for half, x in real.items()}
    results = {}
    for name, f, x in (("integer", device, counts), ("float", plain, real)):
        tables = {half: rows(f.transform(x[half]), classes[half]) for half in ("train", "test")}
        model = trained(*tables["train"], f.names)
        table, y = tables["test"]
        results[name] = (model, float(np.mean(model.predict(table).argmax(axis=1) == y)), len(y))
    for name, (_, accuracy, count) in results.items():
        print(f"{name:8} features: {100 * accuracy:.1f} % of {count} windows of the test half")
    results["integer"][0].save_model(here / "motion.txt")
    np.save(here / "samples.npy", counts["test"])


if __name__ == "__main__":
    main()
