"""Tiny forests for the tests: written as nested tuples, lowered, exported, and walked by plain recursion.

The recursion knows nothing of keys, ranks and tables: Python compares a float with a float, exactly.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from math import isnan

import numpy as np
from hypothesis import strategies as st

from mcugen.core.passes import run_passes
from mcugen.core.types import Array, DType, Feature, Loc, Model, Source, TensorType
from mcugen.emit.model import items_of, model_files, runtime_files
from mcugen.emit.parts import ABI
from mcugen.emit.selftest import Vectors
from mcugen.emit.sources import sources_of
from mcugen.target.board import load_board
from mcugen.target.placement import place
from mcugen.trees.choose import Chooser, forced, plain_choice
from mcugen.trees.costs import Memory
from mcugen.trees.forest import Forest, ForestBuilder, LinearLeaves, Missing
from mcugen.trees.lower import TREE_PASSES, TreeOptions
from mcugen.trees.proof import Reference, reference
from mcugen.trees.ranking import Ranking
from mcugen.trees.signals import InputSpec, Signal
from mcugen.trees.source import Average, Link, TreeEnsemble
from mcugen.trees.summing import Summing
from mcugen.trees.vectors import make_vectors
from mcugen.verify.golden import Golden, GoldenTensor, golden_bytes

BAND = float(np.float32(1e-35))
SHA = bytes(range(32))
LOC = Loc("test", "")
#: Memory where any tree waits, whatever its size.
WAITING = Memory(cache=-1)
INPUT_TYPES = (DType.F64, DType.F32, DType.I32, DType.I16, DType.U16, DType.I8, DType.U8)

Known = tuple[tuple[int, ...] | None, ...]


@dataclass(frozen=True)
class Leaf:
    """``value``: a number, or one for each output. ``linear``: constant and (feature, coefficient) pairs."""

    value: float | tuple[float, ...]
    linear: tuple[float, tuple[tuple[int, float], ...]] | None = None


@dataclass(frozen=True)
class Split:
    """Left if ``x[feature] <= threshold``, or if its category is one of ``categories``."""

    feature: int
    threshold: float
    left: Split | Leaf
    right: Split | Leaf
    missing: Missing = Missing.NAN
    default_left: bool = False
    categories: tuple[int, ...] | None = None


def nodes_of(tree: Split | Leaf) -> list[Split]:
    """The splits of a tree, parents first."""
    return [] if isinstance(tree, Leaf) else [tree, *nodes_of(tree.left), *nodes_of(tree.right)]


def leaves_of(tree: Split | Leaf) -> list[Leaf]:
    """The leaves from left to right."""
    return [tree] if isinstance(tree, Leaf) else [*leaves_of(tree.left), *leaves_of(tree.right)]


def forest_of(
    trees: Sequence[Split | Leaf],
    n_features: int,
    outputs: int = 1,
    band: float = BAND,
    known: Known | None = None,
) -> Forest:
    """The arrays of a forest. ``known`` (F): the categories of each feature; then they must match exactly."""
    builder = ForestBuilder()
    linear: list[tuple[float, tuple[tuple[int, float], ...]]] = []
    for tree in trees:
        nodes, leaves = nodes_of(tree), leaves_of(tree)
        place = {id(n): i for i, n in enumerate(nodes)} | {id(n): ~i for i, n in enumerate(leaves)}
        sets = [-1 if n.categories is None else builder.add_set(np.array(sorted(n.categories))) for n in nodes]
        builder.add_tree(
            leaf_value=np.array([n.value for n in leaves]),
            feature=np.array([n.feature for n in nodes], np.int32),
            threshold=np.array([n.threshold for n in nodes], np.float64),
            left=np.array([place[id(n.left)] for n in nodes], np.int32),
            right=np.array([place[id(n.right)] for n in nodes], np.int32),
            missing=np.array([n.missing for n in nodes], np.uint8),
            default_left=np.array([n.default_left for n in nodes], np.bool_),
            categorical=np.array([n.categories is not None for n in nodes], np.bool_),
            category_set=np.array(sets, np.int32),
        )
        linear += [n.linear for n in leaves if n.linear is not None]
    models = None
    if linear:
        models = LinearLeaves(
            const=np.array([c for c, _ in linear]),
            first_term=np.cumsum([0, *(len(terms) for _, terms in linear)]).astype(np.int64),
            feature=np.array([f for _, terms in linear for f, _ in terms], np.int64),
            coef=np.array([k for _, terms in linear for _, k in terms], np.float64),
        )
    return builder.build(
        n_features=n_features,
        outputs=outputs,
        zero_band=band,
        category_match="trunc" if known is None else "exact",
        known_categories=None if known is None else tuple(None if k is None else np.array(k) for k in known),
        linear=models,
    )


def naive_leaf(tree: Split | Leaf, values: Sequence[float], band: float = BAND, known: Known | None = None) -> int:
    """Which leaf, from left to right, the model's values (floats, NaN for missing) reach."""
    if isinstance(tree, Leaf):
        return 0
    if _goes_left(tree, values[tree.feature], band, None if known is None else known[tree.feature]):
        return naive_leaf(tree.left, values, band, known)
    return len(leaves_of(tree.left)) + naive_leaf(tree.right, values, band, known)


