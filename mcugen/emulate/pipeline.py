"""Issue of a Cortex-M7: in order, at most two instructions a cycle. An estimate, not a measurement.

What it stands on, all of it public and none of it from the maker of the core:

- LLVM's ``ARMScheduleM7.td``: units, and most latencies.
- The pipeline analysis of the cortex-m7 in a collection of cycle tests for in-order cores, measured on a STM32H743
  revision Y: an early and a late ALU, so that a dependent pair can issue together; words from memory reach the late
  ALU in the next cycle and the early one a cycle after; bytes and halfwords take one more.

Two sets of rules stand for the doubt: LOW believes every favourable observation, HIGH none that needs luck with
alignment or pairing. Dependencies are carried from block to block.
"""

from __future__ import annotations

from dataclasses import dataclass

from mcugen.emulate.isa import FLAGS, FP_BASE, Decoder, Instruction, Kind

#: Results by kind: cycles until a result can be used, then cycles before the unit takes the next of its kind.
_Timing = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Rules:
    """One side of the doubt.

    ``forward``: the late ALU takes a result of the early ALU in the same cycle. ``word``: cycles until the late ALU
    can use a loaded word. ``loads``: loads a cycle. ``taken``: cycles lost at a taken branch that was predicted.
    ``crosses``: an instruction at the destination can issue together with the branch. ``divide``, ``fp_divide``,
    ``fp_root``: cycles a division occupies; ``locks``: it stops the integer side as well.
    """

    forward: bool
    word: int
    loads: int
    taken: int
    crosses: bool
    divide: int
    fp_divide: int
    fp_root: int
    locks: bool
    double_add: _Timing
    double_mul: _Timing
    double_mac: _Timing


LOW = Rules(
    forward=True,
    word=1,
    loads=2,
    taken=0,
    crosses=True,
    divide=6,
    fp_divide=13,
    fp_root=13,
    locks=False,
    double_add=(3, 1),
    double_mul=(4, 4),
    double_mac=(7, 6),
)
HIGH = Rules(
    forward=False,
    word=2,
    loads=1,
    taken=1,
    crosses=False,
    divide=12,
    fp_divide=16,
    fp_root=16,
    locks=True,
    double_add=(4, 2),
    double_mul=(7, 5),
    double_mac=(11, 8),
)

_DOUBLE_DIVIDE = 30
_ADDRESS, _NARROW, _MAC, _FP, _FP_ACCUMULATE, _FP_MAC = 2, 1, 2, 3, 3, 6
_SYSTEM_CYCLES = 4

#: What cannot issue together: kinds that share something of which there is one.
_SINGLE: dict[Kind, tuple[str, ...]] = {
    Kind.SHIFTED: ("shifter",),
    Kind.BITS: ("bits", "shifter"),
    Kind.MAC: ("mac", "store"),
    Kind.DIV: ("mac",),
    Kind.STORE: ("store",),
    Kind.BRANCH: ("branch",),
    Kind.FP_ADD: ("fp",),
    Kind.FP_MUL: ("fp",),
    Kind.FP_MAC: ("fp",),
    Kind.FP_DIV: ("fp",),
    Kind.FP_COMPARE: ("fp",),
    Kind.FP_MOVE: ("fp",),
    Kind.FP_CORE: ("fp",),
}
_BIT = {name: 1 << n for n, name in enumerate(("shifter", "bits", "mac", "store", "branch", "fp"))}
_UNITS = {k: sum(_BIT[u] for u in _SINGLE.get(k, ())) for k in Kind}
_ALONE = frozenset({Kind.MULTIPLE, Kind.SYSTEM})
_FLOAT = frozenset({Kind.FP_ADD, Kind.FP_MUL, Kind.FP_MAC, Kind.FP_DIV, Kind.FP_COMPARE})
_EARLY_RESULT = frozenset({Kind.SIMPLE, Kind.SHIFT})

#: What is under way at a block's end, relative to the cycle of its last instruction: slots taken, units taken, loads
#: issued, cycles until the FPU is free, then (register, late, early) of results still to come.
State = tuple[int, int, int, int, tuple[tuple[int, int, int], ...]]
START: State = (0, 0, 0, 0, ())


class Pipeline:
    """Cycles of blocks under one set of rules. Results are remembered by block and state."""

    def __init__(self, rules: Rules, decoder: Decoder) -> None:
        self.rules = rules
        self._decoder = decoder
        self._known: dict[tuple[int, int, State], tuple[int, State]] = {}

    def block(self, address: int, size: int, state: State) -> tuple[int, State]:
        """Cycles from the last instruction before the block to the last of it, and the state after."""
        key = (address, size, state)
        found = self._known.get(key)
        if found is None:
            issue = _Issue(self.rules, state)
            for instruction in self._decoder.block(address, size):
                issue.add(instruction)
            found = self._known[key] = (issue.now, issue.state())
        return found

    def after_taken(self, state: State) -> tuple[int, State]:
        """Cycles lost at a taken branch that was predicted, and the state then."""
        if self.rules.crosses:
            return 0, state
        lost = 1 + self.rules.taken
        return lost, _later(state, lost)


def _later(state: State, cycles: int) -> State:
    """``state``, seen ``cycles`` later."""
    pending = tuple((r, late - cycles, early - cycles) for r, late, early in state[4] if max(late, early) > cycles)
    return 0, 0, 0, max(0, state[3] - cycles), pending


