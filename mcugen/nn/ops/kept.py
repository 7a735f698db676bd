"""The state of recurrent layers that take one step a push: one array, the kernel's, and its first content."""

from __future__ import annotations

from dataclasses import replace

from mcugen.core.op import MachineOp, Names, OpText, StateMember
from mcugen.errors import InternalError

_MEMBER = "kept"


def kept_state(ctype: str, words: int, about: str) -> tuple[StateMember, ...]:
    """The only member: an array of 4-byte words."""
    return (StateMember(_MEMBER, ctype, words, 4 * words, 4, about),)


def kept_in(names: Names) -> str:
    """The lvalue of the array."""
    return names.state[_MEMBER]


def init_text(op: MachineOp, text: OpText, start: str | None, names: Names) -> OpText:
    """``text`` with the statement that copies the table ``start`` into the array, or fills it with zeros."""
    (member,) = op.state
    zero = "0.0f" if member.ctype == "float" else "0"
    value = zero if start is None else f"({start})[i]"
    loop = f"for (uint32_t i = 0; i < {member.count}u; ++i) {{\n    {kept_in(names)}[i] = {value};\n}}"
    return replace(text, init=loop)


def require_one_step(op: MachineOp, steps: int) -> None:
    """InternalError unless ``steps`` is 1."""
    if steps != 1:
        raise InternalError(str(op.loc), f"{type(op).__name__}: {steps} steps, expected 1")
