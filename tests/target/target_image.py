"""A small program around placed objects: its C text, its link with a base script and the fragment, its run."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from elftools.elf.elffile import ELFFile

from mcugen.core.op import Item
from mcugen.emit.parts import ABI
from mcugen.emit.plan_note import PlannedItem, PlanNote
from mcugen.resources import resource_dir
from mcugen.target.board import Board
from mcugen.target.plan import Plan

GCC = "arm-none-eabi-gcc"
SCRIPTS = Path(__file__).parent / "scripts"
WARNINGS = ["-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Werror"]
POISON = b"\xa5"


def have_cross_compiler() -> bool:
    return shutil.which(GCC) is not None


def table(symbol: str, count: int, reads: float, ctype: str = "uint32_t", **more: object) -> Item:
    """A table that holds 1, 2, 3, ..."""
    size = {"uint32_t": 4, "uint16_t": 2, "uint8_t": 1}[ctype]
    data = np.arange(1, count + 1) % 251
    return Item(symbol, "table", ctype, count, count * size, size, reads, "test", data, **more)  # type: ignore[arg-type]


def code(symbol: str, size: int = 64, reads: float = 100.0) -> Item:
    return Item(symbol, "code", "", 1, size, 4, reads, "test")


def arena(symbol: str, size: int, reads: float, dma: bool = False) -> Item:
    return Item(symbol, "arena", "uint8_t", size, size, 8, reads, "test", None, dma)


def note_for(plan: Plan) -> PlanNote:
    """The plan as an export would carry it."""
    items = tuple(
        PlannedItem(a.item.symbol, a.item.role, a.region, a.item.size, a.item.align, a.copied, a.item.dma)
        for a in plan.assignments
    )
    return PlanNote("m", "5" * 64, "c" * 64, ABI, "stm32h743", items)


def c_text(plan: Plan, call_init: bool = True) -> str:
    """The objects of the plan, a start-up routine, and ``outcome``: a sum over all tables, then all functions."""
    lines = ['#include "mcg_sections.h"', "uint32_t outcome[4];", "uint32_t initialised = 7u;", "void finish(void);"]
    sums = []
    for a in plan.assignments:
        s = a.item.symbol
        if a.item.role == "code":
            lines += [
                f"uint32_t {s}(uint32_t x);",
                f'MCG_NOINLINE MCG_SECTION("{a.section}") uint32_t {s}(uint32_t x)',
                "{ return helper(x) + 1u; }",
            ]
            sums.append(f"outcome[1] = {s}(outcome[1]);")
        elif a.item.role == "arena":
            lines.append(f'uint8_t {s}[{a.item.size}] MCG_SECTION("{a.section}") __attribute__((aligned(32)));')
            sums.append(f"for (uint32_t i = 0; i < {a.item.size}u; i++) {{ outcome[3] |= {s}[i]; {s}[i] = 1u; }}")
        else:
            lines += _table_text(a.copied, a.image_section, a.section, a.item)
            read = f"((const {a.item.ctype} *){s}_active)[i]" if a.copied else f"{s}[i]"
            sums.append(f"for (uint32_t i = 0; i < {a.item.count}u; i++) {{ outcome[0] += {read}; }}")
    init = "mcg_sections_init(); mcg_sections_init();" if call_init else ""
    return "\n".join([*lines[:1], _HELPER, *lines[1:], _STARTUP.replace("@INIT@", init + "\n" + "\n".join(sums))])


def _table_text(copied: bool, image: str, section: str, item: Item) -> list[str]:
    s, t, n = item.symbol, item.ctype, item.count
    assert item.data is not None
    values = ", ".join(str(v) for v in item.data)
    if not copied:
        return [f'static const {t} {s}[{n}] MCG_SECTION("{section}") = {{{values}}};']
    aligned = "__attribute__((aligned(4)))"
    return [
        f'static const {t} {s}_image[{n}] MCG_SECTION("{image}") {aligned} = {{{values}}};',
        f'static {t} {s}_copy[{n}] MCG_SECTION("{section}") {aligned};',
        f"static const void *{s}_active = {s}_image;",
        f"static const mcg_table_copy_t {s}_entry MCG_TABLE_COPY ="
        f" {{{s}_image, {s}_copy, &{s}_active, sizeof {s}_image}};",
    ]


_HELPER = """
uint32_t helper(uint32_t x);
MCG_NOINLINE uint32_t helper(uint32_t x) { __asm volatile(""); return x; }
"""
_STARTUP = """
extern uint32_t _sidata[], _sdata[], _edata[], _sbss[], _ebss[], _estack[];
void Reset_Handler(void);
MCG_NOINLINE void finish(void) { __asm volatile("bkpt 0"); }
void Reset_Handler(void)
{
    uint32_t *from = _sidata;
    for (uint32_t *to = _sdata; to < _edata; to++) { *to = *from++; }
    for (uint32_t *to = _sbss; to < _ebss; to++) { *to = 0u; }
    @INIT@
    outcome[2] = initialised;
    finish();
    for (;;) { }
}
static const void *const vectors[2] MCG_SECTION(".isr_vector") __attribute__((used)) = {
    _estack, (const void *)(uintptr_t)Reset_Handler};
