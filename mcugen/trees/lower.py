"""Passes of the tree family: source ops (float64) to machine ops (integers, or the floats the user asked for)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from math import floor, isinf, prod

import numpy as np

from mcugen.core.op import MachineOp, Op
from mcugen.core.passes import Step
from mcugen.core.types import Array, Bound, DType, Loc, Model, QParams, TensorType
from mcugen.errors import InternalError, UnsupportedError
from mcugen.trees.batches import block_rows, waiting
from mcugen.trees.branches import order_trees
from mcugen.trees.choose import Choices, Chooser, plain_choice
from mcugen.trees.coarse import make_coarse
from mcugen.trees.columns import Columns, code_nodes
from mcugen.trees.costs import WALK, Memory
from mcugen.trees.decisions import decide_nodes
from mcugen.trees.forest import LinearLeaves
from mcugen.trees.layout import Layout, lay_out
from mcugen.trees.leaves import LeafSource, PackedLeaves
from mcugen.trees.lookup import make_lookup
from mcugen.trees.mixed import Split, tables_of
from mcugen.trees.ops import (
    Above,
    ArgMax,
    DivideScores,
    RankCoarse,
    RankInputs,
    RankLookup,
    ScaleScores,
    Softmax,
    SumBranches,
    SumLeaves,
    SumLinear,
    SumMixed,
    SumPacked,
    Transform,
)
from mcugen.trees.packed import form_for, make_words
from mcugen.trees.parts import Parts
from mcugen.trees.ranking import Ranking
from mcugen.trees.signals import InputSpec
from mcugen.trees.source import Average, Decide, Link, TreeEnsemble
from mcugen.trees.tables import TreeTables, make_tables


@dataclass(frozen=True, slots=True)
class TreeOptions:
    """What the user chose: the input, ``output`` (raw, class, proba) and the type of the leaves.

    ``choose`` decides which ops rank and sum; the default is the tables that any model can have. ``memory``: what the
    trees may take of the board, which decides how batches go; None: there are no batches.
    """

    spec: InputSpec
    output: str
    leaf: DType
    choose: Chooser = plain_choice
    memory: Memory | None = None


def select_output(model: Model, options: TreeOptions) -> Model:
    """Keep what the chosen output needs: the score, the prediction, or a decision on the score.

    Front ends give two outputs, the score and the prediction, or the score alone where the transform is not known here.
    Classes of one score: above ``model.class_above``.
    """
    score = model.outputs[0]
    if options.output == "raw":
        return replace(model, ops=_ops_for(score, model.ops), outputs=(score,))
    if options.output == "proba":
        if len(model.outputs) == 1:
            what = f"the transform of {model.source.name} is not supported"
            raise UnsupportedError("--output proba", what, "use --output raw or class")
        return replace(model, outputs=model.outputs[1:])
    if not model.labels:
        raise UnsupportedError(
            "--output class", f"{model.source.name} is not a classifier", "use --output raw or proba"
        )
    ops = _ops_for(score, model.ops)
    decide = Decide((score,), ("class",), Loc(model.source.name, "class"), model.class_above)
    types = {**model.types, "class": TensorType((1,), DType.I32)}
    return replace(model, ops=(*ops, decide), outputs=("class",), types=types)


def _ops_for(value: str, ops: tuple[Op, ...]) -> tuple[Op, ...]:
    """The ops that ``value`` needs: LightGBM's random forests take the mean for the prediction only."""
    wanted, kept = {value}, []
    for op in reversed(ops):
        if wanted.intersection(op.outputs):
            wanted.update(op.inputs)
            kept.append(op)
    return tuple(reversed(kept))


