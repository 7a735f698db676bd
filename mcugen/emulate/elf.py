"""An ELF file as a value: what is loaded where, which symbol an address belongs to, bytes by memory."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field
from io import BytesIO

from mcugen.emulate.extra import optional
from mcugen.errors import InternalError
from mcugen.target.board import Board, Region

#: Sections that are no bytes of the program: the stack is measured, not linked.
STACK_SECTION = ".stack"


@dataclass(frozen=True, slots=True)
class Segment:
    """Bytes that are loaded at ``load`` and used at ``address``."""

    address: int
    load: int
    data: bytes


@dataclass(frozen=True, slots=True)
class Section:
    """A section that takes memory; ``stored``: it has contents in the load image."""

    name: str
    address: int
    size: int
    stored: bool


@dataclass(frozen=True, slots=True)
class Symbol:
    """``address`` without the Thumb bit; ``size`` 0 where the file does not tell."""

    name: str
    address: int
    size: int
    function: bool


@dataclass(frozen=True, slots=True, eq=False)
class Elf:
    """What the emulator and the reports need of an ELF file."""

    data: bytes
    segments: tuple[Segment, ...]
    sections: tuple[Section, ...]
    symbols: Mapping[str, Symbol]
    _ordered: tuple[Symbol, ...] = field(default=(), repr=False)

    def address(self, name: str) -> int:
        """The address of a symbol, which must exist."""
        symbol = self.symbols.get(name)
        if symbol is None:
            raise InternalError("test image", f"symbol {name} is missing")
        return symbol.address

    def symbol_at(self, address: int) -> str:
        """``name+offset`` of the object or function that holds ``address``; empty where there is none."""
        i = bisect_right(self._ordered, address, key=lambda s: s.address) - 1
        if i < 0:
            return ""
        s = self._ordered[i]
        offset = address - s.address
        if offset >= max(s.size, 4):
            return ""
        return f"{s.name}+{offset:#x}" if offset else s.name

    def functions(self) -> tuple[Symbol, ...]:
        """Functions in the order of their addresses."""
        return tuple(s for s in self._ordered if s.function)

    def bytes_by_region(self, board: Board) -> dict[str, int]:
        """Bytes by memory: what the load image takes of the home memory, and what the program takes of each RAM."""
        total = {r.name: 0 for r in board.regions}
        for s in self.sections:
            if s.name == STACK_SECTION or s.size == 0:
                continue
            region = region_at(board, s.address)
            if region is not None and not region.home:
                total[region.name] += s.size
            if s.stored:
                total[board.home.name] += s.size
        return total


def region_at(board: Board, address: int) -> Region | None:
    """The memory that holds ``address``."""
    return next((r for r in board.regions if r.base <= address < r.end), None)


def read_elf(data: bytes) -> Elf:
    """Reads a linked program. InputError where pyelftools is not installed."""
    elf = optional("elftools.elf.elffile").ELFFile(BytesIO(data))
    segments = tuple(
        Segment(s["p_vaddr"], s["p_paddr"], s.data())
        for s in elf.iter_segments()
        if s["p_type"] == "PT_LOAD" and s["p_filesz"]
    )
    sections = tuple(
        Section(s.name, s["sh_addr"], s["sh_size"], s["sh_type"] != "SHT_NOBITS")
        for s in elf.iter_sections()
        if s["sh_flags"] & 2
    )
    symbols: dict[str, Symbol] = {}
    table = elf.get_section_by_name(".symtab")
    for s in table.iter_symbols() if table else ():
        kind = s["st_info"]["type"]
        # Mapping symbols ($t, $d) and absolute values are no places.
        if s.name and not s.name.startswith("$") and kind in {"STT_FUNC", "STT_OBJECT", "STT_NOTYPE"}:
            function = kind == "STT_FUNC"
            symbols.setdefault(s.name, Symbol(s.name, s["st_value"] & ~int(function), s["st_size"], function))
    ordered = sorted((s for s in symbols.values() if s.function or s.size), key=lambda s: (s.address, s.size))
    return Elf(data, segments, sections, symbols, tuple(ordered))
