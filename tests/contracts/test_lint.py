"""ruff, mypy --strict and clang-format find nothing. Skipped where a tool is not installed."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
C_FILES = ("runtime_c/**/*.[ch]", "examples/**/*.[ch]", "boards/**/*.[ch]", "mcugen/*/c/**/*.[ch]")
CLANG_FORMAT = "18.1.8"


def run(*command: str) -> None:
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]


def needs(module: str) -> None:
    if importlib.util.find_spec(module) is None:
        pytest.skip(f"{module} is not installed")


def test_ruff_check() -> None:
    needs("ruff")
    run(sys.executable, "-m", "ruff", "check", "--no-cache", "mcugen", "tests", "examples", "benchmarks")


def test_ruff_format() -> None:
    needs("ruff")
    run(sys.executable, "-m", "ruff", "format", "--no-cache", "--check", "mcugen", "tests", "examples", "benchmarks")


def test_mypy() -> None:
    needs("mypy")
    run(sys.executable, "-m", "mypy", "mcugen")


def test_clang_format() -> None:
    tool = shutil.which("clang-format", path=str(Path(sys.executable).parent)) or shutil.which("clang-format")
    if tool is None:
        pytest.skip("clang-format is not installed")
    version = subprocess.run([tool, "--version"], capture_output=True, text=True, check=True).stdout
    if CLANG_FORMAT not in version:
        pytest.skip(f"another clang-format: {version.strip()}")
    files = sorted(str(p) for pattern in C_FILES for p in ROOT.glob(pattern))
    assert len(files) > 10
    run(tool, "--dry-run", "--Werror", *files)


@pytest.mark.parametrize(
    "path",
    [".ci/run", *sorted(str(p.relative_to(ROOT)) for d in ("examples", "tests") for p in ROOT.glob(f"{d}/**/*.sh"))],
)
def test_shell_syntax(path: str) -> None:
    run("sh" if not path.startswith(".ci") else "bash", "-n", str(ROOT / path))
