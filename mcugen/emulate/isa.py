"""Thumb-2 instructions as the cost model sees them: what they read and when, what they write, what they occupy.

Says nothing about cycles: those are in ``pipeline.py``.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

from mcugen.emulate.extra import optional
from mcugen.errors import InternalError

#: Registers by number: 0 to 15 core, then flags and FPSCR, from FP_BASE the single-precision ones (a double is two).
FLAGS, FPSCR, FP_BASE = 16, 17, 32
_PC, _SP = 15, 13


class Kind(Enum):
    """What an instruction occupies. The groups are those that the public measurements tell apart."""

    SIMPLE = auto()  # add, sub, mov: either stage of the ALU
    SHIFT = auto()  # shift or rotation of a register
    LOGIC = auto()  # late ALU: and, orr, eor, cmp, adc, ...
    SHIFTED = auto()  # second operand shifted inline: shifter, then ALU
    BITS = auto()  # bit field, extension, saturation, parallel arithmetic: first slot only
    MAC = auto()
    DIV = auto()
    LOAD = auto()
    STORE = auto()
    MULTIPLE = auto()  # ldm, stm, ldrd, strd, push, pop, vldm, a double: alone
    BRANCH = auto()
    FREE = auto()  # it, nop: a slot, no unit
    FP_ADD = auto()
    FP_MUL = auto()
    FP_MAC = auto()
    FP_DIV = auto()
    FP_MOVE = auto()  # inside the FPU
    FP_CORE = auto()  # between core and FPU
    FP_COMPARE = auto()
    SYSTEM = auto()  # barriers and the like


class Jump(Enum):
    """How control leaves an instruction."""

    NONE = auto()
    DIRECT = auto()
    CALL = auto()
    RETURN = auto()
    INDIRECT = auto()


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction.

    ``early``: registers needed one cycle before execution (addresses, operands of the shifter); ``late``: needed at
    execution; ``last``: needed one stage later (accumulators, stored data). ``writes``: results; ``based``: address
    registers that are written back. ``moved``: words to or from memory. ``double``: works on float64. ``target``:
    where a direct jump goes, 0 where that is not in the instruction.
    """

    address: int
    size: int
    text: str
    kind: Kind
    early: tuple[int, ...]
    late: tuple[int, ...]
    last: tuple[int, ...]
    writes: tuple[int, ...]
    based: tuple[int, ...]
    narrow: bool
    double: bool
    loads: int
    stores: int
    jump: Jump
    target: int
    conditional: bool

    @property
    def moved(self) -> int:
        """Words to or from memory."""
        return self.loads + self.stores


_BITS = tuple(
    "sxt uxt ubfx sbfx bfi bfc ssat usat sadd ssub uadd usub qadd qsub qdadd qdsub uqadd uqsub shadd shsub uhadd uhsub"
    " sasx ssax uasx usax pkh sel rev rbit clz usad usada".split()
)
_EARLY_BITS = ("ubfx", "sbfx", "rev", "rbit")
_MACS = ("mul", "mla", "mls", "sml", "smm", "smu", "uml", "umu", "umaal")
_SHIFTS = ("lsl", "lsr", "asr", "ror", "rrx")
_SIMPLE = ("add", "sub", "mov", "mvn", "rsb", "adr", "neg", "cpy")
_MULTIPLE = ("ldm", "stm", "push", "pop", "vldm", "vstm", "vpush", "vpop", "ldrd", "strd")
_STACK = ("push", "pop", "vpush", "vpop")
_LONG = ("smlal", "umlal", "smlsld", "smlald", "umaal")  # accumulate in a pair of registers
_COMPARES = ("cmp", "cmn", "tst", "teq")
_SYSTEM = ("dsb", "dmb", "isb", "msr", "mrs", "cps", "svc", "bkpt", "wfi", "wfe", "udf")
_FLOAT_KINDS = (
    (("vdiv", "vsqrt"), Kind.FP_DIV),
    (("vfma", "vfms", "vfnma", "vfnms", "vmla", "vmls", "vnmla", "vnmls"), Kind.FP_MAC),
    (("vmul", "vnmul"), Kind.FP_MUL),
    (("vcmp",), Kind.FP_COMPARE),
    (("vmrs", "vmsr"), Kind.FP_CORE),
)


