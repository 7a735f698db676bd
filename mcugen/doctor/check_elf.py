"""check-elf: proves from a linked program that every object of mcugen is where the plan has it. Reads one file.

Each check is a function of the program, the board and one plan note, and returns findings: one line each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from mcugen.doctor.program import Name, Part, Program
from mcugen.emit.kernels import ELSEWHERE, kernels
from mcugen.emit.plan_note import PlannedItem, PlanNote
from mcugen.target.board import Board, Region
from mcugen.target.fragment import output_section, placed_regions

_SECTIONS_INIT = "mcg_sections_init"
_FRAGMENT_HINT = "is mcugen.ld part of the link?"


@dataclass(frozen=True, slots=True)
class ElfFinding:
    """``where``: a symbol or a section; ``hint`` may be empty."""

    where: str
    what: str
    hint: str = ""

    def line(self) -> str:
        """One line."""
        return f"finding   {self.where}: {self.what}" + (f" ({self.hint})" if self.hint else "")


@dataclass(frozen=True, slots=True)
class Buffer:
    """A buffer of the user's own that is to be checked. ``master``: the DMA controller, as board.toml names it; or
    empty, and then ``mpu``: it is an MPU region of its own."""

    symbol: str
    master: str
    mpu: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class ElfReport:
    """What was found; ``dissolved``: planned objects that the linker or the compiler left out."""

    program: Program
    board: Board
    findings: tuple[ElfFinding, ...]
    placed: tuple[tuple[PlannedItem, Name], ...]
    dissolved: tuple[str, ...]


_Check = Callable[[Program, Board, PlanNote], Iterable[ElfFinding]]


def check_program(program: Program, board: Board, buffers: Sequence[Buffer] = ()) -> ElfReport:
    """All checks, over all models in the program."""
    found: list[ElfFinding] = []
    for note in program.notes:
        for check in _MODEL_CHECKS:
            found += check(program, board, note)
    for whole in _PROGRAM_CHECKS:
        found += whole(program, board)
    for buffer in buffers:
        found += _buffer(program, board, buffer)
    placed, dissolved = [], []
    for item in (i for note in program.notes for i in note.items):
        names = _objects(program, item)
        placed += [(item, n) for n in names]
        dissolved += [] if names else [item.symbol]
    return ElfReport(program, board, tuple(dict.fromkeys(found)), tuple(placed), tuple(dissolved))


def region_of(board: Board, address: int) -> Region | None:
    """The memory of the part at an address."""
    return next((r for r in board.regions if r.base <= address < r.end), None)


def _place(board: Board, address: int) -> str:
    region = region_of(board, address)
    return f"{region.name} ({address:#010x})" if region is not None else f"no memory of the part ({address:#010x})"


def _objects(program: Program, item: PlannedItem) -> tuple[Name, ...]:
    """What runs or is read: of a copied table the copy."""
    table = item.copied and item.role == "table"
    return program.instances(f"{item.symbol}_copy" if table else item.symbol)


# -- of one model


def _places(program: Program, board: Board, note: PlanNote) -> Iterator[ElfFinding]:
    """Every object in its planned region; the image of what is copied in flash."""
    for item in note.items:
        region = board.region(item.region)
        for name in _objects(program, item):
            if region is None:
                continue
            size = max(name.size, 1)
            if not region.base <= name.address or name.address + size > region.end:
                hint = _FRAGMENT_HINT if not region.home else ""
                hint = ELSEWHERE if item.symbol in kernels() else hint
                yield ElfFinding(name.name, f"in {_place(board, name.address)}, planned in {region.name}", hint)
            elif name.address < region.base + region.skip:
                yield ElfFinding(name.name, f"at {name.address:#x}: the first {region.skip} bytes must stay free")
            if item.role != "code" and name.address % max(item.align, 1):
                yield ElfFinding(name.name, f"at {name.address:#010x} is not aligned to {item.align}")
        if item.copied and item.role == "table":
            for image in program.instances(f"{item.symbol}_image"):
                load = program.load_of(image.address)
                if load is None or not _in_flash(program, board, load):
                    yield ElfFinding(image.name, f"the image is in {_place(board, image.address)}, not in flash")


def _in_flash(program: Program, board: Board, address: int) -> bool:
    """A load address that survives a reset; of a program that a debugger loads into RAM as a whole, any."""
    home = board.home
    debugged = not any(s.data and home.base <= s.load < home.end for s in program.loaded)
    return debugged or home.base <= address < home.end


def _copies(program: Program, board: Board, note: PlanNote) -> Iterator[ElfFinding]:
    """An entry for each table that is copied, with the right addresses and size."""
    tables = [i for i in note.items if i.copied and i.role == "table"]
    entries = copy_entries(program)
    by_image = {e[0]: e for e in entries or ()}
    for item in tables:
        images, copies = (program.instances(f"{item.symbol}_{part}") for part in ("image", "copy"))
        if not images or not copies:
            continue
        if entries is None:
            yield ElfFinding(item.symbol, "is copied, and the list of copies is not in the program", _FRAGMENT_HINT)
            continue
        entry = by_image.get(images[0].address)
        if entry is None:
            yield ElfFinding(item.symbol, "is not in the list of copies: its copy is never filled")
            continue
        _, copy, active, size = entry
        if copy != copies[0].address:
            yield ElfFinding(item.symbol, f"is copied to {copy:#010x}, and its copy is at {copies[0].address:#010x}")
        if size != item.size:
            yield ElfFinding(item.symbol, f"{size} bytes are copied, planned {item.size}")
        pointers = program.instances(f"{item.symbol}_active")
        if pointers and active != pointers[0].address:
            yield ElfFinding(item.symbol, f"its entry switches a pointer at {active:#010x}, not its own")
    moved = [i for i in note.items if i.copied and _objects(program, i)]
    if moved and not _starts_up(program):
        yield ElfFinding(
            note.model, f"{_SECTIONS_INIT} is not in the program: nothing is copied", "call it first in main"
        )


def _starts_up(program: Program) -> bool:
    """mcg_sections_init is in the program. LTO may have dissolved it into main; its marker is there nevertheless."""
    start, end = (program.value(f"__mcg_called_{edge}") for edge in ("start", "end"))
    return program.value(_SECTIONS_INIT) is not None or (start is not None and end is not None and end > start)


def copy_entries(program: Program) -> list[tuple[int, ...]] | None:
    """(image, copy, pointer, bytes) of each table in the list of copies; None where there is no list."""
    start, stop = (program.value(f"__{end}_mcg_table_copies") for end in ("start", "stop"))
    if start is None or stop is None or stop <= start:
        return None
    words = program.words(start, (stop - start) // 4)
    if words is None:
        return None
    return [words[i : i + 4] for i in range(0, len(words) - 3, 4)]


def _dma(program: Program, board: Board, note: PlanNote) -> Iterator[ElfFinding]:
    for item in note.items:
        if item.dma:
            for name in _objects(program, item):
                yield from _dma_object(program, board, name, item.size, board.dma_controller)


def _dma_object(program: Program, board: Board, name: Name, size: int, master: str) -> Iterator[ElfFinding]:
    """Reachable, and alone in its cache lines."""
    region = region_of(board, name.address)
    if region is None or master not in region.dma:
        reached = ", ".join(r.name for r in board.regions if r.writable and r.roles and master in r.dma)
        yield ElfFinding(name.name, f"{master} does not reach {_place(board, name.address)}", f"it reaches {reached}")
        return
    line = board.core.cache_line
    if not region.cached or not line:
        return
    if name.address % line:
        yield ElfFinding(name.name, f"a DMA buffer at {name.address:#010x} is not aligned to a cache line ({line})")
    end = -(-(name.address + size) // line) * line
    other = program.neighbour(name.address // line * line, end, name.name)
    if other is not None:
        what = f"{other.name} shares a cache line with this DMA buffer"
        yield ElfFinding(name.name, what, f"make its size a multiple of {line}")


def _abi(program: Program, board: Board, note: PlanNote) -> Iterator[ElfFinding]:
    for text in program.abis:
        number = text.split()[1] if len(text.split()) > 1 else "?"
        if number != str(note.abi):
            what = f"has ABI {note.abi}, and an object file was compiled for ABI {number}"
            yield ElfFinding(note.model, what, "take model and runtime from one version of mcugen")
    if note.board not in (board.name, "none"):
        yield ElfFinding(note.model, f"was placed for {note.board}, not {board.name}", f"--board {note.board}")


# -- of the whole program


def _float_abi(program: Program, board: Board) -> Iterator[ElfFinding]:
    kinds = sorted({t.split()[-1] for t in program.abis})
    if len(kinds) > 1:
        yield ElfFinding(
            "float ABI", f"object files differ: {', '.join(kinds)}", "compile all with the same -mfloat-abi"
        )
    elif kinds and (kinds[0] == "hard") != program.hard_float:
        linked = "hard" if program.hard_float else "soft or softfp"
        yield ElfFinding("float ABI", f"mcugen's files are {kinds[0]}, the program is {linked}")
    wanted = "hard" if "-mfloat-abi=hard" in board.flags else ""
    if wanted and len(kinds) == 1 and kinds[0] == "soft":
        yield ElfFinding("float ABI", f"compiled without the FPU, which {board.name} has", " ".join(board.flags))


def our_parts(program: Program, board: Board) -> list[tuple[Region, Part]]:
    """The sections of the fragment that hold something."""
    found = []
    for region in placed_regions(board):
        part = program.part(output_section(region))
        start, end = (program.value(f"__mcg_{region.name}_{edge}") for edge in ("start", "end"))
        if part is not None and start is not None and end is not None and end > start:
            # Without the marker of mcg_sections.c in front of it, which nobody reads or writes.
            found.append((region, Part(part.name, start, end - start, part.stored)))
    return found


def _overlaps(program: Program, board: Board) -> Iterator[ElfFinding]:
    """No two sections in one place, while they are used or while they are loaded."""
    ours = {part.name: part for _, part in our_parts(program, board)}
    fragment = {output_section(r) for r in placed_regions(board)}
    parts = [ours.get(p.name, p) for p in program.parts if p.name in ours or p.name not in fragment]
    parts.sort(key=lambda p: (p.address, p.end))
    reach = None
    for part in parts:
        if reach is not None and part.address < reach.end:
            yield ElfFinding(
                part.name, f"shares {part.address:#010x} with {reach.name}", "mcugen check-ld FILE.ld tells why"
            )
        if reach is None or part.end > reach.end:
            reach = part
    images = sorted((s.load, s.load + len(s.data)) for s in program.loaded if s.data)
    for (_, end), (begin, _) in pairwise(images):
        if begin < end:
            yield ElfFinding("load image", f"two segments are loaded to {begin:#010x}")


def _code(program: Program, board: Board) -> Iterator[ElfFinding]:
    """Code in RAM has its image in flash, and start-up knows it."""
    for region, part in our_parts(program, board):
        if region not in board.code_regions:
            continue
        load, image = program.load_of(part.address), program.value("__mcg_code_load")
        if load is None:
            yield ElfFinding(part.name, "has no load image: after reset there is nothing to copy")
            continue
        if not _in_flash(program, board, load):
            yield ElfFinding(part.name, f"its image is loaded to {_place(board, load)}, not to flash")
        elif program.load_of(part.end - 1) is None:
            yield ElfFinding(part.name, "its load image is shorter than the code")
        edges = (program.value("__mcg_code_start"), program.value("__mcg_code_end"))
        if image != load or edges != (part.address, part.end):
            yield ElfFinding(part.name, "start-up copies other bytes than these", "__mcg_code_start, _end and _load")
        if not _starts_up(program):
            yield ElfFinding(part.name, f"{_SECTIONS_INIT} is not in the program: the code never gets there")


def _zeroed(program: Program, board: Board) -> Iterator[ElfFinding]:
    """Memories that start-up zeroes: known to it, of whole words, and switched on before."""
    data = [r for r in placed_regions(board) if r not in board.code_regions]
    for region, part in our_parts(program, board):
        if region not in data:
            continue
        n = data.index(region)
        edges = tuple(program.value(f"__mcg_zero{n}_{edge}") for edge in ("start", "end"))
        if edges != (part.address, part.end):
            yield ElfFinding(part.name, "start-up zeroes other bytes than these", f"__mcg_zero{n}_start and _end")
        if part.address % 4 or part.size % 4:
            yield ElfFinding(part.name, "does not begin or end with a whole word")
        if region.clock is not None:
            clock = (program.value(f"__mcg_zero{n}_clock"), program.value(f"__mcg_zero{n}_clock_mask"))
            if clock != (region.clock.register, region.clock.mask):
                yield ElfFinding(part.name, f"start-up does not switch on the clock of {region.name}")


def _null(program: Program, board: Board) -> Iterator[ElfFinding]:
    """Nothing at address 0, where it would be a null pointer."""
    for group in program.names.values():
        for name in group:
            if name.address == 0 and name.placed and name.size and name.kind in {"function", "object"}:
                yield ElfFinding(name.name, "is at address 0, and so equal to NULL")


def _stack_and_heap(program: Program, board: Board) -> Iterator[ElfFinding]:
    """Neither reaches into our sections: the stack by its reserve, the heap from its start to its reserve."""
    reserve = program.value("_Min_Stack_Size") or 0x400
    top = initial_stack(program, board)
    for _, part in our_parts(program, board):
        if top is not None and part.address < top and top - reserve < part.end:
            what = f"the stack ({top - reserve:#010x} to {top:#010x}) reaches into it"
            yield ElfFinding(part.name, what, "_estack and _Min_Stack_Size of the linker script")
        begin = program.value("_end")
        if begin is not None and part.address <= begin < part.end:
            yield ElfFinding(part.name, f"the heap begins inside it, at {begin:#010x}", "_end of the linker script")
        elif begin is not None and begin < part.address:
            size = program.value("_Min_Heap_Size") or 0
            shared = region_of(board, begin) is not None and region_of(board, begin) is region_of(board, part.address)
            if shared and (program.value("_estack") or 0) > part.address:
                what = f"the heap grows from {begin:#010x} towards it"
                yield ElfFinding(part.name, what, f"{size} bytes are reserved; nothing stops it there")


def initial_stack(program: Program, board: Board) -> int | None:
    """The first word of the vector table: that of the lowest loaded address in flash, or of the whole program."""
    images = [s for s in program.loaded if len(s.data) >= 8 and _in_flash(program, board, s.load)]
    for segment in sorted(images, key=lambda s: s.load):
        stack, reset = (int.from_bytes(segment.data[i : i + 4], "little") for i in (0, 4))
        if reset & ~1 == program.entry or (stack % 4 == 0 and region_of(board, stack - 4) is not None and reset & 1):
            return stack
    return program.value("_estack")


def _flash_end(program: Program, board: Board) -> Iterator[ElfFinding]:
    """Everything that is loaded has a place on the part."""
    for s in program.loaded:
        if s.data:
            region = region_of(board, s.load)
            if region is None and s.load < 0x6000_0000:
                yield ElfFinding("load image", f"{len(s.data)} bytes are loaded to {_place(board, s.load)}")
            elif region is not None and s.load + len(s.data) > region.end:
                yield ElfFinding("load image", f"the bytes from {s.load:#010x} on end behind {region.name}")


# -- buffers of the user's


def _buffer(program: Program, board: Board, buffer: Buffer) -> Iterator[ElfFinding]:
    found = program.names.get(buffer.symbol, ())
    if not found:
        yield ElfFinding(buffer.symbol, "is not in the program", "its C name; static ones count too")
        return
    name = found[0]
    if buffer.mpu:
        size = name.size
        if size < 32 or size & (size - 1):
            yield ElfFinding(name.name, f"{size} bytes: the size of an MPU region is a power of two of at least 32")
        elif name.address % size:
            yield ElfFinding(
                name.name, f"{name.address:#010x} is not a multiple of its size {size}, as an MPU region is"
            )
        return
    yield from _dma_object(program, board, name, name.size, buffer.master)


_MODEL_CHECKS: tuple[_Check, ...] = (_places, _copies, _dma, _abi)
_PROGRAM_CHECKS: tuple[Callable[[Program, Board], Iterable[ElfFinding]], ...] = (
    _float_abi,
    _overlaps,
    _code,
    _zeroed,
    _null,
    _stack_and_heap,
    _flash_end,
)
