"""Several models in one budget, in one program; what another KiB of fast memory buys; buffers for a DMA."""

from __future__ import annotations

import itertools
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

import pytest
import target_image as ti
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from mcugen.build import export_together
from mcugen.cli import app
from mcugen.core.op import Item
from mcugen.doctor.verbs import check_elf
from mcugen.emit.sources import sources_of
from mcugen.errors import InputError
from mcugen.recipes.prepared import ExportOptions
from mcugen.resources import resource_dir
from mcugen.target.board import load_board
from mcugen.target.placement import Group, place, place_together
from mcugen.target.plan import Plan, PlanDoesNotFitError
from mcugen.target.stalls import Traffic, stall_cycles

BOARD = load_board("stm32h743")
MODEL = Path(__file__).parents[2] / "examples" / "quickstart" / "furnace.txt"
SPEC = MODEL.with_name("spec.toml")
needs_gcc = pytest.mark.skipif(not ti.have_cross_compiler(), reason="no arm-none-eabi-gcc")


def stalls(plans: Iterable[Plan]) -> float:
    pairs = [(a.item, a.region) for p in plans for a in p.assignments]
    traffic = Traffic.of([i for i, _ in pairs])
    total = 0.0
    for item, name in pairs:
        region = BOARD.region(name)
        assert region is not None
        total += stall_cycles(item, region, BOARD, traffic)
    return total


# -- one budget


def test_groups_share_the_memories() -> None:
    a = [ti.table("a_t", 12_000, 90_000.0)]
    b = [ti.table("b_t", 12_000, 10_000.0)]
    assert place(b, BOARD).of("b_t").region == "dtcm"  # alone there is room for it
    first, second = place_together([Group(tuple(a)), Group(tuple(b))], BOARD)
    assert (first.of("a_t").region, second.of("b_t").region) == ("dtcm", "flash")
    assert first.usage[1].used == 48_000
    assert second.usage[1].used == 0


def test_a_group_may_keep_out_of_ram() -> None:
    items = tuple(ti.table(f"{n}_t", 100, 900.0) for n in "ab")
    first, second = place_together([Group(items[:1], False), Group(items[1:])], BOARD)
    assert (first.of("a_t").region, second.of("b_t").region) == ("flash", "dtcm")


def test_together_they_do_not_fit() -> None:
    groups = [Group((ti.arena(f"{n}_arena", 200_000, 1.0),)) for n in "abc"]
    place_together(groups[:1], BOARD)
    with pytest.raises(PlanDoesNotFitError):
        place_together(groups, BOARD)


items_st = st.lists(st.tuples(st.integers(1, 12_000), st.integers(1, 50_000)), min_size=1, max_size=5)


