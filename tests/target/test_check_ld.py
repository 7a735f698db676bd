"""check-ld's answer for scripts as they are in the wild, held against what the linker and the emulated board do."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import target_image as ti
from elftools.elf.elffile import ELFFile
from layouts import LAYOUTS, SCRIPTS, Layout
from typer.testing import CliRunner

from mcugen.cli import app
from mcugen.core.op import Item
from mcugen.doctor.check_elf import check_program
from mcugen.doctor.check_ld import LdReport, check_script, report_lines
from mcugen.doctor.ld_script import load_script, parse_script
from mcugen.doctor.program import read_program
from mcugen.emit.plan_note import note_c
from mcugen.errors import InputError
from mcugen.target.board import load_board
from mcugen.target.fragment import fragment_text
from mcugen.target.placement import place
from mcugen.target.plan import Plan

BOARD = load_board("stm32h743")
RAM = ("dtcm", "axi", "sram1", "sram2", "sram3", "sram4")
NOISE = re.compile(r".*(redeclaration of memory region|RWX permissions).*\n?")

needs_gcc = pytest.mark.skipif(not ti.have_cross_compiler(), reason="no arm-none-eabi-gcc")
every_layout = pytest.mark.parametrize("layout", LAYOUTS, ids=lambda layout: layout.name)


def report(layout: Layout) -> LdReport:
    return check_script(load_script(layout.path, (), layout.defsym), BOARD)


def everywhere(memories: set[str]) -> Plan:
    """A table, a function and an arena in each of the memories."""
    items: list[Item] = [ti.table("m_table", 9, 1.0), ti.table("m_odd", 5, 1.0, "uint8_t")]
    wishes = {}
    if "itcm" in memories:
        items.append(ti.code("m_code"))
        wishes["m_code"] = "itcm"
    for name in sorted(memories - {"itcm"}):
        items += [ti.arena(f"m_{name}", 100, 1.0), ti.table(f"m_{name}_table", 7, 1.0)]
        wishes |= {f"m_{name}": name, f"m_{name}_table": name}
    wishes |= {"m_table": "flash", "m_odd": "dtcm" if "dtcm" in memories else "flash"}
    return place(items, BOARD, wishes)


def arenas(memories: set[str]) -> Plan:
    """Working memory in each of the memories, a function in ITCM."""
    names = sorted(memories - {"itcm"})
    items = [ti.arena(f"m_{n}", 100, 1.0) for n in names] + [ti.code("m_code")] * ("itcm" in memories)
    return place(items, BOARD, {f"m_{n}": n for n in names} | ({"m_code": "itcm"} if "itcm" in memories else {}))


def link(tmp_path: Path, layout: Layout, text: str, fragment: str | None) -> tuple[int, str]:
    path = None
    if fragment is not None:
        path = tmp_path / "fragment.ld"
        path.write_text(fragment)
    # The start-up of the test has ST's names; a script that has others defines them under those.
    symbols = (*layout.defsym, *(f"{wanted}={name}" for wanted, name in layout.names.items()))
    options = (*(f"-Wl,--defsym={s}" for s in symbols), f"-L{SCRIPTS}")
    done = ti.link(tmp_path, text, BOARD, str(layout.path), path, options)
    return done.returncode, done.stderr


@every_layout
def test_the_verdict(layout: Layout) -> None:
    found = report(layout)
    flash = {"flash"} if found.flash_problem else set()
    assert {x.region.name for x in found.standard if x.problem} | flash == layout.broken
    assert found.fits is layout.standard
    assert found.adapted_fits
    assert not any(x.problem for x in found.adapted)


@needs_gcc
@every_layout
def test_objects_land_where_it_says_and_the_program_runs(layout: Layout, tmp_path: Path) -> None:
    """With the fragment that it writes, all memories at once: addresses, then a run from RAM full of 0xA5."""
    found = report(layout)
    plan = everywhere({"itcm", *RAM})
    code, messages = link(tmp_path, layout, ti.c_text(plan) + note_c(ti.note_for(plan)), found.adapted_text)
    assert code == 0, messages
    assert NOISE.sub("", messages) == ""
    image = ti.Image(tmp_path / "image.elf")
    for x in found.adapted:
        start, end = image.symbols[f"__mcg_{x.region.name}_start"], image.symbols[f"__mcg_{x.region.name}_end"]
        assert start == x.at if x.exact else start >= x.at, x
        assert start < end <= x.end
        assert image.sections[x.output][0] <= start
    low, high = found.names.load_range(BOARD)
    assert low < image.symbols["__mcg_itcm_load"] < high
    assert low <= image.symbols["m_odd_image"] < high
    assert low <= image.symbols["__start_mcg_table_copies"] < high
    assert overlaps(tmp_path / "image.elf") == []
    assert check_program(read_program(tmp_path / "image.elf"), BOARD).findings == ()
    if layout.runs:
        home = found.script.memory(found.names.flash)
        assert home is not None
        base = image.symbols.get("vectors", home.origin)
        machine = ti.Machine(image, BOARD, base)
        sums = sum(int(a.item.data.sum()) for a in plan.assignments if a.item.data is not None)
        assert machine.words("outcome", 4) == [sums, 1, 7, 0]


@needs_gcc
@every_layout
def test_the_standard_fragment_does_what_it_predicts(layout: Layout, tmp_path: Path) -> None:
    """Where it says fine, the link is fine; where it names a problem, there is no program that may be used."""
    found = report(layout)
    good = {x.region.name for x in found.standard if not x.problem}
    if layout.name == "aliases":  # a second declaration stops every link
        code, messages = link(tmp_path, layout, ti.c_text(everywhere({"sram2"})), fragment_text(BOARD))
        assert code != 0
        assert "redefinition of memory region alias" in messages
        return
    if found.flash_problem:  # all that is copied from flash fails; working memory needs none of it
        for memories in ({"itcm"}, {"sram2"}):
            code, messages = link(tmp_path, layout, ti.c_text(everywhere(memories)), fragment_text(BOARD))
            assert code != 0
            assert "does not call its flash FLASH" in messages
        good -= {"itcm"}
    plan = arenas(good) if found.flash_problem else everywhere(good)
    code, messages = link(tmp_path, layout, ti.c_text(plan), fragment_text(BOARD))
    assert code == 0, messages
    image = ti.Image(tmp_path / "image.elf")
    for x in found.standard:
        if x.region.name in good:
            start = image.symbols[f"__mcg_{x.region.name}_start"]
            assert start == x.at if x.exact else start >= x.at, x
    assert overlaps(tmp_path / "image.elf") == []
    for x in found.standard:
        if x.problem:
            code, _ = link(tmp_path, layout, ti.c_text(arenas({x.region.name})), fragment_text(BOARD))
            shared = code == 0 and overlaps(tmp_path / "image.elf")
            assert code != 0 or shared or may_overlap(x.region.name, layout), x


def may_overlap(region: str, layout: Layout) -> bool:
    """Sections that the test's program leaves empty: with something in them they would share the memory."""
    return (layout.name, region) in {
        ("betaflight", "itcm"),  # .tcm_code
        ("betaflight", "dtcm"),  # .fastram_data
        ("betaflight", "sram1"),  # .DMA_RW_D2
        ("nuttx", "sram4"),  # .sram4_reserve
        ("rust", "axi"),  # .axisram
    }


