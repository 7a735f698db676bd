"""An estimate of cycles from what was executed: a range, and what it assumes. Estimated, not measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from mcugen.emulate.caches import Cache, Predictor
from mcugen.emulate.isa import Decoder, Instruction, Jump
from mcugen.emulate.pipeline import HIGH, LOW, START, Pipeline, Rules
from mcugen.emulate.recorder import Execution
from mcugen.target.board import Board, Region

WORDS = "estimated, not measured"

_INSTRUCTION_WAYS, _DATA_WAYS = 2, 4
_MISS_LOW, _MISS_HIGH = 4, 8
_BRANCHES_HIGH = 64
_DOUBT = 0.3
_PAGE_BITS = 12
_FETCH_BYTES = 8


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


def estimate(executions: Sequence[Execution], decoder: Decoder, board: Board) -> CycleEstimate:
    """The range for these inferences, in their order, on a core at ``board.core.clock_hz``.

    Low: caches and predictor know the earlier inferences. High: both are empty before each inference.
    """
    low, high = _Side(LOW, decoder, board, cold=False), _Side(HIGH, decoder, board, cold=True)
    if executions:
        low.run(executions[-1])  # warms what the first inference finds
    lows, highs = low.all(executions), high.all(executions)
    n = max(len(executions), 1)
    return CycleEstimate(
        low=sum(lows) / n,
        high=sum(highs) / n,
        worst=max(highs, default=0.0),
        low_detail=low.detail(n),
        high_detail=high.detail(n),
        assumptions=_assumptions(board),
    )


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


@dataclass(frozen=True, slots=True)
class _Block:
    """What a block costs beside its instructions. ``lines``: cache lines to fetch, ``fill`` a miss, ``wait`` always."""

    lines: tuple[int, ...]
    fill: float
    wait: float
    last: Instruction


class _Side:
    """One end of the range: rules, caches and predictor with their state."""

    def __init__(self, rules: Rules, decoder: Decoder, board: Board, cold: bool) -> None:
        core = board.core
        self.cold = cold
        self.decoder = decoder
        self.pipeline = Pipeline(rules, decoder)
        self.predictor = Predictor(_BRANCHES_HIGH if cold else 0)
        self.instructions = Cache(core.instruction_cache, core.cache_line, _INSTRUCTION_WAYS)
        self.data = Cache(core.data_cache, core.cache_line, _DATA_WAYS)
        self.penalty = _MISS_HIGH if cold else _MISS_LOW
        self.scale = 1 + _DOUBT if cold else 1 - _DOUBT
        self.regions = {page: r for r in board.regions for page in range(r.base >> _PAGE_BITS, r.end >> _PAGE_BITS)}
        self.blocks: dict[tuple[int, int], _Block] = {}
        self.issue = self.memory = 0.0

    def all(self, executions: Sequence[Execution]) -> list[float]:
        """Cycles of each; counts begin here."""
        self.issue = self.memory = 0.0
        self.predictor.misses = self.instructions.misses = self.data.misses = 0
        return [self.run(e) for e in executions]

    def detail(self, n: int) -> Detail:
        misses = (self.predictor.misses, self.instructions.misses, self.data.misses)
        return Detail(self.issue / n, self.memory / n, *(m / n for m in misses))

    def run(self, execution: Execution) -> float:
        """Cycles of one inference."""
        if self.cold:
            for part in (self.predictor, self.instructions, self.data):
                part.clear()
        issue = self._issue(execution)
        memory = self._fetch(execution) + self._access(execution)
        self.issue += issue
        self.memory += memory
        return issue + memory

    def _issue(self, execution: Execution) -> float:
        """Cycles of the pipeline, mispredicted branches included."""
        state, total = START, 1
        for (address, size), (following, _) in pairwise((*execution.blocks, (0, 0))):
            cycles, state = self.pipeline.block(address, size, state)
            total += cycles
            if not following:
                break
            last = self._block((address, size)).last
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

    def _fetch(self, execution: Execution) -> float:
        """Cycles that the memories of the code add."""
        touch, total = self.instructions.touch, 0.0
        for key in execution.blocks:
            block = self._block(key)
            total += block.wait
            for line in block.lines:
                if not touch(line):
                    total += block.fill
        return total

    def _access(self, execution: Execution) -> float:
        """Cycles that the memories of the data add. A store waits at the high end only: there is a store buffer."""
        line, total = self.data.line, 0.0
        for address, size, write in execution.accesses:
            region = self.regions.get(address >> _PAGE_BITS)
            if region is None or not (region.fill or region.wait):
                continue
            wanted = 0.0 if write and not self.cold else self.scale
            if not region.cached or not self.data.size:
                total += region.wait * wanted
                continue
            for number in range(address // line, (address + size - 1) // line + 1):
                if not self.data.touch(number):
                    total += region.fill * wanted
        return total

    def _block(self, key: tuple[int, int]) -> _Block:
        found = self.blocks.get(key)
        if found is None:
            address, size = key
            region = self.regions.get(address >> _PAGE_BITS)
            found = self.blocks[key] = _Block(
                *self._lines(region, address, size), self.decoder.block(address, size)[-1]
            )
        return found

    def _lines(self, region: Region | None, address: int, size: int) -> tuple[tuple[int, ...], float, float]:
        if region is None:
            return (), 0.0, 0.0
        if region.cached and self.instructions.size:
            line = self.instructions.line
            return tuple(range(address // line, (address + size - 1) // line + 1)), region.fill * self.scale, 0.0
        return (), 0.0, region.wait * self.scale * -(-size // _FETCH_BYTES)
