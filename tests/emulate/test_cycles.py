"""The cycle estimate: loops counted by hand, what instructions need, caches, predictor, and the recorder's traces."""

from __future__ import annotations

import random
import struct
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcugen.emulate.caches import Cache, Predictor
from mcugen.emulate.cycles import WORDS, CycleEstimate, estimate
from mcugen.emulate.isa import FLAGS, FP_BASE, FPSCR, Decoder, Jump, Kind
from mcugen.emulate.memories import Memories, Move, missing
from mcugen.emulate.pipeline import HIGH, LOW, START, Pipeline, Rules
from mcugen.emulate.recorder import Execution, Recorder
from mcugen.errors import InternalError
from mcugen.target.board import Board, load_board

unicorn = pytest.importorskip("unicorn")
pytest.importorskip("capstone")
from unicorn import arm_const  # noqa: E402

FLASH, DTCM, AXI, ITCM = 0x0800_0000, 0x2000_0000, 0x2400_0000, 0x0000_0100
S0, D0 = FP_BASE, (FP_BASE, FP_BASE + 1)


@pytest.fixture(scope="module")
def board() -> Board:
    return load_board("stm32h743")


def steady(rules: Rules, code: bytes) -> float:
    """Cycles of one pass in a long run of the same instructions."""
    pipeline, state, times = Pipeline(rules, Decoder(((FLASH, code),))), START, [0]
    for _ in range(70):
        cycles, state = pipeline.block(FLASH, len(code), state)
        times.append(times[-1] + cycles)
    return (times[70] - times[10]) / 60


# Cycles of one pass, counted by hand from published latencies and measurements: low, high.
LOOPS: list[tuple[tuple[str, ...], str, int, int]] = [
    (("smlad r0, r1, r2, r0",), "21fb0200", 1, 1),  # the accumulator is read a stage later
    (("mul r0, r0, r1",), "00fb01f0", 2, 2),
    (("smlal r0, r1, r2, r3",), "c2fb0301", 1, 1),
    (("vfma.f32 s0, s1, s2",), "a0ee810a", 3, 3),  # 6, but 3 through the accumulator
    (("vfma.f32 s0, s8, s9", "vfma.f32 s1, s8, s9", "vfma.f32 s2, s8, s9"), "a4ee240ae4ee240aa4ee241a", 3, 3),
    (("vadd.f32 s0, s0, s1",), "30ee200a", 3, 3),
    (("ldr r0, [r2]", "ldr r1, [r2, #4]"), "10685168", 1, 2),  # two ports, if the banks differ
    (("str r0, [r2]", "str r1, [r2, #4]"), "10605160", 2, 2),  # one store port
    (("ldr r0, [r2]", "str r1, [r3]"), "10681960", 1, 1),
    (("sdiv r0, r1, r2",), "91fbf2f0", 6, 12),
    (("vdiv.f32 s0, s1, s2",), "80ee810a", 13, 16),
    (("vdiv.f64 d0, d1, d2",), "81ee020b", 30, 30),
    (("add.w r0, r2, r1", "add.w r3, r4, r5"), "02eb010004eb0503", 1, 1),
    (("add.w r0, r1, r2", "eor.w r3, r0, r1"), "01eb020080ea0103", 1, 1),  # high: two passes overlap
    (("add.w r0, r0, r1",), "00eb0100", 1, 1),
    (("ldr r0, [r0]",), "0068", 2, 2),  # an address is needed early
    (("ldrb r0, [r0]",), "0078", 3, 3),  # bytes take one more
    (("ldr r0, [r1], #4", "add.w r2, r2, r0"), "51f8040b02eb0002", 1, 2),
    (("eor.w r0, r0, r1", "ldr r0, [r2, r0]"), "80ea01001058", 3, 4),
    (("uxtb.w r0, r1", "uxtb.w r2, r3"), "5ffa81f05ffa83f2", 2, 2),  # one unit for bit fields
    (("add.w r0, r1, r2, lsl #3", "add.w r3, r4, r5, lsl #2"), "01ebc20004eb8503", 2, 2),  # one shifter
    (("push {r4, r5, r6, r7, lr}", "pop.w {r4, r5, r6, r7, lr}"), "f0b5bde8f040", 6, 6),  # two words a cycle, alone
    (("vldmia r0!, {s0, s1, s2, s3}",), "b0ec040a", 2, 2),
]


