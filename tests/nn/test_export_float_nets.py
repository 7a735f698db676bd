"""Nets in float32: from an ONNX file to C with the bits of numpy, close to onnxruntime; no data needed."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import HealthCheck, given, settings

sys.path.insert(0, str(Path(__file__).parents[1] / "frontends"))

from onnx_nets import load, net, node
from test_export_nets import NETS, float_truth, random_nets, samples, weights

import mcugen
from mcugen import exported
from mcugen.cli import main
from mcugen.core.passes import check_model, evaluate
from mcugen.core.types import Array, DType, Model
from mcugen.emit.sources import sources_of
from mcugen.errors import McugenError, UnsupportedError
from mcugen.exported import open_folder
from mcugen.nn.float_gap import float_gaps
from mcugen.nn.floats import lower_floats
from mcugen.nn.passes import simplify
from mcugen.verify.compiler import find_host_compiler
from mcugen.verify.sanitize import build_runner, run_golden

I64 = np.int64


@pytest.fixture(scope="session")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The three nets, exported: that compares every bit of C and reference on this machine."""
    made = {}
    for kind, build in NETS.items():
        base = tmp_path_factory.mktemp(f"float_{kind}")
        onnx.save(build(), base / "net.onnx")
        mcugen.export(base / "net.onnx", base / "out", name="net", float32=True)
        made[kind] = base / "out"
    return made


def outputs(out: Path, x: Array) -> Array:
    """Through the command's own verb."""
    np.save(out.parent / "x.npy", x)
    y, warnings = exported.run(out, out.parent / "x.npy", out.parent / "y.npy")
    assert not warnings
    return y


def assert_close(found: Array, expected: Array) -> None:
    found = found.reshape(expected.shape)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5 * float(np.abs(expected).max()))


@pytest.mark.parametrize("kind", NETS)
def test_close_to_onnxruntime(kind: str, folders: dict[str, Path]) -> None:
    model = NETS[kind]()
    x = samples(model, 5)
    y = outputs(folders[kind], x)
    assert y.dtype == np.float32
    assert_close(y, float_truth(model, x))


@pytest.mark.parametrize("kind", NETS)
def test_the_contract_is_float(kind: str, folders: dict[str, Path]) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    folder = open_folder(folders[kind])
    header = folder.files["net.h"].decode()
    assert "net_run(const float *x, float *y)" in header
    assert "quantize" not in header
    assert "SCALE" not in header
    x, y = (folder.manifest[k][0] for k in ("inputs", "outputs"))
    assert (x["dtype"], y["dtype"]) == ("float32", "float32")
    assert "scale" not in y
    gap = folder.manifest["verification"]["float_model"]
    assert gap["worst_relative"] < 1e-4
    assert json.dumps(gap, allow_nan=False)
    schema = json.loads((Path(__file__).parents[2] / "docs" / "manifest.schema.json").read_text(encoding="utf-8"))
    jsonschema.validate(folder.manifest, schema)
    lines = exported.verify(folders[kind], None, "host")
    assert "every bit" in lines[0]


def test_more_data_with_nan_and_infinity(folders: dict[str, Path], tmp_path: Path) -> None:
    x = samples(NETS["signal"](), 6)
    x[0, 0, 3], x[1, 1, 4], x[2] = np.nan, np.inf, 3e38
    np.save(tmp_path / "x.npy", x)
    lines = exported.verify(folders["signal"], tmp_path / "x.npy", "host")
    assert sum("every bit" in line for line in lines) == 2
    assert "on 21 vectors: worst relative difference" in lines[-1]


@pytest.mark.parametrize("kind", NETS)
def test_the_runner_under_sanitizers(kind: str, folders: dict[str, Path]) -> None:
    folder = open_folder(folders[kind])
    with build_runner(folder.files, sources_of(folder.files), "net", find_host_compiler()) as program:
        result = run_golden(program, folder.files[folder.golden_path])
    assert result.returncode == 0, result.output


@pytest.mark.parametrize("kind", ["conv", "sequence"])
def test_every_bit_on_the_emulated_board(kind: str, folders: dict[str, Path]) -> None:
    pytest.importorskip("unicorn")
    try:
        lines = exported.verify(folders[kind], None, "stm32h743")
    except McugenError as e:
        if "compiler" in str(e):
            pytest.skip(str(e))
        raise
    assert "every bit" in lines[0]


