"""What check-elf prints. Not here: the checks."""

from __future__ import annotations

from mcugen.doctor.check_elf import ElfReport, copy_entries, our_parts, region_of
from mcugen.target.plan import DEFAULT_REGION


def elf_lines(report: ElfReport, with_map: bool = False) -> list[str]:
    """What check-elf prints: findings, or a summary that says what was proven."""
    lines = []
    if with_map:
        lines += [f"{'symbol':<32} {'address':<10} {'bytes':>8}  memory"]
        for item, name in sorted(report.placed, key=lambda p: (p[1].address, p[1].name)):
            at = region_of(report.board, name.address)
            where = at.name if at is not None else "-"
            other = "" if at is not None and at.name == item.region else f", planned {item.region}"
            lines.append(f"{name.name:<32} {name.address:#010x} {name.size or item.size:>8,}  {where}{other}")
        lines += [f"{s:<32} {'-':<10} {'-':>8}  left out by compiler or linker" for s in report.dissolved]
    if report.findings:
        return [*lines, *(f.line() for f in report.findings)]
    program = report.program
    for note in program.notes:
        default = (
            " (no board: wherever the script has it)" if all(i.region == DEFAULT_REGION for i in note.items) else ""
        )
        mine = {i.symbol for i in note.items}
        count = len({i.symbol for i, _ in report.placed} & mine)
        lines.append(
            f"model     {note.model}: {count} of {len(note.items)} objects in the program, each in its memory{default}"
        )
    copies = copy_entries(program) or []
    lines.append(f"copies    {len(copies)} tables, {sum(e[3] for e in copies):,} bytes, flash to RAM at start-up")
    used = [f"{region.name} {part.size:,}" for region, part in our_parts(program, report.board)]
    lines.append(f"memory    {', '.join(used) if used else 'nothing of mcugen outside the sections of the script'}")
    return lines
