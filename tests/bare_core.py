"""A bare Cortex-M7 for the rigs of kernels and ops: a program in flash, RAM, the FPU on, and nothing else of a board.

Also here: the program of many cases that writes its results into RAM, and the kernels as objects of a host build.
"""

from __future__ import annotations

import atexit
import shutil
import subprocess
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from mcugen.resources import resource_dir

RUNTIME = resource_dir("runtime_c")
WARNINGS = ["-std=c11", "-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Werror"]
SANITIZE = ("-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
CORTEX_M7 = ["-mcpu=cortex-m7", "-mthumb", "-mfpu=fpv5-d16", "-mfloat-abi=hard"]
GCC = "arm-none-eabi-gcc"

#: put() of the programs of cases: to stdout, and into RAM, where ``results_of`` finds it.
HOST_PUT = """#include <stdio.h>
#include <string.h>
static void put(const void *p, size_t n) { fwrite(p, 1, n, stdout); }
"""
BOARD_PUT = """#include <string.h>
uint8_t results[4 << 20];
uint32_t result_bytes;
int main(void);
static void put(const void *p, size_t n) { memcpy(results + result_bytes, p, n); result_bytes += (uint32_t)n; }
"""


class Core:
    """The program of an ELF file under unicorn. ``address``, ``size``: of its symbols."""

    RAM, RAM_BYTES, STOP = 0x2000_0000, 16 << 20, 0x0FFF_0000

    def __init__(self, elf: Path) -> None:
        unicorn = pytest.importorskip("unicorn")
        elffile = pytest.importorskip("elftools.elf.elffile")
        self.arm = arm = unicorn.arm_const
        self.uc = uc = unicorn.Uc(unicorn.UC_ARCH_ARM, unicorn.UC_MODE_THUMB)
        uc.ctl_set_cpu_model(arm.UC_CPU_ARM_MAX)
        # Compilers keep integers in FPU registers too.
        uc.reg_write(arm.UC_ARM_REG_C1_C0_2, uc.reg_read(arm.UC_ARM_REG_C1_C0_2) | 0xF << 20)
        uc.reg_write(arm.UC_ARM_REG_FPEXC, 1 << 30)
        uc.mem_map(0x0800_0000, 8 << 20, unicorn.UC_PROT_READ | unicorn.UC_PROT_EXEC)
        uc.mem_map(self.RAM, self.RAM_BYTES)
        uc.mem_map(self.STOP, 4096)
        uc.mem_write(self.STOP, b"\x00\xbf" * 8)
        with elf.open("rb") as f:
            image = elffile.ELFFile(f)
            for segment in image.iter_segments():
                if segment["p_type"] == "PT_LOAD" and segment["p_filesz"]:
                    uc.mem_write(segment["p_vaddr"], segment.data())
            symbols = list(image.get_section_by_name(".symtab").iter_symbols())
        self.address = {s.name: s["st_value"] & ~1 for s in symbols}
        self.size = {s.name: s["st_size"] for s in symbols if s["st_info"]["type"] == "STT_FUNC"}

    def call(self, function: str, *arguments: int, room: int = 256, limit: int = 0) -> None:
        """A call with integers and pointers. ``room``: bytes at the end of RAM that the stack stays below; ``limit``:
        instructions after which it is stopped, 0: never."""
        uc, arm = self.uc, self.arm
        top = self.RAM + self.RAM_BYTES - room
        uc.reg_write(arm.UC_ARM_REG_SP, top)
        uc.reg_write(arm.UC_ARM_REG_LR, self.STOP | 1)
        for i, value in enumerate(arguments):
            if i < 4:
                uc.reg_write(arm.UC_ARM_REG_R0 + i, value)
            else:
                uc.mem_write(top + 4 * (i - 4), value.to_bytes(4, "little"))
        uc.emu_start(self.address[function] | 1, self.STOP, count=limit)

    def write(self, at: int, data: bytes) -> None:
        """Bytes to RAM."""
        self.uc.mem_write(at, data)

    def read(self, at: int, size: int) -> bytes:
        """Bytes of RAM."""
        return bytes(self.uc.mem_read(at, size))


class BlockCounter:
    """The instructions of a core, counted by blocks: from the last ``clear`` on."""

    def __init__(self, core: Core) -> None:
        capstone = pytest.importorskip("capstone")
        unicorn = pytest.importorskip("unicorn")
        self._core = core
        self._decoder = capstone.Cs(capstone.CS_ARCH_ARM, capstone.CS_MODE_THUMB | capstone.CS_MODE_MCLASS)
        self._lengths: dict[tuple[int, int], int] = {}
        self._blocks: Counter[tuple[int, int]] = Counter()
        core.uc.hook_add(unicorn.UC_HOOK_BLOCK, lambda _u, a, n, _d: self._blocks.update(((a, n),)))

    def clear(self) -> None:
        """Counts from here."""
        self._blocks.clear()

    def total(self) -> int:
        """Instructions, without what stands behind the return."""
        return sum(n * self._length(k) for k, n in self._blocks.items() if k[0] != self._core.STOP)

    def _length(self, block: tuple[int, int]) -> int:
        if block not in self._lengths:
            decoded = list(self._decoder.disasm_lite(self._core.read(*block), block[0]))
            assert sum(size for _, size, _, _ in decoded) == block[1]
            self._lengths[block] = len(decoded)
        return self._lengths[block]


def linked(text: str, sources: Sequence[Path], folder: Path, flags: Sequence[str]) -> Path:
    """The ELF file of a program with a main, and of those of the functions in ``sources`` that it reaches."""
    compiler = shutil.which(GCC)
    if compiler is None:
        pytest.skip(f"no {GCC}")
    source, script, elf = (folder / n for n in ("board.c", "board.ld", "board.elf"))
    source.write_text(text, encoding="utf-8")
    code = ".text 0x08000000 : { *(.text*) *(.rodata*) } /DISCARD/ : { *(.ARM.exidx*) }"
    ram = ".bss 0x20000000 : { *(.bss*) *(COMMON) } .data : { *(.data*) }"
    script.write_text(f"SECTIONS {{ {code} {ram} }}\n", encoding="utf-8")
    options = [*WARNINGS, *CORTEX_M7, "-std=gnu11", *flags, f"-I{RUNTIME / 'include'}"]
    link = ["-ffunction-sections", "-Wl,--gc-sections", "-nostartfiles", "-Wl,-e,main", f"-Wl,-T,{script}"]
    subprocess.run([compiler, *options, *link, str(source), *map(str, sources), "-o", str(elf)], check=True)
    return elf


def results_of(core: Core) -> bytes:
    """Runs main of a program with BOARD_PUT; what it has put."""
    core.call("main")
    n = int.from_bytes(core.read(core.address["result_bytes"], 4), "little")
    return core.read(core.address["results"], n)


def objects(sources: Sequence[Path], compiler: str, flags: Sequence[str]) -> tuple[str, ...]:
    """Each source as an object of a host build, in a folder that goes with the session."""
    folder = temporary("mcg-objects-")
    found = []
    for source in sources:
        found.append(str(folder / f"{source.stem}.o"))
        command = [compiler, *WARNINGS, *flags, f"-I{RUNTIME / 'include'}", "-c", str(source), "-o", found[-1]]
        subprocess.run(command, check=True)
    return tuple(found)


def host_results(
    text: str,
    folder: Path,
    kernels: Callable[[str], tuple[str, ...]],
    builds: Mapping[str, tuple[str, ...]],
    data: bytes,
) -> Iterator[tuple[str, bytes]]:
    """What a program with HOST_PUT writes, by build: those whose compiler is here. ``kernels``: the objects of a build,
    ``builds``: compiler and flags, ``data``: stdin."""
    source = folder / "cases.c"
    source.write_text(text, encoding="utf-8")
    for build, (compiler, *flags) in builds.items():
        if shutil.which(compiler) is None:
            continue
        program = folder / f"cases_{build}"
        command = [compiler, *WARNINGS, *flags, "-O0", f"-I{RUNTIME / 'include'}", str(source), *kernels(build)]
        subprocess.run([*command, "-o", str(program)], check=True)
        done = subprocess.run([str(program)], input=data, capture_output=True, check=False)
        assert done.returncode == 0, done.stderr.decode()[-3000:]
        yield build, done.stdout


def temporary(prefix: str) -> Path:
    """A folder that goes with the session."""
    folder = Path(tempfile.mkdtemp(prefix=prefix))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder
