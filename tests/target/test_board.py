"""Board files: the H743's numbers, and what a user sees who writes one that is wrong."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import target_image as ti

from mcugen.errors import InputError
from mcugen.resources import resource_dir
from mcugen.target.board import list_boards, load_board, parse_board
from mcugen.target.fragment import fragment_text
from mcugen.target.placement import place

TEXT = (resource_dir("boards") / "stm32h743" / "board.toml").read_text()


def test_memory_map_of_the_h743() -> None:
    board = load_board("stm32h743")
    kib = {r.name: (r.base, r.size // 1024) for r in board.regions}
    assert kib == {
        "flash": (0x0800_0000, 2048),
        "dtcm": (0x2000_0000, 128),
        "axi": (0x2400_0000, 512),
        "sram1": (0x3000_0000, 128),
        "sram2": (0x3002_0000, 128),
        "sram3": (0x3004_0000, 32),
        "sram4": (0x3800_0000, 64),
        "backup": (0x3880_0000, 4),
        "itcm": (0x0000_0000, 64),
    }
    assert board.home.name == "flash"
    dtcm, itcm = board.region("dtcm"), board.region("itcm")
    assert dtcm is not None and "dma1" not in dtcm.dma and not dtcm.cached  # noqa: PT018
    assert itcm is not None and itcm.skip == 8  # noqa: PT018
    clocks = {r.name: r.clock.mask for r in board.regions if r.clock}
    assert clocks == {"sram1": 1 << 29, "sram2": 1 << 30, "sram3": 1 << 31}
    assert {r.clock.register for r in board.regions if r.clock} == {0x5802_44DC}
    assert board.unicorn is not None
    assert [r.name for r in board.unicorn.ram] == ["ppb", "rcc"]


def test_boards_are_listed() -> None:
    assert "stm32h743" in [b.name for b in list_boards()]


@pytest.mark.parametrize("name", ["stm32h734", "", "../boards/stm32h743", "none", "STM32H743", "stm32h743\nx"])
def test_an_unknown_board_names_the_known_ones(name: str) -> None:
    with pytest.raises(InputError) as e:
        load_board(name)
    assert "stm32h743" in str(e.value)
    assert "\n" not in str(e.value)


def test_a_new_board_is_a_new_folder(tmp_path: Path) -> None:
    (tmp_path / "other_mcu").mkdir()
    text = TEXT[: TEXT.index("[memory.flash]")] + _memory("rom", 0x1000, home=True) + _memory("ram", 0x8000_0000)
    (tmp_path / "other_mcu" / "board.toml").write_text(text)
    (board,) = list_boards(tmp_path)
    assert (board.name, board.home.name, board.unicorn) == ("other_mcu", "rom", None)
    plan = place([ti.table("m_t", 100, 1e4), ti.code("m_f"), ti.arena("m_a", 64, 9.0)], board)
    assert [a.region for a in plan.assignments] == ["ram", "rom", "ram"]
    assert ".bss.mcugen.ram.*" in fragment_text(board)
    assert fragment_text(board) == fragment_text(load_board("other_mcu", tmp_path))


def _memory(name: str, base: int, home: bool = False) -> str:
    flag = str(home).lower()
    roles = '["table", "code"]' if home else '["table", "arena"]'
    return (
        f'[memory.{name}]\nlinker = "{name.upper()}"\nbase = {base}\nsize = 65536\nreserve = 0\nhome = {flag}\n'
        f"writable = {str(not home).lower()}\nexecutable = true\ncached = false\nroles = {roles}\nauto = {roles}\n"
        f"wait = {5 if home else 0}\nfill = 0\ndma = []\n"
    )


FAULTS = {
    "unknown top key": ('title = "', 'titel = "x"\ntitle = "', r"unknown key titel \(did you mean title\?"),
    "unknown memory key": ("reserve = 65_536 ", "resreve = 65_536 ", r"memory\.dtcm.*(resreve.*reserve|is missing)"),
    "extra memory key": ("reserve = 65_536 ", "reserv = 1\nreserve = 65_536 ", r"memory\.dtcm\.reserv .*reserve\?"),
    "unknown clock key": ("mask = 0x2000_0000", "mask = 1, bits = 2", r"memory\.sram1\.clock\.bits .*mask"),
    "unknown emulator key": ("cpacr =", "cpcr = 0\ncpacr =", r"emulator\.unicorn\.cpcr .*cpacr\?"),
    "missing": ("clock_hz = 480_000_000", "", r"core\.clock_hz is missing"),
    "text for a number": ("base = 0x2400_0000", 'base = "0x24000000"', r"memory\.axi\.base"),
    "a number for a flag": ("executable = false  # [manual] i", "executable = 0  # i", r"memory\.dtcm\.executable"),
    "negative": ("reserve = 65_536 ", "reserve = -4 ", r"memory\.dtcm\.reserve"),
    "unknown role": ('roles = ["code"]', 'roles = ["data"]', r"memory\.itcm\.roles"),
    "not TOML": ("schema = 1", "schema = = 1", r"not valid TOML"),
    "future schema": ("schema = 1", "schema = 2", r"schema"),
    "overlap": ("base = 0x3002_0000", "base = 0x3001_0000", r"memory\.sram1 and memory\.sram2 overlap"),
    "behind the end": ("base = 0x3880_0000", "base = 0xFFFF_F800", r"memory\.backup: ends behind"),
    "reserve too large": ("reserve = 131_072", "reserve = 524_292", r"memory\.axi: skip \+ reserve"),
    "two homes": ('linker = "RAM_D3"', 'linker = "RAM_D3"\nhome = true', r"exactly one memory"),
    "one linker name twice": ('linker = "RAM_D3"', 'linker = "RAM_D2"', r"RAM_D2 is memory\.sram1's already"),
    "linker name": ('linker = "RAM_D3"', 'linker = "RAM D3"', r"memory\.sram4\.linker"),
    "code in data memory": (
        'roles = ["table", "arena"]\nauto = ["table"',
        'roles = ["table", "arena", "code"]\nauto = ["table"',
        r"dtcm\.roles: code",
    ),
    "auto without role": ('auto = ["code"]', 'auto = ["code", "table"]', r"memory\.itcm\.auto"),
    "NaN": ("wait = 14 ", "wait = nan ", r"memory\.sram1\.wait"),
    "upper-case name": ("[memory.axi]", "[memory.AXI]", r"memory\.AXI: a name"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_faults_name_the_key_on_one_line(fault: str) -> None:
    old, new, pattern = FAULTS[fault]
    assert old in TEXT
    with pytest.raises(InputError) as e:
        parse_board("stm32h743", TEXT.replace(old, new, 1))
    message = str(e.value)
    assert message.startswith("boards/stm32h743/board.toml: ")
    assert re.search(pattern, message), message
    assert "\n" not in message


def test_a_file_that_is_not_text(tmp_path: Path) -> None:
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "board.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match="cannot be read"):
        load_board("bad", tmp_path)
