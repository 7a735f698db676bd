"""LightGBM's text format, second step: keys and values to a Model of source ops.

Every key, objective and decision_type bit must be known: nothing is silently ignored. Semantics as checked against
LightGBM 4.7 (docs/numerics.md, "LightGBM").
"""

from __future__ import annotations

import hashlib
import re
import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice

import numpy as np

from mcugen.core.types import DType, Feature, Loc, Model, Source, TensorType
from mcugen.errors import InputError, UnsupportedError
from mcugen.frontends.lightgbm_scanner import Block, Scan, scan
from mcugen.frontends.lightgbm_tree import TreeParser
from mcugen.frontends.objective import CLASSIFIERS, Objective, parse_objective
from mcugen.trees.forest import Forest
from mcugen.trees.source import Average, Link, TreeEnsemble

_HEADER = frozenset(
    "version num_class num_tree_per_iteration label_index max_feature_idx objective average_output feature_names "
    "monotone_constraints feature_infos tree_sizes".split()
)
_VERSIONS = ("v2", "v3", "v4")
MAX_FEATURES = 65535


@dataclass(frozen=True, slots=True)
class _Header:
    n_features: int
    per_iteration: int
    objective: Objective
    average: bool
    names: tuple[str, ...]
    infos: tuple[str, ...]
    n_trees: int


def load_text(data: bytes, file: str, name: str, num_iteration: int | None = None, start_iteration: int = 0) -> Model:
    """The model of a text file.

    ``num_iteration`` None means all from ``start_iteration`` on, as in ``Booster.predict``. The values are
    x (F,), raw (K,) and prediction (K,), all float64; outputs are raw and prediction.
    """
    text = scan(data, file)
    header = _parse_header(text, file)
    blocks, iterations = _select(text, header, file, num_iteration, start_iteration)
    parser = TreeParser(file, header.n_features)
    with warnings.catch_warnings():
        # numpy only warns when text follows the numbers; here that is a broken file.
        warnings.simplefilter("error", DeprecationWarning)
        for block in blocks:
            parser.add(block)
    forest = parser.build(header.per_iteration)
    source = Source(file, "lightgbm", hashlib.sha256(data).hexdigest())
    return _model(name, file, header, forest, iterations, _features(text, header, file), source)


def _parse_header(text: Scan, file: str) -> _Header:
    head = text.header
    for key in head:
        if key not in _HEADER:
            raise UnsupportedError(
                f"{file}: header", f"unknown key '{key}'", "this model is from a LightGBM that mcugen does not know"
            )
    if head.get("version") not in _VERSIONS:
        raise UnsupportedError(f"{file}: version", f"'{head.get('version')}' is not one of {', '.join(_VERSIONS)}")
    n_features = _number(head, "max_feature_idx", file, 0) + 1
    if n_features > MAX_FEATURES:
        raise UnsupportedError(f"{file}: max_feature_idx", f"{n_features} features; the limit is {MAX_FEATURES}")
    per_iteration = _number(head, "num_tree_per_iteration", file, 1)
    num_class = _number(head, "num_class", file, 1)
    objective = parse_objective(head.get("objective"), file)
    if objective.num_class not in (None, per_iteration) or num_class != per_iteration:
        raise InputError(f"{file}: header", "num_class, num_tree_per_iteration and the objective disagree")
    # At blanks only, as LightGBM does: a name may hold a tab or a no-break space.
    names = tuple(filter(None, head.get("feature_names", "").split(" ")))
    infos = tuple(head.get("feature_infos", "").split())
    for key, found in (("feature_names", names), ("feature_infos", infos)):
        if len(found) != n_features:
            raise InputError(f"{file}: {key}", f"{len(found)} entries for {n_features} features (max_feature_idx + 1)")
    sizes = head.get("tree_sizes", "").split()
    return _Header(n_features, per_iteration, objective, "average_output" in head, names, infos, len(sizes))


def _number(head: dict[str, str], key: str, file: str, low: int) -> int:
    value = head.get(key, "").strip()
    if not re.fullmatch(r"[0-9]{1,9}", value) or int(value) < low:
        what = f"must be a whole number from {low} on, found '{value[:30]}'" if key in head else "the key is missing"
        raise InputError(f"{file}: {key}", what)
    return int(value)


