"""One tree of LightGBM's text format to the node arrays of a Forest, with every check that a corrupt file needs."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from mcugen.core.types import Array
from mcugen.errors import InputError, UnsupportedError
from mcugen.frontends.lightgbm_scanner import Block
from mcugen.trees.forest import Forest, ForestBuilder, LinearLeaves, Missing

#: Inputs at or below this magnitude are zero to LightGBM: the double 1e-35 rounded to float32.
ZERO_BAND = float(np.float32(1e-35))

_KEYS = frozenset(
    "num_leaves num_cat split_feature split_gain threshold decision_type left_child right_child leaf_value leaf_weight "
    "leaf_count internal_value internal_weight internal_count cat_boundaries cat_threshold is_linear leaf_const "
    "num_features leaf_features leaf_coeff shrinkage".split()
)
_CATEGORICAL, _DEFAULT_LEFT, _MISSING = 1, 2, 12


class TreeParser:
    """Collects the trees of one file."""

    def __init__(self, file: str, n_features: int) -> None:
        self._file = file
        self._n_features = n_features
        self._builder = ForestBuilder()
        self._linear: list[tuple[Array, Array, Array, Array]] = []
        self._any_linear = False

    def add(self, block: Block) -> None:
        """One tree. InputError or UnsupportedError with the tree and the key where it is wrong."""
        reader = _TreeReader(self._file, block)
        leaves = reader.scalar("num_leaves", 1)
        n = leaves - 1
        feature = reader.ints("split_feature", n)
        reader.require(
            _inside(feature, 0, self._n_features),
            "split_feature",
            f"a feature index outside of 0..{self._n_features - 1}",
        )
        decision = reader.ints("decision_type", n)
        reader.check_decision(decision)
        categorical = (decision & _CATEGORICAL) != 0
        threshold = reader.floats("threshold", n, allow_inf=True)
        left, right = reader.children(n, leaves)
        value = reader.floats("leaf_value", leaves)
        sets = self._category_sets(reader, categorical, threshold)
        missing = ((decision & _MISSING) >> 2).astype(np.uint8)
        default_left = (decision & _DEFAULT_LEFT) != 0
        # A categorical node of LightGBM ignores missing type and default side: all that is not in the set goes right.
        self._builder.add_tree(
            feature=feature,
            threshold=np.where(categorical, 0.0, threshold),
            left=left,
            right=right,
            missing=np.where(categorical, Missing.NONE, missing),
            default_left=default_left & ~categorical & (missing != Missing.NONE),
            categorical=categorical,
            category_set=sets,
            node_count=reader.counts("internal_count", n),
            leaf_value=value,
            leaf_count=reader.counts("leaf_count", leaves),
        )
        self._add_linear(reader, leaves, value)

    def _category_sets(self, reader: _TreeReader, categorical: Array, threshold: Array) -> Array:
        """(n,) the number of each node's set of categories, -1 where it has none."""
        sets = np.full(categorical.size, -1, np.int32)
        count = reader.scalar("num_cat", 0)
        nodes = np.flatnonzero(categorical)
        if count == 0 and nodes.size == 0:
            return sets
        bounds = reader.ints("cat_boundaries", count + 1)
        words = reader.ints("cat_threshold", int(bounds[-1]) if bounds.size else 0)
        ok = bounds[0] == 0 and bool(np.all(np.diff(bounds) > 0)) and bool(np.all((words >= 0) & (words < 2**32)))
        reader.require(ok, "cat_boundaries", "bounds must ascend from 0, words must be 32-bit")
        index = threshold[nodes]
        reader.require(
            bool(np.all((index >= 0) & (index < count) & (index == np.floor(index)))),
            "threshold",
            "no such categorical split",
        )
        for node, which in zip(nodes.tolist(), index.astype(np.int64).tolist(), strict=True):
            bits = words[bounds[which] : bounds[which + 1]].astype("<u4").view(np.uint8)
            sets[node] = self._builder.add_set(np.flatnonzero(np.unpackbits(bits, bitorder="little")))
        return sets

    def _add_linear(self, reader: _TreeReader, leaves: int, value: Array) -> None:
        if not reader.flag("is_linear"):
            empty = np.zeros(0)
            self._linear.append((value, np.zeros(leaves, np.int64), empty, empty))
            return
        self._any_linear = True
        terms = reader.ints("num_features", leaves)
        reader.require(bool(np.all(terms >= 0)), "num_features", "a negative count")
        total = int(terms.sum())
        feature = reader.ints("leaf_features", total)
        reader.require(_inside(feature, 0, self._n_features), "leaf_features", "a feature index out of range")
        self._linear.append((reader.floats("leaf_const", leaves), terms, feature, reader.floats("leaf_coeff", total)))

    def build(self, outputs: int) -> Forest:
        """All trees as one forest."""
        linear = None
        if self._any_linear:
            const, terms, feature, coef = (np.concatenate(parts) for parts in zip(*self._linear, strict=True))
            first = np.concatenate([[0], np.cumsum(terms)]).astype(np.int64)
            linear = LinearLeaves(const, first, feature.astype(np.int32), coef.astype(np.float64))
        return self._builder.build(
            n_features=self._n_features, outputs=outputs, zero_band=ZERO_BAND, category_match="trunc", linear=linear
        )


