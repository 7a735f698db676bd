"""Handlers of what stands behind a tree ensemble: transforms of its scores, and the packing of results."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from mcugen.core.types import Array
from mcugen.frontends.onnx.call import Call
from mcugen.frontends.onnx.ml_ensembles import Parts
from mcugen.frontends.onnx.ml_values import ML
from mcugen.frontends.onnx.values import Constant

HINT = "do it in the application, on the result"


def _named(c: Call, parts: Parts) -> Parts:
    return parts


def _transform(kind: str) -> Callable[[Call, Parts], Parts]:
    def read(c: Call, parts: Parts) -> Parts:
        if parts.link != "identity" or parts.labels or (kind == "softmax" and parts.forest.outputs == 1):
            c.refuse("transforms what the ensemble has transformed, or probabilities", HINT)
        return replace(parts, link=kind)

    return read


def _divide(c: Call, parts: Parts) -> Parts:
    """Division by the number of trees: a mean. By anything else: smaller leaves."""
    count = _constant(c, parts, 1)
    whole = count.size == 1 and count[0] >= 1 and float(count[0]).is_integer() and count[0] < 2**24
    if whole and parts.link == "identity" and parts.average is None and not parts.labels:
        return replace(parts, average=int(count[0]))
    with np.errstate(divide="ignore"):
        return _scaled(c, parts, 1.0 / count)


def _multiply(c: Call, parts: Parts) -> Parts:
    """By 1, as onnxmltools writes behind LightGBM's probabilities; of exp(x): exp(x + log); of scores: their leaves."""
    return _scaled(c, parts, _constant(c, parts))


def _scaled(c: Call, parts: Parts, factor: Array) -> Parts:
    if (factor == 1.0).all():
        return parts
    if not (np.isfinite(factor).all() and (factor != 0.0).all()) or parts.labels:
        c.refuse("multiplies or divides scores by what no leaf can absorb", HINT)
    if parts.link == "exp" and (factor > 0.0).all():
        return replace(parts, base=parts.base + np.log(factor) * (parts.average or 1))
    if parts.link != "identity" or factor.size > 1:
        c.refuse("multiplies or divides what was transformed before", HINT)
    forest = replace(parts.forest, leaf_value=parts.forest.leaf_value * factor[0])
    error = parts.single_error * abs(float(factor[0]))
    return replace(parts, forest=forest, base=parts.base * factor[0], single_error=error)


def _add(sign: float) -> Callable[[Call, Parts], Parts]:
    def read(c: Call, parts: Parts) -> Parts:
        term = sign * _constant(c, parts, 1 if sign < 0 else None)
        if (term == 0.0).all():
            return parts
        if parts.link != "identity" or parts.labels or not np.isfinite(term).all():
            c.refuse("adds to what was transformed before, or to probabilities", HINT)
        return replace(parts, base=parts.base + term * (parts.average or 1))

    return read


def _constant(c: Call, parts: Parts, place: int | None = None) -> Array:
    """The constant operand, float64, one or one a score; ``place``: where it has to stand."""
    found = [(i, v) for i, v in enumerate(c.values[n] for n in c.node.inputs) if isinstance(v, Constant)]
    for i, v in found:
        data = np.asarray(v.data)
        if place in (None, i) and data.dtype.kind in "fiu" and data.size in (1, parts.forest.outputs):
            return np.asarray(data.reshape(-1), np.float64)
    c.refuse("works with something else than a constant for each score", HINT)


def _normalize(c: Call, parts: Parts) -> Parts:
    """Softmax adds up to one: its L1 norm is 1."""
    if c.get_str("norm", "MAX") != "L1" or parts.link != "softmax":
        c.refuse("divides scores by their norm", HINT)
    return parts


#: What only names, packs or looks up the class label.
LABEL_OPS = frozenset({"ArrayFeatureExtractor", "Cast", "Identity", "Reshape", "Flatten", "Squeeze", "Unsqueeze"})
#: op -> its handler, from Parts to Parts.
AFTER_OPS: dict[tuple[str, str], Callable[[Call, Parts], Parts]] = {
    **{("", op): _named for op in ("Identity", "Cast", "Reshape", "Flatten", "Squeeze", "Unsqueeze")},
    (ML, "ZipMap"): _named,
    (ML, "Normalizer"): _normalize,
    ("", "Exp"): _transform("exp"),
    ("", "Sigmoid"): _transform("sigmoid"),
    ("", "Softmax"): _transform("softmax"),
    ("", "Div"): _divide,
    ("", "Mul"): _multiply,
    ("", "Add"): _add(1.0),
    ("", "Sub"): _add(-1.0),
}
