"""Tree ensembles of ai.onnx.ml: the same leaves and sums as in onnxruntime, at every threshold and one step beside it.

Leaves hold whole numbers below 2**24, so that float32 sums in any order are exact and equal scores mean equal leaves.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx_trees as ot
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper
from onnx_trees import MODES, Split, around, classifier, ensemble, graph, load, regressor, runtime, scores

import mcugen
from mcugen.core.types import Array
from mcugen.errors import InputError, McugenError, UnsupportedError
from mcugen.frontends.onnx.ml_trees import ATTRIBUTES
from mcugen.trees.source import Average, Link

MAX, TINY = float(np.finfo(np.float32).max), 1.401298464324817e-45
SPECIAL = [0.0, -0.0, 1.0, 2.0, 3.0, 0.5, -1.5, TINY, -TINY, MAX, -MAX, np.inf, -np.inf, np.nan, 2.0**24, 33.0, 0.1]


def agrees(model: onnx.ModelProto, x: Array) -> None:
    """The scores are onnxruntime's, bit for bit."""
    found, want = scores(load(model), x), runtime(model, x)[-1]
    wrong = np.flatnonzero((found != want).any(axis=1))
    assert not wrong.size, (x[wrong[0]], found[wrong[0]], want[wrong[0]])


def leaf(*weights: float) -> dict[int, float]:
    return dict(enumerate(weights))


# Modes.


@pytest.mark.parametrize("nan_yes", [False, True])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("value", SPECIAL, ids=str)
def test_one_node(mode: str, value: float, nan_yes: bool) -> None:
    x = around([v for v in SPECIAL if not np.isnan(v)])[:, None]
    agrees(regressor([Split(mode, 0, value, 1.0, 2.0, nan_yes)], 1), x)


def trees(data: st.DataObject, features: int, count: int, modes: tuple[str, ...]) -> list[Any]:
    leaf = 0

    def grow(depth: int) -> Any:
        nonlocal leaf
        if depth == 0 or data.draw(st.integers(0, 4)) == 0:
            leaf += 1
            return float(leaf)
        value = data.draw(st.sampled_from(SPECIAL) | st.floats(-4, 4, width=32))
        mode, feature = data.draw(st.sampled_from(modes)), data.draw(st.integers(0, features - 1))
        return Split(mode, feature, value, grow(depth - 1), grow(depth - 1), data.draw(st.booleans()))

    return [grow(data.draw(st.integers(0, 4))) for _ in range(count)]


def thresholds(found: list[Any]) -> list[float]:
    return [s.value for root in found for s in ot._splits(root) if not np.isnan(s.value)]


def rows(values: Array, features: int, count: int = 400) -> Array:
    return np.random.default_rng(1).choice(values, (count, features)).astype(np.float32)


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_random_ensembles(data: st.DataObject) -> None:
    modes = data.draw(st.sampled_from([MODES, *[(m,) for m in MODES]]))
    features, count = data.draw(st.integers(1, 3)), data.draw(st.integers(1, 4))
    found = trees(data, features, count, modes)
    agrees(regressor(found, features), rows(around(thresholds(found)), features))


@given(st.data())
@settings(max_examples=30, deadline=None)
def test_random_ensembles_of_version_5(data: st.DataObject) -> None:
    double = data.draw(st.booleans())
    found = trees(data, 2, data.draw(st.integers(1, 3)), MODES)
    x = rows(around(thresholds(found)), 2)
    agrees(ensemble(found, 2, double), x.astype(np.float64) if double else x)


def test_members() -> None:
    inner = Split("BRANCH_MEMBER", 0, (0.0, 7.0, 100.0), 1.0, Split("BRANCH_LEQ", 0, 3.0, 2.0, 3.0))
    x = np.concatenate([np.arange(-2, 110), [6.5, np.nan, np.inf, -np.inf, -0.0]]).astype(np.float32)[:, None]
    agrees(ensemble([inner], 1), x)
    with pytest.raises(UnsupportedError, match="whole numbers"):
        load(ensemble([Split("BRANCH_MEMBER", 0, (0.5,), 1.0, 2.0)], 1))


