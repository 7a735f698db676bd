"""NAME.h and NAME.c of a model whose values live in an arena: tensors in, tensors out, layer after layer."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mcugen.core.op import Item, MachineOp, op_prefixes
from mcugen.core.ports import ArenaPorts
from mcugen.core.types import Model, TensorType
from mcugen.ctext.literals import float32_literal
from mcugen.emit import contract
from mcugen.emit.parts import ABI, PortText, machine_ops, place_functions, port_texts, ports_of, size_assertions
from mcugen.emit.render import render
from mcugen.emit.tables import names_of, table_text
from mcugen.target.arena import ALIGN, ArenaPlan
from mcugen.target.plan import Assignment, Plan

#: C functions of mcg_quantize.h by element type.
_QUANTIZED = {"int8": "i8", "int16": "i16"}


def arena_item(model: Model, ops: tuple[MachineOp, ...], arena: ArenaPlan) -> Item:
    """The static arena as an object to be placed; every op reads its inputs there and writes its outputs."""
    touched = sum(model.types[v].count for op in ops for v in (*op.inputs, *op.outputs))
    about = _about(arena)
    return Item(f"{model.name}_arena", "arena", "uint8_t", arena_bytes(arena), arena_bytes(arena), 32, touched, about)


def _about(arena: ArenaPlan) -> str:
    return f"{'inputs, outputs, ' if arena.ports else ''}values between layers and scratch"


def arena_ports(model: Model, arena: ArenaPlan) -> ArenaPorts:
    """The size of the arena, and where inputs and outputs lie in it."""
    sides = (model.inputs, model.outputs) if arena.ports else ((), ())
    return ArenaPorts(arena_bytes(arena), *(tuple(arena.offset(v) for v in side) for side in sides))


def arena_bytes(arena: ArenaPlan) -> int:
    """At least one alignment step: C has no empty arrays."""
    return max(arena.size, ALIGN)


def net_header(model: Model, arena: ArenaPlan, verified: str) -> str:
    """The header: contract with scales and zero points, sizes, the functions."""
    return render(
        "net.h.j2",
        **_common(model, arena),
        contract=contract.net_lines(model, verified),
        guard=f"{model.name.upper()}_H",
        abi=ABI,
        macros=contract.net_macros(model),
        about=_about(arena),
        arena_bytes=arena_bytes(arena),
        arena_align=ALIGN,
        layers=len(model.ops),
        sizes=_sizes_text(model),
    )


def net_source(model: Model, plan: Plan, arena: ArenaPlan) -> str:
    """The source: tables, descriptors, the arena, and NAME_compute that calls the layers in order."""
    ops = machine_ops(model)
    ports = port_texts(model)
    declarations, local = arena_pointers(model, arena)
    definitions, calls = [], []
    includes = {"mcg_quantize.h"} if any(is_quantized(model.types[p.value]) for p in ports) else set()
    for i, (op, prefix) in enumerate(zip(ops, op_prefixes(model.name, ops), strict=True)):
        offset = arena.scratch[i]
        names = names_of(plan, scratch="NULL" if offset is None else f"(arena + {offset})")
        args, results = (tuple(local[v] for v in values) for values in (op.inputs, op.outputs))
        text = op.emit(prefix, args, results, names)
        includes |= set(text.includes)
        definitions += [text.definitions] if text.definitions else []
        calls += [f"{model.name.upper()}_HOOK({i});", text.call]
    return render(
        "net.c.j2",
        **_common(model, arena),
        includes=sorted(includes),
        assertions=size_assertions(model),
        tables=[table_text(a) for a in plan.assignments if a.item.role == "table"],
        definitions=definitions,
        arena=arena_text(plan.of(f"{model.name}_arena")),
        body=[*declarations, *calls],
        steps=[f"{p.port.name} += {p.count};" for p in ports],
    )


@dataclass(frozen=True, slots=True)
class _Place:
    """A port in the arena: its offset and the macro of it, the function that tells where it is in the model's own
    arena, and the type of its elements."""

    port: PortText
    function: str
    offset: int

    @property
    def macro(self) -> str:
        return f"{self.port.prefix}_OFFSET"

    @property
    def ctype(self) -> str:
        return self.port.port.dtype.ctype


def _places(model: Model, arena: ArenaPlan) -> list[_Place]:
    """The place of each port, in their order; none where inputs and outputs are the caller's."""
    names, found = place_functions(model.name, *ports_of(model)), arena_ports(model, arena)
    if not found.placed:
        return []
    texts = zip(port_texts(model), (*names[0], *names[1]), (*found.inputs, *found.outputs), strict=True)
    return [_Place(*text) for text in texts]


