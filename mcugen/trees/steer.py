"""Rows that go where they are told: which sides inputs can take at all, and inputs that take the ones not yet seen.

The inputs that reach a node are, for each feature on its own, some run of ordinary atoms and some special atoms. A
side is impossible exactly when its feature has no atom left: that is a proof, not a failed search.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mcugen.core.types import Array
from mcugen.trees.domains import Domains, LeftAtoms
from mcugen.trees.paths import Paths

_BATCH_BYTES = 1 << 25
_SPECIAL_SHARE = 0.1
_TOP, _BOTTOM = 1, 2  # the last value left of a test, the first one right of it


@dataclass(frozen=True, slots=True, eq=False)
class Steering:
    """What is known of the inputs of a model: ``paths``, ``domains`` and the atoms that pass each test."""

    paths: Paths
    domains: Domains
    left: LeftAtoms

    @property
    def batch(self) -> int:
        """Rows that can be built at once in moderate memory."""
        words = max(1, int(self.domains.words.max(initial=1)))
        return int(np.clip(_BATCH_BYTES // (256 * words * self.domains.n_features), 1, 512))


@dataclass(frozen=True, slots=True, eq=False)
class _Sets:
    """(B, F) sets of atoms: ordinary ``low <= atom < high``, special bits ``mask`` (B, F, M); ``edge``: where in it."""

    low: Array
    high: Array
    mask: Array
    edge: Array

    def copy(self) -> _Sets:
        return _Sets(self.low.copy(), self.high.copy(), self.mask.copy(), self.edge.copy())

    def possible(self) -> Array:
        """(B,) bool: no feature is without an atom."""
        some: Array = (self.low < self.high) | self.mask.any(axis=2)
        return np.asarray(some.all(axis=1))


def possible_sides(s: Steering) -> Array:
    """(N, 2) bool: the sides that some input takes, exactly."""
    p, left = s.paths, s.left
    feature = left.feature[p.test]
    before, came_left = _same_feature_above(p, feature)
    some = _ordinary_left(s, feature, before, came_left)
    words = s.domains.words[feature]
    for j in range(int(words.max(initial=0))):
        some |= _special_left(s, j, feature, before, came_left, words > j)
    alive = np.ones(p.n_nodes, np.bool_)
    for level in p.levels:
        some[level] &= alive[level, None]
        for side in (0, 1):
            child = p.child[level, side]
            has = child >= 0
            alive[child[has]] = some[level[has], side]
    return some


def _same_feature_above(p: Paths, feature: Array) -> tuple[Array, Array]:
    """The nearest node above each that tests the same feature, or -1, and whether the path leaves it to the left."""
    above, came_left = p.parent.copy(), p.came_left.copy()
    open_ = np.flatnonzero(above >= 0)
    while open_.size:
        open_ = open_[feature[above[open_]] != feature[open_]]
        came_left[open_] = p.came_left[above[open_]]
        above[open_] = p.parent[above[open_]]
        open_ = open_[above[open_] >= 0]
    return above, came_left


def _ordinary_left(s: Steering, feature: Array, before: Array, came_left: Array) -> Array:
    """(N, 2) bool: whether an ordinary atom of the node's feature is left on each side."""
    cut = s.left.cut[s.paths.test]
    low, high = np.zeros(cut.size, np.int64), s.domains.ordinary[feature]
    for level in s.paths.levels:
        at = level[before[level] >= 0]
        up = before[at]
        low[at] = np.where(came_left[at], low[up], np.maximum(low[up], cut[up]))
        high[at] = np.where(came_left[at], np.minimum(high[up], cut[up]), high[up])
    return np.stack([low < np.minimum(high, cut), np.maximum(low, cut) < high], axis=1)


def _special_left(s: Steering, j: int, feature: Array, before: Array, came_left: Array, has: Array) -> Array:
    """(N, 2) bool: the same for the j-th word of special atoms."""
    p, left = s.paths, s.left
    passes = np.zeros(p.n_nodes, np.uint64)
    passes[has] = left.words[left.first_word[p.test[has]] + j]
    mask = np.zeros(p.n_nodes, np.uint64)
    mask[has] = s.domains.all_special()[feature[has], j]
    for level in p.levels:
        at = level[has[level] & (before[level] >= 0)]
        up = before[at]
        mask[at] = mask[up] & np.where(came_left[at], passes[up], ~passes[up])
    return np.stack([(mask & passes) != 0, (mask & ~passes) != 0], axis=1)


