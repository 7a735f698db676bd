"""Signal chains for the tests: tables, recordings, and models of their features."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import lightgbm
import numpy as np

SIGNAL: Mapping[str, Any] = {"rate": 100.0}
AXES = ({"name": "ax", "scale": 0.0005, "unit": "g"}, {"name": "ay", "scale": -0.001, "offset": 0.25})
LOWPASS = {"kind": "butter", "order": 4, "cutoff": 20.0}
WINDOW = {"length": 20, "step": 10}
FEATURES = ({"kind": ["mean", "std", "slope"]}, {"kind": "zero_crossings", "channel": "ax"})


def tables(**changes: Any) -> dict[str, Any]:
    """Two channels, a filter on the first, a window and seven features; ``None`` takes a table away."""
    plain: dict[str, Any] = {
        "signal": SIGNAL,
        "channel": list(AXES),
        "filter": [LOWPASS | {"channels": ["ax"]}],
        "window": WINDOW,
        "feature": list(FEATURES),
    }
    return {k: v for k, v in (plain | changes).items() if v is not None}


def recording(count: int = 900, channels: int = 2, seed: int = 0, dtype: str = "int16") -> np.ndarray:
    """(count, channels) samples: sines whose frequency and size wander, and noise; scaled to the type."""
    rng = np.random.default_rng(seed)
    phase = np.cumsum(0.25 + 0.2 * np.sin(np.arange(count)[:, None] / 70 + np.arange(channels)), axis=0)
    size = 4000 + 3000 * np.sin(np.arange(count)[:, None] / 110)
    x = size * np.sin(phase) + rng.normal(0, 200, (count, channels))
    if dtype == "float32":
        return (x / 8000).astype(np.float32)
    return np.rint(x).astype(dtype)


def booster(table: np.ndarray, names: tuple[str, ...], objective: str = "regression", rounds: int = 8) -> Any:
    """A LightGBM model of features (N, F) called ``names``; its target follows the first two features."""
    rank = np.argsort(np.argsort(table[:, 0] + 0.5 * np.sin(np.arange(len(table)))))
    target = {"regression": rank / len(rank), "binary": rank * 2 // len(rank), "multiclass": rank * 3 // len(rank)}
    fixed = {"num_leaves": 7, "min_data_in_leaf": 4, "verbose": -1, "num_threads": 1, "seed": 1}
    extra = {"num_class": 3} if objective == "multiclass" else {}
    data = lightgbm.Dataset(table, target[objective], feature_name=list(names))
    return lightgbm.train({"objective": objective, **fixed, **extra}, data, rounds)


def write_toml(path: Path, given: Mapping[str, Any]) -> Path:
    """Tables as a TOML file."""
    lines: list[str] = []
    for key, value in given.items():
        for table in value if isinstance(value, list | tuple) else [value]:
            lines.append(f"[[{key}]]" if isinstance(value, list | tuple) else f"[{key}]")
            lines += [f"{k} = {_value(v)}" for k, v in table.items()]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def _value(v: Any) -> str:
    if isinstance(v, bool):
        return str(v).lower()
    if isinstance(v, str):
        return f'"{v}"'
    return f"[{', '.join(map(_value, v))}]" if isinstance(v, list | tuple) else repr(v)
