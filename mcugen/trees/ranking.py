"""What ops share that turn inputs into ranks: the columns, and the ranks that they all must give."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mcugen.core.types import Array, DType
from mcugen.trees.columns import Columns
from mcugen.trees.keys import keys_of
from mcugen.trees.support import TreeOp


@dataclass(frozen=True, slots=True, eq=False)
class Ranking(TreeOp):
    """x (F,) -> rank (columns,), exact.

    ``sentinel``: (F,) the input that means "missing", where ``has_sentinel`` (integer inputs only).
    """

    dtype: DType
    columns: Columns
    has_sentinel: Array
    sentinel: Array

    def ranks(self, x: Array) -> Array:
        """(N, F) inputs -> (N, columns) int64 ranks."""
        c = self.columns
        rank = np.zeros((len(x), max(c.n_columns, 1)), np.int64)
        for i, keys in enumerate(parts(c.keys, c.count)):
            feature = int(c.feature[i])
            key = keys_of(np.ascontiguousarray(x[:, feature]), self.dtype)
            missing = np.isnan(x[:, feature]) if self.dtype.is_float else np.zeros(len(x), np.bool_)
            if self.has_sentinel[feature]:
                missing = missing | (key == self.sentinel[feature])
            if c.zero_missing[i]:
                missing = missing | (key >= c.zero_low[i]) & (key <= c.zero_high[i])
            rank[:, i] = np.where(missing, c.missing_rank[i], np.searchsorted(keys, key, side="left"))
        for g, categories in enumerate(parts(c.categories, c.category_count)):
            with np.errstate(invalid="ignore"):  # a signaling NaN
                value = x[:, int(c.category_feature[g])].astype(np.float64)
            rank[:, c.n_numeric + g] = _codes(value, categories, c.exact)
        return rank


def parts(flat: Array, counts: Array) -> list[Array]:
    """``flat`` cut into pieces of ``counts``."""
    return np.split(flat, np.cumsum(counts)[:-1]) if counts.size else []


def _codes(value: Array, categories: Array, exact: bool) -> Array:
    """Codes of category values: one behind the last for all that has none."""
    with np.errstate(invalid="ignore"):
        usable = (value > -1.0) & (value < 2.0**31)
        whole = np.trunc(np.where(usable, value, 0.0))
    if exact:
        usable &= whole == value
    place = np.searchsorted(categories, whole)
    hit = usable & (place < categories.size)
    if categories.size:
        hit &= categories[np.minimum(place, categories.size - 1)] == whole
    return np.where(hit, place, categories.size)
