"""What is known of a board: read from ``boards/NAME/board.toml``, checked, frozen. No board has code in Python."""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from pydantic import ValidationError

from mcugen.errors import InputError
from mcugen.resources import resource_dir
from mcugen.target.schema import BoardFile, MemoryTable, UnicornTable, fields_at

_NAME = re.compile(r"[a-z][a-z0-9_]*")
_LINKER_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True, slots=True)
class Clock:
    """The bits ``mask`` of the 32-bit ``register`` switch a memory on."""

    register: int
    mask: int


@dataclass(frozen=True, slots=True)
class Region:
    """One memory. Addresses and sizes in bytes; ``wait`` and ``fill`` in core cycles, estimates unless TCM.

    ``reserve``: bytes that the automatic placement leaves to the user. ``skip``: bytes at the base that nobody
    may use. ``roles``: what may stand here (``table``, ``code``, ``arena``); ``auto``: what is put here unasked.
    ``home``: where constants and code are unless they move; the image of whatever moves stays there.
    """

    name: str
    base: int
    size: int
    reserve: int
    skip: int
    linker: str
    writable: bool
    executable: bool
    cached: bool
    home: bool
    roles: tuple[str, ...]
    auto: tuple[str, ...]
    wait: float
    fill: float
    dma: tuple[str, ...]
    clock: Clock | None

    @property
    def end(self) -> int:
        """First address behind the memory."""
        return self.base + self.size

    @property
    def usable(self) -> int:
        """Bytes that ``--place`` may use."""
        return self.size - self.skip

    @property
    def available(self) -> int:
        """Bytes that the automatic placement may use."""
        return self.usable - self.reserve


@dataclass(frozen=True, slots=True)
class Core:
    """The processor: clock in Hz, caches and their line in bytes (0: no cache)."""

    name: str
    clock_hz: int
    fpu: str
    instruction_cache: int
    data_cache: int
    cache_line: int


@dataclass(frozen=True, slots=True)
class RamRange:
    """An address range that the emulator treats as plain memory."""

    name: str
    base: int
    size: int


@dataclass(frozen=True, slots=True)
class Unicorn:
    """Settings of the emulated board. ``cpacr``: where start-up code grants access to the FPU."""

    mode: str
    cpu: str
    cpacr: int
    ram: tuple[RamRange, ...]


@dataclass(frozen=True, slots=True)
class Qemu:
    """The QEMU command that runs the board's images; ``install`` is the command that installs it."""

    program: str
    arguments: tuple[str, ...]
    install: str


@dataclass(frozen=True, slots=True)
class ImageSettings:
    """The test image: the memory of .data, .bss and the stack, and the bytes of the stack."""

    data: str
    stack: int


@dataclass(frozen=True, slots=True)
class ProjectSettings:
    """What an IDE project says of the part: its name there, FPU and floating-point ABI, symbols to define."""

    mcu: str
    fpu: str
    float_abi: str
    defines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Board:
    """A part with its memories, in the order of the board file."""

    name: str
    title: str
    regions: tuple[Region, ...]
    core: Core
    flags: tuple[str, ...]
    min_saved_cycles: float
    min_saved_share: float
    dma_controller: str
    unicorn: Unicorn | None
    zig_flags: tuple[str, ...] = ()
    image: ImageSettings | None = None
    qemu: Qemu | None = None
    project: ProjectSettings | None = None

    @property
    def home(self) -> Region:
        """The flash: where constants and code stand unless they move."""
        return next(r for r in self.regions if r.home)

    @property
    def code_regions(self) -> tuple[Region, ...]:
        """RAM that code is copied into."""
        return tuple(r for r in self.regions if r.writable and not r.home and "code" in r.roles)

    def region(self, name: str) -> Region | None:
        """The region with this name, or None."""
        return next((r for r in self.regions if r.name == name), None)


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """A hint: the nearest of the known words, if one is near, and the list of them."""
    names = list(known)
    near = difflib.get_close_matches(word, names, n=1)
    text = f"did you mean {near[0]}? " if near else ""
    return f"{text}known: {', '.join(names) if names else 'none'}"


def list_boards(folder: Path | None = None) -> tuple[Board, ...]:
    """All boards, by name. ``folder``: where the board folders are; that of the installation by default."""
    base = folder or resource_dir("boards")
    return tuple(load_board(n, base) for n in _names(base))


def load_board(name: str, folder: Path | None = None) -> Board:
    """The board of this name. InputError if there is none, or if its file is wrong."""
    base = folder or resource_dir("boards")
    known = _names(base)
    if name not in known:
        raise InputError("--board", f"there is no board {name!r}", did_you_mean(name, known))
    path = base / name / "board.toml"
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as e:
        raise InputError(f"boards/{name}/board.toml", f"cannot be read: {e}") from None
    return parse_board(name, text)


