"""Categorical features of the histogram estimators: from scikit-learn's ordinal codes to what the C code gets.

Those estimators put an OrdinalEncoder before their trees. Whole-number categories stay the input, as they are; the
numbers of the encoder's codes are looked up here once. Text becomes its place in ``Feature.categories``.
"""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np

from mcugen.core.types import Array
from mcugen.errors import UnsupportedError

#: Categories at and above this never match (mcugen.trees.walk).
_LIMIT = 2**31


@dataclass(frozen=True, slots=True, eq=False)
class Categories:
    """Per feature: ``values[f]`` is the input that means code 0, 1, ... (int64), None where f is numerical;
    ``labels[f]`` the text of each code, where the input is the code itself."""

    values: tuple[Array | None, ...]
    labels: tuple[tuple[str, ...] | None, ...]

    @property
    def known(self) -> tuple[Array | None, ...] | None:
        """For Forest.known_categories: ascending; None without categorical features."""
        return self.values if any(v is not None for v in self.values) else None

    def members(self, feature: int, words: Array) -> Array:
        """The ascending categories of a bitset of codes, (8,) uint32."""
        values = self.values[feature]
        assert values is not None
        bits = np.unpackbits(np.asarray(words, "<u4").view(np.uint8), bitorder="little")
        codes = np.flatnonzero(bits)
        return np.sort(values[codes[codes < len(values)]])


def column_order(estimator: Any, n_features: int) -> Array:
    """(F,) int64: the user's column of each column that the trees see; the encoder puts categorical ones first."""
    flags = _flags(estimator)
    if flags is None:
        return np.arange(n_features)
    return np.concatenate([np.flatnonzero(flags), np.flatnonzero(~flags)])


def read_categories(estimator: Any, names: tuple[str, ...], where: str) -> Categories:
    """The categories of a fitted histogram estimator with the features ``names``.

    Raises UnsupportedError where a category is neither text nor a whole number from 0 to 2**31 - 1.
    """
    values: list[Array | None] = [None] * len(names)
    labels: list[tuple[str, ...] | None] = [None] * len(names)
    flags = _flags(estimator)
    if flags is not None:
        encoder = estimator._preprocessor.named_transformers_["encoder"]
        for feature, found in zip(np.flatnonzero(flags), encoder.categories_, strict=True):
            values[feature], labels[feature] = _one(found, f"{where}: feature {names[feature]}")
    return Categories(tuple(values), tuple(labels))


def _flags(estimator: Any) -> Array | None:
    """(F,) bool, or None if the estimator has no encoder."""
    if getattr(estimator, "_preprocessor", None) is None:
        return None
    return np.asarray(estimator.is_categorical_, np.bool_)


def _one(found: Array, where: str) -> tuple[Array, tuple[str, ...] | None]:
    items = list(found.tolist()) if isinstance(found, np.ndarray) else list(found)
    # The encoder puts NaN last and decodes it to NaN: the trees' missing side takes it.
    while items and isinstance(items[-1], float) and np.isnan(items[-1]):
        items.pop()
    others = [c for c in items if not isinstance(c, str)]
    if items and not others:
        return _locked(np.arange(len(items), dtype=np.int64)), tuple(items)
    mixed = len(others) < len(items)
    for c in others:
        if mixed or not _whole(c):
            raise UnsupportedError(
                where,
                f"category {c!r} is neither text nor a whole number from 0 to {_LIMIT - 1}",
                "number the categories 0, 1, 2, ... and train again",
            )
    return _locked(np.array([int(c) for c in items], np.int64)), None


def _whole(c: Any) -> bool:
    return isinstance(c, Real) and 0 <= float(c) < _LIMIT and float(c).is_integer()


def _locked(a: Array) -> Array:
    a.flags.writeable = False
    return a