def _common(model: Model, arena: ArenaPlan) -> dict[str, object]:
    """What both files say: parameters and arguments of the call, places, and the helpers that quantize."""
    ports = port_texts(model)
    return {
        "ports": [p.port for p in ports],
        "places": _places(model, arena),
        "name": model.name,
        "upper": model.name.upper(),
        "title": contract.title(model),
        "parameters": ", ".join(p.parameter for p in ports),
        "arguments": ", ".join(p.port.name for p in ports),
        "helpers": [h for p in ports if (h := _helper(model, p)) is not None],
    }


def _helper(model: Model, p: PortText) -> tuple[str, str] | None:
    """Declaration and statement of NAME_quantize or NAME_dequantize of a port."""
    kind = model.types[p.value]
    if not is_quantized(kind):
        return None
    if p.is_input:
        declared = f"void {model.name}_quantize{p.suffix}(const float *real, {kind.dtype.ctype} *{p.port.name})"
        return declared, quantize_call(kind, p.port.name)
    declared = f"void {model.name}_dequantize{p.suffix}(const {p.parameter}, float *real)"
    return declared, dequantize_call(kind, p.port.name)


def _sizes_text(model: Model) -> str:
    """Who has how many elements, for the comment of NAME_run."""
    texts = [f"{p.port.name} has {p.count}" for p in port_texts(model)]
    return ", ".join([texts[0] + " elements", *texts[1:]])


def arena_pointers(model: Model, arena: ArenaPlan) -> tuple[list[str], dict[str, str]]:
    """Pointers into the arena, one a value between ops, and the C name of every value: ports are parameters."""
    local = {p.value: p.port.name for p in port_texts(model)}
    lines = []
    between = (s for s in arena.slots if s.value not in local)
    for i, slot in enumerate(sorted(between, key=lambda s: (s.first, s.value))):
        ctype = model.types[slot.value].dtype.ctype
        local[slot.value] = f"v{i}"
        lines.append(f"{ctype} *const v{i} = ({ctype} *)(void *)(arena + {slot.offset});")
    return lines, local


def arena_text(assignment: Assignment) -> str:
    """The static arena. Where it is wrong without the linker fragment, it refers to a symbol that only that defines."""
    item = assignment.item
    return (
        f"/* {item.about}: {item.size} bytes in {assignment.region}. */\n"
        f'MCG_SECTION("{assignment.section}") static _Alignas({item.align}) uint8_t {item.symbol}[{item.size}];'
    )


def is_quantized(t: TensorType) -> bool:
    """Whether NAME_quantize or NAME_dequantize exists for a tensor."""
    return t.q is not None and t.dtype.label in _QUANTIZED


def _nearest(scale: float) -> float:
    """The scale as float32: those of nets are, those of signal chains are the user's doubles."""
    return float(np.float32(scale))


def quantize_call(x: TensorType, name: str = "x") -> str:
    """The statement of NAME_quantize; empty where there is none."""
    if x.q is None or not is_quantized(x):
        return ""
    scale = float32_literal(_nearest(x.q.scale))
    return f"mcg_quantize_{_QUANTIZED[x.dtype.label]}(real, {scale}, {x.q.zero_point}, {name}, {x.count}u);"


def dequantize_call(y: TensorType, name: str = "y") -> str:
    """The statement of NAME_dequantize; empty where there is none."""
    if y.q is None or not is_quantized(y):
        return ""
    scale = float32_literal(_nearest(y.q.scale))
    return f"mcg_dequantize_{_QUANTIZED[y.dtype.label]}({name}, {scale}, {y.q.zero_point}, real, {y.count}u);"
