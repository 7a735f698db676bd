"""Decides which object stands in which memory. Explicit wishes first, then what saves most cycles a byte.

Order of decisions, each deterministic and independent of the order of the items:
1. ``--place``: checked against the rights of the memory; may use the user's reserve.
2. Arenas must be in RAM: each gets the slowest memory of its role that has room, the largest arena first.
3. From the fastest memory to the slowest: the objects that would gain most there move in (knapsack.choose over the
   stall cycles of stalls.py), as far as the reserve allows. Code of a model moves whenever it fits; a function of the
   runtime if all that a model calls saves enough of its run: misses are few, and weigh where a run is short.
4. Every table and all code also need their bytes in the home memory (flash): the image that start-up copies.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from types import MappingProxyType

from mcugen.core.op import Item
from mcugen.errors import InputError, InternalError
from mcugen.target import plan as _plan
from mcugen.target.board import Board, Region, did_you_mean
from mcugen.target.knapsack import Candidate, choose
from mcugen.target.plan import Assignment, Plan, PlanDoesNotFitError, Usage, section_of
from mcugen.target.stalls import Traffic, stall_cycles

_SYMBOL = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_KIB = 1024
_ROLES = ("table", "code", "arena")
_NOTHING: Mapping[str, int] = MappingProxyType({})
_NO_WISHES: Mapping[str, str] = MappingProxyType({})


def place(
    items: Sequence[Item],
    board: Board | None,
    overrides: Mapping[str, str] = _NO_WISHES,
    fixed_usage: Mapping[str, int] = _NOTHING,
    *,
    spend_ram: bool = True,
) -> Plan:
    """The place of every item.

    ``overrides``: symbol to region, from ``--place``. ``fixed_usage``: bytes by region that something else of the
    model needs (runtime code, say). ``spend_ram`` False: no table and no code moves to RAM unasked; working memory
    needs RAM anyway, and takes the fastest with room.
    Raises InputError for a wish that cannot be met, PlanDoesNotFitError when a memory is too small.
    """
    return place_together([Group(tuple(items), spend_ram)], board, overrides, fixed_usage)[0]


@dataclass(frozen=True, slots=True, eq=False)
class Group:
    """The items of one model; ``spend_ram`` as for place(). ``move_kernels``: functions of the runtime may move unasked
    if together they save enough of ``cycles``, an estimate of what a run takes (0: not known)."""

    items: tuple[Item, ...]
    spend_ram: bool = True
    move_kernels: bool = True
    cycles: float = 0.0


def place_together(
    groups: Sequence[Group],
    board: Board | None,
    overrides: Mapping[str, str] = _NO_WISHES,
    fixed_usage: Mapping[str, int] = _NOTHING,
) -> tuple[Plan, ...]:
    """Several models in one budget: the plan of each group, in order. ``usage`` of each is what that model takes.

    Errors as for place(); a memory is too small when all of them together do not fit. Every model is taken to run
    once in the time that ``reads_per_run`` counts. An item that is ``shared`` stands in one place for all, and counts
    in the usage of the first model that has it.
    """
    items = _together(groups)
    _check_items(items)
    if board is None:
        if overrides:
            raise InputError("--place", "there are no memories to choose from without a board", "name one with --board")
        return tuple(Plan(None, tuple(_unplaced(i) for i in g.items), ()) for g in groups)
    free = {i.symbol for g in groups for i in g.items if _may_move(i, g)}
    movable = [i for i in items if i.symbol in free]
    shares = _shares(groups, board, Traffic.of(items))
    placer = _Placer(items, board, overrides, fixed_usage, shares)
    placer.run(movable)
    more = _next_kib(placer, items, board, overrides, fixed_usage, movable)
    plans, counted = [], set[str]()
    for g in groups:
        plans.append(placer.plan(g.items, more, counted))
        counted |= {i.symbol for i in g.items if i.shared}
    return tuple(plans)


def _may_move(item: Item, group: Group) -> bool:
    if item.role == "arena":
        return True
    return group.move_kernels if item.shared else group.spend_ram


def _together(groups: Sequence[Group]) -> tuple[Item, ...]:
    """All items, those that are shared once, with the accesses of all models."""
    found: dict[str, Item] = {}
    others = []
    for item in (i for g in groups for i in g.items):
        known = found.get(item.symbol)
        if not item.shared:
            others.append(item)
        elif known is None:
            found[item.symbol] = item
        else:
            found[item.symbol] = replace(known, reads_per_run=known.reads_per_run + item.reads_per_run)
    return (*others, *found.values())


def _shares(groups: Sequence[Group], board: Board, traffic: Traffic) -> dict[str, float]:
    """By shared symbol, the share of a model's run that all of its shared items save in the fastest memory for code;
    the largest of the models that have the symbol."""
    fast = [r for r in board.regions if "code" in r.auto and not r.home]
    shares: dict[str, float] = {}
    for g in groups:
        own = [i for i in g.items if i.shared and g.move_kernels]
        if own and fast:
            best = min(fast, key=lambda r: (r.wait, r.fill))
            here, there = (sum(stall_cycles(i, r, board, traffic) for i in own) for r in (board.home, best))
            share = min(1.0, (here - there) / g.cycles) if g.cycles > 0 else 1.0
            shares |= {i.symbol: max(share, shares.get(i.symbol, 0.0)) for i in own}
    return shares


def _next_kib(
    placer: _Placer,
    items: tuple[Item, ...],
    board: Board,
    overrides: Mapping[str, str],
    fixed: Mapping[str, int],
    movable: Sequence[Item],
) -> tuple[tuple[str, float], ...]:
    """Stall cycles a run that another KiB of each fast memory would save: the plan made again with it."""
    found = []
    for region in placer.fast_regions():
        larger = tuple(replace(r, reserve=r.reserve - _KIB) if r is region else r for r in board.regions)
        again = _Placer(items, replace(board, regions=larger), overrides, fixed, placer.shares)
        again.run(movable)
        found.append((region.name, max(0.0, placer.stalls() - again.stalls())))
    return tuple(found)


def _unplaced(item: Item) -> Assignment:
    return Assignment(item, _plan.DEFAULT_REGION, section_of(item, None), "no board: the linker script decides")


def _check_items(items: Sequence[Item]) -> None:
    seen: set[str] = set()
    for i in items:
        if not _SYMBOL.fullmatch(i.symbol) or i.role not in _ROLES or i.size < 0 or i.align < 1:
            raise InternalError(i.symbol, f"not a placeable object: role {i.role}, {i.size} bytes, align {i.align}")
        if i.symbol in seen:
            raise InternalError(i.symbol, "two objects have this symbol")
        seen.add(i.symbol)


class _Placer:
    """The state of one decision: which region each symbol has, and how many bytes are used where."""

    def __init__(
        self,
        items: Sequence[Item],
        board: Board,
        overrides: Mapping[str, str],
        fixed: Mapping[str, int],
        shares: Mapping[str, float],
    ) -> None:
        self.items = tuple(items)
        self.board = board
        self.by_symbol = {i.symbol: i for i in items}
        self.traffic = Traffic.of(items)
        self.wishes = {s: self._wish(s, r) for s, r in sorted(overrides.items())}
        self.fixed = dict(fixed)
        self.shares = shares
        for name in self.fixed:
            if board.region(name) is None:
                raise InternalError(board.name, f"usage of an unknown region {name}")
        self.region: dict[str, Region] = {}
        self.reason: dict[str, str] = {}

    def run(self, movable: Sequence[Item]) -> None:
        """Decide; ``movable``: items that may leave their place unasked."""
        for symbol, region in self.wishes.items():
            self.region[symbol], self.reason[symbol] = region, "asked for with --place"
        free = [i for i in self.items if i.symbol not in self.wishes]
        for item in sorted(free, key=lambda i: (-i.size, i.symbol)):
            self._settle(item)
        free = [i for i in movable if i.symbol not in self.wishes]
        for region in sorted(self.fast_regions(), key=lambda r: (r.wait, r.fill)):
            self._move_into(region, free)
        for region in self.board.regions:
            self._check_fits(region)

    def plan(self, items: Sequence[Item], next_kib: tuple[tuple[str, float], ...], counted: Set[str]) -> Plan:
        """The result for some of the items. ``counted``: symbols that are in the usage of another model."""
        kernels = tuple(self._assignment(i) for i in self.items if i.shared)
        usage = self._usage([i for i in items if i.symbol not in counted])
        return Plan(self.board, tuple(self._assignment(i) for i in items), usage, next_kib, kernels)

    def stalls(self) -> float:
        """Estimated stall cycles a run, over all items."""
        return sum(stall_cycles(i, self.region[i.symbol], self.board, self.traffic) for i in self.items)

    # -- wishes

    def _wish(self, symbol: str, name: str) -> Region:
        where = f"--place {symbol}={name}"
        item = self.by_symbol.get(symbol)
        if item is None:
            raise InputError(where, f"the model has no object {symbol!r}", did_you_mean(symbol, sorted(self.by_symbol)))
        region = self.board.region(name)
        if region is None:
            hint = did_you_mean(name, [r.name for r in self.board.regions if r.roles])
            raise InputError(where, f"{self.board.name} has no memory {name!r}", hint)
        fit = [r.name for r in self.board.regions if item.role in r.roles and self._reaches(item, r)]
        hint = f"possible: {', '.join(fit)}" if fit else ""
        if item.role not in region.roles:
            raise InputError(where, f"{name} cannot hold this object: its role is {item.role}", hint)
        if not self._reaches(item, region):
            what = f"{self.board.dma_controller} does not reach {name}, and this object is for DMA"
            raise InputError(where, what, hint)
        return region

    def _reaches(self, item: Item, region: Region) -> bool:
        return not item.dma or self.board.dma_controller in region.dma

    # -- bytes

    def _bytes(self, item: Item, region: Region) -> int:
        """What the object takes, with the gap that its alignment may leave and whole cache lines for DMA."""
        unit = max(4, item.align)
        if item.dma and region.cached:
            unit = max(unit, self.board.core.cache_line)
        return -(-item.size // unit) * unit

    def _contents(self, region: Region, items: Sequence[Item] | None = None) -> list[tuple[str, int]]:
        parts = [("fixed parts of the export", self.fixed.get(region.name, 0))]
        for i in self.items if items is None else items:
            at = self.region.get(i.symbol)
            if at is region or (region.home and i.role != "arena"):
                moved = at is not None and at is not region
                note = f" (image; copied to {at.name})" if moved and at is not None else ""
                parts.append((f"{i.symbol}{note}: {i.about}" if i.about else i.symbol + note, self._bytes(i, region)))
        return parts

    def _room(self, region: Region) -> int:
        return region.available - sum(size for _, size in self._contents(region))

    # -- decisions

    def _candidates(self, item: Item) -> list[Region]:
        """Regions that the item may have unasked: the fastest first."""
        regions = [r for r in self.board.regions if item.role in r.auto and self._reaches(item, r)]
        return sorted(regions, key=lambda r: (r.wait, r.fill))

    def _settle(self, item: Item) -> None:
        """A place that is certainly allowed: the home, or for an arena the slowest RAM with room."""
        options = self._candidates(item)
        home = [r for r in options if r.home]
        if not home:
            size = {r.name: self._bytes(item, r) for r in options}
            home = [r for r in reversed(options) if size[r.name] <= self._room(r)]
        if not home and not options:
            raise PlanDoesNotFitError(
                f"{item.symbol} on {self.board.name}", f"no memory may hold this {item.role}", "", ()
            )
        if not home:
            home = [max(options, key=lambda r: (r.available, r.name))]  # the overflow is reported in its table
        self.region[item.symbol] = home[0]
        if item.role == "arena":
            self.reason[item.symbol] = "working memory; the largest RAM that is left to the automatic placement"
        else:
            self.reason[item.symbol] = "constants and code stay in place unless moving them saves cycles"

    def fast_regions(self) -> list[Region]:
        """Memories that something may move into unasked."""
        return [r for r in self.board.regions if r.auto and not r.home]

    def _move_into(self, region: Region, free: Iterable[Item]) -> None:
        offers: dict[str, Candidate] = {}
        for item in free:
            current = self.region[item.symbol]
            if current is region or not (current.home or item.role == "arena"):
                continue
            if region not in self._candidates(item) or item.size == 0:
                continue
            saved = self._saved(item, region)
            if item.shared and self.shares.get(item.symbol, 0.0) < self.board.min_saved_share:
                self.reason[item.symbol] = self._too_few(item, region, saved)
                continue
            if item.role == "code" and saved >= 0.0:
                saved += 1e-9 * item.size  # unknown or no traffic: still better than a cold cache
            elif saved <= 0.0:
                continue  # a slower memory than where it is
            elif saved < max(self.board.min_saved_cycles, 1e-9):
                self.reason[item.symbol] = f"moving it to {region.name} saves {saved:.1f} stall cycles a run: too few"
                continue
            offers[item.symbol] = Candidate(item.symbol, self._bytes(item, region), saved)
        room = self._room(region)
        chosen = choose(list(offers.values()), room)
        for symbol, offer in sorted(offers.items()):
            gain = f"about {offer.gain:.0f} stall cycles a run, {offer.density:.3g} a byte (estimate)"
            if symbol in chosen:
                self.region[symbol], self.reason[symbol] = region, f"saves {gain}"
            elif offer.size > room:
                self.reason[symbol] = f"needs {offer.size} bytes, {region.name} has {max(room, 0)} to give"
            else:
                self.reason[symbol] = f"{region.name} went to objects that save more; this one: {gain}"

    def _too_few(self, item: Item, region: Region, saved: float) -> str:
        share = f"{100 * self.shares.get(item.symbol, 0.0):.2g} % of a run"
        return f"in {region.name} it saves {saved:.0f} stall cycles, with the rest of the runtime {share}: too few"

    def _saved(self, item: Item, region: Region) -> float:
        before = stall_cycles(item, self.region[item.symbol], self.board, self.traffic)
        return before - stall_cycles(item, region, self.board, self.traffic)

    # -- results

    def _check_fits(self, region: Region) -> None:
        parts = self._contents(region)
        used = sum(size for _, size in parts)
        wished = not region.home and any(r is region for r in self.wishes.values())
        limit = region.usable if wished else region.available
        if used > limit:
            what = f"{used:,} bytes are needed in {region.name}, {limit:,} are available"
            largest = max(parts, key=lambda p: (p[1], p[0]))
            hint = f"the largest part is {largest[0].split(':')[0]}, {largest[1]:,} bytes"
            raise PlanDoesNotFitError(self.board.name, what, hint, _plan.contents_table(region, self.board, parts))

    def _assignment(self, item: Item) -> Assignment:
        region = self.region[item.symbol]
        copied = not region.home and item.role != "arena"
        reason = self.reason[item.symbol]
        if item.dma and region.cached:
            reason += f"; DMA: align to {self.board.core.cache_line} and maintain the data cache"
        return Assignment(item, region.name, section_of(item, region), reason, copied)

    def _usage(self, items: Sequence[Item]) -> tuple[Usage, ...]:
        return tuple(
            Usage(r.name, sum(size for _, size in self._contents(r, items)), r.available, r.usable)
            for r in self.board.regions
        )
