"""Nets from an ONNX file to verified C: accuracy against onnxruntime's float result, every bit on host and board."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parents[1] / "frontends"))

from onnx_nets import net, node, runtime

import mcugen
from mcugen import exported
from mcugen.cli import main
from mcugen.core.types import Array
from mcugen.emit.sources import sources_of
from mcugen.errors import McugenError
from mcugen.exported import open_folder
from mcugen.verify.compiler import find_host_compiler
from mcugen.verify.sanitize import build_runner, run_golden

ROWS = 24


def weights(rng: np.random.Generator, *shape: int) -> Array:
    return rng.normal(0, 1 / np.sqrt(np.prod(shape[1:])), shape)


def conv_net(seed: int = 0) -> onnx.ModelProto:
    """First layer on planes, depthwise, pointwise, residual sum, average, dense, softmax."""
    rng = np.random.default_rng(seed)
    nodes = [
        node("Conv", "x w0 b0", "a", strides=[2, 2], pads=[1, 1, 1, 1]),
        node("Relu", "a", "ar"),
        node("Conv", "ar w1 b1", "d", group=8, pads=[1, 1, 1, 1]),
        node("Relu", "d", "dr"),
        node("Conv", "dr w2 b2", "p"),
        node("Add", "p ar", "s"),
        node("Relu", "s", "sr"),
        node("GlobalAveragePool", "sr", "g"),
        node("Flatten", "g", "f"),
        node("Gemm", "f w3 b3", "z", transB=1),
        node("Softmax", "z", "y"),
    ]
    constants = {"w0": weights(rng, 8, 3, 3, 3), "b0": rng.normal(0, 0.1, 8)}
    constants |= {"w1": weights(rng, 8, 1, 3, 3), "b1": rng.normal(0, 0.1, 8)}
    constants |= {"w2": weights(rng, 8, 8, 1, 1), "b2": rng.normal(0, 0.1, 8)}
    constants |= {"w3": 4 * weights(rng, 5, 8), "b3": rng.normal(0, 0.1, 5)}
    return net(nodes, [1, 3, 13, 11], constants)


def signal_net(seed: int = 0) -> onnx.ModelProto:
    """A 1-D net with pooling and concatenation of two branches."""
    rng = np.random.default_rng(seed)
    nodes = [
        node("Conv", "x w0 b0", "a", pads=[2, 2], strides=[2]),
        node("Relu", "a", "ar"),
        node("MaxPool", "ar", "m", kernel_shape=[2], strides=[2]),
        node("Conv", "m w1 b1", "u", pads=[1, 1]),
        node("Conv", "m w2 b2", "v"),
        node("Concat", "u v", "c", axis=1),
        node("Sigmoid", "c", "cs"),
        node("Flatten", "cs", "f"),
        node("Gemm", "f w3 b3", "y", transB=1),
    ]
    constants = {"w0": weights(rng, 6, 2, 5), "b0": rng.normal(0, 0.1, 6)}
    constants |= {"w1": weights(rng, 4, 6, 3), "b1": rng.normal(0, 0.1, 4)}
    constants |= {"w2": weights(rng, 3, 6, 1), "b2": rng.normal(0, 0.1, 3)}
    constants |= {"w3": weights(rng, 4, 7 * 8), "b3": rng.normal(0, 0.1, 4)}
    return net(nodes, [1, 2, 32], constants)


def sequence_net(seed: int = 0) -> onnx.ModelProto:
    """An LSTM over a sequence, its last state into a dense layer."""
    rng = np.random.default_rng(seed)
    hidden, inputs = 5, 3
    nodes = [
        node("Transpose", "x", "t", perm=[1, 0, 2]),
        node("LSTM", "t w r b", "- h -", hidden_size=hidden),
        node("Squeeze", "h axes", "hs"),
        node("Gemm", "hs w3 b3", "y", transB=1),
    ]
    constants = {"w": weights(rng, 1, 4 * hidden, inputs), "r": weights(rng, 1, 4 * hidden, hidden)}
    constants |= {"b": rng.normal(0, 0.1, (1, 8 * hidden)), "axes": np.array([0], np.int64)}
    constants |= {"w3": weights(rng, 4, hidden), "b3": rng.normal(0, 0.1, 4)}
    return net(nodes, [1, 9, inputs], constants)


NETS = {"conv": conv_net, "signal": signal_net, "sequence": sequence_net}


def samples(model: onnx.ModelProto, seed: int = 1) -> Array:
    shape = [d.dim_value for d in model.graph.input[0].type.tensor_type.shape.dim]
    rng = np.random.default_rng(seed)
    return rng.normal(0, 1, (ROWS, *shape[1:])).astype(np.float32)


def float_truth(model: onnx.ModelProto, x: Array) -> Array:
    return np.concatenate([runtime(model, {"x": row[None]})[0] for row in x])


def exported_net(model: onnx.ModelProto, folder: Path, **options: Any) -> tuple[Path, Array]:
    folder.mkdir(parents=True, exist_ok=True)
    onnx.save(model, folder / "net.onnx")
    x = samples(model)
    np.savez(folder / "calib.npz", x=x)
    mcugen.export(folder / "net.onnx", folder / "out", name="net", calib=folder / "calib.npz", **options)
    return folder / "out", x


def real_outputs(out: Path, x: Array) -> Array:
    """Through the command's own verb: floats in, integers out, scaled by what the manifest says."""
    np.save(out.parent / "x.npy", x)
    y, _ = exported.run(out, out.parent / "x.npy", out.parent / "y.npy")
    kind = open_folder(out).manifest["outputs"][0]
    return (y.astype(np.float64) - kind["zero_point"]) * kind["scale"]


