"""The stand-alone program: equal, different, and what only a sanitizer sees."""

from __future__ import annotations

import shutil
import struct

import numpy as np
import pytest
from fake_model import ABI, SHA, SOURCES, fake_files, fake_golden, stateful_golden

from mcugen.errors import DiffersError, InputError, InternalError
from mcugen.verify.compiler import WARNINGS, HostCompiler, find_host_compiler
from mcugen.verify.golden import HEADER, TENSOR, Golden, GoldenTensor, golden_bytes
from mcugen.verify.sanitize import SANITIZER_EXIT, RunResult, build_runner, run_golden

KINDS = [k for k in ("gcc", "clang") if shutil.which(k)]


def _run(
    replace: dict[str, str], golden: Golden, *, kind: str = "gcc", sections: str = "", stateful: bool = False
) -> RunResult:
    compiler = find_host_compiler(kind if kind in KINDS else None)
    with build_runner(fake_files(replace, sections), SOURCES, "fake", compiler, stateful=stateful) as program:
        return run_golden(program, golden_bytes(golden))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("stateful", [False, True])
def test_equal_and_free_of_warnings(kind: str, stateful: bool) -> None:
    g = stateful_golden() if stateful else fake_golden()
    compiler = find_host_compiler(kind)
    with build_runner(fake_files(), SOURCES, "fake", compiler, WARNINGS, stateful=stateful) as program:
        assert run_golden(program, golden_bytes(g)) == RunResult(0, f"{g.vectors} vectors equal\n")
    assert _run({}, g, kind=kind, stateful=stateful) == RunResult(0, f"{g.vectors} vectors equal\n")


def test_no_vectors_and_no_extras() -> None:
    empty = Golden(ABI, SHA, tuple(GoldenTensor(t.name, t.role, t.data[:0]) for t in fake_golden().tensors), 0)
    with build_runner(fake_files(), SOURCES[:1], "fake", find_host_compiler(), ()) as program:
        assert run_golden(program, golden_bytes(empty)).returncode == 0


def test_difference_is_named() -> None:
    g = fake_golden()
    y = g.tensors[1].data.copy()
    y[5, 1] = 12.5
    changed = Golden(g.abi, g.model_sha256, (g.tensors[0], GoldenTensor("score", "output", y)), g.vectors)
    result = _run({}, changed)
    assert result.returncode == 1
    assert result.output.startswith("score: vector 5 element 1: expected 12.5 (0x41480000), found ")


@pytest.mark.parametrize(
    ("replace", "sections", "told"),
    [
        ({"y[1] = x[2] - x[0];": "y[1] = x[0] - x[2];"}, "", "y: vector"),
        ({"y[1] = x[2] - x[0];": ""}, "", "y: vector 0 element 1"),
        ({"    return x == NULL || y": "    return y"}, "", None),
        ({" || y == NULL": ""}, "", None),
        ({" || !MCG_ALIGNED(x, 4)": ""}, "", None),
        ({" || !MCG_ALIGNED(y, 4)": ""}, "", None),
        (
            {"if (bad(x, y)) { return MCG_ERR_ARG; }": "if (bad(x, y)) { return -7; }"},
            "",
            "status -7, expected -1",
        ),
        ({"y[1] = x[2] - x[0];": "y[1] = x[2] - x[0]; *(float *)(uintptr_t)x = 9.0f;"}, "", "input was changed"),
        ({"scale_of = 2.0f": "scale_of = 2.5f"}, "", "y: vector"),
        ({"static float": "float fake_scale; float"}, "extern float scale_of; scale_of = 3.0f;", "y: vector"),
    ],
)
def test_faults_the_comparison_sees(replace: dict[str, str], sections: str, told: str | None) -> None:
    result = _run(replace, fake_golden(), sections=sections)
    if told is None:  # a missing check: the sanitizer or the comparison stops it
        assert result.returncode in (1, SANITIZER_EXIT)
    else:
        assert (result.returncode, told in result.output) == (1, True), result


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("new", "told"),
    [
        ("y[1] = x[2] - x[0] + 0.0f * x[3];", "heap-buffer-overflow"),
        ("y[1] = x[2] - x[0]; y[2] = 0.0f;", "heap-buffer-overflow"),
        ("y[1] = x[2] - x[0]; volatile int32_t big = 2147483647; big = big + 1;", "overflow"),
        ("y[1] = x[2] - x[0]; volatile float f = 3e9f; volatile int32_t i = (int32_t)f; (void)i;", "outside the range"),
        ("y[1] = x[2] - x[0]; volatile int32_t n = 32; volatile int32_t i = 1 << n; (void)i;", "shift"),
        ("y[1] = x[2] - x[0]; static const int8_t t[2] = {1, 2}; volatile int k = 2; volatile int v = t[k]; (void)v;",
         "out of bounds"),
    ],
)  # fmt: skip
def test_faults_only_a_sanitizer_sees(kind: str, new: str, told: str) -> None:
    result = _run({"y[1] = x[2] - x[0];": new}, fake_golden(), kind=kind)
    assert result.returncode == SANITIZER_EXIT, result
    assert told in result.output


