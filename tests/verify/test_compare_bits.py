"""Comparison bit by bit."""

from __future__ import annotations

import numpy as np
import pytest
from fake_model import fake_golden, stateful_golden

from mcugen.core.types import Array, DType
from mcugen.errors import InputError
from mcugen.verify.compare import compare_bits, compare_golden_device
from mcugen.verify.golden import Golden, GoldenTensor, golden_bytes, read_golden


@pytest.mark.parametrize("dtype", [t.np for t in DType] + [np.dtype(np.int64), np.dtype(np.bool_)], ids=str)
def test_one_flipped_bit_is_found(dtype: np.dtype) -> None:
    base = np.ones((5, 2, 3), dtype)
    for flat in (0, 7, 29):
        other = base.copy()
        raw = other.view(np.uint8).reshape(30, dtype.itemsize)
        raw[flat, 0] ^= 1
        d = compare_bits(base, other, "y")
        assert d is not None
        assert (d.vector, *d.element) == tuple(int(i) for i in np.unravel_index(flat, base.shape))
        assert (d.count, d.total) == (1, 30)
    assert compare_bits(base, base.copy(), "y") is None


def test_first_difference_count_and_text() -> None:
    a = np.zeros((4, 3), np.float32)
    b = a.copy()
    b[2, 1], b[3, 0], b[3, 2] = -0.0, 1.0, np.nan
    assert str(compare_bits(a, b, "score")) == (
        "score: vector 2 element 1: expected 0.0 (0x00000000), found -0.0 (0x80000000); 3 of 12 values differ"
    )
    c = np.array([5, -6], np.int8)
    d = compare_bits(c, np.array([5, 7], np.int8), "k")
    assert str(d) == "k: vector 1: expected -6 (0xfa), found 7 (0x07); 1 of 2 values differ"


def test_neighbouring_floats_print_apart() -> None:
    for t in (np.float32, np.float64):
        a = np.array([0.1], t)
        d = compare_bits(a, np.nextafter(a, t(1)), "y")
        assert d is not None
        assert d.expected.split()[0] != d.found.split()[0]


def test_all_nans_are_one_value_and_differ_from_numbers() -> None:
    for unsigned, floating, patterns in (
        (np.uint32, np.float32, (0x7FC00000, 0xFFC00000, 0x7F800001, 0xFFFFFFFF)),
        (np.uint64, np.float64, (0x7FF8000000000000, 0xFFF8000000000000, 0x7FF0000000000001)),
    ):
        nans = np.array(patterns, unsigned).view(floating)
        assert compare_bits(np.full_like(nans, np.nan), nans, "y") is None
        assert compare_bits(np.full_like(nans, np.inf), nans, "y") is not None
        assert compare_bits(nans, np.zeros_like(nans), "y") is not None


@pytest.mark.parametrize(
    "actual",
    [np.zeros((2, 3), np.float64), np.zeros((3, 2), np.float32), np.zeros(6, np.float32), np.zeros((2, 3), np.int32)],
)
def test_shape_and_type(actual: Array) -> None:
    d = compare_bits(np.zeros((2, 3), np.float32), actual, "y")
    assert d is not None
    assert d.vector is None
    assert "expected float32 (2, 3), found" in str(d)


def test_no_vectors_and_strided() -> None:
    assert compare_bits(np.zeros((0, 3), np.int8), np.zeros((0, 3), np.int8), "y") is None
    a = np.arange(12, dtype=np.int16).reshape(3, 4)
    assert compare_bits(a.T, np.ascontiguousarray(a.T), "y") is None
    assert compare_bits(a[:, ::2], a[:, 1::2], "y") is not None


def test_device_equal_and_different() -> None:
    g = read_golden(golden_bytes(fake_golden()), "g")
    y = g.of_role("output")[0].data
    assert compare_golden_device(g, y.tobytes()) == []
    other = y.copy()
    other.view(np.uint32)[17, 1] ^= 1
    (d,) = compare_golden_device(g, other.tobytes())
    assert (d.name, d.vector, d.element, d.count) == ("y", 17, (1,), 1)


def test_device_nan_of_another_kind_is_equal() -> None:
    g = read_golden(golden_bytes(fake_golden()), "g")
    y = g.of_role("output")[0].data.copy()
    y.view(np.uint32)[np.isnan(y)] = 0xFFFFFFFF
    assert compare_golden_device(g, y.tobytes()) == []


@pytest.mark.parametrize("change", [-1, 1, -4, 8])
def test_device_length(change: int) -> None:
    g = fake_golden()
    need = g.of_role("output")[0].data.nbytes
    with pytest.raises(
        InputError, match=rf"^out\.bin: expected {need} bytes \(y: 243 x 2 float32\), found {need + change}"
    ):
        compare_golden_device(g, bytes(need + change), "out.bin")


def test_device_several_outputs_in_order_without_padding() -> None:
    a, b = np.array([1, 2, 3], np.int8), np.array([[4, 5], [6, 7], [8, 9]], np.int32)
    x = GoldenTensor("x", "input", np.zeros(3, np.int8))
    g = Golden(1, bytes(32), (x, GoldenTensor("a", "output", a), GoldenTensor("b", "output", b)), 3)
    assert compare_golden_device(g, a.tobytes() + b.tobytes()) == []
    found = compare_golden_device(g, (a + np.int8(1)).tobytes() + (b + 1).tobytes())
    assert [(d.name, d.count) for d in found] == [("a", 3), ("b", 6)]


def test_device_pending_steps_are_not_compared() -> None:
    g = stateful_golden()
    y = g.of_role("output")[0].data.copy()
    y[[0, 2, 4]] = 77
    assert compare_golden_device(g, y.tobytes()) == []
    y[3, 0] = 77
    (d,) = compare_golden_device(g, y.tobytes())
    assert d.vector == 3
