"""Models with state: which pushes give a result, what they give, and where the state's members lie.

A push is one call of NAME_push with one sample. The ops run in order until one of them is not due: that ends the push
with MCG_PENDING, so that an op sees only the pushes at which all ops before it were due.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from mcugen.core.op import MachineOp, StateMember
from mcugen.core.passes import evaluate
from mcugen.core.types import Array, Model
from mcugen.errors import InternalError

#: MCG_OK and MCG_PENDING of mcg.h.
OK, PENDING = 0, 1
#: Pushes that are searched for the rhythm of a model.
_MOST_PUSHES = 1 << 20


def has_state(ops: Sequence[MachineOp]) -> bool:
    """Whether a model of these ops is called by NAME_init and NAME_push instead of NAME_run."""
    return any(op.state for op in ops)


def due_mask(ops: Sequence[MachineOp], pushes: int) -> Array:
    """Which of the first ``pushes`` pushes from a fresh state reach the end of ``ops``: (pushes,) bool."""
    reached = np.arange(pushes)
    for op in ops:
        if op.state:
            reached = reached[_own_mask(op, len(reached))]
    mask = np.zeros(pushes, np.bool_)
    mask[reached] = True
    return mask


def _own_mask(op: MachineOp, pushes: int) -> Array:
    mask = op.due(pushes)
    if mask.shape != (pushes,) or mask.dtype != np.bool_:
        raise InternalError(str(op.loc), f"due() of {type(op).__name__} is {mask.dtype} {mask.shape}")
    return mask


def statuses(ops: Sequence[MachineOp], pushes: int) -> Array:
    """What NAME_push returns at each of the first ``pushes`` pushes: (pushes,) int32, OK or PENDING."""
    return np.where(due_mask(ops, pushes), OK, PENDING).astype(np.int32)


def spread_rows(rows: Array, status: Array) -> Array:
    """Rows of the due pushes (D, ...) to a row for every push (T, ...), with zeros where nothing is due."""
    if len(rows) != int(np.count_nonzero(status == OK)):
        raise InternalError("stream", f"{len(rows)} rows for {np.count_nonzero(status == OK)} pushes that are due")
    dense = np.zeros((len(status), *rows.shape[1:]), rows.dtype)
    dense[status == OK] = rows
    return dense


@dataclass(frozen=True, slots=True)
class Rhythm:
    """``first``: the push (from 1) that gives the first result; ``every``: pushes from one result to the next.

    ``every`` is None where the distance varies, ``first`` None where no result came in a million pushes.
    """

    first: int | None
    every: int | None

    def text(self) -> str:
        """In words."""
        if self.first is None:
            return "no result within a million pushes"
        if self.every is None:
            return f"results at varying distances, the first at push {self.first:,}"
        often = "a result at every push" if self.every == 1 else f"a result every {self.every:,} pushes"
        return often if self.first == self.every == 1 else f"{often}, the first at push {self.first:,}"


def rhythm(ops: Sequence[MachineOp]) -> Rhythm:
    """When results come, by trying: at least three of them are looked at."""
    pushes = 64
    due = np.flatnonzero(due_mask(ops, pushes))
    while len(due) < 3 and pushes < _MOST_PUSHES:
        pushes *= 4
        due = np.flatnonzero(due_mask(ops, pushes))
    if not len(due):
        return Rhythm(None, None)
    steps = np.unique(np.diff(due))
    return Rhythm(int(due[0]) + 1, int(steps[0]) if len(steps) == 1 else None)


@dataclass(frozen=True, slots=True)
class Field:
    """A member of NAME_state_t: ``op<i>_<member>`` of op ``index``, at byte ``offset``."""

    symbol: str
    index: int
    member: StateMember
    offset: int


@dataclass(frozen=True, slots=True)
class StateLayout:
    """NAME_state_t as the compiler lays it out: members in the order of the ops; ``size`` bytes with the end's gap."""

    fields: tuple[Field, ...]
    size: int
    align: int

    def names(self, index: int, state: str) -> Mapping[str, str]:
        """Member -> lvalue for op ``index``; ``state``: the C name of the pointer to the state."""
        return {f.member.name: f"{state}->{f.symbol}" for f in self.fields if f.index == index}


def state_layout(ops: Sequence[MachineOp]) -> StateLayout | None:
    """The layout of the state; None if no op has any. InternalError for members that can't be."""
    fields: list[Field] = []
    at, align = 0, 1
    for i, op in enumerate(ops):
        for m in op.state:
            if m.size <= 0 or m.align not in (1, 2, 4, 8) or m.size % m.align or m.count < 0:
                raise InternalError(str(op.loc), f"state member {m.name}: {m.size} bytes aligned to {m.align}")
            at += -at % m.align
            fields.append(Field(f"op{i}_{m.name}", i, m, at))
            at, align = at + m.size, max(align, m.align)
    if not fields:
        return None
    if len({f.symbol for f in fields}) != len(fields):
        raise InternalError("state", "two members have one name")
    return StateLayout(tuple(fields), at + -at % align, align)


def respond(model: Model, inputs: Mapping[str, Array]) -> tuple[tuple[Array, ...], Array]:
    """What calls of a machine model give: each output with a row for every call, and the statuses (calls,) int32.

    Calls of a model with state are the pushes of one run from a fresh state; outputs of pushes that are not due are
    zeros.
    """
    ops = tuple(op for op in model.ops if isinstance(op, MachineOp))
    values = evaluate(model, inputs)
    status = statuses(ops, len(inputs[model.inputs[0]]))
    return tuple(spread_rows(values[v], status) for v in model.outputs), status
