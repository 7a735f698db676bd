"""The linker fragment of a board, as text. It knows memories and no model: one file serves every export.

What the fragment does, and how it is included, is on the page linker/README.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from mcugen.errors import InternalError
from mcugen.target.board import Board, Region
from mcugen.target.plan import FRAGMENT_SYMBOL

#: Slots for zeroed memories in runtime_c/src/mcg_sections.c.
ZERO_SLOTS = 8
_HEAD = """\
/* mcugen: puts the fast parts of exported models into the memories of @NAME@.
 *
 * Written by mcugen from its board file; the same for every model, so a project needs it once.
 * Pass it to the linker beside your own script:  -Wl,-T,mcugen.ld  (with GNU ld it is read before yours).
 * "redeclaration of memory region" is a harmless warning: your addresses count. Do not silence it with --no-warnings:
 * ld 2.40 then hides errors too, and writes a broken program. Call mcg_sections_init() first in main.
 * SPDX-License-Identifier: MIT-0
 */
"""

_CALLED = """\
    /* Something of mcg_sections.c that --gc-sections drops when nobody calls it. Its bytes are never used. */
    __mcg_called_start = .;
    *(.bss.mcugen.called)
    __mcg_called_end = .;
    . = ALIGN(@UNIT@);
"""


@dataclass(frozen=True, slots=True)
class FragmentNames:
    """Names of memories in the user's MEMORY. ``flash``: the one that code is loaded from; ``others``: by region name,
    the board's where missing. ``load``: the addresses [low, high) of ``flash`` where it is not the part's flash."""

    flash: str
    others: Mapping[str, str] = field(default_factory=dict)
    load: tuple[int, int] | None = None

    @classmethod
    def of_board(cls, board: Board) -> FragmentNames:
        """The names that the board file gives: those of the fragment in every export."""
        return cls(board.home.linker)

    def memory(self, region: Region) -> str:
        """The name of a region."""
        return self.flash if region.home else self.others.get(region.name, region.linker)

    def load_range(self, board: Board) -> tuple[int, int]:
        """Where load images may stand."""
        return self.load or (board.home.base, board.home.end)


def placed_regions(board: Board) -> tuple[Region, ...]:
    """The memories that have a section in the fragment, in its order: code first, then zeroed memories by slot."""
    ram = [r for r in board.regions if r.writable and r.roles]
    zeroed = [r for r in ram if set(r.roles) & {"table", "arena"}]
    if len(zeroed) > ZERO_SLOTS:
        raise InternalError(board.name, f"{len(zeroed)} memories, but the runtime zeroes {ZERO_SLOTS}")
    return (*board.code_regions[:1], *zeroed)


def output_section(region: Region) -> str:
    """The output section of a region."""
    return f".mcugen_{region.name}"


def section_unit(region: Region, board: Board) -> int:
    """Bytes to which the section of a region is aligned, start and end."""
    return board.core.cache_line if region.cached and region not in board.code_regions else 8


_COPIES = """\
  /* What mcg_sections_init copies. Left to the linker, it would stand behind any read-only section, even in RAM. */
  mcg_table_copies : ALIGN(4)
  {
    __mcg_copies_start = .;
    KEEP(*(mcg_table_copies))
    __mcg_copies_end = .;
  } > @FLASH@
"""


def fragment_text(board: Board, names: FragmentNames | None = None) -> str:
    """The fragment for ``board``; ``names``: those of one linker script, the board's by default."""
    names = names or FragmentNames.of_board(board)
    placed = placed_regions(board)
    code = next((r for r in placed if r in board.code_regions), None)
    zeroed = [r for r in placed if r is not code]
    sections = [_COPIES.replace("@FLASH@", names.flash)]
    sections += [_code_section(code, names)] if code else []
    sections += [_data_section(slot, r, board, names.memory(r)) for slot, r in enumerate(zeroed)]
    asserts = _copies_asserts(board, names)
    asserts += _code_asserts(code, board, names) if code else []
    for r in zeroed:
        asserts += _data_asserts(r, names.memory(r))
    declared = [r for r in board.regions if r in placed or (r.home and names.load is None)]
    lines = {names.memory(r): _memory_line(r, names.memory(r)) for r in declared}
    return (
        _HEAD.replace("@NAME@", board.name)
        + "\nMEMORY\n{\n"
        + "".join(lines.values())
        + "}\n\nSECTIONS\n{\n  __mcg_bss_end = .;\n\n"
        + "\n".join(sections)
        + f"\n  /* For C that is wrong without this file: it refers to the symbol. */\n  {FRAGMENT_SYMBOL} = 1;\n\n"
        + "".join(asserts)
        + "\n  /* The script may give a name to the end of .bss behind the section. */\n  . = __mcg_bss_end;\n"
        + "}\nINSERT AFTER .bss;\n"
    )


def _memory_line(region: Region, name: str) -> str:
    """No attributes: ld must not choose one of these for an orphan section of the user."""
    return f"  {name} : ORIGIN = {region.base:#010x}, LENGTH = {region.size}\n"


