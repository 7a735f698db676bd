"""What the inputs of a feature can be told apart by: the values where faults hide, grouped into atoms.

An atom is a set of inputs that have the same rank in every column of their feature. Ranks change only next to an
*edge* (a key, an end of the zero interval, a sentinel, a category), so the pool of a feature, which holds every edge
and one step on either side, has a value in each atom: what no atom can do, no input can do. The ranks themselves come
from RankInputs, so there is no second truth about them.

*Ordinary* atoms follow each other in the order of keys, and ranks rise with them. What does not fit into that order
(NaN, sentinels, zeros that count as missing, everything of a categorical feature) is a *special* atom.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mcugen.core.types import Array, DType
from mcugen.trees.columns import Columns
from mcugen.trees.keys import key_range, keys_of, values_of
from mcugen.trees.ops.rank_inputs import RankInputs
from mcugen.trees.paths import Paths, goes_left
from mcugen.trees.ranking import Ranking

_NAN_BITS: dict[DType, tuple[str, tuple[int, ...]]] = {
    DType.F32: ("<u4", (0x7FC00000, 0xFFC00000, 0x7F800001, 0xFF800001, 0x7FFFFFFF, 0xFFFFFFFF, 0x7FC12345)),
    DType.F64: (
        "<u8",
        (0x7FF8 << 48, 0xFFF8 << 48, (0x7FF0 << 48) + 1, (0xFFF0 << 48) + 1, (1 << 63) - 1, (1 << 64) - 1),
    ),
}


@dataclass(frozen=True, slots=True, eq=False)
class Domains:
    """Pools of all F features.

    ``values``: of ``dtype``, feature after feature, atom after atom; ``start`` (atoms + 1,): where each atom's values
    start; ``first_atom`` (F + 1,); ``ordinary`` (F,): how many of a feature's atoms are; the rest is special.
    """

    dtype: DType
    values: Array
    start: Array
    first_atom: Array
    ordinary: Array

    @property
    def n_features(self) -> int:
        return int(self.ordinary.size)

    @property
    def special(self) -> Array:
        """(F,) special atoms of each feature."""
        return np.diff(self.first_atom) - self.ordinary

    @property
    def words(self) -> Array:
        """(F,) 64-bit words for a bit per special atom."""
        return (self.special + 63) // 64

    def pool(self, feature: int) -> Array:
        """All values of a feature, special ones last."""
        a, b = self.first_atom[feature], self.first_atom[feature + 1]
        return self.values[self.start[a] : self.start[b]]

    def special_values(self, feature: int) -> int:
        """How many values of a pool are special."""
        first = self.first_atom[feature] + self.ordinary[feature]
        return int(self.start[self.first_atom[feature + 1]] - self.start[first])

    def all_special(self) -> Array:
        """(F, most words) uint64: the bits of all special atoms."""
        width = max(1, int(self.words.max(initial=1)))
        bits = np.arange(width * 64)[None, :] < self.special[:, None]
        return np.packbits(bits, axis=1, bitorder="little").view("<u8")


@dataclass(frozen=True, slots=True, eq=False)
class LeftAtoms:
    """The atoms that pass each test of ``Paths``, all (U,): the ordinary ones below ``cut``, and special ones.

    Special atoms are bits of ``words``: those of test u start at ``first_word[u]``. ``feature`` (U,).
    """

    feature: Array
    cut: Array
    first_word: Array
    words: Array


def make_domains(rank: Ranking, paths: Paths) -> tuple[Domains, LeftAtoms]:
    """Pools of all features, and what each test does to their atoms."""
    c, n_features = rank.columns, int(rank.has_sentinel.size)
    key_start = np.concatenate([[0], np.cumsum(c.count)]).astype(np.int64)
    category_start = np.concatenate([[0], np.cumsum(c.category_count)]).astype(np.int64)
    numeric, groups = _by_feature(c.feature, n_features), _by_feature(c.category_feature, n_features)
    values, sizes, ordinary, atoms = [], [], [], []
    column_rank: list[Array] = [np.zeros(0, np.int64)] * c.n_columns
    for f in range(n_features):
        part = _columns_of(c, numeric[f], groups[f], key_start, category_start)
        atom_values, atom_sizes, n_ordinary, ranks = _atoms(_sub_op(rank, part, f))
        values.append(atom_values)
        sizes.append(atom_sizes)
        ordinary.append(n_ordinary)
        atoms.append(atom_sizes.size)
        for i, column in enumerate([*numeric[f], *(c.n_numeric + groups[f])]):
            column_rank[column] = ranks[:, i]
    domains = Domains(
        rank.dtype,
        np.concatenate(values),
        np.concatenate([[0], np.cumsum(np.concatenate(sizes))]).astype(np.int64),
        np.concatenate([[0], np.cumsum(atoms)]).astype(np.int64),
        np.array(ordinary, np.int64),
    )
    return domains, _left_atoms(paths, domains, np.concatenate([c.feature, c.category_feature]), column_rank)


def _by_feature(feature: Array, n_features: int) -> list[Array]:
    order = np.argsort(feature, kind="stable")
    return np.split(order, np.searchsorted(feature[order], np.arange(1, n_features)))


def _columns_of(c: Columns, numeric: Array, groups: Array, key_start: Array, category_start: Array) -> Columns:
    """The columns of one feature, which is feature 0 there."""
    keys = [c.keys[key_start[i] : key_start[i + 1]] for i in numeric]
    categories = [c.categories[category_start[g] : category_start[g + 1]] for g in groups]
    return Columns(
        feature=np.zeros(numeric.size, np.int64),
        count=c.count[numeric],
        missing_rank=c.missing_rank[numeric],
        zero_missing=c.zero_missing[numeric],
        zero_low=c.zero_low[numeric],
        zero_high=c.zero_high[numeric],
        keys=np.concatenate(keys) if keys else np.zeros(0, np.int64),
        category_feature=np.zeros(groups.size, np.int64),
        category_count=c.category_count[groups],
        categories=np.concatenate(categories) if categories else np.zeros(0, np.int64),
        exact=c.exact,
    )


def _sub_op(rank: Ranking, part: Columns, f: int) -> RankInputs:
    sentinel = rank.has_sentinel[f : f + 1], rank.sentinel[f : f + 1]
    return RankInputs(rank.inputs, rank.outputs, rank.loc, rank.dtype, part, *sentinel)


def _atoms(op: RankInputs) -> tuple[Array, Array, int, Array]:
    """Values sorted by atom, values in each atom, how many atoms are ordinary, and (atoms, columns) ranks."""
    c = op.columns
    value = pool_values(op)
    key = keys_of(value, op.dtype)
    rank = op.eval(value[:, None])[0][:, : c.n_columns]
    special = np.isnan(value) if op.dtype.is_float else np.zeros(value.size, np.bool_)
    special |= bool(c.category_count.size)
    starts = np.concatenate([[0], np.cumsum(c.count)]).astype(np.int64)
    for i in range(c.n_numeric):
        special |= rank[:, i] != np.searchsorted(c.keys[starts[i] : starts[i + 1]], key)
    plain = np.flatnonzero(~special)  # the pool is in the order of keys
    fresh = np.any(rank[plain[1:]] != rank[plain[:-1]], axis=1)
    plain_atom = np.concatenate([[0], np.cumsum(fresh)]) if plain.size else np.zeros(0, np.int64)
    n_ordinary = int(plain_atom[-1]) + 1 if plain.size else 0
    odd = np.flatnonzero(special)
    odd_atom = np.zeros(odd.size, np.int64)
    if c.n_columns and odd.size:
        odd_atom = np.unique(rank[odd], axis=0, return_inverse=True)[1].reshape(-1)
    by_atom = np.argsort(odd_atom, kind="stable")
    rows = np.concatenate([plain, odd[by_atom]])
    atom = np.concatenate([plain_atom, n_ordinary + odd_atom[by_atom]])
    _, first, sizes = np.unique(atom, return_index=True, return_counts=True)
    return value[rows], sizes, n_ordinary, rank[rows[first]]


def pool_values(op: RankInputs) -> Array:
    """Inputs of the one feature of ``op`` at all edges and one step beside them, ends, zeros; in the order of keys."""
    c, dtype = op.columns, op.dtype
    low, high = key_range(dtype)
    zeros = np.concatenate([c.zero_low, c.zero_high])[np.concatenate([c.zero_missing, c.zero_missing])]
    edges = [c.keys, zeros, np.array([low, high])]
    if op.has_sentinel[0]:
        edges.append(op.sentinel[:1])
    usable = c.categories[(c.categories >= 0) & (c.categories < 2**31)]
    marks = np.array([0.0, 1.0, -1.0])
    if c.category_count.size:
        marks = np.concatenate([marks, usable, usable + 1.0, [2.0**31, 2.0**32, -(2.0**31)]])
    edges.append(_keys_near(marks, dtype))
    edge = np.unique(np.concatenate(edges)).astype(np.int64)
    near = [edge - 1, edge, edge + 1]
    if dtype.is_float:
        near.append(_float_keys(dtype, bool(c.category_count.size)))
    key = np.unique(np.clip(np.concatenate(near), low, high))
    if not dtype.is_float:
        return values_of(key, dtype)
    code, bits = _NAN_BITS[dtype]
    return np.concatenate([values_of(key, dtype), np.array(bits, np.dtype(code)).view(dtype.np)])


def _keys_near(real: Array, dtype: DType) -> Array:
    """Keys of the numbers of the type next to real numbers; those out of an integer type's range are left out."""
    if dtype.is_float:
        return keys_of(real.astype(dtype.np), dtype)
    return np.asarray(real[(real >= dtype.min) & (real <= dtype.max)].astype(np.int64))


