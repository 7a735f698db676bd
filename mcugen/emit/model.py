"""A machine model, its plan and its golden vectors to the text of all files of an export."""

from __future__ import annotations

from mcugen.core.op import Item, op_prefixes
from mcugen.core.stream import has_state
from mcugen.core.types import Model
from mcugen.emit.kernels import HEADER, kernel_items, placement_header, push_item, run_cycles
from mcugen.emit.net import arena_item, net_header, net_source
from mcugen.emit.parts import machine_ops
from mcugen.emit.plan_note import note_c, note_of
from mcugen.emit.render import render
from mcugen.emit.selftest import Vectors, selftest_text
from mcugen.emit.stream import stream_files
from mcugen.emit.tabular import tabular_header, tabular_source
from mcugen.resources import resource_dir
from mcugen.target.arena import ArenaPlan
from mcugen.target.fragment import fragment_text
from mcugen.target.placement import Group
from mcugen.target.plan import Plan


def items_of(model: Model, arena: ArenaPlan | None = None) -> tuple[Item, ...]:
    """Everything of the model that takes memory, and the functions of the runtime that it calls."""
    ops = machine_ops(model)
    prefixes = op_prefixes(model.name, ops)
    own = tuple(item for op, prefix in zip(ops, prefixes, strict=True) for item in op.items(prefix))
    call = (push_item(model.name, ops),) if arena is None and has_state(ops) else ()
    kept = () if arena is None else (arena_item(model, ops, arena),)
    return (*own, *kept, *call, *kernel_items(model.name, ops))


def group_of(
    model: Model, arena: ArenaPlan | None, buffers: tuple[Item, ...], spend_ram: bool, move_kernels: bool
) -> Group:
    """A model for target.placement; ``buffers``: memory that DMA fills."""
    items = (*items_of(model, arena), *buffers)
    return Group(items, spend_ram, move_kernels, run_cycles(machine_ops(model)))


def model_files(
    model: Model,
    plan: Plan,
    output: str,
    golden: Vectors,
    verified: str,
    arena: ArenaPlan | None = None,
    about: tuple[str, ...] = (),
    app: bool = False,
) -> dict[str, str]:
    """NAME.h, NAME.c, NAME_selftest.[ch] and CMakeLists.txt by path.

    ``arena``: for models whose values live in one. ``about``: lines of the header of a model with state, on what a
    sample and a result mean. ``app``: the folder is a CMake project with a program in app/.
    """
    name = model.name
    if has_state(machine_ops(model)):
        header, source = stream_files(model, plan, arena, verified, about)
    elif arena is None:
        header, source = tabular_header(model, output, verified), tabular_source(model, plan)
    else:
        header, source = net_header(model, arena, verified), net_source(model, plan, arena)
    placed = arena is not None and arena.ports
    selftest, count = selftest_text(model, golden, placed)
    return {
        f"{name}.h": header,
        f"{name}.c": source + note_c(note_of(model, plan, source)),
        f"{name}_selftest.h": render(
            "selftest.h.j2", name=name, guard=f"{name.upper()}_SELFTEST_H", count=count, placed=placed
        ),
        f"{name}_selftest.c": selftest,
        "CMakeLists.txt": render(
            "CMakeLists.txt.j2",
            name=name,
            runtime_sources=sorted(p.name for p in (resource_dir("runtime_c") / "src").glob("*.c")),
            fragment=plan.board is not None,
            app=app,
        ),
    }


def runtime_files(plan: Plan) -> dict[str, str]:
    """The folder mcugen/: the same for every model, but for the header that says which of its functions run from fast
    memory; models that are placed together have the same. The linker fragment is that of the board."""
    base = resource_dir("runtime_c")
    paths = [*sorted((base / "include").glob("*.h")), *sorted((base / "src").glob("*.c"))]
    files = {f"mcugen/{p.name}": p.read_text(encoding="utf-8") for p in paths} | {HEADER: placement_header(plan)}
    if plan.board is not None:
        files["mcugen/mcugen.ld"] = fragment_text(plan.board)
    return files
