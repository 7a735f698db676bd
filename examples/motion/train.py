"""Trains the example: what the wearer of a smart watch does, from its accelerometer and gyroscope.

The features are those of motion.toml, computed from int16 counts exactly as the device computes them. Reads
basic_motions.npz; writes motion.txt (the model), samples.npy (the test half as the sensors deliver it, int16: 40
recordings of 100 samples, one after the other) and recordings.h (one of each class, for main.c). Prints the accuracy on
the test half, by windows, beside that of float features. Run it in any folder:

    python examples/motion/train.py

Data: BasicMotions of the UEA multivariate time series archive (www.timeseriesclassification.com), recorded by students
with a smart watch: 40 recordings for training and 40 for testing, 10 s each at 10 Hz. As shipped in the package aeon
(BSD 3-Clause).
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import lightgbm as lgb
import numpy as np

import mcugen.features as mf

HERE = Path(__file__).resolve().parent
TOML = HERE / "motion.toml"
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


def device_features() -> mf.PipelineFeatures:
    """The features of motion.toml as the device has them: integers from int16 counts."""
    return mf.load(TOML)


def float_features() -> mf.PipelineFeatures:
    """The same in float32, from real values: what is lost by integers is measured against it."""
    tables: dict[str, Any] = tomllib.loads(TOML.read_text(encoding="utf-8"))
    tables["signal"]["dtype"] = "float32"
    for channel in tables["channel"]:
        del channel["scale"]
    return mf.load(tables)


def recordings() -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """By half, train and test: real values (40 recordings, 100 samples, 6 channels), and the classes (40,)."""
    with np.load(HERE / "basic_motions.npz") as data:
        # The archive has (recordings, channels, samples).
        real = {half: data[f"x_{half}"].transpose(0, 2, 1) for half in ("train", "test")}
        classes = {half: np.searchsorted(CLASSES, data[f"y_{half}"]) for half in ("train", "test")}
    return real, classes


def rows(table: np.ndarray, classes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(recordings, windows, F) and a class a recording to a row and a class a window."""
    return table.reshape(-1, table.shape[-1]), np.repeat(classes, table.shape[1])


def trained(x: np.ndarray, y: np.ndarray, names: tuple[str, ...]) -> lgb.Booster:
    """A small model of the rows."""
    return lgb.train(PARAMS, lgb.Dataset(x, y, feature_name=list(names)), num_boost_round=30)


def header(counts: np.ndarray, classes: np.ndarray) -> str:
    """recordings.h: recordings (R, samples, 6) int16 and their classes (R,), for main.c."""
    lines = [
        "/* What the sensors delivered, int16, and what the wearer did. Written by train.py from BasicMotions.",
        " * SPDX-License-Identifier: BSD-3-Clause",
        " */",
        "#include <stdint.h>",
        "",
        "/* clang-format off */",
        f"#define SAMPLES {counts.shape[1]}",
        f"static const uint8_t truths[{len(classes)}] = {{{', '.join(map(str, classes))}}};",
        f"static const int16_t recordings[{len(counts)}][SAMPLES][{counts.shape[2]}] = {{",
    ]
    for samples, k in zip(counts.tolist(), classes, strict=True):
        lines.append(f"    {{ /* {CLASSES[k]} */")
        lines += [f"        {{{', '.join(map(str, s))}}}," for s in samples]
        lines.append("    },")
    return "\n".join([*lines, "};", "/* clang-format on */", ""])


def one_of_each(counts: np.ndarray, classes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The first recording of each class."""
    first = [int(np.flatnonzero(classes == k)[0]) for k in range(len(CLASSES))]
    return counts[first], classes[first]


def main() -> None:
    real, classes = recordings()
    device, plain = device_features(), float_features()
    counts = {half: device.quantize(x) for half, x in real.items()}
    models = {}
    for name, f, x in (("integer", device, counts), ("float", plain, real)):
        model = models[name] = trained(*rows(f.transform(x["train"]), classes["train"]), f.names)
        table, y = rows(f.transform(x["test"]), classes["test"])
        accuracy = np.mean(model.predict(table).argmax(axis=1) == y)
        print(f"{name:8} features: {100 * accuracy:.1f} % of {len(y)} windows of the test half")
    models["integer"].save_model(HERE / "motion.txt")
    np.save(HERE / "samples.npy", counts["test"].reshape(-1, len(device.channels)))
    (HERE / "recordings.h").write_text(header(*one_of_each(counts["test"], classes["test"])), encoding="utf-8")


if __name__ == "__main__":
    main()
