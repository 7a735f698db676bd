"""Signal chains that end with a net, on features or the window as it is, in int8 and float32, against onnxruntime."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from chains import booster, recording, tables, write_toml
from scipy import signal

import mcugen
from mcugen.errors import InputError, UnsupportedError

sys.path.insert(0, str(Path(__file__).parents[1] / "frontends"))
from onnx_nets import net, node, runtime
from onnx_trees import Split, regressor

CHANNELS = [{"name": "ax", "scale": 0.0005}, {"name": "ay", "scale": -0.001, "offset": 0.25}]


def dense(inputs: int, shape: tuple[int, ...] | None = None) -> onnx.ModelProto:
    """A small net of features."""
    rng = np.random.default_rng(1)
    nodes = [
        node("Flatten", "x", "f"),
        node("Gemm", "f w b", "h", transB=1),
        node("Relu", "h", "r"),
        node("Gemm", "r v c", "y", transB=1),
    ]
    weights = {"w": rng.normal(size=(8, inputs)) / np.sqrt(inputs), "b": rng.normal(size=8)}
    return net(nodes, [1, *(shape or (inputs,))], weights | {"v": rng.normal(size=(3, 8)), "c": rng.normal(size=3)})


def convolution(channels: int, length: int) -> onnx.ModelProto:
    """A small net of (channels, length)."""
    rng = np.random.default_rng(2)
    nodes = [
        node("Conv", "x w b", "h", kernel_shape=[5], strides=[2]),
        node("Relu", "h", "r"),
        node("Flatten", "r", "f"),
        node("Gemm", "f v c", "y", transB=1),
    ]
    steps = (length - 5) // 2 + 1
    weights = {"w": rng.normal(size=(4, channels, 5)), "b": rng.normal(size=4), "c": rng.normal(size=3)}
    return net(nodes, [1, channels, length], weights | {"v": rng.normal(size=(3, 4 * steps)) / np.sqrt(4 * steps)})


def oracle(model: onnx.ModelProto, rows: np.ndarray) -> np.ndarray:
    return np.concatenate([runtime(model, {"x": r[None].astype(np.float32)})[0] for r in rows])


def outputs(out: Path, x: np.ndarray, target: str = "host") -> np.ndarray:
    np.save(out.parent / "x.npy", x)
    y, _ = mcugen.run(out, out.parent / "x.npy", out.parent / "y.npy", target)
    return np.asarray(y)


CASES = [
    ("features", "int16", False),
    ("window", "int16", False),
    ("window", "int32", True),
    pytest.param("features", "int16", True, marks=pytest.mark.slow),
    pytest.param("features", "float32", False, marks=pytest.mark.slow),
    pytest.param("window", "float32", False, marks=pytest.mark.slow),
]


@pytest.mark.parametrize(("reads", "dtype", "single"), CASES)
def test_net_on_a_chain(reads: str, dtype: str, single: bool, tmp_path: Path) -> None:
    """onnxruntime on what ``transform`` gives: float32 to rounding, int8 within what its scales allow."""
    channels = CHANNELS if dtype != "float32" else [{"name": "ax"}, {"name": "ay"}]
    given = tables(signal={"rate": 100.0, "dtype": dtype}, channel=channels)
    if reads == "window":
        given |= {"window": {"length": 24, "step": 9, "layout": "channel_time"}, "feature": []}
    f = mcugen.features.load(given)
    model = dense(len(f.names)) if reads == "features" else convolution(2, 24)
    onnx.save(model, tmp_path / "net.onnx")
    if reads == "window":
        given["window"] = {"length": 24, "step": 9}  # the layout follows from the net's input
    toml = write_toml(tmp_path / "chain.toml", given | {"model": {"file": "net.onnx"}})
    x = recording(500, dtype=dtype)
    np.save(tmp_path / "rec.npy", x)
    result = mcugen.export(toml, tmp_path / "out", calib=tmp_path / "rec.npy", float32=single)
    y = outputs(tmp_path / "out", x)
    wanted = oracle(model, f.transform(x))
    span = np.ptp(wanted)
    q = result.model.types[result.model.outputs[0]].q
    found = y if q is None else (y.astype(float) - q.zero_point) * q.scale
    assert y.dtype == (np.float32 if single else np.int8)
    np.testing.assert_allclose(found, wanted, atol=(2e-5 if single else 0.05) * span)
    if (reads, single) in (("features", False), ("window", True)):
        pytest.importorskip("unicorn")
        board = outputs(tmp_path / "out", x[:90], "stm32h743")
        np.testing.assert_array_equal(board, y[: len(board)])


@pytest.mark.parametrize("single", [True, False])
def test_filters_in_floating_point_give_real_values(single: bool, tmp_path: Path) -> None:
    """Counts with scales, filtered in float32: the net reads what SciPy gives for the real values."""
    given = tables(signal={"rate": 100.0, "arithmetic": "float32"}, feature=None)
    given["window"] = {"length": 24, "step": 9}
    model = convolution(2, 24)
    onnx.save(model, tmp_path / "net.onnx")
    x = recording(400)
    np.save(tmp_path / "rec.npy", x)
    toml = write_toml(tmp_path / "chain.toml", given | {"model": {"file": "net.onnx"}})
    result = mcugen.export(toml, tmp_path / "out", calib=tmp_path / "rec.npy", float32=single)
    y = outputs(tmp_path / "out", x)
    sos = signal.butter(4, 20.0, fs=100.0, output="sos")
    real = np.stack([signal.sosfilt(sos, x[:, 0] * 0.0005), x[:, 1] * -0.001 + 0.25], axis=1)
    wanted = oracle(model, np.stack([real[k : k + 24].T for k in range(0, 400 - 23, 9)]))
    q = result.model.types[result.model.outputs[0]].q
    found = y if q is None else (y.astype(float) - q.zero_point) * q.scale
    np.testing.assert_allclose(found, wanted, atol=(1e-5 if single else 0.05) * np.ptp(wanted))


def test_class_of_a_net(tmp_path: Path) -> None:
    given = tables(model=dense(7))
    np.save(tmp_path / "rec.npy", recording(500))
    result = mcugen.export(given, tmp_path / "out", output="class", calib=tmp_path / "rec.npy")
    y = outputs(result.out, recording(500))
    f = mcugen.features.load({k: v for k, v in given.items() if k != "model"})
    wanted = oracle(given["model"], f.transform(recording(500))).argmax(axis=1)
    assert np.mean(y.ravel() == wanted) > 0.95
    assert any("classes differ" in text for _, text in result.report.facts)


def test_trees_of_an_onnx_file(tmp_path: Path) -> None:
    """A tree ensemble of ai.onnx.ml reads features, also where its values have the names of the chain's."""
    model = regressor([Split("BRANCH_LEQ", 0, 0.1, 1.0, Split("BRANCH_LEQ", 6, 1.5, 2.0, 3.5))], 7)
    model.graph.input[0].name = model.graph.node[0].input[0] = "sample"
    model.graph.output[0].name = model.graph.node[0].output[0] = "v1"
    given = tables(model=model)
    y = outputs(mcugen.export(given, tmp_path / "out", leaf="float64").out, recording())
    f = mcugen.features.load({k: v for k, v in given.items() if k != "model"})
    x = f.transform(recording())
    wanted = np.where(x[:, 0] <= np.float32(0.1), 1.0, np.where(x[:, 6] <= 1.5, 2.0, 3.5))
    assert len(set(wanted)) == 3
    np.testing.assert_array_equal(y.ravel(), wanted)


