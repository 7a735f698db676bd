"""The generated C in every surrounding that users have: compilers, languages, levels, links, threads, sanitizers."""

from __future__ import annotations

import ctypes
import itertools
import shutil
import subprocess
from pathlib import Path

import exports
import numpy as np
import pytest
from exports import KINDS, WARNINGS, get, put, run
from tree_models import Export

from mcugen.core.types import DType
from mcugen.emit.parts import ports_of
from mcugen.verify.compare import compare_bits
from mcugen.verify.compiler import find_host_compiler
from mcugen.verify.export_check import check_host
from mcugen.verify.hostbuild import HostModel, build_shared
from mcugen.verify.sanitize import build_runner, run_golden

HOSTS = [c for c in ("gcc", "clang") if shutil.which(c)]
FUSED = ("-std=gnu11", "-ffp-contract=fast", "-march=native", "-mtune=generic")
needs_gcc = pytest.mark.skipif("gcc" not in HOSTS, reason="no gcc")
needs_nm = pytest.mark.skipif(shutil.which("nm") is None, reason="no nm")
kinds = pytest.mark.parametrize("kind", KINDS)


def _signature(export: Export) -> tuple[DType, int, DType, int]:
    x, y = (export.machine.types[v] for v in (export.machine.inputs[0], export.machine.outputs[0]))
    return x.dtype, x.count, y.dtype, y.count


# Same bits


@kinds
def test_equals_reference(kind: str) -> None:
    """Outputs, leaves, after the move of tables, and the self-test."""
    e = get(kind)
    check_host(e.files, e.machine, e.ref.x, e.ref.y, e.ref.trace, find_host_compiler())


@pytest.mark.parametrize("compiler", HOSTS)
@pytest.mark.parametrize("level", ["-O0", pytest.param("-O1", marks=pytest.mark.slow), "-O3"])
@pytest.mark.parametrize("kind", ["linear", "linear_counts", "rows_linear", "softmax", "sigmoid", "float64", "mean"])
def test_contraction_changes_nothing(kind: str, level: str, compiler: str) -> None:
    """The host's fused multiply-add is on, as GCC's gnu modes would have it."""
    e = get(kind)
    with (
        build_shared(e.files, e.sources, find_host_compiler(compiler), (*FUSED, level)) as library,
        HostModel(library, e.name, *ports_of(e.machine)) as host,
    ):
        difference = compare_bits(e.ref.y, host.run(e.ref.x), kind)
        assert difference is None, str(difference)
        assert host.selftest() == 0


def test_contraction_would_change_something() -> None:
    """The test above has teeth: without MCG_ROUNDED this host gives other bits."""
    if "gcc" not in HOSTS or " fma" not in _cpu_flags():
        pytest.skip("no gcc, or no fused multiply-add")
    e = get("linear")
    files = dict(e.files)
    files["mcugen/mcg.h"] = str(files["mcugen/mcg.h"]).replace('__asm__("" : "+x"(v))', "((void)(v))")
    with (
        build_shared(files, e.sources, find_host_compiler("gcc"), FUSED) as library,
        HostModel(library, e.name, *ports_of(e.machine)) as host,
    ):
        assert compare_bits(e.ref.y, host.run(e.ref.x), "y") is not None


def _cpu_flags() -> str:
    info = Path("/proc/cpuinfo")
    return info.read_text() if info.exists() else ""


# Sanitizers


@pytest.mark.parametrize("compiler", [c if c == "gcc" else pytest.param(c, marks=pytest.mark.slow) for c in HOSTS])
@pytest.mark.parametrize(
    "kind", ["float32", "sentinel", "category", "linear", "classes", "softmax", "constant", "no_category"]
)
def test_sanitizers(kind: str, compiler: str) -> None:
    """Every golden vector, each in a block of exactly its size."""
    e = get(kind)
    with build_runner(e.files, e.sources, e.name, find_host_compiler(compiler)) as program:
        result = run_golden(program, e.golden)
    assert (result.returncode, result.output) == (0, f"{len(e.ref.x)} vectors equal\n")


# Compilers and levels

QUICK = [("gcc", "c11", "-O0"), ("gcc", "gnu11", "-O3"), ("clang", "c11", "-Os"), ("clang", "gnu11", "-O2")]
EVERY = itertools.product(("gcc", "clang"), ("c11", "gnu11", "gnu17"), ("-O0", "-Os", "-O2", "-O3"))


def _matrix() -> list[object]:
    slow = [pytest.param(*c, marks=pytest.mark.slow) for c in EVERY if c not in QUICK]
    return [*QUICK, *slow]