@pytest.mark.parametrize(("text", "code", "low", "high"), LOOPS, ids=lambda v: "; ".join(v) if type(v) is tuple else "")
def test_hand_counted_loops(text: tuple[str, ...], code: str, low: int, high: int) -> None:
    data = bytes.fromhex(code)
    assert tuple(i.text for i in Decoder(((FLASH, data),)).block(FLASH, len(data))) == text
    assert steady(LOW, data) == low
    assert steady(HIGH, data) == high


@pytest.mark.parametrize(
    ("code", "kind", "early", "late", "last", "writes", "moved", "jump", "conditional"),
    [
        ("61f38400", Kind.BITS, (1,), (0,), (), (0,), 0, Jump.NONE, False),  # bfi r0, r1, #2, #3
        ("41f3c300", Kind.BITS, (1,), (), (), (0,), 0, Jump.NONE, False),  # sbfx r0, r1, #3, #4
        ("91ed000b", Kind.MULTIPLE, (1,), (), (), D0, 2, Jump.NONE, False),  # vldr d0, [r1]
        ("a0ec040b", Kind.MULTIPLE, (0,), (), (32, 33, 34, 35), (0,), 4, Jump.NONE, False),  # vstmia r0!, {d0, d1}
        ("0ec8", Kind.MULTIPLE, (0,), (), (), (0, 1, 2, 3), 3, Jump.NONE, False),  # ldm r0!, {r1, r2, r3}
        ("c2e90001", Kind.MULTIPLE, (2,), (), (0, 1), (), 2, Jump.NONE, False),  # strd r0, r1, [r2]
        ("10bd", Kind.MULTIPLE, (13,), (), (), (4, 13), 2, Jump.RETURN, False),  # pop {r4, pc}
        ("7047", Kind.BRANCH, (), (14,), (), (), 0, Jump.RETURN, False),  # bx lr
        ("00f000f8", Kind.BRANCH, (), (), (), (14,), 0, Jump.CALL, False),  # bl
        ("00d1", Kind.BRANCH, (), (FLAGS,), (), (), 0, Jump.DIRECT, True),  # bne
        ("08b1", Kind.BRANCH, (), (0,), (), (), 0, Jump.DIRECT, True),  # cbz r0
        ("dfe800f0", Kind.LOAD, (0,), (), (), (), 1, Jump.INDIRECT, False),  # tbb [pc, r0]
        ("f1ee10fa", Kind.FP_CORE, (), (FPSCR,), (), (FLAGS,), 0, Jump.NONE, False),  # vmrs apsr_nzcv, fpscr
        ("b4ee600a", Kind.FP_COMPARE, (), (S0, S0 + 1), (), (FPSCR,), 0, Jump.NONE, False),  # vcmp.f32 s0, s1
        ("41f82200", Kind.STORE, (1, 2), (), (0,), (), 1, Jump.NONE, False),  # str.w r0, [r1, r2, lsl #2]
        ("31f9020b", Kind.LOAD, (1,), (), (), (0, 1), 1, Jump.NONE, False),  # ldrsh r0, [r1], #2
        ("00ee101a", Kind.FP_CORE, (), (1,), (), (S0,), 0, Jump.NONE, False),  # vmov s0, r1
        ("00fe200a", Kind.FP_ADD, (), (FLAGS, S0, S0 + 1), (), (S0,), 0, Jump.NONE, True),  # vseleq.f32 s0, s0, s1
    ],
)
def test_what_an_instruction_needs(
    code: str,
    kind: Kind,
    early: tuple[int, ...],
    late: tuple[int, ...],
    last: tuple[int, ...],
    writes: tuple[int, ...],
    moved: int,
    jump: Jump,
    conditional: bool,
) -> None:
    data = bytes.fromhex(code)
    (i,) = Decoder(((FLASH, data),)).block(FLASH, len(data))
    assert (i.kind, i.early, i.late, i.last, i.writes) == (kind, early, late, last, writes), i.text
    assert (i.moved, i.jump) == (moved, jump)
    assert i.conditional == conditional or kind is Kind.FP_ADD


