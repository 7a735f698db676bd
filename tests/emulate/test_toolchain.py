"""Which cross compiler is found, and what the user reads when none is, or when a package or an emulator is missing."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from board_models import AN500, H743, HAVE_GCC, HAVE_ZIG, board, hand_written

from mcugen.emulate import toolchain
from mcugen.emulate.image import build_image, script_text
from mcugen.emulate.run import run_on_board
from mcugen.emulate.toolchain import CrossCompiler, find_cross_compiler, ide_compilers
from mcugen.errors import InputError, InternalError
from mcugen.resources import resource_dir
from mcugen.target.board import parse_board

COPY = "mcg_status_t tiny_run(const int32_t *x, int32_t *y)\n{ y[0] = x[0]; return MCG_OK; }\n"
ROW = np.zeros((1, 4), np.int32)
needs_gcc = pytest.mark.skipif(not HAVE_GCC, reason="no arm-none-eabi-gcc")
needs_zig = pytest.mark.skipif(not HAVE_ZIG, reason="no ziglang")


def fake_compiler(path: Path, version: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f'#!/bin/sh\necho "arm-none-eabi-gcc (fake) {version}"\n')
    path.chmod(0o755)
    return path


@needs_gcc
def test_gcc_on_the_path_comes_first() -> None:
    found = find_cross_compiler()
    assert found.kind == "gcc"
    assert "arm-none-eabi-gcc" in found.version


@needs_zig
@pytest.mark.parametrize("explicit", ["zig", f"{sys.executable} -m ziglang cc"])
def test_zig_by_name(explicit: str) -> None:
    found = find_cross_compiler(explicit)
    assert found.kind == "zig"
    assert "cortex_m7" in " ".join(found.core_flags(board(H743)))


def test_the_compiler_of_the_ide(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plugin = "plugins/com.st.stm32cube.ide.mcu.externaltools.gnu-tools-for-stm32.{}.linux64_1.0/tools/bin"
    for ide, version in (("stm32cubeide_1.9.0", "10.3"), ("stm32cubeide_1.16.1", "12.3"), ("stm32cubeide_1.2.0", "7")):
        fake_compiler(tmp_path / ide / plugin.format(version) / toolchain.GCC, version)
    (tmp_path / "stm32cubeide_2.0.0" / plugin.format("13")).mkdir(parents=True)  # a folder without the compiler
    places = [(str(tmp_path), pattern) for base, pattern in toolchain._IDE if base == "/opt/st"]
    found = ide_compilers(places)
    assert [Path(p).parts[len(tmp_path.parts)] for p in found] == [
        "stm32cubeide_1.16.1",
        "stm32cubeide_1.9.0",
        "stm32cubeide_1.2.0",
    ]
    monkeypatch.setenv("PATH", "/usr/bin" if not HAVE_GCC else str(tmp_path))
    monkeypatch.setattr(toolchain, "ide_compilers", lambda: found)
    monkeypatch.setattr(toolchain.shutil, "which", lambda name: None)
    assert find_cross_compiler().argv == (found[0],)


def test_no_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(toolchain.shutil, "which", lambda name: None)
    monkeypatch.setattr(toolchain, "ide_compilers", lambda: [])
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(InputError, match=r"neither arm-none-eabi-gcc nor .*\(pip install ziglang; or: apt install"):
        find_cross_compiler()


def test_a_compiler_that_does_not_work_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = tmp_path / toolchain.GCC
    broken.write_text("#!/bin/sh\nexit 1\n")
    broken.chmod(0o755)
    good = fake_compiler(tmp_path / "ide" / toolchain.GCC, "13.2")
    monkeypatch.setattr(toolchain.shutil, "which", lambda name: str(broken))
    monkeypatch.setattr(toolchain, "ide_compilers", lambda: [str(good)])
    assert find_cross_compiler().argv == (str(good),)


@pytest.mark.parametrize("explicit", ["/nowhere/gcc", "no-such-compiler", "", "a 'b", "false"])
def test_an_explicit_compiler_must_work(explicit: str) -> None:
    with pytest.raises(InputError, match="pip install ziglang"):
        find_cross_compiler(explicit)


def test_a_compiler_for_another_core_is_the_users_fault() -> None:
    with pytest.raises(InputError, match=r"builds nothing for cortex-m7: .*"):
        build_image(hand_written(COPY), board(H743), find_cross_compiler("cc"))


def test_our_own_c_that_does_not_compile_is_ours() -> None:
    with pytest.raises(InternalError, match=r"board build \((gcc|zig)\), tiny.c: .*error: "):
        build_image(hand_written("nonsense;\n" + COPY), board(H743), find_cross_compiler())


def test_an_undefined_symbol_is_ours() -> None:
    text = "int32_t absent(void);\n" + COPY.replace("x[0]", "x[0] + absent()")
    with pytest.raises(InternalError, match=r"board link \((gcc|zig)\): .*undefined .*absent"):
        build_image(hand_written(text), board(H743), find_cross_compiler())


def test_zig_needs_its_flags() -> None:
    text = (resource_dir("boards") / H743 / "board.toml").read_text()
    bare = parse_board("bare", "\n".join(line for line in text.splitlines() if not line.startswith("zig =")))
    with pytest.raises(InputError, match=r"boards/bare/board.toml: compiler.zig is missing"):
        CrossCompiler("zig", ("zig",), "").core_flags(bare)


@pytest.mark.parametrize("missing", ["unicorn", "elftools"])
def test_a_missing_package(missing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    original = importlib.import_module

    def import_module(name: str, package: str | None = None) -> ModuleType:
        if name.split(".", maxsplit=1)[0] == missing:
            raise ModuleNotFoundError(f"No module named {name!r}")
        return original(name, package)

    monkeypatch.setattr(importlib, "import_module", import_module)
    with pytest.raises(InputError, match=r"the package .* cannot be imported: .* \(pip install 'mcugen\[board\]'\)"):
        run_on_board(hand_written(COPY), ROW, board(H743), find_cross_compiler())


def test_a_missing_qemu(monkeypatch: pytest.MonkeyPatch) -> None:
    compiler = find_cross_compiler()
    monkeypatch.setattr("mcugen.emulate.qemu.shutil.which", lambda name: None)
    with pytest.raises(InputError, match=r"--target mps2_an500: qemu-system-arm was not found .*apt install"):
        run_on_board(hand_written(COPY), ROW, board(AN500), compiler)


def test_boards_without_image_or_emulator() -> None:
    text = (resource_dir("boards") / H743 / "board.toml").read_text()
    head, _, rest = text.partition("[image]")
    no_image = parse_board("bare", head + rest[rest.index("[emulator.unicorn]") :])
    with pytest.raises(InputError, match=r"boards/bare/board.toml: has no \[image\]"):
        build_image(hand_written(COPY), no_image, find_cross_compiler())
    no_emulator = parse_board("bare", text[: text.index("[emulator.unicorn]")])
    with pytest.raises(InputError, match=r"--target bare: its board.toml names no emulator"):
        run_on_board(hand_written(COPY), ROW, no_emulator, find_cross_compiler())
    with pytest.raises(InputError, match=r"boards/bare: has no startup.c"):
        build_image(hand_written(COPY), no_emulator, find_cross_compiler())


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('data = "dtcm"', 'data = "flash"', r"image.data: flash is not a writable memory"),
        ('data = "dtcm"', 'data = "none"', r"image.data: none is not a writable memory"),
        ("stack = 16_384", "stack = 12", r"image.stack"),
        (
            "[emulator.unicorn]\n",
            '[emulator.qemu]\nprogram = "q"\narguments = []\ninstall = "i"\n[emulator.unicorn]\n',
            r"name one emulator, not two",
        ),
    ],
)
def test_the_board_file_is_checked(old: str, new: str, message: str) -> None:
    text = (resource_dir("boards") / H743 / "board.toml").read_text()
    assert old in text
    with pytest.raises(InputError, match=message):
        parse_board("other", text.replace(old, new))


def test_the_script_declares_memories_only_without_the_fragment() -> None:
    assert "MEMORY" not in script_text(board(H743), 1024, fragment=True, include=False)
    assert script_text(board(H743), 1024, fragment=True, include=True).startswith("INCLUDE ")
    assert "ITCMRAM : ORIGIN = 0x00000000" in script_text(board(H743), 1024, fragment=False, include=True)