@pytest.mark.parametrize(("compiler", "standard", "level"), _matrix())
def test_no_warning(compiler: str, standard: str, level: str, tmp_path: Path) -> None:
    if compiler not in HOSTS:
        pytest.skip(f"no {compiler}")
    for kind in KINDS:
        e, folder = get(kind), put(get(kind), tmp_path / kind)
        for trace in ([], ["-DMCG_TRACE"]):
            run([compiler, f"-std={standard}", level, *WARNINGS, *trace, "-c", f"{e.name}.c"], folder)
        run([compiler, f"-std={standard}", level, *WARNINGS, "-c", f"{e.name}_selftest.c"], folder)


CORES = {
    "m7": ["-mcpu=cortex-m7", "-mfpu=fpv5-d16", "-mfloat-abi=hard"],
    "m4": ["-mcpu=cortex-m4", "-mfpu=fpv4-sp-d16", "-mfloat-abi=hard"],
    "m0plus": ["-mcpu=cortex-m0plus", "-mfloat-abi=soft"],
}


@pytest.mark.parametrize("core", CORES)
@pytest.mark.parametrize(
    "level", ["-O2", pytest.param("-O0", marks=pytest.mark.slow), pytest.param("-Os", marks=pytest.mark.slow)]
)
def test_arm(core: str, level: str, tmp_path: Path) -> None:
    """No warning, and nothing from a library but memcpy, memset and the compiler's arithmetic."""
    if shutil.which("arm-none-eabi-gcc") is None:
        pytest.skip("no arm-none-eabi-gcc")
    for kind in KINDS:
        e, folder = get(kind), put(get(kind), tmp_path / kind)
        run(["arm-none-eabi-gcc", "-mthumb", *CORES[core], "-std=gnu11", level, *WARNINGS, "-c", *e.sources], folder)
        symbols = run(["arm-none-eabi-nm", "-u", *(Path(s).stem + ".o" for s in e.sources)], folder)
        wanted = {line.split()[-1] for line in symbols.splitlines() if line.split() and not line.endswith(":")}
        own = {s for s in wanted if s.startswith((e.name, "mcg_", "__mcg_", "__start_mcg", "__stop_mcg", "__aeabi_"))}
        assert wanted - own <= {"memcpy", "memset"}, wanted - own


@needs_gcc
@kinds
def test_free_standing(kind: str, tmp_path: Path) -> None:
    """A link without any library, with a memcpy and a memset of one's own."""
    e, folder = get(kind), put(get(kind), tmp_path)
    (folder / "memory.c").write_text(
        "#include <stddef.h>\n"
        "void *memcpy(void *to, const void *from, size_t n);\nvoid *memset(void *to, int v, size_t n);\n"
        "void *memcpy(void *to, const void *from, size_t n)\n{ char *t = to; const char *f = from;"
        " while (n--) *t++ = *f++; return to; }\n"
        "void *memset(void *to, int v, size_t n)\n{ char *t = to; while (n--) *t++ = (char)v; return to; }\n"
    )
    flags = ["-std=c11", "-ffreestanding", "-fno-stack-protector", "-fno-tree-loop-distribute-patterns", "-O2", "-fPIC"]
    link = ["-nostdlib", "-nostartfiles", "-shared", "-Wl,-z,defs", "-Wl,--no-allow-shlib-undefined"]
    run(["gcc", *flags, *link, *e.sources, "memory.c", "-o", "free.so"], folder)


# C++, two models, threads


@pytest.mark.skipif(shutil.which("g++") is None or "gcc" not in HOSTS, reason="no g++")
def test_cpp(tmp_path: Path) -> None:
    """Headers of all exports in one C++ file, one of them linked and run."""
    for kind in KINDS:
        put(get(kind), tmp_path / kind)
        main = f'#include "{kind}.h"\n#include "{kind}_selftest.h"\n#include "mcugen/mcg_sections.h"\n'
        main += f"int main() {{ mcg_sections_init(); return static_cast<int>({kind}_selftest()); }}\n"
        (tmp_path / kind / "main.cpp").write_text(main)
        run(["g++", "-std=c++17", *WARNINGS, "-c", "main.cpp"], tmp_path / kind)
    folder, e = tmp_path / "sigmoid", get("sigmoid")
    run(["gcc", "-std=c11", "-O1", "-c", *e.sources], folder)
    run(["g++", "main.o", *(Path(s).stem + ".o" for s in e.sources), "-o", "main"], folder)
    run(["./main"], folder)


