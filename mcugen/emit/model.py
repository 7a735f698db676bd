"""A machine model, its plan and its golden vectors to the text of all files of an export."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mcugen.core.op import Item, op_prefixes
from mcugen.core.types import Array, Model
from mcugen.ctext.arrays import array_rows
from mcugen.emit import contract
from mcugen.emit.net import arena_item, net_header, net_source
from mcugen.emit.parts import ABI, machine_ops
from mcugen.emit.render import render
from mcugen.emit.tabular import tabular_header, tabular_source
from mcugen.resources import resource_dir
from mcugen.target.arena import ArenaPlan
from mcugen.target.fragment import fragment_text
from mcugen.target.plan import Plan

_SELFTEST_BYTES = 4096
_SELFTEST_VECTORS = 16
_MOST_ON_STACK = 2048


@dataclass(frozen=True, slots=True, eq=False)
class Vectors:
    """Golden vectors: inputs (N, F) and the outputs of the integer reference (N, K)."""

    x: Array
    y: Array


def items_of(model: Model, arena: ArenaPlan | None = None) -> tuple[Item, ...]:
    """Everything of the model that takes memory."""
    ops = machine_ops(model)
    prefixes = op_prefixes(model.name, ops)
    items = tuple(item for op, prefix in zip(ops, prefixes, strict=True) for item in op.items(prefix))
    return items if arena is None else (*items, arena_item(model, ops, arena))


def model_files(
    model: Model, plan: Plan, output: str, golden: Vectors, verified: str, arena: ArenaPlan | None = None
) -> dict[str, str]:
    """NAME.h, NAME.c, NAME_selftest.[ch] and CMakeLists.txt by path; ``arena`` for models whose values live in one."""
    name = model.name
    if arena is None:
        header, source = tabular_header(model, output, verified), tabular_source(model, plan)
    else:
        header, source = net_header(model, arena, verified), net_source(model, plan, arena)
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


def _selftest_rows(golden: Vectors) -> Vectors:
    """Few vectors, spread over the golden ones; NaN outputs have no single bit pattern and stay out."""
    row = golden.x[:1].nbytes + golden.y[:1].nbytes
    count = max(1, min(_SELFTEST_VECTORS, _SELFTEST_BYTES // max(row, 1)))
    usable = np.flatnonzero(~np.isnan(golden.y.reshape(len(golden.y), -1)).any(axis=1))
    pick = usable[np.unique(np.linspace(0, len(usable) - 1, count).astype(int))] if len(usable) else usable
    return Vectors(golden.x[pick], golden.y[pick])


def _selftest(model: Model, few: Vectors) -> str:
    x, y = model.types[model.inputs[0]], model.types[model.outputs[0]]
    return render(
        "selftest.c.j2",
        name=model.name,
        upper=model.name.upper(),
        count=len(few.x),
        in_table=contract.bits_ctype(x.dtype) if x.dtype.is_float else x.dtype.ctype,
        copies=x.dtype.is_float,
        # Large tensors would not fit a firmware's stack.
        keep="static " if x.count * x.dtype.size + y.count * y.dtype.size > _MOST_ON_STACK else "",
        out_bits=contract.bits_ctype(y.dtype),
        in_type=x.dtype.ctype,
        out_type=y.dtype.ctype,
        inputs=array_rows(_bits(few.x), hexadecimal=True) if x.dtype.is_float else array_rows(few.x.reshape(-1)),
        outputs=array_rows(_bits(few.y), hexadecimal=True),
    )


def _bits(values: Array) -> Array:
    flat = np.ascontiguousarray(values).reshape(-1)
    return flat.view(f"<u{flat.dtype.itemsize}")


__all__ = ["ABI", "Vectors", "items_of", "machine_ops", "model_files", "runtime_files"]
