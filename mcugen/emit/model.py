"""A machine model, its plan and its golden vectors to the text of all files of an export."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mcugen.core.op import Item, MachineOp, Names, OpText
from mcugen.core.types import Array, Model
from mcugen.ctext.arrays import array_rows
from mcugen.emit import contract
from mcugen.emit.render import render
from mcugen.emit.tables import names_of, plain_table_text, table_text
from mcugen.errors import InternalError
from mcugen.resources import resource_dir
from mcugen.target.fragment import fragment_text
from mcugen.target.plan import Plan

#: Raised when generated files and runtime files of different versions must not be mixed; the same as in mcg.h.
ABI = 1
_SELFTEST_BYTES = 4096
_SELFTEST_VECTORS = 16


@dataclass(frozen=True, slots=True, eq=False)
class Vectors:
    """Golden vectors: inputs (N, F) and the outputs of the integer reference (N, K)."""

    x: Array
    y: Array


def machine_ops(model: Model) -> tuple[MachineOp, ...]:
    """The ops of a machine model, typed."""
    ops = tuple(op for op in model.ops if isinstance(op, MachineOp))
    if len(ops) != len(model.ops):
        raise InternalError(model.name, "a source op has not been lowered")
    return ops


def items_of(model: Model) -> tuple[Item, ...]:
    """Everything of the model that takes memory."""
    return tuple(item for op in machine_ops(model) for item in op.items(model.name))


def model_files(model: Model, plan: Plan, output: str, golden: Vectors, verified: str) -> dict[str, str]:
    """NAME.h, NAME.c, NAME_selftest.[ch] and CMakeLists.txt by path."""
    name = model.name
    header, source = _header(model, output, verified), _source(model, plan)
    few = _selftest_rows(golden)
    return {
        f"{name}.h": header,
        f"{name}.c": source,
        f"{name}_selftest.h": render("selftest.h.j2", name=name, guard=f"{name.upper()}_SELFTEST_H", count=len(few.x)),
        f"{name}_selftest.c": _selftest(model, few),
        "CMakeLists.txt": render(
            "CMakeLists.txt.j2",
            name=name,
            runtime_sources=sorted(p.name for p in (resource_dir("runtime_c") / "src").glob("*.c")),
            fragment=plan.board is not None,
        ),
    }


def runtime_files(plan: Plan) -> dict[str, str]:
    """The folder mcugen/: the same for every model; the linker fragment is that of the board."""
    base = resource_dir("runtime_c")
    paths = [*sorted((base / "include").glob("*.h")), *sorted((base / "src").glob("*.c"))]
    files = {f"mcugen/{p.name}": p.read_text(encoding="utf-8") for p in paths}
    if plan.board is not None:
        files["mcugen/mcugen.ld"] = fragment_text(plan.board)
    return files


def _header(model: Model, output: str, verified: str) -> str:
    trace = _trace_item(model)
    return render(
        "model.h.j2",
        name=model.name,
        upper=model.name.upper(),
        title=contract.title(model),
        contract=contract.contract_lines(model, output, verified),
        guard=f"{model.name.upper()}_H",
        abi=ABI,
        macros=contract.macros(model),
        features=contract.feature_lines(model),
        categories=contract.category_blocks(model),
        in_type=model.types[model.inputs[0]].dtype.ctype,
        out_type=model.types[model.outputs[0]].dtype.ctype,
        trace=trace is not None,
        trees=_trees(model),
        leaf_type=trace.ctype if trace else "",
    )


def _source(model: Model, plan: Plan) -> str:
    names = names_of(plan)
    ops = machine_ops(model)
    local = {v: v for v in model.types} | {model.inputs[0]: "x", model.outputs[0]: "y"}
    texts = [op.emit(model.name, _local(op.inputs, local), _local(op.outputs, local), names) for op in ops]
    trace = next((i for i, t in enumerate(texts) if t.trace), None)
    item = _trace_item(model)
    return render(
        "model.c.j2",
        name=model.name,
        upper=model.name.upper(),
        title=contract.title(model),
        includes=sorted({i for t in texts for i in t.includes}),
        assertions=_assertions(model),
        tables=[table_text(a) for a in plan.assignments if a.item.role == "table"],
        definitions=[t.definitions for t in texts if t.definitions],
        in_type=model.types[model.inputs[0]].dtype.ctype,
        out_type=model.types[model.outputs[0]].dtype.ctype,
        body=_body(model, ops, texts),
        trace=[] if trace is None else _trace_body(model, ops, texts, trace),
        trace_tables="" if item is None else plain_table_text(item),
        leaf_type=item.ctype if item else "",
    )


def _local(values: tuple[str, ...], local: dict[str, str]) -> tuple[str, ...]:
    return tuple(local[v] for v in values)


def _assertions(model: Model) -> list[str]:
    """Assumptions of the generator that the C compiler checks again."""
    lines = []
    for value in (model.inputs[0], model.outputs[0]):
        dtype = model.types[value].dtype
        lines.append(f'_Static_assert(sizeof({dtype.ctype}) == {dtype.size}, "{dtype.ctype} has another size here");')
    return sorted(set(lines))


def _declaration(model: Model, value: str) -> str:
    t = model.types[value]
    return f"{t.dtype.ctype} {value}[{t.count}];"


def _body(model: Model, ops: tuple[MachineOp, ...], texts: list[OpText]) -> list[str]:
    """The statements of NAME_compute: values between ops are arrays on the stack."""
    lines = [_declaration(model, v) for op in ops for v in op.outputs if v != model.outputs[0]]
    return lines + [t.call for t in texts]


def _trace_body(model: Model, ops: tuple[MachineOp, ...], texts: list[OpText], last: int) -> list[str]:
    lines = [_declaration(model, v) for op in ops[:last] for v in op.outputs]
    return [*lines, *(t.call for t in texts[:last]), texts[last].trace]


def _trace_item(model: Model) -> Item | None:
    return next((i for op in machine_ops(model) for i in op.trace_items(model.name)), None)


def _trees(model: Model) -> int:
    item = _trace_item(model)
    return 0 if item is None else round(item.reads_per_run)


def _selftest_rows(golden: Vectors) -> Vectors:
    """Few vectors, spread over the golden ones; NaN outputs have no single bit pattern and stay out."""
    row = golden.x.itemsize * golden.x.shape[1] + golden.y.itemsize * golden.y.shape[1]
    count = max(1, min(_SELFTEST_VECTORS, _SELFTEST_BYTES // max(row, 1)))
    usable = np.flatnonzero(~np.isnan(golden.y).any(axis=1))
    pick = usable[np.unique(np.linspace(0, len(usable) - 1, count).astype(int))] if len(usable) else usable
    return Vectors(golden.x[pick], golden.y[pick])


def _selftest(model: Model, few: Vectors) -> str:
    x, y = model.types[model.inputs[0]], model.types[model.outputs[0]]
    return render(
        "selftest.c.j2",
        name=model.name,
        upper=model.name.upper(),
        count=len(few.x),
        in_bits=contract.bits_ctype(x.dtype),
        out_bits=contract.bits_ctype(y.dtype),
        in_type=x.dtype.ctype,
        out_type=y.dtype.ctype,
        inputs=array_rows(_bits(few.x), hexadecimal=True),
        outputs=array_rows(_bits(few.y), hexadecimal=True),
    )


def _bits(values: Array) -> Array:
    flat = np.ascontiguousarray(values).reshape(-1)
    return flat.view(f"<u{flat.dtype.itemsize}")


__all__ = ["ABI", "Names", "Vectors", "items_of", "machine_ops", "model_files", "runtime_files"]
