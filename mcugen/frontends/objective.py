"""LightGBM's ``objective=`` line: from its words to a link function."""

from __future__ import annotations

import math
from dataclasses import dataclass
from difflib import get_close_matches

from mcugen.errors import InputError, UnsupportedError

#: Objective -> (link, the words that may follow). Names as LightGBM's objective functions write them.
_OBJECTIVES: dict[str, tuple[str, frozenset[str]]] = {
    "regression": ("identity", frozenset({"sqrt"})),
    "regression_l1": ("identity", frozenset({"sqrt"})),
    "huber": ("identity", frozenset()),  # the one of its family that ignores reg_sqrt, and so never writes it
    "fair": ("identity", frozenset({"sqrt"})),
    "mape": ("identity", frozenset({"sqrt"})),
    "quantile": ("identity", frozenset({"sqrt", "alpha"})),
    "poisson": ("exp", frozenset()),
    "gamma": ("exp", frozenset()),
    "tweedie": ("exp", frozenset({"tweedie_variance_power"})),
    "binary": ("sigmoid", frozenset({"sigmoid"})),
    "multiclass": ("softmax", frozenset({"num_class"})),
    "multiclassova": ("sigmoid", frozenset({"num_class", "sigmoid"})),
    "cross_entropy": ("sigmoid", frozenset()),
    "cross_entropy_lambda": ("log1p_exp", frozenset()),
    "lambdarank": ("identity", frozenset()),
    "rank_xendcg": ("identity", frozenset()),
    "custom": ("identity", frozenset()),
}

#: Objectives whose scores name classes.
CLASSIFIERS = frozenset({"binary", "multiclass", "multiclassova", "cross_entropy"})


@dataclass(frozen=True, slots=True)
class Objective:
    """What the scores mean: ``link`` is a kind of trees.source.Link, ``slope`` the k of sigmoid(k * raw)."""

    name: str
    link: str
    slope: float
    num_class: int | None


def parse_objective(line: str | None, file: str) -> Objective:
    """The objective of a header line; None (a custom objective) has no transform."""
    if line is None or not line.strip():
        return Objective("custom", "identity", 1.0, None)
    name, *words = line.split()
    if name not in _OBJECTIVES:
        near = get_close_matches(name, _OBJECTIVES, 1)
        hint = f"did you mean '{near[0]}'? " if near else ""
        raise UnsupportedError(
            f"{file}: objective={line.strip()}",
            f"unknown objective '{name}'",
            f"{hint}known: {', '.join(sorted(_OBJECTIVES))}",
        )
    link, allowed = _OBJECTIVES[name]
    values: dict[str, float] = {}
    for word in words:
        key, _, value = word.partition(":")
        if key not in allowed:
            raise UnsupportedError(f"{file}: objective={line.strip()}", f"unknown word '{word}' after '{name}'")
        try:
            values[key] = float(value) if key != "sqrt" else 1.0
        except ValueError:
            raise InputError(f"{file}: objective={line.strip()}", f"'{word}' needs a number") from None
    slope = values.get("sigmoid", 1.0)
    if not (math.isfinite(slope) and slope > 0):
        raise InputError(f"{file}: objective={line.strip()}", "sigmoid must be above 0")
    classes = values.get("num_class")
    if "num_class" in allowed and (classes is None or not classes.is_integer() or classes < 1):
        raise InputError(f"{file}: objective={line.strip()}", f"'{name}' needs num_class, a whole number from 1 on")
    link = "signed_square" if "sqrt" in values else link
    return Objective(name, link, slope, None if classes is None else int(classes))
