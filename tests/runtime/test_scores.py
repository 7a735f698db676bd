"""mcg_scores.c gives numpy's bits, whatever compiler, optimization and contraction of products the user has."""

from __future__ import annotations

import ctypes
import itertools
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from tree_models import LOC, nans

from mcugen.core.float_math import exp_f32, log1p_f32
from mcugen.core.types import Array, DType
from mcugen.resources import resource_dir
from mcugen.trees.ops import Above, ArgMax, DivideScores, ScaleScores, Softmax, Transform
from mcugen.verify.compare import compare_bits

PLAIN = ("-std=c11",)
#: What GCC does by default in gnu modes: fuse a * b + c, here with the host's FMA. Tuned for AMD, GCC shuns it in sums.
FUSED = ("-std=gnu11", "-ffp-contract=fast", "-march=native", "-mtune=generic")
QUICK = [("gcc", "-O2", FUSED), ("clang", "-O3", FUSED), ("gcc", "-O0", PLAIN)]
EVERY = [
    c
    for c in itertools.product(("gcc", "clang"), ("-O0", "-O1", "-O2", "-O3", "-Os"), (PLAIN, FUSED))
    if c not in QUICK
]
WARNINGS = ("-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Wpedantic", "-Werror")

# Every upper half of a float's bit pattern, with a few lower halves.
LOWER = np.array([0, 1, 0x5A5A, 0x8000, 0xFFFF], np.uint32)
PATTERNS = (np.arange(1 << 16, dtype=np.uint32)[:, None] << np.uint32(16) | LOWER).reshape(-1).view(np.float32)


def _configurations() -> list[object]:
    quick = [pytest.param(c, id=_name(c)) for c in QUICK]
    return quick + [pytest.param(c, id=_name(c), marks=pytest.mark.slow) for c in EVERY]


def _name(c: tuple[str, str, tuple[str, ...]]) -> str:
    return f"{c[0]}{c[1]}{'-fused' if c[2] is FUSED else ''}"