def parse_board(name: str, text: str) -> Board:
    """The board that ``text``, the content of a board.toml, describes. InputError names the key that is wrong."""
    where = f"boards/{name}/board.toml"
    try:
        file = BoardFile.model_validate(tomllib.loads(text))
    except tomllib.TOMLDecodeError as e:
        raise InputError(where, f"not valid TOML: {e}") from None
    except ValidationError as e:
        raise _validation_error(where, e) from None
    _check_regions(where, file)
    return Board(
        name=name,
        title=file.title,
        regions=tuple(_region(key, m) for key, m in file.memory.items()),
        core=Core(**file.core.model_dump()),
        flags=file.compiler.flags,
        min_saved_cycles=file.policy.min_saved_cycles,
        min_saved_share=file.policy.min_saved_share,
        dma_controller=file.policy.dma_controller,
        unicorn=_unicorn(file.emulator.unicorn),
        zig_flags=file.compiler.zig,
        image=ImageSettings(**file.image.model_dump()) if file.image else None,
        qemu=Qemu(**file.emulator.qemu.model_dump()) if file.emulator.qemu else None,
        project=ProjectSettings(**file.project.model_dump()) if file.project else None,
    )


def _names(base: Path) -> list[str]:
    return sorted(p.parent.name for p in base.glob("*/board.toml"))


def _region(name: str, m: MemoryTable) -> Region:
    clock = Clock(m.clock.register_address, m.clock.mask) if m.clock else None
    return Region(name=name, clock=clock, **m.model_dump(exclude={"clock"}))


def _unicorn(table: UnicornTable | None) -> Unicorn | None:
    if table is None:
        return None
    ram = tuple(RamRange(**r.model_dump()) for r in table.ram)
    return Unicorn(ram=ram, **table.model_dump(exclude={"ram"}))


def _validation_error(where: str, error: ValidationError) -> InputError:
    first = error.errors()[0]
    path = tuple(first["loc"])
    key = ".".join(str(p) for p in path)
    if first["type"] == "extra_forbidden":
        hint = did_you_mean(str(path[-1]), fields_at(path[:-1]))
        return InputError(where, f"unknown key {key}", hint)
    if first["type"] == "missing":
        return InputError(where, f"key {key} is missing")
    return InputError(where, f"{key}: {first['msg']}")


def _check_regions(where: str, file: BoardFile) -> None:
    """What one key cannot tell: names, overlaps, one home, roles that the rights of the memory do not allow."""

    def require(ok: bool, what: str) -> None:
        if not ok:
            raise InputError(where, what)

    homes = [k for k, m in file.memory.items() if m.home]
    require(len(homes) == 1, f"exactly one memory must have home = true, not {len(homes)}")
    linker: dict[str, str] = {}
    for key, m in file.memory.items():
        at = f"memory.{key}"
        require(_NAME.fullmatch(key) is not None, f"{at}: a name is lower-case letters, digits and _")
        require(_LINKER_NAME.fullmatch(m.linker) is not None, f"{at}.linker: not a name a linker script can use")
        require(m.linker not in linker, f"{at}.linker: {m.linker} is memory.{linker.get(m.linker)}'s already")
        linker[m.linker] = key
        require(m.skip + m.reserve <= m.size, f"{at}: skip + reserve is more than size")
        require(m.base + m.size <= 1 << 32, f"{at}: ends behind the 32-bit address space")
        require(set(m.auto) <= set(m.roles), f"{at}.auto: holds a role that is not in {at}.roles")
        require(m.executable or "code" not in m.roles, f"{at}.roles: code, but executable = false")
        require(m.writable or "arena" not in m.roles, f"{at}.roles: arena, but writable = false")
        require(m.home or m.writable or not m.roles, f"{at}.roles: only the home memory can be read-only")
        require(not m.home or {"table", "code"} <= set(m.auto), f"{at}.auto: the home needs table and code")
    fast_code = [k for k, m in file.memory.items() if "code" in m.roles and not m.home]
    require(len(fast_code) <= 1, f"code may be copied into one memory only, not into {', '.join(fast_code)}")
    if file.image is not None:
        data = file.memory.get(file.image.data)
        require(data is not None and data.writable, f"image.data: {file.image.data} is not a writable memory")
    require(file.emulator.unicorn is None or file.emulator.qemu is None, "emulator: name one emulator, not two")
    ordered = sorted(file.memory.items(), key=lambda kv: kv[1].base)
    for (a, low), (b, high) in pairwise(ordered):
        require(low.base + low.size <= high.base, f"memory.{a} and memory.{b} overlap")
