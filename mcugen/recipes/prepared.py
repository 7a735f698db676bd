"""The options of an export, and what a family's recipe gives back: all that emit, verify and report need."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import Any

from mcugen.core.dump import dump_text
from mcugen.core.op import Item
from mcugen.core.types import Array, Model
from mcugen.emit.files import write_note
from mcugen.emit.project import KINDS
from mcugen.emit.selftest import Vectors
from mcugen.errors import InputError
from mcugen.target.arena import ArenaPlan

#: Where inputs and outputs of a net live.
IO = ("arena", "caller")
#: What each option may be, beside what the command line checks itself.
_CHOICES = {
    "input_dtype": ("auto", "float64", "float32", "int32", "int16", "uint16", "int8", "uint8"),
    "output": ("raw", "class", "proba"),
    "optimize": ("balanced", "speed", "size", "ram"),
    "calib_method": ("minmax", "percentile", "mse"),
    "leaf": ("int16", "int32", "float32", "float64"),
}


@dataclass(frozen=True, slots=True)
class ExportOptions:
    """What ``mcugen export`` can be told; the defaults are those of the command line.

    ``io``: where inputs and outputs of a net live, ``arena`` (the default) or ``caller``; others have no choice, and
    None. ``explain``: also measure the candidates of a tree model, where a cross compiler is found. ``ways``, such as
    ``lookup+packed``, takes the place of the choice that ``optimize`` makes for trees: for measurements and tests,
    and not on the command line.
    """

    name: str | None = None
    board: str | None = "stm32h743"
    spec: Path | None = None
    input_dtype: str = "auto"
    float32: bool = False
    stream: bool = False
    output: str = "raw"
    calib: Path | None = None
    optimize: str = "balanced"
    max_ram: int | None = None
    max_flash: int | None = None
    io: str | None = None
    leaf: str = "int16"
    max_error: float | None = None
    place: Mapping[str, str] = field(default_factory=dict)
    calib_method: str = "minmax"
    int16: tuple[str, ...] = ()
    shapes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    num_iteration: int | None = None
    start_iteration: int = 0
    dump_ir: Path | None = None
    verify: bool = True
    force: bool = False
    check: bool = False
    compiler: str | None = None
    project: str | None = None
    explain: bool = False
    ways: str = ""

    def with_paths(self) -> ExportOptions:
        """The same with paths where Python callers gave strings."""
        spec, calib, dump_ir = (None if v is None else Path(v) for v in (self.spec, self.calib, self.dump_ir))
        return replace(self, spec=spec, calib=calib, dump_ir=dump_ir)

    def validate(self) -> None:
        """InputError for a value that no export can have."""
        for name, choices in _CHOICES.items():
            value = getattr(self, name)
            if value not in choices:
                raise InputError(
                    f"--{name.replace('_', '-')}", f"{value!r} is not known", f"known: {', '.join(choices)}"
                )
        if self.io not in (None, *IO):
            raise InputError("--io", f"{self.io!r} is not known", f"known: {', '.join(IO)}")
        if self.project is not None and self.project not in KINDS:
            raise InputError("--project", f"{self.project!r} is not known", f"known: {', '.join(KINDS)}")
        for option, limit in (("--max-ram", self.max_ram), ("--max-flash", self.max_flash)):
            if limit is not None and limit < 0:
                raise InputError(option, f"{limit} bytes", "give a number from 0 on")
        if self.max_error is not None and not self.max_error >= 0:
            raise InputError("--max-error", f"{self.max_error:g} is no limit", "give a number from 0 on")


@dataclass(frozen=True, slots=True, eq=False)
class Prepared:
    """A model that is ready to be placed, written and proven.

    ``x``, ``y``, ``trace``: inputs, outputs and leaves that the C must repeat. ``golden``: the few that travel with
    the export. ``stored``: the references as a file. ``proof`` and ``coverage``: the family's own account of them.
    ``verification`` and ``recorded``: entries of the manifest. ``spend_ram``: tables may move to RAM unasked;
    ``move_kernels``: functions of the runtime may. For people: ``title``, ``facts`` as (label, text), ``details``
    that --explain prints, and ``against``: what the C is compared with.

    A model with state: the rows of ``x`` are the pushes of one run from a fresh state, ``status`` (N,) what each push
    returns, ``y`` zeros where no result is due (``core.stream.respond`` gives both), ``golden`` the first of them.
    ``about``: lines of the header on what a sample and a result mean. ``buffers``: memory that DMA fills.
    """

    machine: Model
    arena: ArenaPlan | None
    x: Array
    y: Array
    trace: Array | None
    golden: Vectors
    stored: bytes
    proof: Any
    coverage: Any
    verification: dict[str, Any]
    recorded: dict[str, Any]
    spend_ram: bool
    title: str
    facts: tuple[tuple[str, str], ...]
    details: tuple[str, ...] = ()
    against: str = "integer reference"
    status: Array | None = None
    about: tuple[str, ...] = ()
    buffers: tuple[Item, ...] = ()
    move_kernels: bool = True


def dumper(folder: Path | None) -> Callable[[str, Model], None]:
    """Writes the model after each pass, if asked to: what was reached is there when a later pass fails."""
    steps = count()

    def dump(step: str, model: Model) -> None:
        if folder is not None:
            write_note(folder, f"{next(steps):02d}_{step}.txt", dump_text(model, step))

    return dump