@pytest.mark.parametrize("compiler", HOSTS)
@pytest.mark.parametrize("flags", [("-fno-common",), ("-flto", "-fno-common")])
def test_models_link_together(compiler: str, flags: tuple[str, ...], tmp_path: Path) -> None:
    """All models in one program: one runtime, no symbol twice; then every self-test runs."""
    sources, calls = set(), []
    for kind in KINDS:
        e = get(kind)
        put(e, tmp_path)
        sources |= set(e.sources)
        calls.append(f"{kind}_selftest() != 0")
    includes = "".join(f'#include "{k}_selftest.h"\n' for k in KINDS)
    includes += '#include "mcugen/mcg_sections.h"\n'
    body = f"    int bad = {' || '.join(calls)};\n    mcg_sections_init();\n    return bad || {' || '.join(calls)};\n"
    (tmp_path / "main.c").write_text(f"{includes}int main(void)\n{{\n{body}}}\n")
    built = subprocess.run(
        [compiler, "-std=c11", "-O2", *flags, "main.c", *sorted(sources), "-o", "main"],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if built.returncode != 0 and "LLVMgold" in built.stderr + built.stdout:
        pytest.skip("this clang has no linker plugin for -flto")
    assert built.returncode == 0, built.stderr[:2000]
    run(["./main"], tmp_path)


def test_runtime_files_are_the_same_in_every_export() -> None:
    """All that a project adds once; the linker fragment belongs to a board, and a header to a plan."""
    own = {"mcugen/mcugen.ld", "mcugen/mcg_placement.h"}
    first = {f: t for f, t in get(KINDS[0]).files.items() if f.startswith("mcugen/") and f not in own}
    assert first
    for kind in KINDS:
        files = get(kind).files
        assert {f: t for f, t in files.items() if f.startswith("mcugen/") and f not in own} == first


THREADS = """#include "{n}.h"
#include <pthread.h>
#include <string.h>
#define ROWS {rows}
static const {x} in[ROWS * {U}_INPUTS] = {{{values}}};
static {y} out[2][ROWS * {U}_OUTPUTS];
static void *work(void *arg)
{{
    {y} *y = arg;
    for (int again = 0; again < 50; ++again) {{
        for (uint32_t i = 0; i < ROWS; ++i) {{
            if ({n}_run(&in[i * {U}_INPUTS], &y[i * {U}_OUTPUTS]) != MCG_OK) return arg;
        }}
    }}
    return NULL;
}}
int main(void)
{{
    pthread_t t;
    void *one = NULL;
    if (pthread_create(&t, NULL, work, out[0]) != 0) return 77;
    void *two = work(out[1]);
    pthread_join(t, &one);
    return one != NULL || two != NULL || memcmp(out[0], out[1], sizeof out[0]) != 0;
}}
"""


@needs_gcc
@pytest.mark.parametrize("kind", ["classes", "sentinel"])
def test_two_threads(kind: str, tmp_path: Path) -> None:
    """Under the thread sanitizer: no access of one disturbs the other."""
    e, folder = get(kind), put(get(kind), tmp_path)
    x_type, _, y_type, _ = _signature(e)
    rows = e.ref.x[:64]
    values = ", ".join(str(v) for v in rows.reshape(-1).tolist())
    facts = {"n": kind, "U": kind.upper(), "rows": len(rows), "x": x_type.ctype, "y": y_type.ctype, "values": values}
    (folder / "main.c").write_text(THREADS.format(**facts))
    flags = ["-std=gnu11", "-O1", "-g", "-pthread", "-fsanitize=thread"]
    run(["gcc", *flags, "main.c", *e.sources, "-o", "main"], folder)
    done = subprocess.run(["./main"], cwd=folder, capture_output=True, text=True, check=False)
    if "unexpected memory mapping" in done.stderr:
        pytest.skip("the thread sanitizer cannot run here")
    assert done.returncode == 0, done.stderr[:1500]


@needs_gcc
@needs_nm
@kinds
def test_no_writable_data(kind: str, tmp_path: Path) -> None:
    """Without RAM copies nothing is writable: every table is const, so NAME_run is reentrant and RAM stays free."""
    e, folder = get(kind), put(get(kind), tmp_path)
    run(["gcc", "-std=c11", "-O2", "-fno-pic", "-c", f"{e.name}.c"], folder)
    symbols = [line.split() for line in run(["nm", f"{e.name}.o"], folder).splitlines()]
    writable = {s[-1] for s in symbols if s[-2] in "dDbBC"}
    copied = {s for s in writable if s.endswith(("_copy", "_active"))}
    assert writable == copied
    assert not copied or "mcugen/mcugen.ld" in e.files
    public = {s[-1] for s in symbols if s[-2].isupper() and s[-2] != "U"}
    assert public == {f"{e.name}_run", f"{e.name}_run_batch"}


# Arguments


@kinds
def test_arguments(kind: str) -> None:
    """Null and misaligned pointers give MCG_ERR_ARG and touch nothing; zero rows are fine."""
    e = get(kind)
    x_type, n, y_type, k = _signature(e)
    with build_shared(e.files, e.sources, find_host_compiler(), ("-DMCG_TRACE",)) as path:
        library = ctypes.CDLL(str(path))
        one, batch, leaves = (getattr(library, f"{e.name}_{f}") for f in ("run", "run_batch", "leaves"))
        x_bytes = np.concatenate([e.ref.x[:1].view(np.uint8).reshape(-1), np.zeros(16, np.uint8)])
        y_bytes = np.full(k * y_type.size + 4 * e.ref.trace.shape[1] + 16, 0xA5, np.uint8)
        x, y = x_bytes.ctypes.data, y_bytes.ctypes.data
        assert x % 8 == y % 8 == 0
        bad = [(None, y), (x, None), (None, None)]
        bad += [(x + d, y) for d in range(1, x_type.size)] + [(x, y + d) for d in range(1, y_type.size)]
        for a, b in bad:
            pa, pb = ctypes.c_void_p(a), ctypes.c_void_p(b)
            assert one(pa, pb) == -1
            assert batch(pa, pb, ctypes.c_uint32(1)) == -1
        assert (
            leaves(ctypes.c_void_p(None), ctypes.c_void_p(y))
            == leaves(ctypes.c_void_p(x), ctypes.c_void_p(y + 1))
            == -1
        )
        assert batch(ctypes.c_void_p(x), ctypes.c_void_p(y), ctypes.c_uint32(0)) == 0
        assert np.all(y_bytes == 0xA5)
        assert one(ctypes.c_void_p(x), ctypes.c_void_p(y)) == 0
        assert np.array_equal(y_bytes[: k * y_type.size], e.ref.y[:1].view(np.uint8).reshape(-1))
        assert np.all(y_bytes[k * y_type.size :] == 0xA5)
        ctypes_close(library)
    assert n == e.ref.x.shape[1]


def ctypes_close(library: ctypes.CDLL) -> None:
    """The folder of the library goes away; the mapping may stay."""
    del library


# What the C compiler checks again


@needs_gcc
@pytest.mark.parametrize(
    ("flags", "told"),
    [
        (("-U__BYTE_ORDER__", "-D__BYTE_ORDER__=__ORDER_BIG_ENDIAN__"), "little-endian"),
        (("-Ofast",), "-ffast-math"),
    ],
)
def test_refuses_other_targets(flags: tuple[str, ...], told: str, tmp_path: Path) -> None:
    e, folder = get("linear"), put(get("linear"), tmp_path)
    command = ["gcc", "-std=c11", *flags, "-w", "-fsyntax-only", f"{e.name}.c"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert told in done.stderr


@needs_gcc
def test_refuses_another_runtime(tmp_path: Path) -> None:
    """The #error names the remedy."""
    folder = put(get("float32"), tmp_path)
    header = folder / "mcugen" / "mcg.h"
    header.write_text(header.read_text().replace("#define MCG_ABI ", "#define MCG_ABI 99"))
    done = subprocess.run(
        ["gcc", "-fsyntax-only", "float32.c"], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode != 0
    assert "take the folder mcugen/ from the same export" in done.stderr


@needs_gcc
def test_integer_models_do_not_mind_fast_math(tmp_path: Path) -> None:
    """Trees with fixed-point leaves work under -Ofast, NaN inputs included: keys are integers."""
    e = get("float32")
    with (
        # Without start files: crtfastmath.o would make the whole Python process flush subnormals to zero.
        build_shared(e.files, e.sources, find_host_compiler("gcc"), ("-Ofast", "-nostartfiles")) as library,
        HostModel(library, e.name, *ports_of(e.machine)) as host,
    ):
        assert compare_bits(e.ref.y, host.run(e.ref.x), "y") is None


@needs_gcc
@pytest.mark.skipif(shutil.which("cmake") is None, reason="no cmake")
@pytest.mark.slow
def test_cmake(tmp_path: Path) -> None:
    """Two exports as subdirectories of one project: the runtime target exists once."""
    for kind in ("float32", "classes"):
        put(get(kind), tmp_path / kind)
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.16)\nproject(t C)\nadd_subdirectory(float32)\nadd_subdirectory(classes)\n"
    )
    run(["cmake", "-S", ".", "-B", "build"], tmp_path)
    run(["cmake", "--build", "build"], tmp_path)


assert exports.KINDS == KINDS
