"""The plan inside the linked program: a section without memory that says what the export meant, for check-elf.

The section is not allocated, so it takes no byte of the part, and it survives --gc-sections, LTO and any linker script.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass

from mcugen.core.types import Model
from mcugen.emit.parts import ABI
from mcugen.target.plan import Plan

#: The sections: of each model, and of every object file that includes mcg.h (see there).
PLAN_SECTION = ".mcugen.plan"
ABI_SECTION = ".mcugen.abi"
_HEAD = "mcugen-plan 1"


@dataclass(frozen=True, slots=True)
class PlannedItem:
    """One object of the plan: bytes, alignment; ``copied``: from flash to ``region``."""

    symbol: str
    role: str
    region: str
    size: int
    align: int
    copied: bool
    dma: bool


@dataclass(frozen=True, slots=True)
class PlanNote:
    """``source``: sha256 of the model file. ``code``: sha256 of the generated C without this note."""

    model: str
    source: str
    code: str
    abi: int
    board: str
    items: tuple[PlannedItem, ...]

    def text(self) -> str:
        """One fact a line."""
        lines = [_HEAD, f"model {self.model}", f"source {self.source}", f"code {self.code}", f"abi {self.abi}"]
        lines.append(f"board {self.board}")
        for i in self.items:
            flags = "".join(f" {word}" for word, on in (("copied", i.copied), ("dma", i.dma)) if on)
            lines.append(f"item {i.symbol} {i.role} {i.region} {i.size} {i.align}{flags}")
        return "\n".join([*lines, "end\n"])


def note_of(model: Model, plan: Plan, source: str) -> PlanNote:
    """The note of a model whose C is ``source``."""
    items = tuple(
        PlannedItem(a.item.symbol, a.item.role, a.region, a.item.size, a.item.align, a.copied, a.item.dma)
        for a in plan.assignments
        if a.copied or not a.item.shared  # what of the runtime is in flash, another model may have moved
    )
    code = hashlib.sha256(source.encode("utf-8")).hexdigest()
    board = plan.board.name if plan.board is not None else "none"
    return PlanNote(model.name, model.source.sha256 or "-", code, ABI, board, items)


def note_c(note: PlanNote) -> str:
    """The C that puts the note into the object file; assembled text, since a C object would take memory."""
    lines = [f'        ".ascii \\"{line}\\\\n\\"\\n"\n' for line in note.text().splitlines()]
    return (
        "\n/* The plan, for mcugen check-elf: a section without memory. */\n"
        "#if defined(__ELF__) && defined(__arm__)\n"
        f'__asm__(".pushsection {PLAN_SECTION},\\"\\",%progbits\\n"\n' + "".join(lines) + '        ".popsection");\n'
        "#endif\n"
    )


def note_in_c(source: str) -> PlanNote | None:
    """The note in a generated C file, or None."""
    lines = re.findall(r'^ *"\.ascii \\"(.*)\\\\n\\"\\n"$', source, re.MULTILINE)
    return next(iter(read_notes(("\n".join(lines) + "\n").encode("ascii"))), None)


def read_notes(data: bytes) -> list[PlanNote]:
    """The notes in a section, one for each model. ValueError where it is not one of ours or damaged."""
    text = data.decode("ascii", "strict")
    notes = []
    for part in text.split(_HEAD + "\n")[1:]:
        body, end, _ = part.partition("\nend\n")
        if not end:
            raise ValueError("a plan without end")
        facts = [line.split(" ") for line in body.split("\n")]
        single = {f[0]: f[1] for f in facts if len(f) == 2}
        items = tuple(_item(f[1:]) for f in facts if f[0] == "item")
        try:
            head = (single["model"], single["source"], single["code"], int(single["abi"]), single["board"])
        except KeyError as e:
            raise ValueError(f"a plan without {e}") from None
        notes.append(PlanNote(*head, items))
    return notes


def _item(words: list[str]) -> PlannedItem:
    symbol, role, region, size, align, *flags = words
    return PlannedItem(symbol, role, region, int(size), int(align), "copied" in flags, "dma" in flags)