class Decoder:
    """Instructions of a program by address. ``segments``: (address, bytes) of all that can be executed."""

    def __init__(self, segments: tuple[tuple[int, bytes], ...]) -> None:
        capstone = optional("capstone")
        self._segments = segments
        self._arm = capstone.arm
        self._engine = capstone.Cs(capstone.CS_ARCH_ARM, capstone.CS_MODE_THUMB | capstone.CS_MODE_MCLASS)
        self._engine.detail = True
        self._numbers: dict[int, tuple[int, ...]] = {}
        self._blocks: dict[tuple[int, int], tuple[Instruction, ...]] = {}

    def block(self, address: int, size: int) -> tuple[Instruction, ...]:
        """The instructions in ``size`` bytes from ``address``. InternalError where that is no code."""
        key = (address, size)
        found = self._blocks.get(key)
        if found is None:
            decoded = self._engine.disasm(self._bytes(address, size), address)
            found = self._blocks[key] = tuple(self._instruction(i) for i in decoded)
            if sum(i.size for i in found) != size:
                raise InternalError(f"0x{address:08x}", f"a block of {size} bytes holds an unknown instruction")
        return found

    def _bytes(self, address: int, size: int) -> bytes:
        for base, data in self._segments:
            if base <= address and address + size <= base + len(data):
                return data[address - base : address - base + size]
        raise InternalError(f"0x{address:08x}", "code was executed that the program does not hold")

    def _operands(self, i: Any) -> list[tuple[int, ...]]:
        """The registers that are operands, in the order of the text."""
        return [self._number(o.reg) for o in i.operands if o.type == self._arm.ARM_OP_REG]

    def _registers(self, ids: list[int]) -> set[int]:
        return {n for i in ids for n in self._number(i)}

    def _number(self, register: int) -> tuple[int, ...]:
        """Capstone's register as ours."""
        found = self._numbers.get(register)
        if found is None:
            found = self._numbers[register] = _register_numbers(self._engine.reg_name(register) or "")
        return found

    def _instruction(self, i: Any) -> Instruction:
        name = i.mnemonic.split(".")[0]
        reads, writes = (self._registers(r) for r in i.regs_access())
        self._complete(i, name, reads, writes)
        conditional = i.cc not in (self._arm.ARM_CC_AL, self._arm.ARM_CC_INVALID)
        if i.update_flags or name.startswith(_COMPARES):
            writes.add(FLAGS)
        if conditional or name.startswith(("adc", "sbc", "sel", "vsel")):
            reads.add(FLAGS)
        if name.startswith("vcmp"):
            writes.add(FPSCR)
        if name == "vmrs":
            reads.add(FPSCR)
            writes |= {FLAGS} if "apsr" in i.op_str else set()
        jump = self._jump(i, name, writes)
        writes.discard(_PC)
        reads.discard(_PC)
        kind = self._kind(i, name, jump)
        if kind is Kind.FREE:
            reads = set()
        early, last = self._timing(i, name, kind, reads)
        based = self._bases(i) & writes if i.writeback or name in _STACK else set()
        loads, stores = _traffic(name, kind, reads - early, writes - based)
        loads += kind is Kind.MULTIPLE and jump is Jump.RETURN  # the program counter
        return Instruction(
            address=i.address,
            size=i.size,
            text=f"{i.mnemonic} {i.op_str}".strip(),
            kind=kind,
            early=tuple(sorted(early)),
            late=tuple(sorted(reads - early - last)),
            last=tuple(sorted(last)),
            writes=tuple(sorted(writes)),
            based=tuple(sorted(based)),
            narrow=name.startswith(("ldrb", "ldrh", "ldrsb", "ldrsh", "tbb", "tbh")),
            double=".f64" in i.mnemonic,
            loads=loads,
            stores=stores,
            jump=jump,
            target=i.operands[-1].imm & 0xFFFF_FFFF if jump in (Jump.DIRECT, Jump.CALL) and name != "blx" else 0,
            conditional=conditional or name in ("cbz", "cbnz"),
        )

    def _complete(self, i: Any, name: str, reads: set[int], writes: set[int]) -> None:
        """Adds the registers that capstone leaves out: float lists, and long accumulators as sources."""
        if name.startswith(("vldm", "vstm", "vpush", "vpop")):
            listed = {n for r in self._operands(i) for n in r}
            (writes if name.startswith(("vldm", "vpop")) else reads).update(n for n in listed if n >= FP_BASE)
        elif name.startswith(_LONG):
            reads.update(self._number(i.operands[0].reg) + self._number(i.operands[1].reg))

    def _jump(self, i: Any, name: str, writes: set[int]) -> Jump:
        if name in ("bl", "blx"):
            return Jump.CALL
        if name.startswith("bx"):
            return Jump.RETURN if i.op_str == "lr" else Jump.INDIRECT
        if name in ("tbb", "tbh"):
            return Jump.INDIRECT
        if name in ("cbz", "cbnz") or (name[0] == "b" and i.group(self._arm.ARM_GRP_JUMP)):
            return Jump.DIRECT
        if _PC in writes:
            return Jump.RETURN if name.startswith(("pop", "ldm")) else Jump.INDIRECT
        return Jump.NONE

    def _kind(self, i: Any, name: str, jump: Jump) -> Kind:
        if name.startswith(_MULTIPLE):
            return Kind.MULTIPLE
        if name.startswith(("ldr", "vldr", "str", "vstr", "pld", "tbb", "tbh")):
            wide = name.startswith("v") and any(len(r) == 2 for r in self._operands(i))
            load = name.startswith(("ldr", "vldr", "pld", "tb"))
            return Kind.MULTIPLE if wide else Kind.LOAD if load else Kind.STORE
        if jump is not Jump.NONE:
            return Kind.BRANCH
        if name[0] == "v":
            return self._float_kind(i, name)
        if name.startswith("it") or name == "nop":
            return Kind.FREE
        if name.startswith(_SYSTEM):
            return Kind.SYSTEM
        if name.startswith(("sdiv", "udiv")):
            return Kind.DIV
        if name.startswith(_MACS):
            return Kind.MAC
        if name.startswith(_BITS):
            return Kind.BITS
        if self._shifted(i):
            return Kind.SHIFT if name.startswith("mov") else Kind.SHIFTED
        if name.startswith(_SHIFTS):
            return Kind.SHIFT
        return Kind.SIMPLE if name.startswith(_SIMPLE) else Kind.LOGIC

    def _float_kind(self, i: Any, name: str) -> Kind:
        for names, kind in _FLOAT_KINDS:
            if name.startswith(names):
                return kind
        if name.startswith("vmov"):
            core = any(r[0] < FP_BASE for r in self._operands(i))
            return Kind.FP_CORE if core else Kind.FP_MOVE
        return Kind.FP_ADD

    def _shifted(self, i: Any) -> bool:
        return any(o.type == self._arm.ARM_OP_REG and o.shift.type and o.shift.value for o in i.operands)

    def _bases(self, i: Any) -> set[int]:
        """Registers that form addresses."""
        memory = [o.mem for o in i.operands if o.type == self._arm.ARM_OP_MEM]
        found = {n for m in memory for r in (m.base, m.index) if r for n in self._number(r)}
        if not memory and i.operands:  # ldm, stm, vldm: the first operand; push, pop: the stack pointer
            name = i.mnemonic
            found = {_SP} if name.split(".")[0] in _STACK else set(self._number(i.operands[0].reg))
        return found

    def _timing(self, i: Any, name: str, kind: Kind, reads: set[int]) -> tuple[set[int], set[int]]:
        """The registers read early, and those read last."""
        early: set[int] = set()
        last: set[int] = set()
        registers = self._operands(i)
        if kind in (Kind.LOAD, Kind.STORE, Kind.MULTIPLE):
            early = self._bases(i) & reads
            last = reads - early if name.startswith(("st", "vst", "push", "vpush")) else set()
        elif kind is Kind.SHIFTED:
            early = {n for o in i.operands if o.shift.type for n in self._number(o.reg)} & reads
        elif kind is Kind.BITS and name.startswith(_EARLY_BITS):
            early = set(reads)
        elif kind is Kind.BITS and (name.startswith(("bfi", "pkh")) or (len(registers) == 3 and "xta" in name)):
            early = set(registers[-1]) & reads
        elif kind is Kind.MAC and len(registers) == 4:
            long = name.startswith(_LONG)
            last = (set(registers[0] + registers[1]) if long else set(registers[3])) & reads
        elif kind is Kind.FP_MAC:
            last = set(registers[0]) & reads
        keep = {FLAGS}
        return early - keep, last - early - keep


