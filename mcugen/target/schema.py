"""The schema of board.toml. Shapes and ranges of single keys only; relations are checked in board.py."""

from __future__ import annotations

from types import UnionType
from typing import Annotated, Any, Literal, get_args, get_origin

from pydantic import BaseModel, ConfigDict, Field

Role = Literal["table", "code", "arena"]
Word = Annotated[int, Field(ge=0, lt=1 << 32, multiple_of=4, strict=True)]
Bytes = Annotated[int, Field(ge=0, lt=1 << 32, multiple_of=4, strict=True)]
Flag = Annotated[bool, Field(strict=True)]
Cycles = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Text = Annotated[str, Field(min_length=1, strict=True)]


class Table(BaseModel):
    """A TOML table that accepts no key that it does not know."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class ClockTable(Table):
    """``register`` under a name that does not hide an attribute of its base class."""

    register_address: Word = Field(alias="register")
    mask: Annotated[int, Field(gt=0, lt=1 << 32, strict=True)]


class MemoryTable(Table):
    """One memory; see the comments in boards/stm32h743/board.toml."""

    linker: Text
    base: Word
    size: Annotated[int, Field(gt=0, le=1 << 32, multiple_of=4, strict=True)]
    reserve: Bytes
    skip: Bytes = 0
    writable: Flag
    executable: Flag
    cached: Flag
    home: Flag = False
    roles: tuple[Role, ...]
    auto: tuple[Role, ...]
    wait: Cycles
    fill: Cycles
    dma: tuple[Text, ...]
    clock: ClockTable | None = None


class CoreTable(Table):
    """The processor and its caches."""

    name: Text
    clock_hz: Annotated[int, Field(gt=0, strict=True)]
    fpu: Text
    instruction_cache: Bytes
    data_cache: Bytes
    cache_line: Annotated[int, Field(ge=4, le=256, multiple_of=4, strict=True)]


class CompilerTable(Table):
    """Flags that select the core, for gcc (and clang), and for the same in zig's words."""

    flags: tuple[Text, ...]
    zig: tuple[Text, ...] = ()


class PolicyTable(Table):
    """What the automatic placement aims at."""

    min_saved_cycles: Cycles
    min_saved_share: Annotated[float, Field(ge=0, le=1)]
    dma_controller: Text


class RamTable(Table):
    """A range that the emulator treats as memory; whole pages of 4 KiB."""

    name: Text
    base: Annotated[int, Field(ge=0, lt=1 << 32, multiple_of=4096, strict=True)]
    size: Annotated[int, Field(gt=0, le=1 << 32, multiple_of=4096, strict=True)]


class UnicornTable(Table):
    """Settings of the unicorn emulator."""

    mode: Literal["thumb", "mclass"]
    cpu: Text
    cpacr: Word
    ram: tuple[RamTable, ...] = ()


class QemuTable(Table):
    """The QEMU command that runs the board's images, and how to install it."""

    program: Text
    arguments: tuple[Text, ...]
    install: Text


class EmulatorTable(Table):
    """The emulator that runs the board's images."""

    unicorn: UnicornTable | None = None
    qemu: QemuTable | None = None


class ImageTable(Table):
    """The test image: the memory of .data, .bss and the stack, and the bytes of the stack."""

    data: Text
    stack: Annotated[int, Field(gt=0, lt=1 << 32, multiple_of=8, strict=True)]


class ProjectTable(Table):
    """What an IDE project says of the part: its name there, FPU and floating-point ABI, symbols to define."""

    mcu: Text
    fpu: Text
    float_abi: Literal["hard", "softfp", "soft"]
    defines: tuple[Text, ...] = ()


class BoardFile(Table):
    """The whole file."""

    schema_version: Literal[1] = Field(alias="schema")
    title: Text
    core: CoreTable
    compiler: CompilerTable
    policy: PolicyTable
    memory: Annotated[dict[str, MemoryTable], Field(min_length=1)]
    image: ImageTable | None = None
    project: ProjectTable | None = None
    emulator: EmulatorTable = EmulatorTable()


def fields_at(path: tuple[int | str, ...]) -> list[str]:
    """The keys that the table at ``path`` (as in a validation error) may hold."""
    kind: Any = BoardFile
    for part in path:
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            by_key = {f.alias or n: f.annotation for n, f in kind.model_fields.items()}
            kind = _without_none(by_key.get(str(part)))
        else:  # dict[str, T] and tuple[T, ...]
            kind = next((a for a in get_args(kind) if isinstance(a, type) and issubclass(a, BaseModel)), None)
    if not (isinstance(kind, type) and issubclass(kind, BaseModel)):
        return []
    return [f.alias or n for n, f in kind.model_fields.items()]


def _without_none(kind: Any) -> Any:
    """``T`` for ``T | None``."""
    if get_origin(kind) is UnionType or isinstance(kind, UnionType):
        return next(a for a in get_args(kind) if a is not type(None))
    return kind