@pytest.mark.parametrize("kind", NETS)
def test_close_to_the_float_net(kind: str, tmp_path: Path) -> None:
    model = NETS[kind]()
    out, x = exported_net(model, tmp_path)
    expected, found = float_truth(model, x), real_outputs(out, x)
    span = expected.max() - expected.min()
    assert np.abs(found - expected).max() < 0.05 * span
    ties = np.sort(expected, axis=1)
    clear = ties[:, -1] - ties[:, -2] > 0.05 * span
    assert (found.argmax(axis=1) == expected.argmax(axis=1))[clear].all()


@pytest.mark.parametrize("method", ["minmax", "percentile", "mse"])
def test_calibration_methods(method: str, tmp_path: Path) -> None:
    model = signal_net()
    out, x = exported_net(model, tmp_path, calib_method=method)
    expected = float_truth(model, x)
    assert np.abs(real_outputs(out, x) - expected).mean() < 0.02 * (expected.max() - expected.min())


@pytest.mark.parametrize("kind", NETS)
def test_the_runner_under_sanitizers(kind: str, tmp_path: Path) -> None:
    out, _ = exported_net(NETS[kind](), tmp_path)
    folder = open_folder(out)
    sources = sources_of(folder.files)
    with build_runner(folder.files, sources, "net", find_host_compiler()) as program:
        result = run_golden(program, folder.files[folder.golden_path])
    assert result.returncode == 0, result.output


@pytest.mark.parametrize("kind", NETS)
def test_every_bit_on_the_emulated_board(kind: str, tmp_path: Path) -> None:
    pytest.importorskip("unicorn")
    out, _ = exported_net(NETS[kind](), tmp_path)
    try:
        lines = exported.verify(out, None, "stm32h743")
    except McugenError as e:
        if "compiler" in str(e):
            pytest.skip(str(e))
        raise
    assert "every bit" in lines[0]