@pytest.mark.parametrize(
    ("replace", "told"),
    [
        ({"s->sum = 0.0f; }": "}"}, "y: vector 1"),
        ({"s->seen % 2 != 0": "s->seen % 2 == 0"}, "vector 0: status 0, expected 1"),
        ({"y[0] = s->sum;": "y[0] = s->sum + 1.0f;"}, "y: vector 1 element 0"),
    ],
)
def test_faults_of_state(replace: dict[str, str], told: str) -> None:
    result = _run(replace, stateful_golden(), stateful=True)
    assert result.returncode == 1
    assert told in result.output


def test_selftest_runs() -> None:
    files = fake_files()
    files["fake_selftest.c"] = '#include "fake_selftest.h"\nint32_t fake_selftest(void) { return 7; }\n'
    with build_runner(files, SOURCES, "fake", find_host_compiler(), ()) as program:
        assert run_golden(program, golden_bytes(fake_golden())) == RunResult(1, "selftest: 7\n")


def test_unusable_golden_files_end_with_2_and_no_crash() -> None:
    g = fake_golden()
    data = golden_bytes(g)
    x, y = g.tensors

    def patched(at: int, code: str, *values: int) -> bytes:
        raw = bytearray(data)
        struct.pack_into("<" + code, raw, at, *values)
        return bytes(raw)

    first = HEADER.size
    bad = [
        (data[:40], "shorter"),
        (data[:-8], "length"),
        (b"x" + data[1:], "not a golden file"),
        (patched(8, "I", 2), "format"),
        (patched(12, "I", 99), "ABI"),
        (patched(48, "I", 2**32 - 1), "outside"),
        (patched(52, "I", 257), "too many"),
        (patched(first + TENSOR.offset("dtype"), "I", 9), "outside"),
        (patched(first + TENSOR.offset("offset"), "Q", 2**64 - 8), "outside"),
        (patched(first + TENSOR.offset("offset"), "Q", len(data) - 8), "outside"),
        (patched(first + TENSOR.offset("dim0"), "7I", *([2**32 - 1] * 7)), "outside"),
        (golden_bytes(Golden(ABI, SHA, (x,), g.vectors)), "another count of inputs or outputs"),
        (golden_bytes(Golden(ABI, SHA, (x, GoldenTensor("x2", "input", x.data), y), g.vectors)), "another count"),
    ]
    with build_runner(fake_files(), SOURCES, "fake", find_host_compiler()) as program:
        for raw, told in bad:
            result = run_golden(program, raw)
            assert (result.returncode, told in result.output) == (2, True), (told, result)


def test_endless_loop_is_ended() -> None:
    files = fake_files({"y[1] = x[2] - x[0];": "volatile int go = 1; while (go) { }"})
    build = build_runner(files, SOURCES, "fake", find_host_compiler(), ())
    with build as program, pytest.raises(DiffersError, match=r"did not end within 0\.5 s"):
        run_golden(program, golden_bytes(fake_golden()), timeout=0.5)


def test_unknown_sanitizer_is_the_users_and_bad_code_ours() -> None:
    compiler = find_host_compiler()
    with (
        pytest.raises(InputError, match="builds nothing with"),
        build_runner(fake_files(), SOURCES, "fake", compiler, ("-fsanitize=nonsense",)),
    ):
        pass
    with (
        pytest.raises(InternalError),
        build_runner(fake_files({"y[1] = x[2] - x[0];": "y[1] ="}), SOURCES, "fake", compiler, ()),
    ):
        pass
    with (
        pytest.raises(InputError, match="zig has no address sanitizer"),
        build_runner({}, (), "fake", HostCompiler(("zig", "cc"), "zig", "")),
    ):
        pass


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.float32, np.float64])
def test_the_c_reader_shows_each_type_as_python_does(dtype: type) -> None:
    names = {"float32": "float", "float64": "double"}
    ctype = names.get(np.dtype(dtype).name, np.dtype(dtype).name + "_t")
    header = f'#include "mcugen/mcg.h"\nmcg_status_t one_run(const {ctype} *x, {ctype} *y);\n'
    body = (
        f'#include "one.h"\nmcg_status_t one_run(const {ctype} *x, {ctype} *y) {{\n'
        "    if (!x || !y || !MCG_ALIGNED(x, sizeof *x) || !MCG_ALIGNED(y, sizeof *y)) { return MCG_ERR_ARG; }\n"
        "    y[0] = x[0];\n    return MCG_OK;\n}\n"
    )
    kept = ("mcugen/mcg.h", "mcugen/mcg_placement.h")
    files = {"one.h": header, "one.c": body, **{n: fake_files()[n] for n in kept}}
    info = np.finfo(dtype) if np.dtype(dtype).kind == "f" else np.iinfo(dtype)
    good = np.array([0, 1, info.max, info.min], dtype).reshape(4, 1)
    wrong = good.copy()
    wrong[3] = 1
    with build_runner(files, ["one.c"], "one", find_host_compiler(), ()) as program:
        for y, code in ((good, 0), (wrong, 1)):
            tensors = (GoldenTensor("x", "input", good), GoldenTensor("y", "output", y))
            result = run_golden(program, golden_bytes(Golden(ABI, SHA, tensors, 4)))
            assert result.returncode == code, result
    bits = good.view(f"u{np.dtype(dtype).itemsize}")[3, 0]
    assert f"(0x{int(bits):0{2 * np.dtype(dtype).itemsize}x})" in result.output
    assert dtype(result.output.split("found ")[1].split()[0]) == info.min