def _goes_left(node: Split, value: float, band: float, known: tuple[int, ...] | None) -> bool:
    if abs(value) <= band:
        value = 0.0
    if node.categories is not None:
        if isnan(value) or not -1 < value < 2**31:
            return node.default_left
        if known is not None and value not in known:
            return node.default_left
        return int(value) in node.categories
    if isnan(value):
        if node.missing != Missing.NONE:
            return node.default_left
        value = 0.0
    if node.missing == Missing.ZERO and value == 0.0:
        return node.default_left
    return value <= node.threshold


def value_of(x: float, signal: Signal) -> float:
    """What Python's arithmetic makes of one input: rounded after the product, and after the sum."""
    if signal.missing is not None and x == signal.missing:
        return float("nan")
    if signal.scale is None:
        return float(x)
    if signal.single:
        product = np.float32(np.float32(signal.scale) * np.float32(x))
        return float(np.float32(product + np.float32(signal.offset)))
    return float(signal.scale) * float(x) + float(signal.offset)


def model_of(
    forest: Forest,
    *,
    base: Sequence[float] | None = None,
    link: tuple[str, float] = ("identity", 1.0),
    average: int | None = None,
    labels: tuple[str, ...] = (),
    class_above: float = 0.0,
    name: str = "m",
) -> Model:
    """The source model around a forest, as the front ends write it."""
    scores = TensorType((forest.outputs,), DType.F64)
    types = {"x": TensorType((forest.n_features,), DType.F64), "raw": scores, "prediction": scores}
    start = np.zeros(forest.outputs) if base is None else np.array(base, np.float64)
    ops: tuple[TreeEnsemble | Average | Link, ...] = (TreeEnsemble(("x",), ("raw",), LOC, forest, start),)
    score = "raw"
    if average is not None:
        ops += (Average(("raw",), ("mean",), LOC, average),)
        types["mean"] = scores
        score = "mean"
    ops += (Link((score,), ("prediction",), LOC, *link),)
    features = tuple(Feature(f"f{i}") for i in range(forest.n_features))
    source = Source("test", "test", SHA.hex())
    outputs = (score, "prediction")
    return Model(name, "source", ("x",), outputs, types, ops, source, features, labels, class_above=class_above)


def spec_of(dtype: DType, n_features: int, signal: Signal | None = None) -> InputSpec:
    """The same signal for every feature."""
    return InputSpec(dtype, (signal or Signal(),) * n_features)


def lower(
    model: Model,
    spec: InputSpec,
    output: str = "raw",
    leaf: DType = DType.F64,
    choose: Chooser = plain_choice,
    memory: Memory | None = None,
) -> Model:
    """The machine ops. ``memory``: decides whether batches go tree by tree (``WAITING``: they do)."""
    return run_passes(model, TREE_PASSES, TreeOptions(spec, output, leaf, choose, memory))


def rank_and_sum(machine: Model) -> tuple[Ranking, Summing]:
    """The first two ops."""
    rank, total = machine.ops[:2]
    assert isinstance(rank, Ranking)
    assert isinstance(total, Summing)
    return rank, total


def ways(ranking: str, summing: str, limit: float | None = None) -> Chooser:
    """A choice of these ways; ``limit``: the bound of the score."""
    return partial(forced, ways=f"{ranking}+{summing}", limit=limit)


def leaf_names(machine: Model, x: Array) -> Array:
    """(N, T): the leaf of each tree, by the integer reference."""
    rank, total = rank_and_sum(machine)
    return total.leaf_names(rank.eval(x)[0])


@dataclass(frozen=True, eq=False)
class Export:
    """The files of an export and what they were made of; nothing on disk."""

    name: str
    machine: Model
    ref: Reference
    files: dict[str, str | bytes] = field(repr=False)
    golden: bytes = field(repr=False)

    @property
    def sources(self) -> list[str]:
        return sources_of(self.files)


def export_text(
    model: Model,
    spec: InputSpec,
    output: str = "raw",
    leaf: DType = DType.F64,
    *,
    extra: Array | None = None,
    board: str | None = None,
    limit: int = 512,
    choose: Chooser = plain_choice,
    memory: Memory | None = None,
) -> Export:
    """All generated text of a model, with vectors at every threshold and the rows ``extra``."""
    machine = lower(model, spec, output, leaf, choose, memory)
    rank, total = rank_and_sum(machine)
    x = make_vectors(rank, total.tables, limit=limit).x
    x = x if extra is None else np.concatenate([x, extra])
    ref = reference(model, machine, spec, x)
    plan = place(items_of(machine), load_board(board) if board else None, {}, {})
    files: dict[str, str | bytes] = dict(model_files(machine, plan, output, Vectors(ref.x, ref.y), ""))
    files |= runtime_files(plan)
    tensors = (GoldenTensor("x", "input", ref.x), GoldenTensor("y", "output", ref.y))
    return Export(machine.name, machine, ref, files, golden_bytes(Golden(ABI, SHA, tensors, len(ref.x))))


