"""NAME.h and NAME.c of a model whose values live in an arena: tensors in, tensors out, layer after layer."""

from __future__ import annotations

from mcugen.core.op import Item, MachineOp, op_prefixes
from mcugen.core.types import Model, TensorType
from mcugen.ctext.literals import float32_literal
from mcugen.emit import contract
from mcugen.emit.parts import ABI, machine_ops, size_assertions
from mcugen.emit.render import render
from mcugen.emit.tables import names_of, table_text
from mcugen.target.arena import ALIGN, ArenaPlan
from mcugen.target.plan import Assignment, Plan

#: C functions of mcg_quantize.h by element type.
_QUANTIZED = {"int8": "i8", "int16": "i16"}


def arena_item(model: Model, ops: tuple[MachineOp, ...], arena: ArenaPlan) -> Item:
    """The static arena as an object to be placed; every op reads its inputs there and writes its outputs."""
    touched = sum(model.types[v].count for op in ops for v in (*op.inputs, *op.outputs))
    about = "values between layers and scratch"
    return Item(f"{model.name}_arena", "arena", "uint8_t", arena_bytes(arena), arena_bytes(arena), 32, touched, about)


def arena_bytes(arena: ArenaPlan) -> int:
    """At least one alignment step: C has no empty arrays."""
    return max(arena.size, ALIGN)


def net_header(model: Model, arena: ArenaPlan, verified: str) -> str:
    """The header: contract with scales and zero points, sizes, the functions."""
    x, y = model.types[model.inputs[0]], model.types[model.outputs[0]]
    return render(
        "net.h.j2",
        name=model.name,
        upper=model.name.upper(),
        title=contract.title(model),
        contract=contract.net_lines(model, verified),
        guard=f"{model.name.upper()}_H",
        abi=ABI,
        macros=contract.net_macros(model),
        arena_bytes=arena_bytes(arena),
        arena_align=ALIGN,
        layers=len(model.ops),
        in_type=x.dtype.ctype,
        out_type=y.dtype.ctype,
        quantize=is_quantized(x),
        dequantize=is_quantized(y),
    )


def net_source(model: Model, plan: Plan, arena: ArenaPlan) -> str:
    """The source: tables, descriptors, the arena, and NAME_compute that calls the layers in order."""
    ops = machine_ops(model)
    x, y = model.types[model.inputs[0]], model.types[model.outputs[0]]
    declarations, local = arena_pointers(model, arena)
    definitions, calls, includes = [], [], {"mcg_quantize.h"} if is_quantized(x) or is_quantized(y) else set()
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
        name=model.name,
        upper=model.name.upper(),
        title=contract.title(model),
        includes=sorted(includes),
        assertions=size_assertions(model),
        tables=[table_text(a) for a in plan.assignments if a.item.role == "table"],
        definitions=definitions,
        arena=arena_text(plan.of(f"{model.name}_arena")),
        in_type=x.dtype.ctype,
        out_type=y.dtype.ctype,
        body=[*declarations, *calls],
        quantize=quantize_call(x),
        dequantize=dequantize_call(y),
    )


def arena_pointers(model: Model, arena: ArenaPlan) -> tuple[list[str], dict[str, str]]:
    """Pointers into the arena, one a value, and the C name of every value."""
    local = {model.inputs[0]: "x", model.outputs[0]: "y"}
    lines = []
    for i, slot in enumerate(sorted(arena.slots, key=lambda s: (s.first, s.value))):
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


def quantize_call(x: TensorType) -> str:
    """The statement of NAME_quantize; empty where there is none."""
    if x.q is None or not is_quantized(x):
        return ""
    scale = float32_literal(x.q.scale)
    return f"mcg_quantize_{_QUANTIZED[x.dtype.label]}(real, {scale}, {x.q.zero_point}, x, {x.count}u);"


def dequantize_call(y: TensorType) -> str:
    """The statement of NAME_dequantize; empty where there is none."""
    if y.q is None or not is_quantized(y):
        return ""
    scale = float32_literal(y.q.scale)
    return f"mcg_dequantize_{_QUANTIZED[y.dtype.label]}(y, {scale}, {y.q.zero_point}, real, {y.count}u);"