def test_decoder_refuses_what_is_no_code() -> None:
    decoder = Decoder(((FLASH, bytes.fromhex("10bd")),))
    with pytest.raises(InternalError, match="does not hold"):
        decoder.block(DTCM, 2)
    with pytest.raises(InternalError, match="does not hold"):
        decoder.block(FLASH, 4)  # its end is outside
    with pytest.raises(InternalError, match="unknown instruction"):
        Decoder(((FLASH, b"\xff\xff\xff\xff"),)).block(FLASH, 4)


def test_dependencies_cross_blocks() -> None:
    """A division by the FPU in one block, its use in the next."""
    code = bytes.fromhex("80ee810a" + "30ee200a")  # vdiv.f32 s0, s1, s2; vadd.f32 s0, s0, s1
    pipeline = Pipeline(LOW, Decoder(((FLASH, code),)))
    _, state = pipeline.block(FLASH, 4, START)
    assert pipeline.block(FLASH + 4, 4, state)[0] == 13
    assert pipeline.block(FLASH + 4, 4, START)[0] == 0


# -- caches and predictor


def test_cache_keeps_what_fits_and_forgets_the_oldest() -> None:
    cache = Cache(1024, 32, 2)  # 16 sets
    for _ in range(3):
        assert [cache.touch(n) for n in range(32)] == [_ > 0] * 32
    assert cache.misses == 32
    assert [cache.touch(n) for n in (0, 16, 32, 0, 32, 16)] == [True, True, False, False, True, False]
    cache.clear()
    assert not cache.touch(0)


def test_cache_of_no_size_misses_always() -> None:
    cache = Cache(0, 0, 4)
    assert not cache.touch(1)
    assert not cache.touch(1)
    assert cache.misses == 2


def test_more_lines_than_ways_miss_in_turn() -> None:
    cache = Cache(16384, 32, 4)
    for _ in range(10):
        for way in range(5):
            cache.touch(way * 128)
    assert cache.misses == 50


def test_predictor_learns_a_loop_and_not_a_coin() -> None:
    p = Predictor()
    for _ in range(100):
        for n in range(10):
            p.branch(100, 50, n < 9)
    assert p.misses == 100  # the exit of each
    p = Predictor()
    coin = random.Random(1)
    for _ in range(2000):
        p.branch(100, 150, coin.random() < 0.5)
    assert 900 < p.misses < 1100


def test_one_exception_does_not_change_a_learned_branch() -> None:
    for usual in (True, False):
        p = Predictor()
        for _ in range(3):
            p.branch(100, 150, usual)
        learned = p.misses
        assert not p.branch(100, 150, not usual)
        assert p.branch(100, 150, usual)
        assert p.misses == learned + 1


def test_predictor_begins_with_backward_taken() -> None:
    p = Predictor()
    assert p.branch(100, 50, True)
    assert p.branch(200, 250, False)
    assert not p.branch(300, 250, False)


def test_predictor_forgets_what_was_not_used() -> None:
    p = Predictor(2)
    for _ in range(4):
        p.branch(1, 10, True)
        p.branch(2, 10, True)
    assert p.branch(1, 10, True)
    p.branch(3, 10, False)  # drops 2
    assert p.branch(1, 10, True)
    assert not p.branch(2, 10, True)


def test_indirect_jumps_are_predicted_as_the_last_time() -> None:
    p = Predictor()
    assert [p.indirect(8, t) for t in (1, 1, 2, 2)] == [False, True, False, True]


# -- the recorder


#: For each i below n: v = a[i]; if (v > 100) v = b[i] + 1; s = 31 * s + v; if (s & 1) s = b[i]; s = (s + 3) ^ 5;
#: with both conditions as IT blocks that load.
CONDITIONAL_LOADS = bytes.fromhex(
    "eab10023a0f1040c184610b55cf8044f642c86bfd1f800e00ef1010ea646c0eb4010704410f0010f18bf086800f1030080f00500"
    "013304319a42e7d110bd10467047"
)


class Core:
    """A function at ``address``, called with up to four words; memories as on the board."""

    def __init__(self, board: Board, code: bytes, address: int = FLASH) -> None:
        self.engine = unicorn.Uc(unicorn.UC_ARCH_ARM, unicorn.UC_MODE_THUMB)
        self.engine.ctl_set_cpu_model(arm_const.UC_CPU_ARM_MAX)
        for r in board.regions:
            self.engine.mem_map(r.base, r.size)
        self.engine.mem_write(address, code)
        self.address, self.end = address, FLASH + 0x1F_0000

    def call(self, *words: int) -> int:
        registers = [getattr(arm_const, f"UC_ARM_REG_R{n}") for n in range(4)]
        for register, word in zip(registers, words, strict=False):
            self.engine.reg_write(register, word)
        self.engine.reg_write(arm_const.UC_ARM_REG_SP, DTCM + 0x1_0000)
        self.engine.reg_write(arm_const.UC_ARM_REG_LR, self.end | 1)
        self.engine.emu_start(self.address | 1, self.end)
        return int(self.engine.reg_read(arm_const.UC_ARM_REG_R0))


