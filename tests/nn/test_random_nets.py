"""Random nets the whole way: float net ~ integer reference == C on the host == C on the emulated board, every bit."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from hypothesis import HealthCheck, given, settings

sys.path.insert(0, str(Path(__file__).parents[1] / "frontends"))

from onnx_nets import runtime
from random_nets import random_nets

import mcugen
from mcugen import exported
from mcugen.core.types import Array
from mcugen.errors import McugenError
from mcugen.exported import open_folder

_quick = settings(deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
_long = settings(deadline=None, suppress_health_check=list(HealthCheck))


def samples(model: onnx.ModelProto) -> Array:
    shape = [d.dim_value for d in model.graph.input[0].type.tensor_type.shape.dim]
    return np.random.default_rng(1).normal(0, 1, (24, *shape[1:])).astype(np.float32)


def export(model: onnx.ModelProto, folder: Path, **options: object) -> tuple[Path, Array]:
    """Exported: the host C has every bit of the reference on the samples, on noise and on extremes."""
    onnx.save(model, folder / "net.onnx")
    x = samples(model)
    np.savez(folder / "calib.npz", x=x)
    mcugen.export(folder / "net.onnx", folder / "out", name="net", calib=folder / "calib.npz", **options)  # type: ignore[arg-type]
    return folder / "out", x


def assert_close(model: onnx.ModelProto, out: Path, x: Array) -> None:
    """Eight-bit layers in a row: an independent, loose limit that a wrong index, sign or scale breaks by far."""
    expected = np.concatenate([runtime(model, {"x": row[None]})[0] for row in x])
    np.save(out.parent / "x.npy", x)
    y, _ = exported.run(out, out.parent / "x.npy", out.parent / "y.npy")
    kind = open_folder(out).manifest["outputs"][0]
    found = (y.astype(np.float64) - kind["zero_point"]) * kind["scale"]
    span = float(expected.max() - expected.min()) + 1e-6
    assert np.abs(found - expected).mean() < 0.08 * span + 0.01


def board(model: onnx.ModelProto, folder: Path, **options: object) -> None:
    out, _ = export(model, folder, **options)
    try:
        (line, *_) = exported.verify(out, None, "stm32h743")
    except McugenError as e:
        if "compiler" in str(e):
            pytest.skip(str(e))
        raise
    assert "every bit" in line


@settings(_quick, max_examples=8)
@given(model=random_nets())
def test_host(model: onnx.ModelProto, tmp_path_factory: pytest.TempPathFactory) -> None:
    out, x = export(model, tmp_path_factory.mktemp("net"), board=None)
    assert_close(model, out, x)


@settings(_quick, max_examples=2)
@given(model=random_nets())
def test_board(model: onnx.ModelProto, tmp_path_factory: pytest.TempPathFactory) -> None:
    pytest.importorskip("unicorn")
    board(model, tmp_path_factory.mktemp("net"))


@settings(_quick, max_examples=2)
@given(model=random_nets())
def test_float32(model: onnx.ModelProto, tmp_path_factory: pytest.TempPathFactory) -> None:
    export(model, tmp_path_factory.mktemp("net"), board=None, float32=True)


@pytest.mark.slow
@settings(_long, max_examples=200)
@given(model=random_nets(12))
def test_host_often(model: onnx.ModelProto, tmp_path_factory: pytest.TempPathFactory) -> None:
    out, x = export(model, tmp_path_factory.mktemp("net"), board=None)
    assert_close(model, out, x)


@pytest.mark.slow
@settings(_long, max_examples=60)
@given(model=random_nets(12))
def test_board_often(model: onnx.ModelProto, tmp_path_factory: pytest.TempPathFactory) -> None:
    pytest.importorskip("unicorn")
    board(model, tmp_path_factory.mktemp("net"))