def overlaps(path: Path) -> list[tuple[str, str]]:
    """Allocated sections with bytes that share addresses. A section of ours with nothing but the marker that
    mcg_sections_init is called holds no bytes: the marker is never read or written."""
    symbols = ti.Image(path).symbols
    with path.open("rb") as f:
        elf = ELFFile(f)
        found = sorted(
            (s["sh_addr"], s["sh_addr"] + s["sh_size"], s.name) for s in elf.iter_sections() if s["sh_flags"] & 2
        )
    empty = {f".mcugen_{n}" for n in RAM if symbols.get(f"__mcg_{n}_start") == symbols.get(f"__mcg_{n}_end")}
    found = [s for s in found if s[1] > s[0] and s[2] not in empty]
    return [(a[2], b[2]) for i, a in enumerate(found) for b in found[i + 1 :] if b[0] < a[1]]


@needs_gcc
def test_an_overlap_that_the_linker_does_not_see(tmp_path: Path) -> None:
    """Betaflight's .fastram_data and a model's tables under two names: the link succeeds, the bytes are shared."""
    layout = next(x for x in LAYOUTS if x.name == "betaflight")
    plan = everywhere({"dtcm"})
    text = ti.c_text(plan)
    text += 'uint32_t users[8] MCG_SECTION(".fastram_data") = {1};\n'
    text = text.replace("outcome[2] =", "users[0]++; outcome[2] =").replace(
        "void finish(void);", "void finish(void);extern uint32_t users[8];", 1
    )
    for fragment, shared in ((fragment_text(BOARD), True), (report(layout).adapted_text, False)):
        code, messages = link(tmp_path, layout, text, fragment)
        assert code == 0, messages
        assert bool(overlaps(tmp_path / "image.elf")) is shared


@needs_gcc
@every_layout
def test_without_the_fragment_sections_go_where_it_says(layout: Layout, tmp_path: Path) -> None:
    found = report(layout)
    code, messages = link(tmp_path, layout, ti.c_text(everywhere({"dtcm", "itcm"})), None)
    assert code == 0, messages
    image = ti.Image(tmp_path / "image.elf")
    for fallback, symbol in zip(found.fallback, ("m_code", "m_odd_image", "m_odd_copy"), strict=True):
        begin, size, _ = image.sections[fallback.output]
        assert begin <= image.symbols[symbol] & ~1 < begin + size, fallback
        memory = found.script.memory(fallback.memory)
        assert memory is not None
        assert memory.origin <= begin < memory.end


