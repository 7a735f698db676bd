"""Runs one machine op on the host (a runner process) and on an emulated Cortex-M7, without a model round it.

``host(...)`` and ``board(...)`` build a rig once a session.
"""

from __future__ import annotations

import atexit
import shutil
import subprocess
import tempfile
from collections import Counter
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from mcugen.nn.ops.qconv import QConv
from mcugen.nn.ops.qdense import QDense
from mcugen.nn.ops.qdepthwise import QDepthwise
from mcugen.resources import resource_dir

FUNCTIONS = (
    "mcg_conv_s8",
    "mcg_conv_s8_any",
    "mcg_dense_s8",
    "mcg_dense_s8_any",
    "mcg_depthwise_s8",
    "mcg_depthwise_s8_any",
    "mcg_depthwise_3x3_s8_p16",
    "mcg_depthwise_3x3_s8_p32",
    "mcg_depthwise_3x3_s8_p64",
    "mcg_conv_nx3_s8",
    "mcg_conv_winograd_s8",
)
WARNINGS = ["-std=c11", "-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Werror"]
CORTEX_M7 = ["-mcpu=cortex-m7", "-mthumb", "-mfpu=fpv5-d16", "-mfloat-abi=hard"]
RUNTIME = resource_dir("runtime_c")
SOURCES = [str(RUNTIME / "src" / f"mcg_nn_{n}.c") for n in ("matmul", "depthwise", "dense", "elementwise", "winograd")]
HostOp = QConv | QDepthwise | QDense


def out_shape(op: HostOp) -> tuple[int, ...]:
    return (len(op.weight),) if isinstance(op, QDense) else op.out_physical


def in_shape(op: HostOp) -> tuple[int, ...]:
    return (op.weight.shape[1],) if isinstance(op, QDense) else op.in_physical


@dataclass(frozen=True)
class Host:
    """A runner built by one compiler with one set of flags."""

    program: Path

    @classmethod
    def build(cls, folder: Path, compiler: str, *flags: str) -> Host:
        program = folder / "runner"
        source = Path(__file__).with_name("kernel_runner.c")
        command = [compiler, "-O2", "-g", *WARNINGS, *flags, f"-I{RUNTIME / 'include'}", str(source), *SOURCES]
        subprocess.run([*command, "-o", str(program)], check=True)
        return cls(program)

    def run(self, op: HostOp, x: np.ndarray, shift: int = 0, lag: int = -1) -> tuple[np.ndarray, int]:
        """Output, and how many bytes of the scratch were used. ``lag``: the output starts so many bytes before the
        input, in one buffer."""
        stream, d = op.stream(), op.descriptor()
        count = int(np.prod(out_shape(op)))
        head = [
            FUNCTIONS.index(op.function(stream)),
            d.nbytes,
            stream.words.size,
            op.scratch_bytes,
            x.size,
            count,
            shift,
            lag,
        ]
        data = np.array(head, "<i4").tobytes() + d.tobytes() + stream.words.tobytes() + x.tobytes()
        done = subprocess.run([str(self.program)], input=data, capture_output=True, check=False)
        assert done.returncode == 0, (done.returncode, done.stderr.decode()[-2000:])
        y = np.frombuffer(done.stdout[: 2 * count], np.int8).reshape(2, *out_shape(op))
        assert (y[0] == y[1]).all(), "the two passes differ"
        return y[1], int(np.frombuffer(done.stdout[2 * count :], "<u4")[0])


