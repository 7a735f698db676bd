"""Finds a cross compiler for Cortex-M and runs it in a temporary folder. Not here: what an image is made of."""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
import shutil
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from mcugen.errors import DoesNotFitError, InputError, InternalError
from mcugen.programs import is_zig, run_program, version_text, words_of
from mcugen.target.board import Board

GCC = "arm-none-eabi-gcc"
WARNINGS = ("-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Werror")
#: As most projects for these parts are built: gnu11 lets gcc fuse multiply and add, and the C must stand that.
BASE_FLAGS = ("-std=gnu11", *WARNINGS, "-ffunction-sections", "-fdata-sections", "-fno-common")

#: Hosted: a compiler then knows what memcpy is, as every compiler for users does. zig adds traps for undefined
#: behaviour where it does not optimize, and lld would keep unwind tables.
_ZIG = ("-fhosted", "-fno-sanitize=undefined", "-fno-unwind-tables", "-fno-asynchronous-unwind-tables", "-g0")
_INSTALL = "pip install ziglang; or: apt install gcc-arm-none-eabi libnewlib-arm-none-eabi"
#: Where the vendor's IDE keeps its compiler.
_PLUGIN = "plugins/com.st.stm32cube.ide.mcu.externaltools.gnu-tools-for-stm32.*/tools/bin"
_IDE = (
    ("/opt/st", "stm32cubeide_*/" + _PLUGIN),
    ("~", "st/stm32cubeide_*/" + _PLUGIN),
    ("~", "stm32cubeide*/" + _PLUGIN),
    ("~", "STM32CubeIDE*/" + _PLUGIN),
    ("/Applications", "STM32CubeIDE.app/Contents/Eclipse/" + _PLUGIN),
    ("C:/ST", "STM32CubeIDE_*/STM32CubeIDE/" + _PLUGIN),
)
_COMPLAINTS = (
    re.compile(r"overflowed by|will not fit|mcugen:|undefined reference|undefined symbol|multiple definition"),
    re.compile(r"(fatal error|error):", re.IGNORECASE),
)
_FULL = re.compile(r"will not fit in region|overflowed by \d+ bytes|no room for the stack|or it is full")


@dataclass(frozen=True, slots=True)
class CrossCompiler:
    """A compiler for the board's core: its kind (gcc or zig), the words that start it, its first version line."""

    kind: str
    argv: tuple[str, ...]
    version: str

    def core_flags(self, board: Board) -> tuple[str, ...]:
        """The flags that select the core, in the words of this compiler."""
        if self.kind == "gcc":
            return board.flags
        if not board.zig_flags:
            raise InputError(f"boards/{board.name}/board.toml", "compiler.zig is missing: zig cannot be used")
        return (*board.zig_flags, *_ZIG)


def find_cross_compiler(explicit: str | None = None) -> CrossCompiler:
    """The compiler ``explicit`` (a command with its words, or ``zig`` for the ziglang package), or the first that works
    of arm-none-eabi-gcc on PATH, the one inside STM32CubeIDE, the ziglang package.

    InputError, with the command that installs one, if there is none.
    """
    if explicit is not None:
        found = _zig() if explicit == "zig" else _try(words_of(explicit, "cross compiler", _INSTALL))
        if found is None:
            raise InputError(explicit, "this cross compiler cannot be started", _INSTALL)
        return found
    for path in (shutil.which(GCC), *ide_compilers()):
        found = _try((path,)) if path else None
        if found is not None:
            return found
    found = _zig()
    if found is None:
        raise InputError("cross compiler", f"neither {GCC} nor the ziglang package was found", _INSTALL)
    return found


def ide_compilers(places: Sequence[tuple[str, str]] = _IDE) -> list[str]:
    """The compilers inside installations of STM32CubeIDE, the newest first."""
    found: list[Path] = []
    for base, pattern in places:
        folder = Path(base).expanduser()
        found += [p / n for p in folder.glob(pattern) for n in (GCC, f"{GCC}.exe") if (p / n).is_file()]
    return [str(p) for p in sorted(found, key=_version_key, reverse=True)]


def compile_objects(
    folder: Path, sources: Sequence[str], compiler: CrossCompiler, board: Board, opt: str, includes: Sequence[str] = ()
) -> list[str]:
    """Compiles ``sources``, which are in ``folder``, each to an object; the objects' names. ``includes``: options.

    InternalError with the first complaint if the compiler refuses our code; InputError if it cannot build an empty
    function for this core either.
    """
    objects = [source.replace("/", "_") + ".o" for source in sources]
    common = [*BASE_FLAGS, *compiler.core_flags(board), opt, *includes]

    def build(source: str, target: str) -> str | None:
        return _run(compiler, [*common, "-c", source, "-o", target], folder)

    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:  # the compilers are processes of their own
        complaints = list(pool.map(build, sources, objects))
    for source, complaint in zip(sources, complaints, strict=True):
        if complaint is not None:
            _blame(folder, compiler, board, opt)
            raise InternalError(f"board build ({compiler.kind}), {source}", complaint)
    return objects


def link(
    folder: Path, objects: Sequence[str], compiler: CrossCompiler, board: Board, script: str, fragment: str | None
) -> bytes:
    """The linked program. ``script`` and ``fragment``: names of linker scripts in ``folder``.

    DoesNotFitError where a memory is too small, InternalError with the linker's first complaint otherwise.
    """
    words = [*compiler.core_flags(board), "-nostdlib", "-Wl,--gc-sections"]
    # lld takes one script, which includes the fragment by itself.
    words += [f"-Wl,-T,{fragment}"] if fragment is not None and compiler.kind == "gcc" else []
    words += ["-T", script, *objects, "-o", "image.elf"]
    words += ["-lgcc" if compiler.kind == "gcc" else "-lcompiler_rt"]
    complaint = _run(compiler, words, folder)
    if complaint is None:
        return (folder / "image.elf").read_bytes()
    if _FULL.search(complaint):
        raise DoesNotFitError(f"test image for {board.name}", complaint, "leave room for its stack and data")
    raise InternalError(f"board link ({compiler.kind})", complaint)


def _blame(folder: Path, compiler: CrossCompiler, board: Board, opt: str) -> None:
    """InputError if the compiler is at fault, not our code."""
    (folder / "probe.c").write_text("#include <stdint.h>\nint32_t probe(void);\nint32_t probe(void) { return 0; }\n")
    broken = _run(compiler, [*compiler.core_flags(board), opt, "-c", "probe.c", "-o", "probe.o"], folder)
    if broken is not None:
        raise InputError(shlex.join(compiler.argv), f"builds nothing for {board.core.name}: {broken}", _INSTALL)


def _run(compiler: CrossCompiler, words: Sequence[str], folder: Path) -> str | None:
    """None, or the first complaint."""
    try:
        code, text = run_program([*compiler.argv, *words], folder)
    except OSError as e:
        return str(e)
    if code == 0:
        return None
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    first = next((line for p in _COMPLAINTS for line in lines if p.search(line)), lines[0] if lines else "")
    return first or f"exit code {code} without a message"


def _zig() -> CrossCompiler | None:
    if importlib.util.find_spec("ziglang") is None:
        return None
    return _try((sys.executable, "-m", "ziglang", "cc"))


def _try(argv: tuple[str, ...]) -> CrossCompiler | None:
    text = version_text(argv)
    return None if text is None else CrossCompiler("zig" if is_zig(argv) else "gcc", argv, text.splitlines()[0].strip())


def _version_key(path: Path) -> list[int]:
    return [int(n) for n in re.findall(r"\d+", str(path))]
