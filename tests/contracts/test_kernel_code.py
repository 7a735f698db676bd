"""Every function of the runtime can be placed: it has its own section, and kernels.toml knows what moves with it."""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
import tomllib
from pathlib import Path
from types import ModuleType

import pytest

from mcugen.emit.kernels import kernels
from mcugen.resources import resource_dir

pytest.importorskip("elftools")
pytestmark = pytest.mark.skipif(shutil.which("arm-none-eabi-gcc") is None, reason="no arm-none-eabi-gcc")

RUNTIME = resource_dir("runtime_c")
SCRIPT = Path(__file__).parents[2] / "benchmarks" / "kernel_code.py"
AGAIN = "run python benchmarks/kernel_code.py"
#: Start-up runs before anything is where it belongs.
START_UP = "mcg_sections.c"


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("kernel_code", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("level", ["-O0", "-O2"])
def test_every_function_has_a_section_of_its_own(level: str, tmp_path: Path) -> None:
    """At -O0 nothing is inlined: a function without MCG_CODE shows. A clone of a compiler stays in its section."""
    flags = ["-mcpu=cortex-m7", "-mthumb", "-mfpu=fpv5-d16", "-mfloat-abi=hard", f"-I{RUNTIME / 'include'}"]
    for source in sorted((RUNTIME / "src").glob("*.c")):
        if source.name == START_UP:
            continue
        target = tmp_path / f"{source.stem}.o"
        command = ["arm-none-eabi-gcc", "-std=c11", level, *flags, "-c", str(source), "-o", str(target)]
        subprocess.run(command, check=True)
        table = subprocess.run(
            ["arm-none-eabi-objdump", "-t", target], check=True, capture_output=True, text=True
        ).stdout
        functions = [line.split() for line in table.splitlines() if re.search(r"\bF \.", line)]
        assert functions, source.name
        for words in functions:
            section, name = words[-3], words[-1]
            assert section == f".text.mcugen.{name.split('.')[0]}", f"{source.name}: {name} needs MCG_CODE"


def test_sections_are_given_by_one_macro() -> None:
    for path in (*sorted((RUNTIME / "src").glob("*.c")), *sorted((RUNTIME / "include").glob("*.h"))):
        if path.name not in ("mcg.h", "mcg_placement.h"):
            assert 'MCG_SECTION(".text' not in path.read_text(encoding="utf-8"), path.name


def test_the_table_is_that_of_the_sources(script: ModuleType, tmp_path: Path) -> None:
    """Names and helpers to the letter; bytes as far as compilers differ."""
    path = tmp_path / "kernels.toml"
    path.write_text(script.kernels_text(), encoding="utf-8")
    fresh = tomllib.loads(path.read_text(encoding="utf-8"))
    assert {s: list(k.helpers) for s, k in kernels().items()} == {s: list(e["helpers"]) for s, e in fresh.items()}, (
        AGAIN
    )
    for symbol, kernel in kernels().items():
        assert kernel.size == pytest.approx(fresh[symbol]["bytes"], rel=0.25, abs=64), f"{symbol}: {AGAIN}"


def test_rare_ways_stay_in_flash() -> None:
    """What serves any weights is not worth the fast memory, unless it is what the model calls."""
    assert "pack_runs_packed" in kernels()["mcg_conv_s8"].helpers
    assert not [h for h in kernels()["mcg_conv_s8"].helpers if "any" in h.split("_")]
    assert "multiply_any_4" in kernels()["mcg_conv_s8_any"].helpers
