"""Compilers for the tests of C text."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

FLAGS = ["-std=c11", "-pedantic", "-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Werror"]
HOSTS = [c for c in ("gcc", "clang") if shutil.which(c)]

Run = Callable[[str], bytes]


@pytest.fixture(scope="session")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("c")


@pytest.fixture(scope="session", params=HOSTS or [pytest.param("none", marks=pytest.mark.skip("no C compiler"))])
def run_c(request: pytest.FixtureRequest, work: Path) -> Run:
    """Compiles a C program without a warning, runs it, and gives its standard output."""

    def run(source: str) -> bytes:
        (work / "t.c").write_text(source)
        command = [request.param, *FLAGS, "-O0", "-o", str(work / "t"), str(work / "t.c")]
        built = subprocess.run(command, capture_output=True, text=True, check=False)
        assert built.returncode == 0, built.stderr[:4000]
        return subprocess.run([str(work / "t")], capture_output=True, check=True).stdout

    return run


@pytest.fixture(scope="session")
def compile_c(work: Path) -> Callable[[str], None]:
    """Checks that every compiler at hand, C++ too, accepts a source without a warning."""
    compilers = [[c, *FLAGS] for c in HOSTS]
    compilers += [[c, *FLAGS] for c in ["arm-none-eabi-gcc"] if shutil.which(c)]
    compilers += [["g++", "-x", "c++", "-std=c++17", *FLAGS[1:]]] if shutil.which("g++") else []
    if not compilers:
        pytest.skip("no C compiler")

    def run(source: str) -> None:
        (work / "s.c").write_bytes(source.encode())
        for c in compilers:
            command = [*c, "-fsyntax-only", str(work / "s.c")]
            built = subprocess.run(command, capture_output=True, text=True, check=False)
            assert built.returncode == 0, built.stderr[:4000]

    return run
