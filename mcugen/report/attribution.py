"""Which op a block belongs to, and how many instructions an op can take at worst."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise

from mcugen.emulate.elf import Elf
from mcugen.emulate.isa import Decoder
from mcugen.emulate.recorder import Execution

#: The functions of a model that are the call itself, behind its name; what else it has belongs to an op.
_CALL = ("run", "run_with", "run_batch", "push", "push_with", "init", "usable", "apart", "compute")

Block = tuple[int, int]
#: The blocks that one op executed in one inference, in order.
Run = tuple[Block, ...]


class Owners:
    """Blocks by op. ``functions``: the functions of each op; those of the call itself come last.

    A compiler adds suffixes to clones of a function (``.constprop.0``). What no op owns (helpers, the linker's
    veneers) belongs to whom it was called from.
    """

    def __init__(self, elf: Elf, functions: Sequence[tuple[str, ...]]) -> None:
        owner = {name: n for n, names in enumerate(functions) for name in names}
        self._count = len(functions)
        self._starts: list[int] = []
        self._places: list[tuple[int, int]] = []  # end of the function, its owner
        for symbol in elf.functions():
            n = owner.get(symbol.name.split(".")[0])
            if n is not None and symbol.size:
                self._starts.append(symbol.address)
                self._places.append((symbol.address + symbol.size, n))

    def split(self, executions: Sequence[Execution]) -> list[list[Run]]:
        """For each op, what it executed in each inference."""
        parts: list[list[Run]] = [[] for _ in range(self._count)]
        known: dict[int, int | None] = {}
        for execution in executions:
            runs: list[list[Block]] = [[] for _ in range(self._count)]
            current = self._count - 1
            for block in execution.blocks:
                address = block[0]
                if address not in known:
                    known[address] = self._owner(address)
                found = known[address]
                current = current if found is None else found
                runs[current].append(block)
            for part, run in zip(parts, runs, strict=True):
                part.append(tuple(run))
        return parts

    def _owner(self, address: int) -> int | None:
        i = bisect_right(self._starts, address) - 1
        return self._places[i][1] if i >= 0 and address < self._places[i][0] else None


class CallOrder:
    """Blocks by op for a model whose layers share kernels: the generated code calls one kernel a layer, in order.

    What runs between two stretches of the model's own code is one layer; its own code is the call itself.
    """

    def __init__(self, elf: Elf, name: str, layers: int) -> None:
        self._layers = layers
        names = {f"{name}_{part}" for part in _CALL}
        own = sorted((f.address, f.address + f.size) for f in elf.functions() if f.name.split(".")[0] in names)
        self._starts, self._ends = [a for a, _ in own], [b for _, b in own]

    def split(self, executions: Sequence[Execution]) -> list[list[Run]]:
        """For each layer, and last for the call itself, what it executed in each inference."""
        parts: list[list[Run]] = [[] for _ in range(self._layers + 1)]
        for execution in executions:
            runs: list[list[Block]] = [[] for _ in range(self._layers + 1)]
            layer, inside = -1, True
            for block in execution.blocks:
                own = self._is_own(block[0])
                if inside and not own:
                    layer += 1
                inside = own
                runs[self._layers if own else min(max(layer, 0), self._layers - 1)].append(block)
            for part, run in zip(parts, runs, strict=True):
                part.append(tuple(run))
        return parts

    def _is_own(self, address: int) -> bool:
        i = bisect_right(self._starts, address) - 1
        return i >= 0 and address < self._ends[i]


class CallNames:
    """Blocks by op for a model with state, whose ops call several functions each, or one for each channel.

    ``calls``: by op, the functions that its text names and how often, see ``calls_of``. A call belongs to the op at
    hand if that names the function, and from no more places than the text has; otherwise to the next op that names it.
    """

    def __init__(self, elf: Elf, name: str, calls: Sequence[Counter[str]]) -> None:
        self._calls = calls
        own = {f"{name}_{part}" for part in _CALL}
        known = {n for c in calls for n in c}
        names = [(f, f.name.split(".")[0]) for f in elf.functions()]
        self._own = sorted((f.address, f.address + f.size) for f, base in names if base in own)
        self._starts = [a for a, _ in self._own]
        self._entries = {f.address: base for f, base in names if base in known and base not in own}

    def split(self, executions: Sequence[Execution]) -> list[list[Run]]:
        """For each op, and last for the call itself, what it executed in each inference."""
        parts: list[list[Run]] = [[] for _ in range(len(self._calls) + 1)]
        for execution in executions:
            for part, run in zip(parts, self._one(execution), strict=True):
                part.append(tuple(run))
        return parts

    def _one(self, execution: Execution) -> list[list[Block]]:
        runs: list[list[Block]] = [[] for _ in range(len(self._calls) + 1)]
        op, site, entering = 0, 0, False
        places: dict[str, set[int]] = {}
        before: list[Block] = []  # a veneer of the linker, in front of the function
        for block in execution.blocks:
            if self._is_own(block[0]):
                runs[-1].append(block)
                site, entering = block[0], True
                continue
            before.append(block)
            if entering and block[0] in self._entries:
                op, entering = self._op_of(self._entries[block[0]], op, site, places), False
            if not entering:
                runs[op] += before
                before = []
        runs[op] += before
        return runs

    def _op_of(self, function: str, op: int, site: int, places: dict[str, set[int]]) -> int:
        """The op that calls ``function`` from ``site``; ``places``: from where the op at hand, ``op``, called what."""
        found = places.setdefault(function, set())
        if site in found or len(found) < self._calls[op][function]:
            found.add(site)
            return op
        later = (i for i in range(op + 1, len(self._calls)) if self._calls[i][function])
        following = next(later, None)
        if following is None:
            return op
        places.clear()
        places[function] = {site}
        return following

    def _is_own(self, address: int) -> bool:
        i = bisect_right(self._starts, address) - 1
        return i >= 0 and address < self._own[i][1]


def worst_case(runs: Sequence[Run], decoder: Decoder, worst_steps: int) -> int | None:
    """Instructions that no input exceeds, if the op's inner loop makes at most ``worst_steps`` steps.

    A step is taken to cost the longest way round the loop that was seen; the rest of the op what it cost at most.
    Without a loop: the most that was seen, if that is always the same. None where neither helps.
    """
    sizes = {block: len(decoder.block(*block)) for run in runs for block in run}
    totals = [sum(sizes[b] for b in run) for run in runs]
    if min(totals) == max(totals):
        return totals[0]
    counts = [Counter(run) for run in runs]
    most = sum(counts, Counter())
    # Blocks of the loops around the inner one, and outside: executed equally often in every inference.
    fixed = {b for b in most if len({c[b] for c in counts}) == 1}
    varying = [b for b in most if b not in fixed]
    head = max(varying, key=lambda b: (most[b], b))
    inner = [[t for t in _trips(run, head) if not fixed.intersection(t)] for run in runs]
    if worst_steps <= 0 or not any(inner):
        return None
    step = max(sum(sizes[b] for b in trip) for trips in inner for trip in trips)
    rest = max(total - step * len(trips) for total, trips in zip(totals, inner, strict=True))
    return max(rest + step * worst_steps, *totals)


def _trips(run: Run, head: Block) -> Iterator[Run]:
    """The ways from ``head`` round to ``head`` again."""
    at = [i for i, block in enumerate(run) if block == head]
    for i, j in pairwise(at):
        yield run[i:j]
