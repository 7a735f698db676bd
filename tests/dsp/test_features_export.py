"""Samples in, scores out: window features and trees that were trained on mcugen.features, as one exported model."""

from __future__ import annotations

import sys
from pathlib import Path

import lightgbm
import numpy as np
import pytest
from feature_cases import LOC

import mcugen
import mcugen.features as mf
from mcugen.build import finish
from mcugen.core.op import MachineOp
from mcugen.core.passes import run_passes
from mcugen.core.types import DType, Model, TensorType
from mcugen.dsp.lower_features import lower_window
from mcugen.dsp.source.features import Features
from mcugen.emulate.run import run_on_board
from mcugen.emulate.toolchain import find_cross_compiler
from mcugen.exported import open_folder
from mcugen.recipes.prepared import ExportOptions
from mcugen.target.board import load_board
from mcugen.trees.lower import TREE_PASSES, TreeOptions
from mcugen.trees.signals import InputSpec, Signal
from mcugen.verify.compiler import find_host_compiler

sys.path.insert(0, str(Path(__file__).parents[1] / "stream"))
from stream_ops import prepared

LENGTH, CHANNELS = 24, ("ax", "ay")
ITEMS = (
    *mf.every(
        ("mean", "std", "rms", "min", "peak_to_peak", "slope", "zero_crossings", "mean_abs_difference"), CHANNELS
    ),
    mf.Item("band_power", "ax", bins=(2, 4)),
    mf.Item("lag", "ay", lag=5),
)


def signal(count: int, seed: int) -> np.ndarray:
    """(T, 2) int16: a sine whose frequency and amplitude wander, and noise."""
    rng = np.random.default_rng(seed)
    phase = np.cumsum(0.3 + 0.25 * np.sin(np.arange(count) / 70))
    amplitude = 4000 + 3500 * np.sin(np.arange(count) / 110)
    clean = np.stack([amplitude * np.sin(phase), 0.5 * amplitude * np.cos(phase)], axis=1)
    return np.rint(clean + rng.normal(0, 300, clean.shape)).astype(np.int16)


def joined(features: mf.Features, booster: lightgbm.Booster, name: str) -> Model:
    """Window and trees as one machine model; the unit of each feature folds into the thresholds."""
    dtype, specs = features.signal.dtype, features.specs
    integers = features.plan is not None
    signals = tuple(
        Signal(s, o) if integers else Signal() for s, o in zip(features.unit_scales, features.unit_offsets, strict=True)
    )
    options = TreeOptions(InputSpec(DType.I32 if integers else DType.F32, signals), "raw", DType.F64)
    trees = run_passes(mcugen.load(booster), TREE_PASSES, options)
    window = Features(("sample",), trees.inputs, LOC, features.length, features.step, specs)
    first, meaning = lower_window(window, features.signal)
    assert meaning.scales == features.unit_scales
    assert meaning.offsets == features.unit_offsets
    types = {**trees.types, "sample": TensorType((2,), dtype)}
    ops = (first, *(op for op in trees.ops if isinstance(op, MachineOp)))
    return Model(name, "machine", ("sample",), trees.outputs, types, ops, trees.source)


@pytest.mark.parametrize(("dtype", "step"), [("int16", 3), ("int16", 24), ("int32", 11), ("float32", 5)])
def test_scores_are_lightgbms_bit_for_bit(dtype: str, step: int, tmp_path: Path) -> None:
    """LightGBM on transform(X) is the oracle: with float64 leaves the device's score has the bits of its own."""
    scales, offsets = ((0.01, -0.02), (0.0, 0.0)) if dtype != "float32" else (None, None)
    features = mf.Features(LENGTH, step, ITEMS, dtype, CHANNELS, scales, offsets)
    raw = signal(3000, 1)
    x = (raw.astype(np.int64) * 65536 if dtype == "int32" else raw).astype(dtype)
    table = features.transform(x)
    target = np.sin(np.arange(len(table)) * step / 70) + table[:, 1] * 1e-6
    booster = lightgbm.train(
        {"objective": "regression", "num_leaves": 15, "min_data_in_leaf": 5, "verbose": -1, "num_threads": 1},
        lightgbm.Dataset(table, target),
        12,
    )
    name = f"win{dtype}{step}"
    model, out = joined(features, booster, name), tmp_path / "out"
    board = load_board("stm32h743")
    finish(model, prepared(model, 60), out, ExportOptions(), board, find_host_compiler())
    fresh = (signal(700, 2).astype(np.int64) * (65536 if dtype == "int32" else 1)).astype(dtype)
    want = booster.predict(features.transform(fresh), raw_score=True)
    export = open_folder(out)
    with export.host() as host:
        (y, status), *_ = host.push_all([fresh])
        got = y.reshape(len(fresh), -1)[status == 0, 0]
        assert got.dtype == np.float64
        np.testing.assert_array_equal(got.view("<u8"), want.view("<u8"))
        assert host.selftest() == 0
    part = fresh[:150]
    device = run_on_board(export.board_model(), part, board, find_cross_compiler())
    np.testing.assert_array_equal(device.status, status[:150])
    np.testing.assert_array_equal(device.y.view("<u8"), y.reshape(len(fresh), -1)[:150].view("<u8"))
