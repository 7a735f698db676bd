"""A profile: what one inference costs on a board, from an image that ran on the emulated board.

Instructions are exact; cycles are an estimate (``emulate/cycles.py``). Not here: building the image, drawing inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np

from mcugen.core.op import MachineOp, op_prefixes
from mcugen.core.stream import OK
from mcugen.core.types import Array
from mcugen.emit.calls import calls_of
from mcugen.emulate.cycles import WORDS, CycleEstimate, estimate
from mcugen.emulate.elf import Elf, region_at
from mcugen.emulate.image import BoardModel, Image
from mcugen.emulate.isa import Decoder
from mcugen.emulate.machine import EmulatedBoard
from mcugen.emulate.memories import Memories
from mcugen.emulate.recorder import Execution, access_arrays
from mcugen.errors import InternalError
from mcugen.report.attribution import CallNames, CallOrder, Owners, worst_case
from mcugen.report.batches import BatchProfile, batch_json, batch_line, measure_batches
from mcugen.report.places import Places, account, places_json, places_lines
from mcugen.target.board import Board

#: Rows that are recorded block by block; instructions are counted on all. Large models are nets, whose rows are alike.
_RECORDED_ROWS = 150
_RECORDED_INSTRUCTIONS, _COUNTED_INSTRUCTIONS = 2_000_000, 100_000_000


@dataclass(frozen=True, slots=True)
class OpProfile:
    """One op, or the call around them. ``instructions``: mean a run; ``worst``: a bound for every input, or None;
    ``floor``: what the kernel's method takes at least, or None."""

    name: str
    kind: str
    instructions: float
    macs: int
    steps: float
    worst_steps: int
    worst: int | None
    floor: float | None = None


@dataclass(frozen=True, slots=True)
class Traffic:
    """Loads and stores of one inference, mean, in one memory. An access is one word or less."""

    region: str
    loads: float
    stores: float


@dataclass(frozen=True, slots=True)
class Profile:
    """What one inference costs. Bytes of ``memory`` are what the model adds to each memory, without stack.

    ``worst``: instructions that no input exceeds, as far as the ways round each loop were seen; None where an op
    has no bound. ``recorded``: rows that cycles, ops and traffic come from. Rows of a model with state are pushes:
    ``due`` of them gave a result, ``state`` is the size of NAME_state_t, which is the caller's. ``ram``: what is in
    memories beside the home, and the bytes of a net's input and output where they are not in there (``caller``).
    ``batch``: where NAME_run_batch is more than a loop.
    """

    target: str
    clock_hz: int
    compiler: str
    rows: int
    recorded: int
    mean: float
    largest: int
    worst: int | None
    cycles: CycleEstimate
    ops: tuple[OpProfile, ...]
    traffic: tuple[Traffic, ...]
    memory: Mapping[str, int]
    flash: int
    ram: int
    stack: int
    state: int = 0
    due: int = 0
    caller: int = 0
    batch: BatchProfile | None = None
    places: Places = field(default_factory=Places)


def measure(
    model: BoardModel,
    ops: Sequence[MachineOp],
    board: Board,
    image: Image,
    x: Array,
    compiler: str,
    roles: Mapping[str, str] = MappingProxyType({}),
    progress: Callable[[str], None] = lambda step: None,
) -> Profile:
    """Runs the rows ``x`` (N, inputs), of the C type, and accounts for what they execute. ``ops``: those of the machine
    model, in order; ``compiler``: its name and options, for the report; ``roles``: of the objects of the plan, by
    symbol."""
    progress("counting instructions")
    machine = EmulatedBoard(image, board)
    x = x if model.state_bytes else _countable(machine, model, x)
    calls = machine.calls(model, x)
    instructions = calls.instructions
    rows = _spread(len(x), float(np.mean(instructions)))
    progress("recording accesses")
    recorded = (
        machine.record(model, x, _pushes(rows, calls.status)) if model.state_bytes else machine.record(model, x[rows])
    )
    executions = tuple(e for e in recorded if e is not None)
    if not executions:
        raise InternalError("profile", "the recording changes what the program computes")
    progress("estimating cycles")
    decoder = Decoder(tuple((s.address, s.data) for s in image.elf.segments))
    profiles = _ops(model, ops, image.elf, decoder, executions)
    bounds = [p.worst for p in profiles]
    caller = _outside(model, ops)
    memories = Memories(executions, board)
    home = board.home.name
    block = max((op.block for op in ops), default=1)
    batch = measure_batches(model, board, image, x, block) if block > 1 and image.batch is not None else None
    return Profile(
        target=board.name,
        clock_hz=board.core.clock_hz,
        compiler=compiler,
        rows=len(x),
        recorded=len(executions),
        mean=float(np.mean(instructions)),
        largest=int(np.max(instructions)),
        worst=None if None in bounds else sum(b for b in bounds if b is not None),
        cycles=estimate(executions, decoder, board, memories),
        ops=profiles,
        traffic=_traffic(executions, board),
        memory={r: n for r, n in image.model_bytes.items() if n},
        flash=image.model_bytes.get(home, 0),
        ram=caller + sum(n for r, n in image.model_bytes.items() if r != home),
        stack=machine.stack_bytes(),
        state=model.state_bytes,
        due=int(np.count_nonzero(calls.status == OK)) if model.state_bytes else 0,
        caller=caller,
        batch=batch,
        places=account(roles, image.elf, board, memories, len(executions)),
    )


