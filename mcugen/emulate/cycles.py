"""An estimate of cycles from what was executed: a range, and what it assumes. Estimated, not measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from mcugen.core.types import Array
from mcugen.emulate.caches import Predictor
from mcugen.emulate.isa import Decoder, Instruction, Jump
from mcugen.emulate.memories import Added, Memories, Move
from mcugen.emulate.pipeline import HIGH, LOW, START, Pipeline, Rules
from mcugen.emulate.recorder import Execution
from mcugen.target.board import Board

WORDS = "estimated, not measured"

_MISS_LOW, _MISS_HIGH = 4, 8
_BRANCHES_HIGH = 64
_DOUBT = 0.3


@dataclass(frozen=True, slots=True)
class Detail:
    """Means over the inferences of one side of the range: cycles of the pipeline alone, cycles that memories add, and
    what was missed."""

    pipeline: float
    memory: float
    mispredicted: float
    instruction_misses: float
    data_misses: float


@dataclass(frozen=True, slots=True)
class CycleEstimate:
    """Cycles of one inference. ``low`` and ``high``: the range of the mean over the inferences; ``worst``: the upper
    end of the slowest inference. ``assumptions``: sentences for the user."""

    low: float
    high: float
    worst: float
    low_detail: Detail
    high_detail: Detail
    assumptions: tuple[str, ...]


def estimate(
    executions: Sequence[Execution], decoder: Decoder, board: Board, memories: Memories | None = None
) -> CycleEstimate:
    """The range for these inferences, in their order, on a core at ``board.core.clock_hz``. ``memories``: those of the
    executions, where they are known already.

    Low: caches and predictor know the earlier inferences. High: both are empty before each inference.
    """
    memories = memories or Memories(executions, board)
    low, high = (_Side(rules, decoder, cold) for rules, cold in ((LOW, False), (HIGH, True)))
    if executions:
        low.run(executions[-1])  # warms what the first inference finds
    n = max(len(executions), 1)
    ends, details = [], []
    for side in (low, high):
        issue = side.all(executions)
        fetch, access = added(memories, side.cold)
        stalls = fetch.cycles + access.cycles
        misses = (side.predictor.misses, fetch.misses, access.misses)
        details.append(Detail(float(issue.sum()) / n, float(stalls.sum()) / n, *(m / n for m in misses)))
        ends.append(issue + stalls)
    return CycleEstimate(
        low=float(ends[0].sum()) / n,
        high=float(ends[1].sum()) / n,
        worst=float(max(ends[1], default=0.0)),
        low_detail=details[0],
        high_detail=details[1],
        assumptions=_assumptions(board),
    )


def added(memories: Memories, cold: bool, moves: Sequence[Move] = ()) -> tuple[Added, Added]:
    """What memories add at one end of the range, by fetches and by accesses. A store waits at the high end only: there
    is a store buffer."""
    scale = 1 + _DOUBT if cold else 1 - _DOUBT
    return memories.fetch(scale, cold, moves), memories.access(scale, scale if cold else 0.0, cold, moves)


def _assumptions(board: Board) -> tuple[str, ...]:
    core = board.core
    fills = ", ".join(f"{r.name} {r.fill:g}" for r in board.regions if r.cached)
    return (
        f"{WORDS}: a model of the {core.name} built from public observations, checked on short loops only",
        "low: caches and branch predictor know the earlier inferences, dependent instructions issue together,"
        f" {_MISS_LOW} cycles a mispredicted branch",
        "high: caches and predictor are empty before each inference, no pairing that needs luck,"
        f" {_MISS_HIGH} cycles a mispredicted branch, {_BRANCHES_HIGH} branches remembered",
        f"caches of {core.instruction_cache:,} and {core.data_cache:,} bytes, lines of {core.cache_line}; cycles of a"
        f" line fill: {fills} (estimates of the board file, less or more {_DOUBT:.0%})",
        "no interrupts, no other bus master, no code between two inferences",
    )


class _Side:
    """One end of the range: rules and predictor with its state."""

    def __init__(self, rules: Rules, decoder: Decoder, cold: bool) -> None:
        self.cold = cold
        self.decoder = decoder
        self.pipeline = Pipeline(rules, decoder)
        self.predictor = Predictor(_BRANCHES_HIGH if cold else 0)
        self.penalty = _MISS_HIGH if cold else _MISS_LOW
        self.lasts: dict[tuple[int, int], Instruction] = {}

    def all(self, executions: Sequence[Execution]) -> Array:
        """Cycles of each, (n,); counts begin here."""
        self.predictor.misses = 0
        return np.array([self.run(e) for e in executions], np.float64)

    def run(self, execution: Execution) -> int:
        """Cycles of the pipeline in one inference, mispredicted branches included."""
        if self.cold:
            self.predictor.clear()
        state, total = START, 1
        for (address, size), (following, _) in pairwise((*execution.blocks, (0, 0))):
            cycles, state = self.pipeline.block(address, size, state)
            total += cycles
            if not following:
                break
            last = self._last((address, size))
            taken = following != address + size
            if last.jump is not Jump.NONE and not self._predicted(last, following, taken):
                total += 1 + self.penalty
                state = START
            elif taken:
                cycles, state = self.pipeline.after_taken(state)
                total += cycles
        return total

    def _predicted(self, last: Instruction, following: int, taken: bool) -> bool:
        if last.conditional:
            return self.predictor.branch(last.address, following if taken else last.target, taken)
        if last.jump is Jump.INDIRECT or (last.jump is Jump.RETURN and self.cold):
            return self.predictor.indirect(last.address, following)
        return True

    def _last(self, block: tuple[int, int]) -> Instruction:
        """The last instruction of a block."""
        found = self.lasts.get(block)
        if found is None:
            found = self.lasts[block] = self.decoder.block(*block)[-1]
        return found
