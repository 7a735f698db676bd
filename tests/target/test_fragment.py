"""The fragment, linked for real with base scripts like those in the wild, and the start-up that belongs to it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import target_image as ti

from mcugen.core.op import Item
from mcugen.resources import resource_dir
from mcugen.target.board import load_board
from mcugen.target.fragment import FragmentNames, fragment_text
from mcugen.target.placement import place
from mcugen.target.plan import Plan

BOARD = load_board("stm32h743")
SCRIPTS = ["cubeide.ld", "cubemx_cmake.ld", "one_ram.ld"]
NOISE = re.compile(r".*(redeclaration of memory region|RWX permissions).*\n?")

needs_gcc = pytest.mark.skipif(not ti.have_cross_compiler(), reason="no arm-none-eabi-gcc")


def model(tables: int, functions: int) -> list[Item]:
    kinds = ["uint32_t", "uint16_t", "uint8_t"]
    # 5 elements: sizes that are no multiple of 4 for the narrow types.
    items = [ti.table(f"m_t{i}", 5 + i, 1000.0, kinds[i % 3]) for i in range(tables)]
    return items + [ti.code(f"m_f{i}") for i in range(functions)]


@pytest.fixture
def fragment(tmp_path: Path) -> Path:
    path = tmp_path / "mcugen.ld"
    path.write_text(fragment_text(BOARD))
    return path


def build(tmp_path: Path, plan: Plan, script: str, fragment: Path | None, call_init: bool = True) -> ti.Image:
    done = ti.link(tmp_path, ti.c_text(plan, call_init), BOARD, script, fragment)
    assert done.returncode == 0, done.stderr
    assert NOISE.sub("", done.stderr) == ""
    return ti.Image(tmp_path / "image.elf")


def expected_sum(items: list[Item]) -> int:
    return sum(int(i.data.sum()) for i in items if i.data is not None)


def test_the_fragment_in_the_repository_is_what_the_generator_writes() -> None:
    assert (resource_dir("linker") / "mcugen.ld").read_text() == fragment_text(BOARD)


def test_the_flash_can_have_another_name() -> None:
    text = fragment_text(BOARD, FragmentNames("ROM"))
    assert "ROM : ORIGIN = 0x08000000" in text
    assert "AT> ROM" in text
    assert not re.search(r"\bFLASH\b", text)


@needs_gcc
@pytest.mark.parametrize("script", SCRIPTS)
@pytest.mark.parametrize("count", [0, 1, 9])
def test_boots_with_none_one_and_many(script: str, count: int, tmp_path: Path, fragment: Path) -> None:
    items = model(count, count)
    plan = place(items, BOARD)
    assert all(a.region in {"dtcm", "itcm"} for a in plan.assignments)
    image = build(tmp_path, plan, script, fragment)
    machine = ti.Machine(image, BOARD)
    assert machine.words("outcome", 3) == [expected_sum(items), count, 7]
    for i in items:
        if i.role == "code":
            assert 8 <= image.symbols[i.symbol] & ~1 < 0x1_0000
            assert 0x0800_0000 < image.load_address(image.symbols[i.symbol] & ~1) < 0x0820_0000
        else:
            copy = image.symbols[f"{i.symbol}_copy"]
            assert copy >= 0x2000_0000
            assert copy + i.size <= 0x2002_0000
            assert 0x0800_0000 < image.symbols[f"{i.symbol}_image"] < 0x0820_0000
            assert machine.words(f"{i.symbol}_active", 1) == [copy]
            assert machine.read(copy, i.size) == machine.read(image.symbols[f"{i.symbol}_image"], i.size)
    if count:
        copies = (image.symbols["__start_mcg_table_copies"], image.symbols["__stop_mcg_table_copies"])
        assert copies[1] - copies[0] == 16 * count
        assert 0x0800_0000 < copies[0] < 0x0820_0000
        assert image.sections[".mcugen_dtcm"][2] == "SHT_NOBITS"
        size = image.symbols["__mcg_itcm_end"] - image.symbols["__mcg_itcm_start"]
        code = machine.read(image.symbols["__mcg_itcm_start"], size)
        assert code == machine.read(image.symbols["__mcg_itcm_load"], size)
    assert machine.read(0, 8) == ti.POISON * 8


@needs_gcc
@pytest.mark.parametrize("script", SCRIPTS)
def test_without_the_fragment_the_program_is_right(script: str, tmp_path: Path) -> None:
    items = model(4, 2)
    plan = place(items, BOARD)
    for call_init in (True, False):
        image = build(tmp_path, plan, script, None, call_init)
        machine = ti.Machine(image, BOARD)
        assert machine.words("outcome", 3) == [expected_sum(items), 2, 7]
        assert image.symbols["m_f0"] >= 0x0800_0000


@needs_gcc
def test_without_the_call_tables_are_read_from_flash(tmp_path: Path, fragment: Path) -> None:
    items = model(3, 0)
    machine = ti.Machine(build(tmp_path, place(items, BOARD), "cubeide.ld", fragment, call_init=False), BOARD)
    assert machine.words("outcome", 1) == [expected_sum(items)]


@needs_gcc
def test_code_that_nobody_copies_does_not_link(tmp_path: Path, fragment: Path) -> None:
    done = ti.link(tmp_path, ti.c_text(place(model(1, 1), BOARD), False), BOARD, "cubeide.ld", fragment)
    assert done.returncode != 0
    assert "call mcg_sections_init() first in main" in done.stderr


@needs_gcc
def test_in_a_shared_dtcm_the_user_keeps_data_heap_and_stack(tmp_path: Path, fragment: Path) -> None:
    image = build(tmp_path, place(model(9, 1), BOARD), "cubemx_cmake.ld", fragment)
    start, end = image.symbols["__mcg_dtcm_start"], image.symbols["__mcg_dtcm_end"]
    assert image.symbols["_sdata"] < image.symbols["_ebss"] <= start < end
    heap = image.sections["._user_heap_stack"]
    assert end <= heap[0]
    assert heap[0] + heap[1] <= image.symbols["_estack"]


@needs_gcc
@pytest.mark.parametrize("script", SCRIPTS)
def test_every_memory_is_zeroed_and_its_clock_runs(script: str, tmp_path: Path, fragment: Path) -> None:
    names = ["dtcm", "axi", "sram1", "sram2", "sram3", "sram4"]
    if script == "one_ram.ld":
        names.remove("axi")  # it has .bss there under another name, and such a link is refused: see below
    items = [ti.arena(f"m_{n}", 100, 1.0) for n in names] + [ti.table("m_moved", 7, 1.0)]
    wishes = {f"m_{n}": n for n in names} | {"m_moved": "sram3"}
    plan = place(items, BOARD, wishes)
    image = build(tmp_path, plan, script, fragment)
    machine = ti.Machine(image, BOARD)
    assert machine.words("outcome", 4) == [sum(range(1, 8)), 0, 7, 0]
    for name in names:
        region = BOARD.region(name)
        assert region is not None
        at = image.symbols[f"m_{name}"]
        assert region.base <= at < region.end
        # The second call must not have zeroed; the words behind the last object are untouched.
        assert machine.read(at, 100) == b"\x01" * 100
        assert machine.read(image.symbols[f"__mcg_{name}_end"], 4) == ti.POISON * 4 or name in {"dtcm", "axi"}
    assert int.from_bytes(machine.read(0x5802_44DC, 4), "little") == 0xE000_0000


@needs_gcc
def test_clocks_stay_off_where_nothing_is_placed(tmp_path: Path, fragment: Path) -> None:
    plan = place([ti.arena("m_a", 64, 1.0)], BOARD, {"m_a": "sram2"})
    machine = ti.Machine(build(tmp_path, plan, "cubeide.ld", fragment), BOARD)
    assert int.from_bytes(machine.read(0x5802_44DC, 4), "little") == 0x4000_0000


def _edited(tmp_path: Path, script: str, *changes: tuple[str, str]) -> str:
    text = (ti.SCRIPTS / script).read_text()
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    path = tmp_path / "edited.ld"
    path.write_text(text)
    return str(path)


BAD_SCRIPTS = {
    "swapped": (
        "cubeide.ld",
        [("0x20000000, LENGTH = 128K", "@"), ("0x24000000", "0x20000000"), ("@", "0x24000000, LENGTH = 128K")],
        "DTCMRAM of the linker script is not dtcm",
    ),
    "flash has another name": ("cubeide.ld", [("FLASH", "ROM")], "does not call its flash FLASH"),
    "bss in DTCM under another name": (
        "cubeide.ld",
        [
            ("DTCMRAM (xrw)", "FREE (xrw)"),
            ("0x20000000", "0x24000000"),
            ("RAM_D1 (xrw) : ORIGIN = 0x24000000", "RAM_D1 (xrw) : ORIGIN = 0x20000000"),
        ],
        ".bss overlaps the objects in dtcm",
    ),
    "data in DTCM under another name": (
        "cubeide.ld",
        [("DTCMRAM", "FAST"), (">RAM_D1 AT> FLASH", ">FAST AT> FLASH")],
        ".data overlaps the objects in dtcm",
    ),
    "no room for the stack": ("one_ram.ld", [("0x20020000", "0x20000200")], "no room for the stack"),
    "too small": ("cubeide.ld", [("0x20000000, LENGTH = 128K", "0x20000000, LENGTH = 32")], "overflowed"),
    "own code in ITCM": ("cubeide.ld", [("LENGTH = 64K\n}", "LENGTH = 8\n}")], "overflowed"),
}


@needs_gcc
@pytest.mark.parametrize("case", BAD_SCRIPTS)
def test_a_script_that_does_not_fit_is_a_link_error(case: str, tmp_path: Path, fragment: Path) -> None:
    script, changes, message = BAD_SCRIPTS[case]
    edited = _edited(tmp_path, script, *changes)
    done = ti.link(tmp_path, ti.c_text(place(model(9, 1), BOARD)), BOARD, edited, fragment)
    assert done.returncode != 0
    assert message in done.stderr


@needs_gcc
def test_an_arena_over_the_users_bss_is_a_link_error(tmp_path: Path, fragment: Path) -> None:
    plan = place([ti.arena("m_a", 64, 1.0)], BOARD, {"m_a": "axi"})
    done = ti.link(tmp_path, ti.c_text(plan), BOARD, "one_ram.ld", fragment)
    assert done.returncode != 0
    assert ".bss overlaps the objects in axi" in done.stderr


@needs_gcc
def test_the_fragment_before_an_empty_model_changes_no_address(tmp_path: Path, fragment: Path) -> None:
    text = ti.c_text(place([], BOARD), call_init=False)
    images = []
    for f in (None, fragment):
        assert ti.link(tmp_path, text, BOARD, "cubeide.ld", f).returncode == 0
        images.append(ti.Image(tmp_path / "image.elf"))
    for name in (".isr_vector", ".text", ".data", ".bss", "._user_heap_stack"):
        assert images[0].sections[name] == images[1].sections[name]


@needs_gcc
def test_link_time_optimization_keeps_the_copy_table(tmp_path: Path, fragment: Path) -> None:
    items = model(3, 1)
    text = ti.c_text(place(items, BOARD))
    assert ti.link(tmp_path, text, BOARD, "cubeide.ld", fragment, ("-flto",)).returncode == 0
    machine = ti.Machine(ti.Image(tmp_path / "image.elf"), BOARD)
    assert machine.words("outcome", 2) == [expected_sum(items), 1]
