"""The commands that look at what is the user's: check-ld and check-elf. Options to calls, findings to exit code 1."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mcugen import build as api
from mcugen.doctor.check_ld import report_lines
from mcugen.doctor.elf_report import elf_lines
from mcugen.terminal import out

checks = typer.Typer()


@checks.command("check-ld")
def check_ld(
    script: Annotated[Path, typer.Argument(help="Your linker script.", show_default=False)],
    board: Annotated[str, typer.Option(help="A board of `mcugen boards`.")] = "stm32h743",
    defsym: Annotated[list[str] | None, typer.Option(metavar="NAME=VALUE", help="As the linker gets it.")] = None,
    folders: Annotated[list[Path] | None, typer.Option("-L", help="Where files are that it includes.")] = None,
    model: Annotated[list[Path] | None, typer.Option(help="An exported folder that must fit.")] = None,
    write: Annotated[Path | None, typer.Option(help="Write a fragment with the names of this script.")] = None,
) -> None:
    """Say by address where a linker script puts mcugen's sections, and what to add; exit 1 if something is wrong."""
    found = api.check_ld(script, board, defsym or (), folders or (), model or (), write)
    for line in report_lines(found, str(write) if write is not None else None):
        out.say(line)
    if not (found.fits if write is None else found.adapted_fits):
        raise typer.Exit(1)


@checks.command("check-elf")
def check_elf(
    program: Annotated[Path, typer.Argument(help="The program that your build linked (.elf).", show_default=False)],
    board: Annotated[str, typer.Option(help="A board of `mcugen boards`.")] = "stm32h743",
    show_map: Annotated[bool, typer.Option("--map", help="Print where each object stands.")] = False,
    model: Annotated[list[Path] | None, typer.Option(help="An exported folder that must be in it.")] = None,
    dma: Annotated[
        list[str] | None, typer.Option(metavar="SYMBOL[=CONTROLLER]", help="A DMA buffer of yours to check.")
    ] = None,
    mpu: Annotated[list[str] | None, typer.Option(metavar="SYMBOL", help="An MPU region of yours to check.")] = None,
) -> None:
    """Prove from a linked program that every object is where the plan has it; exit 1 with one line a finding."""
    found = api.check_elf(program, board, model or (), dma or (), mpu or ())
    for line in elf_lines(found, show_map):
        out.say(line)
    if found.findings:
        raise typer.Exit(1)
