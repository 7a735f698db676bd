"""NAME.h and NAME.c of a model with state: one sample a call, a result when one is due.

The values between ops are small arrays on the stack, or live in an arena as those of a net do.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from mcugen.core.op import MachineOp, OpText, op_prefixes
from mcugen.core.stream import StateLayout, state_layout
from mcugen.core.types import Model, TensorType
from mcugen.ctext.idents import unique_identifiers
from mcugen.emit import contract
from mcugen.emit.buffers import BufferText, buffer_text
from mcugen.emit.net import (
    arena_bytes,
    arena_pointers,
    arena_text,
    dequantize_call,
    is_quantized,
    quantize_call,
)
from mcugen.emit.parts import ABI, StateText, machine_ops, size_assertions, state_text
from mcugen.emit.render import render
from mcugen.emit.tables import names_of, table_text
from mcugen.errors import InternalError
from mcugen.target.arena import ALIGN, ArenaPlan
from mcugen.target.plan import Plan

#: Parameters of the generated functions.
_STATE, _ARENA, _X, _Y = "s", "arena", "x", "y"


@dataclass(frozen=True, slots=True)
class _Program:
    """The ops as C: declarations of values, and the text of each op."""

    declarations: tuple[str, ...]
    texts: tuple[OpText, ...]
    state: StateText


def stream_files(
    model: Model, plan: Plan, arena: ArenaPlan | None, verified: str, about: tuple[str, ...] = ()
) -> tuple[str, str]:
    """Header and source. ``about``: lines on what a sample and a result mean, where the family knows better."""
    ops = machine_ops(model)
    layout = state_layout(ops)
    if layout is None:
        raise InternalError(model.name, "no op has state")
    program = _program(model, ops, layout, plan, arena)
    buffer = buffer_text(model, plan)
    header = _header(model, arena, program, verified, (about, buffer.header))
    return header, _source(model, plan, arena, program, buffer)


def _program(
    model: Model, ops: tuple[MachineOp, ...], layout: StateLayout, plan: Plan, arena: ArenaPlan | None
) -> _Program:
    _check_order(model, ops)
    declarations, local = _values(model, ops, arena)
    texts = []
    for i, (op, prefix) in enumerate(zip(ops, op_prefixes(model.name, ops), strict=True)):
        args, results = (tuple(local[v] for v in values) for values in (op.inputs, op.outputs))
        names = names_of(plan, _scratch(op, i, arena), layout.names(i, _STATE))
        texts.append(op.emit(prefix, args, results, names))
    return _Program(tuple(declarations), tuple(texts), state_text(model, layout, ops, texts))


def _check_order(model: Model, ops: tuple[MachineOp, ...]) -> None:
    """A push that ends with MCG_PENDING leaves y alone: no output is written before the last op that can end one."""
    written = False
    for op in ops:
        if written and not op.due(1 << 10).all():
            raise InternalError(str(op.loc), f"{type(op).__name__} may end a push after an output was written")
        written = written or any(v in model.outputs for v in op.outputs)


def _values(model: Model, ops: tuple[MachineOp, ...], arena: ArenaPlan | None) -> tuple[list[str], dict[str, str]]:
    """Declarations of the values between ops, and the C name of every value."""
    if arena is not None:
        return arena_pointers(model, arena)
    between = [v for op in ops for v in op.outputs if v != model.outputs[0]]
    taken = [_STATE, _X, _Y, "scratch"]
    idents = unique_identifiers([*taken, *between])[len(taken) :]
    local = {model.inputs[0]: _X, model.outputs[0]: _Y} | dict(zip(between, idents, strict=True))
    lines = [_declaration(model.types[v], local[v]) for v in between]
    scratch = max(op.scratch_bytes for op in ops)
    if scratch:
        lines.append(f"_Alignas(8) uint8_t scratch[{scratch}];")
    return lines, local


def _declaration(t: TensorType, name: str) -> str:
    """An array on the stack; words, so that kernels that read pairs of small elements need no unaligned access."""
    return f"{'_Alignas(4) ' if t.dtype.size < 4 else ''}{t.dtype.ctype} {name}[{t.count}];"


def _scratch(op: MachineOp, i: int, arena: ArenaPlan | None) -> str:
    if not op.scratch_bytes:
        return "NULL"
    return "scratch" if arena is None else f"({_ARENA} + {arena.scratch[i]})"


def _header(
    model: Model, arena: ArenaPlan | None, program: _Program, verified: str, told: tuple[tuple[str, ...], str]
) -> str:
    x, y = model.types[model.inputs[0]], model.types[model.outputs[0]]
    return render(
        "stream.h.j2",
        **_common(model),
        contract=contract.stream_lines(model, verified, told[0]),
        guard=f"{model.name.upper()}_H",
        buffer=told[1],
        abi=ABI,
        includes=program.state.includes,
        macros=contract.net_macros(model),
        features=contract.feature_lines(model),
        categories=contract.category_blocks(model),
        state_bytes=program.state.size,
        members=program.state.members,
        rhythm=program.state.rhythm,
        arena_bytes=0 if arena is None else arena_bytes(arena),
        arena_align=ALIGN,
        layers=len(model.ops),
        quantize=is_quantized(x),
        dequantize=is_quantized(y),
    )


def _source(model: Model, plan: Plan, arena: ArenaPlan | None, program: _Program, buffer: BufferText) -> str:
    x, y = model.types[model.inputs[0]], model.types[model.outputs[0]]
    includes = {i for t in program.texts for i in t.includes} - set(program.state.includes)
    includes |= {"mcg_quantize.h"} if is_quantized(x) or is_quantized(y) else set()
    calls = [t.call for t in program.texts]
    if arena is not None:
        calls = [line for i, call in enumerate(calls) for line in (f"{model.name.upper()}_HOOK({i});", call)]
        calls.append(f"(void){_ARENA};")
    return render(
        "stream.c.j2",
        **_common(model),
        buffer=buffer.source,
        includes=sorted(includes),
        assertions=size_assertions(model),
        layout=program.state.assertions,
        tables=[table_text(a) for a in plan.assignments if a.item.role == "table"],
        definitions=[t.definitions for t in program.texts if t.definitions],
        arena="" if arena is None else arena_text(plan.of(f"{model.name}_arena")),
        arena_parameter="" if arena is None else f"uint8_t *{_ARENA}, ",
        place="" if arena is not None else f'MCG_SECTION("{plan.of(f"{model.name}_push").section}") ',
        init=_lines((*program.state.init, *buffer.init)),
        body=_lines([*program.declarations, *calls]),
        quantize=quantize_call(x),
        dequantize=dequantize_call(y),
    )


def _lines(statements: Iterable[str]) -> list[str]:
    """Statements may be of several lines."""
    return [line for s in statements for line in s.splitlines()]


def _common(model: Model) -> Mapping[str, str]:
    """What both files say."""
    return {
        "name": model.name,
        "upper": model.name.upper(),
        "title": contract.title(model),
        "in_type": model.types[model.inputs[0]].dtype.ctype,
        "out_type": model.types[model.outputs[0]].dtype.ctype,
    }