def test_a_poisoned_and_a_larger_arena_give_the_same_bits(tmp_path: Path) -> None:
    """N23: nothing is read before it is written, nothing is written outside of the arena."""
    out, _ = exported_net(conv_net(), tmp_path)
    folder = open_folder(out)
    golden = folder.golden()
    x, y = golden.of_role("input")[0].data, golden.of_role("output")[0].data
    import cffi  # noqa: PLC0415

    from mcugen.verify.hostbuild import build_shared  # noqa: PLC0415

    header = folder.files["net.h"].decode()
    size = int(header.split("NET_ARENA_BYTES ")[1].split("u")[0])
    with build_shared(folder.files, sources_of(folder.files), find_host_compiler()) as library:
        ffi = cffi.FFI()
        ffi.cdef("int32_t net_run_with(void *arena, const int8_t *x, int8_t *y);")
        lib = ffi.dlopen(str(library))
        for poison in (0x00, 0xA5, 0xFF):
            block = np.full(2 * size + 64, poison, np.uint8)
            start = (-block.ctypes.data) % 8 + 8
            found = np.zeros_like(y[0])
            for row, expected in zip(x, y, strict=True):
                args = [ffi.cast("void *", block.ctypes.data + start)]
                args += [ffi.cast("int8_t *", np.ascontiguousarray(row).ctypes.data)]
                assert lib.net_run_with(*args, ffi.cast("int8_t *", found.ctypes.data)) == 0
                assert (found == expected).all()
            assert (block[:start] == poison).all()
            assert (block[start + size :] == poison).all()
        assert lib.net_run_with(ffi.NULL, ffi.NULL, ffi.NULL) == -1
        ffi.dlclose(lib)


