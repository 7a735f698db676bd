"""What a program executed: its basic blocks and its memory accesses, in order, recorded on a unicorn engine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

#: Bits of the program status register that hold the state of an IT block.
_IT_STATE = 0x0600_FC00


@dataclass(frozen=True, slots=True, eq=False)
class Execution:
    """One inference. ``blocks``: (address, bytes) in the order of execution; ``accesses``: (address, bytes, write) of
    data in the order of execution, independent of the blocks."""

    blocks: tuple[tuple[int, int], ...]
    accesses: tuple[tuple[int, int, bool], ...]


class Recorder:
    """Hooks on ``engine`` (a unicorn.Uc). ``take`` returns what was recorded since the last call of it."""

    def __init__(self, engine: Any) -> None:
        import unicorn  # noqa: PLC0415  an optional extra; who has an engine has it
        from unicorn import arm_const  # noqa: PLC0415

        self._engine = engine
        self._status = arm_const.UC_ARM_REG_CPSR
        self._write = unicorn.UC_MEM_WRITE
        self._blocks: list[tuple[int, int]] = []
        self._accesses: list[tuple[int, int, bool]] = []
        memory = unicorn.UC_HOOK_MEM_READ | unicorn.UC_HOOK_MEM_WRITE
        self._hooks = (
            engine.hook_add(unicorn.UC_HOOK_BLOCK, self._block),
            engine.hook_add(memory, self._access),
        )
        engine.ctl_flush_tb()  # code that was translated before has no hooks in it

    def _block(self, engine: Any, address: int, size: int, data: Any) -> None:
        self._blocks.append((address, size))

    def _access(self, engine: Any, kind: int, address: int, size: int, value: int, data: Any) -> None:
        self._accesses.append((address, size, kind == self._write))
        # Before it calls a memory hook, unicorn 2.1 brings the program counter up to date, and with it the state of
        # the IT block that the instruction stands in. Translated code has that state built in and never clears the
        # stored one, so that the next block would begin as if it were inside that IT block: clear it here.
        status = engine.reg_read(self._status)
        if status & _IT_STATE:
            engine.reg_write(self._status, status & ~_IT_STATE)

    def take(self) -> Execution:
        """What ran since the last call, or since the start."""
        found = Execution(tuple(self._blocks), tuple(self._accesses))
        self._blocks.clear()
        self._accesses.clear()
        return found

    def close(self) -> None:
        """Take the hooks away."""
        for hook in self._hooks:
            self._engine.hook_del(hook)
        self._engine.ctl_flush_tb()
