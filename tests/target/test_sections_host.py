"""mcg_sections_init on the host: ELF lists without a linker fragment, in programs and in shared libraries."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from mcugen.resources import resource_dir

RUNTIME = resource_dir("runtime_c")
STRICT = ["-std=c11", "-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Werror", f"-I{RUNTIME / 'include'}"]
COMPILERS = [c for c in ("gcc", "clang") if shutil.which(c)]

TABLES = """
#include "mcg_sections.h"
static const uint16_t a_image[5] MCG_SECTION(".rodata.mcugen.a") = {1, 2, 3, 4, 65535};
static uint16_t a_copy[6] MCG_SECTION(".bss.mcugen.dtcm.a");
static const void *a_active = a_image;
static const mcg_table_copy_t a_entry MCG_TABLE_COPY = {a_image, a_copy, &a_active, 10u};
static const uint8_t b_image[8] = {9, 8, 7, 6, 5, 4, 3, 2};
static uint8_t b_copy[9];
static const void *b_active = b_image;
/* Neither side aligned. */
static const mcg_table_copy_t b_entry MCG_TABLE_COPY = {b_image + 1, b_copy + 1, &b_active, 7u};
"""
CHECK = """
int check(void);
int check(void)
{
    if (a_active != a_image || b_active != b_image) { return 1; }
    a_copy[5] = 77u;
    mcg_sections_init();
    if (a_active != a_copy || b_active != b_copy + 1) { return 2; }
    for (int i = 0; i < 5; i++) { if (a_copy[i] != a_image[i]) { return 3; } }
    for (int i = 1; i < 8; i++) { if (b_copy[i] != b_image[i]) { return 4; } }
    if (a_copy[5] != 77u || b_copy[0] != 0u || b_copy[8] != 0u) { return 5; }
    a_copy[0] = 42u; /* the second call must not copy again under a model that runs */
    mcg_sections_init();
    return a_copy[0] == 42u ? 0 : 6;
}
"""
EMPTY = '#include "mcg_sections.h"\nint check(void);\nint check(void) { mcg_sections_init(); return 0; }\n'
MAIN = "int check(void);\nint main(void) { return check(); }\n"


def compile_host(folder: Path, compiler: str, text: str, *options: str) -> Path:
    (folder / "main.c").write_text(text)
    source = str(RUNTIME / "src" / "mcg_sections.c")
    command = [compiler, *STRICT, *options, "main.c", source, "-o", "out"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder / "out"


needs_elf = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="not an ELF host")


@needs_elf
@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("options", ["-O0", "-O2", "-O2 -fno-pie -no-pie", "-O2 -Wl,--gc-sections -ffunction-sections"])
@pytest.mark.parametrize("text", [TABLES + CHECK, EMPTY], ids=["tables", "empty"])
def test_program(compiler: str, options: str, text: str, tmp_path: Path) -> None:
    program = compile_host(tmp_path, compiler, text + MAIN, *options.split())
    assert subprocess.run([program], check=False).returncode == 0


@needs_elf
@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("text", [TABLES + CHECK, EMPTY], ids=["tables", "empty"])
def test_shared_library(compiler: str, text: str, tmp_path: Path) -> None:
    library = compile_host(tmp_path, compiler, text, "-O2", "-shared", "-fPIC")
    assert ctypes.CDLL(str(library)).check() == 0


@needs_elf
@pytest.mark.parametrize("compiler", COMPILERS)
def test_sanitizers_find_nothing(compiler: str, tmp_path: Path) -> None:
    program = compile_host(
        tmp_path,
        compiler,
        TABLES + CHECK + MAIN,
        "-g",
        "-O1",
        "-fsanitize=address,undefined",
        "-fno-sanitize-recover=all",
    )
    assert subprocess.run([program], check=False).returncode == 0


@pytest.mark.skipif(not shutil.which("clang"), reason="no clang")
@pytest.mark.parametrize("target", ["x86_64-apple-darwin", "armv7m-none-eabi", "riscv32-none-elf"])
def test_compiles_for_other_targets(target: str, tmp_path: Path) -> None:
    source = str(RUNTIME / "src" / "mcg_sections.c")
    command = ["clang", f"--target={target}", "-ffreestanding", "-O2", *STRICT, "-c", source, "-o", "out.o"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
