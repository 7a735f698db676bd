"""Files that are damaged, incomplete or beyond what mcugen translates: one line each, and everything at once."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper
from onnx_nets import feeds_of, kinds, load, net, node, same_as_runtime, values_of

from mcugen.core.types import Model
from mcugen.errors import InputError, McugenError, UnsupportedError
from mcugen.frontends.load import load_source
from mcugen.frontends.onnx import load_onnx
from mcugen.frontends.onnx.ops import FOLDABLE, OPS

W = np.ones((2, 3), np.float32)


def fails(model: onnx.ModelProto, kind: type[McugenError], *parts: str, **options: object) -> str:
    """The message of the error, which must be one line and name the file."""
    with pytest.raises(kind) as found:
        load(model, **options)
    text = str(found.value)
    assert "\n" not in text
    assert text.startswith(("net.onnx", "--shape"))
    for part in parts:
        assert part in text, text
    return text


def good() -> onnx.ModelProto:
    return net([node("Gemm", "x w", "g", transB=1), node("Relu", "g", "y")], (1, 3), {"w": W})


# Bytes.


@pytest.mark.parametrize("data", [b"", b"tree\nversion=v4\n", b"\x00" * 64, b"\x08\x08", b"\xff" * 100])
def test_not_a_model(data: bytes) -> None:
    with pytest.raises(InputError, match="is not an ONNX model"):
        load_onnx(data, "net.onnx", "net")


@given(st.data())
@settings(max_examples=200, deadline=None)
def test_damaged_bytes_never_give_a_traceback(data: st.DataObject) -> None:
    raw = bytearray(good().SerializeToString())
    for _ in range(data.draw(st.integers(1, 4))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(raw)))
    for piece in (bytes(raw), bytes(raw[:cut])):
        try:
            load_onnx(piece, "net.onnx", "net")
        except McugenError as e:
            assert e.exit_code in (2, 3)  # noqa: PT017
            assert "\n" not in str(e)  # noqa: PT017


def test_external_data() -> None:
    model = good()
    t = model.graph.initializer[0]
    t.ClearField("raw_data")
    t.data_location = TensorProto.EXTERNAL
    t.external_data.add(key="location", value="../../etc/passwd")
    fails(model, InputError, "'w'", "in another file", "onnx.load")


def beside(folder: Path, **changes: str) -> Path:
    """A net whose weights are in w.bin beside it; ``changes`` to where the file says that they are."""
    model = net([node("MatMul", "x w", "y")], (1, 3), {"w": np.arange(6).reshape(3, 2) * 1.0})
    options = {"save_as_external_data": True, "location": "w.bin", "size_threshold": 0}
    onnx.save(model, folder / "net.onnx", **options)
    if changes:
        model = onnx.load(folder / "net.onnx", load_external_data=False)
        for entry in model.graph.initializer[0].external_data:
            entry.value = changes.get(entry.key, entry.value)
        (folder / "net.onnx").write_bytes(model.SerializeToString())
    return folder / "net.onnx"


def test_weights_in_a_file_beside_the_model(tmp_path: Path) -> None:
    """As torch saves nets by default."""
    model = load_source(beside(tmp_path), "net")
    assert isinstance(model, Model)
    assert values_of(model, {"x": np.float32([[1, 10, 100]])})[0].tolist() == [420.0, 531.0]


@pytest.mark.parametrize("place", ["../w.bin", "/etc/passwd", "", "sub/../../w.bin"])
def test_weights_outside_of_the_folder_are_not_read(tmp_path: Path, place: str) -> None:
    (tmp_path / "inner").mkdir()
    path = beside(tmp_path / "inner", location=place)
    (tmp_path / "w.bin").write_bytes(bytes(24))
    with pytest.raises(InputError, match="outside of the folder"):
        load_source(path, "net")


def test_links_out_of_the_folder_are_not_followed(tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    path = beside(tmp_path / "inner")
    (tmp_path / "inner" / "w.bin").rename(tmp_path / "w.bin")
    (tmp_path / "inner" / "w.bin").symlink_to(tmp_path / "w.bin")
    with pytest.raises(InputError, match="outside of the folder"):
        load_source(path, "net")


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"location": "gone.bin"}, "'gone.bin', which cannot be read"),
        ({"length": "20"}, "24 bytes at 0"),
        ({"offset": "8"}, "24 bytes at 8 of 'w.bin', which has 24"),
        ({"offset": "-4"}, "24 bytes at -4"),
        ({"offset": "far"}, "is not a number"),
    ],
)
def test_files_that_do_not_belong_together(tmp_path: Path, changes: dict[str, str], reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        load_source(beside(tmp_path, **changes), "net")


def test_sizes_that_lie() -> None:
    model = good()
    model.graph.initializer[0].dims[0] = 1 << 40
    fails(model, InputError, "'w'", "damaged")
    model.graph.initializer[0].dims[0] = -2
    fails(model, InputError, "'w'", "dimensions")


@pytest.mark.parametrize(("opset", "kind"), [(6, UnsupportedError), (24, UnsupportedError), (7, None), (23, None)])
def test_opsets(opset: int, kind: type[McugenError] | None) -> None:
    model = net([node("Relu", "x", "y")], (1, 3), opset=opset)
    if kind:
        fails(model, kind, f"opset {opset}", "7 to 23", "convert_version")
    else:
        load(model)


def test_functions_and_sparse_weights() -> None:
    model = good()
    model.functions.add(name="f", domain="d")
    fails(model, UnsupportedError, "functions", "inline")
    model = good()
    model.graph.sparse_initializer.add()
    fails(model, UnsupportedError, "sparse")


# The graph.


def test_cycle() -> None:
    fails(net([node("Add", "x b", "a"), node("Relu", "a", "b"), node("Relu", "b", "y")], (1, 3)), InputError, "cycle")


def test_undefined_value() -> None:
    fails(net([node("Relu", "nowhere", "y")], (1, 3)), InputError, "'nowhere'", "nothing writes it", "n_y")
    fails(net([node("Relu", "x", "z")], (1, 3)), InputError, "'y'", "outputs")


def test_written_twice() -> None:
    fails(net([node("Relu", "x", "y"), node("Tanh", "x", "y")], (1, 3)), InputError, "'y'", "written before")
    fails(net([node("Relu", "x", "x")], (1, 3), outputs="x"), InputError, "'x'", "written before")


def test_any_order_of_nodes_and_unused_nodes() -> None:
    nodes = [node("Tanh", "b", "y"), node("Relu", "x", "b"), node("NoSuchOp", "x", "unused")]
    loaded = load(net(nodes, (1, 3)))
    assert [op.loc.item for op in loaded.ops] == ["Relu n_b", "Tanh n_y"]


def test_output_that_is_an_input_or_a_constant() -> None:
    fails(net([], (1, 3), outputs="x"), UnsupportedError, "output 'x': is an input")
    fails(net([], (1, 3), {"k": W}, outputs="k"), UnsupportedError, "does not depend on an input")


def test_initializer_that_is_an_input_too() -> None:
    model = good()
    model.graph.input.append(helper.make_tensor_value_info("w", TensorProto.FLOAT, [2, 3]))
    assert load(model).inputs == ("x",)


# Shapes of inputs.


def test_dynamic_axes_need_a_shape() -> None:
    model = net([node("Relu", "x", "y")], ("N", 3, "height", None))
    fails(model, InputError, "axis 2 (height), axis 3 of input 'x' are dynamic", "--shape x=1,3,96,96")
    loaded = same_as_runtime(model, feeds_of(model, shapes={"x": (1, 3, 5, 6)}), shapes={"x": (1, 3, 5, 6)})
    assert loaded.types["x"].shape == (3, 5, 6)


@pytest.mark.parametrize("shape", [(1, 4, 5, 6), (1, 3, 5), (1, 3, 0, 6), (1, 3, -1, 6)])
def test_shapes_that_do_not_fit(shape: tuple[int, ...]) -> None:
    fails(net([node("Relu", "x", "y")], ("N", 3, "h", "w")), InputError, "does not fit", "N,3,h,w", shapes={"x": shape})


def test_shape_of_an_unknown_input() -> None:
    fails(good(), InputError, "no input 'image'", "inputs: x", shapes={"image": (1, 3)})
    named = net([node("Relu", "image", "y")], {"image": (1, 3)})
    fails(named, InputError, "no input 'images'", "did you mean image?", shapes={"images": (1, 3)})


def test_no_shape_at_all() -> None:
    model = good()
    model.graph.input[0].type.tensor_type.ClearField("shape")
    fails(model, InputError, "has no shape", "--shape x=")
    assert load(model, shapes={"x": (1, 3)}).types["x"].shape == (3,)


def test_batches() -> None:
    model = net([node("Conv", "x k", "y")], (8, 3, 5, 5), {"k": np.ones((2, 3, 3, 3))})
    fails(model, UnsupportedError, "a batch of 8", "batch 1")
    fails(net([node("Relu", "x", "y")], ("N", 3)), UnsupportedError, "a batch of 4", shapes={"x": (4, 3)})


@pytest.mark.parametrize("dtype", [TensorProto.INT8, TensorProto.BOOL, TensorProto.INT64])
def test_input_types(dtype: int) -> None:
    name = TensorProto.DataType.Name(dtype)
    fails(net([node("Relu", "x", "y")], (1, 3), dtype=dtype), UnsupportedError, f"input 'x': is {name}", "float32")


@pytest.mark.parametrize("dtype", [TensorProto.DOUBLE, TensorProto.FLOAT16, TensorProto.BFLOAT16])
def test_other_floats_are_computed_in_float32(dtype: int) -> None:
    """Weights are converted, Casts between floats do nothing, and a note says so."""
    half = np.float16([[0.5, -2.0], [1.0, 0.25]])
    nodes = [node("Cast", "x", "h", to=dtype), node("MatMul", "h k", "m"), node("Cast", "m", "y", to=TensorProto.FLOAT)]
    model = load(net(nodes, (1, 2), {"k": half}, dtype=dtype))
    assert kinds(model)[0] == "Dense"
    assert any("computed in float32" in note for note in model.notes)
    assert values_of(model, {"x": np.float32([[2, 4]])})[0].tolist() == [5.0, -3.0]


# What is not supported, all at once.


def test_everything_is_reported_at_once() -> None:
    nodes = [
        node("Conv", "x k", "a", pads=[1, 1, 1, 1]),
        node("LpNormalization", "a", "b"),
        node("LpPool", "b", "c", kernel_shape=[1, 1]),
        node("Conv", "c x", "d"),
        node("Resize", "d - t", "e", mode="cubic"),
        node("GlobalAveragePool", "e", "f"),
        node("Normalizer", "f", "y", "ai.onnx.ml", norm="L2"),
    ]
    k, t = np.ones((4, 3, 3, 3), np.float32), np.ones(4, np.float32)
    text = fails(
        net(nodes, (1, 3, 8, 8), {"k": k, "t": t}, 18),
        UnsupportedError,
        "5 things are not supported",
        "node 'n_b' (LpNormalization): op",
        "node 'n_c' (LpPool): op LpPool is not supported -> replace it",
        "node 'n_d' (Conv): the weights must be constant",
        "node 'n_e' (Resize): resizes with mode cubic",
        "node 'n_y' (ai.onnx.ml.Normalizer): divides a row",
    )
    assert text.count("; ") == 4
    assert text.count(" -> ") == 5


def test_what_follows_an_unknown_shape_is_quiet() -> None:
    nodes = [
        node("Strange", "x", "a", "my.domain"),
        node("Conv", "a k", "b"),
        node("RNN", "x", "c"),
        node("Add", "b c", "y"),
    ]
    text = fails(
        net(nodes, (1, 3, 8, 8), {"k": np.ones((4, 3, 3, 3))}), UnsupportedError, "Strange of domain 'my.domain'"
    )
    assert "n_b" not in text
    assert "plain RNN" in text


def test_many_faults_are_cut() -> None:
    nodes = [node("LpPool", "x" if k == 0 else f"v{k - 1}", "y" if k == 59 else f"v{k}") for k in range(60)]
    fails(net(nodes, (1, 3), opset=18), UnsupportedError, "60 things", "and 20 more")


UNSUPPORTED = [
    (node("RNN", "x w r", "y", hidden_size=2), {}, (5, 1, 3), "plain RNN"),
    (node("LSTM", "x w r", "y", hidden_size=1, clip=1.0), {}, (5, 1, 3), "clip"),
    (node("LSTM", "x w r", "y", hidden_size=1, activations=["Relu", "Tanh", "Tanh"]), {}, (5, 1, 3), "activations"),
    (node("LSTM", "x w r - - - - p", "y", hidden_size=1), {"p": np.ones((1, 3))}, (5, 1, 3), "peepholes"),
    (node("LSTM", "x w r", "y", hidden_size=1), {}, (5, 2, 3), "batch of 2"),
    (node("LSTM", "x w r - - x", "y", hidden_size=1), {}, (5, 1, 3), "first state"),
    (node("MatMul", "x x", "y"), {}, (3, 3), "multiplies two activations"),
    (node("MaxPool", "x", "v y", kernel_shape=[2]), {}, (1, 3, 8), "output 1"),
    (node("MaxPool", "x", "y", kernel_shape=[2, 2, 2]), {}, (1, 3, 8, 8, 8), "axes"),
    (node("Gather", "x i", "y", axis=1), {"i": np.arange(300) ** 2 % 499}, (1, 499), "runs"),
    (node("Cast", "x", "y", to=TensorProto.INT32), {}, (1, 3), "integers"),
    (node("Cast", "x", "y", to=TensorProto.INT8), {}, (1, 3), "integers"),
    (node("BatchNormalization", "x s s s s", "y", training_mode=1), {"s": np.ones(3)}, (1, 3), "training"),
    (node("PRelu", "x s", "y"), {"s": np.ones((2, 3))}, (1, 2, 3), "slope"),
    (node("Relu", "x", "y", strange=1), {}, (1, 3), "'strange'"),
    (node("If", "x", "y"), {}, (1, 3), "subgraphs"),
    (node("SVMRegressor", "x", "y", "ai.onnx.ml"), {}, (1, 3), "SVMRegressor of domain 'ai.onnx.ml'"),
    (node("Add", "x k", "y"), {"k": np.ones((1, 4, 3))}, (1, 1, 3), "repeats the activation"),
    (node("Conv", "x k", "y", pads=[0, -1]), {"k": np.ones((1, 3, 2))}, (1, 3, 8), "negative pads"),
    (node("ReduceLogSum", "x", "y"), {}, (1, 1, 3), "ReduceLogSum"),
]


@pytest.mark.parametrize(("made", "constants", "x", "reason"), UNSUPPORTED)
def test_unsupported(made: onnx.NodeProto, constants: dict[str, np.ndarray], x: tuple[int, ...], reason: str) -> None:
    rnn = {"w": np.ones((1, 4, 3), np.float32), "r": np.ones((1, 4, 1), np.float32)}
    fails(net([made], x, {**(rnn if "w" in made.input else {}), **constants}), UnsupportedError, "'n_", reason)


WRONG = [
    (node("Conv", "x k", "y"), {"k": np.ones((2, 4, 3))}, (1, 3, 8), "3 channels"),
    (node("Conv", "x k", "y"), {"k": np.ones((2, 3, 9))}, (1, 3, 8), "larger than the padded input"),
    (node("Conv", "x k", "y", strides=[0]), {"k": np.ones((2, 3, 3))}, (1, 3, 8), "below 1"),
    (node("Conv", "x k", "y", auto_pad="NEARLY"), {"k": np.ones((2, 3, 3))}, (1, 3, 8), "auto_pad"),
    (node("Conv", "x k", "y", kernel_shape=[2]), {"k": np.ones((2, 3, 3))}, (1, 3, 8), "kernel_shape"),
    (node("Conv", "x k", "y", group="two"), {"k": np.ones((2, 3, 3))}, (1, 3, 8), "group"),
    (node("Conv", "x k b", "y"), {"k": np.ones((2, 3, 3)), "b": np.ones(3)}, (1, 3, 8), "bias"),
    (node("Gemm", "x k", "y"), {"k": np.ones((4, 3))}, (1, 3), "3 values"),
    (node("Gemm", "x k", "y"), {"k": np.full((3, 3), np.nan)}, (1, 3), "NaN"),
    (node("Gemm", "x", "y"), {}, (1, 3), "operands"),
    (
        node("LSTM", "x w r", "y", direction="around"),
        {"w": np.ones((1, 4, 3)), "r": np.ones((1, 4, 1))},
        (5, 1, 3),
        "around",
    ),
    (node("Pad", "x p", "y", mode="reflect"), {"p": np.array([0, 3, 0, 0])}, (1, 3), "reflects 3 of 3"),
    (node("Reshape", "x s", "y"), {"s": np.array([2, 2])}, (1, 3), "as [2, 2]"),
    (node("Transpose", "x", "y", perm=[0, 0]), {}, (1, 3), "permutation"),
    (node("Softmax", "x", "y", axis=5), {}, (1, 3), "axis 5"),
    (node("Add", "x k", "y"), {"k": np.ones(4)}, (1, 3), "shapes"),
    (node("Concat", "x x", "y"), {}, (3,), "axis 1"),
    (node("Div", "x k", "y"), {"k": np.zeros(3)}, (1, 3), "by zero"),
    (node("Clip", "x k j", "y"), {"k": np.float32(2), "j": np.float32(1)}, (1, 3), "clips from 2"),
    (node("Squeeze", "x a", "y"), {"a": np.array([1])}, (1, 3), "squeezes"),
    (node("Gather", "x i", "y", axis=1), {"i": np.array(7)}, (1, 3), "outside"),
    (node("Split", "x s", "y z", axis=1), {"s": np.array([1, 1])}, (1, 3), "splits 3"),
    (node("Pad", "x p", "y"), {"p": np.array([1, 1])}, (1, 3), "pads"),
    (node("MaxPool", "x", "y"), {}, (1, 3, 8), "kernel_shape"),
    (node("BatchNormalization", "x s s s v", "y"), {"s": np.ones(3), "v": -np.ones(3)}, (1, 3), "variance"),
]


@pytest.mark.parametrize(("made", "constants", "x", "reason"), WRONG)
def test_wrong(made: onnx.NodeProto, constants: dict[str, np.ndarray], x: tuple[int, ...], reason: str) -> None:
    fails(net([made], x, constants), InputError, "n_y", reason)


def test_huge_constants_are_not_made() -> None:
    nodes = [node("ConstantOfShape", "s", "k"), node("Add", "x k", "y")]
    fails(net(nodes, (1, 3), {"s": np.array([1 << 20, 1 << 20])}), UnsupportedError, "elements")
    nodes = [node("Range", "a b c", "k"), node("Add", "x k", "y")]
    numbers = {"a": np.float32(0), "b": np.float32(1e15), "c": np.float32(1)}
    fails(net(nodes, (1, 3), numbers), UnsupportedError, "elements")


def test_names_from_the_file_stay_on_one_line() -> None:
    made = helper.make_node("LpPool", ["x"], ["y"], name="evil\nname\x1b[2J" + "n" * 500)
    assert len(fails(net([made], (1, 3), opset=18), UnsupportedError, "evil\\nname\\x1b[2J")) < 300


def test_every_row_names_real_ops_and_attributes() -> None:
    for (domain, op), row in OPS.items():
        if domain == "com.microsoft":
            continue
        assert onnx.defs.has(op, domain), op
        known: set[str] = set()
        for schema in onnx.defs.get_all_schemas_with_history():
            if (schema.name, schema.domain) == (op, domain):
                known |= set(schema.attributes)
        assert row.attributes <= known | {"*"}, op
    assert all(onnx.defs.has(op) for op in FOLDABLE)


def test_the_table_lets_every_attribute_of_supported_ops_through() -> None:
    """An attribute that an opset has and the row lacks would refuse good files."""
    skip = {"consumed_inputs", "broadcast", "axis", "output_sequence", "linear_before_reset", "is_test"}
    for schema in onnx.defs.get_all_schemas_with_history():
        row = OPS.get((schema.domain, schema.name))
        if row is None or "*" in row.attributes or schema.domain or not 7 <= schema.since_version <= 23:
            continue
        stray = set(schema.attributes) - row.attributes - skip
        assert not stray, (schema.name, schema.since_version, stray)


def test_a_dynamic_batch_axis_is_said() -> None:
    loaded = load(net([node("Relu", "x", "y")], ("steps", 1, 3)))
    assert loaded.notes == ("input 'x': axis 0 (steps) is taken for the batch, and is 1",)
    assert load(good()).notes == ()


def test_faults_behind_a_stand_in_do_not_hide_the_first() -> None:
    nodes = [node("LpPool", "x", "a", kernel_shape=[1]), node("Conv", "a k", "y")]
    text = fails(net(nodes, (1, 3, 8), {"k": np.ones((2, 4, 3))}, 18), UnsupportedError, "op LpPool", "1 thing is")
    assert "channels" not in text


def test_small_files_make_no_large_products() -> None:
    constants = {"a": np.ones((1 << 14, 1)), "b": np.ones((1, 1 << 14))}
    for op in ("MatMul", "Add"):
        nodes = [node(op, "a b", "k"), node("Add", "x k", "y")]
        fails(net(nodes, (1, 3), constants), UnsupportedError, "a constant of 268435456 elements")
