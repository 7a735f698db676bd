"""What an op is. A source op has a meaning in float; a machine op is one call of one C kernel."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from mcugen.core.types import Array, Loc, TensorType


@dataclass(frozen=True, slots=True, eq=False)
class Op(ABC):
    """Named inputs and outputs, and the place in the user's file that the op came from."""

    level: ClassVar[str]

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    loc: Loc

    @abstractmethod
    def check(self, types: Mapping[str, TensorType]) -> None:
        """Raise InternalError when the fields or the types of the operands break the spec of this op."""

    @abstractmethod
    def eval(self, *args: Array) -> tuple[Array, ...]:
        """The meaning: arrays with a leading batch axis to arrays with a leading batch axis."""


class SourceOp(Op):
    """What the user's model means, in floats: float64 for trees and filters, float32 for nets."""

    __slots__ = ()
    level = "source"


@dataclass(frozen=True, slots=True, eq=False)
class Item:
    """One object of the generated code that occupies memory.

    ``role`` is ``table`` (constant data), ``code`` or ``arena``. ``data`` holds the values of a table; its last axis
    is the fields of a struct where ``ctype`` is one. ``reads_per_run``: accesses in one inference, on average
    over the training profile. ``size`` is in bytes; for code it is an estimate. ``shared``: a function of the runtime,
    of which a program has one however many models call it.
    """

    symbol: str
    role: str
    ctype: str
    count: int
    size: int
    align: int
    reads_per_run: float
    about: str
    data: Array | None = None
    dma: bool = False
    shared: bool = False


@dataclass(frozen=True, slots=True)
class Cost:
    """Work of one inference: table reads, multiply-accumulates, and steps of the op's inner loop (mean, worst)."""

    reads: float
    macs: int
    steps: float
    worst_steps: int


@dataclass(frozen=True, slots=True)
class StateMember:
    """One member of NAME_state_t that an op keeps from one push to the next: ``ctype name`` or ``ctype name[count]``.

    ``count`` 0 means a scalar. ``size`` and ``align`` are in bytes, as the H743's compiler lays the member out.
    """

    name: str
    ctype: str
    count: int
    size: int
    align: int
    about: str


@dataclass(frozen=True, slots=True)
class Names:
    """How generated C reaches the items of a plan.

    ``table[symbol]`` is an expression of type ``const T *``; ``section[symbol]`` the section attribute of a function.
    ``scratch`` is a pointer to the op's scratch bytes, aligned to 8. ``state[member]`` is an lvalue of the
    caller's state, such as ``s->op3_ring``.
    """

    table: Mapping[str, str]
    section: Mapping[str, str]
    scratch: str = "NULL"
    state: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class OpText:
    """The C of one op.

    ``includes``: runtime headers of declarations; ``definitions``: what stands before NAME_run; ``call``: the
    statement inside it; ``trace``: the call that writes ``leaf``, where the op knows leaves. Of an op with state,
    ``init`` is the statement of NAME_init; the call of one that is not due at every push ends the push itself with
    ``return MCG_PENDING;``. ``rows``: the statement that does the op for ``n`` rows at once, at most ``block`` of them;
    an operand called v stands row after row in ``v_rows``.
    """

    includes: tuple[str, ...]
    definitions: str
    call: str
    trace: str = ""
    init: str = ""
    rows: str = ""


class MachineOp(Op):
    """One call of one C kernel. Everything about the op stands in its class."""

    __slots__ = ()
    level = "machine"

    #: The runtime function or template in runtime_c that the op calls, and the file it stands in.
    kernel: ClassVar[tuple[str, str]]

    #: True: the op's operands are small arrays on the stack, and the ops of a model share its prefix. False: operands
    #: live in the model's arena, and op i has a prefix of its own.
    on_stack: ClassVar[bool] = False

    @property
    def block(self) -> int:
        """Rows of a batch that the op takes at once, because that is faster than one by one; 1: it is not."""
        return 1

    def row_bytes(self, types: Mapping[str, TensorType]) -> int:
        """What each row of a block takes of the stack beside operands and results, of these types."""
        return 0

    @property
    def title(self) -> str:
        """What a profile calls it: its class, or the layers that it stands for."""
        return type(self).__name__

    @property
    def scratch_bytes(self) -> int:
        """Bytes of scratch memory that the kernel needs while it runs."""
        return 0

    @property
    def in_place(self) -> tuple[int, ...]:
        """Inputs whose memory the first output may take over, element by element as the kernel goes."""
        return ()

    @property
    def floor(self) -> float | None:
        """Instructions of one inference that the kernel's method takes at least: products, requantization, packing,
        without loops, borders and calls. None: not known."""
        return None

    @property
    def lag(self) -> int | None:
        """By how many bytes, or more, the first output must start before the first input to share its memory: the op
        reads on as it writes, and never what it has overwritten. None: it may not."""
        return None

    @property
    def state(self) -> tuple[StateMember, ...]:
        """What the op keeps between pushes. The leading axis of ``eval`` is then time, from a fresh state."""
        return ()

    def due(self, pushes: int) -> Array:
        """Which of the first ``pushes`` pushes from a fresh state give a result: (pushes,) bool.

        ``eval`` of an op that is not always due has one row for each push that is.
        """
        return np.ones(pushes, bool)

    @abstractmethod
    def items(self, prefix: str) -> tuple[Item, ...]:
        """Tables and code that the op needs; every symbol starts with ``prefix_``."""

    @abstractmethod
    def emit(self, prefix: str, args: tuple[str, ...], results: tuple[str, ...], names: Names) -> OpText:
        """The C. ``args`` and ``results`` are the C names of the operands (arrays) inside NAME_run."""

    def trace_items(self, prefix: str) -> tuple[Item, ...]:
        """Tables that exist with MCG_TRACE only, for proofs; they are not placed and not counted."""
        return ()

    @abstractmethod
    def cost(self) -> Cost:
        """Work of one inference."""


def op_prefixes(name: str, ops: tuple[MachineOp, ...]) -> tuple[str, ...]:
    """The prefix of each op's symbols in a model called ``name``."""
    return tuple(name if op.on_stack else f"{name}_{i}" for i, op in enumerate(ops))
