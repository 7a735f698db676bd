"""Where the sections of mcugen land in a user's script, by address, for given names of memories.

The rules are those of GNU ld with the fragment read before the script: where both declare a name, the script's numbers
count; sections of the fragment come behind .bss, in the memory of their name, after what the script put there before.
"""

from __future__ import annotations

import fnmatch
from dataclasses import dataclass

from mcugen.doctor.ld_script import Memory, OutputSection, Script
from mcugen.target.board import Board, Region
from mcugen.target.fragment import FragmentNames, output_section, placed_regions, section_unit

#: What is linked into slot 0 ahead of its objects, with its padding: the marker that mcg_sections_init is called.
_MARKER = 8
_ALIAS = "{} is an alias (REGION_ALIAS) in this script, and the fragment declares it"


@dataclass(frozen=True, slots=True)
class Landing:
    """Where the objects of one memory begin. ``at``: exactly there if ``exact``, else there or behind it.

    ``end``: first address that they may not reach. ``problem``: why that is wrong, or empty; ``silent``: the linker
    may not notice.
    """

    region: Region
    pattern: str
    output: str
    name: str
    at: int
    exact: bool
    end: int
    problem: str = ""
    silent: bool = False

    @property
    def name_is_alias(self) -> bool:
        """The only problem is that the script gives the name to another memory as an alias."""
        return self.problem.startswith(_ALIAS.format(self.name))

    @property
    def room(self) -> int:
        """Bytes for objects, at most."""
        return max(0, self.end - self.at)


@dataclass(frozen=True, slots=True)
class Fallback:
    """Where an input section goes without the fragment: output section and memory of the script, or empty."""

    pattern: str
    output: str
    memory: str


def patterns_of(region: Region, board: Board) -> str:
    """The input sections that the fragment puts into a memory."""
    kind = "text" if region in board.code_regions else "bss"
    return f".{kind}.mcugen.{region.name}.*"


def landings(script: Script, board: Board, names: FragmentNames) -> tuple[Landing, ...]:
    """One for each memory that the fragment serves."""
    return tuple(_landing(script, board, names, r, slot) for slot, r in enumerate(placed_regions(board)))


