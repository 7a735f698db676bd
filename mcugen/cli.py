"""The command line: options to calls, errors to exit codes. No logic of its own."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from io import TextIOWrapper
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from mcugen import build as api
from mcugen import terminal
from mcugen.cli_checks import checks
from mcugen.cli_options import (
    CalibFiles,
    CalibMethod,
    Explain,
    Goal,
    InputDtype,
    InputShapes,
    InputType,
    Int16Layers,
    LeafType,
    MaxError,
    MaxFlash,
    MaxRam,
    Optimize,
    OutFolder,
    Output,
    OutputKind,
    Places,
    PortPlaces,
    Project,
    SpecFiles,
    options_of_each,
    placements_of,
    shapes_of,
    usage_text,
)
from mcugen.errors import InputError, InternalError, McugenError
from mcugen.report.profile import profile_json, profile_lines
from mcugen.report.summary import memory_lines, summary_lines, usage_lines
from mcugen.target.board import list_boards
from mcugen.target.plan import PlanDoesNotFitError
from mcugen.version import VERSION

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    help="Trained models to verified C for microcontrollers, bit for bit as in Python.",
)


_SOURCE = "A LightGBM model.txt, an .onnx file, or the .toml of a signal chain"
Source = Annotated[Path, typer.Argument(help=f"{_SOURCE}.", show_default=False)]
Sources = Annotated[list[Path], typer.Argument(help=f"{_SOURCE}; several share the memories.", show_default=False)]
Folder = Annotated[Path, typer.Argument(help="A folder that mcugen exported.", show_default=False)]
Target = Annotated[str, typer.Option(help="Where to run: host, or a board that an emulator runs.")]
TargetCompiler = Annotated[
    str | None, typer.Option("--cc", help="C compiler for the target; for a board also: zig, the ziglang package.")
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@app.command()
def export(
    sources: Sources,
    out: OutFolder = None,
    name: Annotated[str | None, typer.Option(help="Prefix of all C names; the file's name by default.")] = None,
    board: Annotated[str, typer.Option(help="A board of `mcugen boards`, or none.")] = "stm32h743",
    spec: SpecFiles = None,
    input_dtype: InputDtype = InputType.AUTO,
    float32: Annotated[bool, typer.Option("--float32", help="Nets: float32 instead of int8; needs no data.")] = False,
    stream: Annotated[bool, typer.Option("--stream", help="Nets with LSTM or GRU: one time step a call.")] = False,
    output: OutputKind = Output.RAW,
    calib: CalibFiles = None,
    calib_method: Annotated[CalibMethod, typer.Option(help="Nets: how ranges are chosen.")] = CalibMethod.MINMAX,
    int16: Int16Layers = None,
    shape: InputShapes = None,
    optimize: Goal = Optimize.BALANCED,
    max_ram: MaxRam = None,
    max_flash: MaxFlash = None,
    io: PortPlaces = None,
    leaf: Annotated[LeafType, typer.Option(help="Trees: the type of stored leaves.")] = LeafType.INT16,
    max_error: MaxError = None,
    place: Places = None,
    num_iteration: Annotated[int | None, typer.Option(help="LightGBM: use this many boosting iterations.")] = None,
    start_iteration: Annotated[int, typer.Option(help="LightGBM: begin with this boosting iteration.")] = 0,
    project: Annotated[Project | None, typer.Option(help="Write a whole project around the model.")] = None,
    check: Annotated[bool, typer.Option("--check", help="Write nothing; exit 1 if a file would change.")] = False,
    explain: Explain = False,
    dump_ir: Annotated[Path | None, typer.Option(help="Write the model after each pass into this folder.")] = None,
    no_verify: Annotated[bool, typer.Option("--no-verify", help="Skip the comparison; the files say so.")] = False,
    compiler: Annotated[str | None, typer.Option("--cc", help="Host C compiler for the verification.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite files that were changed by hand.")] = False,
) -> None:
    """Translate a model, prove that the C equals Python, and write the folder."""
    options = api.ExportOptions(
        name=name,
        board=None if board == "none" else board,
        input_dtype=input_dtype.value,
        float32=float32,
        stream=stream,
        output=output.value,
        calib_method=calib_method.value,
        int16=tuple(int16 or ()),
        shapes=shapes_of(shape or []),
        optimize=optimize.value,
        max_ram=max_ram,
        max_flash=max_flash,
        io=io.value if io is not None else None,
        leaf=leaf.value,
        max_error=max_error,
        place=placements_of(place or []),
        num_iteration=num_iteration,
        start_iteration=start_iteration,
        dump_ir=dump_ir,
        verify=not no_verify,
        force=force,
        check=check,
        compiler=compiler,
        project=project.value if project is not None else None,
        explain=explain,
    )
    each = options_of_each([api.model_name(s) for s in sources], options, spec or [], calib or [])
    with terminal.progress_bar(api.EXPORT_STEPS * len(sources)) as progress:
        if len(sources) == 1:
            results: tuple[api.ExportResult, ...] = (api.export(sources[0], out, each[0], progress),)
        else:
            results = api.export_together(sources, out or Path(), each, progress)
    _print_results(results, explain)


@app.command()
def run(
    folder: Folder,
    input_file: Annotated[Path, typer.Option("--input", help="Samples, one a row (npy, npz, csv).")],
    output_file: Annotated[Path, typer.Option("--output", help="Where to write what the C computed (npy, npz).")],
    target: Target = "host",
    compiler: TargetCompiler = None,
) -> None:
    """Run the generated C on any inputs."""
    with terminal.progress_bar(2) as progress:
        y, warnings = api.run(folder, input_file, output_file, target, progress, compiler)
    for warning in warnings:
        terminal.err.say(f"warning: {warning}")
    terminal.out.say(f"{len(y):,} rows to {output_file}")


@app.command()
def verify(
    folder: Folder,
    data: Annotated[Path | None, typer.Option(help="More inputs to compare on (npz, npy, csv).")] = None,
    target: Target = "host",
    compiler: TargetCompiler = None,
    opt: Annotated[str, typer.Option(help="Optimization level of a build for a board.")] = "-O2",
) -> None:
    """Compare the C in a folder with its golden reference, every bit."""
    with terminal.progress_bar(2) as progress:
        lines = api.verify(folder, data, target, progress, compiler, opt)
    for line in lines:
        terminal.out.say(line)


@app.command()
def profile(
    folder: Folder,
    input_file: Annotated[
        Path | None, typer.Option("--input", help="Samples (npy, npz, csv); the golden vectors by default.")
    ] = None,
    target: Annotated[str | None, typer.Option(help="Board to run on; that of the export by default.")] = None,
    compiler: TargetCompiler = None,
    opt: Annotated[str, typer.Option(help="Optimization level of the build.")] = "-O2",
    as_json: Json = False,
) -> None:
    """Measure one inference on an emulated board: instructions, estimated cycles, stack, flash and RAM."""
    with terminal.progress_bar(4) as progress:
        found = api.profile(folder, input_file, target, progress, compiler, opt)
    if as_json:
        terminal.out.print_json(json.dumps(profile_json(found)))
        return
    for line in profile_lines(found):
        terminal.out.say(line)


@app.command()
def compare(
    golden: Annotated[Path, typer.Argument(help="NAME.golden.bin of an export.", show_default=False)],
    device: Annotated[Path, typer.Argument(help="The outputs as the device computed them.", show_default=False)],
) -> None:
    """Compare what a board computed with the golden file: first vector, tensor and element that differ."""
    terminal.out.say(api.compare(golden, device))


@app.command()
def inspect(source: Source, as_json: Json = False) -> None:
    """Say what a model file contains."""
    line, facts = api.inspect(source)
    if as_json:
        terminal.out.print_json(json.dumps(facts))
        return
    terminal.out.say(line)
    for key, value in facts.items():
        if key != "features":
            terminal.out.say(f"{key:<16} {value}")


app.add_typer(checks)


@app.command()
def boards(as_json: Json = False) -> None:
    """List the boards and their memories."""
    found = list_boards()
    if as_json:
        terminal.out.print_json(json.dumps([api.board_facts(b) for b in found]))
        return
    for board in found:
        terminal.out.say(f"{board.name}: {board.title}")
        table = Table(box=None, pad_edge=False)
        for column in ("region", "base", "bytes", "reserved"):
            table.add_column(column)
        for r in board.regions:
            table.add_row(r.name, f"0x{r.base:08x}", f"{r.size:,}", f"{r.reserve:,}")
        terminal.out.print(table)


def _version(value: bool) -> None:
    if value:
        terminal.out.print(f"mcugen {VERSION}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Trained models to verified C for microcontrollers, bit for bit as in Python."""


