"""NAME.h and NAME.c of a model whose values are small arrays on the stack: rows of features in, scores out."""

from __future__ import annotations

from mcugen.core.op import Item, MachineOp, OpText, op_prefixes
from mcugen.core.types import Model
from mcugen.emit import contract
from mcugen.emit.parts import ABI, machine_ops, size_assertions
from mcugen.emit.render import render
from mcugen.emit.tables import names_of, plain_table_text, table_text
from mcugen.target.plan import Plan


def tabular_header(model: Model, output: str, verified: str) -> str:
    """The header: contract, sizes, features, the three functions."""
    trace = _trace_item(model)
    ops = machine_ops(model)
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
        block=block_of(ops),
        block_bytes=_block_bytes(model, ops),
    )


def tabular_source(model: Model, plan: Plan) -> str:
    """The source: tables, kernels, and NAME_compute that calls them in order."""
    names = names_of(plan)
    ops = machine_ops(model)
    local = {v: v for v in model.types} | {model.inputs[0]: "x", model.outputs[0]: "y"}
    texts = [
        op.emit(prefix, _local(op.inputs, local), _local(op.outputs, local), names)
        for op, prefix in zip(ops, op_prefixes(model.name, ops), strict=True)
    ]
    trace = next((i for i, t in enumerate(texts) if t.trace), None)
    item = _trace_item(model)
    return render(
        "model.c.j2",
        name=model.name,
        upper=model.name.upper(),
        title=contract.title(model),
        includes=sorted({i for t in texts for i in t.includes}),
        assertions=size_assertions(model),
        tables=[table_text(a) for a in plan.assignments if a.item.role == "table"],
        definitions=[t.definitions for t in texts if t.definitions],
        in_type=model.types[model.inputs[0]].dtype.ctype,
        out_type=model.types[model.outputs[0]].dtype.ctype,
        body=_body(model, ops, texts),
        block=block_of(ops),
        rows_body=_rows_body(model, ops, texts),
        trace=[] if trace is None else _trace_body(model, ops, texts, trace),
        trace_tables="" if item is None or item.data is None else plain_table_text(item),
        leaf_type=item.ctype if item else "",
    )


def _local(values: tuple[str, ...], local: dict[str, str]) -> tuple[str, ...]:
    return tuple(local[v] for v in values)


def _declaration(model: Model, value: str) -> str:
    t = model.types[value]
    return f"{t.dtype.ctype} {value}[{t.count}];"


def _body(model: Model, ops: tuple[MachineOp, ...], texts: list[OpText]) -> list[str]:
    """The statements of NAME_compute: values between ops are arrays on the stack."""
    lines = [_declaration(model, v) for op in ops for v in op.outputs if v != model.outputs[0]]
    return lines + [t.call for t in texts]


def block_of(ops: tuple[MachineOp, ...]) -> int:
    """Rows that NAME_run_batch takes at once, or 1."""
    return max(op.block for op in ops)


def _block_bytes(model: Model, ops: tuple[MachineOp, ...]) -> int:
    """Stack that the rows of a block take: arrays between ops and within the op that takes them at once."""
    arrays = sum(model.types[v].count * model.types[v].dtype.size for v in _row_arrays(model, ops))
    return sum(op.block * (arrays + op.row_bytes(model.types)) for op in ops if op.block > 1)


def _rows_body(model: Model, ops: tuple[MachineOp, ...], texts: list[OpText]) -> list[str]:
    """The statements of NAME_compute_rows: what stands before the op that takes rows at once, it, and what follows.

    Values that it reads and writes are arrays for all rows; between the others a row has its own.
    """
    block = block_of(ops)
    if block == 1:
        return []
    at = next(i for i, t in enumerate(texts) if t.rows)
    arrays = _row_arrays(model, ops)
    lines = [f"{model.types[v].dtype.ctype} {v}_rows[{block * model.types[v].count}];" for v in arrays]
    before = _each_row(model, ops[:at], texts[:at], arrays)
    behind = _each_row(model, ops[at + 1 :], texts[at + 1 :], arrays)
    return [*lines, *before, texts[at].rows, *behind]


def _row_arrays(model: Model, ops: tuple[MachineOp, ...]) -> tuple[str, ...]:
    """Values that have an array for all rows of a block."""
    ends = (model.inputs[0], model.outputs[0])
    return tuple(dict.fromkeys(v for op in ops if op.block > 1 for v in (*op.inputs, *op.outputs) if v not in ends))


def _each_row(model: Model, ops: tuple[MachineOp, ...], texts: list[OpText], arrays: tuple[str, ...]) -> list[str]:
    """A loop over the rows that does these ops."""
    if not ops:
        return []
    names = {v: v for v in arrays} | {model.inputs[0]: "x", model.outputs[0]: "y"}
    written = {v for op in ops for v in op.outputs}
    lines = []
    for v in dict.fromkeys(v for op in ops for v in (*op.inputs, *op.outputs)):
        kind = model.types[v]
        const = "" if v in written else "const "
        if v in names:
            lines.append(f"{const}{kind.dtype.ctype} *const {names[v]} = {names[v]}_rows + i * {kind.count}u;")
        else:
            lines.append(_declaration(model, v))
    lines += [t.call for t in texts]
    return ["for (uint32_t i = 0; i < n; ++i) {", *(f"    {line}" for line in lines), "}"]


def _trace_body(model: Model, ops: tuple[MachineOp, ...], texts: list[OpText], last: int) -> list[str]:
    lines = [_declaration(model, v) for op in ops[:last] for v in op.outputs]
    return [*lines, *(t.call for t in texts[:last]), texts[last].trace]


def _trace_item(model: Model) -> Item | None:
    return next((i for op in machine_ops(model) for i in op.trace_items(model.name)), None)


def _trees(model: Model) -> int:
    item = _trace_item(model)
    return 0 if item is None else round(item.reads_per_run)