def test_a_quantized_file_needs_no_data(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    scale, zero = np.float32(0.05), np.int8(3)
    constants: dict[str, Any] = {"sx": scale, "zx": zero, "sy": np.float32(0.04), "zy": np.int8(-5)}
    constants |= {"wq": rng.integers(-127, 128, (4, 6)).astype(np.int8), "sw": np.full(4, 0.01, np.float32)}
    constants |= {"zw": np.zeros(4, np.int8), "b": np.zeros(4, np.float32)}
    nodes = [
        node("QuantizeLinear", "x sx zx", "q"),
        node("DequantizeLinear", "q sx zx", "xd"),
        node("DequantizeLinear", "wq sw zw", "w", axis=0),
        node("Gemm", "xd w b", "g", transB=1),
        node("QuantizeLinear", "g sy zy", "gq"),
        node("DequantizeLinear", "gq sy zy", "y"),
    ]
    model = net(nodes, [1, 6], constants)
    onnx.save(model, tmp_path / "net.onnx")
    mcugen.export(tmp_path / "net.onnx", tmp_path / "out", name="net", board=None)
    x = rng.normal(0, 2, (20, 6)).astype(np.float32)
    steps = np.rint(np.abs(real_outputs(tmp_path / "out", x) - float_truth(model, x)) / 0.04)
    # Exact ties may round the other way in floats: one unit, in a value or two.
    assert steps.max() <= 1
    assert np.count_nonzero(steps) <= 2


@pytest.mark.parametrize(
    ("calib", "words"),
    [
        (None, "needs data"),
        (np.zeros((4, 2, 32), np.float32), "every value is 0"),
        (np.full((4, 2, 32), np.nan, np.float32), "NaN"),
        (np.zeros((4, 3, 32), np.float32), "the net takes"),
        (np.zeros((0, 2, 32), np.float32), "no samples"),
    ],
)
def test_data_that_cannot_calibrate(
    calib: Array | None, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    onnx.save(signal_net(), tmp_path / "net.onnx")
    arguments = ["export", str(tmp_path / "net.onnx"), "-o", str(tmp_path / "out")]
    if calib is not None:
        np.savez(tmp_path / "c.npz", x=calib)
        arguments += ["--calib", str(tmp_path / "c.npz")]
    with pytest.raises(SystemExit) as stop:
        main(arguments)
    error = capsys.readouterr().err
    assert stop.value.code == 2
    assert words in error
    assert error.count("\n") == 1
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_weights_that_are_no_numbers(bad: float, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = signal_net()
    tensor = next(t for t in model.graph.initializer if t.name == "w1")
    data = onnx.numpy_helper.to_array(tensor).copy()
    data[0, 0, 0] = bad
    tensor.CopyFrom(onnx.numpy_helper.from_array(data, "w1"))
    onnx.save(model, tmp_path / "net.onnx")
    np.savez(tmp_path / "c.npz", x=samples(model))
    with pytest.raises(SystemExit) as stop:
        main(["export", str(tmp_path / "net.onnx"), "-o", str(tmp_path / "out"), "--calib", str(tmp_path / "c.npz")])
    error = capsys.readouterr().err
    assert stop.value.code == 2
    assert "weights hold NaN or infinity" in error
    assert error.count("\n") == 1


def test_a_value_that_overflows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    nodes = [node("Mul", "x m", "a"), node("Mul", "a m", "b"), node("Flatten", "b", "y")]
    model = net(nodes, [1, 4], {"m": np.float32(3e38)})
    onnx.save(model, tmp_path / "net.onnx")
    np.savez(tmp_path / "c.npz", x=samples(model))
    with pytest.raises(SystemExit) as stop:
        main(["export", str(tmp_path / "net.onnx"), "-o", str(tmp_path / "out"), "--calib", str(tmp_path / "c.npz")])
    assert stop.value.code == 2
    assert capsys.readouterr().err.count("\n") == 1


@st.composite
def random_nets(draw: st.DrawFn) -> onnx.ModelProto:
    """A chain of layers with a residual sum now and then, on a small image."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    c, h, w = draw(st.integers(1, 5)), draw(st.integers(3, 9)), draw(st.integers(3, 9))
    nodes, constants = [], {}
    shape, value, start = (c, h, w), "x", (c, h, w)
    for i in range(draw(st.integers(1, 5))):
        kinds = ["conv", "depthwise", "relu", "clip", "sigmoid", "tanh", "add", "affine"]
        kinds += ["maxpool", "avgpool"] if min(shape[1:]) > 1 else []
        kind = draw(st.sampled_from(kinds))
        c, h, w = shape
        out = f"v{i}"
        if kind in ("conv", "depthwise"):
            k = draw(st.sampled_from([1, 3]))
            stride = draw(st.integers(1, 2))
            group = 1 if kind == "conv" else c
            oc = draw(st.integers(1, 6)) if kind == "conv" else c * draw(st.integers(1, 2))
            constants |= {f"w{i}": weights(rng, oc, c // group, k, k), f"b{i}": rng.normal(0, 0.2, oc)}
            pads = [k // 2] * 4
            nodes.append(node("Conv", f"{value} w{i} b{i}", out, group=group, strides=[stride] * 2, pads=pads))
            shape = (oc, (h - 1) // stride + 1, (w - 1) // stride + 1)
        elif kind in ("maxpool", "avgpool"):
            op = "MaxPool" if kind == "maxpool" else "AveragePool"
            nodes.append(node(op, value, out, kernel_shape=[2, 2], strides=[draw(st.integers(1, 2))] * 2))
            s = nodes[-1].attribute[1].ints[0]
            shape = (c, (h - 2) // s + 1, (w - 2) // s + 1)
        elif kind == "add":
            nodes.append(node("Add", f"{value} {value}", out))
        elif kind == "affine":
            constants |= {f"m{i}": rng.normal(1, 0.3, (1, c, 1, 1))}
            nodes.append(node("Mul", f"{value} m{i}", out))
        elif kind == "clip":
            constants |= {"lo": np.float32(-0.5), "hi": np.float32(1.0)}
            nodes.append(node("Clip", f"{value} lo hi", out))
        else:
            nodes.append(node({"relu": "Relu", "sigmoid": "Sigmoid", "tanh": "Tanh"}[kind], value, out))
        value = out
    if draw(st.booleans()):
        nodes.append(node("GlobalAveragePool", value, "g"))
        value = "g"
        shape = (shape[0], 1, 1)
    nodes.append(node("Flatten", value, "flat"))
    n = int(np.prod(shape))
    constants |= {"wd": weights(rng, 3, n), "bd": rng.normal(0, 0.2, 3)}
    nodes.append(node("Gemm", "flat wd bd", "y", transB=1))
    return net(nodes, [1, *start], constants)


def check_random(model: onnx.ModelProto, folder: Path) -> None:
    """Export compares reference and C; here the whole is held against the float net."""
    out, x = exported_net(model, folder, board=None)
    expected = float_truth(model, x)
    found = real_outputs(out, x)
    span = float(expected.max() - expected.min()) + 1e-6
    # Eight-bit layers in a chain: an independent, loose limit that a wrong index or sign breaks by far.
    assert np.abs(found - expected).mean() < 0.06 * span + 0.01


@settings(max_examples=12, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(model=random_nets())
def test_random_nets(model: onnx.ModelProto, tmp_path_factory: pytest.TempPathFactory) -> None:
    check_random(model, tmp_path_factory.mktemp("net"))


@pytest.mark.slow
@settings(max_examples=120, deadline=None, suppress_health_check=list(HealthCheck))
@given(model=random_nets())
def test_many_random_nets(model: onnx.ModelProto, tmp_path_factory: pytest.TempPathFactory) -> None:
    check_random(model, tmp_path_factory.mktemp("net"))


def test_the_manifest_fits_its_schema(tmp_path: Path) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    out, _ = exported_net(conv_net(), tmp_path)
    schema = json.loads((Path(__file__).parents[2] / "docs" / "manifest.schema.json").read_text())
    jsonschema.validate(json.loads((out / "manifest.json").read_text()), schema)


def pooled(shape: tuple[int, int, int]) -> onnx.ModelProto:
    rng = np.random.default_rng(5)
    nodes = [
        node("Conv", "x w b", "a"),
        node("AveragePool", "a", "p", kernel_shape=[2, 2]) if min(shape[1:]) > 1 else node("Relu", "a", "p"),
        node("GlobalAveragePool", "p", "g"),
        node("Flatten", "g", "f"),
        node("Gemm", "f wd bd", "y", transB=1),
    ]
    c = shape[0]
    constants = {"w": weights(rng, c, c, 1, 1), "b": rng.normal(0, 0.2, c), "wd": weights(rng, 3, c)}
    return net(nodes, [1, *shape], {**constants, "bd": rng.normal(0, 0.2, 3)})


@pytest.mark.parametrize("shape", [(1, 4, 4), (1, 1, 5), (3, 1, 1), (2, 1, 4), (1, 1, 1)])
def test_axes_of_length_one(shape: tuple[int, int, int], tmp_path: Path) -> None:
    """Interleaved and planar are the same memory here, and every op must see it so. Found by random nets."""
    check_random(pooled(shape), tmp_path)


def test_a_mean_over_the_last_axis(tmp_path: Path) -> None:
    nodes = [node("ReduceMean", "x", "m", axes=[3], keepdims=0), node("Flatten", "m", "y")]
    check_random(net(nodes, [1, 2, 3, 5]), tmp_path)


def test_int16_layers_are_closer(tmp_path: Path) -> None:
    """N24's kind: a value of a large range that 8 bits are too coarse for."""
    rng = np.random.default_rng(9)
    nodes = [
        node("Conv", "x w0 b0", "a", pads=[1, 1, 1, 1]),
        node("Relu", "a", "ar"),
        node("Conv", "ar w1 b1", "d", group=4, pads=[1, 1, 1, 1]),
        node("Conv", "d w2 b2", "p"),
        node("Add", "p ar", "s"),
        node("Flatten", "s", "f"),
        node("Gemm", "f w3 b3", "y", transB=1),
    ]
    constants = {"w0": weights(rng, 4, 2, 3, 3) * np.array([1, 30, 0.1, 1]).reshape(4, 1, 1, 1), "b0": np.zeros(4)}
    constants |= {"w1": weights(rng, 4, 1, 3, 3), "b1": rng.normal(0, 0.1, 4)}
    constants |= {"w2": weights(rng, 4, 4, 1, 1), "b2": rng.normal(0, 0.1, 4)}
    constants |= {"w3": weights(rng, 3, 4 * 25), "b3": np.zeros(3)}
    model = net(nodes, [1, 2, 5, 5], constants)
    out, x = exported_net(model, tmp_path / "narrow")
    expected = float_truth(model, x)
    narrow = np.abs(real_outputs(out, x) - expected).mean()
    layers = ("ar", "n_d", "p", "s", "y")
    wide_out, _ = exported_net(model, tmp_path / "wide", int16=layers)
    wide = np.abs(real_outputs(wide_out, x) - expected).mean()
    assert wide < narrow
    assert open_folder(wide_out).manifest["outputs"][0]["dtype"] == "int16"
    folder = open_folder(wide_out)
    with build_runner(folder.files, sources_of(folder.files), "net", find_host_compiler()) as program:
        result = run_golden(program, folder.files[folder.golden_path])
    assert result.returncode == 0, result.output
    with pytest.raises(McugenError, match="no convolution, dense layer or sum is called 'nope'"):
        exported_net(model, tmp_path / "none", int16=("nope",))
