"""Input vectors that sit where faults hide, the coverage that they reach, and the few of them a golden file keeps.

First rows of one extreme value each, then rows that bring every edge of every feature together at random, then rows
steered to the sides of nodes that no row took yet. No C and no comparison here: see ``verify``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mcugen.core.types import Array
from mcugen.trees.domains import Domains, make_domains
from mcugen.trees.keys import key_range, values_of
from mcugen.trees.paths import paths_of, rows_by_side, visits
from mcugen.trees.ranking import Ranking
from mcugen.trees.steer import Steering, possible_sides, steer
from mcugen.trees.tables import TreeTables

_LEAST_ROWS, _LEAST_BATCH = 256, 32
_TRIES, _PATH_STEPS = 64, 4096  # more gains few per cent of rows
_MOST_NODE_ROWS = 3 << 31  # nodes times rows: some seconds of work
_GOLDEN_SIDES = 1 << 16


@dataclass(frozen=True, slots=True)
class Coverage:
    """Nodes by what rows did at them; each of ``nodes`` counts once.

    ``both_ways`` went left and right; ``one_way`` one way of two; ``never`` not at all, though some input would.
    ``unreachable``: nodes that cannot go both ways, proved from the tests above them, and went the one way they can.
    """

    nodes: int
    both_ways: int
    one_way: int
    never: int
    unreachable: int

    def text(self) -> str:
        """One line for reports."""
        parts = [f"{self.both_ways:,} of {self.nodes:,} nodes went both ways"]
        if self.one_way:
            parts.append(f"{self.one_way:,} one way only")
        if self.never:
            parts.append(f"{self.never:,} not at all")
        if self.unreachable:
            whose = "its path contradicts" if self.unreachable == 1 else "their path contradicts"
            parts.append(f"{self.unreachable:,} cannot ({whose} itself)")
        return "; ".join(parts)


@dataclass(frozen=True, slots=True, eq=False)
class Vectors:
    """``x`` (n, F) of the input's type, and the coverage that it reaches."""

    x: Array
    coverage: Coverage


