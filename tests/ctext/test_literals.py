"""Every literal, compiled, gives the bits it was made from."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mcugen.ctext import literals as lit
from mcugen.ctext.arrays import array_chunks, array_rows
from mcugen.errors import InternalError

Run = Callable[[str], bytes]
few = settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])

F32_EDGES = [0x0, 0x80000000, 0x1, 0x80000001, 0x7FFFFF, 0x800000, 0x7F7FFFFF, 0xFF7FFFFF, 0x3F800001, 0x33D6BF95]
F64_EDGES = [0, 1 << 63, 1, (1 << 52) - 1, 1 << 52, 0x7FEFFFFFFFFFFFFF, 0xFFEFFFFFFFFFFFFF, 0x3FF0000000000001]


def program(ctype: str, rows: str) -> str:
    head = f"#include <stdint.h>\n#include <stdio.h>\nstatic const {ctype} x[] = {{\n{rows}}};\n"
    return head + "int main(void) { return fwrite(x, sizeof x, 1, stdout) == 1 ? 0 : 1; }\n"


def scalars(texts: list[str]) -> str:
    return "".join(f"{t},\n" for t in texts)


def finite(bits: list[int], kind: str) -> np.ndarray:
    values = np.array(bits, f"<u{kind[1:]}").view(f"<{kind}")
    return values[np.isfinite(values)]


@few
@given(st.lists(st.integers(0, 2**32 - 1), min_size=200, max_size=400))
def test_float32_bits(run_c: Run, bits: list[int]) -> None:
    values = finite(F32_EDGES + bits, "f4")
    assert run_c(program("float", array_rows(values))) == values.tobytes()


@few
@given(st.lists(st.integers(0, 2**64 - 1), min_size=200, max_size=400))
def test_float64_bits(run_c: Run, bits: list[int]) -> None:
    values = finite(F64_EDGES + bits, "f8")
    assert run_c(program("double", array_rows(values))) == values.tobytes()


def test_float_sweep(run_c: Run) -> None:
    rng = np.random.default_rng(1)
    for kind, ctype in (("f4", "float"), ("f8", "double")):
        wide = f"<u{kind[1:]}"
        bits = rng.integers(0, np.iinfo(wide).max, 100_000, dtype=wide, endpoint=True)
        values = finite(bits.tolist(), kind)
        assert run_c(program(ctype, array_rows(values))) == values.tobytes()


@pytest.mark.parametrize("bits", [8, 16, 32, 64])
def test_integer_bits(run_c: Run, bits: int) -> None:
    low, high = -(1 << (bits - 1)), (1 << (bits - 1)) - 1
    rng = np.random.default_rng(bits)
    signed = rng.integers(low, high, 500, dtype=f"<i{bits // 8}", endpoint=True)
    signed[:6] = [low, low + 1, -1, 0, 1, high]
    unsigned = signed.view(f"<u{bits // 8}")
    for hexadecimal in (False, True):
        assert run_c(program(f"int{bits}_t", array_rows(signed, hexadecimal=hexadecimal))) == signed.tobytes()
        rows = array_rows(unsigned, hexadecimal=hexadecimal)
        assert run_c(program(f"uint{bits}_t", rows)) == unsigned.tobytes()
    one_by_one = scalars([lit.int_literal(int(v), bits) for v in signed])
    assert one_by_one == array_rows(signed, per_line=1, indent="")


def test_literals_in_expressions(run_c: Run) -> None:
    """The type of a literal is right too: unsigned stays unsigned, the smallest integer is negative."""
    tests = [
        f"{lit.int_literal(-(2**31))} < 0",
        f"{lit.int_literal(-(2**63), 64)} < 0",
        f"sizeof({lit.int_literal(-(2**31))}) == 4",
        f"sizeof({lit.int_literal(1, 64)}) == 8",
        " - ".join(lit.uint_literals([0, 1], 32)) + " > 0",
        f"{lit.hex_literals([0], 64)[0]} - 1 > 0",
        f"sizeof({lit.float32_literal(0.5)}) == 4",
        f"sizeof({lit.float64_literal(0.5)}) == 8",
    ]
    asserts = "".join(f'_Static_assert({t}, "{i}");\n' for i, t in enumerate(tests))
    assert run_c(asserts + "int main(void) { return 0; }\n") == b""


def test_text_is_short_and_stable() -> None:
    assert lit.float32_literal(3.0) == "0x1.8p+1f"
    assert lit.float64_literal(1.0) == "0x1p+0"
    assert lit.float64_literal(-0.0) == "-0x0p+0"
    assert lit.float64_literal(5e-324) == "0x0.0000000000001p-1022"
    assert lit.int_literal(-(2**31)) == "(-2147483647 - 1)"
    assert lit.uint_literals([255], 8) == ["255"]
    assert lit.hex_literals([255], 32) == ["0x000000FFU"]


@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan])
def test_not_finite(value: float) -> None:
    for call in (lit.float32_literal, lit.float64_literal):
        with pytest.raises(InternalError):
            call(value)
    with pytest.raises(InternalError):
        array_rows(np.array([0.0, value], np.float32))


@pytest.mark.parametrize("value", [0.1, 1e39, 1e-50, 2.0**24 + 1])
def test_float32_is_never_rounded_silently(value: float) -> None:
    with pytest.raises(InternalError):
        lit.float32_literal(value)


@pytest.mark.parametrize(("value", "bits"), [(128, 8), (-129, 8), (2**31, 32), (-(2**63) - 1, 64), (0, 24)])
def test_integer_range(value: int, bits: int) -> None:
    with pytest.raises(InternalError):
        lit.int_literal(value, bits)


def test_structs_and_nested(run_c: Run) -> None:
    dtype = np.dtype([("threshold", "<f4"), ("feature", "<u2"), ("child", "<i2", (3,)), ("big", "<u4"), ("low", "<i4")])
    a = np.zeros(1000, dtype)
    rng = np.random.default_rng(0)
    a["threshold"] = rng.standard_normal(1000)
    a["feature"] = rng.integers(0, 2**16, 1000)
    a["child"] = rng.integers(-(2**15), 2**15, (1000, 3))
    a["big"] = rng.integers(0, 2**32, 1000)
    a["low"] = -(2**31)
    ctype = "struct { float threshold; uint16_t feature; int16_t child[3]; uint32_t big; int32_t low; }"
    assert run_c(program(ctype, array_rows(a, hexadecimal=True))) == a.tobytes()
    b = rng.integers(-128, 128, (50, 3, 2)).astype(np.int8)
    rows = array_rows(b)
    assert rows.count("\n") == 50
    source = program("int8_t", rows).replace("x[]", "x[50][3][2]")
    assert run_c(source) == b.tobytes()


def test_layout() -> None:
    assert array_rows([1, 2, 3], per_line=2, indent="  ") == "  1LL, 2LL,\n  3LL,\n"
    assert array_rows(np.array([[1, 2], [3, 4]], np.int16)) == "    {1, 2},\n    {3, 4},\n"
    assert array_rows(np.array([True, False])) == "    1, 0,\n"
    assert array_rows(np.array([1.5], ">f4")) == "    0x1.8p+0f,\n"


@pytest.mark.parametrize("shape", [(), (0,), (3, 0)])
def test_no_empty_initializers(shape: tuple[int, ...]) -> None:
    with pytest.raises(InternalError):
        array_rows(np.zeros(shape, np.int8))


@pytest.mark.parametrize("data", [np.zeros(2, np.float16), np.zeros(2, complex), np.array(["a"]), np.array([None])])
def test_unknown_elements(data: np.ndarray) -> None:
    with pytest.raises(InternalError):
        array_rows(data)


@pytest.mark.parametrize("n", [65_535, 65_536, 65_537, 200_003])
@pytest.mark.parametrize("per_line", [1, 7, 100_000])
def test_chunks_do_not_show(n: int, per_line: int) -> None:
    """Lines are full up to the last one, wherever the chunks end."""
    a = (np.arange(n) % 100).astype(np.uint8)
    text = "".join(array_chunks(a, per_line=per_line, indent=""))
    lines = text.splitlines()
    assert all(line.count(",") == per_line for line in lines[:-1])
    assert np.array_equal(np.array(text.replace("\n", "").rstrip(",").split(","), np.uint8), a)
