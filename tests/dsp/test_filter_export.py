"""Filters as one exported model: chains of every kind, on the host and on the emulated board, every bit."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from filter_cases import signals
from push_rig import LOC, same_bits
from scipy import signal

from mcugen.build import finish
from mcugen.core.op import MachineOp
from mcugen.core.types import DType, Model, Source
from mcugen.dsp.lower import FilterChoices, Lowered, lower_filters
from mcugen.dsp.ops import (
    MACHINE_OPS,
    ConvertUnits,
    FrameSamples,
    FWindowFeatures,
    QuantizeReals,
    RealSamples,
    WindowFeatures,
)
from mcugen.dsp.signal import Signal
from mcugen.dsp.source import DcBlock, Decimate, Extreme, FilterSource, Fir, Iir, Median, MovingAverage, Smooth
from mcugen.emulate.run import run_on_board
from mcugen.emulate.toolchain import find_cross_compiler
from mcugen.exported import open_folder
from mcugen.recipes.prepared import ExportOptions
from mcugen.target.board import load_board
from mcugen.verify.compiler import find_host_compiler

sys.path.insert(0, str(Path(__file__).parents[1] / "stream"))
from stream_ops import prepared

NAMES = ("ax", "ay", "az")
SOS = signal.butter(4, 0.2, output="sos")
TAPS = signal.firwin(12, 0.3)


def chain(*parts: tuple[type, tuple[int, ...], tuple[object, ...]]) -> list[FilterSource]:
    """Filters in a line: kind, channels, parameters."""
    names = ["x", *(f"v{i}" for i in range(1, len(parts))), "y"]
    return [k((names[i],), (names[i + 1],), LOC, c, *p) for i, (k, c, p) in enumerate(parts)]


ALL = (0, 1, 2)
CHAINS: dict[str, tuple[DType, FilterChoices, list[FilterSource]]] = {
    "q15": (
        DType.I16,
        FilterChoices("q15"),
        chain(
            (Median, (0,), (5,)),
            (Fir, (1, 2), (TAPS,)),
            (Iir, ALL, (SOS,)),
            (MovingAverage, (2,), (6,)),
            (Decimate, ALL, (3,)),
            (Extreme, (0, 2), (4, "max")),
        ),
    ),
    "q31": (
        DType.I16,
        FilterChoices("q31"),
        chain(
            (Iir, (2,), (SOS,)),
            (Fir, (0, 2), (TAPS,)),
            (Decimate, ALL, (2,)),
            (DcBlock, (1,), (0.95,)),
            (Smooth, ALL, (0.2,)),
            (MovingAverage, ALL, (7,)),
        ),
    ),
    "wide": (DType.I32, FilterChoices("32x64"), chain((Iir, ALL, (SOS,)), (Extreme, (1,), (5, "min")))),
    "doubles": (DType.I16, FilterChoices("float64"), chain((Iir, (0, 2), (SOS,)), (Decimate, ALL, (2,)))),
    "floats": (
        DType.I16,
        FilterChoices("float32"),
        chain(
            (DcBlock, ALL, (0.9,)),
            (Iir, (0, 1), (SOS,)),
            (Fir, ALL, (TAPS,)),
            (Median, (1,), (3,)),
            (Smooth, ALL, (0.3,)),
        ),
    ),
}


def lowered(name: str) -> Lowered:
    dtype, choices, ops = CHAINS[name]
    # Peaks low enough for a DC blocker in front of a q31 filter.
    peak = 1.0 if dtype.is_float else 30000.0 if dtype is DType.I16 else 2.0**30
    return lower_filters(ops, Signal.of(NAMES, dtype, peaks=(peak,) * 3), choices)


def model_of(name: str, found: Lowered) -> Model:
    outputs = found.ops[-1].outputs
    return Model(f"f_{name}", "machine", ("x",), outputs, found.types, found.ops, Source("f.toml", "filters", "0" * 64))


def samples(name: str, steps: int) -> np.ndarray:
    """(T, 3): each channel another kind of signal."""
    dtype = CHAINS[name][0]
    kinds = signals(dtype.np.type, 5, steps)
    return np.stack([kinds["random"], kinds["step"], kinds["extremes"]], axis=1) // 2


def test_chains_show_every_op() -> None:
    shown = {type(op) for name in CHAINS for op in lowered(name).ops}
    windows, to_nets = {WindowFeatures, FWindowFeatures}, {ConvertUnits, FrameSamples, QuantizeReals, RealSamples}
    assert shown == set(MACHINE_OPS) - windows - to_nets


@pytest.mark.parametrize("name", CHAINS)
def test_exported_filters_are_the_reference(name: str, tmp_path: Path) -> None:
    found = lowered(name)
    model, out, board = model_of(name, found), tmp_path / "out", load_board("stm32h743")
    finish(model, prepared(model, 40), out, ExportOptions(), board, find_host_compiler())
    x = samples(name, 300)
    expected = x
    for op in found.ops:
        assert isinstance(op, MachineOp)
        (expected,) = op.eval(expected)
    export = open_folder(out)
    with export.host() as host:
        (y, status), *_ = host.push_all([x])
        same_bits(y.reshape(len(x), -1)[status == 0], expected, name)
        assert host.selftest() == 0
    device = run_on_board(export.board_model(), x[:60], board, find_cross_compiler())
    np.testing.assert_array_equal(device.status, status[:60])
    same_bits(device.y[device.status == 0], expected[: np.count_nonzero(device.status == 0)], name)
    assert device.selftest == 0