@given(items_st, items_st)
@settings(max_examples=40, deadline=None)
def test_the_common_choice_is_the_best_of_all(a: list[tuple[int, int]], b: list[tuple[int, int]]) -> None:
    """Brute force: no subset of the tables of both models that fits into DTCM waits for fewer cycles."""
    groups = [
        Group(tuple(ti.table(f"{n}_{i}", size, float(reads)) for i, (size, reads) in enumerate(sizes)))
        for n, sizes in (("a", a), ("b", b))
    ]
    plans = place_together(groups, BOARD)
    items = [i for g in groups for i in g.items]
    traffic, flash, dtcm = Traffic.of(items), BOARD.home, BOARD.region("dtcm")
    assert dtcm is not None
    slow = {i.symbol: stall_cycles(i, flash, BOARD, traffic) for i in items}
    best = sum(slow.values())
    for chosen in itertools.product((False, True), repeat=len(items)):
        moved = [i for i, c in zip(items, chosen, strict=True) if c]
        if sum(-(-i.size // 4) * 4 for i in moved) <= dtcm.available:
            best = min(best, sum(c for s, c in slow.items() if s not in {i.symbol for i in moved}))
    assert stalls(plans) <= best + 1.0 * len(items) + 1e-6  # what saves less than one cycle stays


def test_the_order_of_models_decides_nothing() -> None:
    groups = [Group(tuple(ti.table(f"{n}_{i}", 3_000 + 500 * i, 900.0 * i) for i in range(6))) for n in "ab"]
    forward = place_together(groups, BOARD)
    backward = place_together(groups[::-1], BOARD)
    assert [a.region for a in forward[0].assignments] == [a.region for a in backward[1].assignments]


# -- the next KiB


def test_what_the_next_kib_buys() -> None:
    """65,536 bytes of DTCM are there for models: a table of 65,600 bytes waits outside, 64 bytes too large."""
    plan = place([ti.table("m_big", 16_400, 50_000.0), ti.code("m_f")], BOARD)
    assert plan.of("m_big").region == "flash"
    bought = dict(plan.next_kib)
    region = BOARD.region("dtcm")
    assert region is not None
    assert bought["dtcm"] == pytest.approx(stalls([plan]) - 0.0, rel=0.2)
    assert bought["itcm"] == 0.0
    nothing = place([ti.table("m_small", 10, 50_000.0)], BOARD)
    assert dict(nothing.next_kib)["dtcm"] == 0.0


def test_it_is_printed(tmp_path: Path) -> None:
    words = ["export", str(MODEL), "--no-verify", "-o", str(tmp_path / "out")]
    done = CliRunner().invoke(app, [*words, "--explain"])
    assert "dtcm   the next KiB would save nothing: all that gains there is there already" in done.output
    assert "next KiB" not in CliRunner().invoke(app, words).output


# -- exports


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("two")
    other = folder / "other.txt"
    shutil.copy(MODEL, other)
    plain = ExportOptions(verify=False, leaf="int32")
    export_together([MODEL, other], folder / "out", [ExportOptions(verify=False, spec=SPEC), plain])
    return folder / "out"


def build(folder: Path, program: Path, words: list[str]) -> subprocess.CompletedProcess[str]:
    models = [program / "main.c", folder / "furnace" / "furnace.c", folder / "other" / "other.c"]
    files = {str(p.relative_to(folder / "furnace")): p.read_bytes() for p in (folder / "furnace").rglob("*.c")}
    runtime = [folder / "furnace" / p for p in sources_of(files) if p.startswith("mcugen/")]
    command = [ti.GCC, *BOARD.flags, "-std=gnu11", *ti.WARNINGS, "-ffunction-sections", "-fdata-sections", *words]
    command += [f"-I{folder / 'furnace'}", f"-I{folder / 'other'}", *map(str, (*models, *runtime)), "-Wl,--gc-sections"]
    command += ["-T", str(ti.SCRIPTS / "cubeide.ld"), f"-Wl,-T,{folder / 'furnace' / 'mcugen' / 'mcugen.ld'}"]
    return subprocess.run([*command, "-o", "app.elf"], cwd=program, capture_output=True, text=True, check=False)


def main_c(more: str = "") -> str:
    return (
        '#include "furnace.h"\n#include "mcugen/mcg_sections.h"\n#include "other.h"\n'
        "extern unsigned _estack[];\nvoid Reset_Handler(void);\nint32_t y[2];\nint16_t x[12];\nfloat f[12];\n"
        f"{more}"
        "void Reset_Handler(void)\n{\n    mcg_sections_init();\n    (void)furnace_run(x, y);\n"
        "    (void)other_run(f, y + 1);\n    for (;;) { }\n}\n"
        '__attribute__((section(".isr_vector"), used)) void *const vectors[2] = {_estack, (void *)Reset_Handler};\n'
    )


@needs_gcc
@pytest.mark.parametrize("words", [["-O2", "-fno-common"], ["-Os", "-flto"], ["-Og", "-g3"]], ids=lambda w: w[0])
def test_two_models_in_one_firmware(words: list[str], two: Path, tmp_path: Path) -> None:
    """L12 of the cases: static names may not clash, with -fno-common and with LTO."""
    (tmp_path / "main.c").write_text(main_c())
    done = build(two, tmp_path, [*words, "-nostartfiles"])
    assert done.returncode == 0, done.stderr
    report = check_elf(tmp_path / "app.elf", exports=[two / "furnace", two / "other"])
    assert report.findings == ()
    assert {n.model for n in report.program.notes} == {"furnace", "other"}
    assert {i.symbol.split("_")[0] for i, _ in report.placed} == {"furnace", "other"}


@needs_gcc
@pytest.mark.parametrize("opt", ["-O0", "-O3"])
def test_no_libc_but_memcpy_and_memset(opt: str, two: Path, tmp_path: Path) -> None:
    """L16 of the cases: -nostdlib -ffreestanding, with a stub for each of the two; libgcc is the compiler's own."""
    stubs = (
        "void *memcpy(void *to, const void *from, size_t n);\nvoid *memset(void *to, int c, size_t n);\n"
        "void *memcpy(void *to, const void *from, size_t n)\n"
        "{ for (size_t i = 0; i < n; i++) { ((volatile char *)to)[i] = ((const char *)from)[i]; } return to; }\n"
        "void *memset(void *to, int c, size_t n)\n"
        "{ for (size_t i = 0; i < n; i++) { ((volatile char *)to)[i] = (char)c; } return to; }\n"
    )
    (tmp_path / "main.c").write_text(main_c(stubs))
    done = build(two, tmp_path, [opt, "-nostdlib", "-ffreestanding"])
    assert done.returncode == 0, done.stderr


def test_the_runtime_is_the_same_in_both(two: Path) -> None:
    for path in sorted((two / "furnace" / "mcugen").iterdir()):
        assert path.read_bytes() == (two / "other" / "mcugen" / path.name).read_bytes()


def test_the_command(tmp_path: Path) -> None:
    shutil.copy(MODEL, tmp_path / "b.txt")
    out = tmp_path / "out"
    words = ["export", str(MODEL), str(tmp_path / "b.txt"), "-o", str(out), "--no-verify", "--spec", f"furnace={SPEC}"]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    assert (
        "const int16_t x[12]" in (out / "furnace" / "furnace.h").read_text()
        or (out / "furnace" / "furnace.h").is_file()
    )
    assert "furnace_run(const int16_t *x" in (out / "furnace" / "furnace.h").read_text()
    assert "b_run(const float *x" in (out / "b" / "b.h").read_text()
    assert done.output.count("wrote     ") == 2
    used = [line for line in done.output.splitlines() if line.startswith("flash ") and " of " in line]
    assert len(used) == 1


def test_what_cannot_be_together(tmp_path: Path) -> None:
    options = [ExportOptions(verify=False)] * 2
    with pytest.raises(InputError, match="two of them are called furnace"):
        export_together([MODEL, MODEL], tmp_path / "out", options)
    done = CliRunner().invoke(app, ["export", str(MODEL), str(MODEL), "--name", "x"])
    assert "is for one model" in str(done.exception)
    done = CliRunner().invoke(app, ["export", str(MODEL), "--spec", str(SPEC), "--spec", str(SPEC)])
    assert "is the second file" in str(done.exception)
    assert not (tmp_path / "out").exists()


# -- buffers for a DMA

DMA = """
#include "mcugen/mcg_dma.h"
MCG_DMA_BUFFER(sram1, samples) static int16_t samples[MCG_DMA_BYTES(1000) / 2u];
MCG_MPU_BUFFER(axi, frames, 4096u) static uint8_t frames[4096];
_Static_assert(MCG_DMA_BYTES(1000) == 1024u && MCG_DMA_BYTES(1024) == 1024u && MCG_DMA_BYTES(1) == 32u, "size");
_Static_assert(MCG_MPU_IS_SIZE(sizeof frames) && !MCG_MPU_IS_SIZE(48u) && !MCG_MPU_IS_SIZE(16u), "power of two");
volatile int32_t reached;
"""


@needs_gcc
def test_buffers_of_the_user_by_the_macros(two: Path, tmp_path: Path) -> None:
    text = main_c(DMA).replace(
        "    (void)furnace_run",
        "    reached = mcg_mpu_make_uncached(15u, frames, sizeof frames);\n"
        "    samples[3]++;\n    frames[5]++;\n    (void)furnace_run",
    )
    (tmp_path / "main.c").write_text(text)
    done = build(two, tmp_path, ["-O2", "-nostartfiles"])
    assert done.returncode == 0, done.stderr
    report = check_elf(tmp_path / "app.elf", dma=["samples", "samples=mdma", "frames=dma2"], mpu=["frames"])
    assert report.findings == ()
    wrong = check_elf(tmp_path / "app.elf", dma=["samples=bdma"], mpu=["samples"])
    assert [f.where for f in wrong.findings] == ["samples"]  # 1,024 bytes, and on a multiple of them: a region too
    assert 0x3000_0000 <= report.program.names["samples"][0].address < 0x3002_0000


MPU_HOST = """
#include "mcg_dma.h"
uint32_t size_of(uint32_t bytes);
int32_t region_of(uint32_t region, uint32_t base, uint32_t bytes, uint32_t *out);
uint32_t size_of(uint32_t bytes) { return mcg_mpu_size(bytes); }
int32_t region_of(uint32_t region, uint32_t base, uint32_t bytes, uint32_t *out)
{ return mcg_mpu_uncached(region, base, bytes, out, out + 1); }
"""


@pytest.fixture(scope="module")
def mpu(tmp_path_factory: pytest.TempPathFactory) -> tuple[object, object]:
    import cffi  # noqa: PLC0415

    compiler = shutil.which("gcc") or shutil.which("cc") or shutil.which("clang")
    if compiler is None:
        pytest.skip("no host compiler")
    folder = tmp_path_factory.mktemp("mpu")
    (folder / "mpu.c").write_text(MPU_HOST)
    include = f"-I{resource_dir('runtime_c') / 'include'}"
    words = [compiler, "-std=c11", *ti.WARNINGS, include, "-shared", "-fPIC", "mpu.c", "-o", "mpu.so"]
    subprocess.run(words, cwd=folder, check=True)
    ffi = cffi.FFI()
    ffi.cdef("uint32_t size_of(uint32_t); int32_t region_of(uint32_t, uint32_t, uint32_t, uint32_t *);")
    return ffi, ffi.dlopen(str(folder / "mpu.so"))


@given(st.one_of(st.integers(0, 2**32 - 1), st.integers(0, 31).map(lambda n: 1 << n)))
@settings(max_examples=300, deadline=None)
def test_the_size_of_an_mpu_region(mpu: tuple[object, object], n: int) -> None:
    _, lib = mpu
    size = lib.size_of(n)  # type: ignore[attr-defined]
    if n == 0 or n > 2**31:
        assert size == 0
    else:
        assert size == max(32, 1 << (n - 1).bit_length())


@given(st.integers(0, 20), st.integers(0, 2**32 - 1), st.integers(0, 32), st.booleans(), st.integers(0, 40))
@settings(max_examples=500, deadline=None)
def test_an_mpu_region_is_a_power_of_two_on_its_multiple(
    mpu: tuple[object, object], region: int, base: int, log2: int, aligned: bool, odd: int
) -> None:
    """L14 of the cases. The fields are taken apart as the architecture manual of ARMv7-M defines them."""
    ffi, lib = mpu
    size = min((1 << log2) + (odd if odd > 30 else 0), 2**32 - 1)
    base = base & ~(size - 1) & 0xFFFF_FFFF if aligned else base
    out = ffi.new("uint32_t[2]", [7, 7])  # type: ignore[attr-defined]
    status = lib.region_of(region, base, size, out)  # type: ignore[attr-defined]
    power = size >= 32 and size & (size - 1) == 0
    if region > 15 or not power or base % size:
        assert (status, out[0], out[1]) == (-1, 7, 7)
        return
    assert status == 0
    rbar, rasr = out
    assert rbar & ~0x1F == base
    assert rbar & 0x1F == 0x10 | region
    assert 1 << (((rasr >> 1) & 0x1F) + 1) == size
    assert rasr & 1
    assert (rasr >> 19 & 7, rasr >> 18 & 1, rasr >> 17 & 1, rasr >> 16 & 1) == (1, 1, 0, 0)  # TEX S C B
    assert (rasr >> 28 & 1, rasr >> 24 & 7, rasr >> 8 & 0xFF) == (1, 3, 0)  # XN AP, no subregion off


def test_a_dma_buffer_in_dtcm_is_refused() -> None:
    """L1 of the cases, at export; test_check_elf has it for the linked program."""
    item: Item = ti.arena("m_dma", 64, 1.0, dma=True)
    with pytest.raises(InputError, match="dma1 does not reach dtcm"):
        place([item], BOARD, {"m_dma": "dtcm"})
    assert place([item], BOARD).of("m_dma").region != "dtcm"