def _code_section(region: Region, names: FragmentNames) -> str:
    n = region.name
    return f"""\
  /* Code that runs from {n}. {region.skip} bytes stay free: a function at address 0 would be a null pointer. */
  .mcugen_{n} : ALIGN(8)
  {{
    . = . + {max(8, region.skip)};
    __mcg_{n}_start = .;
    __mcg_code_start = .;
    *(.text.mcugen.{n}.*)
    . = ALIGN(8);
    __mcg_{n}_end = .;
    __mcg_code_end = .;
  }} > {names.memory(region)} AT> {names.flash}
  __mcg_{n}_load = LOADADDR(.mcugen_{n}) + {max(8, region.skip)};
  __mcg_code_load = __mcg_{n}_load;
"""


def _data_section(slot: int, region: Region, board: Board, name: str) -> str:
    n = region.name
    unit = section_unit(region, board)
    clock = region.clock
    switch = (
        f"  __mcg_zero{slot}_clock = {clock.register:#010x};\n  __mcg_zero{slot}_clock_mask = {clock.mask:#010x};\n"
        if clock
        else ""
    )
    called = "" if slot else _CALLED.replace("@UNIT@", str(unit))
    return f"""\
  .mcugen_{n} (NOLOAD) : ALIGN({unit})
  {{
{called}    __mcg_{n}_start = .;
    *(.bss.mcugen.{n}.*)
    . = ALIGN({unit});
    __mcg_{n}_end = .;
  }} > {name}
  __mcg_zero{slot}_start = __mcg_{n}_start;
  __mcg_zero{slot}_end = __mcg_{n}_end;
{switch}"""


def _assert(condition: str, text: str) -> str:
    """Inside SECTIONS, so that it moves behind .bss: DEFINED sees only what stands before it."""
    return f'  ASSERT({condition},\n    "mcugen: {text}")\n'


def _copies_asserts(board: Board, names: FragmentNames) -> list[str]:
    low, high = names.load_range(board)
    return [
        _assert(
            "__mcg_copies_end == __mcg_copies_start"
            f" || (__mcg_copies_start > {low:#x} && __mcg_copies_end <= {high:#x})",
            f"the linker script does not call its flash {names.flash}; change that word in mcugen.ld",
        )
    ]


def _code_asserts(region: Region, board: Board, names: FragmentNames) -> list[str]:
    n, load = region.name, f"__mcg_{region.name}_load"
    low, high = names.load_range(board)
    empty = f"__mcg_{n}_end == __mcg_{n}_start"
    return [
        _assert(
            f"{empty} || (__mcg_{n}_start >= {region.base + region.skip:#x} && __mcg_{n}_end <= {region.end:#x})",
            f"{names.memory(region)} of the linker script is not {n}",
        ),
        # Clearer than ld's own report of overlapping load addresses.
        _assert(
            f"{empty} || (LOADADDR(.mcugen_{n}) > {low:#x}\n"
            f"  && {load} + (__mcg_{n}_end - __mcg_{n}_start) <= {high:#x})",
            f"the linker script does not call its flash {names.flash}; change that word in mcugen.ld",
        ),
        _assert(
            f"{empty} || __mcg_called_end != __mcg_called_start",
            f"code in {n} never gets there: call mcg_sections_init() first in main",
        ),
        _assert(f"{empty} || ({load} & 3) == 0", f"the load image of {n} is not aligned"),
    ]


def _data_asserts(region: Region, name: str) -> list[str]:
    """ld notices neither a memory with two names nor two NOLOAD sections in one place.

    ld refuses ADDR of a section that does not exist, and a mere ADDR(.bss) changes the order of sections: hence
    the symbols. Objects in the same MEMORY region as .bss stand behind it, and before heap and stack.
    """
    n = region.name
    start, end = f"__mcg_{n}_start", f"__mcg_{n}_end"
    empty = f"{end} == {start}"
    other_name = f"overlaps the objects in {n}: the linker script has another name for {name}"
    inside = f"_estack > {region.base:#x} && _estack <= {region.end:#x}"
    stack = "(DEFINED(_Min_Stack_Size) ? _Min_Stack_Size : 0x400)"
    return [
        _assert(
            f"{empty} || ({start} >= {region.base + region.skip:#x} && {end} <= {region.end:#x})",
            f"{name} of the linker script is not {n}, or it is full",
        ),
        _assert(
            f"{empty} || __mcg_bss_end <= {start}"
            f" || __mcg_bss_end < {region.base:#x} || __mcg_bss_end > {region.end:#x}",
            f".bss {other_name}",
        ),
        _assert(
            f"{empty} || (DEFINED(_sdata) && DEFINED(_edata) ? _edata <= {start} || _sdata >= {end} : 1)",
            f".data {other_name}",
        ),
        _assert(
            # A heap grows up: one that begins in this memory must begin behind the objects.
            f"{empty} || (DEFINED(_end) ? _end < {region.base:#x} || _end >= {end} : 1)",
            f"the heap {other_name}",
        ),
        _assert(
            # A stack grows down: below the objects it is out of their way.
            f"{empty} || (DEFINED(_estack) ? !({inside}) || _estack <= {start} || {end} + {stack} <= _estack : 1)",
            f"no room for the stack behind the objects in {n}",
        ),
    ]