def _landing(script: Script, board: Board, names: FragmentNames, region: Region, slot: int) -> Landing:
    name = names.memory(region)
    user = script.memory(name)
    origin, limit = (region.base, region.end) if user is None else (user.origin, user.end)
    code = region in board.code_regions
    unit = section_unit(region, board)
    own = user.name if user is not None else name
    ahead = _ahead(script, own)
    at = -(-origin // unit) * unit
    first_data = next(r for r in placed_regions(board) if r not in board.code_regions)
    at += max(8, region.skip) if code else _MARKER if region is first_data else 0
    end = min(limit, region.end)
    problem, silent = _problem(script, board, name, region, user, at, end)
    exact = not ahead
    return Landing(region, patterns_of(region, board), output_section(region), name, at, exact, end, problem, silent)


def _ahead(script: Script, memory: str) -> list[OutputSection]:
    """Sections that stand in ``memory`` before those of the fragment."""
    found = []
    for section in script.sections:
        if section.region == memory and section.name != "/DISCARD/":
            found.append(section)
        if section.name == ".bss":
            break
    return found


def _problem(
    script: Script, board: Board, name: str, region: Region, user: Memory | None, at: int, end: int
) -> tuple[str, bool]:
    if name in script.aliases:
        return _ALIAS.format(name), False
    if user is not None and user.length == 0:
        return f"{name} has length 0", False
    if user is not None and not region.base <= user.origin < region.end:
        what = memory_at(board, user.origin)
        return f"{name} is at {user.origin:#010x}, which is {what}; {region.name} is at {region.base:#010x}", False
    if at >= end:
        return f"{name} has {user.length if user else 0} bytes: nothing fits", False
    other = _overlapping(script, region, user)
    if other:
        return other, True
    return "", False


def _overlapping(script: Script, region: Region, user: Memory | None) -> str:
    """A section of the user's that stands in this memory under another name: the linker sees two memories."""
    for section in script.sections:
        memory = script.memory(section.region) if section.region else None
        if section.name == "/DISCARD/" or (user is not None and memory is not None and memory.name == user.name):
            continue
        if memory is None and not section.address:
            continue  # "section 0 :" without a memory is for debuggers: it takes no place
        begins = section.address if section.address is not None else memory.origin if memory is not None else None
        if begins is None or not region.base <= begins < region.end or (memory is not None and memory.length == 0):
            continue
        if section.address is not None and not section.inputs:
            continue
        # Two halves of one memory under two names are apart.
        if user is not None and memory is not None and (memory.origin >= user.end or memory.end <= user.origin):
            continue
        called = f"memory {memory.name}" if memory is not None else f"address {begins:#010x}"
        return f"{section.name} stands in {region.name} too, as {called}: both would begin there"
    return ""


def load_problem(script: Script, board: Board, names: FragmentNames) -> str:
    """Why the memory that the fragment calls its flash cannot hold what is copied to RAM; empty if it can."""
    low, high = names.load_range(board)
    user = script.memory(names.flash)
    if names.flash in script.aliases:
        return _ALIAS.format(names.flash)
    loaded = load_memory(script)
    where = f"this script loads from {loaded.name} at {loaded.origin:#010x}" if loaded is not None else "no load region"
    if user is None:
        return f"there is no memory {names.flash}, where what start-up copies would stand: {where}"
    if not low <= user.origin < high or user.length == 0:
        return f"{names.flash} is at {user.origin:#010x}, not in flash: {where}"
    used = any(user.name in (s.region, s.load) for s in script.sections)
    if not used and user.origin == low:
        return f"{names.flash} holds nothing of this script: {where}"
    return ""


def load_memory(script: Script) -> Memory | None:
    """The memory that the script loads .data from, or that holds its code."""
    for name in (".data", ".text", ".rodata"):
        section = script.section(name)
        if section is not None and (section.load or (section.region and name != ".data")):
            return script.memory(section.load or section.region)
    data = script.section(".data")
    return script.memory(data.region) if data is not None else None


def memory_at(board: Board, address: int) -> str:
    """The name of the part's memory at an address."""
    found = next((r.name for r in board.regions if r.base <= address < r.end), None)
    return found or "no memory inside the part"


def names_for(script: Script, board: Board) -> FragmentNames:
    """Names under which the fragment fits this script: its own where it has the memory, private ones elsewhere."""
    chosen: dict[str, str] = {}
    for region in placed_regions(board):
        candidates = [m for m in script.memories if region.base <= m.origin < region.end and m.length > 0]
        candidates.sort(key=lambda m: (-_sections_in(script, m), m.name != region.linker, -m.length, m.origin))
        if candidates:
            chosen[region.name] = candidates[0].name
        elif script.memory(region.linker) is None:
            chosen[region.name] = region.linker
        else:
            chosen[region.name] = f"MCG_{region.name.upper()}"
    load = load_memory(script)
    if load is None:
        return FragmentNames(board.home.linker, chosen)
    bounds = None if board.home.base <= load.origin < board.home.end else (load.origin, load.end)
    return FragmentNames(load.name, chosen, bounds)


def _sections_in(script: Script, memory: Memory) -> int:
    return sum(s.region == memory.name for s in script.sections)


def fallbacks(script: Script, board: Board) -> tuple[Fallback, ...]:
    """What takes each kind of section when the fragment is not linked."""
    return tuple(_fallback(script, p) for p in (".text.mcugen.x", ".rodata.mcugen.x", ".bss.mcugen.x"))


def _fallback(script: Script, section: str) -> Fallback:
    shown = section.removesuffix("x") + "*"
    for output in script.sections:
        if any(i.every_file and fnmatch.fnmatchcase(section, i.pattern) for i in output.inputs):
            return Fallback(shown, output.name, output.region)
    return Fallback(shown, "", "")


def swallowed(script: Script) -> list[tuple[OutputSection, str, OutputSection, str]]:
    """Patterns that never match, since a section above takes all of it: (section, pattern, taken by, its pattern); the
    first of each section."""
    found: list[tuple[OutputSection, str, OutputSection, str]] = []
    for i, section in enumerate(script.sections):
        for wanted in section.inputs:
            if found and found[-1][0] is section:
                break
            plain = wanted.pattern.rstrip("*").rstrip(".")
            if not wanted.every_file or not plain or any(c in plain for c in "*?["):
                continue
            for above in script.sections[:i]:
                # A pattern of its own with a star behind: .data* takes .data_RAM_D2.
                taker = next(
                    (
                        p.pattern
                        for p in above.inputs
                        if p.every_file and "*" in p.pattern and fnmatch.fnmatchcase(plain, p.pattern)
                    ),
                    None,
                )
                if taker is not None and taker != wanted.pattern:
                    found.append((section, wanted.pattern, above, taker))
                    break
    return found