def _select(
    text: Scan, header: _Header, file: str, num_iteration: int | None, start_iteration: int
) -> tuple[Iterable[Block], int]:
    """The tree blocks that take part, and the number of iterations they make."""
    k = header.per_iteration
    if header.n_trees == 0:
        raise InputError(file, "the model has no trees", "train at least one iteration")
    if header.n_trees % k:
        raise InputError(f"{file}: tree_sizes", f"{header.n_trees} trees are no multiple of num_tree_per_iteration={k}")
    total = header.n_trees // k
    if not 0 <= start_iteration < total:
        raise InputError("--start-iteration", f"{start_iteration} is outside of the model's {total} iterations")
    if num_iteration is not None and num_iteration < 1:
        raise InputError("--num-iteration", f"{num_iteration} is not above 0")
    count = total - start_iteration if num_iteration is None else min(num_iteration, total - start_iteration)

    def counted() -> Iterable[Block]:
        seen = 0
        for block in text.trees:
            seen += 1
            yield block
        if seen != header.n_trees:
            raise InputError(
                file,
                f"tree_sizes names {header.n_trees} trees, the file has {seen}",
                "the file is damaged; save the model again",
            )

    if start_iteration == 0 and count == total:
        return counted(), count
    return islice(text.trees, start_iteration * k, (start_iteration + count) * k), count


def _features(text: Scan, header: _Header, file: str) -> tuple[Feature, ...]:
    categorical = [i for i, info in enumerate(header.infos) if ":" in info and not info.startswith("[")]
    labels: dict[int, tuple[str, ...]] = {}
    if text.pandas_categorical:
        owners = _pandas_owners(text, header, categorical)
        if len(owners) == len(text.pandas_categorical):
            for index, values in zip(owners, text.pandas_categorical, strict=True):
                labels[index] = tuple(str(v) for v in values)
    features = []
    for i, name in enumerate(header.names):
        low, high = _range(header.infos[i], f"{file}: feature_infos of {name}")
        features.append(Feature(name=name, categories=labels.get(i), low=low, high=high))
    return tuple(features)


def _pandas_owners(text: Scan, header: _Header, categorical: list[int]) -> list[int]:
    """The features that pandas gave as categories: the parameter names them, else feature_infos tells."""
    words = [w for w in text.parameters.get("categorical_feature", "").split(",") if w]
    if words and words[0].startswith("name:"):
        words[0] = words[0][len("name:") :]
    owners = [int(w) if w.isdigit() else header.names.index(w) for w in words if w.isdigit() or w in header.names]
    expected = len(text.pandas_categorical or ())
    if len(owners) == expected and all(o < header.n_features for o in owners):
        return sorted(owners)
    return categorical


def _range(info: str, where: str) -> tuple[float | None, float | None]:
    """Low and high of ``[low:high]``; None for categories and constant features."""
    if not info.startswith("["):
        return None, None
    low, _, high = info.strip("[]").partition(":")
    try:
        return float(low), float(high)
    except ValueError:
        raise InputError(where, f"'{info[:40]}' is no range") from None


def _model(
    name: str,
    file: str,
    header: _Header,
    forest: Forest,
    iterations: int,
    features: tuple[Feature, ...],
    source: Source,
) -> Model:
    k = header.per_iteration
    wide = TensorType((k,), DType.F64)
    loc = Loc(file, "Tree=*")
    ensemble = TreeEnsemble(("x",), ("raw",), loc, forest, np.zeros(k))
    types = {"x": TensorType((header.n_features,), DType.F64), "raw": wide, "prediction": wide}
    objective = Loc(file, "objective")
    link_input = "raw"
    ops: tuple[TreeEnsemble | Average | Link, ...] = (ensemble,)
    if header.average:
        ops += (Average(("raw",), ("mean",), Loc(file, "average_output"), iterations),)
        types["mean"] = wide
        link_input = "mean"
    ops += (Link((link_input,), ("prediction",), objective, header.objective.link, header.objective.slope),)
    labels: tuple[str, ...] = ()
    if header.objective.name in CLASSIFIERS:
        labels = ("0", "1") if k == 1 else tuple(str(i) for i in range(k))
    return Model(name, "source", ("x",), ("raw", "prediction"), types, ops, source, features, labels)
