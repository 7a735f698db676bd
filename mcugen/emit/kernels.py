"""Functions of the runtime as objects that can be placed, and the header that puts them where the plan has them.

Their bytes are in runtime_c/kernels.toml. Not here: which of them are worth a place in fast memory (target.placement).
"""

from __future__ import annotations

import math
import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from mcugen.core.op import Item, MachineOp
from mcugen.emit.calls import calls_of
from mcugen.resources import resource_dir
from mcugen.target.plan import Plan

#: The header among the files of an export.
HEADER = "mcugen/mcg_placement.h"
#: Why a function of the runtime may stand elsewhere than planned.
ELSEWHERE = "is the mcg_placement.h in the build that of this export? (export models of one program together)"
#: Bytes of a line of the cache, in which reads of a function are counted.
_LINE = 32
#: Instructions of a call of a kernel and of a step of its loops, for an estimate within a factor of two or so.
_CALL, _STEP = 20.0, 4.0


@dataclass(frozen=True, slots=True)
class Kernel:
    """A function of the runtime. ``size``: bytes of it and its ``helpers``, which move with it; an estimate.

    ``helpers``: the bytes of each, by name.
    """

    symbol: str
    size: int
    helpers: Mapping[str, int]


@cache
def kernels() -> dict[str, Kernel]:
    """All functions of the runtime that may be placed, by symbol."""
    table = tomllib.loads((resource_dir("runtime_c") / "kernels.toml").read_text(encoding="utf-8"))
    return {s: Kernel(s, entry["bytes"], entry["helpers"]) for s, entry in table.items()}


def kernel_items(name: str, ops: Sequence[MachineOp]) -> tuple[Item, ...]:
    """The functions of the runtime that a model called ``name`` calls in a run, in the order of the first call.

    Reads: each line once, those of a helper by the first function that has it. Loops read a line again, and find it in
    the cache.
    """
    calls: Counter[str] = Counter()
    for found in calls_of(name, ops, inside=True):
        calls += found
    known = [k for s, k in ((s, kernels().get(s)) for s in calls) if k is not None]
    items, read = [], set[str]()
    for kernel in known:
        again = sum(size for helper, size in kernel.helpers.items() if helper in read)
        items.append(_item(kernel, calls[kernel.symbol], kernel.size - again))
        read |= set(kernel.helpers)
    return tuple(items)


def _item(kernel: Kernel, calls: int, read: int) -> Item:
    about = f"of the runtime, called from {calls} place{'' if calls == 1 else 's'}"
    lines = float(math.ceil(read / _LINE))
    return Item(kernel.symbol, "code", "function", 1, kernel.size, 4, lines, about, shared=True)


def push_item(name: str, ops: Sequence[MachineOp]) -> Item:
    """NAME_push of a model with state and without an arena: what calls the kernels, and is called as often."""
    size = 64 + 24 * sum(sum(found.values()) for found in calls_of(name, ops))
    return Item(f"{name}_push", "code", "function", 1, size, 4, float(math.ceil(size / _LINE)), "the call itself")


def run_cycles(ops: Sequence[MachineOp]) -> float:
    """A rough estimate of the cycles of one run without stalls; of a model with state the mean over its pushes."""
    total, rate = 0.0, 1.0
    for op in ops:
        cost = op.cost()
        due = float(op.due(_PUSHES).mean())
        total += rate * _CALL + rate * due * (op.floor or cost.macs + _STEP * cost.steps)
        rate *= due
    return total


#: Pushes over which the rhythm of a model with state is averaged.
_PUSHES = 1 << 12


def placement_header(plan: Plan) -> str:
    """The content of HEADER: the section of every function that runs from another memory than flash."""
    text = (resource_dir("runtime_c") / "include" / "mcg_placement.h").read_text(encoding="utf-8")
    lines: dict[str, str] = {}
    for a in plan.kernels:
        if a.copied:
            region = a.section.removesuffix(a.item.symbol)
            for function in (a.item.symbol, *kernels()[a.item.symbol].helpers):
                lines[function] = f'#define MCG_AT_{function} 0, MCG_SECTION("{region}{function}")\n'
    head, end = text.rsplit("\n#endif", 1)
    return f"{head}\n{''.join(sorted(lines.values()))}\n#endif{end}" if lines else text
