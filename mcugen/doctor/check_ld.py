"""check-ld: what a user's linker script makes of mcugen's sections, by address, before anything is linked.

A name says nothing: vendors' scripts call AXI SRAM "RAM" or "RAM_D1", and sometimes swap two names. So every memory of
the script is looked up by its address, and every section of mcugen is followed to an address.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from mcugen.doctor.ld_layout import (
    Fallback,
    Landing,
    fallbacks,
    landings,
    load_memory,
    load_problem,
    memory_at,
    names_for,
    swallowed,
)
from mcugen.doctor.ld_script import Memory, Script
from mcugen.target.board import Board
from mcugen.target.fragment import FragmentNames, fragment_text, placed_regions

_NO_NEEDS: Mapping[str, int] = MappingProxyType({})
_FLAG = "-Wl,-T,mcugen/mcugen.ld"


@dataclass(frozen=True, slots=True)
class Finding:
    """``wrong``: must be changed before this can be relied on; else worth knowing. ``remedy``: what to do;
    ``names``: a fragment with the names of the script is all that is needed."""

    wrong: bool
    where: str
    text: str
    remedy: str = ""
    names: bool = False

    def line(self) -> str:
        """One line."""
        kind = "problem" if self.wrong else "note"
        return f"{kind:<9} {self.where}: {self.text}" + (f" ({self.remedy})" if self.remedy else "")


@dataclass(frozen=True, slots=True, eq=False)
class LdReport:
    """``standard``: where sections land with the fragment of every export; ``adapted``: with one that has the names of
    this script (``names``). ``flash_problem``: why the standard one finds no flash. ``fallback``: where sections go
    without a fragment."""

    script: Script
    board: Board
    standard: tuple[Landing, ...]
    adapted: tuple[Landing, ...]
    names: FragmentNames
    flash_problem: str
    fallback: tuple[Fallback, ...]
    findings: tuple[Finding, ...]
    included: bool

    @property
    def fits(self) -> bool:
        """Whether the fragment of every export can be used as it is."""
        return not any(f.wrong for f in self.findings)

    @property
    def adapted_fits(self) -> bool:
        """Whether a fragment with the names of this script can be used."""
        return not any(f.wrong and not f.names for f in self.findings)

    @property
    def adapted_text(self) -> str:
        """The fragment with the names of this script."""
        return fragment_text(self.board, self.names)


def check_script(script: Script, board: Board, needs: Mapping[str, int] = _NO_NEEDS) -> LdReport:
    """``needs``: bytes that exports want in each memory, from their manifests."""
    standard_names = FragmentNames.of_board(board)
    names = names_for(script, board)
    standard = landings(script, board, standard_names)
    adapted = landings(script, board, names)
    included = any(s.name.startswith(".mcugen_") for s in script.sections)
    findings = [*_bss(script), *_aliases(script, board)]
    flash = load_problem(script, board, standard_names)
    if not included:
        findings += _flash_findings(flash, load_problem(script, board, names), standard_names)
        findings += _landing_findings(standard, adapted)
    findings += _too_small(script, board, standard if not any(x.problem for x in standard) else adapted, needs)
    findings += _declared(script, board)
    findings += [*_without_memory(script), *_fallback_findings(script, board)]
    findings += [
        Finding(False, s.name, f"{pattern} is never found here: {taken} in {above.name} takes it first", "reorder them")
        for s, pattern, above, taken in swallowed(script)
    ]
    told = tuple(findings)
    return LdReport(script, board, standard, adapted, names, flash, fallbacks(script, board), told, included)


def _bss(script: Script) -> list[Finding]:
    if script.section(".bss") is not None:
        return []
    what = (
        "there is no output section .bss, behind which the fragment is inserted: ld answers '.bss not found for insert'"
    )
    return [Finding(True, "SECTIONS", what, "give the section with *(.bss*) that name")]


def _aliases(script: Script, board: Board) -> list[Finding]:
    """Names that the fragment declares, used or not, and that an alias has here."""
    declared = {board.home.linker, *(r.linker for r in placed_regions(board))}
    clash = sorted(declared & set(script.aliases))
    if not clash:
        return []
    what = f"REGION_ALIAS gives {', '.join(clash)}, which mcugen.ld declares: ld stops at the second declaration"
    return [Finding(True, "MEMORY", what, names=True)]


def _flash_findings(now: str, then: str, names: FragmentNames) -> list[Finding]:
    if not now or (names.flash in now and "REGION_ALIAS" in now and not then):
        return []
    remedy = f"other names do not help: {then}" if then else ""
    return [Finding(True, "mcg_table_copies", f"{now}; a link error", remedy, names=not then)]


def _landing_findings(standard: Sequence[Landing], adapted: Sequence[Landing]) -> list[Finding]:
    found = []
    for now, then in zip(standard, adapted, strict=True):
        if not now.problem or (now.name_is_alias and not then.problem):
            continue  # an alias is told once, for all memories
        noticed = "the linker may not notice" if now.silent else "a link error as soon as a model uses it"
        remedy = f"other names do not help: {then.problem}" if then.problem else ""
        found.append(Finding(True, now.pattern, f"{now.problem}; {noticed}", remedy, names=not then.problem))
    return found


def _too_small(script: Script, board: Board, where: Sequence[Landing], needs: Mapping[str, int]) -> list[Finding]:
    found = []
    for x in where:
        if x.problem:
            continue
        wanted = needs.get(x.region.name, 0)
        memory = script.memory(x.name)
        if wanted > x.room:
            what = f"{x.name} has room for {x.room:,} bytes at most, the models need {wanted:,} in {x.region.name}"
            found.append(Finding(True, x.pattern, what, f"LENGTH = {x.region.size} is what the part has"))
        elif (
            memory is not None and memory.length < x.region.size and memory.length - x.region.skip < x.region.available
        ):
            what = f"{memory.length:,} bytes of {x.region.size:,} in {x.region.name}"
            planned = f"an export may plan with {x.region.available:,}"
            found.append(Finding(False, x.name, f"{what}; {planned}", "if it does not fit, ld says so"))
    home = load_memory(script)
    wanted = needs.get(board.home.name, 0)
    if home is not None and wanted > home.length:
        what = f"{home.length:,} bytes, the models need {wanted:,} of flash"
        found.append(Finding(True, home.name, what))
    return found


def _declared(script: Script, board: Board) -> list[Finding]:
    """Memories that are not what the part has there."""
    found = []
    for memory in script.memories:
        region = next((r for r in board.regions if r.base <= memory.origin < r.end), None)
        if region is None or memory.length == 0:
            continue
        end = region.end
        for following in board.regions:  # memories in a row count as one
            if following.base == end:
                end = following.end
        if memory.end > end:
            what = f"ends at {memory.end:#010x}, {region.name} of {board.name} at {end:#010x}"
            found.append(Finding(True, memory.name, what, f"LENGTH = {end - memory.origin}"))
        owner = next((r for r in board.regions if r.linker == memory.name), None)
        if owner is not None and owner is not region:
            what = f"is {region.name} ({memory.origin:#010x}); scripts of the vendor call {owner.name} so"
            found.append(Finding(False, memory.name, what))
    return found


def _without_memory(script: Script) -> list[Finding]:
    """Sections whose place this check cannot tell."""
    found = []
    for section in script.sections:
        if section.region or section.address is not None or not section.inputs or section.name == "/DISCARD/":
            continue
        found.append(Finding(False, section.name, "has no memory (> NAME): where it lands, ld decides by attributes"))
    return found[:3]


def _fallback_findings(script: Script, board: Board) -> list[Finding]:
    found = []
    for f in fallbacks(script, board):
        if not f.output:
            what = "no section of the script takes it: its place without the fragment is left to the linker"
            found.append(Finding(False, f.pattern, what))
    return found


def memory_text(memory: Memory, script: Script, board: Board) -> str:
    """One line on a memory of the script."""
    also = [a for a, target in script.aliases.items() if target == memory.name]
    shown = ", ".join(also[:2]) + (f" and {len(also) - 2} more" if len(also) > 2 else "")
    what = memory_at(board, memory.origin) if memory.length else "unused"
    return f"{memory.name:<12} {memory.origin:#010x} {memory.length:>11,}  {what}" + (f", also {shown}" if also else "")


def report_lines(report: LdReport, written: str | None = None) -> list[str]:
    """What check-ld prints. ``written``: the file that the adapted fragment was written to."""
    script, board = report.script, report.board
    lines = [f"{'memory':<12} {'origin':<10} {'bytes':>11}  on {board.name}"]
    lines += [memory_text(m, script, board) for m in script.memories]
    if report.included:
        lines.append("the script includes a fragment of mcugen already")
    use = report.standard if report.fits or written is None else report.adapted
    lines.append(f"{'section':<26} {'lands at':<21} memory")
    for x in use:
        begin = f"{x.at:#010x}" + ("" if x.exact else " or behind")
        lines.append(f"{x.pattern:<26} {begin if not x.problem else '-':<21} {x.region.name} as {x.name}")
    for f in report.fallback:
        if f.output:
            where = f" in {f.memory}" if f.memory else ""
            lines.append(f"{f.pattern:<26} without the fragment: {f.output}{where}")
    lines += [f.line() for f in report.findings if written is None or not f.names]
    if written is not None:
        lines.append(f"wrote     {written}: link with -Wl,-T,{written}")
    elif report.fits and not report.included:
        lines.append(f"do        link with {_FLAG}, and call mcg_sections_init() first in main")
    elif report.adapted_fits:
        lines.append(
            f"do        mcugen check-ld {script.name} --write mcugen_app.ld, and link with -Wl,-T,mcugen_app.ld"
        )
        if renames := _renames(report):
            lines.append(f"or        in mcugen.ld write {', '.join(renames)}")
    return lines


def _renames(report: LdReport) -> list[str]:
    """What to change by hand in the fragment."""
    home = report.board.home
    pairs = [(home.linker, report.names.flash)]
    pairs += [(r.linker, report.names.memory(r)) for r in placed_regions(report.board)]
    return [f"{new} for {old}" for old, new in pairs if new != old]