def test_a_chain_of_equal_results_is_one_set() -> None:
    # As onnxmltools writes LightGBM's categorical nodes: the result has several parents.
    model = regressor([Split("BRANCH_EQ", 0, 3.0, 1.0, Split("BRANCH_EQ", 0, 5.0, 9.0, 2.0))], 1)
    (made,) = model.graph.node
    attributes = {a.name: a for a in made.attribute}
    yes = attributes["nodes_truenodeids"].ints
    yes[2] = yes[0]
    x = np.array([[2.0], [3.0], [4.0], [5.0], [5.5], [np.nan]], np.float32)
    agrees(model, x)
    loaded = load(model)
    assert loaded.ops[0].forest.n_nodes == 1
    assert loaded.ops[0].forest.set_member.tolist() == [3, 5]


def test_equality_with_fractions_has_a_limit() -> None:
    node: Any = 0.0
    for k in range(40):
        node = Split("BRANCH_EQ", 0, k + 0.5, float(k), node)
    with pytest.raises(UnsupportedError, match="eight times as large"):
        load(regressor([node], 1))


# Types of the input.


def test_doubles() -> None:
    third = 1.0 / 3.0  # no float32
    tree = Split("BRANCH_LT", 0, third, 1.0, Split("BRANCH_GTE", 0, 2.0, 2.0, 3.0))
    x = np.array([np.nextafter(third, 0), third, np.nextafter(third, 1), 2.0, np.nextafter(2.0, 0), np.nan])[:, None]
    agrees(ensemble([tree], 1, double=True), x)
    spread = np.array([np.float32(third), np.nextafter(np.float32(third), np.float32(0))], np.float64)[:, None]
    agrees(ensemble([tree], 1, double=True), spread)
    (note,) = load(ensemble([tree], 1, double=True)).notes
    assert "--input-dtype float64" in note


def test_doubles_passed_to_a_float32_model_are_cast() -> None:
    model = regressor([Split("BRANCH_LEQ", 0, 0.1, 1.0, 2.0), Split("BRANCH_LT", 0, 0.3, 4.0, 8.0)], 1)
    x = np.concatenate([np.linspace(t - 1e-8, t + 1e-8, 41) for t in (0.1, 0.3)])[:, None]
    want = runtime(model, x.astype(np.float32))[0]
    assert (scores(load(model), x) == want).all()


@pytest.mark.parametrize("cast", [False, True])
def test_integers(cast: bool) -> None:
    """A classifier takes integers; either way they are compared as float32."""
    split = Split(
        "BRANCH_LEQ", 0, 2.5, leaf(1.0, 0.0, 0.0), Split("BRANCH_GT", 0, 2.0**24, leaf(0, 2, 0), leaf(0, 0, 3))
    )
    nodes = list(classifier([split], 1, [0, 1, 2]).graph.node)
    if cast:
        nodes[0].input[0] = "c"
        nodes.insert(0, helper.make_node("Cast", ["x"], ["c"], "cast", to=TensorProto.FLOAT))
    model = graph(nodes, 1, "label y", dtype=TensorProto.INT64)
    agrees(model, np.array([[2], [3], [-5], [2**24], [2**24 + 1], [2**24 + 3], [2**24 + 2]], np.int64))


# Sums.


@pytest.mark.parametrize("aggregate", ["SUM", "AVERAGE"])
@pytest.mark.parametrize("base", [[], [1.5, -2.0]], ids=["plain", "base"])
def test_several_targets(aggregate: str, base: list[float]) -> None:
    found = [Split("BRANCH_LEQ", 0, float(k), leaf(1.0, 2.0 * k), leaf(3.0, -4.0)) for k in range(4)]
    more = {"base_values": base} if base else {}
    model = regressor(found, 1, 2, aggregate_function=aggregate, **more)
    agrees(model, around([0.0, 1.0, 2.0, 3.0])[:, None])
    assert (aggregate == "AVERAGE") == any(isinstance(op, Average) for op in load(model).ops)


def test_trees_that_take_turns_have_one_value_a_leaf() -> None:
    # Not in turn in the file: two trees of target 1, then two of target 0.
    found = [Split("BRANCH_LEQ", 0, float(k), {t: 1.0 + k}, {t: 10.0 * k}) for k, t in enumerate([1, 1, 0, 0])]
    model = regressor(found, 1, 2)
    agrees(model, around([0.0, 1.0, 2.0, 3.0])[:, None])
    assert load(model).ops[0].forest.values_per_leaf == 1
    uneven = regressor(found[:3], 1, 2)
    agrees(uneven, around([0.0, 1.0, 2.0, 3.0])[:, None])
    assert load(uneven).ops[0].forest.values_per_leaf == 2


