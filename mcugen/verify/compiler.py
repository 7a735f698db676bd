"""Finds the host's C compiler and runs it in a temporary folder. Not here: what is built, and how it is used."""

from __future__ import annotations

import errno
import importlib.util
import os
import re
import shlex
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from mcugen.errors import InputError, InternalError
from mcugen.programs import is_zig, run_program, version_text, words_of

WARNINGS = ("-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Werror")
# No fused multiply-add: the reference rounds after each operation.
BASE_FLAGS = ("-std=c11", "-ffp-contract=off", *WARNINGS)

_INSTALL = (
    "brew install llvm, or xcode-select --install"
    if sys.platform == "darwin"
    else "install gcc or clang, for example: apt install gcc; or: pip install ziglang"
)
_PROBE = "#include <stdint.h>\n#include <string.h>\nint32_t probe(void);\nint32_t probe(void) { return 0; }\n"
_PROBE_MAIN = _PROBE + "int main(void) { return (int)probe(); }\n"
_FIRST_LINES = (
    re.compile(r"(fatal error|error):", re.IGNORECASE),
    re.compile(r"warning:|undefined reference|undefined symbol|multiple definition", re.IGNORECASE),
)


@dataclass(frozen=True, slots=True)
class HostCompiler:
    """A C compiler of this machine: the words that start it, its kind (gcc, clang or zig), its first version line."""

    argv: tuple[str, ...]
    kind: str
    version: str


def find_host_compiler(explicit: str | None = None) -> HostCompiler:
    """The compiler ``explicit`` (a command with its words), or the first that works of cc, gcc, clang, ziglang.

    InputError, with the command that installs one, if there is none.
    """
    if explicit is not None:
        found = _try_command(words_of(explicit, "host C compiler", _INSTALL))
        if found is None:
            raise InputError(explicit, "this C compiler cannot be started", _INSTALL)
        return found
    for name in ("cc", "gcc", "clang"):
        path = shutil.which(name)
        # A command may stand there and not work: macOS without its developer tools has such a cc.
        found = _try_command((path,)) if path else None
        if found is not None:
            return found
    if importlib.util.find_spec("ziglang") is not None:
        found = _try_command((sys.executable, "-m", "ziglang", "cc"))
        if found is not None:
            return found
    raise InputError("host C compiler", "none of cc, gcc, clang and the ziglang package was found", _INSTALL)


def compile_c(
    folder: Path,
    files: Mapping[str, str | bytes],
    sources: Sequence[str],
    compiler: HostCompiler,
    flags: Sequence[str],
    output: str,
) -> Path:
    """Writes ``files`` (relative POSIX path -> content) into ``folder`` and compiles ``sources`` in one call.

    Returns the path of ``output``. InternalError with the compiler's first complaint if it refuses our code;
    InputError if, with these flags, it cannot build an empty program either, or the disk is full.
    """
    try:
        for name, content in files.items():
            path = folder / _inside(name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content.encode("utf-8") if isinstance(content, str) else content)
    except OSError as e:
        what = f"cannot write the files to compile: {e.strerror or e}"
        raise InputError(str(folder), what, "free some space, or set TMPDIR") from None
    for name in sources:
        if name not in files:
            raise InternalError(name, "a source to compile is not among the files")
    complaint = _run(compiler, flags, [str(_inside(s)) for s in sources], output, folder)
    if complaint is None:
        return folder / output
    if os.strerror(errno.ENOSPC) in complaint:
        raise InputError(str(folder), f"cannot compile: {complaint}", "free some space, or set TMPDIR")
    probe = folder / "mcugen_probe.c"
    probe.write_text(_PROBE if "-shared" in flags else _PROBE_MAIN, encoding="utf-8")
    broken = _run(compiler, flags, [probe.name], "mcugen_probe.out", folder)
    if broken is not None:
        raise InputError(
            shlex.join(compiler.argv), f"this C compiler builds nothing with {_shown(flags)}: {broken}", _INSTALL
        )
    raise InternalError(f"host build ({compiler.kind})", complaint)


def _run(compiler: HostCompiler, flags: Sequence[str], sources: Sequence[str], output: str, folder: Path) -> str | None:
    """None, or the first complaint."""
    argv = [*compiler.argv, *flags, *sources, "-o", output]
    try:
        code, text = run_program(argv, folder)
    except OSError as e:
        return str(e)
    return None if code == 0 else first_complaint(text) or f"exit code {code} without a message"


def first_complaint(text: str) -> str:
    """The first line of a compiler's output that says what is wrong, or its first line."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    for pattern in _FIRST_LINES:
        for line in lines:
            if pattern.search(line):
                return line
    return lines[0] if lines else ""


def _try_command(argv: tuple[str, ...]) -> HostCompiler | None:
    text = version_text(argv)
    if text is None:
        return None
    kind = "zig" if is_zig(argv) else "clang" if "clang" in text else "gcc"
    return HostCompiler(argv, kind, text.splitlines()[0].strip())


def _inside(name: str) -> PurePosixPath:
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or not path.parts:
        raise InternalError(name, "a file of a build leaves its folder")
    return path


def _shown(flags: Sequence[str]) -> str:
    return " ".join(f for f in flags if f not in BASE_FLAGS) or "its flags"