def _traffic(name: str, kind: Kind, stored: set[int], loaded: set[int]) -> tuple[int, int]:
    """Words loaded and stored."""
    if kind is Kind.LOAD:
        return (0 if name.startswith("pld") else 1), 0
    if kind is Kind.STORE:
        return 0, 1
    if kind is not Kind.MULTIPLE:
        return 0, 0
    load = name.startswith(("ldm", "pop", "vldm", "vpop", "ldrd", "vldr"))
    pair = name.startswith(("ldrd", "strd", "vldr", "vstr"))
    count = 2 if pair else max(1, len((loaded if load else stored) - {_SP, FLAGS}))
    return (count, 0) if load else (0, count)


_CORE_NAMES = {f"r{n}": n for n in range(16)}
_CORE_NAMES |= {"sb": 9, "sl": 10, "fp": 11, "ip": 12, "sp": 13, "lr": 14, "pc": 15}


def _register_numbers(name: str) -> tuple[int, ...]:
    if name in _CORE_NAMES:
        return (_CORE_NAMES[name],)
    if name[:1] in ("s", "d") and name[1:].isdigit():
        n = int(name[1:])
        return (FP_BASE + n,) if name[0] == "s" else (FP_BASE + 2 * n, FP_BASE + 2 * n + 1)
    if "fpscr" in name:
        return (FPSCR,)
    return (FLAGS,) if "psr" in name else ()