def test_a_target_named_twice_in_a_leaf() -> None:
    model = one()
    for a in model.graph.node[0].attribute:
        if a.name.startswith("target_"):
            (a.floats if a.name == "target_weights" else a.ints).append(a.floats[0] if a.floats else a.ints[0])
    with pytest.raises(UnsupportedError, match="two weights for one output"):
        load(model)


def test_what_float32_sums_may_be_off_is_told() -> None:
    rng = np.random.default_rng(3)
    found = [Split("BRANCH_LEQ", 0, float(rng.normal()), *rng.normal(size=2).tolist()) for _ in range(200)]
    model = regressor(found, 1)
    x = rng.normal(size=(300, 1)).astype(np.float32)
    loaded = load(model)
    (note,) = [n for n in loaded.notes if "float32" in n]
    limit = float(note.rsplit(" ", 1)[1])
    gap = np.abs(scores(loaded, x) - runtime(model, x)[0]).max()
    assert 0 < gap <= limit < 1e-2


# Classifiers.

THREE = [Split("BRANCH_LEQ", 0, float(k), leaf(1.0 + k, -2.0, 0.5), leaf(0.25, 1.5, -1.0 * k)) for k in range(3)]
X = around([0.0, 1.0, 2.0])[:, None]


def label_index(model: mcugen.core.types.Model, x: Array) -> Array:
    s = scores(model, x)
    return (s[:, 0] > model.class_above).astype(int) if s.shape[1] == 1 else s.argmax(axis=1)


@pytest.mark.parametrize("post", ["NONE", "LOGISTIC", "SOFTMAX"])
@pytest.mark.parametrize("base", [[], [0.5, -0.25, 1.0]], ids=["plain", "base"])
def test_three_classes(post: str, base: list[float]) -> None:
    model = classifier(THREE, 1, ["a", "b c", "ü"], post_transform=post, **({"base_values": base} if base else {}))
    label, want = runtime(model, X)
    loaded = load(model)
    np.testing.assert_allclose(ot.prediction(loaded, X), want, rtol=0, atol=1e-6)
    assert loaded.labels == ("a", "b c", "ü")
    assert [loaded.labels[i] for i in label_index(loaded, X)] == label.tolist()


@pytest.mark.parametrize("post", ["NONE", "LOGISTIC"])
@pytest.mark.parametrize("weights", [(0.25, 0.5, 0.75), (-0.25, 0.5, 0.0)], ids=["positive", "mixed"])
@pytest.mark.parametrize(("class_id", "base"), [(0, []), (0, [0.25]), (0, [-0.5]), (1, [])])
def test_two_classes_with_one_weight(post: str, weights: tuple[float, ...], class_id: int, base: list[float]) -> None:
    a, b, c = ({class_id: w} for w in weights)
    found = [Split("BRANCH_LEQ", 0, 0.0, a, Split("BRANCH_LEQ", 0, 1.0, b, c))]
    model = classifier(found, 1, [7, 9], post_transform=post, **({"base_values": base} if base else {}))
    label, want = runtime(model, X)
    loaded = load(model)
    np.testing.assert_allclose(ot.prediction(loaded, X)[:, 0], want[:, 1], rtol=0, atol=1e-6)
    assert [int(loaded.labels[i]) for i in label_index(loaded, X)] == label.tolist()


@pytest.mark.parametrize("post", ["NONE", "LOGISTIC", "SOFTMAX"])
def test_two_classes_with_two_weights(post: str) -> None:
    model = classifier([Split("BRANCH_LEQ", 0, 0.0, leaf(0.7, 0.3), leaf(0.2, 0.8))], 1, [0, 1], post_transform=post)
    loaded = load(model)
    np.testing.assert_allclose(ot.prediction(loaded, X), runtime(model, X)[1], rtol=0, atol=1e-6)
    assert any("larger score" in n for n in loaded.notes)  # onnxruntime's label is something else here


