"""The result of placement as a value: which object stands where, in which linker section, why, and what is left."""

from __future__ import annotations

from dataclasses import dataclass

from mcugen.core.op import Item
from mcugen.errors import DoesNotFitError
from mcugen.target.board import Board, Region

#: The region of every object when there is no board.
DEFAULT_REGION = "default"
#: Defined by the linker fragment alone: C that refers to it does not link without the fragment.
FRAGMENT_SYMBOL = "__mcg_fragment"


@dataclass(frozen=True, slots=True, eq=False)
class Assignment:
    """Where one object stands. ``section``: that of the object; for a table in RAM that of its copy.

    ``copied``: a table that has its image in the home memory and its copy in RAM, or code that runs from RAM.
    """

    item: Item
    region: str
    section: str
    reason: str
    copied: bool = False

    @property
    def image_section(self) -> str:
        """The section of a table's constant image."""
        return f".rodata.mcugen.{self.item.symbol}"

    @property
    def needs_fragment(self) -> bool:
        """True where the program is wrong, not just slower, without the linker fragment: a DMA buffer that would be
        in the user's .bss. Its C must refer to FRAGMENT_SYMBOL."""
        return self.item.dma and self.item.role == "arena" and self.region != DEFAULT_REGION

    def explain(self) -> str:
        """One line for the user."""
        return f"{self.item.symbol} ({self.item.role}, {self.item.size} bytes) in {self.region}: {self.reason}"


@dataclass(frozen=True, slots=True)
class Usage:
    """Bytes of one region: ``used`` by the model, ``available`` to it without the user's reserve, ``usable`` with."""

    region: str
    used: int
    available: int
    usable: int


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """Assignments in the order of the items; usage in the order of the board's regions (none without a board).

    ``next_kib``: by fast memory, the stall cycles a run that another KiB of it would save (an estimate). ``kernels``:
    the functions of the runtime that any of the models placed together calls; those of this one are assignments too.
    """

    board: Board | None
    assignments: tuple[Assignment, ...]
    usage: tuple[Usage, ...]
    next_kib: tuple[tuple[str, float], ...] = ()
    kernels: tuple[Assignment, ...] = ()

    def of(self, symbol: str) -> Assignment:
        """The assignment of a symbol; KeyError if there is none."""
        for a in self.assignments:
            if a.item.symbol == symbol:
                return a
        raise KeyError(symbol)


class PlanDoesNotFitError(DoesNotFitError):
    """A memory is too small. ``table``: lines that say what fills it, the largest first."""

    def __init__(self, where: str, what: str, hint: str, table: tuple[str, ...]) -> None:
        super().__init__(where, what, hint)
        self.table = table


def section_of(item: Item, region: Region | None) -> str:
    """The linker section of an object; ``region`` None: no board.

    The names fall back safely: where the fragment is missing, every linker script takes ``.text.*``, ``.rodata.*``
    and ``.bss.*``, and the program is right and only slower.
    """
    where = "" if region is None or region.home else f"{region.name}."
    if item.role == "code":
        return f".text.mcugen.{where}{item.symbol}"
    if item.role == "arena" or where:
        return f".bss.mcugen.{where}{item.symbol}"
    return f".rodata.mcugen.{item.symbol}"


def contents_table(region: Region, board: Board, parts: list[tuple[str, int]]) -> tuple[str, ...]:
    """What fills a region: one line an object, the largest first, then the sums."""
    ordered = sorted((p for p in parts if p[1]), key=lambda p: (-p[1], p[0]))
    total = sum(size for _, size in ordered)
    shown, rest = ordered[:10], ordered[10:]
    lines = [f"{size:>12,}  {name}" for name, size in shown]
    if rest:
        lines.append(f"{sum(s for _, s in rest):>12,}  {len(rest)} smaller objects")
    lines.append(f"{total:>12,}  needed in {region.name} of {board.name}")
    lines.append(f"{region.available:>12,}  available, and {region.reserve:,} reserved for the application")
    return tuple(lines)