def exact_sum(trees: Sequence[Split | Leaf], leaf: Sequence[int], base: Sequence[float]) -> list[Fraction]:
    """The real-number score of each output, without any rounding."""
    total = [Fraction(b) for b in base]
    for t, tree in enumerate(trees):
        value = leaves_of(tree)[leaf[t]].value
        if isinstance(value, tuple):
            for k, v in enumerate(value):
                total[k] += Fraction(v)
        else:
            total[t % len(total)] += Fraction(value)
    return total


# Strategies

_SPECIAL = (0.0, -0.0, 0.5, -0.5, 1.0, -1.0, 127.0, 127.5, 128.0, -128.0, -129.0, 255.0, 256.0, 32767.0, -32768.0)
_SPECIAL += (65535.0, 65536.0, 2.0**31 - 1, -(2.0**31), 2.0**31, 1e300, -1e300, 5e-324, -5e-324, 1e-40, -1e-40, 1e-46)
_SPECIAL += (
    BAND,
    -BAND,
    float(np.nextafter(BAND, 1)),
    float(np.nextafter(BAND, 0)),
    1e-36,
    -1e-36,
    3.4028235e38,
    3.5e38,
)
_SPECIAL += (16777216.0, 16777217.0, float("inf"), float("-inf"))

CATEGORIES = (0, 1, 2, 3, 31, 32, 33, 64, 100, 127, 255, 1000)
thresholds = st.one_of(
    st.sampled_from(_SPECIAL),
    st.floats(allow_nan=False),
    st.floats(-300.0, 300.0),
    st.floats(-300.0, 300.0, width=32),
    st.integers(-(2**33), 2**33).map(float),
)


def trees(
    n_features: int,
    values: st.SearchStrategy[float],
    *,
    categorical: bool = False,
    defaults: bool = False,
    cuts: st.SearchStrategy[float] = thresholds,
) -> st.SearchStrategy[Split | Leaf]:
    """Trees of some nodes with hostile thresholds. ``defaults``: what has no category may go left."""
    leaves = values.map(Leaf)
    feature = st.integers(0, n_features - 1)

    def grow(children: st.SearchStrategy[Split | Leaf]) -> st.SearchStrategy[Split | Leaf]:
        kinds = st.sampled_from(list(Missing))
        numeric = st.builds(Split, feature, cuts, children, children, kinds, st.booleans())
        if not categorical:
            return numeric
        # The last feature is the categorical one.
        sets = st.builds(
            lambda c, left, right, default: Split(n_features - 1, 0.0, left, right, Missing.NAN, default, c),
            st.sets(st.sampled_from(CATEGORIES), max_size=6).map(tuple),
            children,
            children,
            st.booleans() if defaults else st.just(False),
        )
        front = st.builds(Split, st.integers(0, n_features - 2), cuts, children, children, kinds, st.booleans())
        return st.one_of(front, sets)

    return st.recursive(leaves, grow, max_leaves=8)


def neighbours(dtype: DType, points: Sequence[float], signal: Signal | None = None) -> Array:
    """Inputs of a type at and around the points (in the model's unit), the ends of the type, and what is no number."""
    signal = signal or Signal()
    if dtype.is_float:
        info = np.finfo(dtype.np)
        with np.errstate(over="ignore"):
            at = np.array([*points, 0.0, -0.0, info.tiny, info.max, np.inf, info.smallest_subnormal, BAND])
            at = at.astype(dtype.np)
            at = np.concatenate([at, -at])
            around = np.concatenate([np.nextafter(at, dtype.np.type(d)) for d in (np.inf, -np.inf)])
        return np.concatenate([at, around, nans(dtype)])
    if signal.scale is not None:
        points = [(p - signal.offset) / signal.scale for p in points]
    ends = [dtype.min, dtype.min + 1, -1, 0, 1, dtype.max - 1, dtype.max]
    marks = [] if signal.missing is None else [signal.missing + d for d in (-1, 0, 1)]
    near = [int(np.floor(p)) + d for p in points if abs(p) < 2.0**40 for d in (-2, -1, 0, 1, 2)]
    return np.unique([v for v in (*ends, *near, *marks) if dtype.min <= v <= dtype.max]).astype(dtype.np)


def nans(dtype: DType) -> Array:
    """NaNs of both signs, quiet and signalling, with payloads."""
    if dtype is DType.F64:
        bits = (0x7FF8000000000000, 0xFFF8000000000000, 0x7FF0000000000001, 0xFFF0000000000001, 0xFFFFFFFFFFFFFFFF)
        return np.array(bits, np.uint64).view(np.float64)
    bits32 = (0x7FC00000, 0xFFC00000, 0x7F800001, 0xFF800001, 0x7FFFFFFF, 0xFFFFFFFF)
    return np.array(bits32, np.uint32).view(np.float32)