def fault(given: dict[str, Any], kind: type[Exception] = InputError, **options: Any) -> str:
    with pytest.raises(kind) as e:
        mcugen.export(given, "nowhere", **options)
    return str(e.value)


def test_nets_that_do_not_fit() -> None:
    window = {"window": {"length": 8, "step": 4}, "feature": []}
    assert "takes 5 numbers, the pipeline computes 7 features" in fault(tables(model=dense(5)))
    assert "takes 5 numbers, a window holds 8 samples of 2 channels" in fault(tables(**window, model=dense(5)))
    square = {"window": {"length": 2}, "feature": []}
    hint = 'that may be samples by channels or channels by samples (write layout = "time_channel" or "channel_time"'
    assert hint in fault(tables(**square, model=dense(4, (2, 2))))
    turned = {"window": {"length": 8, "layout": "time_channel"}, "feature": []}
    assert "takes 2 x 8 numbers" in fault(tables(**turned, model=convolution(2, 8)))
    assert "a float net needs data to be quantized (give a recording" in fault(tables(model=dense(7)))
    assert "proba for a net (end the net with a Softmax)" in fault(
        tables(model=dense(7)), UnsupportedError, output="proba"
    )
    two = net([node("Identity", "x", "y"), node("Relu", "x", "z")], [1, 7], outputs="y z")
    assert "has 1 inputs and 2 outputs" in fault(tables(model=two), UnsupportedError)
    trees = booster(np.random.default_rng(0).normal(size=(99, 2)), ("a", "b"))
    assert "trees need features to read (write [[feature]])" in fault(tables(**window, model=trees))


def test_window_flattened(tmp_path: Path) -> None:
    """A net of length * channels numbers takes them instant by instant, or as the layout says."""
    x = recording(60)
    for layout, order in (("auto", (0, 1, 2)), ("channel_time", (0, 2, 1))):
        window = {"length": 6, "step": 3, "layout": layout}
        given = tables(window=window, feature=[], model=dense(12))
        out = mcugen.export(given, tmp_path / layout, float32=True, board=None, verify=False).out
        frames = mcugen.features.load(tables(window={"length": 6, "step": 3}, feature=[])).transform(x)
        wanted = oracle(given["model"], frames.transpose(order).reshape(-1, 12))
        np.testing.assert_allclose(outputs(out, x), wanted, atol=1e-4)
