"""Trains the example: how many millimetres of lining are left in a furnace, from 12 thermocouples.

Writes furnace.txt (the model) and counts.csv (rows that the model has not seen, as the amplifiers deliver them).
The data are simulated here, from a fixed seed, and are free of anybody's rights. Run it in this folder:

    python train.py

The amplifier is of the common kind with 14 bits: a count is 0.25 degrees Celsius, and a broken wire gives 32767.
"""

from __future__ import annotations

from pathlib import Path

import lightgbm as lgb
import numpy as np

SENSORS, DEGREES_A_COUNT, BROKEN = 12, 0.25, 32767


def simulate(rows: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """(rows, 12) int16 counts and (rows,) millimetres of the thinnest place.

    Two rings of six sensors stand in the lining, 60 and 120 mm from the shell. Heat flows from the hot face at the
    furnace's temperature to the shell; where the lining is thin, the sensors are hotter.
    """
    mean = rng.uniform(150.0, 400.0, (rows, 1))
    uneven = rng.normal(0.0, 25.0, (rows, 6))
    left = np.clip(mean + uneven, 130.0, 450.0)
    furnace, shell = rng.uniform(1150.0, 1450.0, (rows, 1)), rng.uniform(40.0, 120.0, (rows, 1))
    shares = np.concatenate([60.0 / left, 120.0 / left], axis=1)
    degrees = shell + (furnace - shell) * shares + rng.normal(0.0, 4.0, (rows, SENSORS))
    counts = np.rint(degrees / DEGREES_A_COUNT).astype(np.int16)
    counts[rng.random((rows, SENSORS)) < 0.01] = BROKEN
    return counts, left.min(axis=1)


def main() -> None:
    rng = np.random.default_rng(12)
    counts, left = simulate(6000, rng)
    degrees = np.where(counts == BROKEN, np.nan, counts * DEGREES_A_COUNT)
    names = [f"tc{i + 1}" for i in range(SENSORS)]
    params = {
        "objective": "regression",
        "num_leaves": 15,
        "learning_rate": 0.12,
        "min_data_in_leaf": 20,
        "deterministic": True,
        "force_row_wise": True,
        "num_threads": 1,
        "seed": 12,
        "verbosity": -1,
    }
    data = lgb.Dataset(degrees, left, feature_name=names)
    booster = lgb.train(params, data, num_boost_round=80)
    here = Path(__file__).resolve().parent
    booster.save_model(here / "furnace.txt")
    unseen, _ = simulate(200, rng)
    np.savetxt(here / "counts.csv", unseen, fmt="%d", delimiter=",", header=",".join(names), comments="")


if __name__ == "__main__":
    main()