def bind_inputs(model: Model, options: TreeOptions) -> Model:
    """Declare the type of x and the signal of each feature; refuse maps that have no meaning."""
    ensemble = ensemble_of(model)
    features = []
    categorical = set(ensemble.forest.feature[ensemble.forest.categorical].tolist())
    for i, (feature, signal) in enumerate(zip(model.features, options.spec.signals, strict=True)):
        if signal.scale is not None and i in categorical:
            raise UnsupportedError(
                f"--spec {feature.name}", "a categorical feature cannot have a scale", "remove scale and offset"
            )
        features.append(replace(feature, scale=signal.scale, offset=signal.offset, missing=signal.missing))
    types = {**model.types, "x": TensorType((ensemble.forest.n_features,), options.spec.dtype)}
    return replace(model, features=tuple(features), types=types)


def lower_trees(model: Model, options: TreeOptions) -> Model:
    """Source ops to machine ops: thresholds to ranks, leaves packed, the rest op by op."""
    ensemble = ensemble_of(model)
    forest, where = ensemble.forest, str(ensemble.loc)
    decisions = decide_nodes(forest, options.spec)
    layout = lay_out(forest, decisions)
    coded = code_nodes(forest, decisions, options.spec, layout.node)
    names = layout.leaf - forest.first_leaf[forest.tree_of_leaf[layout.leaf]]
    tables = make_tables(coded, layout, names, where)
    lowering = _Lowering(model, options)
    if forest.linear is not None:
        lowering.rank(coded.columns, "search", tables)
        lowering.sum_linear(ensemble, layout, tables)
    else:
        source = _leaf_source(ensemble, layout)
        mean = prod(op.count for op in model.ops if isinstance(op, Average))
        count = forest.leaf_count[layout.leaf]
        parts = Parts(coded.columns, tables, source, count, options.spec, options.leaf, where, mean)
        choices = options.choose(parts)
        lowering.rank(coded.columns, choices.ranking, tables)
        lowering.sum_trees(ensemble, tables, choices)
    for op in model.ops:
        if isinstance(op, Average):
            lowering.average(op)
        elif isinstance(op, Link):
            lowering.link(op)
        elif isinstance(op, Decide):
            lowering.decide(op)
    return lowering.model()


#: In this order: outputs first, so that nothing is lowered in vain.
TREE_PASSES: tuple[Step[TreeOptions], ...] = (
    Step("select_output", select_output),
    Step("bind_inputs", bind_inputs),
    Step("lower_trees", lower_trees),
)


def ensemble_of(model: Model) -> TreeEnsemble:
    """The first op of a source model of this family."""
    first = model.ops[0]
    if not isinstance(first, TreeEnsemble):
        raise InternalError(model.name, "a tree model starts with a TreeEnsemble")
    return first