class Board:
    """The kernels, cross-compiled, under unicorn; counts instructions by blocks."""

    FLASH, RAM, STOP = 0x0800_0000, 0x2000_0000, 0x0FFF_0000

    def __init__(self, elf: Path) -> None:
        import capstone  # noqa: PLC0415
        import unicorn  # noqa: PLC0415
        from elftools.elf.elffile import ELFFile  # noqa: PLC0415
        from unicorn import arm_const as arm  # noqa: PLC0415

        self._arm = arm
        u = self._u = unicorn.Uc(unicorn.UC_ARCH_ARM, unicorn.UC_MODE_THUMB)
        u.ctl_set_cpu_model(arm.UC_CPU_ARM_MAX)
        # Compilers keep integers in FPU registers too.
        u.reg_write(arm.UC_ARM_REG_C1_C0_2, u.reg_read(arm.UC_ARM_REG_C1_C0_2) | 0xF << 20)
        u.reg_write(arm.UC_ARM_REG_FPEXC, 1 << 30)
        u.mem_map(self.FLASH, 1 << 20, unicorn.UC_PROT_READ | unicorn.UC_PROT_EXEC)
        u.mem_map(self.RAM, 8 << 20)
        u.mem_map(self.STOP, 4096)
        u.mem_write(self.STOP, b"\x00\xbf" * 8)
        with elf.open("rb") as f:
            image = ELFFile(f)
            for segment in image.iter_segments():
                if segment["p_type"] == "PT_LOAD" and segment["p_filesz"]:
                    u.mem_write(segment["p_vaddr"], segment.data())
            table = image.get_section_by_name(".symtab")
            symbols = {s.name: s for s in table.iter_symbols()}
            self.address = {n: symbols[n]["st_value"] & ~1 for n in FUNCTIONS}
            self.size = {n: s["st_size"] for n, s in symbols.items() if s["st_info"]["type"] == "STT_FUNC"}
        self._decoder = capstone.Cs(capstone.CS_ARCH_ARM, capstone.CS_MODE_THUMB | capstone.CS_MODE_MCLASS)
        self._lengths: dict[tuple[int, int], int] = {}
        self._blocks: Counter[tuple[int, int]] = Counter()
        u.hook_add(unicorn.UC_HOOK_BLOCK, lambda _u, a, n, _d: self._blocks.update(((a, n),)))

    @classmethod
    def build(cls, folder: Path, compiler: str = "arm-none-eabi-gcc", *flags: str) -> Board:
        elf = folder / "kernels.elf"
        script = folder / "kernels.ld"
        script.write_text("SECTIONS { . = 0x08000000; .text : { KEEP(*(.text*)) *(.rodata*) } }\n", encoding="utf-8")
        options = [*CORTEX_M7, *WARNINGS, *(flags or ("-O2",)), "-ffreestanding", f"-I{RUNTIME / 'include'}"]
        objects = []
        for source in SOURCES:
            objects.append(str(folder / f"{Path(source).stem}.o"))
            subprocess.run([compiler, *options, "-c", source, "-o", objects[-1]], check=True)
        link = ["-nostdlib", "-Wl,-e,0", "-Wl,--build-id=none", f"-Wl,-T,{script}"]
        subprocess.run(["arm-none-eabi-gcc", *CORTEX_M7, *objects, *link, "-lgcc", "-o", str(elf)], check=True)
        return cls(elf)

    def run(self, op: HostOp, x: np.ndarray, shift: int = 0) -> tuple[np.ndarray, int]:
        """Output and instructions. Canaries lie round the scratch and behind the output."""
        u, arm, stream, d = self._u, self._arm, op.stream(), op.descriptor()
        count, guard = int(np.prod(out_shape(op))), b"\xa5" * 64
        where, at = [], self.RAM
        parts = (d.tobytes(), stream.words.tobytes(), b"\xc3" * op.scratch_bytes, x.tobytes(), b"\x11" * count)
        for i, data in enumerate(parts):
            start = at + 64 + (shift if i >= 3 else 0)
            u.mem_write(start - 64, guard + data + guard)
            where.append(start)
            at = (start + len(data) + 64 + 15) & ~15
        top = self.RAM + (8 << 20) - 64
        u.reg_write(arm.UC_ARM_REG_SP, top)
        u.reg_write(arm.UC_ARM_REG_LR, self.STOP | 1)
        for register, value in zip(range(arm.UC_ARM_REG_R0, arm.UC_ARM_REG_R0 + 4), where, strict=False):
            u.reg_write(register, value)
        u.mem_write(top, where[4].to_bytes(4, "little"))
        self._blocks.clear()
        u.emu_start(self.address[op.function(stream)] | 1, self.STOP)
        for start, data in zip(where, parts, strict=True):
            assert bytes(u.mem_read(start - 64, 64)) == guard, "written before a buffer"
            assert bytes(u.mem_read(start + len(data), 64)) == guard, "written behind a buffer"
        y = np.frombuffer(bytes(u.mem_read(where[4], count)), np.int8).reshape(out_shape(op))
        return y, sum(n * self._length(k) for k, n in self._blocks.items() if k[0] != self.STOP)

    def _length(self, block: tuple[int, int]) -> int:
        if block not in self._lengths:
            code = bytes(self._u.mem_read(*block))
            decoded = list(self._decoder.disasm_lite(code, block[0]))
            assert sum(size for _, size, _, _ in decoded) == block[1]
            self._lengths[block] = len(decoded)
        return self._lengths[block]


SANITIZE = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all")


@cache
def host(compiler: str, *flags: str) -> Host:
    return Host.build(_folder(), compiler, *flags)


@cache
def board(compiler: str = "arm-none-eabi-gcc", *flags: str) -> Board:
    return Board.build(_folder(), compiler, *flags)


def hosts() -> dict[str, Host]:
    """Each host build that this machine can make."""
    builds = {"gcc": ("gcc",), "clang": ("clang",), "plain": ("gcc", "-DMCG_PLAIN"), "sanitized": ("gcc", *SANITIZE)}
    return {name: host(*b) for name, b in builds.items() if shutil.which(b[0])}


def _folder() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="mcg-kernels-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder
