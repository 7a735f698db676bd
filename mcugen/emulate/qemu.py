"""Runs a test image under QEMU: the checker for what unicorn lets pass (unaligned access, a disabled FPU).

Rows go in and results come out through semihosting, as files in a temporary folder; see ``c/semihosting.c``.
"""

from __future__ import annotations

import re
import shutil
import struct
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from mcugen.core.ports import element_type, row_layout
from mcugen.core.types import Array
from mcugen.emulate.elf import region_at
from mcugen.emulate.image import UNTOUCHED, BoardModel, Image, due_results
from mcugen.errors import DiffersError, InputError, InternalError
from mcugen.programs import run_program
from mcugen.target.board import Board

_TIMEOUT_S = 600
_POISON = bytes([UNTOUCHED])
_FAULT = re.compile(r"FAULT ([0-9a-f]{8}) ([0-9a-f]{8}) ([0-9a-f]{8}) ([0-9a-f]{8})")
#: Bits of the configurable fault status register.
_CAUSES = (
    (1 << 24, "an unaligned access"),
    (1 << 25, "a division by zero"),
    (1 << 19, "a floating-point instruction while the FPU is off"),
    (1 << 16, "an undefined instruction"),
    (1 << 17, "a jump out of Thumb state"),
    (1 << 12, "a stack that leaves its memory"),
    (1 << 8, "an instruction fetch outside every memory"),
    (1 << 9, "an access outside every memory"),
    (1 << 10, "an access outside every memory"),
)
#: Statuses of the image's own, see semihosting.c.
_WRONG = {-1001: "the input is changed", -1002: "another result with input and output in the arena"}
_ADDRESS_VALID = 1 << 15
_STACK_FAULT = (1 << 12) | (1 << 11) | (1 << 4) | (1 << 3)


@dataclass(frozen=True, slots=True, eq=False)
class QemuRun:
    """``y`` (N, outputs) and ``status`` (N,) of the rows; bytes of stack; what NAME_selftest returns."""

    y: Array
    status: Array
    stack: int
    selftest: int


def run_under_qemu(image: Image, model: BoardModel, board: Board, x: Array) -> QemuRun:
    """Rows ``x`` through NAME_run, or through NAME_push from a fresh state; outputs that are not due are zeros.

    DiffersError where the program faults; InputError, with the command that installs it, if QEMU is missing.
    """
    qemu = board.qemu
    if qemu is None:
        raise InputError(f"boards/{board.name}/board.toml", "has no [emulator.qemu]")
    program = shutil.which(qemu.program)
    if program is None:
        raise InputError(f"--target {board.name}", f"{qemu.program} was not found", f"for example: {qemu.install}")
    rows = np.ascontiguousarray(x, element_type(model.inputs))
    with tempfile.TemporaryDirectory(prefix="mcugen-") as name:
        folder = Path(name)
        # Not the ELF file: QEMU would zero what it does not store, and hide what start-up forgets.
        (folder / "flash.bin").write_bytes(_load_image(image, board))
        (folder / "x.bin").write_bytes(rows.tobytes())
        words = [program, *qemu.arguments, "-display", "none", "-serial", "none", "-monitor", "none"]
        words += ["-semihosting-config", "enable=on,target=native", *_poison(folder, board), "-kernel", "flash.bin"]
        try:
            code, text = run_program(words, folder, _TIMEOUT_S)
        except subprocess.TimeoutExpired:
            raise DiffersError(_where(board), f"does not end within {_TIMEOUT_S} s") from None
        _check(code, text, image, board)
        raw = (folder / "y.bin").read_bytes()
        answers = np.frombuffer((folder / "status.bin").read_bytes(), "<i4")
        failed, status, selftest, stack = struct.unpack("<IiII", (folder / "report.bin").read_bytes())
    if failed:
        what = _WRONG.get(status, f"{model.entry} returns {status}")
        raise DiffersError(_where(board), f"{what} for row {failed - 1}")
    if len(raw) != len(rows) * row_layout(model.outputs)[1] or len(answers) != len(rows):
        raise InternalError(_where(board), f"{len(raw)} bytes of results for {len(rows)} rows")
    return QemuRun(due_results(raw, answers, model, _where(board)), answers, stack, selftest)


def _where(board: Board) -> str:
    return f"QEMU {board.name}"


def _load_image(image: Image, board: Board) -> bytes:
    """What is in the home memory at power-on, from its base."""
    home = board.home
    data = bytearray()
    for s in image.elf.segments:
        start, end = s.load - home.base, s.load - home.base + len(s.data)
        if not 0 <= start <= end <= home.size:
            raise DiffersError(_where(board), f"the load image has bytes at {s.load:#010x}, outside {home.name}")
        data += b"\xff" * max(0, end - len(data))
        data[start:end] = s.data
    return bytes(data)


def _poison(folder: Path, board: Board) -> list[str]:
    """Fills RAM, so that a section that nobody copied or zeroed shows."""
    words: list[str] = []
    for region in board.regions:
        if region.writable:
            path = folder / f"{region.name}.bin"
            path.write_bytes(_POISON * region.size)
            words += ["-device", f"loader,file={path.name},addr={region.base:#x},force-raw=on"]
    return words


def _check(code: int, text: str, image: Image, board: Board) -> None:
    fault = _FAULT.search(text)
    if fault is not None:
        status, address, pc, stack = (int(word, 16) for word in fault.groups())
        what = next((t for bit, t in _CAUSES if status & bit), f"a fault ({status:#010x})")
        if status & _STACK_FAULT or region_at(board, stack) is None:
            what = f"the stack of {image.stack} bytes is too small"
        elif status & _ADDRESS_VALID:
            what += f", at {address:#010x}"
        symbol = image.elf.symbol_at(pc)
        by = f" by the instruction at {pc:#010x}{f' ({symbol})' if symbol else ''}" if pc else ""
        raise DiffersError(_where(board), what + by)
    if code != 0:
        line = next((line for line in text.splitlines() if line.strip()), "no message")
        raise DiffersError(_where(board), f"ended with exit code {code}: {line}")