class _Lowering:
    """Collects machine ops. ``value`` is the current score, ``divisor`` the mean that is still to be taken."""

    def __init__(self, model: Model, options: TreeOptions) -> None:
        self._model, self._options = model, options
        self._ops: list[MachineOp] = []
        self._types: dict[str, TensorType] = {"x": model.types["x"]}
        self._bounds: dict[str, Bound] = {}
        self._value, self._divisor = "rank", 1

    def _add(self, op: MachineOp, result: str, kind: TensorType) -> None:
        self._ops.append(op)
        self._types[result] = kind
        self._value = result

    def rank(self, columns: Columns, way: str, tables: TreeTables) -> None:
        spec = self._options.spec
        operands = (("x",), ("rank",), self._model.ops[0].loc)
        has = np.array([s.missing is not None for s in spec.signals])
        sentinel = np.array([s.missing or 0 for s in spec.signals], np.int64)
        op: Ranking
        if way == "coarse":
            coarse = make_coarse(columns, spec.dtype, tables.low_share())
            op = RankCoarse(*operands, spec.dtype, columns, has, sentinel, coarse)
        elif way == "lookup":
            op = RankLookup(*operands, spec.dtype, columns, has, sentinel, make_lookup(columns, WALK * tables.steps[0]))
        else:
            op = RankInputs(*operands, spec.dtype, columns, has, sentinel)
        self._add(op, "rank", TensorType((max(columns.n_columns, 1),), columns.rank_dtype))

    def sum_trees(self, ensemble: TreeEnsemble, tables: TreeTables, choices: Choices) -> None:
        leaves, operands = choices.leaves, (("rank",), ("score",), ensemble.loc)
        op: _Sum
        if choices.split is not None:
            op = _mixed(operands, tables, choices.split)
        elif choices.summing == "branches":
            op = _branches(operands, tables, leaves)
        elif choices.summing == "packed":
            op = _packed(operands, tables, leaves)
        else:
            op = SumLeaves(*operands, tables, leaves)
        fixed = not leaves.dtype.is_float
        kind = DType.I32 if fixed else leaves.dtype
        score = TensorType((leaves.base.size,), kind, QParams(leaves.unit) if fixed else None)
        self._bounds["score"] = leaves.bound
        self._add(self._in_blocks(op, score), "score", score)

    def _in_blocks(self, op: _Sum, score: TensorType) -> _Sum:
        """With the rows that it takes at once."""
        memory, rank = self._options.memory, self._types["rank"]
        if memory is None:
            return op
        items = [i for part in (*self._ops, op) for i in part.items("m")]
        if isinstance(op, SumMixed):
            op = replace(op, words_at_once=waiting(items, memory)[0])
        row = rank.dtype.size * rank.count + score.dtype.size * score.count + op.row_bytes(self._types)
        return replace(op, block=block_rows(items, row, memory))

    def sum_linear(self, ensemble: TreeEnsemble, layout: Layout, tables: TreeTables) -> None:
        where, spec = str(ensemble.loc), self._options.spec
        if self._options.leaf is not DType.F64:
            what = f"linear trees have no bound with --leaf {self._options.leaf.label}"
            raise UnsupportedError(where, what, "use --leaf float64")
        if any(s.single for s in spec.signals):
            raise UnsupportedError(where, "linear trees with float32 sensor maps", "use arithmetic = float64 in --spec")
        linear = ensemble.forest.linear
        assert linear is not None
        op = SumLinear(
            ("rank", "x"),
            ("score",),
            ensemble.loc,
            tables,
            ensemble.forest.leaf_value[layout.leaf, 0],
            _linear_in_layout(linear, layout.leaf),
            ensemble.base,
            spec,
            ensemble.forest.zero_band,
        )
        self._bounds["score"] = Bound(0.0, float("-inf"), float("inf"))
        score = TensorType((ensemble.base.size,), DType.F64)
        self._add(self._in_blocks(op, score), "score", score)

    def average(self, op: Average) -> None:
        """Fixed point takes the mean in its scale; floats divide, where the mean is read as it is."""
        kind = self._types[self._value]
        bound = self._bounds[self._value]
        mean = Bound(bound.error / op.count, bound.range_low / op.count, bound.range_high / op.count)
        if kind.q is not None:
            self._types[self._value] = replace(kind, q=QParams(kind.q.scale / op.count))
            self._bounds[self._value] = mean
            return
        if self._model.outputs[0] not in op.outputs and kind.dtype is DType.F64:
            self._divisor = op.count  # ScaleScores divides before it rounds to float32
            self._bounds[self._value] = mean
            return
        divide = DivideScores((self._value,), ("mean",), op.loc, kind.dtype, op.count, kind.count)
        self._bounds["mean"] = Bound(mean.error * (1 + 2.0**-20), mean.range_low, mean.range_high)
        self._add(divide, "mean", kind)

    def link(self, op: Link) -> None:
        kind = self._types[self._value]
        real = TensorType(kind.shape, DType.F32)
        if kind.dtype is not DType.F32:
            scale = kind.q.scale if kind.q is not None else 1.0
            if scale > float(np.finfo(np.float32).max):
                what = "scores of this size are beyond the float32 that this output has"
                raise UnsupportedError(str(op.loc), what, "use --output raw, or --leaf float64")
            to_float = ScaleScores((self._value,), ("real",), op.loc, kind.dtype, scale, self._divisor, kind.count)
            self._add(to_float, "real", real)
        if op.kind == "softmax":
            self._add(Softmax((self._value,), ("prediction",), op.loc, kind.count), "prediction", real)
        elif op.kind != "identity":
            transform = Transform((self._value,), ("prediction",), op.loc, op.kind, op.slope, kind.count)
            self._add(transform, "prediction", real)

    def decide(self, op: Decide) -> None:
        kind = self._types[self._value]
        index = TensorType((1,), DType.I32)
        if kind.count > 1:
            self._add(ArgMax((self._value,), ("class",), op.loc, kind.dtype, kind.count), "class", index)
            return
        limit = _limit(op.threshold, kind)
        self._add(Above((self._value,), ("class",), op.loc, kind.dtype, limit), "class", index)

    def model(self) -> Model:
        return replace(
            self._model,
            level="machine",
            types=self._types,
            ops=tuple(self._ops),
            outputs=(self._value,),
            bounds=self._bounds,
        )


