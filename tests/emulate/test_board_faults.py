"""Faults planted in images and models: each must be told in one line, and none may pass for a result."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from board_models import AN500, H743, HAVE_GCC, HAVE_QEMU, board, boundaries_of, hand_written, replaced, vectors_of

from mcugen.core.op import Item
from mcugen.emulate import machine as machine_module
from mcugen.emulate.image import Image, build_image
from mcugen.emulate.run import require_placed, run_image, run_on_board
from mcugen.emulate.toolchain import find_cross_compiler
from mcugen.errors import DiffersError, DoesNotFitError, InputError
from mcugen.resources import resource_dir
from mcugen.target.placement import place
from mcugen.verify.compare import compare_bits

pytest.importorskip("unicorn")
pytestmark = pytest.mark.skipif(not HAVE_GCC, reason="no arm-none-eabi-gcc")
needs_qemu = pytest.mark.skipif(not HAVE_QEMU, reason="no qemu-system-arm")

Exported = Callable[[str], Path]
GCC = "arm-none-eabi-gcc"
ROW = np.array([[3, 5, 0, 0]], np.int32)
SECTIONS = "mcugen/mcg_sections.c"
STARTUP = "mcg_image/startup.c"


def run_text(body: str, target: str = H743, more: str = "", **options: object) -> np.ndarray:
    """What a tiny_run with this body gives for ROW."""
    text = f"{more}\nmcg_status_t tiny_run(const int32_t *x, int32_t *y)\n{{ {body} return MCG_OK; }}\n"
    model = hand_written(text)
    image = build_image(model, board(target), find_cross_compiler(GCC), **options)  # type: ignore[arg-type]
    return run_image(image, model, ROW, board(target)).y


def startup_of(target: str) -> str:
    return (resource_dir("boards") / target / "startup.c").read_text()


# -- the model's bytes


def changed_byte(image: Image, address: int) -> Image:
    """The image with one bit changed in what is loaded for ``address``."""
    segments = []
    for s in image.elf.segments:
        data = bytearray(s.data)
        if s.address <= address < s.address + len(data):
            data[address - s.address] ^= 1
        segments.append(replace(s, data=bytes(data)))
    assert [s.data for s in segments] != [s.data for s in image.elf.segments]
    return replace(image, elf=replace(image.elf, segments=tuple(segments)))


@pytest.mark.parametrize("target", [H743, pytest.param(AN500, marks=needs_qemu)])
def test_one_table_byte_changed(exported: Exported, target: str) -> None:
    model, _, _ = vectors_of(exported("float32"))
    x, y = boundaries_of(exported("float32"))
    image = build_image(model, board(target), find_cross_compiler(GCC))
    assert compare_bits(y, run_image(image, model, x, board(target)).y, "y") is None
    tables = [s for n, s in image.elf.symbols.items() if re.fullmatch(r"float32_(leaf|keys|nodes)(_image)?", n)]
    assert tables
    model = replace(model, files={k: v for k, v in model.files.items() if "selftest" not in k})
    for table in tables:
        run = run_image(changed_byte(image, table.address), model, x, board(target))
        assert compare_bits(y, run.y, "y") is not None, table.name


def test_the_self_test_sees_it_too(exported: Exported) -> None:
    model, x, _ = vectors_of(exported("float32"))
    image = build_image(model, board(H743), find_cross_compiler(GCC))
    leaf = next(s for n, s in image.elf.symbols.items() if re.fullmatch(r"float32_leaf(_image)?", n))
    assert run_image(changed_byte(image, leaf.address), model, x[:1], board(H743)).selftest > 0


# -- sections


@pytest.mark.parametrize("target", [H743, pytest.param(AN500, marks=needs_qemu)])
@pytest.mark.parametrize(
    ("path", "old", "new"),
    [
        pytest.param(
            SECTIONS,
            "((volatile mcg_word_t *)to)[i] = ((const mcg_word_t *)from)[i];",
            "(void)i;",
            id="nothing is copied",
        ),
        pytest.param(SECTIONS, "copy_bytes(__mcg_code_start, __mcg_code_load, bytes);", "(void)bytes;", id="no code"),
        pytest.param(SECTIONS, "copy_bytes(entry->copy, entry->image, entry->bytes);", "", id="no tables"),
        pytest.param(STARTUP, "    copy_data();\n", "    (void)copy_data;\n", id="no data"),
    ],
)
def test_a_section_is_not_copied(exported: Exported, target: str, path: str, old: str, new: str) -> None:
    model, x, y = vectors_of(exported("multiclass"))
    model = replace(model, files={k: v for k, v in model.files.items() if "selftest" not in k})
    text = startup_of(target) if path == STARTUP else model.files[path]
    image = build_image(model, board(target), find_cross_compiler(GCC), replace={path: replaced(text, (old, new))})
    try:
        found = run_image(image, model, x, board(target)).y
    except DiffersError:
        return
    assert compare_bits(y, found, "y") is not None


def test_ram_that_nobody_fills_is_not_zero() -> None:
    """The poison is what makes a forgotten section visible."""
    array = 'static uint32_t here[64] MCG_SECTION(".bss.mcugen.axi.here");\n'
    zeroed = "__mcg_zero1_start"
    assert run_text("y[0] = (int32_t)here[x[0]];", more=array)[0, 0] == 0
    text = (resource_dir("runtime_c") / "src" / "mcg_sections.c").read_text()
    assert zeroed.replace("1", "##n##") in text
    skipped = replaced(text, ("*word = 0u;", "(void)word;"))
    assert run_text("y[0] = (int32_t)here[x[0]];", more=array, replace={SECTIONS: skipped})[0, 0] == np.int32(
        -0x5A5A5A5B
    )


def test_the_fragment_is_left_out(exported: Exported) -> None:
    """The program is right, and only slower; but it is not the program that was planned."""
    model, x, y = vectors_of(exported("float32"))
    image = build_image(model, board(H743), find_cross_compiler(GCC), fragment=False)
    with pytest.raises(DiffersError, match=r"stands in (flash|dtcm), and the plan has it in itcm .is mcugen.ld part"):
        require_placed(image, model, board(H743))
    assert compare_bits(y, run_image(image, model, x, board(H743)).y, "y") is None


def test_another_board_is_not_held_to_the_plan(exported: Exported) -> None:
    model, _, _ = vectors_of(exported("float32"))
    image = build_image(model, board(H743), find_cross_compiler(GCC), fragment=False)
    require_placed(image, replace(model, board="another"), board(H743))
    require_placed(image, replace(model, board=None), board(H743))


def test_a_dma_buffer_does_not_go_to_dtcm() -> None:
    item = Item("m_buffer", "arena", "uint8_t", 64, 64, 8, 1e6, "samples", None, True)
    assert place([item], board(H743)).of("m_buffer").region != "dtcm"
    with pytest.raises(InputError, match=r"dma1 does not reach dtcm, and this object is for DMA"):
        place([item], board(H743), {"m_buffer": "dtcm"})


# -- accesses


STRAY = [
    (
        "((volatile int32_t *)0x08000400)[0] = x[0];",
        r"store at 0x08000400 .*in flash by the instruction at 0x0.*tiny_run",
    ),
    ("y[0] = *(volatile int32_t *)0x60000000;", r"load at 0x60000000 outside every memory by .*\(tiny_run"),
    ("*(volatile int8_t *)0x24080000 = 1;", r"store at 0x24080000 outside every memory"),
    ("y[0] = *(volatile int32_t *)0x2001fffe;", r"load at 0x20020000 outside every memory"),
    ("y[0] = *(volatile int16_t *)(0x08200000 - 1);", r"load at 0x08(1fffff|200000) outside every memory"),
    ("*(volatile int32_t *)&table[x[0]] = 1;", r"store at 0x0800[0-9a-f]{4} \(table\+0xc\) in flash"),
    ("((void (*)(void))(uintptr_t)(buffer + 1))();", r"fetch at 0x2000[0-9a-f]{4} \(buffer\) in dtcm"),
    ("((void (*)(void))0x90000001u)();", r"fetch at 0x90000000 outside every memory"),
    ('__asm volatile("udf #0");', r"undefined instruction|INSN_INVALID|UC_ERR"),
    ('__asm volatile("bkpt 3");', r"a breakpoint by the instruction at 0x0800"),
    ("y[0] = 1; return MCG_ERR_ARG;", r"tiny_run returns -1 for row 0"),
]


@pytest.mark.parametrize(("body", "message"), STRAY, ids=[body for body, _ in STRAY])
def test_stray(body: str, message: str) -> None:
    more = "static const int32_t table[8] = {1, 2, 3};\nuint8_t buffer[16] = {0xF7, 0xEE};\n"
    with pytest.raises(DiffersError, match=message) as error:
        run_text(f"y[0] = table[x[0]] + buffer[x[1]]; {body}", more=more)
    assert str(error.value).startswith("emulated stm32h743: ")
    assert "\n" not in str(error.value)


def test_a_memory_without_its_clock() -> None:
    """Start-up code that forgets the D2 clocks; the runtime switches on only what the model has there."""
    body = "y[0] = x[0]; y[0] = *(volatile int32_t *)0x30020000;"
    assert run_text(body)[0, 0] == np.int32(-0x5A5A5A5B)  # the clock is on, and the memory is as after power-on
    forgot = replaced(startup_of(H743), ("RCC_AHB2ENR |= AHB2ENR_SRAM123;", ""))
    with pytest.raises(DiffersError, match=r"load at 0x30020000 in sram2, whose clock is off"):
        run_text(body, replace={STARTUP: forgot})
    own = 'static uint32_t here[64] MCG_SECTION(".bss.mcugen.sram2.here");\n'
    assert run_text("y[0] = (int32_t)here[x[0]];", more=own, replace={STARTUP: forgot})[0, 0] == 0


def test_an_endless_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine_module, "_TIMEOUT_US", 1_000_000)
    with pytest.raises(DiffersError, match=r"does not end within 1 s, stopped by the instruction at .*tiny_run"):
        run_text('while (x[0] != 0) { __asm volatile("" ::: "memory"); } y[0] = 1;')


# -- the stack

_DEEP = "volatile int32_t big[512]; for (int32_t i = 0; i < 512; i++) { big[i] = x[0]; } y[0] = big[x[1]];"


@pytest.mark.parametrize(
    ("target", "message"),
    [
        (H743, r"the stack of 1024 bytes is too small: store at 0x1fff"),
        pytest.param(AN500, r"QEMU mps2_an500: the stack of 1024 bytes is too small", marks=needs_qemu),
    ],
)
def test_a_stack_too_small(target: str, message: str) -> None:
    assert run_text(_DEEP, target)[0, 0] == 3
    with pytest.raises(DiffersError, match=message):
        run_text(_DEEP, target, stack=1024)


def test_a_stack_that_start_up_overflows() -> None:
    with pytest.raises(DiffersError, match=r"the stack of 8 bytes is too small"):
        run_text("y[0] = x[0];", stack=8)


def test_a_stack_larger_than_its_memory() -> None:
    with pytest.raises(DoesNotFitError, match=r"test image for stm32h743: .*DTCMRAM"):
        run_text("y[0] = x[0];", stack=131_072 + 8)


# -- what only the strict checker sees

_FLOAT = "y[0] = (int32_t)((float)x[0] * 1.5f);"


def test_fpu_off_on_the_h743() -> None:
    forgot = replaced(startup_of(H743), ("SCB_CPACR |= CPACR_FPU;", ""))
    with pytest.raises(DiffersError, match=r"start-up code has not switched the FPU on"):
        run_text(_FLOAT, replace={STARTUP: forgot})


@needs_qemu
def test_fpu_off_under_qemu() -> None:
    assert run_text(_FLOAT, AN500)[0, 0] == 4
    forgot = replaced(startup_of(AN500), ("SCB_CPACR |= CPACR_FPU;", ""))
    with pytest.raises(DiffersError, match=r"a floating-point instruction while the FPU is off by .*\(tiny_run"):
        run_text(_FLOAT, AN500, replace={STARTUP: forgot})


_UNALIGNED = [
    '__asm volatile("ldmia %0, {r2, r3}" :: "r"((uintptr_t)x + 2u) : "r2", "r3");',
    '__asm volatile("ldrd r2, r3, [%0]" :: "r"((uintptr_t)x + 1u) : "r2", "r3");',
    '__asm volatile("vldr s0, [%0]" :: "r"((uintptr_t)x + 1u) : "s0");',
]


@needs_qemu
@pytest.mark.parametrize("code", _UNALIGNED)
def test_unaligned_access(code: str) -> None:
    body = f"{code} y[0] = x[0];"
    assert run_text(body)[0, 0] == 3  # unicorn does not notice: this is why there is a strict checker
    with pytest.raises(
        DiffersError, match=r"QEMU mps2_an500: an unaligned access.* by the instruction at .*\(tiny_run"
    ):
        run_text(body, AN500)


@needs_qemu
@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("y[0] = *(volatile int32_t *)0x50000000;", r"an access outside every memory, at 0x50000000 by .*tiny_run"),
        ("y[0] = 1; return MCG_ERR_ARG;", r"tiny_run returns -1 for row 0"),
        ('__asm volatile("udf #0"); y[0] = x[0];', r"an undefined instruction by .*tiny_run"),
    ],
)
def test_stray_under_qemu(body: str, message: str) -> None:
    with pytest.raises(DiffersError, match=message):
        run_text(f"y[0] = x[0]; {body}", AN500)


def test_run_on_board_tells_the_fault() -> None:
    model = hand_written("mcg_status_t tiny_run(const int32_t *x, int32_t *y)\n{ y[0] = x[0]; return MCG_OK; }\n")
    assert run_on_board(model, ROW, board(H743), find_cross_compiler(GCC)).y[0, 0] == 3
