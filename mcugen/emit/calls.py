"""Which functions the generated C of each op names."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from mcugen.core.op import MachineOp, Names, op_prefixes
from mcugen.core.stream import state_layout

_NAMED = re.compile(r"\b([A-Za-z_]\w*)(?=\s*\()")


def calls_of(name: str, ops: Sequence[MachineOp], *, inside: bool = False) -> list[Counter[str]]:
    """The functions that the call of each op names, and how often; with ``inside`` also those that its definitions
    name, which the call reaches. ``name``: of the model."""
    layout = state_layout(ops)
    found = []
    for i, (op, prefix) in enumerate(zip(ops, op_prefixes(name, tuple(ops)), strict=True)):
        items = {item.symbol: item.symbol for item in op.items(prefix)}
        names = Names(items, dict.fromkeys(items, ""), state={} if layout is None else layout.names(i, "s"))
        text = op.emit(prefix, tuple(f"x{k}" for k in range(len(op.inputs))), ("y",) * len(op.outputs), names)
        found.append(Counter(_NAMED.findall(text.call + text.definitions if inside else text.call)))
    return found
