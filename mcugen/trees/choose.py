"""Which ops rank the inputs and walk the trees: one explicit step between the passes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from mcugen.core.types import DType
from mcugen.errors import InputError, InternalError, UnsupportedError
from mcugen.trees.branches import MOST_DEPTH, MOST_NODES, MOST_TREE_NODES
from mcugen.trees.costs import (
    Estimate,
    Features,
    Memory,
    columns_obstacle,
    estimate,
    estimate_mixed,
    features,
    with_leaves,
)
from mcugen.trees.leaves import PackedLeaves, pack_leaves
from mcugen.trees.mixed import NOT_EXACT, Side, Split, leaves_of_words, mixed_obstacle, split_for
from mcugen.trees.narrow import SHORT_LEAF, Narrow, narrow_leaves, score_spread
from mcugen.trees.ops.rank_lookup import lookup_obstacle
from mcugen.trees.packed import word_forms
from mcugen.trees.parts import Parts

RANKINGS = ("search", "lookup", "coarse")
SUMMINGS = ("tables", "packed", "branches", "mixed")
#: Nodes that compile as code in some seconds: more are left to who asks for speed.
_QUICK_NODES = 6000
_SLOW_CODE = f"more than {_QUICK_NODES:,} nodes of code compile slowly; --optimize speed has them"
#: What may be asked for: ``ram`` is ``balanced`` with nothing in fast memory.
GOALS = ("balanced", "speed", "size", "ram")
#: ``balanced`` takes at most so many times the flash of ``size``; ``size`` so many times the smallest.
_BALANCED_FLASH, _SIZE_FLASH = 2.0, 1.2
#: Trees become code beside words up to so many times the flash of ``size``: estimates are off by some per cent.
_MIXED_FLASH = 1.8


@dataclass(frozen=True, slots=True)
class Candidate:
    """One way to rank and to sum, and what it is estimated to cost; ``obstacle``: why the model cannot have it."""

    ranking: str
    summing: str
    cost: Estimate | None
    obstacle: str = ""

    @property
    def name(self) -> str:
        return f"{self.ranking} + {self.summing}"


@dataclass(frozen=True, slots=True, eq=False)
class Choices:
    """``ranking``: search, lookup or coarse. ``summing``: tables, packed, branches or mixed. ``leaves``: as stored.

    ``split``: which trees are code and which are words, where they are mixed; ``leaves`` then are those of the whole.
    ``candidates``: all that was compared, and ``why`` this one won.
    """

    ranking: str
    summing: str
    leaves: PackedLeaves
    candidates: tuple[Candidate, ...] = ()
    why: str = ""
    split: Split | None = None


Chooser = Callable[[Parts], Choices]


def plain_choice(parts: Parts) -> Choices:
    """The tables that any model can have."""
    return Choices("search", "tables", pack_leaves(parts.source, parts.leaf, parts.where))


def choices_of(parts: Parts, ranking: str, summing: str, limit: float | None = None, goal: str = "size") -> Choices:
    """These ways, with leaves as for ``goal`` and ``limit``; the plain ones in place of what the model cannot have."""
    limit = parts.limit_of_sum(limit)
    ranking = ranking if ranking_obstacle(parts, ranking) is None else "search"
    if summing == "mixed":
        mixed = _mixed_alone(parts, ranking, limit)
        if isinstance(mixed, _Mixed):
            return Choices(ranking, summing, mixed.split.whole, split=mixed.split)
    leaves = None if summing == "mixed" else stored_leaves(parts, summing, limit, _share(goal))
    if leaves is None or summing_obstacle(parts, summing) is not None:
        leaves, summing = pack_leaves(parts.source, parts.leaf, parts.where), "tables"
    return Choices(ranking, summing, leaves)


def forced(parts: Parts, ways: str, limit: float | None = None, goal: str = "size") -> Choices:
    """The ways ``RANKING+SUMMING``; InputError where they are not known, UnsupportedError where a model has others.

    ``limit``, ``goal``: as for ``choose``; what leaves may cost depends on them.
    """
    ranking, _, summing = ways.partition("+")
    if ranking not in RANKINGS or summing not in SUMMINGS:
        known = f"{', '.join(RANKINGS)} + {', '.join(SUMMINGS)}"
        raise InputError("ways", f"{ways!r} is not known", f"known: {known}")
    found = choices_of(parts, ranking, summing, limit, goal)
    if (found.ranking, found.summing) != (ranking, summing):
        obstacle = ranking_obstacle(parts, ranking) or summing_obstacle(parts, summing)
        if obstacle is None and summing == "mixed":
            obstacle = str(_mixed_alone(parts, ranking, parts.limit_of_sum(limit)))
        obstacle = obstacle or NOT_EXACT
        raise UnsupportedError(parts.where, f"ways {ways}: {obstacle}", "leave the choice to --optimize")
    return found


def choose(parts: Parts, goal: str, memory: Memory, limit: float | None = None) -> Choices:
    """The ways that serve ``goal`` best, by estimated cost. ``limit``: the bound of the score that the user allows.

    ``speed``: the fewest cycles. ``size``: of what is within a fifth of the smallest flash, the least flash times
    cycles. ``balanced``: the fewest cycles below twice the flash of ``size``. Where nothing keeps ``limit``, the plain
    tables, whose bound is above it.
    """
    limit = parts.limit_of_sum(limit)
    ways = [way for way in SUMMINGS if way != "mixed" and summing_obstacle(parts, way) is None]
    coarse = {way: stored_leaves(parts, way, limit, _SIZE_ERROR) for way in ways}
    leaves = coarse if goal == "size" else {way: stored_leaves(parts, way, limit, _share(goal)) for way in ways}
    if goal != "speed" and parts.tables.column.size > _QUICK_NODES:
        coarse["branches"] = leaves["branches"] = None
    costs = features(parts, leaves)
    candidates = _compared(parts, leaves, costs, memory)
    smallest = _smallest(_compared(parts, coarse, with_leaves(costs, parts, coarse), memory))
    least_flash = (smallest[1] if smallest else estimate(costs, "search", "tables", memory)).flash
    splits: dict[str, Split] = {}
    if goal in ("balanced", "ram"):
        mixed = {r: _mixed(parts, r, costs, limit, least_flash) for r in RANKINGS}
        splits = {r: m.split for r, m in mixed.items() if isinstance(m, _Mixed)}
        candidates += tuple(_mixed_candidate(r, m, costs, memory) for r, m in mixed.items())
    usable = [(c, c.cost) for c in candidates if c.cost is not None]
    if not usable:
        return replace(plain_choice(parts), candidates=candidates)
    if goal == "size" and smallest is not None:
        won, why = smallest[0], f"the least flash times cycles within {_SIZE_FLASH:g} times the smallest flash"
    elif goal == "speed":
        won, why = min(usable, key=lambda pair: pair[1].cycles)[0], "the fewest estimated cycles"
    else:
        bounded = [(c, cost) for c, cost in usable if cost.flash < _BALANCED_FLASH * least_flash]
        # Whole leaves may take more than twice as much: then the smallest of what is left.
        won = min(bounded or [min(usable, key=lambda p: p[1].flash)], key=lambda pair: pair[1].cycles)[0]
        why = "the fewest estimated cycles" + (f" below twice the flash of {smallest[0].name}" if smallest else "")
    if won.summing == "mixed":
        split = splits[won.ranking]
        return Choices(won.ranking, won.summing, split.whole, candidates, why, split)
    stored = leaves[won.summing]
    if stored is None:
        raise InternalError(parts.where, "a way without leaves was chosen")
    return Choices(won.ranking, won.summing, stored, candidates, why)


def _compared(
    parts: Parts, stored: dict[str, PackedLeaves | None], costs: Features, memory: Memory
) -> tuple[Candidate, ...]:
    """All ways for all trees."""
    return tuple(_candidate(parts, r, s, stored, costs, memory) for s in SUMMINGS if s != "mixed" for r in RANKINGS)


def _least_flash(parts: Parts, limit: float | None) -> int:
    """The smallest flash of all ways, estimated."""
    ways = [way for way in SUMMINGS if way != "mixed" and summing_obstacle(parts, way) is None]
    stored = {way: stored_leaves(parts, way, limit, _SIZE_ERROR) for way in ways}
    found = _compared(parts, stored, features(parts, stored), Memory())
    return min((c.cost.flash for c in found if c.cost is not None), default=0)


@dataclass(frozen=True, slots=True, eq=False)
class _Mixed:
    """Some trees as code, the others as words."""

    sides: tuple[Side, Side]
    split: Split


def _mixed_alone(parts: Parts, ranking: str, limit: float | None) -> _Mixed | str:
    """The same where nothing else was compared, and room does not matter."""
    return _mixed(parts, ranking, features(parts, {}), limit, _least_flash(parts, limit), always=True)


def _mixed(
    parts: Parts, ranking: str, costs: Features, limit: float | None, smallest: int, *, always: bool = False
) -> _Mixed | str:
    """As much code as ``balanced`` has room for, or why not. ``smallest``: what ``size`` takes of flash.

    ``always``: some code, room or not.
    """
    obstacle = ranking_obstacle(parts, ranking) or summing_obstacle(parts, "mixed")
    if obstacle is not None:
        return obstacle
    error = FINE_ERROR * score_spread(parts.source, parts.count) if limit is None else limit

    def flash(code: Side, words: Side, split: Split) -> float:
        return estimate_mixed(costs, ranking, (code.parts, words.parts), split.leaves, Memory()).flash

    found = split_for(parts, error, _MIXED_FLASH * smallest, flash, (_QUICK_NODES, always))
    return found if isinstance(found, str) else _Mixed(*found)


def _mixed_candidate(ranking: str, mixed: _Mixed | str, costs: Features, memory: Memory) -> Candidate:
    if isinstance(mixed, str):
        return Candidate(ranking, "mixed", None, mixed)
    code, words = (side.parts for side in mixed.sides)
    cost = estimate_mixed(costs, ranking, (code, words), mixed.split.leaves, memory)
    return Candidate(ranking, "mixed", cost)


def _smallest(candidates: tuple[Candidate, ...]) -> tuple[Candidate, Estimate] | None:
    """What ``size`` takes, and its cost."""
    usable = [(c, c.cost) for c in candidates if c.cost is not None]
    if not usable:
        return None
    least = min(cost.flash for _, cost in usable)
    small = [(c, cost) for c, cost in usable if cost.flash <= _SIZE_FLASH * least]
    return min(small, key=lambda pair: pair[1].flash * pair[1].cycles)


def _candidate(
    parts: Parts, ranking: str, summing: str, leaves: dict[str, PackedLeaves | None], costs: Features, memory: Memory
) -> Candidate:
    obstacle = ranking_obstacle(parts, ranking) or summing_obstacle(parts, summing)
    if obstacle is None and leaves.get(summing) is None:
        slow = summing == "branches" and parts.tables.column.size > _QUICK_NODES
        obstacle = _SLOW_CODE if slow else NOT_EXACT
    if obstacle is not None:
        return Candidate(ranking, summing, None, obstacle)
    return Candidate(ranking, summing, estimate(costs, ranking, summing, memory))


def explain_lines(choices: Choices) -> tuple[str, ...]:
    """A table of what was compared, for --explain."""
    if not choices.candidates:
        return ()
    rows = [("way", "flash", "instructions", "cycles", "")]
    for c in choices.candidates:
        chosen = "chosen: " + choices.why if (c.ranking, c.summing) == (choices.ranking, choices.summing) else ""
        if c.cost is None:
            rows.append((c.name, "", "", "", f"not possible: {c.obstacle}"))
        else:
            cost = c.cost
            rows.append((c.name, f"~{cost.flash:,}", f"~{cost.instructions:,}", f"~{cost.cycles:,}", chosen))
    widths = [max(len(r[i]) for r in rows) for i in range(4)]
    return tuple(
        "  ".join([r[0].ljust(widths[0]), *(r[i].rjust(widths[i]) for i in (1, 2, 3)), r[4]]).rstrip() for r in rows
    )


#: Bounds that short leaves may have, as a part of what the scores of the training rows span (narrow.score_spread).
#: Code: trees as code. Fine: words of 16 bits where size is not the goal; the scores of a user's rows span less than
#: that estimate, and the bound is to be below 0.03 % of theirs.
_CODE_ERROR, FINE_ERROR, _SIZE_ERROR = 3e-4, 2.5e-4, 8e-4


def _share(goal: str) -> float:
    """Only who asks for size pays for it with accuracy."""
    return _SIZE_ERROR if goal == "size" else FINE_ERROR


def stored_leaves(parts: Parts, summing: str, limit: float | None, share: float = _SIZE_ERROR) -> PackedLeaves | None:
    """Leaves as a way of summing stores them; None where they are not exact enough.

    ``limit``: the bound of the sum that the user allows; without one, the part ``share`` of the span of the scores
    for leaves that may be short.
    """
    if summing == "tables" or (summing == "branches" and parts.leaf is not DType.I16):
        return _whole_leaves(parts, parts.leaf, limit)
    spread = score_spread(parts.source, parts.count)
    if summing == "branches":
        found = narrow_leaves(parts.source, Narrow(SHORT_LEAF, False, _CODE_ERROR * spread if limit is None else limit))
        return found if found is not None else _whole_leaves(parts, parts.leaf, limit)
    return leaves_of_words(parts.tables, parts.source, share * spread if limit is None else limit)


def _whole_leaves(parts: Parts, leaf: DType, limit: float | None) -> PackedLeaves | None:
    """Leaves of one unit and type, or None where these are not exact enough."""
    found = pack_leaves(parts.source, leaf, parts.where)
    return found if limit is None or found.bound.error <= limit else None


def what_keeps(parts: Parts, goal: str, limit: float) -> str:
    """The options that give a bound of the score of at most ``limit``, for a hint, where ``goal`` gives none."""
    allowed = parts.limit_of_sum(limit)
    ways = []
    if goal != "speed" and summing_obstacle(parts, "branches") is None:
        ways += ["--optimize speed"] if stored_leaves(parts, "branches", allowed) is not None else []
    types = [leaf.label for leaf in (DType.I32, DType.F32, DType.F64) if _can_keep(parts, leaf, allowed)]
    listed = " or ".join(filter(None, [", ".join(types[:-1]), *types[-1:]]))
    return " or ".join([*ways, f"--leaf {listed}"])


def _can_keep(parts: Parts, leaf: DType, limit: float | None) -> bool:
    try:
        return _whole_leaves(parts, leaf, limit) is not None
    except UnsupportedError:  # too large for the type
        return False


def ranking_obstacle(parts: Parts, ranking: str) -> str | None:
    """Why inputs cannot be ranked in this way, or None."""
    if ranking == "search":
        return None
    if ranking == "lookup":
        sentinels = any(s.missing is not None for s in parts.spec.signals)
        obstacle = lookup_obstacle(parts.columns, parts.spec.dtype, sentinels)
        if obstacle is not None:
            return obstacle
    return columns_obstacle(parts.columns)


def summing_obstacle(parts: Parts, summing: str) -> str | None:
    """Why trees cannot be summed in this way, or None; what leaves cost is not asked."""
    if summing == "tables":
        return None
    if parts.source.value.shape[1] != 1:
        return "leaves of several values"
    if summing == "mixed":
        ways = (summing_obstacle(parts, way) for way in ("packed", "branches"))
        return next(filter(None, ways), None) or mixed_obstacle(parts)
    if summing == "branches":
        deep, largest, nodes = parts.tables.deepest, int(parts.tables.sizes.max(initial=0)), parts.tables.column.size
        if deep > MOST_DEPTH:
            return f"trees {deep} nodes deep, {MOST_DEPTH} is the limit"
        if largest > MOST_TREE_NODES:
            return f"a tree of {largest:,} nodes, {MOST_TREE_NODES:,} is the limit of code"
        return f"{nodes:,} nodes, {MOST_NODES:,} is the limit of code" if nodes > MOST_NODES else None
    if parts.leaf.is_float or parts.leaf is DType.I32:
        return f"leaves of type {parts.leaf.label}"
    if parts.tables.has_sets:
        return "categorical nodes"
    return None if word_forms(parts.tables) else "nodes of more than 16 bits"
