"""Tree ensembles of ai.onnx.ml made node by node, and what onnxruntime says of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper

from mcugen.core.passes import check_model, evaluate
from mcugen.core.types import Array, Model
from mcugen.frontends.onnx import load_onnx

ML = "ai.onnx.ml"
SECOND = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ", "BRANCH_MEMBER")
MODES = SECOND[:6]


@dataclass(frozen=True, slots=True)
class Split:
    """An inner node; ``yes`` and ``no`` are Splits, or leaves: a number for output 0, or a dict of output to weight."""

    mode: str
    feature: int
    value: float
    yes: Any
    no: Any
    nan_yes: bool = False


def attributes(trees: Sequence[Any], kind: str) -> dict[str, Any]:
    """The attributes of a classic ensemble; ``kind`` target or class."""
    out: dict[str, list[Any]] = {f"nodes_{k}": [] for k in NODES}
    out |= {f"{kind}_{k}": [] for k in ("treeids", "nodeids", "ids", "weights")}
    for t, root in enumerate(trees):
        todo, made = [(root, 0)], 1
        while todo:
            node, number = todo.pop(0)
            leaf = not isinstance(node, Split)
            row: tuple[Any, ...] = (t, number, 0, "LEAF", 0.0, 0, 0, 0)
            if leaf:
                for target, weight in (node if isinstance(node, dict) else {0: node}).items():
                    for key, v in zip(
                        ("treeids", "nodeids", "ids", "weights"), (t, number, target, weight), strict=True
                    ):
                        out[f"{kind}_{key}"].append(v)
            else:
                row = (t, number, node.feature, node.mode, node.value, made, made + 1, int(node.nan_yes))
                todo += [(node.yes, made), (node.no, made + 1)]
                made += 2
            for key, v in zip(NODES, row, strict=True):
                out[f"nodes_{key}"].append(v)
    return out


NODES = (
    "treeids",
    "nodeids",
    "featureids",
    "modes",
    "values",
    "truenodeids",
    "falsenodeids",
    "missing_value_tracks_true",
)


def graph(
    nodes: Sequence[onnx.NodeProto], features: int, outputs: str = "y", dtype: int = TensorProto.FLOAT, ml: int = 3
) -> onnx.ModelProto:
    """A model with the input x [N, features]."""
    x = helper.make_tensor_value_info("x", dtype, ["N", features])
    results = [helper.make_empty_tensor_value_info(k) for k in outputs.split()]
    made = helper.make_graph(list(nodes), "trees", [x], results)
    return helper.make_model(
        made, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid(ML, ml)], ir_version=8
    )


def regressor(trees: Sequence[Any], features: int, targets: int = 1, **more: Any) -> onnx.ModelProto:
    """x -> y by one TreeEnsembleRegressor."""
    made = helper.make_node(
        "TreeEnsembleRegressor",
        ["x"],
        ["y"],
        "trees",
        domain=ML,
        n_targets=targets,
        **attributes(trees, "target"),
        **more,
    )
    return graph([made], features)


def classifier(trees: Sequence[Any], features: int, labels: Sequence[int | str], **more: Any) -> onnx.ModelProto:
    """x -> label, y by one TreeEnsembleClassifier."""
    name = "classlabels_strings" if isinstance(labels[0], str) else "classlabels_int64s"
    made = helper.make_node(
        "TreeEnsembleClassifier",
        ["x"],
        ["label", "y"],
        "trees",
        domain=ML,
        **{name: list(labels)},
        **attributes(trees, "class"),
        **more,
    )
    return graph([made], features, "label y")


def ensemble(trees: Sequence[Any], features: int, double: bool = False, **more: Any) -> onnx.ModelProto:
    """x -> y by one TreeEnsemble of ai.onnx.ml 5. A Split of mode BRANCH_MEMBER has a tuple as its value."""
    inner: list[tuple[Any, ...]] = []
    leaves: list[tuple[int, float]] = []
    roots, members = [], []
    for root in trees:
        roots.append(len(inner))
        inner.append(())
        todo = [(root, len(inner) - 1)]
        while todo:
            split, number = todo.pop(0)
            if not isinstance(split, Split):  # a tree of one leaf: a node with both children the same
                leaves.append((0, split))
                inner[number] = (0.0, 0, 0, *(len(leaves) - 1, 1) * 2, 0)
                continue
            refs: list[int] = []
            for child in (split.yes, split.no):
                if isinstance(child, Split):
                    refs += [len(inner), 0]
                    inner.append(())
                    todo.append((child, len(inner) - 1))
                else:
                    refs += [len(leaves), 1]
                    ((target, weight),) = (child if isinstance(child, dict) else {0: child}).items()
                    leaves.append((target, weight))
            value = 0.0 if isinstance(split.value, tuple) else split.value
            inner[number] = (value, split.feature, SECOND.index(split.mode), *refs, int(split.nan_yes))
    for split in (n for root in trees for n in _splits(root)):
        if isinstance(split.value, tuple):
            members += [*split.value, np.nan]
    kind, code = (np.float64, TensorProto.DOUBLE) if double else (np.float32, TensorProto.FLOAT)
    splits, features_, modes, yes, yes_leaf, no, no_leaf, nan = zip(*inner, strict=True)

    def tensor(name: str, values: Any, dtype: Any, element: int) -> onnx.TensorProto:
        data = np.array(values, dtype)
        return helper.make_tensor(name, element, data.shape, data.tobytes(), raw=True)

    more.setdefault("n_targets", 1)
    if members:
        more["membership_values"] = tensor("membership_values", members, kind, code)
    made = helper.make_node(
        "TreeEnsemble",
        ["x"],
        ["y"],
        "trees",
        domain=ML,
        tree_roots=roots,
        nodes_splits=tensor("nodes_splits", splits, kind, code),
        nodes_featureids=list(features_),
        nodes_modes=tensor("nodes_modes", modes, np.uint8, TensorProto.UINT8),
        nodes_truenodeids=list(yes),
        nodes_trueleafs=list(yes_leaf),
        nodes_falsenodeids=list(no),
        nodes_falseleafs=list(no_leaf),
        nodes_missing_value_tracks_true=list(nan),
        leaf_targetids=[t for t, _ in leaves],
        leaf_weights=tensor("leaf_weights", [w for _, w in leaves], kind, code),
        **more,
    )
    return graph([made], features, dtype=TensorProto.DOUBLE if double else TensorProto.FLOAT, ml=5)


def _splits(root: Any) -> list[Split]:
    """All inner nodes, in the order in which ``ensemble`` numbers them."""
    out, todo = [], [root]
    while todo:
        node = todo.pop(0)
        if isinstance(node, Split):
            out.append(node)
            todo += [node.yes, node.no]
    return out


def load(model: onnx.ModelProto) -> Model:
    """The import, checked."""
    out = load_onnx(model.SerializeToString(), "trees.onnx", "trees")
    check_model(out, "import")
    return out


def runtime(model: onnx.ModelProto, feeds: Array | dict[str, Array]) -> list[Any]:
    """onnxruntime's outputs, by one thread."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return list(session.run(None, feeds if isinstance(feeds, dict) else {"x": feeds}))


def scores(model: Model, x: Array) -> Array:
    """The float model's first output."""
    return evaluate(model, {"x": x.astype(np.float64)})[model.outputs[0]]


def prediction(model: Model, x: Array) -> Array:
    """The float model's second output."""
    return evaluate(model, {"x": x.astype(np.float64)})[model.outputs[1]]


def around(values: Sequence[float]) -> Array:
    """float32: the numbers, one step to either side, zeros, ends of the type, infinities and NaN."""
    v = np.array([*values, 0.0, -0.0, 1.0, -1.0, np.finfo(np.float32).max, np.finfo(np.float32).tiny], np.float32)
    with np.errstate(over="ignore"):
        steps = [np.nextafter(v, np.float32(end)) for end in (-np.inf, np.inf)]
    return np.unique(np.concatenate([v, *steps, np.array([np.inf, -np.inf, np.nan], np.float32)]))