def test_recording_changes_nothing_inside_it_blocks(board: Board) -> None:
    """unicorn's own memory hooks make the instructions after an IT block conditional; ours must not."""
    rng = random.Random(7)
    n = 500
    a = [rng.randrange(200) for _ in range(n)]
    b = [rng.randrange(1 << 32) for _ in range(n)]
    core = Core(board, CONDITIONAL_LOADS)
    core.engine.mem_write(AXI, struct.pack(f"<{n}I", *a))
    core.engine.mem_write(AXI + 4 * n, struct.pack(f"<{n}I", *b))
    s, loads = 0, 2  # pop of two words
    for v, w in zip(a, b, strict=True):
        s = (31 * s + (w + 1 if v > 100 else v)) & 0xFFFF_FFFF
        loads += 1 + (v > 100) + (s & 1)
        s = (((w if s & 1 else s) + 3) & 0xFFFF_FFFF) ^ 5
    assert core.call(AXI, AXI + 4 * n, n) == s
    recorder = Recorder(core.engine)
    assert core.call(AXI, AXI + 4 * n, n) == s
    first = recorder.take()
    assert core.call(AXI, AXI + 4 * n, n) == s
    second = recorder.take()
    assert first.blocks == second.blocks
    assert first.accesses == second.accesses
    assert sum(not write for _, _, write in first.accesses) == loads
    assert sum(write for _, _, write in first.accesses) == 2
    recorder.close()
    core.call(AXI, AXI + 4 * n, n)
    assert recorder.take().blocks == ()


# -- whole estimates


def record(board: Board, code: bytes, *words: int, address: int = FLASH, times: int = 1) -> list[Execution]:
    core = Core(board, code, address)
    recorder, found = Recorder(core.engine), []
    for _ in range(times):
        core.call(*words)
        found.append(recorder.take())
    return found


#: 1: smlad r0, r1, r2, r0; subs r3, #1; bne 1b; bx lr
LOOP = bytes.fromhex("21fb0200" + "013b" + "fbd1" + "7047")


def loop_estimate(board: Board, n: int, address: int = FLASH) -> CycleEstimate:
    decoder = Decoder(((address, LOOP),))
    return estimate(record(board, LOOP, 0, 1, 1, n, address=address, times=3), decoder, board)


def test_a_loop_costs_what_its_passes_cost(board: Board) -> None:
    few, many = loop_estimate(board, 100), loop_estimate(board, 1100)
    # low: smlad and subs together, the branch with the next smlad or alone. high: the branch waits for subs, and a
    # taken one loses a cycle.
    assert 1.5 <= (many.low - few.low) / 1000 <= 2
    assert 3 <= (many.high - few.high) / 1000 <= 4
    assert few.low <= few.high <= few.worst


def test_cold_flash_costs_line_fills_and_itcm_none(board: Board) -> None:
    flash, itcm = loop_estimate(board, 100), loop_estimate(board, 100, ITCM)
    assert itcm.high_detail.memory == 0
    assert itcm.high_detail.instruction_misses == 0
    assert flash.high_detail.instruction_misses == 1  # ten bytes: one line
    assert flash.high == pytest.approx(itcm.high + 1.3 * 35)
    assert flash.low == itcm.low
    assert flash.low_detail.instruction_misses == 0


#: 1: ldr r3, [r0], #32; subs r1, #1; bne 1b; bx lr
STRIDE = bytes.fromhex("50f8203b" + "0139" + "fbd1" + "7047")


@pytest.mark.parametrize(
    ("base", "lines", "low", "high"), [(AXI, 256, 0, 256), (AXI, 1024, 1024, 1024), (DTCM, 512, 0, 0)]
)
def test_data_that_fits_is_read_once(board: Board, base: int, lines: int, low: int, high: int) -> None:
    found = estimate(record(board, STRIDE, base, lines, times=3), Decoder(((FLASH, STRIDE),)), board)
    assert found.low_detail.data_misses == low
    assert found.high_detail.data_misses == high
    assert found.low_detail.memory == pytest.approx(low * 0.7 * 25)