BROKEN = {
    "no .bss": ([(".bss :", ".zero :")], "no output section .bss"),
    "too small": ([("0x20000000, LENGTH = 128K", "0x20000000, LENGTH = 0")], "DTCMRAM has length 0"),
    "too large": ([("0x24000000, LENGTH = 512K", "0x24000000, LENGTH = 1M")], "ends at 0x24100000"),
    "fixed address": (
        [
            ("  ._user_heap", "  .mine 0x20000100 : { *(.mine) } >EXTRA\n  ._user_heap"),
            ("  ITCMRAM", "  EXTRA : ORIGIN = 0x20000100, LENGTH = 1K\n  ITCMRAM"),
        ],
        ".mine stands in dtcm too",
    ),
}


@pytest.mark.parametrize("case", BROKEN)
def test_what_is_wrong_is_named(case: str) -> None:
    changes, message = BROKEN[case]
    text = (SCRIPTS / "cubeide.ld").read_text()
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    found = check_script(parse_script(text), BOARD)
    assert [f for f in found.findings if f.wrong and message in f.text]
    assert not found.fits


def test_two_names_swapped_are_told_by_address() -> None:
    """L11 of the cases: RAM_D1 at 0x20000000."""
    text = "\n".join(report_lines(report(next(x for x in LAYOUTS if x.name == "swapped"))))
    assert "DTCMRAM is at 0x24000000, which is axi; dtcm is at 0x20000000" in text
    assert "RAM_D1 is at 0x20000000, which is dtcm; axi is at 0x24000000" in text


def test_a_section_that_another_swallows_is_told() -> None:
    found = report(next(x for x in LAYOUTS if x.name == "swallows"))
    assert [f.where for f in found.findings if ".data* in .data takes it first" in f.text] == [".data_RAM_D2"]


def test_models_that_need_more_than_the_script_gives() -> None:
    script = load_script(SCRIPTS / "cubeide.ld")
    assert check_script(script, BOARD, {"dtcm": 131_064}).fits
    found = check_script(script, BOARD, {"dtcm": 131_065, "flash": 2_097_153})
    assert [f.where for f in found.findings if f.wrong] == [".bss.mcugen.dtcm.*", "FLASH"]


def test_a_script_that_includes_the_fragment(tmp_path: Path) -> None:
    text = (SCRIPTS / "cubeide.ld").read_text() + "INCLUDE mcugen.ld\n"
    (tmp_path / "app.ld").write_text(text)
    (tmp_path / "mcugen.ld").write_text(fragment_text(BOARD))
    found = check_script(load_script(tmp_path / "app.ld"), BOARD)
    assert found.included
    assert "do        link" not in "\n".join(report_lines(found))


def test_a_script_without_memories() -> None:
    text = (
        "SECTIONS { . = 0x08000000; .text : { *(.text*) } . = 0x24000000; .data : { *(.data*) } .bss : { *(.bss*) } }"
    )
    found = check_script(parse_script(text), BOARD)
    assert [f.where for f in found.findings if "ld decides" in f.text] == [".text", ".data", ".bss"]
    assert found.flash_problem
    assert not found.fits


def cli(*words: str) -> tuple[int, str]:
    done = CliRunner().invoke(app, ["check-ld", *words])
    return done.exit_code, done.output


def test_the_command(tmp_path: Path) -> None:
    code, text = cli(str(SCRIPTS / "cubeide.ld"))
    assert code == 0
    assert "do        link with -Wl,-T,mcugen/mcugen.ld" in text
    code, text = cli(str(SCRIPTS / "cubeh7_rom.ld"))
    assert code == 1
    assert "or        in mcugen.ld write ROM for FLASH, RAM for DTCMRAM" in text
    out = tmp_path / "mcugen_app.ld"
    code, text = cli(str(SCRIPTS / "cubeh7_rom.ld"), "--write", str(out))
    assert code == 0
    assert f"-Wl,-T,{out}" in text
    assert "AT> ROM" in out.read_text()
    definitions = [w for d in next(x for x in LAYOUTS if x.name == "stm32duino").defsym for w in ("--defsym", d)]
    assert cli(str(SCRIPTS / "stm32duino.ld"), *definitions)[0] == 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([str(SCRIPTS / "stm32duino.ld")], "LD_FLASH_OFFSET"),
        (["nowhere.ld"], "no such file"),
        ([str(SCRIPTS / "cubeide.ld"), "--defsym", "A"], "is not NAME=VALUE"),
        ([str(SCRIPTS / "cubeide.ld"), "--model", "/nowhere"], "manifest.json"),
        ([str(SCRIPTS / "cubeide.ld"), "--write", str(SCRIPTS / "cubeide.ld")], "the linker script itself"),
        ([str(SCRIPTS / "cubeide.ld"), "--board", "none"], "there is no board"),
    ],
)
def test_wrong_use_is_one_line(words: list[str], message: str) -> None:
    done = CliRunner().invoke(app, ["check-ld", *words])
    assert isinstance(done.exception, InputError)
    assert message in str(done.exception)
