"""Source ops of the tree family: what the model means in float64, with the library's order of operations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from mcugen.core.op import SourceOp
from mcugen.core.passes import value_type
from mcugen.core.types import Array, TensorType
from mcugen.errors import InternalError
from mcugen.trees.forest import Forest
from mcugen.trees.walk import leaf_index, leaf_outputs

#: Link functions, from raw score (or mean) to prediction. Each maps (N, K) float64 to the same shape.
LINKS = ("identity", "sigmoid", "softmax", "exp", "log1p_exp", "signed_square")


@dataclass(frozen=True, slots=True, eq=False)
class TreeEnsemble(SourceOp):
    """x (F,) -> raw (K,): ``base + sum over trees``, in float64, added from ``base`` in the order of the trees."""

    forest: Forest
    base: Array

    def check(self, types: Mapping[str, TensorType]) -> None:
        x = value_type(types, self.inputs[0], "TreeEnsemble")
        if x.shape != (self.forest.n_features,) or self.base.shape != (self.forest.outputs,):
            raise InternalError(str(self.loc), "TreeEnsemble: shapes of x or base do not fit the forest")

    def eval(self, *args: Array) -> tuple[Array, ...]:
        """x (N, F) float64 -> raw (N, K) float64."""
        x = np.ascontiguousarray(args[0], np.float64)
        return (self.scores(x, leaf_index(self.forest, x)),)

    def scores(self, x: Array, leaf: Array) -> Array:
        """(N, K) sums of the leaves (N, T) that the rows of x reach."""
        out = np.tile(self.base.astype(np.float64), (len(x), 1))
        leaf_outputs(self.forest, x, leaf, out)
        return out


@dataclass(frozen=True, slots=True, eq=False)
class Average(SourceOp):
    """raw (K,) -> raw / count."""

    count: int

    def check(self, types: Mapping[str, TensorType]) -> None:
        if self.count < 1:
            raise InternalError(str(self.loc), "Average over no trees")

    def eval(self, *args: Array) -> tuple[Array, ...]:
        return (args[0] / self.count,)


@dataclass(frozen=True, slots=True, eq=False)
class Link(SourceOp):
    """raw (K,) -> prediction (K,) by the objective's transform ``kind``; ``slope`` is k in sigmoid(k * raw)."""

    kind: str
    slope: float = 1.0

    def check(self, types: Mapping[str, TensorType]) -> None:
        if self.kind not in LINKS:
            raise InternalError(str(self.loc), f"unknown link {self.kind}")

    def eval(self, *args: Array) -> tuple[Array, ...]:
        s = args[0]
        with np.errstate(over="ignore"):
            if self.kind == "sigmoid":
                return (1.0 / (1.0 + np.exp(-self.slope * s)),)
            if self.kind == "softmax":
                e = np.exp(s - s.max(axis=1, keepdims=True))
                return (e / e.sum(axis=1, keepdims=True),)
            if self.kind == "exp":
                return (np.exp(s),)
            if self.kind == "log1p_exp":
                return (np.logaddexp(0.0, s),)
            if self.kind == "signed_square":
                return (np.sign(s) * s * s,)
        return (s,)


@dataclass(frozen=True, slots=True, eq=False)
class Decide(SourceOp):
    """raw (K,) -> class index (1,).

    K = 1: class 1 if the score is above ``threshold``. K > 1: argmax, the lowest index on ties.
    """

    threshold: float = 0.0

    def check(self, types: Mapping[str, TensorType]) -> None:
        if value_type(types, self.outputs[0], "Decide").shape != (1,):
            raise InternalError(str(self.loc), "Decide gives one index")

    def eval(self, *args: Array) -> tuple[Array, ...]:
        s = args[0]
        if s.shape[1] == 1:
            return ((s > self.threshold).astype(np.int64),)
        return (s.argmax(axis=1).astype(np.int64)[:, None],)
