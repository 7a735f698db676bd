"""Handlers of what stands behind a tree ensemble: transforms of its scores, and the packing of results."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

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
    """Division by the number of trees: a mean."""
    divisor = c.values[c.node.inputs[1]]
    alone = isinstance(divisor, Constant) and divisor.data.size == 1
    count = float(divisor.data.reshape(-1)[0]) if alone and isinstance(divisor, Constant) else 0.0
    if not (count >= 1 and count.is_integer() and count < 2**24):
        c.refuse("divides by something else than a whole number", HINT)
    if parts.link != "identity" or parts.average is not None or parts.labels:
        c.refuse("divides what was transformed or averaged before", HINT)
    return replace(parts, average=int(count))


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
}
