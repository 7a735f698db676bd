"""Random nets the whole way: float net ~ integer reference == C on the host == C on the emulated board, every bit."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from hypothesis import HealthCheck, given, settings

sys.path.insert(0, str(Path(__file__).parents[1] / "frontends"))

from onnx_nets import load, runtime
from random_nets import random_nets

import mcugen
from mcugen import exported
from mcugen.core.passes import check_model, evaluate
from mcugen.core.types import Array
from mcugen.errors import McugenError
from mcugen.exported import open_folder
from mcugen.nn.passes import simplify
from mcugen.nn.prune.prune import prune
from mcugen.nn.quantize.losses import as_integers, dequantized
from mcugen.nn.quantize.quantize import quantize
from mcugen.nn.quantize.ranges import value_ranges
from mcugen.nn.vectors import net_vectors

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


def assert_near(model: onnx.ModelProto, x: Array, found: Array) -> None:
    """Eight-bit layers in a row: an independent, loose limit that a wrong index, sign or scale breaks by far."""
    expected = np.concatenate([runtime(model, {"x": row[None]})[0] for row in x])
    span = float(expected.max() - expected.min()) + 1e-6
    assert np.abs(found.reshape(expected.shape) - expected).mean() < 0.08 * span + 0.01


def assert_close(model: onnx.ModelProto, out: Path, x: Array) -> None:
    """What the C gives, through the command's own verb."""
    np.save(out.parent / "x.npy", x)
    y, _ = exported.run(out, out.parent / "x.npy", out.parent / "y.npy")
    kind = open_folder(out).manifest["outputs"][0]
    assert_near(model, x, (y.astype(np.float64) - kind["zero_point"]) * kind["scale"])


def check_reference(model: onnx.ModelProto) -> None:
    """In numpy alone: close to onnxruntime, and the same bits without the dead channels."""
    source = simplify(load(model))
    x = samples(model)
    machine = quantize(source, value_ranges(source, (x,), "minmax")).machine
    check_model(machine, "quantize")
    smaller = prune(machine).machine
    check_model(smaller, "prune")
    kind, result = machine.types["x"], machine.types[machine.outputs[0]]
    rows = np.concatenate([as_integers(x, kind), net_vectors(kind, None)])
    whole, rest = (evaluate(m, {"x": rows})[m.outputs[0]] for m in (machine, smaller))
    assert np.array_equal(whole, rest)
    assert_near(model, x, dequantized(whole[: len(x)], result))


@settings(_quick, max_examples=60)
@given(model=random_nets(12))
def test_reference(model: onnx.ModelProto) -> None:
    check_reference(model)


@pytest.mark.slow
@settings(_long, max_examples=2000)
@given(model=random_nets(16))
def test_reference_often(model: onnx.ModelProto) -> None:
    check_reference(model)


def board(model: onnx.ModelProto, folder: Path, **options: object) -> None:
    out, _ = export(model, folder, **options)
    try:
        (line, *_) = exported.verify(out, None, "stm32h743")
    except McugenError as e:
        if "compiler" in str(e):
            pytest.skip(str(e))
        raise
    assert "every bit" in line


@settings(_quick, max_examples=5)
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
