"""An example as a user takes it: exported with a project, its main.c built in it, run on this machine and on the board.

The board is the emulated STM32H743 with the project's own start-up code and linker script. What main.c prints goes
through SWO there.
"""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import pytest

import mcugen
from mcugen.emit.sources import sources_of
from mcugen.exported import open_folder
from mcugen.target.board import load_board

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
BOARD = load_board("stm32h743")
GCC = "arm-none-eabi-gcc"
STRICT = ("-std=c11", "-O2", "-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Werror")
_PRINT, _READY, _COUNTER = 0xE000_0000, (0xE000_0000, 0xE000_0E00, 0xE000_0E80), 0xE000_1004
needs_gcc = pytest.mark.skipif(shutil.which(GCC) is None, reason=f"no {GCC}")


@dataclass(frozen=True)
class Example:
    """An exported example. ``folder``: the project; ``name``: of the model."""

    name: str
    folder: Path

    @classmethod
    def export(cls, name: str, out: Path, calib: str) -> Example:
        """As the README of the example says; verified on this machine."""
        source = EXAMPLES / name
        mcugen.export(source / f"{name}.toml", out, project="cmake", calib=str(source / calib))
        return cls(name, out)

    def _program(self, to: Path, changed: Mapping[str, str]) -> Path:
        """main.c and its headers in a folder; ``changed``: other contents of files."""
        to.mkdir()
        for path in sorted((EXAMPLES / self.name).glob("*.[ch]")):
            (to / path.name).write_text(changed.get(path.name, path.read_text(encoding="utf-8")), encoding="utf-8")
        return to / "main.c"

    def _sources(self) -> list[Path]:
        return [self.folder / p for p in sources_of(open_folder(self.folder).files)]

    def host(self, work: Path, changed: Mapping[str, str] = {}) -> str:
        """What main.c prints on this machine."""
        main = self._program(work / "host", changed)
        _call("cc", *STRICT, f"-I{self.folder}", main, *self._sources(), "-o", work / "host" / "program")
        return _call(work / "host" / "program")

    def board(self, work: Path, changed: Mapping[str, str] = {}, count: bool = False) -> str:
        """What main.c prints on the emulated board. ``count``: its counter of cycles counts instructions, else 0."""
        main = self._program(work / "board", changed)
        app, elf = self.folder / "app", work / "board" / "program.elf"
        sources = [main, *(app / f"{n}.c" for n in ("startup", "swo", "system")), *self._sources()]
        _call(
            GCC, *BOARD.flags, *STRICT, "-Wno-pedantic", "-ffunction-sections", "-fdata-sections",
            f"-I{self.folder}", f"-I{app}", *sources, "-nostartfiles", "--specs=nano.specs", "--specs=nosys.specs",
            f"-T{self.folder / 'mcugen' / 'mcugen.ld'}", f"-T{app / 'app.ld'}", "-Wl,--gc-sections", "-o", elf,
        )  # fmt: skip
        return run(elf, count)


def run(elf: Path, count: bool) -> str:
    """What came out of SWO from reset to the return of main."""
    uc = pytest.importorskip("unicorn")
    arm = pytest.importorskip("unicorn.arm_const")
    segments, symbols = _read(elf)
    cpu = uc.Uc(uc.UC_ARCH_ARM, uc.UC_MODE_THUMB)
    cpu.ctl_set_cpu_model(arm.UC_CPU_ARM_MAX)
    for r in BOARD.regions:
        if r.clock is None:
            cpu.mem_map(r.base, r.size, uc.UC_PROT_ALL if r.writable else uc.UC_PROT_READ | uc.UC_PROT_EXEC)
            cpu.mem_write(r.base, (b"\xa5" if r.writable else b"\xff") * r.size)
    assert BOARD.unicorn is not None
    for ram in BOARD.unicorn.ram:
        cpu.mem_map(ram.base, ram.size)
    for address, data in segments:
        cpu.mem_write(address, data)
    for register in _READY:  # a debugger has enabled the port, and it is free
        cpu.mem_write(register, b"\x01\0\0\0")
    printed, executed = bytearray(), [0]

    def put(_cpu: object, _kind: int, _at: int, _size: int, value: int, _data: object) -> None:
        printed.append(value & 0xFF)

    def block(_cpu: object, address: int, size: int, _data: object) -> None:
        executed[0] += _instructions(bytes(cpu.mem_read(address, size)))

    def counter(_cpu: object, _kind: int, _at: int, _size: int, _value: int, _data: object) -> None:
        cpu.mem_write(_COUNTER, (executed[0] & 0xFFFF_FFFF).to_bytes(4, "little"))

    cpu.hook_add(uc.UC_HOOK_MEM_WRITE, put, None, _PRINT, _PRINT + 3)
    if count:
        cpu.hook_add(uc.UC_HOOK_MEM_READ, counter, None, _COUNTER, _COUNTER + 3)
        cpu.hook_add(uc.UC_HOOK_BLOCK, block)
    cpu.reg_write(arm.UC_ARM_REG_C1_C0_2, cpu.reg_read(arm.UC_ARM_REG_C1_C0_2) | (0xF << 20))
    cpu.reg_write(arm.UC_ARM_REG_FPEXC, 1 << 30)
    stack, reset = (int.from_bytes(cpu.mem_read(BOARD.home.base + i, 4), "little") for i in (0, 4))
    cpu.reg_write(arm.UC_ARM_REG_SP, stack)
    end = _returned(cpu, symbols["start"] & ~1)
    cpu.emu_start(reset | 1, end, timeout=120_000_000)
    assert cpu.reg_read(arm.UC_ARM_REG_PC) & ~1 == end, printed.decode()
    return printed.decode()


def _returned(cpu: object, start: int) -> int:
    """The endless loop behind main in start-up code: the first branch to itself."""
    code = bytes(cpu.mem_read(start, 512))  # type: ignore[attr-defined]
    at = next(i for i in range(0, len(code), 2) if code[i : i + 2] == b"\xfe\xe7")
    return start + at


def _instructions(code: bytes) -> int:
    """Instructions in a block: one has four bytes if its upper five bits are 11101 or more."""
    at = found = 0
    while at < len(code):
        at += 4 if code[at + 1] >= 0xE8 else 2
        found += 1
    return found


def _read(elf: Path) -> tuple[list[tuple[int, bytes]], dict[str, int]]:
    """Bytes by load address, and symbols."""
    reader = pytest.importorskip("elftools.elf.elffile")
    with elf.open("rb") as stream:
        file = reader.ELFFile(stream)
        segments = [(s["p_paddr"], s.data()) for s in file.iter_segments() if s["p_type"] == "PT_LOAD" and s.data()]
        table = file.get_section_by_name(".symtab")
        return segments, {s.name: s["st_value"] for s in table.iter_symbols()}


def _call(*command: object) -> str:
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def script(name: str, file: str) -> ModuleType:
    """A Python file of an example as a module."""
    spec = importlib.util.spec_from_file_location(f"{name}_{file}", EXAMPLES / name / f"{file}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module
