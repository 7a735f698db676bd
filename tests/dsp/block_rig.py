"""Runs the filter kernels block by block: on the host, each buffer of its exact size, and on an emulated Cortex-M7."""

from __future__ import annotations

import atexit
import re
import shutil
import subprocess
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from filter_cases import Biquad, Fir
from push_rig import BUILDS, CORTEX_M7, RUNTIME, SOURCES, WARNINGS

from mcugen.core.op import Names
from mcugen.dsp.ops import FirQ15

FUNCTIONS = (
    "mcg_fir_q15_block",
    "mcg_fir_q31_block",
    "mcg_fir_f32_block",
    "mcg_biquad_q15_block",
    "mcg_biquad_q15_narrow_block",
    "mcg_biquad_q31_block",
    "mcg_biquad_q63_block",
    "mcg_biquad_f32_block",
)
#: Instructions that a call must not exceed: something hangs.
_LIMIT = 10_000_000


def function_of(op: Fir | Biquad) -> str:
    """The kernel that the op's C calls."""
    symbols = {t.symbol: t.symbol for t in op.items("f")}
    call = op.emit("f", ("x",), ("y",), Names(symbols, {}, state={m.name: m.name for m in op.state})).call
    return next(f for f in FUNCTIONS if f"{f}(" in call)


def shape_of(op: Fir | Biquad) -> tuple[int, int, int]:
    """Taps, room, narrow of a FIR filter; sections of the others."""
    if not hasattr(op, "taps"):
        return len(op.coefficients), 0, 0
    text = op.shape()
    taps, room = (int(re.search(rf"{name} = (\d+)u", text)[1]) for name in ("taps", "room"))
    return taps, room, int(isinstance(op, FirQ15) and op.narrow)