def make_vectors(rank: Ranking, tables: TreeTables, *, limit: int = 4096, seed: int = 0) -> Vectors:
    """At most ``limit`` (>= 1) rows for the inputs of ``rank`` and the trees of ``tables``; the same on every call."""
    rng = np.random.default_rng(seed)
    steering = _steering(rank, tables)
    paths = steering.paths
    possible = possible_sides(steering)
    budget = min(limit, max(_LEAST_ROWS, _MOST_NODE_ROWS // max(paths.n_nodes, 1)))
    rows = _uniform_rows(rank)
    ladder = _ladder(steering.domains, max(budget // 2 - len(rows), 1), rng)
    x = np.concatenate([rows, ladder])[:budget]
    seen = visits(paths, rank.eval(x)[0])
    parts, used = [x], len(x)
    depth, deepest = np.repeat(paths.depth, 2), len(paths.levels)
    tries = int(np.clip(_PATH_STEPS // max(deepest, 1), 2, _TRIES))
    while used < budget:
        wanted = np.flatnonzero(possible & ~seen)
        if not wanted.size:
            break
        few = max(_LEAST_BATCH, wanted.size // 16, deepest // 4)  # small batches waste no rows, deep trees take time
        count = min(steering.batch, budget - used, wanted.size, few)
        wanted = rng.permutation(wanted)
        wanted = wanted[np.argsort(-depth[wanted], kind="stable")]  # who goes deep passes the nodes above
        more = steer(steering, wanted, count, tries, rng)
        seen |= visits(paths, rank.eval(more)[0])
        parts.append(more)
        used += count
    return Vectors(np.concatenate(parts), _count(seen, possible))


def coverage_of(x: Array, rank: Ranking, tables: TreeTables) -> Coverage:
    """What the rows ``x`` (n, F) reach."""
    steering = _steering(rank, tables)
    return _count(visits(steering.paths, rank.eval(x)[0]), possible_sides(steering))


def select_golden(x: Array, n_max: int, rank: Ranking, tables: TreeTables) -> Array:
    """Indices of at most ``n_max`` rows of ``x`` (n, F) that keep most of its coverage.

    First the rows of extremes only (NaN, infinities, ends of the type, sentinels; a quarter of ``n_max`` at most),
    then row by row the one that adds most sides. Large forests are judged by a sample of their nodes.
    """
    paths = paths_of(tables)
    step = max(1, -(-2 * paths.n_nodes // _GOLDEN_SIDES))
    bits = rows_by_side(paths, rank.eval(x)[0], np.arange(0, paths.n_nodes, step))
    gain = _row_sums(bits, len(x))
    chosen: list[int] = []
    for row in np.flatnonzero(_extreme_rows(x, rank))[: max(n_max // 4, 1)].tolist():
        bits = _take(row, bits, gain, chosen)
    while len(chosen) < min(n_max, len(x)):
        row = int(gain.argmax()) if gain.size else 0
        if gain[row] <= 0:
            break
        bits = _take(row, bits, gain, chosen)
    if len(chosen) < n_max:  # a changed threshold shows only on a row that stands on it: coverage is not enough
        rest = np.setdiff1d(np.arange(len(x)), chosen)
        spread = np.linspace(0, rest.size - 1, min(n_max - len(chosen), rest.size)).astype(np.int64)
        chosen += rest[np.unique(spread)].tolist()
    if not chosen and len(x):
        chosen = [0]  # no nodes, no extremes: the sum of the constants is still worth a look
    return np.array(chosen[:n_max], np.int64)


def _steering(rank: Ranking, tables: TreeTables) -> Steering:
    paths = paths_of(tables)
    return Steering(paths, *make_domains(rank, paths))


def _count(seen: Array, possible: Array) -> Coverage:
    ways, can = np.count_nonzero(seen, axis=1), np.count_nonzero(possible, axis=1)
    both = int(np.count_nonzero(ways == 2))
    done = int(np.count_nonzero((ways == can) & (can < 2)))
    one = int(np.count_nonzero((ways == 1) & (can == 2)))
    return Coverage(len(ways), both, one, len(ways) - both - done - one, done)


def _extremes(rank: Ranking) -> Array:
    low, high = (values_of(np.array([k]), rank.dtype) for k in key_range(rank.dtype))
    if not rank.dtype.is_float:
        return np.concatenate([low, high])
    top = np.finfo(rank.dtype.np).max
    return np.array([-np.inf, np.inf, -top, top], rank.dtype.np)


def _extreme_rows(x: Array, rank: Ranking) -> Array:
    """(n,) bool: rows of nothing but NaN, infinities, ends of the type and sentinels."""
    hit = np.isin(x, _extremes(rank)) | (np.isnan(x) if rank.dtype.is_float else False)
    if rank.has_sentinel.any():
        hit = hit | rank.has_sentinel & (x == rank.sentinel)
    return np.asarray(hit.all(axis=1))


def _uniform_rows(rank: Ranking) -> Array:
    """Rows of one extreme value each, missing values first."""
    dtype = rank.dtype.np
    if rank.dtype.is_float:
        info, band = np.finfo(dtype), dtype.type(np.float32(1e-35))
        sizes = [info.smallest_subnormal, 1e-36, np.nextafter(band, 0), band, np.nextafter(band, dtype.type(1)), 1e-34]
        positive = np.array([0.0, *sizes], dtype)
        nan = np.array([np.nan, -np.nan], dtype)
        values = np.concatenate([nan, _extremes(rank), positive, -positive])
    else:
        values = np.concatenate([_extremes(rank), np.array([0, 1], dtype)])
    rows = np.repeat(values[:, None], rank.has_sentinel.size, axis=1)
    if rank.has_sentinel.any():
        missing = np.where(rank.has_sentinel, rank.sentinel, 0).astype(dtype)
        rows = np.concatenate([missing[None, :], rows])
    return rows


def _ladder(domains: Domains, most: int, rng: np.random.Generator) -> Array:
    """At most ``most`` rows that hold the pool of every feature, each in its own order; of long pools a sample."""
    pools = [domains.pool(f) for f in range(domains.n_features)]
    count = min(most, max(p.size for p in pools))
    columns = []
    for f, p in enumerate(pools):
        order = rng.permutation(p.size)
        if p.size > count:  # special values stand last: none of them is left out for one more threshold
            first = order >= p.size - domains.special_values(f)
            order = rng.permutation(np.concatenate([order[first], order[~first]])[:count])
        columns.append(p[np.resize(order, count)])
    return np.stack(columns, axis=1)


def _row_sums(bits: Array, rows: int) -> Array:
    """(rows,) how many of the sides in ``bits`` (sides, bytes) each row takes."""
    total = np.zeros(bits.shape[1] * 8, np.int64)
    step = max(1, (1 << 22) // max(total.size, 1))
    for a in range(0, len(bits), step):
        total += np.unpackbits(bits[a : a + step], axis=1, bitorder="little").sum(axis=0, dtype=np.int32)
    return total[:rows]


def _take(row: int, bits: Array, gain: Array, chosen: list[int]) -> Array:
    """Choose ``row``: the sides that it takes no longer count. The sides that are left."""
    chosen.append(row)
    taken = (bits[:, row >> 3] >> (row & 7) & 1).astype(np.bool_)
    gain -= _row_sums(bits[taken], gain.size)
    return bits[~taken]