def _outside(model: BoardModel, ops: Sequence[MachineOp]) -> int:
    """Bytes of input and output of a net that are not in its arena; features and samples of others are not counted."""
    if model.placed or model.state_bytes or any(op.on_stack for op in ops):
        return 0
    return sum(p.size for p in (*model.inputs, *model.outputs))


def _countable(machine: EmulatedBoard, model: BoardModel, x: Array) -> Array:
    """The rows, or as many of them, evenly spread, as are counted in a minute or so."""
    first = float(machine.calls(model, x[:1]).instructions[0])
    count = max(2, int(_COUNTED_INSTRUCTIONS / max(first, 1.0)))
    return x if len(x) <= count else x[np.unique(np.linspace(0, len(x) - 1, count).astype(np.int64))]


def _pushes(rows: Array, status: Array) -> list[int]:
    """``rows``, half of them moved to pushes that give a result: those cost most, and may be few."""
    due = np.flatnonzero(status == OK)
    few = due[np.unique(np.linspace(0, len(due) - 1, (len(rows) + 1) // 2).astype(np.int64))] if len(due) else due
    return [int(i) for i in np.union1d(rows[::2] if len(due) else rows, few)]


def _spread(rows: int, instructions: float) -> Array:
    """Indices of rows, evenly spread, few enough to be recorded in seconds."""
    count = min(rows, _RECORDED_ROWS, max(1, int(_RECORDED_INSTRUCTIONS / max(instructions, 1.0))))
    return np.unique(np.linspace(0, rows - 1, count).astype(np.int64))


def _ops(
    model: BoardModel, ops: Sequence[MachineOp], elf: Elf, decoder: Decoder, executions: Sequence[Execution]
) -> tuple[OpProfile, ...]:
    """Instructions by op; the last row is NAME_run itself."""
    prefixes = op_prefixes(model.name, tuple(ops))
    names = [next((i.symbol for i in op.items(p) if i.role == "code"), p) for p, op in zip(prefixes, ops, strict=True)]
    if all(op.on_stack for op in ops) and not model.state_bytes:
        functions = [
            tuple(i.symbol for i in op.items(p) if i.role == "code") or (op.kernel[0],)
            for p, op in zip(prefixes, ops, strict=True)
        ]
        names = [f[0] for f in functions]
        parts = Owners(elf, (*functions, (f"{model.name}_run", f"{model.name}_compute"))).split(executions)
    elif model.state_bytes:
        parts = CallNames(elf, model.name, calls_of(model.name, ops)).split(executions)
    else:
        parts = CallOrder(elf, model.name, len(ops)).split(executions)
    found = []
    for n, every in enumerate(parts):
        # A push that ends early executes nothing of the ops behind.
        part = [run for run in every if run] if model.state_bytes else every
        if not part:
            found.append(OpProfile(names[n], type(ops[n]).__name__, 0.0, 0, 0.0, 0, None))
            continue
        counts = [sum(len(decoder.block(*b)) for b in run) for run in part]
        mean = sum(counts) / len(every)
        if n == len(ops):
            found.append(OpProfile(model.entry, "call", mean, 0, 0.0, 0, max(counts)))
            continue
        cost = ops[n].cost()
        # Steps of a window are those of several loops, of which one trip would not stand for all.
        steps = 0 if model.state_bytes and cost.macs else cost.worst_steps
        worst = worst_case(part, decoder, steps)
        kind = ops[n].title
        found.append(OpProfile(names[n], kind, mean, cost.macs, cost.steps, cost.worst_steps, worst, ops[n].floor))
    return tuple(found)


def _traffic(executions: Sequence[Execution], board: Board) -> tuple[Traffic, ...]:
    total: dict[str, list[float]] = {}
    for execution in executions:
        address, _, store = access_arrays(execution.accesses)
        pages, counts = np.unique((address >> 10 << 1) | store, return_counts=True)
        for page, count in zip(pages.tolist(), counts.tolist(), strict=True):
            region = region_at(board, page >> 1 << 10)
            name = region.name if region is not None else "other"
            total.setdefault(name, [0.0, 0.0])[page & 1] += count / len(executions)
    order = [r.name for r in board.regions]
    return tuple(Traffic(n, *total[n]) for n in (*order, "other") if n in total)


def profile_json(p: Profile) -> dict[str, Any]:
    """The profile for machines; sizes in bytes, means over the rows."""
    c = p.cycles
    some: dict[str, Any] = {"state_bytes": p.state, "due": p.due} if p.state else {}
    some |= {"batch": batch_json(p.batch)} if p.batch is not None else {}
    return some | {
        "target": p.target,
        "clock_hz": p.clock_hz,
        "compiler": p.compiler,
        "rows": p.rows,
        "flash_bytes": p.flash,
        "ram_bytes": p.ram,
        "caller_bytes": p.caller,
        "stack_bytes": p.stack,
        "memory": dict(p.memory),
        "instructions": {"mean": p.mean, "max": p.largest, "worst": p.worst},
        "cycles": {
            "low": round(c.low),
            "high": round(c.high),
            "max": round(c.worst),
            "note": WORDS,
            "assumptions": list(c.assumptions),
            "rows": p.recorded,
        },
        "traffic": [{"region": t.region, "loads": t.loads, "stores": t.stores} for t in p.traffic],
        "ops": [
            {
                "name": o.name,
                "kind": o.kind,
                "instructions": o.instructions,
                "macs": o.macs,
                "steps": o.steps,
                "worst_steps": o.worst_steps,
                "worst_instructions": o.worst,
                "floor_instructions": o.floor,
            }
            for o in p.ops
        ],
        "placement": places_json(p.places),
    }


def profile_lines(p: Profile) -> list[str]:
    """The profile for people: a line a fact, the ops, and what the cycles assume."""
    c = p.cycles
    memory = ", ".join(f"{r} {n:,}" for r, n in p.memory.items())
    traffic = "; ".join(f"{t.region} {t.loads:,.0f} loads, {t.stores:,.0f} stores" for t in p.traffic)
    bound = "" if p.worst is None else f"; worst case over all inputs {p.worst:,}"
    more = f" and {p.caller:,} of input and output" if p.caller else ""
    micro = tuple(1e6 * n / p.clock_hz for n in (c.low, c.high))
    stream = [f"stream        a push a row, {p.due:,} of them gave a result; state {p.state:,} bytes of the caller's"]
    return [
        f"target        {p.target}, emulated; {p.compiler}",
        *(stream if p.state else []),
        f"instructions  mean {p.mean:,.0f}, max {p.largest:,} over {p.rows:,} rows{bound}",
        f"cycles        {c.low:,.0f} to {c.high:,.0f}, slowest row up to {c.worst:,.0f}: {WORDS}",
        f"time          {micro[0]:,.1f} to {micro[1]:,.1f} us at {p.clock_hz / 1e6:g} MHz: {WORDS}",
        f"accesses      {traffic}",
        f"memory        flash {p.flash:,}, RAM {p.ram:,} bytes ({memory}{more}); stack {p.stack:,}",
        *(() if p.batch is None else (batch_line(p.batch),)),
        "",
        *_op_lines(p),
        "",
        *([*lines, ""] if (lines := places_lines(p.places)) else []),
        *(f"cycles: {a}" for a in c.assumptions),
    ]


def _op_lines(p: Profile) -> list[str]:
    """A table of the ops, aligned. A worst case holds for every input, if all ways round the loops were seen. Nets show
    instructions per multiply-accumulate too, and beside them what the method takes at least."""
    floors = any(o.floor is not None for o in p.ops)
    rows = [("op", "kind", "instructions", "worst case", "MACs", *(("per MAC", "floor") if floors else ()))]
    for o in p.ops:
        worst = "" if o.worst is None else f"{o.worst:,}"
        row = (o.name, o.kind, f"{o.instructions:,.0f}", worst, f"{o.macs:,}" if o.macs else "")
        per = "" if o.floor is None or not o.macs else f"{o.instructions / o.macs:.2f}"
        floor = "" if o.floor is None or not o.macs else f"{o.floor / o.macs:.2f}"
        rows.append((*row, *((per, floor) if floors else ())))
    widths = [max(len(r[i]) for r in rows) for i in range(len(rows[0]))]
    return [
        "  ".join(c.ljust(w) if i < 2 else c.rjust(w) for i, (c, w) in enumerate(zip(r, widths, strict=True))).rstrip()
        for r in rows
    ]