@cache
def _runner(build: str) -> Path:
    folder = Path(tempfile.mkdtemp(prefix="mcg-blocks-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    compiler, *flags = BUILDS[build]
    paths = [str(Path(__file__).with_name("block_runner.c")), *map(str, SOURCES)]
    command = [compiler, *WARNINGS, *flags, f"-I{RUNTIME / 'include'}", *paths, "-o", str(folder / "runner")]
    subprocess.run(command, check=True)
    return folder / "runner"


@dataclass(frozen=True)
class Blocks:
    """Samples (T,) for the kernel of an op on one channel, cut into ``cut`` that sum to T."""

    op: Fir | Biquad
    x: np.ndarray
    cut: Sequence[int]
    in_place: bool

    def data(self) -> bytes:
        op, x = self.op, self.x
        (table,), (state,) = op.items("f"), op.state
        sizes = [table.size, state.size, x.itemsize, len(x), len(self.cut), int(self.in_place)]
        words = np.array([FUNCTIONS.index(function_of(op)), *shape_of(op), *sizes, *self.cut], "<u4")
        return bytes(words.tobytes() + table.data.tobytes() + x.tobytes())


def run_blocks(cases: Sequence[Blocks], build: str) -> list[np.ndarray]:
    """What the kernels of a build give."""
    data = b"".join(c.data() for c in cases)
    done = subprocess.run([str(_runner(build))], input=data, capture_output=True, check=False)
    assert done.returncode == 0, (done.returncode, done.stderr.decode()[-2000:])
    results, at = [], 0
    for c in cases:
        results.append(np.frombuffer(done.stdout[at : at + c.x.nbytes], c.x.dtype))
        at += c.x.nbytes
    assert at == len(done.stdout)
    return results


def builds() -> list[str]:
    """The host builds that this machine can make."""
    return [name for name, (compiler, *_) in BUILDS.items() if shutil.which(compiler)]


class Board:
    """Functions of an ELF under unicorn; counts their instructions by blocks."""

    RAM, STOP = 0x2000_0000, 0x0FFF_0000

    def __init__(self, elf: Path) -> None:
        import capstone  # noqa: PLC0415
        import unicorn  # noqa: PLC0415
        from elftools.elf.elffile import ELFFile  # noqa: PLC0415
        from unicorn import arm_const as arm  # noqa: PLC0415

        self._arm = arm
        u = self._u = unicorn.Uc(unicorn.UC_ARCH_ARM, unicorn.UC_MODE_THUMB)
        u.ctl_set_cpu_model(arm.UC_CPU_ARM_MAX)
        u.reg_write(arm.UC_ARM_REG_C1_C0_2, u.reg_read(arm.UC_ARM_REG_C1_C0_2) | 0xF << 20)
        u.reg_write(arm.UC_ARM_REG_FPEXC, 1 << 30)
        for base, size in ((0x0800_0000, 1 << 20), (self.RAM, 8 << 20), (self.STOP, 4096)):
            u.mem_map(base, size)
        u.mem_write(self.STOP, b"\x00\xbf" * 8)
        with elf.open("rb") as f:
            image = ELFFile(f)
            for segment in image.iter_segments():
                if segment["p_type"] == "PT_LOAD" and segment["p_filesz"]:
                    u.mem_write(segment["p_vaddr"], segment.data())
            table = image.get_section_by_name(".symtab")
            self._address = {s.name: s["st_value"] & ~1 for s in table.iter_symbols()}
        self._decoder = capstone.Cs(capstone.CS_ARCH_ARM, capstone.CS_MODE_THUMB | capstone.CS_MODE_MCLASS)
        self._lengths: dict[tuple[int, int], int] = {}
        self._blocks: Counter[tuple[int, int]] = Counter()
        self._free = self.RAM
        u.hook_add(unicorn.UC_HOOK_BLOCK, lambda _u, a, n, _d: self._blocks.update(((a, n),)))

    @classmethod
    def build(cls, folder: Path, sources: Sequence[Path], flags: Sequence[str]) -> Board:
        """Compiles and links ``sources``, all functions kept."""
        script, elf = folder / "kernels.ld", folder / "kernels.elf"
        ram = ".bss 0x20700000 : { *(.bss*) *(.data*) }"
        text = ". = 0x08000000; .text : { KEEP(*(.text*)) *(.rodata*) } /DISCARD/ : { *(.ARM.exidx*) }"
        script.write_text(f"SECTIONS {{ {text} {ram} }}\n", encoding="utf-8")
        link = ["-nostartfiles", "-Wl,-e,0", "-Wl,--build-id=none", f"-Wl,-T,{script}", "-o", str(elf)]
        subprocess.run(["arm-none-eabi-gcc", *CORTEX_M7, *flags, *map(str, sources), *link], check=True)
        return cls(elf)

    def reset(self) -> None:
        """Forgets what ``place`` has placed."""
        self._free = self.RAM

    def place(self, data: bytes) -> int:
        """The address of a copy in RAM, aligned to 8, with canaries round it."""
        at = self._free + 64
        self._u.mem_write(at - 64, b"\xa5" * 64 + data + b"\xa5" * 64)
        self._free = (at + len(data) + 64 + 7) & ~7
        return at

    def write(self, at: int, data: bytes) -> None:
        """Bytes to RAM."""
        self._u.mem_write(at, data)

    def read(self, at: int, size: int) -> bytes:
        """``size`` bytes of RAM; the canaries round them must be whole."""
        for start in (at - 64, at + size):
            assert bytes(self._u.mem_read(start, 64)) == b"\xa5" * 64, "written past a buffer"
        return bytes(self._u.mem_read(at, size))

    def call(self, function: str, *arguments: int) -> int:
        """Instructions from the entry to the return, of a call with integer arguments and pointers."""
        u, arm = self._u, self._arm
        top = self.RAM + (7 << 20) - 256
        u.reg_write(arm.UC_ARM_REG_SP, top)
        u.reg_write(arm.UC_ARM_REG_LR, self.STOP | 1)
        for i, value in enumerate(arguments):
            if i < 4:
                u.reg_write(arm.UC_ARM_REG_R0 + i, value)
            else:
                u.mem_write(top + 4 * (i - 4), value.to_bytes(4, "little"))
        self._blocks.clear()
        u.emu_start(self._address[function] | 1, self.STOP, count=_LIMIT)
        return sum(n * self._length(k) for k, n in self._blocks.items() if k[0] != self.STOP)

    def _length(self, block: tuple[int, int]) -> int:
        if block not in self._lengths:
            decoded = list(self._decoder.disasm_lite(bytes(self._u.mem_read(*block)), block[0]))
            assert sum(size for _, size, _, _ in decoded) == block[1]
            self._lengths[block] = len(decoded)
        return self._lengths[block]


@cache
def board(*flags: str) -> Board:
    """The kernels of the runtime, built with ``flags``, -O2 by default."""
    folder = Path(tempfile.mkdtemp(prefix="mcg-blocks-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    options = [*(flags or ("-O2",)), *WARNINGS, "-ffreestanding", f"-I{RUNTIME / 'include'}"]
    return Board.build(folder, SOURCES, options)


def run_on_board(op: Fir | Biquad, x: np.ndarray, block: int, rig: Board | None = None) -> tuple[np.ndarray, list[int]]:
    """Samples (T,) in blocks of one size, and the instructions of each call."""
    b = rig or board()
    b.reset()
    (table,), (state,) = op.items("f"), op.state
    function, shape = function_of(op), shape_of(op)
    at_table, at_state = b.place(table.data.tobytes()), b.place(bytes(state.size))
    first = (b.place(np.array(shape, "<u4").tobytes()), at_table) if hasattr(op, "taps") else (at_table, shape[0])
    at_x, at_y = b.place(bytes(block * x.itemsize)), b.place(bytes(block * x.itemsize))
    parts, counts = [], []
    for start in range(0, len(x) // block * block, block):
        part = x[start : start + block].tobytes()
        b.write(at_x, part)
        counts.append(b.call(function, *first, at_state, at_x, at_y, block))
        parts.append(b.read(at_y, len(part)))
    b.read(at_state, state.size)
    return np.frombuffer(b"".join(parts), x.dtype), counts
