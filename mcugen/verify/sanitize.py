"""A stand-alone program that runs a generated model over a golden file, built with sanitizers.

The program is ``c/runner.c``; what it needs to know of the model is a header of macros written here.
"""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from mcugen.errors import DiffersError, InputError
from mcugen.programs import run_program
from mcugen.verify.compiler import HostCompiler, compile_c

# A float that does not fit its integer is undefined too, but gcc has it in no group.
SANITIZERS = ("-fsanitize=address,undefined,float-cast-overflow", "-fno-sanitize-recover=all")
# -O1 keeps the checks and the line numbers; -O2 and the warnings are the shared library's: with sanitizers gcc
# warns of things that are not there.
RUNNER_FLAGS = ("-std=c11", "-ffp-contract=off", "-O1", "-g", "-fno-omit-frame-pointer")
SANITIZER_EXIT = 99

_C_FILES = ("golden_reader.h", "runner.c")


@dataclass(frozen=True, slots=True)
class RunResult:
    """How the runner ended: 0 equal, 1 a difference, 2 an unusable golden file, else a sanitizer or a crash."""

    returncode: int
    output: str


@contextmanager
def build_runner(
    files: Mapping[str, str | bytes],
    sources: Sequence[str],
    name: str,
    compiler: HostCompiler,
    flags: Sequence[str] = SANITIZERS,
    *,
    stateful: bool = False,
    ports: tuple[int, int] = (1, 1),
    places: tuple[str, ...] = (),
) -> Iterator[Path]:
    """The path of the program, in a temporary folder that goes when the context ends.

    ``files`` and ``sources`` as in ``build_shared``. The self-test runs too if ``NAME_selftest.c`` is among the
    sources, and all vectors run a second time after mcg_sections_init if ``mcugen/mcg_sections.c`` is. InputError if
    the compiler has no such sanitizer, InternalError if it refuses our code. ``ports``: how many inputs and outputs
    the functions have; ``places``: the functions that tell their places in the model's arena, if there are.
    """
    if compiler.kind == "zig" and any(f.startswith("-fsanitize=") and "address" in f for f in flags):
        raise InputError("ziglang", "zig has no address sanitizer", "install gcc or clang for this check")
    every = {**files, **_runner_files(), "runner_config.h": runner_config(sources, name, stateful, ports, places)}
    with tempfile.TemporaryDirectory(prefix="mcugen-") as folder:
        yield compile_c(Path(folder), every, (*sources, "runner.c"), compiler, (*RUNNER_FLAGS, *flags), "runner.out")


def run_golden(program: Path, golden: bytes, timeout: float = 600.0) -> RunResult:
    """Runs the program that ``build_runner`` gave on a golden file; DiffersError if it does not end in time."""
    path = program.parent / "vectors.golden.bin"
    path.write_bytes(golden)
    # The exit code tells a sanitizer's finding from a difference. Leaks: generated code has no malloc, and the
    # leak check fails where ptrace is not allowed.
    options = f"exitcode={SANITIZER_EXIT}:detect_leaks=0:print_stacktrace=1"
    env = {"ASAN_OPTIONS": options, "UBSAN_OPTIONS": options}
    try:
        code, output = run_program([str(program), str(path)], program.parent, timeout, env)
    except subprocess.TimeoutExpired:
        raise DiffersError(program.name, f"the generated C did not end within {timeout:g} s") from None
    return RunResult(code, output)


def runner_config(
    sources: Sequence[str], name: str, stateful: bool, ports: tuple[int, int] = (1, 1), places: tuple[str, ...] = ()
) -> str:
    """The text of runner_config.h: which functions of the model runner.c calls, and their inputs and outputs."""
    inputs, outputs = ports
    pointers = [*(f"(x)[{i}]" for i in range(inputs)), *(f"(y)[{i}]" for i in range(outputs))]
    operands = ", ".join(pointers)
    lines = [f'#include "{name}.h"', f"#define RUNNER_INPUTS {inputs}u", f"#define RUNNER_OUTPUTS {outputs}u"]
    if stateful:
        lines += [
            f"#define RUNNER_STATE {name}_state_t",
            f"#define RUNNER_INIT {name}_init",
            f"#define RUNNER_CALL(x, y) {name}_push(&state, {operands})",
            f"#define RUNNER_NO_STATE(x, y) {name}_push(NULL, {operands})",
        ]
    else:
        lines.append(f"#define RUNNER_CALL(x, y) {name}_run({operands})")
    if places:
        sets = "; ".join(f"{pointer} = {place}()" for pointer, place in zip(pointers, places, strict=True))
        lines.append(f"#define RUNNER_PLACES(x, y) {sets}")
    if f"{name}_selftest.c" in sources:
        lines += [f'#include "{name}_selftest.h"', f"#define RUNNER_SELFTEST {name}_selftest"]
    if "mcugen/mcg_sections.c" in sources:
        lines += ['#include "mcugen/mcg_sections.h"', "#define RUNNER_SECTIONS_INIT mcg_sections_init"]
    return "\n".join(lines) + "\n"


def _runner_files() -> dict[str, str]:
    folder = resources.files("mcugen.verify") / "c"
    return {name: (folder / name).read_text(encoding="utf-8") for name in _C_FILES}
