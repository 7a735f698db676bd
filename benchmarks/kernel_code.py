"""Bytes and helpers of every function of the runtime that may move to fast memory: writes runtime_c/kernels.toml.

    python benchmarks/kernel_code.py            writes the file
    python benchmarks/kernel_code.py --check    exit code 1 if it would change

Each function of the runtime stands in a section of its own (MCG_CODE in mcg.h), so that the relocations of the object
files are the graph of who calls whom. Helpers are all that a function reaches, at any of three levels of optimisation;
bytes are those of the function and its helpers at -O2. Needs arm-none-eabi-gcc and pyelftools.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from elftools.elf.elffile import ELFFile
from elftools.elf.relocation import RelocationSection
from elftools.elf.sections import SymbolTableSection

from mcugen.resources import resource_dir
from mcugen.target.board import load_board

_PREFIX = ".text.mcugen."
#: In names of helpers that stay in flash: for any weights and ranges, and for blocks of several samples, which a chain
#: never pushes.
_RARE = {"any", "many", "fours", "pairs"}
_LEVELS = ("-O2", "-O0", "-Os")
_HEAD = """\
# Functions of the runtime that a plan may place: what each takes with its helpers, in bytes of code for the H743 (GCC,
# -O2), and the helpers that move with it, with their own bytes (0: inlined). Written by benchmarks/kernel_code.py; a
# test holds it to the sources.

"""

#: Of one level of optimisation: bytes of each section, the functions that it refers to, and the global functions.
Graph = tuple[dict[str, int], dict[str, set[str]], set[str]]


def graph_of(folder: Path, level: str) -> Graph:
    """The sections of all files of the runtime. Static functions have their file in front of their name."""
    board = load_board("stm32h743")
    runtime = resource_dir("runtime_c")
    sizes: dict[str, int] = {}
    calls: dict[str, set[str]] = {}
    entries: set[str] = set()
    for source in sorted((runtime / "src").glob("*.c")):
        target = folder / f"{source.stem}.o"
        options = ["-std=c11", level, *board.flags, "-ffreestanding", f"-I{runtime / 'include'}"]
        subprocess.run(["arm-none-eabi-gcc", *options, "-c", str(source), "-o", str(target)], check=True)
        with target.open("rb") as file:
            _read(source.stem, ELFFile(file), sizes, calls, entries)
    return sizes, calls, entries


def _read(stem: str, elf: ELFFile, sizes: dict[str, int], calls: dict[str, set[str]], entries: set[str]) -> None:
    sections = list(elf.iter_sections())
    table = next(s for s in sections if isinstance(s, SymbolTableSection))
    globals_ = {s["st_shndx"] for s in table.iter_symbols() if s["st_info"]["bind"] == "STB_GLOBAL"}
    own = {}
    for n, section in enumerate(sections):
        if section.name.startswith(_PREFIX):
            name = section.name.removeprefix(_PREFIX)
            own[n] = name if n in globals_ else f"{stem}:{name}"
            sizes[own[n]] = section["sh_size"]
            entries |= {name} if n in globals_ else set()
    for section in sections:
        if isinstance(section, RelocationSection) and section["sh_info"] in own:
            found = calls.setdefault(own[section["sh_info"]], set())
            for relocation in section.iter_relocations():
                symbol = table.get_symbol(relocation["r_info_sym"])
                found.add(own.get(symbol["st_shndx"], symbol.name))


def reached(name: str, calls: dict[str, set[str]]) -> set[str]:
    """The functions behind ``name``, itself included."""
    found, ahead = {name}, [name]
    while ahead:
        for callee in calls.get(ahead.pop(), ()):
            if callee not in found:
                found.add(callee)
                ahead.append(callee)
    return found


def _stays_with(function: str, entry: str) -> bool:
    """Whether a helper moves with an entry: not if it is for what that is rarely called with."""
    return not _RARE & (set(function.rpartition(":")[2].split("_")) - set(entry.split("_")))


def kernels_text() -> str:
    """The content of kernels.toml."""
    with tempfile.TemporaryDirectory() as name:
        graphs = [graph_of(Path(name), level) for level in _LEVELS]
    sizes = graphs[0][0]
    known = set().union(*(g[0] for g in graphs))
    lines = []
    for entry in sorted(set().union(*(g[2] for g in graphs))):
        behind = [{f for f in reached(entry, g[1]) & known if _stays_with(f, entry)} for g in graphs]
        total = sum(-(-sizes.get(f, 0) // 4) * 4 for f in behind[0])
        helpers = {f.rpartition(":")[2] for f in set().union(*behind)} - {entry}
        own = {f.rpartition(":")[2]: -(-sizes.get(f, 0) // 4) * 4 for f in behind[0]}
        listed = ",".join(f" {h} = {own.get(h, 0)}" for h in sorted(helpers)) + " " * bool(helpers)
        lines.append(f"{entry} = {{ bytes = {total}, helpers = {{{listed}}} }}\n")
    return _HEAD + "".join(lines)


def main() -> int:
    """Exit code."""
    path, text = resource_dir("runtime_c") / "kernels.toml", kernels_text()
    if "--check" in sys.argv[1:]:
        return int(path.read_text(encoding="utf-8") != text)
    path.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
