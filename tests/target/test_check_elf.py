"""check-elf: silent about programs that are right, of both compilers; each finding by a change that brings it."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import target_image as ti
from elf_patch import Patch
from typer.testing import CliRunner

import mcugen
from mcugen.cli import app
from mcugen.doctor.check_elf import Buffer, check_program
from mcugen.doctor.program import Program, read_program
from mcugen.emit.parts import ABI
from mcugen.emit.plan_note import note_c, note_in_c, read_notes
from mcugen.emulate.image import build_image
from mcugen.emulate.toolchain import find_cross_compiler
from mcugen.errors import InputError, McugenError
from mcugen.exported import open_folder
from mcugen.target.board import load_board
from mcugen.target.fragment import fragment_text
from mcugen.target.placement import place
from mcugen.target.plan import Plan

BOARD = load_board("stm32h743")
#: What an object file says of itself.
HARD, SOFTFP = (f"abi {ABI} {kind}\0".encode() for kind in ("hard", "softfp"))
needs_gcc = pytest.mark.skipif(not ti.have_cross_compiler(), reason="no arm-none-eabi-gcc")
MODEL = Path(__file__).parents[2] / "examples" / "quickstart" / "furnace.txt"


def plan() -> Plan:
    items = [
        ti.table("m_t0", 9, 1.0),
        ti.table("m_t1", 5, 1.0, "uint16_t"),
        ti.table("m_home", 40, 1.0),
        ti.code("m_f0"),
    ]
    items += [ti.arena("m_dma", 96, 1.0, dma=True), ti.arena("m_axi", 64, 1.0)]
    wishes = {"m_t0": "dtcm", "m_t1": "dtcm", "m_home": "flash", "m_f0": "itcm", "m_dma": "sram1", "m_axi": "axi"}
    return place(items, BOARD, wishes)


USERS = (
    "extern uint8_t _end[]; uint8_t users_dma[64] __attribute__((aligned(64))) = {1}; uint8_t users_odd[40] = {1};\n"
)


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A program in the manner of a CubeIDE project, with buffers of the user's own."""
    folder = tmp_path_factory.mktemp("elf")
    (folder / "mcugen.ld").write_text(fragment_text(BOARD))
    text = ti.c_text(plan()).replace("void finish(void);", "void finish(void);\n" + USERS, 1)
    text = text.replace("outcome[2] =", "users_dma[1]++; users_odd[2] = _end[0]; outcome[2] =") + note_c(
        ti.note_for(plan())
    )
    done = ti.link(folder, text, BOARD, "cubeide.ld", folder / "mcugen.ld")
    assert done.returncode == 0, done.stderr
    return (folder / "image.elf").read_bytes()


def program(data: bytes, tmp_path: Path) -> Program:
    path = tmp_path / "app.elf"
    path.write_bytes(data)
    return read_program(path)


def findings(data: bytes, tmp_path: Path, *buffers: Buffer) -> list[str]:
    return [f.line() for f in check_program(program(data, tmp_path), BOARD, buffers).findings]


@needs_gcc
def test_nothing_is_found_in_a_program_that_is_right(good: bytes, tmp_path: Path) -> None:
    report = check_program(program(good, tmp_path), BOARD, [Buffer("users_dma", "dma1"), Buffer("users_dma", "", True)])
    assert report.findings == ()
    assert {i.symbol for i, _ in report.placed} >= {"m_t0", "m_t1", "m_f0", "m_dma", "m_axi"}
    assert program(good, tmp_path).notes == (ti.note_for(plan()),)


def sram1(p: Patch) -> int:
    return p.value("__mcg_sram1_start")


def entry(p: Patch, n: int, field: int) -> int:
    return p.value("__start_mcg_table_copies") + 16 * n + 4 * field


def plan_with(p: Patch, old: str, new: str) -> Patch:
    text = ti.note_for(plan()).text()
    assert old in text
    return p.contents(".mcugen.plan", text.replace(old, new).encode())