def _print_results(results: Sequence[api.ExportResult], explain: bool) -> None:
    for result in results:
        for line in summary_lines(result.report):
            terminal.out.say(line)
        for line in result.report.details if explain else ():
            terminal.out.say(line)
    _print_memory(results, explain)
    for result in results:
        new, same = len(result.written.written), len(result.written.unchanged)
        terminal.out.say(f"wrote     {result.out} ({new} files, {same} unchanged)")


def _print_memory(results: Sequence[api.ExportResult], explain: bool) -> None:
    plans = [r.plan for r in results]
    whole = tuple(a for p in plans for a in p.assignments)
    for line in (*memory_lines(replace(plans[0], assignments=whole), explain), *usage_lines(plans, explain)):
        terminal.out.say(line)
    terminal.out.print("~ sizes of code are estimates; mcugen profile measures them")


def main(arguments: list[str] | None = None) -> None:
    """The entry point: every error is one line on stderr and an exit code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # names may hold what the terminal cannot show
    try:
        code: Any = app(args=arguments, prog_name="mcugen", standalone_mode=False)
        if code == 130:  # what the option parser makes of Ctrl-C
            raise KeyboardInterrupt
        sys.exit(code if isinstance(code, int) else 0)
    except McugenError as e:
        _fail(e)
    except typer.Abort:
        terminal.err.say("stopped")
        sys.exit(130)
    except KeyboardInterrupt:
        terminal.err.say("stopped")
        sys.exit(130)
    except BrokenPipeError:
        sys.exit(0)
    except MemoryError:
        _fail(InputError("memory", "this machine has too little memory for this model"))
    except Exception as e:
        if hasattr(e, "format_message"):  # a usage error of the option parser
            terminal.err.say(f"mcugen: {usage_text(e.format_message())} (see mcugen --help)")
            sys.exit(2)
        _fail(InternalError(type(e).__name__, str(e) or "no message"))


def _fail(error: McugenError) -> None:
    terminal.err.say(f"mcugen: {error}")
    if isinstance(error, PlanDoesNotFitError):
        for line in error.table:
            terminal.err.say(line)
    sys.exit(error.exit_code)


if __name__ == "__main__":
    main()