def _float_keys(dtype: DType, categorical: bool) -> Array:
    """Keys of numbers that floating-point code gets wrong."""
    info = np.finfo(dtype.np)
    band = float(np.float32(1e-35))
    real = [float(info.max), float(info.tiny), 1e-36, band, 1e-34, float(np.finfo(np.float32).max)]
    if categorical:
        real += [0.5, 0.9, 1.5, 2.0**24 + 1, 2.0**53, 1e18]
    with np.errstate(over="ignore", under="ignore"):
        pairs = np.array([s * r for r in real for s in (1.0, -1.0)]).astype(dtype.np)
    keys = keys_of(pairs, dtype)
    denormal = np.array([1, -2])  # one step above +0.0 and below -0.0
    return np.concatenate([keys - 1, keys, keys + 1, denormal])


def _left_atoms(paths: Paths, domains: Domains, feature: Array, column_rank: list[Array]) -> LeftAtoms:
    """Cuts and words of all tests, column by column."""
    test_feature = feature[paths.column] if paths.column.size else np.zeros(0, np.int64)
    width = domains.words[test_feature]
    first_word = np.concatenate([[0], np.cumsum(width)]).astype(np.int64)
    words = np.zeros(int(first_word[-1]), "<u8")
    cut = np.zeros(test_feature.size, np.int64)
    for c, rank in enumerate(column_rank):
        a, b = int(paths.span[c]), int(paths.span[c + 1])
        if a == b:
            continue
        ordinary = int(domains.ordinary[feature[c]])
        if c < paths.tables.first_set:
            cut[a:b] = np.searchsorted(rank[:ordinary], paths.operand[a:b], side="right")
        if rank.size > ordinary:
            m = int(width[a])
            step = max(1, (1 << 22) // (64 * m))
            for s in range(a, b, step):
                e = min(s + step, b)
                bits = np.zeros((e - s, 64 * m), np.bool_)
                bits[:, : rank.size - ordinary] = goes_left(paths, s, e, rank[ordinary:])
                packed = np.packbits(bits, axis=1, bitorder="little").view("<u8")
                words[first_word[s] : first_word[s] + (e - s) * m] = packed.reshape(-1)
    return LeftAtoms(test_feature, cut, first_word[:-1], words)