MUTATIONS: dict[str, tuple[Callable[[Patch], Patch], str]] = {
    "table in another memory": (lambda p: p.symbol("m_t0_copy", 0x2400_0100), "in axi (0x24000100), planned in dtcm"),
    "table in no memory": (lambda p: p.symbol("m_t0_copy", 0x1000_0000), "in no memory of the part"),
    "table over the end": (lambda p: p.symbol("m_t0_copy", 0x2001_FFF0), "planned in dtcm"),
    "table in flash": (lambda p: p.symbol("m_t0_copy", 0x0800_1000), "is mcugen.ld part of the link?"),
    "code in flash": (lambda p: p.symbol("m_f0", 0x0800_1001), "m_f0: in flash (0x08001000), planned in itcm"),
    "code in the free bytes": (lambda p: p.symbol("m_f0", 0x5), "the first 8 bytes must stay free"),
    "function at 0": (lambda p: p.symbol("m_f0", 0x1), "m_f0: is at address 0, and so equal to NULL"),
    "object at 0": (lambda p: p.symbol("users_odd", 0), "users_odd: is at address 0"),
    "not aligned": (lambda p: p.symbol("m_t0_copy", p.value("m_t0_copy") + 2), "is not aligned to 4"),
    "image not in flash": (lambda p: p.symbol("m_t0_image", p.value("_sdata") - 0x100), "not in flash"),
    "entry missing": (lambda p: p.memory(entry(p, 0, 0), 0x0800_0000), "is not in the list of copies"),
    "copied elsewhere": (lambda p: p.memory(entry(p, 0, 1), 0x2000_8000), "is copied to 0x20008000"),
    "wrong pointer": (lambda p: p.memory(entry(p, 0, 2), 0x2400_0040), "switches a pointer at 0x24000040, not its own"),
    "wrong size": (lambda p: p.memory(entry(p, 0, 3), 4), "4 bytes are copied, planned"),
    "list empty": (
        lambda p: p.symbol("__stop_mcg_table_copies", p.value("__start_mcg_table_copies")),
        "the list of copies is not in the program",
    ),
    "no start-up": (
        lambda p: p.forget("mcg_sections_init").symbol("__mcg_called_end", p.value("__mcg_called_start")),
        "mcg_sections_init is not in the program",
    ),
    "DMA out of reach": (lambda p: p.symbol("m_dma", 0x2000_8000), "m_dma: dma1 does not reach dtcm"),
    "DMA not aligned": (lambda p: p.symbol("m_dma", sram1(p) + 16), "is not aligned to a cache line (32)"),
    "DMA shares a line": (lambda p: p.symbol("users_odd", sram1(p) + 80), "users_odd shares a cache line"),
    "another ABI": (lambda p: p.contents(".mcugen.abi", HARD + b"abi 7 hard\0"), "was compiled for ABI 7"),
    "float ABIs": (lambda p: p.contents(".mcugen.abi", HARD + SOFTFP), "differ: hard, softfp"),
    "float ABI of the program": (lambda p: p.contents(".mcugen.abi", SOFTFP), "the program is hard"),
    "no FPU": (lambda p: p.contents(".mcugen.abi", SOFTFP.replace(b"softfp", b"soft")), "compiled without the FPU"),
    "another board": (lambda p: plan_with(p, "stm32h743", "mps2_an500"), "was placed for mps2_an500"),
    "plan changed": (lambda p: plan_with(p, "m_t0 table dtcm", "m_t0 table axi"), "planned in axi"),
    "sections overlap": (lambda p: p.section(".bss", p.value("__mcg_axi_start")), "shares 0x24000"),
    "images overlap": (lambda p: p.load(p.value("_sdata"), 0x0800_0004), "two segments are loaded to"),
    "image behind the flash": (lambda p: p.load(p.value("_sdata"), 0x081F_FFFC), "end behind flash"),
    "image nowhere": (lambda p: p.load(p.value("_sdata"), 0x1000_0000), "are loaded to no memory of the part"),
    "code without image": (lambda p: p.load(8, stored=0), "has no load image"),
    "code image too short": (lambda p: p.load(8, stored=16), "its load image is shorter"),
    "code image in RAM": (lambda p: p.load(8, 0x2404_0000), "not to flash"),
    "code from elsewhere": (lambda p: p.symbol("__mcg_code_load", 0x0800_0100), "start-up copies other bytes"),
    "code cut": (lambda p: p.symbol("__mcg_code_end", p.value("__mcg_code_end") - 8), "start-up copies other bytes"),
    "not zeroed": (lambda p: p.symbol("__mcg_zero0_end", p.value("__mcg_zero0_start")), "start-up zeroes other bytes"),
    "odd bytes": (lambda p: p.symbol("__mcg_dtcm_end", p.value("__mcg_dtcm_end") - 2), "whole word"),
    "clock off": (lambda p: p.symbol("__mcg_zero2_clock", 0), "does not switch on the clock of sram1"),
    "stack inside": (lambda p: p.memory(0x0800_0000, p.value("__mcg_dtcm_end")), "the stack"),
    "stack reaches in": (lambda p: p.memory(0x0800_0000, p.value("__mcg_dtcm_end") + 0x200), "reaches into it"),
    "heap inside": (lambda p: p.symbol("_end", p.value("__mcg_axi_start") + 8), "the heap begins inside it"),
    "heap grows into it": (lambda p: p.symbol("_end", p.value("__mcg_axi_start") - 8), "grows from"),
}  # fmt: skip


