"""Trains the example: the hours that a copper plate of a mould has left, from thermocouples in it.

Simulates recordings from a fixed seed; writes thermo_life.txt (the model), samples.npy (recordings of plates that the
model has not seen, one after the other, (N, 12) int16) and recording.h (one of them, for main.c). Prints the error on
plates that the model has not seen, beside that of float features. Run it in any folder:

    python examples/thermo_life/train.py

The plate: liquid steel heats one side, water cools the other. The mould oscillates at about 2 Hz, so heat comes in
waves, which fade on their way into the copper by exp(-x / d), d = sqrt(diffusivity / (pi frequency)), some 4 mm. Wear
brings the hot side nearer to the thermocouples: the wave grows, and that, beside the heat that flows, tells how much
copper is left. Wear is deepest in the lowest row, and goes with the heat. Amplifiers add noise, and spikes from the
drives of the plant.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import lightgbm as lgb
import numpy as np

import mcugen.features as mf

HERE = Path(__file__).resolve().parent
TOML = HERE / "thermo_life.toml"
RATE, SAMPLES, TRAINED, TESTED, SHIPPED = 100.0, 400, 600, 150, 10
# Copper: conductivity in W/(m K), diffusivity in m^2/s. Water: its temperature in deg C, W/(m^2 K) into it.
CONDUCTIVITY, DIFFUSIVITY, WATER, COOLING = 350.0, 1.1e-4, 30.0, 30_000.0
# Distance of the thermocouples from the water, and of the new hot side, in m; wear at which the plate is done.
DEPTH, PLATE, WORN = 0.028, 0.040, 0.010
#: Wear of the rows top, mid and low, relative to the worst place, and their share of the heat.
ROW_WEAR, ROW_HEAT = np.repeat((0.45, 0.7, 1.0), 4), np.repeat((1.0, 0.85, 0.7), 4)
PARAMS = {
    "objective": "regression",
    "num_leaves": 15,
    "learning_rate": 0.08,
    "min_data_in_leaf": 20,
    "feature_fraction": 0.5,
    "deterministic": True,
    "force_row_wise": True,
    "num_threads": 1,
    "seed": 1,
    "verbosity": -1,
}
ROUNDS = 120


@dataclass(frozen=True)
class Plates:
    """Temperatures in degrees Celsius (plates, SAMPLES, 12), and hours left (plates,)."""

    real: np.ndarray
    hours: np.ndarray


def simulate(rng: np.random.Generator, count: int) -> Plates:
    """Plates of any age, cast at different speeds."""
    t = np.arange(SAMPLES) / RATE
    real, hours = np.empty((count, SAMPLES, 12)), np.empty(count)
    for i in range(count):
        wear = rng.uniform(0.0, WORN)
        flux = rng.uniform(1.4e6, 2.2e6) * ROW_HEAT * rng.normal(1.0, 0.03, 12)  # W/m^2
        hours[i] = (WORN - wear) / (1.2e-5 * (flux.mean() / 1.5e6) ** 2)  # 12 um an hour at 1.5 MW/m^2
        left = PLATE - wear * ROW_WEAR * rng.normal(1.0, 0.03, 12) - DEPTH
        steady = WATER + flux / COOLING + flux * DEPTH / CONDUCTIVITY
        turns = 2 * np.pi * rng.uniform(1.7, 2.3)
        d = np.sqrt(2 * DIFFUSIVITY / turns)
        # The wave at the surface of a half-space, W/m^2 to K; it arrives late as it fades.
        wave = 0.35 * flux * d / (CONDUCTIVITY * np.sqrt(2)) * np.exp(-left / d)
        phase = turns * t[:, None] - left / d + rng.uniform(0, 2 * np.pi)
        drift = np.cumsum(rng.normal(0, 0.02, (SAMPLES, 12)), axis=0)
        noise = rng.normal(0, 0.3, (SAMPLES, 12))
        spikes = np.where(rng.random((SAMPLES, 12)) < 0.004, rng.choice((-60.0, 60.0), (SAMPLES, 12)), 0.0)
        real[i] = steady + wave * np.sin(phase) + drift + noise + spikes
    return Plates(real, hours)


def plates() -> tuple[Plates, Plates]:
    """Those to train on, and those to test with."""
    rng = np.random.default_rng(12)
    return simulate(rng, TRAINED), simulate(rng, TESTED)


def device_features() -> mf.PipelineFeatures:
    """The features of thermo_life.toml as the device has them."""
    return mf.load(TOML)


def float_features() -> mf.PipelineFeatures:
    """The same in float32, from temperatures."""
    tables: dict[str, Any] = tomllib.loads(TOML.read_text(encoding="utf-8"))
    tables["signal"]["dtype"] = "float32"
    for channel in tables["channel"]:
        del channel["scale"]
    return mf.load(tables)


def rows(table: np.ndarray, hours: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(plates, windows, F) and hours a plate to a row and hours a window.

    The first window is left out, as main.c leaves out its result: the filters start at 0 and settle in it.
    """
    settled = table[:, 1:]
    return settled.reshape(-1, table.shape[-1]), np.repeat(hours, settled.shape[1])


def trained(x: np.ndarray, y: np.ndarray, names: tuple[str, ...]) -> lgb.Booster:
    """A model of the rows."""
    return lgb.train(PARAMS, lgb.Dataset(x, y, feature_name=list(names)), num_boost_round=ROUNDS)


def header(counts: np.ndarray, hours: float) -> str:
    """recording.h: samples (T, 12) int16 of one plate and the hours that it has left, for main.c."""
    lines = [
        f"/* What the amplifiers delivered, a sample a line, from a plate with {hours:.0f} h left. By train.py.",
        " * SPDX-License-Identifier: MIT-0",
        " */",
        "#include <stdint.h>",
        "",
        "/* clang-format off */",
        f"static const int16_t recording[{len(counts)}][{counts.shape[1]}] = {{",
        *(f"    {{{', '.join(map(str, s))}}}," for s in counts.tolist()),
    ]
    return "\n".join([*lines, "};", "/* clang-format on */", ""])


def main() -> None:
    train, test = plates()
    device, plain = device_features(), float_features()
    models = {}
    for name, f in (("integer", device), ("float", plain)):
        model = models[name] = trained(*rows(f.transform(f.quantize(train.real)), train.hours), f.names)
        x, y = rows(f.transform(f.quantize(test.real)), test.hours)
        error = np.abs(model.predict(x) - y)
        print(f"{name:8} features: mean error {error.mean():.1f} h of {test.hours.max():.0f} h, {len(y)} windows")
    models["integer"].save_model(HERE / "thermo_life.txt")
    counts = device.quantize(test.real[:SHIPPED])
    np.save(HERE / "samples.npy", counts.reshape(-1, counts.shape[-1]))
    worn = int(np.argmin(test.hours[:SHIPPED]))
    (HERE / "recording.h").write_text(header(counts[worn], test.hours[worn]), encoding="utf-8")


if __name__ == "__main__":
    main()
