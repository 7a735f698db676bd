"""What the emitters of both kinds of models share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mcugen.core.op import MachineOp, OpText
from mcugen.core.stream import StateLayout, rhythm
from mcugen.core.types import DType, Model
from mcugen.ctext.comments import comment_text
from mcugen.errors import InternalError

#: Raised when generated files and runtime files of different versions must not be mixed; the same as in mcg.h.
ABI = 1


def machine_ops(model: Model) -> tuple[MachineOp, ...]:
    """The ops of a machine model, typed."""
    ops = tuple(op for op in model.ops if isinstance(op, MachineOp))
    if len(ops) != len(model.ops):
        raise InternalError(model.name, "a source op has not been lowered")
    return ops


def size_assertions(model: Model) -> list[str]:
    """Assumptions of the generator that the C compiler checks again."""
    lines = []
    for value in (model.inputs[0], model.outputs[0]):
        dtype = model.types[value].dtype
        lines.append(f'_Static_assert(sizeof({dtype.ctype}) == {dtype.size}, "{dtype.ctype} has another size here");')
    return sorted(set(lines))


@dataclass(frozen=True, slots=True)
class StateText:
    """What stands in the C of a model with state: the members of NAME_state_t with their comments, the headers that
    their types need, the statements of NAME_init, assertions on the layout, and the rhythm in words."""

    members: tuple[str, ...]
    includes: tuple[str, ...]
    init: tuple[str, ...]
    assertions: tuple[str, ...]
    size: int
    rhythm: str


def state_text(model: Model, layout: StateLayout, ops: tuple[MachineOp, ...], texts: Sequence[OpText]) -> StateText:
    """The C of the state; ``texts``: that of each op."""
    known = {t.ctype for t in DType} | {"int64_t", "uint64_t"}
    members, includes = [], set()
    for f in layout.fields:
        m = f.member
        size = f"[{m.count}]" if m.count else ""
        members.append(f"{m.ctype} {f.symbol}{size}; /* {comment_text(m.about)} */")
        if m.ctype not in known:
            includes |= set(texts[f.index].includes)
    init = tuple(t.init for t in texts if t.init)
    for op, text in zip(ops, texts, strict=True):
        if bool(op.state) != bool(text.init):
            raise InternalError(str(op.loc), f"{type(op).__name__} has state without init, or init without state")
    struct = f"{model.name}_state_t"
    assertions = [
        f'_Static_assert(offsetof({struct}, {f.symbol}) == {f.offset}u, "{f.symbol} lies elsewhere");'
        for f in layout.fields
    ]
    assertions.append(
        f'_Static_assert(sizeof({struct}) == {model.name.upper()}_STATE_BYTES, "the state has another size here");'
    )
    return StateText(tuple(members), tuple(sorted(includes)), init, tuple(assertions), layout.size, rhythm(ops).text())