def steer(s: Steering, wanted: Array, rows: int, tries: int, rng: np.random.Generator) -> Array:
    """(rows, F) inputs; row r takes side ``wanted[r]`` (2 * node + side), and further ones as far as they agree.

    ``wanted``: possible sides in order of importance, at least ``rows`` of them.
    """
    sets = _everything(s.domains, rows)
    queue = wanted
    for _ in range(tries):
        now, queue = queue[:rows], queue[rows:]
        if not now.size:
            break
        sets, agreed = _add_paths(s, sets, now)
        # Another row will try the rest, after all others had their turn.
        queue = np.concatenate([queue, np.roll(now[~agreed], 1)])
    return _inputs_in(s.domains, sets, rng)


def _everything(d: Domains, rows: int) -> _Sets:
    shape = (rows, d.n_features)
    special = np.tile(d.all_special(), (rows, 1, 1))
    return _Sets(np.zeros(shape, np.int64), np.tile(d.ordinary, (rows, 1)), special, np.zeros(shape, np.int8))


def _add_paths(s: Steering, sets: _Sets, sides: Array) -> tuple[_Sets, Array]:
    """``sets`` with the paths to ``sides`` (one a row, from row 0 on) where that leaves inputs, and where it does."""
    p, left = s.paths, s.left
    trial = sets.copy()
    node, to_left = sides >> 1, (sides & 1) == 0
    row = np.arange(sides.size)
    last = True
    while row.size:
        test = p.test[node]
        f, cut = left.feature[test], left.cut[test]
        goes = row[to_left], f[to_left]
        trial.high[goes] = np.minimum(trial.high[goes], cut[to_left])
        other = row[~to_left], f[~to_left]
        trial.low[other] = np.maximum(trial.low[other], cut[~to_left])
        width = s.domains.words[f]
        for j in range(int(width.max(initial=0))):
            i = np.flatnonzero(width > j)
            passes = left.words[left.first_word[test[i]] + j]
            trial.mask[row[i], f[i], j] &= np.where(to_left[i], passes, ~passes)
        if last:
            trial.edge[row, f] = np.where(to_left, _TOP, _BOTTOM)
            last = False
        to_left, node = p.came_left[node], p.parent[node]
        more = node >= 0
        row, node, to_left = row[more], node[more], to_left[more]
    ok = np.zeros(len(sets.low), np.bool_)
    ok[: sides.size] = trial.possible()[: sides.size]
    cell = ok[:, None]
    merged = _Sets(
        np.where(cell, trial.low, sets.low),
        np.where(cell, trial.high, sets.high),
        np.where(cell[:, :, None], trial.mask, sets.mask),
        np.where(cell, trial.edge, sets.edge),
    )
    return merged, ok[: sides.size]


def _inputs_in(d: Domains, sets: _Sets, rng: np.random.Generator) -> Array:
    """(B, F) random values in sets; next to the threshold where an edge is asked for."""
    width = sets.high - sets.low
    odd = sets.mask.any(axis=2)
    odd &= (width <= 0) | (rng.random(width.shape) < _SPECIAL_SHARE) & (sets.edge == 0)
    atom = sets.low + (rng.random(width.shape) * np.maximum(width, 1)).astype(np.int64)
    atom = np.where(sets.edge == _TOP, sets.high - 1, np.where(sets.edge == _BOTTOM, sets.low, atom))
    row, f = np.nonzero(odd)
    bits = np.unpackbits(sets.mask[row, f].view(np.uint8), axis=1, bitorder="little")
    chosen = (rng.random(bits.shape, np.float32) + 1.0) * bits
    atom[row, f] = d.ordinary[f] + chosen.argmax(axis=1)
    atom += d.first_atom[:-1]
    start, end = d.start[atom], d.start[atom + 1]
    place = start + (rng.random(width.shape) * (end - start)).astype(np.int64)
    place = np.where(~odd & (sets.edge == _TOP), end - 1, place)
    place = np.where(~odd & (sets.edge == _BOTTOM), start, place)
    return d.values[place]
