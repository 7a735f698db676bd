"""Changes one fact of a linked program: what a wrong link would have left there. The file keeps its layout."""

from __future__ import annotations

import struct
from io import BytesIO
from typing import Any

from elftools.elf.elffile import ELFFile


class Patch:
    """Bytes of an ELF file that can be changed by the names of their parts."""

    def __init__(self, data: bytes) -> None:
        self.data = bytearray(data)
        self.elf: Any = ELFFile(BytesIO(data))

    def word(self, offset: int, value: int) -> Patch:
        struct.pack_into("<I", self.data, offset, value & 0xFFFF_FFFF)
        return self

    def _symbol(self, name: str) -> tuple[int, Any]:
        table = self.elf.get_section_by_name(".symtab")
        for i, s in enumerate(table.iter_symbols()):
            if s.name == name:
                return table["sh_offset"] + 16 * i, s
        raise AssertionError(f"no symbol {name}")

    def value(self, name: str) -> int:
        return int(self._symbol(name)[1]["st_value"])

    def symbol(self, name: str, value: int, size: int | None = None) -> Patch:
        """Another address, and another size if given."""
        at, _ = self._symbol(name)
        self.word(at + 4, value)
        return self if size is None else self.word(at + 8, size)

    def forget(self, name: str) -> Patch:
        """As if nothing defined the symbol."""
        at, _ = self._symbol(name)
        struct.pack_into("<H", self.data, at + 14, 0)
        return self

    def section(self, name: str, address: int) -> Patch:
        for i, s in enumerate(self.elf.iter_sections()):
            if s.name == name:
                return self.word(self.elf["e_shoff"] + self.elf["e_shentsize"] * i + 12, address)
        raise AssertionError(f"no section {name}")

    def contents(self, name: str, data: bytes) -> Patch:
        """Other bytes: at the end of the file, where the section then points to."""
        for i, s in enumerate(self.elf.iter_sections()):
            if s.name == name:
                head = self.elf["e_shoff"] + self.elf["e_shentsize"] * i
                self.word(head + 16, len(self.data)).word(head + 20, len(data))
                self.data += data
                return self
        raise AssertionError(f"no section {name}")

    def _segment(self, address: int) -> tuple[int, Any]:
        for i, s in enumerate(self.elf.iter_segments()):
            if s["p_type"] == "PT_LOAD" and s["p_vaddr"] <= address < s["p_vaddr"] + s["p_memsz"]:
                return self.elf["e_phoff"] + self.elf["e_phentsize"] * i, s
        raise AssertionError(f"no segment at {address:#x}")

    def load(self, address: int, load: int | None = None, stored: int | None = None) -> Patch:
        """Another load address, or fewer stored bytes, of the segment that is used at ``address``."""
        at, _ = self._segment(address)
        if load is not None:
            self.word(at + 12, load)
        return self if stored is None else self.word(at + 16, stored)

    def memory(self, address: int, value: int) -> Patch:
        """Another word in the load image."""
        _, s = self._segment(address)
        return self.word(s["p_offset"] + address - s["p_vaddr"], value)
