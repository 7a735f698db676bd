"""Several ops on single elements as one Function: in int8 that is one table, rounded once.

For integer nets only: in float32 the parts stay the ops that they are.
"""

from __future__ import annotations

from mcugen.core.op import Op
from mcugen.core.types import Loc, Model
from mcugen.nn.passes_edit import Editor, joined, rewrite
from mcugen.nn.source import Activation, Affine, Binary, Conv, Dense, FakeQuant, Function, NetOp, Select


def fuse_functions(model: Model, context: object = None) -> Model:
    """``x * sigmoid(x)``, GELU, ``x * x`` and the like, and chains such as ``2 * sigmoid(x) - 1``, as Functions."""
    return rewrite(model, _fuse_several, _fuse_chain)


def _is_unary(op: Op) -> bool:
    return isinstance(op, Activation | FakeQuant | Function) or (isinstance(op, Affine) and op.per_tensor)


def _chain(e: Editor, value: str) -> dict[str, NetOp | None]:
    """``value`` and what it is a function of, the nearest first, each with the op that writes it."""
    found: dict[str, NetOp | None] = {}
    while True:
        before = e.writer(value)
        unary = before is not None and _is_unary(before[1])
        found[value] = before[1] if before is not None and unary and isinstance(before[1], NetOp) else None
        if before is None or not unary:
            return found
        value = before[1].inputs[0]


def _parts(op: NetOp) -> tuple[NetOp, ...]:
    return op.parts if isinstance(op, Function) else (op,)


def _up_to(chain: dict[str, NetOp | None], root: str) -> tuple[NetOp, ...]:
    """The ops from ``root`` to the value that the chain begins with, in the order of evaluation."""
    ops: list[NetOp] = []
    for value, op in chain.items():
        if value == root:
            break
        assert op is not None
        ops.append(op)
    return tuple(part for op in reversed(ops) for part in _parts(op))


def _fuse_several(e: Editor, place: int, op: Op) -> bool:
    """A Binary, or a choice, of functions of one value."""
    if not isinstance(op, Binary | Select) or len({e.types[v].shape for v in op.inputs}) != 1:
        return False
    chains = [_chain(e, v) for v in op.inputs]
    root = next((v for v in chains[0] if all(v in c for c in chains)), None)
    if root is None:
        return False
    parts = {p.outputs[0]: p for p in (*(p for c in chains for p in _up_to(c, root)), op)}
    e.put(place, Function((root,), op.outputs, _loc(tuple(parts.values())), tuple(parts.values())))
    return True


def _fuse_chain(e: Editor, place: int, op: Op) -> bool:
    """An op on single elements of another, where nothing else reads what is between."""
    if not isinstance(op, NetOp) or not _is_unary(op) or isinstance(op, FakeQuant):
        return False
    found = e.writer(op.inputs[0])
    if found is None or not e.read_once(op.inputs[0]):
        return False
    before = found[1]
    if not isinstance(before, NetOp) or not _is_unary(before) or isinstance(before, FakeQuant):
        return False
    if _is_clamp_of_layer(e, before):
        return False
    parts = (*_parts(before), *_parts(op))
    e.put(place, Function(before.inputs, op.outputs, _loc(parts), parts))
    return True


def _is_clamp_of_layer(e: Editor, op: NetOp) -> bool:
    """A ReLU or Clip that its layer does for nothing, and whose narrower range is worth more than one table less."""
    if not isinstance(op, Activation) or op.kind not in ("relu", "clip"):
        return False
    found = e.writer(op.inputs[0])
    return found is not None and isinstance(found[1], Conv | Dense | Binary) and e.read_once(op.inputs[0])


def _loc(parts: tuple[NetOp, ...]) -> Loc:
    """The first and the last."""
    return parts[0].loc if parts[0].loc == parts[-1].loc else joined(parts[0].loc, parts[-1].loc)
