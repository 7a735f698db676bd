"""The test image: a model, start-up code and a generated linker script, linked for one board.

The script is that of a user: vectors, code and constants in the home memory, .data and .bss in RAM. The fast parts of
the model come from the fragment, included as ``linker/README.md`` says. Not here: running it.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path

import numpy as np

from mcugen.core.ports import Ports, flat_rows, row_layout, rows_from
from mcugen.core.stream import PENDING
from mcugen.core.types import Array
from mcugen.emit.parts import place_functions
from mcugen.emit.sources import sources_of
from mcugen.emulate.elf import Elf, read_elf
from mcugen.emulate.toolchain import CrossCompiler, compile_objects, link
from mcugen.errors import DiffersError, DoesNotFitError, InputError
from mcugen.resources import resource_dir
from mcugen.target.board import Board
from mcugen.target.fragment import fragment_text

#: Path of the fragment in an export.
FRAGMENT = "mcugen/mcugen.ld"
#: Everything that is not of the export stands in a folder of its own.
_OWN = "mcg_image"
#: The folder libc holds headers for compilers that bring none.
_INCLUDES = ("-I.", f"-I{_OWN}", "-idirafter", f"{_OWN}/libc")
#: What RAM holds after power-on here, and y before a call.
UNTOUCHED = 0xA5
_PORT_FILES = ("mcg_image.h", "memory.c", "empty.c")


@dataclass(frozen=True, slots=True, eq=False)
class BoardModel:
    """The C of a model and how it is called: its ``inputs`` and ``outputs``, whose rows are those of ``core.ports``.

    ``files``: path -> content of an export. ``board``: the board it was placed for, or None. ``regions``: memory by
    symbol, as placed. ``state_bytes``: of a model with state, which is called by NAME_init and NAME_push; rows are then
    the pushes of one run. ``placed``: inputs and outputs have places in the model's arena, too. ``batches``:
    NAME_run_batch may be more than a loop of NAME_run, and gets a proof of its own.
    """

    name: str
    files: Mapping[str, bytes]
    inputs: Ports
    outputs: Ports
    board: str | None = None
    regions: Mapping[str, str] = field(default_factory=dict)
    state_bytes: int = 0
    placed: bool = False
    batches: bool = False

    @property
    def entry(self) -> str:
        """The function that takes a row."""
        return f"{self.name}_push" if self.state_bytes else f"{self.name}_run"


@dataclass(frozen=True, slots=True, eq=False)
class Image:
    """A linked image. ``model_bytes``: what the model adds to each memory (code, tables and the runtime it needs,
    without self-test and stack); ``stack``: bytes that it has. ``batch``: the same program with NAME_run_batch, and
    room for ``rows`` rows; None where it was not asked for, no emulator here calls it, or the rows find no room."""

    elf: Elf
    model_bytes: Mapping[str, int]
    stack: int
    batch: Elf | None = None
    rows: int = 1


def build_image(
    model: BoardModel,
    board: Board,
    compiler: CrossCompiler,
    opt: str = "-O2",
    *,
    stack: int | None = None,
    fragment: bool = True,
    replace: Mapping[str, str] | None = None,
    rows: int = 1,
) -> Image:
    """Compiles and links. ``stack``: bytes, the board's by default. ``rows``: above 1, of a second program, which has
    NAME_run_batch too: of a model with one input, one output and no state.

    For tests that plant faults: ``fragment`` False links as a user who forgot it; ``replace``: other contents of files.
    """
    if board.image is None:
        raise InputError(f"boards/{board.name}/board.toml", "has no [image]: no test image can be built")
    stack = board.image.stack if stack is None else stack
    rows = rows if _has_batch(model, board) else 1
    own = _own_files(model, board, compiler, stack, fragment, rows)
    files = {**model.files, **own, **(replace or {})}
    model_sources = sources_of(model.files)
    rest = [f"{_OWN}/{p}" for p in ("startup.c", "port.c", "memory.c")]
    with tempfile.TemporaryDirectory(prefix="mcugen-") as name:
        folder = Path(name)
        for path, content in files.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_bytes(content.encode("utf-8") if isinstance(content, str) else content)
        batch = f"{_OWN}/batch.c"
        sources = [*model_sources, *rest, f"{_OWN}/empty.c", *([batch] if rows > 1 else [])]
        objects = dict(zip(sources, compile_objects(folder, sources, compiler, board, opt, _INCLUDES), strict=True))

        def linked(chosen: list[str]) -> Elf:
            script = f"{_OWN}/image.ld"
            extra = f"{_OWN}/fragment.ld" if fragment else None
            return read_elf(link(folder, [objects[s] for s in chosen], compiler, board, script, extra))

        lean = [s for s in model_sources if s != f"{model.name}_selftest.c"]
        with_model = linked([*lean, *rest]).bytes_by_region(board)
        without = linked([f"{_OWN}/empty.c", *rest]).bytes_by_region(board)
        added = {r: max(n - without[r], 0) for r, n in with_model.items()}
        many = None
        if rows > 1:
            # What was placed with --place may leave no room for rows; the model itself fits.
            with suppress(DoesNotFitError):
                many = linked([*model_sources, rest[0], batch, rest[2]])
        return Image(linked([*model_sources, *rest]), added, stack, many, rows)


def _has_batch(model: BoardModel, board: Board) -> bool:
    """Whether NAME_run_batch takes two arrays of rows, and an emulator can call it."""
    one = len(model.inputs) == len(model.outputs) == 1
    return one and not model.state_bytes and board.unicorn is not None


def _own_files(
    model: BoardModel, board: Board, compiler: CrossCompiler, stack: int, fragment: bool, rows: int
) -> dict[str, str | bytes]:
    """What the image adds to the export, by path."""
    c_files = resources.files("mcugen.emulate") / "c"
    port = "direct.c" if board.unicorn is not None else "semihosting.c"
    startup = resource_dir("boards") / board.name / "startup.c"
    if not startup.is_file():
        raise InputError(f"boards/{board.name}", "has no startup.c: no test image can be built")
    files: dict[str, str | bytes] = {f"{_OWN}/{n}": (c_files / n).read_bytes() for n in _PORT_FILES}
    files[f"{_OWN}/port.c"] = (c_files / port).read_bytes()
    if rows > 1:
        files[f"{_OWN}/batch.c"] = f'#define MCG_IMAGE_ROWS {rows}\n#include "port.c"\n'
    files[f"{_OWN}/startup.c"] = startup.read_bytes()
    files[f"{_OWN}/libc/string.h"] = (c_files / "libc" / "string.h").read_bytes()
    files[f"{_OWN}/mcg_image_config.h"] = config_text(model)
    files[f"{_OWN}/image.ld"] = script_text(board, stack, fragment, compiler.kind == "zig")
    if fragment:
        # A model that was placed for this board brings the fragment that its users take.
        shipped = model.files.get(FRAGMENT) if model.board == board.name else None
        files[f"{_OWN}/fragment.ld"] = shipped if shipped is not None else fragment_text(board)
    return files


def config_text(model: BoardModel) -> str:
    """mcg_image_config.h: which functions of the model the image calls, and with what."""
    name = model.name
    state = f"#define MCG_IMAGE_STATE {name}_state_t\n#define MCG_IMAGE_INIT {name}_init\n"
    sides = ((model.inputs, "x", "const "), (model.outputs, "y", ""))
    parameters = [f"{name}_state_t *state_"] if model.state_bytes else []
    arguments = ["&mcg_image_state"] if model.state_bytes else []
    ignored = ["(void)state_;"] if model.state_bytes else []
    for ports, buffer, const in sides:
        for p, at in zip(ports, row_layout(ports)[0], strict=True):
            parameters.append(f"{const}{p.dtype.ctype} *{p.name}")
            arguments.append(f"({const}{p.dtype.ctype} *)({const}void *)(mcg_image_{buffer} + {at})")
            ignored.append(f"(void){p.name};")
    places = _places_text(model) if model.placed else ""
    return (
        f'#include "{name}.h"\n'
        f"#define MCG_IMAGE_RUN {model.entry}\n"
        f"{state if model.state_bytes else ''}"
        f"#define MCG_IMAGE_BATCH {name}_run_batch\n"
        f"#define MCG_IMAGE_SELFTEST {name}_selftest\n"
        f"#define MCG_IMAGE_PARAMETERS {', '.join(parameters)}\n"
        f"#define MCG_IMAGE_ARGUMENTS {', '.join(arguments)}\n"
        f"#define MCG_IMAGE_IGNORE {' '.join(ignored)}\n"
        f"#define MCG_IMAGE_X_ALIGN {max(p.dtype.size for p in model.inputs)}\n"
        f"#define MCG_IMAGE_Y_ALIGN {max(p.dtype.size for p in model.outputs)}\n"
        f"#define MCG_IMAGE_X_BYTES {row_layout(model.inputs)[1]}\n"
        f"#define MCG_IMAGE_Y_BYTES {row_layout(model.outputs)[1]}\n"
        f"{places}"
        f"int32_t {name}_selftest(void) __attribute__((weak));\n"
    )


def _places_text(model: BoardModel) -> str:
    """Macros on the places in the arena: functions that tell them (and stand-ins for these), copies, the call."""
    functions = place_functions(model.name, model.inputs, model.outputs)
    sides = [
        list(zip(f, ports, row_layout(ports)[0], strict=True))
        for f, ports in zip(functions, (model.inputs, model.outputs), strict=True)
    ]
    every = [(f, p) for side in sides for f, p, _ in side]
    stubs = [f"{p.dtype.ctype} *{f}(void) {{ return NULL; }}" for f, p in every]
    copies = [f"copy({f}(), mcg_image_x + {at}, {p.size}u);" for f, p, at in sides[0]]
    results = [f"same({f}(), mcg_image_y + {at}, {p.size}u)" for f, p, at in sides[1]]
    return (
        f"#define MCG_IMAGE_PLACES {', '.join(f'(void *(*)(void)){f}' for f, _ in every)}\n"
        f"#define MCG_IMAGE_PLACE_STUBS {' '.join(stubs)}\n"
        f"#define MCG_IMAGE_FILL_PLACES {' '.join(copies)}\n"
        f"#define MCG_IMAGE_SAME_PLACES ({' && '.join(results)})\n"
        f"#define MCG_IMAGE_PLACED_ARGUMENTS {', '.join(f'{f}()' for f, _ in every)}\n"
    )


def script_text(board: Board, stack: int, fragment: bool, include: bool) -> str:
    """The linker script of the image. Without a fragment it declares the memories, otherwise the fragment does.

    ``include``: it includes the fragment itself, for a linker that takes one script only.
    """
    assert board.image is not None
    copies = "" if fragment else "  mcg_table_copies : { KEEP(*(mcg_table_copies)) . = ALIGN(8); } > @\n"
    home, data = board.home.linker, next(r.linker for r in board.regions if r.name == board.image.data)
    if fragment:
        head = f"INCLUDE {_OWN}/fragment.ld\n" if include else ""
    else:
        lines = [f"  {r.linker} : ORIGIN = {r.base:#010x}, LENGTH = {r.size}\n" for r in board.regions if r.roles]
        head = "MEMORY\n{\n" + "".join(lines) + "}\n"
    return f"""\
{head}ENTRY(Reset_Handler)
SECTIONS
{{
  .isr_vector : {{ KEEP(*(.isr_vector)) . = ALIGN(8); }} > {home}
  .text : {{ *(.text) *(.text.*) . = ALIGN(8); }} > {home}
  .rodata : {{ *(.rodata) *(.rodata.*) . = ALIGN(8); }} > {home}
{copies.replace("@", home)}  .stack (NOLOAD) : ALIGN(8)
  {{
    mcg_image_stack_limit = .;
    . = . + {stack};
    mcg_image_stack_top = .;
  }} > {data}
  .data : ALIGN(8)
  {{
    _sdata = .;
    *(.data) *(.data.*)
    . = ALIGN(8);
    _edata = .;
  }} > {data} AT> {home}
  mcg_image_data_start = _sdata;
  mcg_image_data_end = _edata;
  mcg_image_data_load = LOADADDR(.data);
  .bss (NOLOAD) : ALIGN(8)
  {{
    mcg_image_bss_start = .;
    *(.bss) *(.bss.*) *(COMMON)
    . = ALIGN(8);
    mcg_image_bss_end = .;
  }} > {data}
  /DISCARD/ : {{ *(.ARM.exidx) *(.ARM.exidx.*) *(.ARM.extab) *(.ARM.extab.*) *(.eh_frame) }}
}}
"""


def due_results(raw: bytes, status: Array, model: BoardModel, where: str) -> Array:
    """Rows of results from their bytes, one after the other, with zeros where none was due.

    DiffersError where one was written all the same.
    """
    y = flat_rows(model.outputs, rows_from(model.outputs, raw))
    pending = status == PENDING
    if not pending.any():
        return y
    bytes_of = np.frombuffer(raw, np.uint8).reshape(len(status), -1)
    touched = np.flatnonzero((bytes_of != UNTOUCHED).any(axis=1) & pending)
    if touched.size:
        raise DiffersError(where, f"{model.entry} writes y for row {touched[0]}, though no result is due")
    out = y.copy()
    out[pending] = np.zeros(1, y.dtype)
    return out
