"""The emulated board: a Cortex-M core of unicorn with exactly the memories of a board file.

What is stricter than the part: RAM starts as 0xA5, a store to flash and every access outside a memory end the run with
the address, the symbol and the memory. What unicorn does not notice: unaligned LDRD and VLDR, a disabled FPU, the MPU,
caches; for the first two there is a board under QEMU (``qemu.py``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mcugen.core.ports import element_type, row_layout
from mcugen.core.stream import OK, PENDING
from mcugen.core.types import Array
from mcugen.emit.parts import place_functions
from mcugen.emulate.elf import region_at
from mcugen.emulate.extra import optional
from mcugen.emulate.image import BoardModel, Image, due_results
from mcugen.emulate.recorder import Execution, Recorder
from mcugen.errors import DiffersError, InputError
from mcugen.target.board import Board, Region

#: What RAM holds after power-on here, and what an unused stack holds.
POISON = 0xA5
#: How long a call may take: this, and for each instruction that it is known to take what recording costs at most.
_TIMEOUT_US = 60_000_000
_RECORDED_US = 50
_FPU_ENABLED = 0xF << 20
_GUARD = 0x1_0000
_INTERRUPTS = {1: "an undefined instruction", 2: "a supervisor call", 3: "a fetch that fails", 4: "a data abort"}
_INTERRUPTS |= {7: "a breakpoint"}


@dataclass(frozen=True, slots=True, eq=False)
class Calls:
    """What rows gave: ``y`` (N, outputs), zeros where no result is due; ``status`` and ``instructions`` (N,)."""

    y: Array
    status: Array
    instructions: Array


class EmulatedBoard:
    """One board with one image, booted. ``engine``: the unicorn engine, for hooks of others.

    DiffersError if the program leaves what the board allows; InputError without the extra ``board``.
    """

    def __init__(self, image: Image, board: Board) -> None:
        if board.unicorn is None:
            raise InputError(f"boards/{board.name}/board.toml", "has no [emulator.unicorn]")
        self._uc = uc = optional("unicorn")
        self._arm = arm = optional("unicorn.arm_const")
        self.image, self.board = image, board
        self._fault: tuple[str, int] | None = None
        self._interrupt: int | None = None
        self._lengths: dict[tuple[int, int], int] = {}
        self._places: tuple[int, ...] | None = None
        self._timeout = _TIMEOUT_US
        self.engine: Any = uc.Uc(uc.UC_ARCH_ARM, uc.UC_MODE_THUMB)
        if board.unicorn.mode == "mclass":
            self.engine = uc.Uc(uc.UC_ARCH_ARM, uc.UC_MODE_THUMB | uc.UC_MODE_MCLASS)
        cpu = getattr(arm, f"UC_CPU_ARM_{board.unicorn.cpu.upper()}", None)
        if cpu is None:
            raise InputError(f"boards/{board.name}/board.toml", f"emulator.unicorn.cpu: {board.unicorn.cpu} is unknown")
        self.engine.ctl_set_cpu_model(cpu)
        for region in board.regions:
            if region.clock is None:
                self._map(region)
        for ram in board.unicorn.ram:
            self.engine.mem_map(ram.base, ram.size)
        self.engine.hook_add(uc.UC_HOOK_MEM_INVALID, self._invalid)
        self.engine.hook_add(uc.UC_HOOK_INTR, self._interrupted)
        self._load()
        self._boot()

    # -- memory

    def _map(self, region: Region) -> None:
        uc = self._uc
        rights = uc.UC_PROT_READ | (uc.UC_PROT_WRITE if region.writable else 0)
        self.engine.mem_map(region.base, region.size, rights | (uc.UC_PROT_EXEC if region.executable else 0))
        self.engine.mem_write(region.base, bytes([POISON if region.writable else 0xFF]) * region.size)

    def _load(self) -> None:
        home = self.board.home
        for s in self.image.elf.segments:
            if not home.base <= s.load <= s.load + len(s.data) <= home.end:
                raise DiffersError(self._where, f"the load image has bytes at {s.load:#010x}, outside {home.name}")
            self.engine.mem_write(s.load, s.data)

    def _boot(self) -> None:
        """From reset to the call that says that all is ready."""
        arm, elf = self._arm, self.image.elf
        # The core that unicorn has is of the application profile: there the FPU has a switch of its own, too.
        self.engine.reg_write(arm.UC_ARM_REG_C1_C0_2, self.engine.reg_read(arm.UC_ARM_REG_C1_C0_2) | _FPU_ENABLED)
        self.engine.reg_write(arm.UC_ARM_REG_FPEXC, 1 << 30)
        stack, reset = (self._word(self.board.home.base + i) for i in (0, 4))
        self._stop = elf.address("mcg_image_stop")
        self._limit, self._top = elf.address("mcg_image_stack_limit"), elf.address("mcg_image_stack_top")
        self.engine.reg_write(arm.UC_ARM_REG_SP, stack)
        self._start(reset)
        assert self.board.unicorn is not None
        if self._word(self.board.unicorn.cpacr) & _FPU_ENABLED != _FPU_ENABLED:
            raise DiffersError(self._where, "start-up code has not switched the FPU on")
        self.engine.mem_write(self._limit, bytes([POISON]) * (self._top - self._limit))

    def _word(self, address: int) -> int:
        return int.from_bytes(self.engine.mem_read(address, 4), "little")

    @property
    def _where(self) -> str:
        return f"emulated {self.board.name}"

    # -- calls

    def call(self, address: int, *arguments: int) -> int:
        """Calls the function at ``address`` as C does, with the whole stack; what it returns in r0.

        ``arguments``: words, four of them in registers, the rest on the stack.
        """
        arm = self._arm
        registers = (arm.UC_ARM_REG_R0, arm.UC_ARM_REG_R1, arm.UC_ARM_REG_R2, arm.UC_ARM_REG_R3)
        for register, value in zip(registers, arguments, strict=False):
            self.engine.reg_write(register, value)
        more = b"".join(a.to_bytes(4, "little") for a in arguments[len(registers) :])
        stack = self._top - (len(more) + 7) // 8 * 8
        self.engine.mem_write(stack, more)
        self.engine.reg_write(arm.UC_ARM_REG_SP, stack)
        self.engine.reg_write(arm.UC_ARM_REG_LR, self._stop | 1)
        self._start(address | 1)
        return int(self.engine.reg_read(arm.UC_ARM_REG_R0))

    def run(self, model: BoardModel, x: Array, count: bool = True) -> tuple[Array, Array]:
        """Outputs and instructions of ``calls``."""
        found = self.calls(model, x, count)
        return found.y, found.instructions

    def calls(self, model: BoardModel, x: Array, count: bool = True, placed: bool = True) -> Calls:
        """Rows ``x`` (N, inputs) through NAME_run, or through NAME_push in one run from a fresh state. Instructions are
        zeros without ``count``. Inputs and outputs are at their places in the model's arena, if it has them, and with
        ``placed``; otherwise apart, and DiffersError if an input is changed.

        They are those from the entry of the function to its return, veneers of the linker included; those of an IT
        block count whether their condition holds or not, as they do on the part.
        """
        y: list[bytes] = []
        status = np.zeros(len(x), np.int32)
        instructions = np.zeros(len(x), np.int64)
        blocks: list[tuple[int, int]] = []
        self._fresh(model, placed)
        hook = self._hook(blocks) if count else None
        for i, row in enumerate(np.ascontiguousarray(x, element_type(model.inputs))):
            result, status[i] = self._row(model, row, i)
            y.append(result)
            instructions[i] = self.instructions(blocks)
            blocks.clear()
        if hook is not None:
            self._unhook(hook)
        return Calls(due_results(b"".join(y), status, model, self._where), status, instructions)

    def record(self, model: BoardModel, x: Array, chosen: Sequence[int] | None = None) -> tuple[Execution | None, ...]:
        """What each row of ``x``, or each ``chosen`` one (ascending), executes and accesses; None for a row that the
        recording itself disturbs. All rows run: what a push does depends on those before.

        Disturbed: outputs or blocks are not those of a run without recording of accesses (see ``recorder.py``).
        """
        rows = np.ascontiguousarray(x, element_type(model.inputs))
        wanted = set(range(len(rows)) if chosen is None else chosen)
        plain = self._executed(model, rows, wanted)
        found: list[Execution | None] = []
        self._fresh(model)
        recorder: Recorder | None = None
        for i, row in enumerate(rows):
            if (i in wanted) != (recorder is not None):
                recorder = self._toggled(recorder)
            self._timeout = _TIMEOUT_US + (_RECORDED_US * self.instructions(plain[i][1]) if recorder is not None else 0)
            y, _ = self._row(model, row, i)
            self._timeout = _TIMEOUT_US
            if recorder is not None:
                execution = recorder.take()
                found.append(execution if (y, execution.blocks) == plain[i] else None)
        if recorder is not None:
            self._toggled(recorder)
        return tuple(found)

    def _executed(
        self, model: BoardModel, rows: Array, wanted: set[int]
    ) -> dict[int, tuple[bytes, tuple[tuple[int, int], ...]]]:
        """Outputs and blocks of the ``wanted`` rows, without recording of accesses."""
        found: dict[int, tuple[bytes, tuple[tuple[int, int], ...]]] = {}
        known: dict[tuple[int, int], tuple[int, int]] = {}
        blocks: list[tuple[int, int]] = []
        self._fresh(model)
        hook = self._hook(blocks)
        for i, row in enumerate(rows):
            y, _ = self._row(model, row, i)
            if i in wanted:
                found[i] = (y, tuple(known.setdefault(b, b) for b in blocks))
            blocks.clear()
        self._unhook(hook)
        return found

    def _toggled(self, recorder: Recorder | None) -> Recorder | None:
        """A recorder where there is none, and none where there is one."""
        if recorder is None:
            return Recorder(self.engine)
        recorder.close()
        return None

    def selftest(self, model: BoardModel) -> int:
        """What NAME_selftest returns: 0, or 1 + the first vector that fails; 0 too where there is no self-test."""
        name = f"{model.name}_selftest"
        return self.call(self.image.elf.address(name)) if f"{name}.c" in model.files else 0

    def stack_bytes(self) -> int:
        """Bytes of stack that the calls since the start have used, by what they left behind."""
        raw = np.frombuffer(bytes(self.engine.mem_read(self._limit, self._top - self._limit)), np.uint8)
        used = np.flatnonzero(raw != POISON)
        return 0 if used.size == 0 else -(-(len(raw) - int(used[0])) // 4) * 4

    def instructions(self, blocks: Iterable[tuple[int, int]]) -> int:
        """Instructions in executed blocks, each (address, bytes)."""
        return sum(self._length(block) * times for block, times in Counter(blocks).items())

    def _hook(self, blocks: list[tuple[int, int]]) -> int:
        """Appends what is executed to ``blocks``. Code that was translated before has no hooks: forget it."""
        self.engine.ctl_flush_tb()
        return int(self.engine.hook_add(self._uc.UC_HOOK_BLOCK, _append_block, blocks))

    def _unhook(self, hook: int) -> None:
        self.engine.hook_del(hook)
        self.engine.ctl_flush_tb()

    def _fresh(self, model: BoardModel, placed: bool = True) -> None:
        """A fresh state, in memory that held something else, and where rows go."""
        self._places = self._found_places(model) if model.placed and placed else None
        if model.state_bytes:
            address = self.image.elf.address("mcg_image_state")
            self.engine.mem_write(address, bytes([POISON]) * model.state_bytes)
            self.call(self.image.elf.address(f"{model.name}_init"), address)

    def _found_places(self, model: BoardModel) -> tuple[int, ...]:
        """The addresses of inputs and outputs in the model's arena."""
        functions = place_functions(model.name, model.inputs, model.outputs)
        return tuple(self.call(self.image.elf.address(f)) for side in functions for f in side)

    def _row(self, model: BoardModel, row: Array, i: int) -> tuple[bytes, int]:
        elf = self.image.elf
        x, y = elf.address("mcg_image_x"), elf.address("mcg_image_y")
        (ins, _), (outs, size) = row_layout(model.inputs), row_layout(model.outputs)
        state = (elf.address("mcg_image_state"),) if model.state_bytes else ()
        pointers = self._places or (*(x + at for at in ins), *(y + at for at in outs))
        data, result = row.tobytes(), bytearray([POISON]) * size
        # Outputs first: an input may lie where an output will.
        for p, to, at in zip(model.outputs, pointers[len(ins) :], outs, strict=True):
            self.engine.mem_write(to, bytes(result[at : at + p.size]))
        for p, to, at in zip(model.inputs, pointers, ins, strict=False):
            self.engine.mem_write(to, data[at : at + p.size])
        status = self.call(elf.address(model.entry), *state, *pointers)
        signed = status - (1 << 32) if status >> 31 else status
        if signed not in ((OK, PENDING) if state else (OK,)):
            raise DiffersError(self._where, f"{model.entry} returns {signed} for row {i}")
        for p, to, at in zip(model.outputs, pointers[len(ins) :], outs, strict=True):
            result[at : at + p.size] = self.engine.mem_read(to, p.size)
        for p, to, at in zip(model.inputs, pointers, ins, strict=False):
            if self._places is None and self.engine.mem_read(to, p.size) != data[at : at + p.size]:
                raise DiffersError(self._where, f"{model.entry} changes its input of row {i}")
        return bytes(result), signed

    def _length(self, block: tuple[int, int]) -> int:
        """Instructions in a block: an instruction has 4 bytes if its upper five bits are 11101 or more."""
        found = self._lengths.get(block)
        if found is None:
            address, size = block
            halves = np.frombuffer(bytes(self.engine.mem_read(address, size)), "<u2")
            at = found = 0
            while at < len(halves):
                at += 2 if halves[at] >= 0xE800 else 1
                found += 1
            self._lengths[block] = found
        return found

    # -- execution and what can go wrong

    def _start(self, entry: int) -> None:
        """Runs from ``entry`` (with the Thumb bit) to mcg_image_stop."""
        self._fault = self._interrupt = None
        error: str | None = None
        try:
            self.engine.emu_start(entry, self._stop, timeout=self._timeout)
        except self._uc.UcError as e:
            error = str(e)
        pc = int(self.engine.reg_read(self._arm.UC_ARM_REG_PC))
        if self._fault is not None:
            raise DiffersError(self._where, f"{self._told(*self._fault)} {self._at(pc)}")
        if self._interrupt is not None:
            what = _INTERRUPTS.get(self._interrupt, f"exception {self._interrupt}")
            raise DiffersError(self._where, f"{what} {self._at(pc)}")
        if error is not None:
            raise DiffersError(self._where, f"{error} {self._at(pc)}")
        if pc & ~1 != self._stop:
            seconds = self._timeout // 1_000_000
            raise DiffersError(self._where, f"does not end within {seconds} s, stopped {self._at(pc)}")

    def _invalid(self, engine: Any, kind: int, address: int, size: int, value: int, data: Any) -> bool:
        """Unicorn asks what to do with an access that no mapped memory allows; True: try again."""
        uc = self._uc
        region = region_at(self.board, address)
        unmapped = kind in (uc.UC_MEM_READ_UNMAPPED, uc.UC_MEM_WRITE_UNMAPPED, uc.UC_MEM_FETCH_UNMAPPED)
        clock = region.clock if region is not None and unmapped else None
        if region is not None and clock is not None and self._word(clock.register) & clock.mask == clock.mask:
            self._map(region)
            return True
        verb = "fetch" if kind in (uc.UC_MEM_FETCH_UNMAPPED, uc.UC_MEM_FETCH_PROT) else "load"
        verb = "store" if kind in (uc.UC_MEM_WRITE_UNMAPPED, uc.UC_MEM_WRITE_PROT) else verb
        self._fault = (verb, address)
        return False

    def _told(self, verb: str, address: int) -> str:
        region = region_at(self.board, address)
        symbol = self.image.elf.symbol_at(address)
        if region is None and self._limit - _GUARD <= address < self._limit:
            return f"the stack of {self._top - self._limit} bytes is too small: {verb} at {address:#010x}"
        place = "outside every memory" if region is None else f"in {region.name}"
        if region is not None and region.clock is not None and verb != "fetch":
            place += ", whose clock is off"
        return f"{verb} at {address:#010x}{f' ({symbol})' if symbol else ''} {place}"

    def _at(self, pc: int) -> str:
        symbol = self.image.elf.symbol_at(pc & ~1)
        return f"by the instruction at {pc & ~1:#010x}{f' ({symbol})' if symbol else ''}"

    def _interrupted(self, engine: Any, number: int, data: Any) -> None:
        self._interrupt = number
        engine.emu_stop()


def _append_block(engine: Any, address: int, size: int, blocks: list[tuple[int, int]]) -> None:
    blocks.append((address, size))