def test_uncached_memory_waits_at_each_load(board: Board) -> None:
    plain = replace(board, regions=tuple(replace(r, cached=r.name == "flash") for r in board.regions))
    found = estimate(record(plain, STRIDE, AXI, 16), Decoder(((FLASH, STRIDE),)), plain)
    assert found.low_detail.memory == pytest.approx(16 * 0.7 * 7)


def test_estimates_repeat_and_say_what_they_are(board: Board) -> None:
    one, two = loop_estimate(board, 37), loop_estimate(board, 37)
    assert one == two
    assert WORDS == "estimated, not measured"
    assert WORDS in one.assumptions[0]


def test_nothing_executed_costs_nothing(board: Board) -> None:
    found = estimate([], Decoder(()), board)
    assert (found.low, found.high, found.worst) == (0, 0, 0)


# Memories of whole runs at once


@given(
    st.lists(st.tuples(st.integers(0, 2), st.integers(0, 40)), max_size=200),
    st.sampled_from([1, 2, 4]),
    st.sampled_from([1, 4, 8]),
)
@settings(max_examples=200, deadline=None)
def test_misses_are_those_of_a_cache_that_is_touched(touches: list[tuple[int, int]], ways: int, sets: int) -> None:
    """``missing`` against the textbook cache, one for each group."""
    caches = {g: Cache(32 * ways * sets, 32, ways) for g in range(3)}
    ordered = sorted(touches, key=lambda t: t[0])
    wanted = [not caches[g].touch(line) for g, line in ordered]
    groups, lines = (np.array([t[k] for t in ordered], np.int64) for k in (0, 1))
    assert missing(lines, groups, sets, ways).tolist() == wanted


def test_a_move_is_the_run_at_other_addresses(board: Board) -> None:
    """Accesses to a table in DTCM, taken to be in flash: each line is filled once, less or more 30 %."""
    reads = tuple((DTCM + 4 * i, 4, False) for i in (0, 1, 7, 8, 0, 20))  # lines 0, 1 and 2
    there = tuple((FLASH + a - DTCM, n, w) for a, n, w in reads)
    runs, moved = (Memories([Execution((), r), Execution((), r)], board) for r in (reads, there))
    move = (Move(DTCM, DTCM + 84, FLASH),)
    for scale, cold in ((0.7, False), (1.3, True)):
        assert runs.access(scale, scale, cold).cycles.tolist() == [0, 0]
        found = runs.access(scale, scale, cold, move)
        assert found.cycles.tolist() == moved.access(scale, scale, cold).cycles.tolist()
        assert found.cycles.tolist() == pytest.approx([3 * 1.3 * 35 if cold else 0.0] * 2)
        assert found.misses == (6 if cold else 0)


def test_stores_wait_where_they_are_told_to(board: Board) -> None:
    runs = Memories([Execution((), ((AXI, 4, True), (AXI + 4, 4, False)))], board)
    assert runs.access(1.0, 0.0, cold=True).cycles.tolist() == [0.0]  # the store has filled the line
    assert runs.access(1.0, 1.0, cold=True).cycles.tolist() == [25.0]


def test_code_that_moves_takes_its_lines_along(board: Board) -> None:
    blocks = ((ITCM, 10), (ITCM + 10, 60), (ITCM, 10))
    runs = Memories([Execution(blocks, ())], board)
    assert runs.fetch(1.0, cold=True).cycles.tolist() == [0.0]
    assert runs.fetch(1.0, True, (Move(ITCM, ITCM + 70, FLASH),)).misses == 3
    assert runs.fetch(1.0, True, (Move(ITCM, ITCM + 70, FLASH + 28),)).misses == 4  # another place in the lines


def test_no_run_and_no_access(board: Board) -> None:
    nothing = Memories([], board)
    assert nothing.fetch(1.0, cold=True).cycles.tolist() == []
    assert nothing.access(1.0, 1.0, cold=False).misses == 0
    assert Memories([Execution(((ITCM, 4),), ())], board).access(1.0, 1.0, cold=False).cycles.tolist() == [0.0]
