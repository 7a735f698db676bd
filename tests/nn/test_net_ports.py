"""Nets with several inputs and outputs: one pointer a port in C, named as in the file; every bit, everywhere."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "frontends"))

from onnx_nets import net, node, runtime
from test_export_nets import weights

import mcugen
from mcugen import exported
from mcugen.core.ports import Port, empty_rows, join_rows, row_layout, split_rows
from mcugen.core.types import Array, DType
from mcugen.emit.parts import place_functions
from mcugen.emit.sources import sources_of
from mcugen.errors import InputError, InternalError, McugenError, UnsupportedError
from mcugen.exported import open_folder
from mcugen.verify.compiler import find_host_compiler
from mcugen.verify.sanitize import build_runner, run_golden

RNG = np.random.default_rng(4)
CONSTANTS = {
    "w": weights(RNG, 4, 3, 3),
    "b": RNG.normal(0, 0.1, 4),
    "v": 2 * weights(RNG, 4, 5),
    "u": 2 * weights(RNG, 3, 8),
}
CONSTANTS |= {"flat": np.array([1, 32], np.int64), "big": weights(RNG, 4, 32), "axes": np.array([2], np.int64)}


def two_and_two() -> onnx.ModelProto:
    """A signal and some numbers in; classes and a value out that later layers read too. Names that C cannot have."""
    nodes = [
        node("Conv", "wave/in w b", "c", pads=[1, 1]),
        node("Relu", "c", "r"),
        node("Reshape", "r flat", "f"),
        node("Gemm", "f big", "g", transB=1),
        node("Gemm", "extra v", "e", transB=1),
        node("Add", "g e", "Feature.Map"),
        node("Concat", "Feature.Map g", "all", axis=1),
        node("Gemm", "all u", "z", transB=1),
        node("Softmax", "z", "double"),
    ]
    return net(nodes, {"wave/in": [1, 3, 8], "extra": [1, 5]}, CONSTANTS, outputs="double Feature.Map")


def many() -> onnx.ModelProto:
    """More pointers than an Arm core passes in registers, one value as two outputs."""
    inputs = {f"x{i}": [1, 2 + i] for i in range(3)}
    nodes = [node("Sigmoid", f"x{i}", f"y{i}") for i in range(3)] + [node("Identity", "y2", "again")]
    return net(nodes, inputs, {}, outputs="y0 y1 y2 again")


NETS = {"two": two_and_two, "many": many}


def samples(model: onnx.ModelProto, count: int, seed: int = 1) -> dict[str, Array]:
    rng = np.random.default_rng(seed)
    shapes = {i.name: [d.dim_value for d in i.type.tensor_type.shape.dim][1:] for i in model.graph.input}
    return {k: rng.normal(0, 1, (count, *s)).astype(np.float32) for k, s in shapes.items()}


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, bool], Path]:
    found = {}
    for kind, make in NETS.items():
        base = tmp_path_factory.mktemp(kind)
        onnx.save(make(), base / "net.onnx")
        np.savez(base / "calib.npz", **samples(make(), 40))
        for float32 in (False, True):
            out = base / f"out{int(float32)}"
            mcugen.export(base / "net.onnx", out, name="net", calib=base / "calib.npz", float32=float32)
            found[kind, float32] = out
    return found


both = pytest.mark.parametrize("float32", [False, True], ids=["int8", "float32"])
kinds = pytest.mark.parametrize("kind", NETS)


def test_names_in_c(folders: dict[tuple[str, bool], Path]) -> None:
    text = (folders["two", False] / "net.h").read_text()
    call = "mcg_status_t net_run(const int8_t *wave_in, const int8_t *extra, int8_t *double_, int8_t *feature_map);"
    assert call in text
    assert "#define NET_WAVE_IN_COUNT 24" in text
    assert "void net_dequantize_feature_map(const int8_t *feature_map, float *real);" in text
    manifest = json.loads((folders["two", False] / "manifest.json").read_text())
    assert [(t["name"], t["value"]) for t in manifest["outputs"]] == [
        ("double_", "double"),
        ("feature_map", "Feature.Map"),
    ]


@kinds
@both
@pytest.mark.parametrize("target", ["host", "stm32h743", "mps2_an500"])
def test_verify(kind: str, float32: bool, target: str, folders: dict[tuple[str, bool], Path]) -> None:
    lines = exported.verify(folders[kind, float32], target=target)
    assert "golden vectors equal, every bit; self-test passes" in lines[0]


@kinds
def test_run_is_close_to_the_file(kind: str, folders: dict[tuple[str, bool], Path], tmp_path: Path) -> None:
    """float32 against onnxruntime: an npz in, by the file's names; an npz out, by C's, in the shapes of the file."""
    model = NETS[kind]()
    data = samples(model, 6, 9)
    np.savez(tmp_path / "x.npz", **data)
    for target in ("host", "stm32h743"):
        exported.run(folders[kind, True], tmp_path / "x.npz", tmp_path / "y.npz", target)
        with np.load(tmp_path / "y.npz") as y:
            names = list(y.files)
            for i in range(6):
                want = runtime(model, {k: v[i : i + 1] for k, v in data.items()})
                for name, expected in zip(names, want, strict=True):
                    np.testing.assert_allclose(y[name][i], expected[0], rtol=1e-5, atol=1e-6)
    assert "rows equal, every bit" in exported.verify(folders[kind, True], tmp_path / "x.npz")[1]
    lines = exported.verify(folders[kind, False], tmp_path / "x.npz")
    assert "x.npz: 6 rows equal" in lines[1]


@both
def test_sanitizers_find_nothing(float32: bool, folders: dict[tuple[str, bool], Path]) -> None:
    export = open_folder(folders["two", float32])
    compiler = find_host_compiler("gcc")
    inputs, outputs = place_functions("net", export.inputs, export.outputs)
    more = {"ports": (2, 2), "places": (*inputs, *outputs)}
    with build_runner(export.files, sources_of(export.files), "net", compiler, **more) as program:
        found = run_golden(program, export.files[export.golden_path])
    assert found.returncode == 0, found.output


def test_a_fault_in_the_second_output_is_found(folders: dict[tuple[str, bool], Path], tmp_path: Path) -> None:
    export = open_folder(folders["two", True])
    golden = export.golden()
    device = [t.data.copy() for t in golden.of_role("output")]
    device[1].reshape(-1)[5] += 1
    (tmp_path / "device.bin").write_bytes(b"".join(d.tobytes() for d in device))
    with pytest.raises(McugenError, match="feature_map: vector 1 element 1"):
        exported.compare(folders["two", True] / export.golden_path, tmp_path / "device.bin")


def test_profile(folders: dict[tuple[str, bool], Path]) -> None:
    assert exported.profile(folders["many", False]).mean > 0


def test_data_of_another_form_is_refused(folders: dict[tuple[str, bool], Path], tmp_path: Path) -> None:
    def refused(match: str, **data: Any) -> None:
        np.savez(tmp_path / "x.npz", **data)
        with pytest.raises(InputError, match=match) as caught:
            exported.run(folders["two", True], tmp_path / "x.npz", tmp_path / "y.npz")
        assert "\n" not in str(caught.value)

    good = samples(two_and_two(), 3)
    refused("has no key extra", **{"wave/in": good["wave/in"]})
    refused("2 and 3 samples", **{"wave/in": good["wave/in"], "extra": good["extra"][:2]})
    refused("extra: samples have the shape", **{"wave/in": good["wave/in"], "extra": good["extra"][:, :4]})
    np.save(tmp_path / "x.npy", good["extra"])
    with pytest.raises(InputError, match="holds one array"):
        exported.run(folders["two", True], tmp_path / "x.npy", tmp_path / "y.npz")


def test_options_for_one_output(tmp_path: Path) -> None:
    onnx.save(two_and_two(), tmp_path / "net.onnx")
    for options in ({"output": "class"}, {"stream": True}):
        with pytest.raises(UnsupportedError, match="2 outputs"):
            mcugen.export(tmp_path / "net.onnx", tmp_path / "out", float32=True, **options)


def test_outputs_in_the_shape_of_the_file(tmp_path: Path) -> None:
    onnx.save(net([node("Relu", "x", "y")], [1, 2, 3, 4], {}), tmp_path / "net.onnx")
    mcugen.export(tmp_path / "net.onnx", tmp_path / "out", float32=True)
    np.save(tmp_path / "x.npy", np.ones((5, 2, 3, 4), np.float32))
    exported.run(tmp_path / "out", tmp_path / "x.npy", tmp_path / "y.npy")
    assert np.load(tmp_path / "y.npy").shape == (5, 2, 3, 4)


def test_rows_are_structs() -> None:
    ports = (Port("a", DType.I8, (3,)), Port("b", DType.F64, (1, 2)), Port("c", DType.I16, (1,)))
    assert row_layout(ports) == ((0, 8, 24), 32)
    arrays = [np.arange(4 * p.count).reshape(4, *p.shape).astype(p.dtype.np) for p in ports]
    rows = join_rows(ports, arrays)
    assert rows.itemsize == 32
    assert all((a == b).all() and b.flags.c_contiguous for a, b in zip(arrays, split_rows(ports, rows), strict=True))
    assert len(empty_rows(ports, 0)) == 0
    with pytest.raises(InternalError):
        join_rows(ports, arrays[:2])
