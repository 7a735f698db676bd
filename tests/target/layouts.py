"""Linker scripts in the manner of those in the wild, with what each needs: --defsym values, names of symbols."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

SCRIPTS = Path(__file__).parent / "scripts"


@dataclass(frozen=True)
class Layout:
    """``standard``: the fragment of every export fits. ``broken``: memories where it does not, and flash where it does
    not find that. ``names``: what the script calls otherwise than the test's start-up. ``runs``: the emulated board has
    all of its memories."""

    name: str
    standard: bool
    broken: frozenset[str] = frozenset()
    defsym: tuple[str, ...] = ()
    names: Mapping[str, str] = field(default_factory=dict)
    runs: bool = True

    @property
    def path(self) -> Path:
        return SCRIPTS / f"{self.name}.ld"


def _layout(name: str, broken: str = "", **more: object) -> Layout:
    return Layout(name, not broken, frozenset(broken.split()), **more)  # type: ignore[arg-type]


_CHIBIOS = {"_sidata": "__textdata_base__", "_sdata": "__data_base__", "_edata": "__data_end__"}
_CHIBIOS |= {"_sbss": "__bss_base__", "_ebss": "__bss_end__", "_estack": "__main_stack_end__"}
_RUST = {"_sidata": "__sidata", "_sdata": "__sdata", "_edata": "__edata", "_sbss": "__sbss", "_ebss": "__ebss"}
_DUINO = ("LD_FLASH_OFFSET=0x0", "LD_MAX_SIZE=2097152", "LD_MAX_DATA_SIZE=512*1024")

LAYOUTS = (
    _layout("cubeide"),
    _layout("cubeide_ram", "flash axi"),
    _layout("cubemx_615"),
    _layout("cubemx_cmake"),
    _layout("one_ram", "axi"),
    _layout("cubeh7_rom", "flash dtcm"),
    _layout("swapped", "dtcm axi"),
    _layout("swallows"),
    _layout("sdram", runs=False),
    _layout("chibios", "flash dtcm axi", names=_CHIBIOS),
    _layout("betaflight", "itcm dtcm axi sram1"),
    _layout("nuttx", "flash axi sram4", names={"_sidata": "_eronly", "_estack": "0x24080000"}),
    _layout("stm32duino", defsym=_DUINO),
    _layout("micropython", "flash axi"),
    _layout("rust", "dtcm axi", names=_RUST | {"_estack": "_stack_start"}),
    _layout("aliases", "flash itcm dtcm axi", defsym=("BOOT_SIZE=128K",)),
)