@pytest.mark.parametrize("post", ["PROBIT", "SOFTMAX_ZERO"])
def test_transforms_that_are_not_computed(post: str, tmp_path: Path) -> None:
    model = classifier(THREE, 1, [0, 1, 2], post_transform=post)
    loaded = load(model)
    assert not any(isinstance(op, Link) for op in loaded.ops)
    assert any(post in n for n in loaded.notes)
    with pytest.raises(UnsupportedError, match="--output raw or class"):
        mcugen.export(model, tmp_path / "m", name="m", output="proba", verify=False)
    label = runtime(model, X)[0]
    assert label_index(loaded, X).tolist() == label.tolist()


# What is refused, and what is broken.


def one(**more: Any) -> onnx.ModelProto:
    return regressor([Split("BRANCH_LEQ", 0, 0.0, 1.0, 2.0)], 1, **more)


def two(**more: Any) -> onnx.ModelProto:
    return classifier([Split("BRANCH_LEQ", 0, 0.0, leaf(1.0, 2.0), leaf(2.0, 1.0))], 1, [0, 1], **more)


@pytest.mark.parametrize(
    ("model", "kind", "reason"),
    [
        (one(aggregate_function="MIN"), UnsupportedError, "aggregate_function MIN"),
        (one(base_values=[1.0, 2.0]), InputError, "2 base_values for 1 targets"),
        (one(strange=1), UnsupportedError, "'strange'"),
        (regressor([Split("BRANCH_XOR", 0, 0.0, 1.0, 2.0)], 1), UnsupportedError, "BRANCH_XOR"),
        (regressor([Split("BRANCH_LEQ", 5, 0.0, 1.0, 2.0)], 1), InputError, "feature 5"),
        (regressor([Split("BRANCH_LEQ", 0, 0.0, 1.0, np.inf)], 1), InputError, "not finite"),
        (regressor([Split("BRANCH_LEQ", 0, 0.0, {3: 1.0}, 2.0)], 1), InputError, "output 3"),
        (regressor([{0: 1.0, 1: 1.0}, {0: 1.0}], 1, 2, base_values=[0.0, 1.0]), None, ""),
        (
            regressor([Split("BRANCH_LEQ", 0, 0.0, {0: 1.0}, {1: 1.0})], 1, 2, base_values=[0.0, 1.0]),
            UnsupportedError,
            "base",
        ),
        (two(base_values=[1.0, 2.0]), UnsupportedError, "base_values of two classes"),
        (classifier([1.0], 1, [4]), UnsupportedError, "1 classes"),
        (classifier([Split("BRANCH_LEQ", 0, 0.0, {0: 1.0}, {1: 1.0})], 1, [0, 1]), UnsupportedError, "one of two"),
        (graph(one().graph.node, 1, dtype=TensorProto.STRING), UnsupportedError, "is STRING"),
        (graph([], 1, "x"), UnsupportedError, "is an input"),
    ],
)
def test_refused(model: onnx.ModelProto, kind: type[McugenError] | None, reason: str) -> None:
    if kind is None:
        load(model)
        return
    with pytest.raises(kind) as found:
        load(model)
    assert reason in str(found.value)
    assert "\n" not in str(found.value)


def test_everything_at_once() -> None:
    tree = one().graph.node[0]
    nodes = [
        helper.make_node("Normalizer", ["x"], ["n"], "norm", domain=ot.ML, norm="L2"),
        helper.make_node("Tanh", ["x"], ["t"], "tanh"),
        tree,
        helper.make_node("Sin", ["y"], ["z"], "sine"),
        helper.make_node("Add", ["n", "t"], ["s"], "sum"),
    ]
    with pytest.raises(UnsupportedError) as found:
        load(graph(nodes, 1, "z s"))
    text = str(found.value)
    for part in ("3 things", "'norm' (ai.onnx.ml.Normalizer): divides a row", "'tanh' (Tanh)", "'sine' (Sin)"):
        assert part in text
    assert "'sum'" not in text


