"""What a program executed: its basic blocks and its memory accesses, in order, recorded on a unicorn engine."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mcugen.core.types import Array

#: Bits of the program status register that hold the state of an IT block.
_IT_STATE = 0x0600_FC00


_SIZE_BITS, _STORE_BITS = 8, 1


class Accesses:
    """Accesses of data, (address, bytes, write), in eight bytes each: a net makes millions."""

    def __init__(self, packed: array[int]) -> None:
        self.packed = packed

    def __len__(self) -> int:
        return len(self.packed)

    def __iter__(self) -> Iterator[tuple[int, int, bool]]:
        for a in self.packed:
            yield a >> _SIZE_BITS, (a & 0xFF) >> _STORE_BITS, bool(a & 1)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Accesses) and self.packed == other.packed

    __hash__ = None  # type: ignore[assignment]


def access_arrays(accesses: Accesses | Sequence[tuple[int, int, bool]]) -> tuple[Array, Array, Array]:
    """Addresses, bytes and whether it is a store, (n,) each."""
    if isinstance(accesses, Accesses):
        packed = np.array(accesses.packed, np.int64)
        return packed >> _SIZE_BITS, (packed & 0xFF) >> _STORE_BITS, packed & 1
    whole = np.array(accesses, np.int64).reshape(-1, 3)
    return whole[:, 0], whole[:, 1], whole[:, 2]


@dataclass(frozen=True, slots=True, eq=False)
class Execution:
    """One inference. ``blocks``: (address, bytes) in the order of execution; ``accesses``: (address, bytes, write) of
    data in the order of execution, independent of the blocks."""

    blocks: tuple[tuple[int, int], ...]
    accesses: Accesses | tuple[tuple[int, int, bool], ...]


class Recorder:
    """Hooks on ``engine`` (a unicorn.Uc). ``take`` returns what was recorded since the last call of it."""

    def __init__(self, engine: Any) -> None:
        import unicorn  # noqa: PLC0415  an optional extra; who has an engine has it
        from unicorn import arm_const  # noqa: PLC0415

        self._engine = engine
        self._status = arm_const.UC_ARM_REG_CPSR
        self._write = unicorn.UC_MEM_WRITE
        self._blocks: list[tuple[int, int]] = []
        self._accesses = array("Q")
        self._known: dict[tuple[int, int], tuple[int, int]] = {}
        memory = unicorn.UC_HOOK_MEM_READ | unicorn.UC_HOOK_MEM_WRITE
        self._hooks = (
            engine.hook_add(unicorn.UC_HOOK_BLOCK, self._block),
            engine.hook_add(memory, self._access),
        )
        engine.ctl_flush_tb()  # code that was translated before has no hooks in it

    def _block(self, engine: Any, address: int, size: int, data: Any) -> None:
        block = (address, size)
        self._blocks.append(self._known.setdefault(block, block))  # one object a block, however often it runs

    def _access(self, engine: Any, kind: int, address: int, size: int, value: int, data: Any) -> None:
        self._accesses.append(address << _SIZE_BITS | size << _STORE_BITS | (kind == self._write))
        # Before it calls a memory hook, unicorn 2.1 brings the program counter up to date, and with it the state of
        # the IT block that the instruction stands in. Translated code has that state built in and never clears the
        # stored one, so that the next block would begin as if it were inside that IT block: clear it here.
        status = engine.reg_read(self._status)
        if status & _IT_STATE:
            engine.reg_write(self._status, status & ~_IT_STATE)

    def take(self) -> Execution:
        """What ran since the last call, or since the start."""
        found = Execution(tuple(self._blocks), Accesses(self._accesses))
        self._blocks.clear()
        self._accesses = array("Q")
        return found

    def close(self) -> None:
        """Take the hooks away."""
        for hook in self._hooks:
            self._engine.hook_del(hook)
        self._engine.ctl_flush_tb()