def _inside(values: Array, low: int, high: int) -> bool:
    return bool(np.all((values >= low) & (values < high)))


class _TreeReader:
    """Typed access to the keys of one block."""

    def __init__(self, file: str, block: Block) -> None:
        self._where = f"{file}:{block.line} (Tree={block.index})"
        self._fields = block.fields
        for key in block.fields:
            if key not in _KEYS:
                raise UnsupportedError(
                    f"{self._where} {key}", "unknown key", "this model is from a LightGBM that mcugen does not know"
                )

    def require(self, ok: bool, key: str, what: str) -> None:
        if not ok:
            raise InputError(f"{self._where} {key}", what, "the file is damaged; save the model again")

    def scalar(self, key: str, low: int) -> int:
        value = self.ints(key, 1)
        self.require(int(value[0]) >= low, key, f"must be at least {low}")
        return int(value[0])

    def flag(self, key: str) -> bool:
        if key not in self._fields:
            return False
        value = self.scalar(key, 0)
        self.require(value <= 1, key, "must be 0 or 1")
        return value == 1

    def ints(self, key: str, count: int) -> Array:
        return self._numbers(key, count, np.int64)

    def floats(self, key: str, count: int, allow_inf: bool = False) -> Array:
        values = self._numbers(key, count, np.float64)
        bad = np.isnan(values) if allow_inf else ~np.isfinite(values)
        self.require(
            not bad.any(), key, f"entry {int(np.argmax(bad)) if bad.any() else 0} is not a number that can be used"
        )
        return values

    def counts(self, key: str, count: int) -> Array:
        """Training rows a node or leaf saw, as a profile; ones where the file has none (a single leaf has none)."""
        if not self._fields.get(key, b"").strip():
            return np.ones(count)
        return np.maximum(self.floats(key, count), 0.0)

    def _numbers(self, key: str, count: int, dtype: npt.DTypeLike) -> Array:
        if key not in self._fields and count:
            raise InputError(self._where, f"the key '{key}' is missing", "the file is truncated; save the model again")
        text = self._fields.get(key, b"")
        try:
            values = np.fromstring(text, dtype=dtype, sep=" ") if text.strip() else np.zeros(0, dtype)
        except (ValueError, DeprecationWarning, OverflowError):
            raise InputError(f"{self._where} {key}", "holds something that is not a number") from None
        self.require(values.size == count, key, f"{values.size} entries where the tree needs {count}")
        return values

    def check_decision(self, decision: Array) -> None:
        known = _CATEGORICAL | _DEFAULT_LEFT | _MISSING
        bad = (decision < 0) | ((decision & ~known) != 0) | ((decision & _MISSING) == _MISSING)
        if bad.any():
            value = int(decision[np.argmax(bad)])
            raise UnsupportedError(f"{self._where} decision_type", f"unknown bits in {value}", "bits 0 to 3 are known")

    def children(self, n: int, leaves: int) -> tuple[Array, Array]:
        """Left and right children; every node but the root and every leaf must hang at exactly one place."""
        left, right = self.ints("left_child", n), self.ints("right_child", n)
        both = np.concatenate([left, right])
        self.require(_inside(both, -leaves, max(n, 1)), "left_child", "a child index out of range")
        seen = np.bincount(np.where(both >= 0, both, n + ~both), minlength=n + leaves) if n else np.ones(1, int)
        expected = np.ones(n + leaves, int)
        if n:
            expected[0] = 0
            self.require(
                np.array_equal(seen, expected), "left_child", "a node hangs at two places or at none: not a tree"
            )
            self._require_reachable(left, right)
        return left, right

    def _require_reachable(self, left: Array, right: Array) -> None:
        """Each node has one parent; what is left to exclude is a cycle apart from the root."""
        order = np.arange(left.size)
        children_later = np.all((left < 0) | (left > order)) and np.all((right < 0) | (right > order))
        if children_later:
            return
        frontier, reached = np.zeros(1, np.int64), 0
        while frontier.size:
            reached += frontier.size
            below = np.concatenate([left[frontier], right[frontier]])
            frontier = below[below >= 0]
        self.require(reached == left.size, "left_child", "a cycle")
