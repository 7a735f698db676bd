"""The runtime is one library: no function stands in two of its files, and every symbol has the prefix."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from mcugen.resources import resource_dir

RUNTIME = resource_dir("runtime_c")
SOURCES = sorted((RUNTIME / "src").glob("*.c"))
_COMPILERS = {
    "gcc": ("gcc", "nm", []),
    "arm-none-eabi-gcc": (
        "arm-none-eabi-gcc",
        "arm-none-eabi-nm",
        ["-mcpu=cortex-m7", "-mthumb", "-mfpu=fpv5-d16", "-mfloat-abi=hard"],
    ),
}


@pytest.mark.parametrize("compiler", list(_COMPILERS))
def test_no_function_is_defined_twice(compiler: str, tmp_path: Path) -> None:
    """One relocatable object of all files: the linker refuses two definitions; nm shows what it exports."""
    gcc, nm, flags = _COMPILERS[compiler]
    if shutil.which(gcc) is None or shutil.which(nm) is None:
        pytest.skip(f"no {gcc}")
    whole = tmp_path / "runtime.o"
    sources = [str(p) for p in SOURCES]
    objects = []
    for source in sources:
        objects.append(str(tmp_path / f"{Path(source).stem}.o"))
        command = [gcc, *flags, "-std=c11", "-O0", f"-I{RUNTIME / 'include'}", "-c", source, "-o", objects[-1]]
        subprocess.run(command, check=True)
    done = subprocess.run(
        [gcc, *flags, "-r", "-nostdlib", *objects, "-o", str(whole)], capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr.decode()[-2000:]
    lines = subprocess.run([nm, "-g", "--defined-only", str(whole)], capture_output=True, check=True, text=True).stdout
    names = [line.split()[-1] for line in lines.splitlines()]
    assert len(names) > 50
    assert [n for n in names if not n.startswith(("mcg_", "__mcg_"))] == []


def test_text_defines_each_once() -> None:
    """The same by reading: of what a compiler sees only with other macros, too."""
    found: Counter[str] = Counter()
    for source in SOURCES:
        text = source.read_text(encoding="utf-8")
        found.update(set(re.findall(r"^(?!static)[a-z][\w \*]*?\b(mcg_\w+)\([^;{]*\)\s*\{", text, re.MULTILINE)))
    assert len(found) > 50
    assert [name for name, times in found.items() if times > 1] == []