@pytest.fixture(scope="module", params=_configurations())
def lib(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    """The runtime as a library."""
    compiler, level, mode = request.param
    if not shutil.which(compiler):
        pytest.skip(f"no {compiler}")
    return _build([compiler, *mode, level], resource_dir("runtime_c"), tmp_path_factory.mktemp("scores") / "scores.so")


def _build(compiler: list[str], base: Path, out: Path) -> ctypes.CDLL:
    """mcg_scores.c of the runtime folder ``base``, without a warning."""
    source = base / "src" / "mcg_scores.c"
    command = [*compiler, *WARNINGS, "-fPIC", "-shared", f"-I{base / 'include'}", str(source), "-o", str(out)]
    built = subprocess.run(command, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr[:2000]
    return ctypes.CDLL(str(out))


def _call(lib: ctypes.CDLL, name: str, x: Array, y: Array, *middle: object) -> Array:
    pointer = ctypes.c_void_p
    getattr(lib, name)(x.ctypes.data_as(pointer), *middle, y.ctypes.data_as(pointer), ctypes.c_uint32(x.size))
    return y


def _equal(expected: Array, found: Array) -> None:
    difference = compare_bits(expected, found, "y")
    assert difference is None, str(difference)


def _row(x: Array) -> Array:
    return x.reshape(1, -1)


F32, F64 = ctypes.c_float, ctypes.c_double


@pytest.mark.parametrize(
    ("kind", "function"),
    [("exp", "mcg_exponential_f32"), ("log1p_exp", "mcg_log1p_exp_f32"), ("signed_square", "mcg_signed_square_f32")],
)
def test_transforms(lib: ctypes.CDLL, kind: str, function: str) -> None:
    want = Transform((), (), LOC, kind, 1.0, PATTERNS.size).eval(_row(PATTERNS))[0][0]
    _equal(want, _call(lib, function, PATTERNS, np.empty_like(PATTERNS)))
    again = PATTERNS.copy()  # x and y may be the same array
    _equal(want, _call(lib, function, again, again))


@pytest.mark.parametrize("slope", [1.0, 2.0, 0.3, 1e-3, 1e38, 1e-45])
def test_sigmoid(lib: ctypes.CDLL, slope: float) -> None:
    want = Transform((), (), LOC, "sigmoid", slope, PATTERNS.size).eval(_row(PATTERNS))[0][0]
    _equal(want, _call(lib, "mcg_sigmoid_f32", PATTERNS, np.empty_like(PATTERNS), F32(slope)))


def test_dense_exp_and_log1p(lib: ctypes.CDLL) -> None:
    """Points close together where the functions are not flat."""
    x = np.linspace(-105, 90, 300_000).astype(np.float32)
    _equal(exp_f32(x), _call(lib, "mcg_exponential_f32", x, np.empty_like(x)))
    lib.mcg_log1p_f32.restype, lib.mcg_log1p_f32.argtypes = F32, [F32]
    some = np.linspace(0, 1, 2_001).astype(np.float32)
    _equal(log1p_f32(some), np.array([lib.mcg_log1p_f32(v) for v in some.tolist()], np.float32))


def test_contraction_would_change_something(tmp_path: Path) -> None:
    """The tests have teeth: without MCG_ROUNDED_F32 this host gives other bits."""
    info = Path("/proc/cpuinfo")
    if not shutil.which("gcc") or not info.exists() or " fma" not in info.read_text():
        pytest.skip("no gcc, or no fused multiply-add")
    base = tmp_path / "runtime_c"
    shutil.copytree(resource_dir("runtime_c"), base)
    header = base / "include" / "mcg.h"
    header.write_text(header.read_text().replace('__asm__("" : "+x"(v))', "((void)(v))"))
    x = np.linspace(-105, 90, 300_000).astype(np.float32)
    library = _build(["gcc", *FUSED, "-O2"], base, tmp_path / "scores.so")
    assert compare_bits(exp_f32(x), _call(library, "mcg_exponential_f32", x, np.empty_like(x)), "y") is not None


@pytest.mark.parametrize("count", [1, 2, 3, 7, 64])
def test_softmax(lib: ctypes.CDLL, count: int) -> None:
    rng = np.random.default_rng(count)
    x = rng.normal(0, 5, (600, count)).astype(np.float32)
    x[200:400] *= np.float32(20)  # results below the normal range
    x[400:] = rng.choice(PATTERNS, (200, count))
    want = Softmax((), (), LOC, count).eval(x)[0]
    got = np.stack([_call(lib, "mcg_softmax_f32", row, np.empty_like(row)) for row in x])
    _equal(want, got)


@pytest.mark.parametrize("scale", [1.0, 2.0**-20, 0.1, 2.0**-149, 2.0**100, 1e-38])
def test_scale(lib: ctypes.CDLL, scale: float) -> None:
    ends = np.array([0, 1, -1, 2**24 + 1, 2**24 + 3, -(2**24) - 1, 2**31 - 1, -(2**31), 2**31 - 64, 2**31 - 65])
    x = np.concatenate([ends, np.random.default_rng(0).integers(-(2**31), 2**31, 5000)]).astype(np.int32)
    want = ScaleScores((), (), LOC, DType.I32, scale, 1, x.size).eval(_row(x))[0][0]
    _equal(want, _call(lib, "mcg_scale_i32_f32", x, np.empty(x.size, np.float32), F32(scale)))


def _doubles() -> Array:
    """Doubles of every exponent, and such as lie just beside the middle between two floats."""
    rng = np.random.default_rng(1)
    any_bits = rng.integers(0, 2**64, 20_000, np.uint64).view(np.float64)
    base = rng.normal(size=2000).astype(np.float32)
    middle = (base.astype(np.float64) + np.nextafter(base, np.float32(9))) / 2
    near = np.concatenate([middle, np.nextafter(middle, 9), np.nextafter(middle, -9)])
    return np.concatenate([any_bits, near, nans(DType.F64), [0.0, -0.0, np.inf, -np.inf, 3.5e38, 1e-46, 5e-324]])


@pytest.mark.parametrize("divisor", [1, 3, 10, 49, 1000])
def test_divide(lib: ctypes.CDLL, divisor: int) -> None:
    x = _doubles()
    with np.errstate(all="ignore"):
        to_float = ScaleScores((), (), LOC, DType.F64, 1.0, divisor, x.size).eval(_row(x))[0][0]
        double = DivideScores((), (), LOC, DType.F64, divisor, x.size).eval(_row(x))[0][0]
        single = DivideScores((), (), LOC, DType.F32, divisor, PATTERNS.size).eval(_row(PATTERNS))[0][0]
    _equal(to_float, _call(lib, "mcg_divide_f64_f32", x, np.empty(x.size, np.float32), F64(divisor)))
    _equal(double, _call(lib, "mcg_divide_f64", x, np.empty_like(x), F64(divisor)))
    _equal(single, _call(lib, "mcg_divide_f32", PATTERNS, np.empty_like(PATTERNS), F32(divisor)))


@pytest.mark.parametrize("dtype", [DType.I32, DType.F32, DType.F64])
def test_argmax(lib: ctypes.CDLL, dtype: DType) -> None:
    """Ties, zeros of both signs, infinities, and NaN, which wins as in numpy."""
    pool = (
        [-(2**31), -1, 0, 1, 2**31 - 1]
        if dtype is DType.I32
        else [0.0, -0.0, 1.0, np.inf, -np.inf, np.nan, -np.nan, 1e-45]
    )
    rng = np.random.default_rng(0)
    function = _by_type(lib, "argmax", dtype)
    for count in (1, 2, 3, 8):
        x = rng.choice(np.array(pool, dtype.np), (500, count))
        want = ArgMax((), (), LOC, dtype, count).eval(x)[0][:, 0]
        got = [function(row.ctypes.data_as(ctypes.c_void_p), ctypes.c_uint32(count)) for row in x]
        assert got == want.tolist()


@pytest.mark.parametrize(("dtype", "ctype"), [(DType.I32, ctypes.c_int32), (DType.F32, F32), (DType.F64, F64)])
def test_above(lib: ctypes.CDLL, dtype: DType, ctype: type) -> None:
    if dtype is DType.I32:
        values: list[float] = [-(2**31), -1, 0, 1, 2**31 - 1]
    else:
        info = np.finfo(dtype.np)
        sub = float(info.smallest_subnormal)
        values = [0.0, -0.0, sub, -sub, float(info.max), -float(info.max), float("inf"), float("-inf"), float("nan")]
    function = _by_type(lib, "above", dtype)
    function.argtypes = [ctype, ctype]
    for limit in values:
        want = Above((), (), LOC, dtype, limit).eval(np.array(values, dtype.np)[:, None])[0][:, 0]
        assert [function(v, limit) for v in values] == want.tolist()


def _by_type(lib: ctypes.CDLL, name: str, dtype: DType) -> Callable[..., int]:
    suffix = {DType.I32: "i32", DType.F32: "f32", DType.F64: "f64"}[dtype]
    return getattr(lib, f"mcg_{name}_{suffix}")  # type: ignore[no-any-return]


def test_fast_math_is_refused(tmp_path: Path) -> None:
    """Whoever includes the header with -ffast-math gets an #error that says what to do."""
    if not shutil.which("gcc"):
        pytest.skip("no gcc")
    (tmp_path / "t.c").write_text('#include "mcg_scores.h"\n')
    include = f"-I{resource_dir('runtime_c') / 'include'}"
    command = ["gcc", "-fsyntax-only", include, str(tmp_path / "t.c")]
    assert subprocess.run(command, capture_output=True, check=False).returncode == 0
    refused = subprocess.run([*command[:1], "-Ofast", *command[1:]], capture_output=True, text=True, check=False)
    assert refused.returncode != 0
    assert "build without -ffast-math" in refused.stderr
