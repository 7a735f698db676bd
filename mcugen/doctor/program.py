"""A linked program as a value, with what the checks ask of it. Reading only; the checks are in check_elf.py."""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mcugen.emit.plan_note import ABI_SECTION, PLAN_SECTION, PlanNote, read_notes
from mcugen.errors import InputError

if TYPE_CHECKING:
    from elftools.elf.elffile import ELFFile

_ALLOC = 2
_HARD_FLOAT = 0x400
_AFTER_LINK = ("ET_EXEC", "ET_DYN")


@dataclass(frozen=True, slots=True)
class Part:
    """A section that takes memory: bytes from ``address`` on. ``stored``: it has contents in the load image."""

    name: str
    address: int
    size: int
    stored: bool

    @property
    def end(self) -> int:
        """First address behind it."""
        return self.address + self.size


@dataclass(frozen=True, slots=True)
class Loaded:
    """Bytes that stand at ``load`` after programming and are used at ``address``; ``size``: with the zeroed rest."""

    address: int
    load: int
    data: bytes
    size: int


@dataclass(frozen=True, slots=True)
class Name:
    """A symbol. ``address`` without the Thumb bit; ``kind``: function, object or other."""

    name: str
    address: int
    size: int
    kind: str
    placed: bool


@dataclass(frozen=True, slots=True, eq=False)
class Program:
    """``names``: all symbols, by name (several static ones may share one). ``abis``: what object files were built for;
    ``hard_float``: None where the file does not say."""

    path: str
    entry: int
    hard_float: bool
    parts: tuple[Part, ...]
    loaded: tuple[Loaded, ...]
    names: Mapping[str, tuple[Name, ...]]
    notes: tuple[PlanNote, ...]
    abis: tuple[str, ...]
    _ordered: tuple[Name, ...]

    def value(self, name: str) -> int | None:
        """The address or value of a symbol that exists once."""
        found = self.names.get(name, ())
        return found[0].address if found else None

    def instances(self, symbol: str) -> tuple[Name, ...]:
        """The object or function ``symbol``, and the clones that compilers make of it (symbol.part.0)."""
        clones = [n for name, group in self.names.items() if name.startswith(f"{symbol}.") for n in group]
        return (*self.names.get(symbol, ()), *clones)

    def part(self, name: str) -> Part | None:
        """The section with this name."""
        return next((p for p in self.parts if p.name == name), None)

    def load_of(self, address: int) -> int | None:
        """Where the byte that is used at ``address`` stands after programming; None if nowhere."""
        for s in self.loaded:
            if s.address <= address < s.address + len(s.data):
                return s.load + address - s.address
        return None

    def read(self, address: int, size: int) -> bytes | None:
        """Bytes of the load image as they are used at ``address``; None where there are none."""
        for s in self.loaded:
            if s.address <= address and address + size <= s.address + len(s.data):
                return s.data[address - s.address : address - s.address + size]
        return None

    def words(self, address: int, count: int) -> tuple[int, ...] | None:
        """Little-endian 32-bit words."""
        data = self.read(address, 4 * count)
        return None if data is None else struct.unpack(f"<{count}I", data)

    def neighbour(self, address: int, end: int, own: str) -> Name | None:
        """An object other than ``own`` that shares the bytes [address, end)."""
        last = bisect_right(self._ordered, end - 1, key=lambda n: n.address)
        for n in reversed(self._ordered[:last]):
            if n.address + n.size > address and n.name != own:
                return n
            if n.address + 0x10000 < address:
                break
        return None


def read_program(path: Path) -> Program:
    """The program in a file. InputError if it is none that was linked for a little-endian 32-bit Arm."""
    if not path.is_file():
        raise InputError(str(path), "there is no such file", "give the .elf (or .axf) that the linker wrote")
    # Every command imports this module, and one reads programs.
    from elftools.common.exceptions import ELFError  # noqa: PLC0415
    from elftools.elf.elffile import ELFFile  # noqa: PLC0415

    try:
        data = path.read_bytes()
        return _parse(str(path), ELFFile(BytesIO(data)))
    except OSError as e:
        raise InputError(str(path), f"cannot be read: {e.strerror or e}") from None
    except (ELFError, ValueError, KeyError, struct.error, AttributeError, TypeError, AssertionError, IndexError) as e:
        hint = "give the .elf (or .axf) that the linker wrote"
        raise InputError(
            str(path), f"is not a linked program that can be read: {e or type(e).__name__}", hint
        ) from None


def _parse(path: str, elf: ELFFile) -> Program:
    if elf["e_machine"] != "EM_ARM" or elf.elfclass != 32 or not elf.little_endian:
        raise InputError(path, "is not a program for a little-endian 32-bit Arm", "give the .elf of the firmware")
    if elf["e_type"] not in _AFTER_LINK:
        raise InputError(path, "is an object file: nothing has an address yet", "give the linked .elf")
    parts = tuple(
        Part(s.name, s["sh_addr"], s["sh_size"], s["sh_type"] != "SHT_NOBITS")
        for s in elf.iter_sections()
        if s["sh_flags"] & _ALLOC and s["sh_size"]
    )
    loaded = tuple(
        Loaded(s["p_vaddr"], s["p_paddr"], s.data(), s["p_memsz"])
        for s in elf.iter_segments()
        if s["p_type"] == "PT_LOAD" and s["p_memsz"]
    )
    table = elf.get_section_by_name(".symtab")
    from elftools.elf.sections import SymbolTableSection  # noqa: PLC0415

    if not isinstance(table, SymbolTableSection):
        raise InputError(
            path, "has no symbols: nothing can be found in it", "check it before strip, or link without -s"
        )
    names: dict[str, tuple[Name, ...]] = {}
    for s in table.iter_symbols():
        kind = {"STT_FUNC": "function", "STT_OBJECT": "object", "STT_NOTYPE": "other"}.get(s["st_info"]["type"])
        if not s.name or s.name.startswith("$") or kind is None or s["st_shndx"] == "SHN_UNDEF":
            continue
        address = s["st_value"] & ~1 if kind == "function" else s["st_value"]
        found = Name(s.name, address, s["st_size"], kind, s["st_shndx"] != "SHN_ABS")
        names[s.name] = (*names.get(s.name, ()), found)
    ordered = sorted((n for group in names.values() for n in group if n.size and n.placed), key=lambda n: n.address)
    plan, abi = (elf.get_section_by_name(n) for n in (PLAN_SECTION, ABI_SECTION))
    notes = tuple(read_notes(plan.data())) if plan is not None else ()
    abis = tuple(sorted({t.decode("ascii") for t in abi.data().split(b"\0") if t})) if abi is not None else ()
    hard = bool(elf["e_flags"] & _HARD_FLOAT) or _hard_by_attributes(elf)
    return Program(path, elf["e_entry"] & ~1, hard, parts, loaded, names, notes, abis, tuple(ordered))


def _hard_by_attributes(elf: ELFFile) -> bool:
    """Tag_ABI_VFP_args: 1 where arguments travel in floating-point registers."""
    section: Any = elf.get_section_by_name(".ARM.attributes")
    if section is None:
        return False
    for sub in section.iter_subsections():
        for block in sub.iter_subsubsections():
            for attribute in block.iter_attributes():
                if attribute.tag == "TAG_ABI_VFP_ARGS":
                    return bool(attribute.value == 1)
    return False
