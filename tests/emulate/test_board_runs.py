"""The generated C on the emulated boards: every bit, exact counts, stack, sizes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from board_models import AN500, H743, HAVE_GCC, HAVE_QEMU, HAVE_ZIG, KINDS, board, hand_written, vectors_of

import mcugen
from mcugen.emulate.elf import region_at
from mcugen.emulate.image import build_image
from mcugen.emulate.machine import EmulatedBoard
from mcugen.emulate.run import run_image, run_on_board
from mcugen.emulate.toolchain import find_cross_compiler
from mcugen.errors import DiffersError, InputError

unicorn = pytest.importorskip("unicorn")
capstone = pytest.importorskip("capstone")

Exported = Callable[[str], Path]
COMPILERS = [
    pytest.param("arm-none-eabi-gcc", id="gcc", marks=pytest.mark.skipif(not HAVE_GCC, reason="no arm-none-eabi-gcc")),
    pytest.param("zig", marks=pytest.mark.skipif(not HAVE_ZIG, reason="no ziglang")),
]
needs_gcc = pytest.mark.skipif(not HAVE_GCC, reason="no arm-none-eabi-gcc")
needs_qemu = pytest.mark.skipif(not HAVE_QEMU, reason="no qemu-system-arm")


@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("kind", KINDS)
def test_every_bit_on_the_h743(exported: Exported, kind: str, compiler: str) -> None:
    first, second = mcugen.verify(exported(kind), target=H743, compiler=compiler)
    assert "golden vectors equal, every bit; self-test passes" in first
    assert "-O2: bytes flash" in second
    assert "instructions mean" in second


@needs_qemu
@pytest.mark.parametrize(("kind", "compiler"), [("linear", "arm-none-eabi-gcc"), ("proba", "zig")])
def test_every_bit_under_the_strict_checker(exported: Exported, kind: str, compiler: str) -> None:
    if not (HAVE_ZIG if compiler == "zig" else HAVE_GCC):
        pytest.skip(f"no {compiler}")
    first, second, third = mcugen.verify(exported(kind), target=AN500, compiler=compiler)
    assert first.startswith(f"{AN500}: ")
    assert "itcm" in second  # the fast sections have found their memories
    assert third == f"NAME_run_batch was not run on {AN500}: verify it on the host"


@pytest.mark.slow
@pytest.mark.parametrize("opt", ["-O0", "-O1", "-Og", "-O2", "-O3", "-Os"])
@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("target", [H743, pytest.param(AN500, marks=needs_qemu)])
@pytest.mark.parametrize("kind", KINDS)
def test_full_matrix(exported: Exported, kind: str, target: str, compiler: str, opt: str) -> None:
    mcugen.verify(exported(kind), target=target, compiler=compiler, opt=opt)


def test_verify_takes_more_data(exported: Exported, tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    np.save(tmp_path / "more.npy", rng.normal(size=(50, 4)).astype(np.float32) * 10)
    lines = mcugen.verify(exported("float32"), tmp_path / "more.npy", target=H743)
    assert any("50 rows equal, every bit" in line for line in lines)
    assert any("proven bound" in line for line in lines)


@pytest.mark.parametrize("target", [H743, pytest.param(AN500, marks=needs_qemu)])
def test_run_gives_what_the_host_gives(exported: Exported, tmp_path: Path, target: str) -> None:
    rng = np.random.default_rng(4)
    np.save(tmp_path / "x.npy", rng.normal(size=(30, 4)) * 10)
    there, warnings = mcugen.run(exported("multiclass"), tmp_path / "x.npy", tmp_path / "board.npy", target)
    here, _ = mcugen.run(exported("multiclass"), tmp_path / "x.npy", tmp_path / "host.npy")
    assert there.shape == (30, 3)
    assert (tmp_path / "board.npy").read_bytes() == (tmp_path / "host.npy").read_bytes()
    assert len(warnings) == 1  # float64 to float32
    assert np.array_equal(there, here)


def test_no_rows(exported: Exported, tmp_path: Path) -> None:
    model, x, _ = vectors_of(exported("float32"))
    run = run_on_board(model, x[:0], board(H743), find_cross_compiler())
    assert run.y.shape == (0, 1)


@pytest.mark.parametrize("target", ["h743", "mps2", "", "HOST"])
def test_unknown_target(exported: Exported, target: str) -> None:
    with pytest.raises(InputError, match=r"known: host, mps2_an500, stm32h743"):
        mcugen.verify(exported("float32"), target=target)


def test_wrong_optimization_level(exported: Exported) -> None:
    with pytest.raises(InputError, match=r"'-O9' is no optimization level \(known: -O0,"):
        mcugen.verify(exported("float32"), target=H743, opt="-O9")


def test_counts_repeat_exactly(exported: Exported) -> None:
    model, x, y = vectors_of(exported("categorical"))
    runs = [run_on_board(model, x, board(H743), find_cross_compiler()) for _ in range(2)]
    assert runs[0].instructions is not None
    assert np.array_equal(runs[0].instructions, runs[1].instructions)
    assert runs[0].elf.data == runs[1].elf.data
    assert np.array_equal(runs[0].y, y)
    assert (runs[0].stack_bytes, runs[0].model_bytes) == (runs[1].stack_bytes, runs[1].model_bytes)


class _Steps:
    """Counts by the instruction. An instruction of an IT block whose condition fails is passed over in silence by
    unicorn; the core takes a slot for it all the same. It shows as a gap behind an instruction that is no branch."""

    def __init__(self, machine: EmulatedBoard) -> None:
        self.machine, self.count, self.skipped, self.next = machine, 0, 0, 0
        self.decoder = capstone.Cs(capstone.CS_ARCH_ARM, capstone.CS_MODE_THUMB | capstone.CS_MODE_MCLASS)
        machine.engine.ctl_flush_tb()
        self.hook = machine.engine.hook_add(unicorn.UC_HOOK_CODE, self.step)

    def step(self, engine: object, address: int, size: int, data: object) -> None:
        self.count += 1
        if self.next and address > self.next:
            gap = bytes(self.machine.engine.mem_read(self.next, address - self.next))
            self.skipped += len(list(self.decoder.disasm_lite(gap, self.next)))
        code = bytes(self.machine.engine.mem_read(address, size))
        name = next(self.decoder.disasm_lite(code, address))[2]
        jumps = name.startswith(("b", "cb", "tb", "pop", "ldm", "ldr.w")) and not name.startswith(("bic", "bf"))
        self.next = 0 if jumps else address + size

    def close(self) -> None:
        self.machine.engine.hook_del(self.hook)
        self.machine.engine.ctl_flush_tb()


@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("kind", ["float32", "multiclass", "linear"])
def test_blocks_count_what_single_steps_count(exported: Exported, kind: str, compiler: str) -> None:
    model, x, _ = vectors_of(exported(kind))
    machine = EmulatedBoard(build_image(model, board(H743), find_cross_compiler(compiler)), board(H743))
    x = x[:12]
    _, counts = machine.run(model, x)
    steps = _Steps(machine)
    stepped = []
    for row in x:
        before = steps.count + steps.skipped
        steps.next = 0
        machine.run(model, row[None], count=False)
        stepped.append(steps.count + steps.skipped - before)
    steps.close()
    assert counts.tolist() == stepped
    assert steps.skipped < steps.count / 4


_COUNTED = """
__attribute__((naked)) mcg_status_t tiny_run(const int32_t *x MCG_UNUSED, int32_t *y MCG_UNUSED)
{
    __asm volatile("ldr r2, [r0]\\n\\t"   /* 1 */
                   "movs r3, #0\\n"      /* 1 */
                   "1:\\n\\t"
                   "adds r3, #1\\n\\t"    /* x[0] times 3 */
                   "cmp r3, r2\\n\\t"
                   "bne 1b\\n\\t"
                   "cmp r2, #4\\n\\t"     /* 1 */
                   "itte lt\\n\\t"        /* 1, and 3 whatever the condition says */
                   "addlt.w r3, r3, #100\\n\\t"
                   "addlt.w r3, r3, #100\\n\\t"
                   "addge r3, #1\\n\\t"
                   "str r3, [r1]\\n\\t"   /* 1 */
                   "movs r0, #0\\n\\t"    /* 1 */
                   "bx lr");             /* 1 */
}
"""


@needs_gcc
def test_counts_by_hand() -> None:
    model = hand_written(_COUNTED)
    x = np.array([[n, 0, 0, 0] for n in (1, 3, 4, 1000)], np.int32)
    run = run_on_board(model, x, board(H743), find_cross_compiler())
    assert run.y[:, 0].tolist() == [201, 203, 5, 1001]
    assert run.instructions is not None
    assert run.instructions.tolist() == [2 + 3 * n + 2 + 3 + 3 for n in (1, 3, 4, 1000)]
    assert run.stack_bytes == 0


def test_recording_agrees_with_counting(exported: Exported) -> None:
    model, x, y = vectors_of(exported("categorical"))
    machine = EmulatedBoard(build_image(model, board(H743), find_cross_compiler()), board(H743))
    _, counts = machine.run(model, x)
    recorded = machine.record(model, x)
    kept = [e for e in recorded if e is not None]
    assert len(kept) == len(x)
    assert [machine.instructions(e.blocks) for e in kept] == counts.tolist()
    regions: Counter[str] = Counter()
    for e in kept:
        for address, _, write in e.accesses:
            region = region_at(board(H743), address)
            assert region is not None
            assert not (write and region.name == "flash")
            regions[region.name] += 1
    assert regions["dtcm"] > regions["flash"] > 0
    again, _ = machine.run(model, x, count=False)  # the hooks are gone, the results are right
    assert np.array_equal(again, y)


_FRAME = """
mcg_status_t tiny_run(const int32_t *x, int32_t *y)
{
    volatile int32_t big[256];
    for (int32_t i = 0; i < 256; i++) { big[i] = x[0]; }
    y[0] = big[x[1]];
    return MCG_OK;
}
"""


@needs_gcc
def test_stack_is_measured_to_the_word() -> None:
    model, x = hand_written(_FRAME), np.array([[5, 7, 0, 0]], np.int32)
    compiler = find_cross_compiler()
    run = run_on_board(model, x, board(H743), compiler)
    assert run.y[0, 0] == 5
    assert 1024 <= run.stack_bytes <= 1024 + 32
    exact = -(-run.stack_bytes // 8) * 8
    image = build_image(model, board(H743), compiler, stack=exact)
    assert run_image(image, model, x, board(H743)).stack_bytes == run.stack_bytes
    image = build_image(model, board(H743), compiler, stack=exact - 8)
    with pytest.raises(DiffersError, match=rf"the stack of {exact - 8} bytes is too small: store at 0x1fff"):
        run_image(image, model, x, board(H743))


@needs_gcc
def test_sizes_are_those_of_the_model_alone() -> None:
    table = "static const uint32_t t[1000] = {1, 2, 3};\nstatic uint32_t state[500];\n"
    text = table + (
        "mcg_status_t tiny_run(const int32_t *x, int32_t *y)\n{ state[x[0] & 255] += t[x[1] & 255];"
        " y[0] = (int32_t)state[x[2] & 255]; return MCG_OK; }\n"
    )
    run = run_on_board(hand_written(text), np.zeros((1, 4), np.int32), board(H743), find_cross_compiler())
    sizes = {r: n for r, n in run.model_bytes.items() if n}
    assert sorted(sizes) == ["dtcm", "flash"]
    assert 2000 <= sizes["dtcm"] <= 2008
    assert 4000 < sizes["flash"] < 4600  # the table, the function, and mcg_sections_init