"""


def link(
    folder: Path, text: str, board: Board, script: str, fragment: Path | None, options: tuple[str, ...] = ()
) -> subprocess.CompletedProcess[str]:
    """Compile and link to folder/image.elf as a user would, warnings of the compiler being errors."""
    runtime = resource_dir("runtime_c")
    (folder / "main.c").write_text(text)
    # -fno-tree-loop-distribute-patterns: the loops of the start-up code stay loops, there is no libc.
    command = [GCC, *board.flags, "-std=gnu11", "-O2", *WARNINGS, "-ffunction-sections", "-fdata-sections"]
    command += ["-fno-tree-loop-distribute-patterns", f"-I{runtime / 'include'}", "main.c"]
    command += [str(runtime / "src" / "mcg_sections.c"), "-nostdlib", "-Wl,--gc-sections", *options]
    command += ["-T", str(SCRIPTS / script) if "/" not in script else script]
    command += [f"-Wl,-T,{fragment}"] if fragment else []
    command += ["-o", "image.elf"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


@dataclass
class Image:
    """What the tests ask of an ELF file."""

    path: Path

    def __post_init__(self) -> None:
        with self.path.open("rb") as f:
            elf = ELFFile(f)
            self.symbols = {s.name: s["st_value"] for s in elf.get_section_by_name(".symtab").iter_symbols() if s.name}
            self.sections = {s.name: (s["sh_addr"], s["sh_size"], s["sh_type"]) for s in elf.iter_sections()}
            self.segments = [
                (s["p_vaddr"], s["p_paddr"], s["p_memsz"], s.data())
                for s in elf.iter_segments()
                if s["p_type"] == "PT_LOAD" and s["p_memsz"]
            ]

    def load_address(self, address: int) -> int:
        for vaddr, paddr, size, _ in self.segments:
            if vaddr <= address < vaddr + size:
                return int(paddr + address - vaddr)
        raise AssertionError(f"{address:#x} is in no segment")


class Machine:
    """The board in unicorn, its RAM filled with a pattern, its flash with the load image; run to the breakpoint."""

    def __init__(self, image: Image, board: Board, vectors: int | None = None) -> None:
        import unicorn as uc  # noqa: PLC0415
        from unicorn import arm_const as arm  # noqa: PLC0415

        assert board.unicorn is not None
        self.image = image
        self.cpu = cpu = uc.Uc(uc.UC_ARCH_ARM, uc.UC_MODE_THUMB)
        cpu.ctl_set_cpu_model(arm.UC_CPU_ARM_MAX)
        for r in board.regions:
            cpu.mem_map(r.base, r.size, uc.UC_PROT_ALL if r.writable else uc.UC_PROT_READ | uc.UC_PROT_EXEC)
            cpu.mem_write(r.base, (POISON if r.writable else b"\xff") * r.size)
        for ram in board.unicorn.ram:
            cpu.mem_map(ram.base, ram.size)
        for _, paddr, _, data in image.segments:
            if data:
                cpu.mem_write(paddr, data)
        cpu.hook_add(uc.UC_HOOK_INTR, lambda c, number, user: c.emu_stop())
        stack, reset = (
            int.from_bytes(cpu.mem_read((board.home.base if vectors is None else vectors) + i, 4), "little")
            for i in (0, 4)
        )
        cpu.reg_write(arm.UC_ARM_REG_SP, stack)
        cpu.emu_start(reset | 1, 0, count=2_000_000)
        assert cpu.reg_read(arm.UC_ARM_REG_PC) & ~3 == image.symbols["finish"] & ~3, "did not reach the end"

    def read(self, address: int, size: int) -> bytes:
        return bytes(self.cpu.mem_read(address, size))

    def words(self, symbol: str, count: int) -> list[int]:
        raw = self.read(self.image.symbols[symbol], 4 * count)
        return [int.from_bytes(raw[i : i + 4], "little") for i in range(0, len(raw), 4)]