class _Issue:
    """The cycle that is being filled. Times are relative to the start of the block."""

    def __init__(self, rules: Rules, state: State) -> None:
        self.rules = rules
        self.now = 0
        self.slots, self.units, self.loads, self.fp_free, pending = state
        self.late = {r: late for r, late, _ in pending}
        self.early = {r: early for r, _, early in pending}

    def state(self) -> State:
        pending = []
        for r, late in self.late.items():
            relative = (late - self.now, self.early[r] - self.now)
            if max(relative) > 0:
                pending.append((r, *relative))
        return self.slots, self.units, self.loads, max(0, self.fp_free - self.now), tuple(sorted(pending))

    def add(self, i: Instruction) -> None:
        self._wait(self._ready(i))
        units, loads = _UNITS[i.kind], i.loads if i.kind is Kind.LOAD else 0
        alone = i.kind in _ALONE
        full = self.slots >= 2 or self.units & units or self.loads + loads > self.rules.loads
        if full or (self.slots and (alone or i.kind is Kind.BITS)):
            self._wait(self.now + 1)
        if alone:  # the last cycle of several is the one that the next instruction follows
            self.now += (i.moved + 1) // 2 - 1 if i.kind is Kind.MULTIPLE else _SYSTEM_CYCLES - 1
            self.slots = 1
        self._results(i)
        self.slots += 1
        self.units |= units
        self.loads += loads
        if i.kind is Kind.DIV or (i.kind is Kind.FP_DIV and self.rules.locks):
            self._wait(self.now + self._divide(i) - 1)
            self.slots = 2

    def _wait(self, until: int) -> None:
        if until > self.now:
            self.now, self.slots, self.units, self.loads = until, 0, 0, 0

    def _ready(self, i: Instruction) -> int:
        late, early, at = self.late, self.early, self.now
        for r in i.early:
            at = max(at, early.get(r, 0))
        for r in i.late:
            if r != FLAGS or i.kind is not Kind.BRANCH or not self.rules.forward:  # a predicted branch does not wait
                at = max(at, late.get(r, 0))
        for r in i.last:  # "early" of a float register is when an accumulation can take it
            at = max(at, early.get(r, 0) if i.kind is Kind.FP_MAC else late.get(r, 0) - 1)
        if i.kind in _FLOAT:
            at = max(at, self.fp_free)
        return at

    def _results(self, i: Instruction) -> None:
        late, early = self._latency(i)
        for r in i.writes:
            self.late[r], self.early[r] = self.now + late, self.now + early
            if r == FLAGS and late == 0:  # flags do not pass from the early ALU to the late one in the same cycle
                self.late[r] = self.now + 1
        for r in i.based:
            self.late[r] = self.early[r] = self.now + 1
        if i.kind in _FLOAT:
            self.fp_free = self.now + self._busy(i)

    def _latency(self, i: Instruction) -> _Timing:
        """Cycles until the late and the early ALU can use the result."""
        kind, rules = i.kind, self.rules
        if kind in (Kind.LOAD, Kind.MULTIPLE):
            more = _NARROW if i.narrow else 0
            return rules.word + more, _FP_ACCUMULATE if _to_float(i) else _ADDRESS + more
        if kind is Kind.MAC:
            return _MAC, _MAC + 1
        if kind is Kind.DIV:
            return rules.divide, rules.divide + 1
        if kind in _EARLY_RESULT and self.slots % 2 == 0 and self._in_time(i):
            return (0 if rules.forward else 1), 1
        if kind in _FLOAT or kind in (Kind.FP_MOVE, Kind.FP_CORE):
            return self._float_latency(i)
        return 1, 2

    def _in_time(self, i: Instruction) -> bool:
        """Whether the early ALU can do it: its operands are there a cycle sooner."""
        return all(self.early.get(r, 0) <= self.now for r in i.late)

    def _float_latency(self, i: Instruction) -> _Timing:
        kind, rules = i.kind, self.rules
        if kind is Kind.FP_MAC:
            return rules.double_mac if i.double else (_FP_MAC, _FP_ACCUMULATE)
        if kind is Kind.FP_DIV:
            return self._divide(i), self._divide(i)
        if kind is Kind.FP_COMPARE:
            return (1, 1) if rules.forward else (_FP, _FP)
        if kind is Kind.FP_CORE and not _to_float(i):
            return 1, 2
        if i.double and kind in (Kind.FP_ADD, Kind.FP_MUL):
            latency = (rules.double_mul if kind is Kind.FP_MUL else rules.double_add)[0]
            return latency, latency
        return _FP, _FP

    def _busy(self, i: Instruction) -> int:
        if i.kind is Kind.FP_DIV:
            return self._divide(i)
        if not i.double:
            return 1
        by_kind = {Kind.FP_MUL: self.rules.double_mul, Kind.FP_MAC: self.rules.double_mac}
        return by_kind.get(i.kind, self.rules.double_add)[1]

    def _divide(self, i: Instruction) -> int:
        if i.kind is Kind.DIV:
            return self.rules.divide
        if i.double:
            return _DOUBLE_DIVIDE
        return self.rules.fp_root if i.text.startswith("vsqrt") else self.rules.fp_divide


def _to_float(i: Instruction) -> bool:
    return any(r >= FP_BASE for r in i.writes)
