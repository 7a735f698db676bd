"""Runs one machine op on the host (a runner process) and on an emulated Cortex-M7, without a model round it.

``host(...)`` and ``board(...)`` build a rig once a session.
"""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from bare_core import CORTEX_M7, GCC, RUNTIME, WARNINGS, BlockCounter, Core, temporary

from mcugen.nn.ops.qconv import QConv
from mcugen.nn.ops.qdense import QDense
from mcugen.nn.ops.qdepthwise import QDepthwise

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
    """The kernels, cross-compiled, on an emulated core that counts instructions. ``size``: of its functions."""

    def __init__(self, elf: Path) -> None:
        self._core = Core(elf)
        self._counter = BlockCounter(self._core)
        self.size = self._core.size

    @classmethod
    def build(cls, folder: Path, compiler: str = GCC, *flags: str) -> Board:
        elf = folder / "kernels.elf"
        script = folder / "kernels.ld"
        script.write_text("SECTIONS { . = 0x08000000; .text : { KEEP(*(.text*)) *(.rodata*) } }\n", encoding="utf-8")
        options = [*CORTEX_M7, *WARNINGS, *(flags or ("-O2",)), "-ffreestanding", f"-I{RUNTIME / 'include'}"]
        objects = []
        for source in SOURCES:
            objects.append(str(folder / f"{Path(source).stem}.o"))
            subprocess.run([compiler, *options, "-c", source, "-o", objects[-1]], check=True)
        link = ["-nostdlib", "-Wl,-e,0", "-Wl,--build-id=none", f"-Wl,-T,{script}"]
        subprocess.run([GCC, *CORTEX_M7, *objects, *link, "-lgcc", "-o", str(elf)], check=True)
        return cls(elf)

    def run(self, op: HostOp, x: np.ndarray, shift: int = 0) -> tuple[np.ndarray, int]:
        """Output and instructions. Canaries lie round the scratch and behind the output."""
        core, stream, d = self._core, op.stream(), op.descriptor()
        count, guard = int(np.prod(out_shape(op))), b"\xa5" * 64
        where, at = [], core.RAM
        parts = (d.tobytes(), stream.words.tobytes(), b"\xc3" * op.scratch_bytes, x.tobytes(), b"\x11" * count)
        for i, data in enumerate(parts):
            start = at + 64 + (shift if i >= 3 else 0)
            core.write(start - 64, guard + data + guard)
            where.append(start)
            at = (start + len(data) + 64 + 15) & ~15
        self._counter.clear()
        core.call(op.function(stream), *where)
        for start, data in zip(where, parts, strict=True):
            assert core.read(start - 64, 64) == guard, "written before a buffer"
            assert core.read(start + len(data), 64) == guard, "written behind a buffer"
        y = np.frombuffer(core.read(where[4], count), np.int8).reshape(out_shape(op))
        return y, self._counter.total()


SANITIZE = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all")


@cache
def host(compiler: str, *flags: str) -> Host:
    return Host.build(temporary("mcg-kernels-"), compiler, *flags)


@cache
def board(compiler: str = GCC, *flags: str) -> Board:
    return Board.build(temporary("mcg-kernels-"), compiler, *flags)


def hosts() -> dict[str, Host]:
    """Each host build that this machine can make."""
    builds = {"gcc": ("gcc",), "clang": ("clang",), "plain": ("gcc", "-DMCG_PLAIN"), "sanitized": ("gcc", *SANITIZE)}
    return {name: host(*b) for name, b in builds.items() if shutil.which(b[0])}
