"""Nodes of tree ensembles to Parts: which leaf adds to which output, base values, the transform, the labels.

Where the specification is silent, onnxruntime decides, as found by experiment (docs/numerics.md, "Tree ensembles in
ONNX"); what it computes by accident is refused.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from mcugen.core.types import Array
from mcugen.errors import one_line
from mcugen.frontends.onnx.call import Call
from mcugen.frontends.onnx.ml_columns import Column, Kind
from mcugen.frontends.onnx.ml_forest import Expanded, expand, finish
from mcugen.frontends.onnx.ml_trees import RawTrees, numbers, read_classic, read_new
from mcugen.trees.forest import Forest

_TRANSFORMS = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")
_AGGREGATES = ("AVERAGE", "SUM", "MIN", "MAX")
_LINKS = {"NONE": "identity", "SOFTMAX": "softmax", "LOGISTIC": "sigmoid"}
_BASE = "export the model without base_values, or give mcugen the estimator that it was made from"


@dataclass(frozen=True, slots=True, eq=False)
class Parts:
    """An ensemble: score = base + leaves, over ``average`` trees if that is not None, then ``link`` of trees.source.

    ``link`` None: the transform is not computed, for the reason ``no_link``. ``labels`` of the classes, else empty;
    ``class_above``: a single score means class 1 above it. ``single_error``: how far from the sum of the leaves
    onnxruntime may be, which adds in float32 and in an order that depends on its threads. ``double``: some feature is
    compared as a double.
    """

    forest: Forest
    base: Array
    average: int | None
    link: str | None
    no_link: str = ""
    labels: tuple[str, ...] = ()
    class_above: float = 0.0
    notes: tuple[str, ...] = ()
    single_error: float = 0.0
    double: bool = False


def read_ensemble(c: Call, columns: tuple[Column, ...], n_features: int) -> Parts:
    """The Parts of one node of op TreeEnsembleRegressor, TreeEnsembleClassifier or TreeEnsemble."""
    read = _classifier if c.node.op == "TreeEnsembleClassifier" else _regressor
    return replace(read(c, columns, n_features), double=any(column.kind is Kind.DOUBLE for column in columns))


def _word(c: Call, name: str, words: tuple[str, ...], default: str) -> str:
    """An attribute that is a word, or in version 5 its number."""
    if c.node.op == "TreeEnsemble":
        number = c.get_int(name, words.index(default))
        return words[number] if 0 <= number < len(words) else f"number {number}"
    return c.get_str(name, default)


# Leaves.


@dataclass(frozen=True, slots=True, eq=False)
class _Leaves:
    """``always`` (K,): whether each input reaches a leaf that names the output."""

    forest: Forest
    always: Array


def _leaves(c: Call, raw: RawTrees, found: Expanded, n_features: int, outputs: int) -> _Leaves:
    """The forest with one value a leaf where the trees take turns with the outputs, else with all of them."""
    if raw.target_of.size and not (raw.target_of.min() >= 0 and raw.target_of.max() < outputs):
        c.broken(f"a weight for output {raw.target_of.max()}; there are {outputs}")
    if len(np.unique(raw.node_of * outputs + raw.target_of)) < raw.weight.size:
        c.refuse(
            "a leaf with two weights for one output, which runtimes understand differently", "add them in the file"
        )
    if not np.isfinite(raw.weight).all():
        c.broken("a leaf value is not finite", "the training diverged; train again")
    count = np.bincount(raw.node_of, minlength=raw.mode.size)
    target = np.full(raw.mode.size, -1, np.int64)
    target[raw.node_of] = raw.target_of
    single = np.zeros(raw.mode.size)
    np.add.at(single, raw.node_of, raw.weight)
    named = [np.unique(target[leaves[count[leaves] > 0]]) for leaves in found.leaves]
    always = np.zeros(outputs, np.bool_)
    alone = all((count[leaves] <= 1).all() and own.size <= 1 for leaves, own in zip(found.leaves, named, strict=True))
    if outputs == 1 or alone:
        owner = np.array([own[0] if own.size else 0 for own in named], np.int64)
        for t, leaves in enumerate(found.leaves):
            always[owner[t]] |= bool((count[leaves] > 0).all())
        turns = _turns(owner, outputs)
        if turns is not None:
            forest = finish(found, [single[v][:, None] for v in found.leaves], n_features, outputs, turns)
            return _Leaves(forest, always)
    used = np.unique(np.concatenate(found.leaves))
    place = np.zeros(raw.mode.size, np.int64)
    place[used] = np.arange(used.size)
    mine = np.isin(raw.node_of, used)
    entry = place[raw.node_of[mine]], raw.target_of[mine]
    table, hit = np.zeros((used.size, outputs)), np.zeros((used.size, outputs), np.bool_)
    np.add.at(table, entry, raw.weight[mine])
    hit[entry] = True
    for leaves in found.leaves:
        always |= hit[place[leaves]].all(axis=0)
    values = [table[place[leaves]] for leaves in found.leaves]
    return _Leaves(finish(found, values, n_features, outputs, np.arange(len(found.leaves))), always)


def _turns(owner: Array, outputs: int) -> Array | None:
    """An order of the trees in which tree t adds to output t % outputs, or None."""
    count = np.bincount(owner, minlength=outputs)
    if (count != count[0]).any():
        return None
    by_output = np.argsort(owner, kind="stable").reshape(outputs, -1)
    return by_output.T.reshape(-1)


def _single_sums(raw: RawTrees, found: _Leaves, base: Array, columns: tuple[Column, ...]) -> float:
    """How far a sum in float32 may be off, in any order: (n + 1) * 2**-24 * the sum of magnitudes; 0 for doubles."""
    if raw.double or any(column.kind is Kind.DOUBLE for column in columns):
        return 0.0
    forest = found.forest
    largest = np.maximum.reduceat(np.abs(forest.leaf_value).max(axis=1), forest.first_leaf[:-1]).sum()
    return (forest.n_trees + 2) * 2.0**-24 * float(largest + np.abs(base).max(initial=0.0))


# The three ops.


def _regressor(c: Call, columns: tuple[Column, ...], n_features: int) -> Parts:
    raw = read_new(c) if c.node.op == "TreeEnsemble" else read_classic(c, "target")
    outputs = c.get_int("n_targets", int(raw.target_of.max(initial=0)) + 1)
    if not 1 <= outputs <= 1 << 15:
        c.broken(f"{outputs} targets")
    aggregate = _word(c, "aggregate_function", _AGGREGATES, "SUM")
    if aggregate not in ("SUM", "AVERAGE"):
        c.refuse(f"aggregate_function {one_line(aggregate)[:40]}", "only SUM and AVERAGE are supported")
    base = numbers(c, "base_values", floats=True)
    base = np.zeros(outputs) if base is None or not base.size else base
    if base.size != outputs:
        c.broken(f"{base.size} base_values for {outputs} targets")
    leaves = _leaves(c, raw, expand(c, raw, columns), n_features, outputs)
    if (~leaves.always & (base != 0)).any():
        c.refuse("base_values of a target that some leaves do not name", _BASE)
    link, why = _link(_word(c, "post_transform", _TRANSFORMS, "NONE"), outputs)
    average = len(raw.roots) if aggregate == "AVERAGE" and len(raw.roots) > 1 else None
    single = _single_sums(raw, leaves, base * (average or 1), columns)
    return Parts(leaves.forest, base * (average or 1), average, link, why, single_error=single)


def _link(transform: str, outputs: int) -> tuple[str | None, str]:
    if transform in _LINKS and (outputs > 1 or transform == "NONE"):
        return _LINKS[transform], ""
    return None, _no_link(transform, outputs)


def _no_link(transform: str, outputs: int) -> str:
    why = "of a single score, which runtimes understand differently" if outputs == 1 else "has no kernel"
    return f"post_transform {one_line(transform)[:40]} {why}"


def _classifier(c: Call, columns: tuple[Column, ...], n_features: int) -> Parts:
    raw = read_classic(c, "class")
    labels = _labels(c)
    k = len(labels)
    if k < 2:
        c.refuse(f"{k} classes", "train with two or more classes")
    base = numbers(c, "base_values", floats=True)
    base = np.zeros(0) if base is None else base
    found = expand(c, raw, columns)
    own = np.unique(raw.target_of)
    if k == 2 and own.size == 1 and own[0] in (0, 1):
        return _binary(c, raw, found, base, labels, columns, n_features)
    leaves = _leaves(c, raw, found, n_features, k)
    notes: tuple[str, ...] = ()
    if k == 2:
        if base.any():
            c.refuse("base_values of two classes with a weight each, which onnxruntime mixes", _BASE)
        if not leaves.always[1]:
            c.refuse("leaves that name one of two classes only", "give each leaf a weight for both classes")
        notes = (
            "--output class is the class with the larger score; onnxruntime's label is 1 wherever score 1 is above 0",
        )
    if base.size not in (0, k) and k > 2:
        c.broken(f"{base.size} base_values for {k} classes")
    if k > 2 and not base.size and not leaves.always.all():
        notes = ("a class that no reached leaf names has the score 0 here; onnxruntime's label leaves it out",)
    base = base if base.size == k else np.zeros(k)
    link, why = _link(c.get_str("post_transform", "NONE"), k)
    single = _single_sums(raw, leaves, base, columns)
    return Parts(leaves.forest, base, None, link, why, labels, notes=notes, single_error=single)


def _binary(
    c: Call,
    raw: RawTrees,
    found: Expanded,
    base: Array,
    labels: tuple[str, ...],
    columns: tuple[Column, ...],
    n_features: int,
) -> Parts:
    """Two classes, and weights for one of them: a single score, that of class 1 whatever the weights call it."""
    class_id = int(raw.target_of[0])
    if base.size > 1 or (class_id == 1 and base.any()):
        c.refuse(f"{base.size} base_values with weights for class {class_id} only, which onnxruntime leaves out", _BASE)
    leaves = _leaves(c, replace(raw, target_of=np.zeros_like(raw.target_of)), found, n_features, 1)
    transform = c.get_str("post_transform", "NONE")
    link = {"NONE": "identity", "LOGISTIC": "sigmoid"}.get(transform)
    why = "" if link is not None else _no_link(transform, 1)
    # Weights that are probabilities: onnxruntime compares with one half, if none of them is negative.
    above = 0.5 if (raw.weight >= 0).all() else 0.0
    base = base if base.size else np.zeros(1)
    single = _single_sums(raw, leaves, base, columns)
    return Parts(leaves.forest, base, None, link, why, labels, above, single_error=single)


def _labels(c: Call) -> tuple[str, ...]:
    for name in ("classlabels_strings", "classlabels_int64s"):
        value = c.attribute(name)
        if isinstance(value, tuple) and value:
            return tuple(str(v) for v in value)
    c.broken("there are no class labels")