@needs_gcc
@pytest.mark.parametrize("name", MUTATIONS)
def test_each_finding(name: str, good: bytes, tmp_path: Path) -> None:
    change, message = MUTATIONS[name]
    lines = findings(bytes(change(Patch(good)).data), tmp_path)
    assert any(message in line for line in lines), lines
    assert all("\n" not in line for line in lines)


@needs_gcc
@pytest.mark.parametrize(
    ("buffer", "message"),
    [
        (Buffer("users_odd", "dma1"), "users_odd"),
        (Buffer("users_dma", "bdma"), "bdma does not reach axi"),
        (Buffer("nowhere", "dma1"), "is not in the program"),
        (Buffer("users_odd", "", True), "is a power of two"),
    ],
)
def test_buffers_of_the_user(buffer: Buffer, message: str, good: bytes, tmp_path: Path) -> None:
    assert any(message in line for line in findings(good, tmp_path, buffer))


@needs_gcc
def test_an_mpu_region_that_is_not_aligned_to_its_size(good: bytes, tmp_path: Path) -> None:
    """L14 of the cases, in the program."""
    p = Patch(good)
    p.symbol("users_dma", p.value("users_dma") + 32)
    assert "not a multiple of its size 64" in findings(bytes(p.data), tmp_path, Buffer("users_dma", "", True))[0]


@pytest.fixture(scope="module")
def export(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("export") / "furnace"
    mcugen.export(MODEL, out, verify=False)
    return out


@pytest.mark.parametrize("compiler", ["gcc", "zig"])
def test_a_real_model_of_both_compilers(compiler: str, export: Path, tmp_path: Path) -> None:
    try:
        found = find_cross_compiler("zig" if compiler == "zig" else ti.GCC)
    except McugenError:
        pytest.skip(f"no {compiler}")
    folder = open_folder(export)
    image = build_image(folder.board_model(), BOARD, found)
    elf = tmp_path / "app.elf"
    elf.write_bytes(image.elf.data)
    done = CliRunner().invoke(app, ["check-elf", str(elf), "--map", "--model", str(export)])
    assert done.exit_code == 0, done.output
    assert re.search(r"model     furnace: (\d+) of \1 objects in the program, each in its memory", done.output)
    assert "furnace_words_nodes_copy" in done.output
    # Without the fragment: every object that should be in a TCM is elsewhere, and the program still runs.
    plain = build_image(folder.board_model(), BOARD, found, fragment=False)
    elf.write_bytes(plain.elf.data)
    done = CliRunner().invoke(app, ["check-elf", str(elf)])
    assert done.exit_code == 1
    lines = done.output.splitlines()
    assert all(line.startswith("finding   ") for line in lines)
    assert any("planned in itcm (is mcugen.ld part of the link?)" in line for line in lines)
    other = tmp_path / "other"
    shutil.copytree(export, other)
    text = (other / "furnace.c").read_text()
    (other / "furnace.c").write_text(text.replace('"source ', '"source 0'))
    elf.write_bytes(image.elf.data)
    done = CliRunner().invoke(app, ["check-elf", str(elf), "--model", str(other)])
    assert done.exit_code == 1
    assert "was made from another model file" in done.output


def test_the_note_in_the_c_is_the_note(export: Path) -> None:
    note = note_in_c((export / "furnace.c").read_text())
    assert note is not None
    assert (note.model, note.abi, note.board) == ("furnace", ABI, "stm32h743")
    assert read_notes((note.text() * 2).encode()) == [note, note]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "is not a linked program"),
        (b"\x7fELF" + b"\0" * 100, "is not a linked program"),
        (Path("/bin/sh").read_bytes() if Path("/bin/sh").is_file() else b"x", "is not a"),
    ],
)
def test_files_that_are_no_programs(data: bytes, message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=message):
        program(data, tmp_path)


@needs_gcc
def test_wrong_use_is_one_line(good: bytes, tmp_path: Path) -> None:
    path = tmp_path / "app.elf"
    no_plan = Patch(good).contents(".mcugen.plan", b"")
    path.write_bytes(bytes(no_plan.data))
    done = CliRunner().invoke(app, ["check-elf", str(path)])
    assert "holds no model of mcugen" in str(done.exception)
    path.write_bytes(good)
    for words, message in (
        (["--dma", "x=dma9"], "has no DMA controller"),
        (["--model", "/nowhere"], "manifest.json"),
        (["--board", "nothing"], "there is no board"),
    ):
        done = CliRunner().invoke(app, ["check-elf", str(path), *words])
        assert isinstance(done.exception, InputError)
        assert message in str(done.exception)
    for cut in range(0, len(good), 997):  # a file that ends too early is an error, never a traceback
        path.write_bytes(good[:cut])
        try:
            read_program(path)
        except InputError as e:
            assert "\n" not in str(e)  # noqa: PT017
