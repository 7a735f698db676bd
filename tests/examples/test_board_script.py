"""examples/board.sh as a user calls it: export, CMake project, and a program that runs on the emulated board."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from example_rig import EXAMPLES, GCC, run

LAST = {"motion": "27 of 28 windows right", "thermo_life": "a step without one: ", "ecg": "65 beats a minute"}
BIN = Path(sys.executable).parent
TOOLS = (GCC, "cmake", "ninja")


@pytest.mark.slow
@pytest.mark.skipif(any(shutil.which(t) is None for t in TOOLS), reason=f"needs {', '.join(TOOLS)}")
@pytest.mark.parametrize("name", list(LAST))
def test_the_script_builds_what_runs(name: str, tmp_path: Path) -> None:
    if not (BIN / "mcugen").is_file():
        pytest.skip("mcugen is not installed as a command")
    shutil.copytree(EXAMPLES, tmp_path / "examples")
    env = os.environ | {"PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}"}
    command = ["sh", str(tmp_path / "examples" / "board.sh"), name]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    elf = tmp_path / "build" / f"{name}_board" / "build" / "Release" / f"{name}_board.elf"
    printed = run(elf, count=True)
    assert printed.startswith("self-test: every bit as in Python\n")
    assert printed.splitlines()[-1].startswith(LAST[name])
