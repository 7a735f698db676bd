"""Some trees as code, the rest as words: which, and leaves of both in one unit.

The trees whose leaves span most become code: a constant may be exact there, and it is the wide trees that the short
leaves of words would round coarsely.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from mcugen.core.types import Array, DType
from mcugen.trees.leaves import EPS, INT32, LeafSource, PackedLeaves, bound_of, rounding_of_sums, tree_peak
from mcugen.trees.narrow import LEAST_HALF, SHORT_LEAF, Narrow, narrow_leaves
from mcugen.trees.packed import word_forms
from mcugen.trees.parts import Parts
from mcugen.trees.tables import TreeTables

#: Bytes of a node of code beyond those of words, about; a larger figure only makes the search longer.
_LEAST_MORE = 10.0
NOT_EXACT = "leaves are not exact enough"
_FLOOR_SHARE = 0.125
_CODE_SHARES = (0.7, 0.4, 0.2)  # of the bound wanted that code may take: the more, the shorter its constants


@dataclass(frozen=True, slots=True, eq=False)
class Split:
    """``trees``: of the code and of the words, by number, ascending; ``leaves``: theirs; ``units``: how many units of

    the whole one unit of theirs is. ``whole``: all leaves in units of the whole, with the bound of the score.
    """

    trees: tuple[Array, Array]
    leaves: tuple[PackedLeaves, PackedLeaves]
    units: tuple[int, int]
    whole: PackedLeaves


@dataclass(frozen=True, slots=True, eq=False)
class Side:
    """``trees`` of the model, by number, ascending, and its ``parts``: a model of these alone."""

    trees: Array
    parts: Parts


def tables_of(tables: TreeTables, trees: Array) -> TreeTables:
    """The tables of some trees, in this order."""
    node, leaf = nodes_of(tables, trees), leaves_of(tables, trees)
    found = replace(
        tables,
        column=tables.column[node],
        operand=tables.operand[node],
        distance=tables.distance[node],
        sizes=tables.sizes[trees],
        leaf_names=tables.leaf_names[leaf],
        probability=tables.probability[node],
        left_share=tables.left_share[node],
        depths=tables.depths[trees],
    )
    return replace(found, steps=(float(found.probability.sum()), int(found.depths.sum())))


def nodes_of(tables: TreeTables, trees: Array) -> Array:
    """The nodes of some trees, tree after tree."""
    first = tables.first
    return np.concatenate([np.arange(first[t], first[t + 1]) for t in trees.tolist()] or [np.zeros(0, np.int64)])


def leaves_of(tables: TreeTables, trees: Array) -> Array:
    """The leaves of some trees, counted over all trees of the tables."""
    first = tables.first
    found = [np.arange(first[t] + t, first[t + 1] + t + 1) for t in trees.tolist()]
    return np.concatenate(found or [np.zeros(0, np.int64)])


def side_of(parts: Parts, trees: Array, base: Array) -> Side:
    """Some trees; for each output as many, so that tree t still adds to output ``t % K``. ``base`` (K,): its own."""
    tables, leaf = tables_of(parts.tables, trees), leaves_of(parts.tables, trees)
    first = np.concatenate([[0], np.cumsum(tables.sizes + 1)]).astype(np.int64)
    source = LeafSource(parts.source.value[leaf], first, base)
    return Side(trees, replace(parts, tables=tables, source=source, count=parts.count[leaf]))


def mixed_obstacle(parts: Parts) -> str | None:
    """Why trees cannot be split, beyond what forbids them as words or as code."""
    rounds, odd = divmod(parts.tables.n_trees, parts.source.outputs)
    if odd:
        return "outputs with more trees than others"
    return "a single tree" if rounds < 2 else None


def _spans(parts: Parts) -> Array:
    """(T / K,) what the leaves of each round of trees, one for each output, span."""
    half = parts.source.high() / 2 - parts.source.low() / 2
    return np.asarray(half.reshape(-1, parts.source.outputs).sum(axis=1))


def sides_of(parts: Parts, rounds: int) -> tuple[Side, Side]:
    """Code and words: so many trees of each output as code, the widest ones."""
    k, order = parts.source.outputs, np.argsort(-_spans(parts), kind="stable")
    code, words = ((np.sort(r)[:, None] * k + np.arange(k)).ravel() for r in (order[:rounds], order[rounds:]))
    return side_of(parts, code, np.zeros(k)), side_of(parts, words, parts.source.base)


_TRIES = 16


def split_for(
    parts: Parts, error: float, room: float, flash: Callable[[Side, Side, Split], float], nodes: tuple[int, bool]
) -> tuple[tuple[Side, Side], Split] | str:
    """As many trees as code as ``room`` bytes take, by ``flash`` of code, words and leaves; or why there are none.

    ``error``: the bound of the score that is wanted; ``nodes``: the most that become code, and whether one round does
    for which there is no room.
    """
    total = parts.tables.n_trees // parts.source.outputs
    most_nodes, always = nodes
    # Words need a tree whose range gives them a unit.
    wide = _spans(parts) > LEAST_HALF * parts.source.outputs
    rounds = min(int(np.count_nonzero(wide)) - 1, total * most_nodes // max(parts.tables.column.size, 1))
    why = "no room for code"
    for _ in range(_TRIES if rounds > 0 else 0):
        if rounds < 1:
            return why
        sides = sides_of(parts, rounds)
        split = split_leaves(parts, sides, error)
        if split is None:
            return NOT_EXACT
        size = flash(*sides, split)
        if size < room or (always and rounds == 1):
            return sides, split
        # Code takes at least so much more than words.
        least = _LEAST_MORE * sides[0].parts.tables.column.size / rounds
        rounds = max(rounds - max(1, int((size - room) / max(least, 1.0))), 1 if always else 0)
    return why


def split_leaves(parts: Parts, sides: tuple[Side, Side], error: float) -> Split | None:
    """Leaves of code and words, with a bound of the score of at most ``error``; None where that cannot be had."""
    code, words = (s.parts for s in sides)
    slack = float(rounding_of_sums(parts.source, EPS[DType.F64]).max())
    for share in _CODE_SHARES:
        exact = narrow_leaves(code.source, Narrow(SHORT_LEAF, False, share * error))
        if exact is None:
            return None
        rest = (error - exact.bound.error - slack) * (1 - 2.0**-20)
        # Units that are finer than the bound asks for may be too fine for an int32 that holds both.
        for floor in (0.0, rest * _FLOOR_SHARE * words.source.outputs / words.tables.n_trees):
            short = leaves_of_words(words.tables, words.source, rest, floor)
            found = None if short is None else _join(parts, sides, (exact, short))
            if found is not None:
                return found
    return None


def leaves_of_words(tables: TreeTables, source: LeafSource, error: float, floor: float = 0.0) -> PackedLeaves | None:
    """Leaves as words hold them, in the shortest form with a bound of at most ``error``; None where none has it.

    ``floor``: no unit need be finer.
    """
    found = (narrow_leaves(source, Narrow(bits.most, True, error, floor)) for _, bits in word_forms(tables))
    return next((leaves for leaves in found if leaves is not None), None)


def _join(parts: Parts, sides: tuple[Side, Side], leaves: tuple[PackedLeaves, PackedLeaves]) -> Split | None:
    """Both in the finer unit, which is a power of two as theirs are; None where an int32 does not hold that."""
    unit = min(p.unit for p in leaves)
    units = (round(leaves[0].unit / unit), round(leaves[1].unit / unit))
    value = np.zeros(parts.source.value.shape)
    base, reach = np.zeros(parts.source.outputs), np.zeros(parts.source.outputs)
    error = rounding_of_sums(parts.source, EPS[DType.F64])
    for side, packed, one in zip(sides, leaves, units, strict=True):
        source = side.parts.source
        own = packed.leaf[:, 0] * np.repeat(packed.factor, np.diff(source.first)).astype(np.float64) * one
        value[leaves_of(parts.tables, side.trees), 0] = own
        base += packed.base * float(one)
        # No prefix of a sum overflows, nor does its product with the units: all magnitudes together fit.
        peak = tree_peak(np.abs(own), source.first)[:, None]
        reach += np.abs(packed.base * float(one)) + source.per_output(peak)
        error = error + packed.bound.error
    if reach.max() > INT32:
        return None
    bound, one_each = bound_of(parts.source, error), np.ones(parts.tables.n_trees, np.int64)
    whole = PackedLeaves(DType.I32, value.astype(np.int32), base.astype(np.int32), unit, bound, one_each)
    return Split((sides[0].trees, sides[1].trees), leaves, units, whole)