@given(st.data())
@settings(max_examples=150, deadline=None)
def test_damaged_attributes_never_give_a_traceback(data: st.DataObject) -> None:
    model = onnx.ModelProto()
    model.CopyFrom(data.draw(st.sampled_from([one(), two(), ensemble([Split("BRANCH_LEQ", 0, 0.0, 1.0, 2.0)], 1)])))
    attribute = data.draw(st.sampled_from(list(model.graph.node[0].attribute)))
    for field in (attribute.ints, attribute.floats, attribute.strings):
        if field and data.draw(st.booleans()):
            del field[data.draw(st.integers(0, len(field) - 1))]
        elif field and field is attribute.ints:
            field[data.draw(st.integers(0, len(field) - 1))] = data.draw(st.integers(-3, 5))
    if attribute.type == onnx.AttributeProto.INT:
        attribute.i = data.draw(st.integers(-2, 9))
    if attribute.type == onnx.AttributeProto.TENSOR and data.draw(st.booleans()):
        attribute.t.dims[0] = 0
        attribute.t.raw_data = b""
    if data.draw(st.integers(0, 3)) == 0:
        model.graph.node[0].attribute.remove(attribute)
    try:
        load(model)
    except McugenError as e:
        assert e.exit_code in (2, 3)  # noqa: PT017
        assert "\n" not in str(e)  # noqa: PT017


@pytest.mark.parametrize("back", [True, False])
def test_order_of_nodes(back: bool) -> None:
    """Children may stand before their parents, but a tree begins with its root."""
    model = regressor([Split("BRANCH_LEQ", 0, 3.0, Split("BRANCH_LEQ", 0, 1.0, 1.0, 2.0), 3.0)], 1)
    for a in model.graph.node[0].attribute:
        if a.name.startswith("nodes_"):
            field = a.ints or a.floats or a.strings
            values = list(field)
            del field[:]
            field.extend(values[::-1] if back else [values[0], *values[:0:-1]])
    if back:
        with pytest.raises(InputError, match="begin with its root"):
            load(model)
    else:
        agrees(model, around([1.0, 3.0])[:, None])


def test_every_attribute_of_the_specification_is_known() -> None:
    for op, known in ATTRIBUTES.items():
        schemas = [s for s in onnx.defs.get_all_schemas_with_history() if (s.name, s.domain) == (op, ot.ML)]
        assert known == {name for s in schemas for name in s.attributes}, op


# All the way to C.


@pytest.mark.parametrize("seed", range(3))
def test_exported(seed: int, tmp_path: Path) -> None:
    """Random trees of all modes: the C is verified inside; its scores are onnxruntime's."""
    rng = np.random.default_rng(seed)

    def grow(depth: int) -> Any:
        if depth == 0:
            return float(rng.integers(1, 1000))
        value = SPECIAL[rng.integers(len(SPECIAL))] if rng.random() < 0.5 else float(np.float32(rng.normal()))
        mode = MODES[rng.integers(len(MODES))]
        return Split(mode, int(rng.integers(2)), value, grow(depth - 1), grow(depth - 1), bool(rng.random() < 0.3))

    found = [grow(4) for _ in range(6)]
    model = regressor(found, 2)
    x = rows(around(thresholds(found)), 2, 1000)
    np.save(tmp_path / "x.npy", x)
    mcugen.export(model, tmp_path / "m", name="m", leaf="float32")
    y, _ = mcugen.run(tmp_path / "m", tmp_path / "x.npy", tmp_path / "y.npy")
    assert (y == runtime(model, x)[0]).all()


@pytest.mark.parametrize("output", ["class", "proba"])
def test_several_classes_exported(output: str, tmp_path: Path) -> None:
    """Every verb on the folder: classes of one name in two families must not be mixed up in its reference."""
    model = classifier(THREE, 1, ["a", "b", "c"], post_transform="SOFTMAX")
    np.save(tmp_path / "x.npy", X)
    mcugen.export(model, tmp_path / "m", name="m", leaf="float32", output=output)
    y, _ = mcugen.run(tmp_path / "m", tmp_path / "x.npy", tmp_path / "y.npy")
    lines = mcugen.verify(tmp_path / "m", tmp_path / "x.npy")
    assert any(f"{len(X)} rows equal, every bit" in line for line in lines)
    label, scores_ = runtime(model, X)
    if output == "class":
        assert ["abc"[i] for i in y[:, 0]] == label.tolist()
    else:
        np.testing.assert_allclose(y, scores_, rtol=0, atol=1e-6)
