"""The two references of a tree model on given inputs, and how far apart they are: what an export must prove of itself.

library == float model is a matter of the tests. Here, for this very model: float model ~ integer reference within the
proven bound, and the same leaf in every tree. That the compiled C gives the reference's bits is verify's to show.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mcugen.core.passes import evaluate
from mcugen.core.types import Array, Bound, DType, Model
from mcugen.errors import InternalError
from mcugen.trees.lower import ensemble_of
from mcugen.trees.ranking import Ranking
from mcugen.trees.signals import InputSpec
from mcugen.trees.source import Average
from mcugen.trees.summing import Summing
from mcugen.trees.tables import TreeTables
from mcugen.trees.walk import leaf_index


@dataclass(frozen=True, slots=True, eq=False)
class Reference:
    """What the integer reference and the float model say of inputs ``x`` (N, F).

    ``y``: outputs of the C (N, K). ``trace``: (N, T) leaves, in the type that NAME_leaves writes. ``worst``: largest
    distance of a score from the float model's, in the unit of the score; ``low`` and ``high``: the scores seen.
    """

    x: Array
    y: Array
    trace: Array
    worst: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Distance:
    """Over ``rows`` of data: distances of the score, and labels that flip (None where there are no classes)."""

    rows: int
    mean_error: float
    max_error: float
    span: float
    flips: int | None


def summing_op(machine: Model) -> Summing:
    """The op that walks the trees of a machine model."""
    return next(op for op in machine.ops if isinstance(op, Summing))


def walked(machine: Model) -> tuple[Ranking, TreeTables]:
    """What make_vectors needs: the op that ranks, and the tables that are walked."""
    return next(op for op in machine.ops if isinstance(op, Ranking)), summing_op(machine).tables


def reference(source: Model, machine: Model, spec: InputSpec, x: Array) -> Reference:
    """Both references on ``x``; InternalError where they break the proven bound or take another leaf."""
    env = evaluate(machine, {machine.inputs[0]: x})
    op, ensemble = summing_op(machine), ensemble_of(source)
    leaf = op.leaf_names(env[op.inputs[0]])
    values = spec.values(x)
    float_leaf = leaf_index(ensemble.forest, values)
    wrong = np.argwhere(leaf != float_leaf)
    if wrong.size:
        row, tree = wrong[0].tolist()
        raise InternalError(f"{machine.name}: vector {row}, tree {tree}", "the integer reference takes another leaf")
    real = ensemble.scores(values, float_leaf)
    found = _raw(machine, env)
    with np.errstate(invalid="ignore"):
        gap = np.abs(found - real)
    gap = np.where((found == real) | np.isnan(real) & np.isnan(found), 0.0, gap)
    bound = op.bound_error
    worst = float(gap.max(initial=0.0))
    if not worst <= bound:
        raise InternalError(machine.name, f"a score is off by {worst}, above the bound {bound}")
    trace = leaf.astype(DType.U16.np if op.tables.name_ctype == "uint16_t" else DType.U32.np)
    low, high = float(np.nanmin(real, initial=np.inf)), float(np.nanmax(real, initial=-np.inf))
    return Reference(x, env[machine.outputs[0]], trace, worst, low, high)


def _raw(machine: Model, env: dict[str, Array]) -> Array:
    """(N, K) sums of the leaves in the unit of the score: the scale of a value may hold a mean, the leaves' own not."""
    op = summing_op(machine)
    return np.asarray(env[op.outputs[0]].astype(np.float64) * op.unit)


def mean_of(source: Model) -> int:
    """How many trees a score is the mean of: 1 where it is their sum. Errors are told in the unit of the score."""
    return next((o.count for o in source.ops if isinstance(o, Average) and source.outputs[0] in o.outputs), 1)


def score_bound(machine: Model) -> Bound:
    """The proven bound of the score that the library gives."""
    return machine.bounds.get("mean", machine.bounds["score"])


def distance(source: Model, machine: Model, x: Array, real_x: Array) -> Distance:
    """The float model on ``real_x`` (N, F, its own units) against the C on ``x`` (N, F, the declared type).

    What quantizing the inputs costs is counted here, and not in the proven bound.
    """
    real = evaluate(source, {source.inputs[0]: real_x})["raw"]
    count = mean_of(source)
    real, found = real / count, _raw(machine, evaluate(machine, {machine.inputs[0]: x})) / count
    gap = np.abs(found - real)
    flips = int(np.count_nonzero(_labels(found, source) != _labels(real, source))) if source.labels else None
    return Distance(len(real), float(gap.mean()), float(gap.max()), float(real.max() - real.min()), flips)


def _labels(score: Array, model: Model) -> Array:
    if score.shape[1] == 1:
        return np.asarray(score[:, 0] > model.class_above)
    return np.asarray(score.argmax(axis=1))