_Sum = SumBranches | SumLeaves | SumLinear | SumMixed | SumPacked
_Operands = tuple[tuple[str, ...], tuple[str, ...], Loc]


def _branches(operands: _Operands, tables: TreeTables, leaves: PackedLeaves) -> SumBranches:
    order = order_trees(tables, int(leaves.base.size), leaves.factor, not leaves.dtype.is_float)
    return SumBranches(*operands, tables, leaves, order)


def _packed(operands: _Operands, tables: TreeTables, leaves: PackedLeaves) -> SumPacked:
    form = form_for(tables, int(np.abs(leaves.leaf.astype(np.int64)).max(initial=0)))
    if form is None:
        raise InternalError(str(operands[2]), "packed trees were chosen that do not fit their words")
    pairs, bits = form
    order = np.lexsort((np.arange(tables.n_trees), -leaves.factor, np.arange(tables.n_trees) % leaves.base.size))
    words = make_words(tables, pairs, bits, leaves.leaf[:, 0], order)
    return SumPacked(*operands, tables, leaves, bits, words)


def _mixed(operands: _Operands, tables: TreeTables, split: Split) -> SumMixed:
    code, words = (tables_of(tables, trees) for trees in split.trees)
    sums = (_branches(operands, code, split.leaves[0]), _packed(operands, words, split.leaves[1]))
    return SumMixed(*operands, tables, split.whole, *sums, *split.trees, *split.units)


def _limit(threshold: float, kind: TensorType) -> float:
    """The largest finite score of the type that is not above ``threshold``."""
    if kind.q is not None:
        # Exact: a quotient of floats may round over a tie, and -5e-324 over a large unit would become zero.
        units = DType.I32.max if isinf(threshold) else floor(Fraction(threshold) / Fraction(kind.q.scale))
        return float(min(max(units, DType.I32.min), DType.I32.max))
    top = float(np.finfo(kind.dtype.np).max)
    value = np.clip(threshold, -top, top)
    near = kind.dtype.np.type(value)
    return float(np.nextafter(near, kind.dtype.np.type(-np.inf)) if near > value else near)


def _leaf_source(ensemble: TreeEnsemble, layout: Layout) -> LeafSource:
    value = ensemble.forest.leaf_value[layout.leaf]
    first = np.concatenate([[0], np.cumsum(layout.sizes + 1)]).astype(np.int64)
    return LeafSource(value, first, np.asarray(ensemble.base, np.float64))


def _linear_in_layout(linear: LinearLeaves, leaf: Array) -> LinearLeaves:
    """The linear models of the leaves in layout order."""
    count = np.diff(linear.first_term)[leaf]
    first = np.concatenate([[0], np.cumsum(count)]).astype(np.int64)
    terms = np.repeat(linear.first_term[leaf], count) + np.arange(int(first[-1])) - np.repeat(first[:-1], count)
    return LinearLeaves(linear.const[leaf], first, linear.feature[terms], linear.coef[terms])
