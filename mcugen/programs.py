"""Programs of this machine that mcugen calls: the words of a command, what it prints, whether it can be started."""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from mcugen.errors import InputError

_VERSION_SECONDS = 60.0


def words_of(command: str, what: str, install: str) -> tuple[str, ...]:
    """The words of a command that a user gave for a ``what``; InputError, with the hint ``install``, if it has none."""
    if Path(command).is_file():  # a path with spaces is one word
        return (str(Path(command).absolute()),)
    try:
        words = tuple(shlex.split(command))
    except ValueError as e:
        raise InputError(command, f"not a command: {e}", install) from None
    if not words:
        raise InputError(what, "the command is empty", install)
    # It runs in another folder, where a relative path is lost; a link is not followed (a venv is one).
    return (str(Path(words[0]).absolute()), *words[1:]) if "/" in words[0] else words


def run_program(
    argv: Sequence[str], cwd: Path | None = None, timeout: float | None = None, env: Mapping[str, str] | None = None
) -> tuple[int, str]:
    """Exit code and output (both streams, in English) of a command; OSError and TimeoutExpired pass through."""
    done = subprocess.run(
        list(argv),
        cwd=cwd,
        env={**os.environ, "LC_ALL": "C", **(env or {})},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=timeout,
        check=False,
    )
    return done.returncode, done.stdout.decode("utf-8", "replace")


def version_text(argv: Sequence[str]) -> str | None:
    """What a command answers to --version; None if it cannot be started, fails, or says nothing."""
    try:
        code, text = run_program([*argv, "--version"], timeout=_VERSION_SECONDS)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return text.strip() or None if code == 0 else None


def is_zig(argv: Sequence[str]) -> bool:
    """Whether the command is zig's C compiler, which calls itself clang."""
    return any("zig" in Path(word).name for word in argv)