def lowered(model: onnx.ModelProto, simple: bool = True) -> tuple[Model, Model]:
    source = simplify(load(model)) if simple else load(model)
    machine = lower_floats(source)
    check_model(machine, "lower")
    return source, machine


def check_values(model: onnx.ModelProto) -> None:
    """The machine ops in numpy against onnxruntime; also without the float passes, that leave fewer kinds of ops."""
    x = samples(model)
    expected = float_truth(model, x)
    for simple in (True, False):
        check_lowered(*lowered(model, simple), x, expected)


def check_lowered(source: Model, machine: Model, x: Array, expected: Array) -> None:
    y = evaluate(machine, {machine.inputs[0]: x})[machine.outputs[0]]
    assert y.shape[1:] == source.types[source.outputs[0]].shape
    if y.dtype == np.int32:
        np.testing.assert_array_equal(y.reshape(expected.shape), expected)
    else:
        assert_close(y, expected)


RNG = np.random.default_rng(8)
CHANNELS = {"s": RNG.normal(1, 0.3, (1, 3, 1, 1)), "t": RNG.normal(0, 0.3, (1, 3, 1, 1))}
GRU = {"w": weights(RNG, 1, 12, 3), "r": weights(RNG, 1, 12, 4), "b": RNG.normal(0, 0.3, (1, 24))}
GRU |= {"h0": RNG.normal(0, 0.5, (1, 1, 4))}
LSTM = {"w": weights(RNG, 1, 16, 3), "r": weights(RNG, 1, 16, 4), "b": RNG.normal(0, 0.3, (1, 32))}
LSTM |= {"h": RNG.normal(0, 0.5, (1, 1, 4)), "c": RNG.normal(0, 0.5, (1, 1, 4))}
ENDS = {"from": np.array([0, 5, 2], I64), "to": np.array([3, 0, 5], I64)}
ENDS |= {"axes": np.array([1, 2, 3], I64), "by": np.array([2, -2, 1], I64)}
SMALL = [1, 3, 6, 5]
ONE_OP: dict[str, tuple[list[onnx.NodeProto], list[int], dict[str, Any]]] = {
    "scale of channels": (
        [node("Mul", "x s", "m"), node("Sigmoid", "m", "n"), node("Add", "n t", "y")], SMALL, CHANNELS,
    ),
    "scale of all": ([node("Sigmoid", "x", "n"), node("Mul", "n k", "y")], SMALL, {"k": np.float32(-2.5)}),
    "leaky": ([node("LeakyRelu", "x", "y", alpha=0.2)], SMALL, {}),
    "hard sigmoid": ([node("HardSigmoid", "x", "y", alpha=0.3, beta=0.4)], SMALL, {}),
    "hard swish": ([node("HardSwish", "x", "y")], SMALL, {}),
    "tanh": ([node("Tanh", "x", "y")], SMALL, {}),
    "clip above": ([node("Clip", "x - h", "y")], SMALL, {"h": np.float32(0.3)}),
    "dense of rows": ([node("MatMul", "x w", "m"), node("Relu", "m", "y")], [1, 4, 5], {"w": RNG.normal(0, 1, (5, 3))}),
    "softmax of channels": ([node("Softmax", "x", "y", axis=1)], SMALL, {}),
    "softmax of rows": ([node("Softmax", "x", "y", axis=2)], SMALL, {}),
    "argmax of channels": ([node("ArgMax", "x", "y", axis=1, keepdims=0)], SMALL, {}),
    "argmax kept": ([node("ArgMax", "x", "y", axis=-1)], [1, 7], {}),
    "mean of channels": ([node("ReduceMean", "x", "y", axes=[1], keepdims=1)], SMALL, {}),
    "mean of an image": ([node("ReduceMean", "x", "y", axes=[2, 3], keepdims=0)], SMALL, {}),
    "largest of all": ([node("GlobalMaxPool", "x", "y")], SMALL, {}),
    "average with pads": (
        [node("AveragePool", "x", "y", kernel_shape=[3, 2], strides=[2, 2], pads=[1, 0, 1, 1], count_include_pad=1)],
        SMALL, {},
    ),
    "ceiling": ([node("MaxPool", "x", "y", kernel_shape=[3, 3], strides=[2, 3], ceil_mode=1)], [1, 2, 8, 7], {}),
    "transposed": ([node("Transpose", "x", "y", perm=[0, 3, 1, 2])], SMALL, {}),
    "slice backwards": ([node("Slice", "x from to axes by", "y")], SMALL, ENDS),
    "pad": ([node("Pad", "x p v", "y")], SMALL, {"p": np.array([0, 1, 0, 2, 0, 0, 3, 1], I64), "v": np.float32(-0.1)}),
    "concatenated rows": (
        [node("Tanh", "x", "a"), node("Sigmoid", "x", "b"), node("Concat", "a b x", "y", axis=2)], SMALL, {},
    ),
    "repeated": (
        [node("GlobalAveragePool", "x", "g"), node("Sigmoid", "g", "a"), node("Mul", "x a", "y")], SMALL, {},
    ),
    "a row by a column": (
        [node("ReduceMean", "x", "a", axes=[3]), node("ReduceMean", "x", "b", axes=[2]), node("Sub", "a b", "y")],
        SMALL, {},
    ),
    "the sum of two readings": (
        [node("Relu", "x", "a"), node("Flatten", "a", "f"), node("Softmax", "f", "p"), node("Flatten", "x", "g"),
         node("Tanh", "g", "t"), node("Mul", "f t", "m"), node("Add", "m p", "y")],
        SMALL, {},
    ),
    "only renamed": ([node("Reshape", "x to", "y")], [1, 6, 4], {"to": np.array([1, 3, 8], I64)}),
    "renamed and read": (
        [node("Tanh", "x", "a"), node("Flatten", "a", "y")], SMALL, {},
    ),
    "groups": (
        [node("Conv", "x w b", "y", group=3, pads=[0, 1, 2, 1], strides=[2, 1], dilations=[2, 1])], SMALL,
        {"w": weights(RNG, 6, 1, 3, 3), "b": RNG.normal(0, 1, 6)},
    ),
    "lstm": (
        [node("Transpose", "x", "t", perm=[1, 0, 2]), node("LSTM", "t w r b - h c", "- p q", hidden_size=4),
         node("Concat", "p q", "j", axis=2), node("Squeeze", "j a", "y")],
        [1, 7, 3], LSTM | {"a": np.array([0], I64)},
    ),
    "gru": (
        [node("Transpose", "x", "t", perm=[1, 0, 2]), node("GRU", "t w r b - h0", "e h", hidden_size=4),
         node("Squeeze", "h a", "y")],
        [1, 7, 3], GRU | {"a": np.array([0], I64)},
    ),
    "gru, reset after": (
        [node("Transpose", "x", "t", perm=[1, 0, 2]),
         node("GRU", "t w r b - h0", "e -", hidden_size=4, linear_before_reset=1), node("Squeeze", "e a", "s"),
         node("Transpose", "s", "y", perm=[1, 0, 2])],
        [1, 7, 3], GRU | {"a": np.array([1], I64)},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ONE_OP)
def test_every_op_is_close_to_onnxruntime(name: str) -> None:
    nodes, shape, constants = ONE_OP[name]
    check_values(net(nodes, shape, constants))


@settings(max_examples=25, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(model=random_nets())
def test_random_nets_in_float(model: onnx.ModelProto) -> None:
    check_values(model)


@pytest.mark.slow
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(model=random_nets())
def test_many_random_nets_in_float(model: onnx.ModelProto, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("float")
    onnx.save(model, folder / "net.onnx")
    mcugen.export(folder / "net.onnx", folder / "out", name="net", board=None, float32=True)
    x = samples(model)
    assert_close(outputs(folder / "out", x), float_truth(model, x))


def test_clamps_are_inside_of_layers() -> None:
    _, machine = lowered(NETS["conv"]())
    kinds = [type(op).__name__ for op in machine.ops]
    assert "FActivation" not in kinds
    assert {t.dtype for t in machine.types.values()} == {DType.F32}
    assert all(t.q is None for t in machine.types.values())


@pytest.mark.parametrize("name", ["repeated", "the sum of two readings", "only renamed", "argmax of channels", "pad"])
def test_c_of_ops_that_the_nets_lack(name: str, tmp_path: Path) -> None:
    """The export compares every bit; the run goes through the exported folder."""
    nodes, shape, constants = ONE_OP[name]
    model = net(nodes, shape, constants)
    onnx.save(model, tmp_path / "net.onnx")
    mcugen.export(tmp_path / "net.onnx", tmp_path / "out", name="net", board=None, float32=True)
    x = samples(model)
    assert_close(outputs(tmp_path / "out", x), float_truth(model, x))


def test_int8_with_an_image_as_output(tmp_path: Path) -> None:
    """What the C gives has no axes, the reference has."""
    nodes, shape, constants = ONE_OP["groups"]
    model = net(nodes, shape, constants)
    onnx.save(model, tmp_path / "net.onnx")
    np.savez(tmp_path / "data.npz", x=samples(model))
    mcugen.export(tmp_path / "net.onnx", tmp_path / "out", name="net", board=None, calib=tmp_path / "data.npz")
    assert "every bit" in exported.verify(tmp_path / "out", tmp_path / "data.npz", "host")[0]


def test_data_is_used_where_it_is_given(tmp_path: Path) -> None:
    model = NETS["sequence"]()
    onnx.save(model, tmp_path / "net.onnx")
    np.savez(tmp_path / "data.npz", x=samples(model))
    result = mcugen.export(
        tmp_path / "net.onnx", tmp_path / "out", name="net", board=None, float32=True, calib=tmp_path / "data.npz"
    )
    assert result.coverage.own == 24
    np.testing.assert_array_equal(open_folder(tmp_path / "out").golden().of_role("input")[0].data[0], samples(model)[0])


def test_the_distance_to_the_float_net() -> None:
    source, machine = lowered(NETS["signal"]())
    x = samples(NETS["signal"]())
    y = evaluate(machine, {machine.inputs[0]: x})[machine.outputs[0]]
    assert float_gaps(source, [x], [y]).relative < 1e-5
    wrong = y.copy()
    wrong[7] *= 1.25
    gap = float_gaps(source, [x], [wrong])
    assert gap.relative == pytest.approx(0.25, rel=1e-4)
    assert gap.vectors == len(x)
    far = float_gaps(source, [np.full_like(x, 3e38)], [np.full_like(y, np.inf)])
    assert (far.vectors, far.relative) == (0, 0.0)


QUANTIZED = net(
    [node("QuantizeLinear", "x s z", "q"), node("DequantizeLinear", "q s z", "d"), node("Relu", "d", "y")],
    [1, 6],
    {"s": np.float32(0.05), "z": np.int8(3)},
)


@pytest.mark.parametrize(
    ("model", "options", "code", "words"),
    [
        (QUANTIZED, ["--float32"], 3, "leave out --float32"),
        (NETS["signal"](), ["--float32", "--input-dtype", "int8"], 3, "leave out --float32"),
        (NETS["signal"](), ["--input-dtype", "float32"], 3, "use --float32"),
        (NETS["signal"](), ["--float32", "--max-error", "1"], 3, "--max-error: is for trees"),
        (NETS["signal"](), ["--float32", "--output", "proba"], 3, "end the net with a Softmax"),
    ],
)
def test_what_does_not_go_together(
    model: onnx.ModelProto,
    options: list[str],
    code: int,
    words: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    onnx.save(model, tmp_path / "net.onnx")
    with pytest.raises(SystemExit) as stop:
        main(["export", str(tmp_path / "net.onnx"), "-o", str(tmp_path / "out"), *options])
    error = capsys.readouterr().err
    assert stop.value.code == code
    assert words in error
    assert error.count("\n") == 1
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("option", [{"float32": True}, {"int16": ("layer",)}, {"io": "caller"}, {"max_ram": 9}])
def test_trees_have_no_such_mode(option: dict[str, Any]) -> None:
    forest = pytest.importorskip("sklearn.tree").DecisionTreeRegressor(max_depth=2)
    x = np.random.default_rng(0).normal(size=(40, 3))
    with pytest.raises(UnsupportedError, match=r"is for (layers of )?nets"):
        mcugen.export(forest.fit(x, x[:, 0]), "unused", **option)


def test_the_command_prints_the_distance(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    onnx.save(NETS["signal"](), tmp_path / "net.onnx")
    with pytest.raises(SystemExit) as stop:
        main(["export", str(tmp_path / "net.onnx"), "-o", str(tmp_path / "out"), "--float32"])
    assert stop.value.code == 0
    text = capsys.readouterr().out
    assert "net_run(const float x[64], float y[4])" in text
    assert "worst relative difference to the float net" in text
