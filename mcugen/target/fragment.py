"""The linker fragment of a board, as text. It knows memories and no model: one file serves every export.

What the fragment does, and how it is included, is on the page linker/README.md.
"""

from __future__ import annotations

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


def fragment_text(board: Board, flash: str | None = None) -> str:
    """The fragment for ``board``. ``flash``: the name of the flash in the user's MEMORY; the board's by default."""
    ram = [r for r in board.regions if r.writable and r.roles]
    zeroed = [r for r in ram if set(r.roles) & {"table", "arena"}]
    if len(zeroed) > ZERO_SLOTS:
        raise InternalError(board.name, f"{len(zeroed)} memories, but the runtime zeroes {ZERO_SLOTS}")
    home = board.home
    flash = flash or home.linker
    code = next((r for r in ram if "code" in r.roles), None)
    sections = [_code_section(code, flash)] if code else []
    sections += [_data_section(slot, r, board) for slot, r in enumerate(zeroed)]
    asserts = _code_asserts(code, home, flash) if code else []
    for r in zeroed:
        asserts += _data_asserts(r)
    declared = [r for r in board.regions if r.home or r in ram]
    return (
        _HEAD.replace("@NAME@", board.name)
        + "\nMEMORY\n{\n"
        + "".join(_memory_line(r, flash if r.home else r.linker) for r in declared)
        + "}\n\nSECTIONS\n{\n  __mcg_bss_end = .;\n\n"
        + "\n".join(sections)
        + f"\n  /* For C that is wrong without this file: it refers to the symbol. */\n  {FRAGMENT_SYMBOL} = 1;\n\n"
        + "".join(asserts)
        + "}\nINSERT AFTER .bss;\n"
    )


def _memory_line(region: Region, name: str) -> str:
    """No attributes: ld must not choose one of these for an orphan section of the user."""
    return f"  {name} : ORIGIN = {region.base:#010x}, LENGTH = {region.size}\n"


def _code_section(region: Region, flash: str) -> str:
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
  }} > {region.linker} AT> {flash}
  __mcg_{n}_load = LOADADDR(.mcugen_{n}) + {max(8, region.skip)};
  __mcg_code_load = __mcg_{n}_load;
"""


def _data_section(slot: int, region: Region, board: Board) -> str:
    n = region.name
    unit = board.core.cache_line if region.cached else 8
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
  }} > {region.linker}
  __mcg_zero{slot}_start = __mcg_{n}_start;
  __mcg_zero{slot}_end = __mcg_{n}_end;
{switch}"""


def _assert(condition: str, text: str) -> str:
    """Inside SECTIONS, so that it moves behind .bss: DEFINED sees only what stands before it."""
    return f'  ASSERT({condition},\n    "mcugen: {text}")\n'


def _code_asserts(region: Region, home: Region, flash: str) -> list[str]:
    n, load = region.name, f"__mcg_{region.name}_load"
    empty = f"__mcg_{n}_end == __mcg_{n}_start"
    return [
        _assert(
            f"{empty} || (__mcg_{n}_start >= {region.base + region.skip:#x} && __mcg_{n}_end <= {region.end:#x})",
            f"{region.linker} of the linker script is not {n}",
        ),
        # Clearer than ld's own report of overlapping load addresses.
        _assert(
            f"{empty} || (LOADADDR(.mcugen_{n}) > {home.base:#x}\n"
            f"  && {load} + (__mcg_{n}_end - __mcg_{n}_start) <= {home.end:#x})",
            f"the linker script does not call its flash {flash}; change that word in mcugen.ld",
        ),
        _assert(
            f"{empty} || __mcg_called_end != __mcg_called_start",
            f"code in {n} never gets there: call mcg_sections_init() first in main",
        ),
        _assert(f"{empty} || ({load} & 3) == 0", f"the load image of {n} is not aligned"),
    ]


def _data_asserts(region: Region) -> list[str]:
    """ld notices neither a memory with two names nor two NOLOAD sections in one place.

    ld refuses ADDR of a section that does not exist, and a mere ADDR(.bss) changes the order of sections: hence
    the symbols. Objects in the same MEMORY region as .bss stand behind it, and before heap and stack.
    """
    n = region.name
    start, end = f"__mcg_{n}_start", f"__mcg_{n}_end"
    empty = f"{end} == {start}"
    other_name = f"overlaps the objects in {n}: the linker script has another name for {region.linker}"
    inside = f"_estack > {region.base:#x} && _estack <= {region.end:#x}"
    stack = "(DEFINED(_Min_Stack_Size) ? _Min_Stack_Size : 0x400)"
    return [
        _assert(
            f"{empty} || ({start} >= {region.base + region.skip:#x} && {end} <= {region.end:#x})",
            f"{region.linker} of the linker script is not {n}, or it is full",
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
            f"{empty} || (DEFINED(_end) ? _end <= {start} || _end >= {end} : 1)",
            f"the heap {other_name}",
        ),
        _assert(
            f"{empty} || (DEFINED(_estack) ? !({inside}) || {end} + {stack} <= _estack : 1)",
            f"no room for the stack behind the objects in {n}",
        ),
    ]
