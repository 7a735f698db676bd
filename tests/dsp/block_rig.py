"""Runs the filter kernels block by block: on the host, each buffer of its exact size, and on an emulated Cortex-M7."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from bare_core import CORTEX_M7, GCC, RUNTIME, WARNINGS, BlockCounter, Core, temporary
from filter_cases import Biquad, Fir
from push_rig import BUILDS, SOURCES

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
    folder = temporary("mcg-blocks-")
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
    """Functions of an ELF file on an emulated core that counts their instructions."""

    def __init__(self, elf: Path) -> None:
        self._core = Core(elf)
        self._counter = BlockCounter(self._core)
        self._free = self._core.RAM

    @classmethod
    def build(cls, folder: Path, sources: Sequence[Path], flags: Sequence[str]) -> Board:
        """Compiles and links ``sources``, all functions kept."""
        script, elf = folder / "kernels.ld", folder / "kernels.elf"
        ram = ".bss 0x20700000 : { *(.bss*) *(.data*) }"
        text = ". = 0x08000000; .text : { KEEP(*(.text*)) *(.rodata*) } /DISCARD/ : { *(.ARM.exidx*) }"
        script.write_text(f"SECTIONS {{ {text} {ram} }}\n", encoding="utf-8")
        link = ["-nostartfiles", "-Wl,-e,0", "-Wl,--build-id=none", f"-Wl,-T,{script}", "-o", str(elf)]
        subprocess.run([GCC, *CORTEX_M7, *flags, *map(str, sources), *link], check=True)
        return cls(elf)

    def reset(self) -> None:
        """Forgets what ``place`` has placed."""
        self._free = self._core.RAM

    def place(self, data: bytes) -> int:
        """The address of a copy in RAM, aligned to 8, with canaries round it."""
        at = self._free + 64
        self._core.write(at - 64, b"\xa5" * 64 + data + b"\xa5" * 64)
        self._free = (at + len(data) + 64 + 7) & ~7
        return at

    def write(self, at: int, data: bytes) -> None:
        """Bytes to RAM."""
        self._core.write(at, data)

    def read(self, at: int, size: int) -> bytes:
        """``size`` bytes of RAM; the canaries round them must be whole."""
        for start in (at - 64, at + size):
            assert self._core.read(start, 64) == b"\xa5" * 64, "written past a buffer"
        return self._core.read(at, size)

    def call(self, function: str, *arguments: int) -> int:
        """Instructions from the entry to the return, of a call with integer arguments and pointers."""
        self._counter.clear()
        self._core.call(function, *arguments, room=(9 << 20) + 256, limit=_LIMIT)
        return self._counter.total()


@cache
def board(*flags: str) -> Board:
    """The kernels of the runtime, built with ``flags``, -O2 by default."""
    folder = temporary("mcg-blocks-")
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
