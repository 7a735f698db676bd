"""Weight lanes and their bounds: the identities of the packed form, on the worst inputs there are."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcugen.core.types import frozen_array
from mcugen.nn.packing import (
    Range,
    accumulator_range,
    any_requant,
    lanes,
    matmul_stream,
    packable,
    packed_requant,
)
from mcugen.nn.requant import Requant, requant_of, requantize


def sum_as_the_kernel(words: np.ndarray, x: np.ndarray) -> int:
    """What two SMLAD a word give, modulo 2^32, then shifted right by 8."""
    total = 0
    for word, a in zip(words.tolist(), x.reshape(-1, 4).tolist(), strict=True):
        for half, even, odd in ((0, a[0], a[1]), (16, a[2], a[3])):
            lane = (word >> half) & 0xFFFF
            signed = lane - 0x10000 if lane >= 0x8000 else lane
            low = lane & 0xFF
            first = odd - 127
            second = 256 * even - first
            assert -32768 <= first <= 32767
            assert -32768 <= second <= 32767
            total += signed * first + (low - 256 if low >= 128 else low) * second
    total &= 0xFFFFFFFF
    return (total - (1 << 32) if total >= 1 << 31 else total) >> 8


@given(st.integers(0, 2**32 - 1), st.integers(1, 86), st.sampled_from(["ends", "random"]))
def test_lanes_give_the_dot_product(seed: int, groups: int, kind: str) -> None:
    rng = np.random.default_rng(seed)
    k = 4 * groups
    if kind == "ends":
        w, x = rng.choice([-127, 127], k), rng.choice([-128, 127], k)
    else:
        w, x = rng.integers(-127, 128, k), rng.integers(-128, 128, k)
    assert packable(w[None])
    got = sum_as_the_kernel(lanes(w[None])[0], x)
    assert got == int(w @ x) - 127 * int(w[1::2].sum())


@pytest.mark.parametrize("in_zp", [-128, 0, 127])
def test_the_bound_is_where_it_is_said_to_be(in_zp: int) -> None:
    """Sums in [-2^23, 2^23) are packed, one more is not."""
    w, r = np.full((1, 4), 127, np.int8), requant_of(1e-5)
    reach = accumulator_range(w, np.zeros(1, np.int32), in_zp)
    for edge, fits in (((1 << 23) - 1 - int(reach.high[0]), True), (-(1 << 23) - int(reach.low[0]), True)):
        step = 1 if edge > 0 else -1
        assert matmul_stream(w, np.array([edge], np.int32), in_zp, r, 2).packed is fits
        assert not matmul_stream(w, np.array([edge + step], np.int32), in_zp, r, 2).packed


def test_minus_128_fits_only_beside_a_weight_that_is_not_negative() -> None:
    assert packable(np.array([[0, -128, -128, 127]]))
    assert not packable(np.array([[-1, -128, 0, 0]]))


@given(st.integers(0, 2**32 - 1), st.integers(-128, 127))
def test_accumulator_range_is_reached(seed: int, zero_point: int) -> None:
    rng = np.random.default_rng(seed)
    w = rng.integers(-128, 128, (3, 7)).astype(np.int8)
    bias = rng.integers(-1000, 1000, 3).astype(np.int32)
    r = accumulator_range(w, bias, zero_point)
    for n in range(3):
        highest = np.where(w[n] > 0, 127, -128).astype(np.int64) - zero_point
        lowest = np.where(w[n] > 0, -128, 127).astype(np.int64) - zero_point
        assert int(r.high[n]) == int(w[n].astype(np.int64) @ highest) + int(bias[n])
        assert int(r.low[n]) == int(w[n].astype(np.int64) @ lowest) + int(bias[n])


def requantize_as_the_kernel(v: int, m: int, c: int, shift: int) -> int:
    """SMMLA, ASR, SSAT, with the checks that nothing leaves int32."""
    assert -(1 << 31) <= c < 1 << 31
    total = ((v * m) >> 32) + c
    assert -(1 << 31) <= total < 1 << 31
    return min(max(total >> shift, -128), 127)


SUMS = st.integers(-(1 << 23), (1 << 23) - 1)


@given(
    st.integers(24, 60),
    st.integers(1 << 30, (1 << 31) - 1),
    st.integers(-128, 127),
    st.lists(SUMS, min_size=2, max_size=9),
)
def test_packed_requantization_is_exact(shift: int, m: int, zero_point: int, values: list[int]) -> None:
    """Shifts beyond 47 take fewer bits of m: exact at every step of the result, so also just before and behind one."""
    r = Requant(frozen_array([m], np.int32), frozen_array([shift], np.int32), zero_point, -128, 127)
    low, high = min(values), max(values)
    q = packed_requant(r, Range(np.array([low]), np.array([high])))
    if q is None:
        assert shift < 25 or shift > 47
        return
    for y in range(-4, 5):
        step = (((2 * y - 1) << (shift - 1)) + m - 1) // m
        values += [step - 1, step]
    for v in (v for v in values if low <= v <= high):
        got = requantize_as_the_kernel(256 * v, int(q.multiplier[0]), int(q.c[0]), int(q.shift[0]))
        assert got == int(requantize(np.array(v), r))


def test_long_shifts_are_packed_as_a_rule() -> None:
    rng = np.random.default_rng(1)
    found = []
    for _ in range(300):
        m, shift = int(rng.integers(1 << 30, 1 << 31)), int(rng.integers(48, 56))
        r = Requant(frozen_array([m], np.int32), frozen_array([shift], np.int32), -128, -128, 127)
        found.append(packed_requant(r, Range(np.array([-(1 << 20)]), np.array([1 << 20]))) is not None)
    assert np.mean(found) > 0.99


def test_a_constant_channel_is_packed_whatever_its_shift_and_clamps() -> None:
    reach = accumulator_range(np.zeros((2, 4), np.int8), np.array([40, -70000], np.int32), 3)
    q = packed_requant(requant_of([0.5, 2.0**-20], 9, -20, 20), reach)
    assert q is not None
    assert [
        requantize_as_the_kernel(5, int(m), int(c), int(s)) for m, c, s in zip(q.multiplier, q.c, q.shift, strict=True)
    ] == [20, 9]


def test_which_factors_take_the_other_form() -> None:
    w, bias = np.full((1, 4), 5, np.int8), np.zeros(1, np.int32)
    for r in (requant_of(64.0), requant_of(100.0)):
        assert not matmul_stream(w, bias, 0, r, 2).packed
    for r in (requant_of(63.9), requant_of(0.01, 0, -128, 100), requant_of(0.01, 0, 0, 127)):
        assert matmul_stream(w, bias, 0, r, 2).packed
    assert any_requant(requant_of(0.01), 1).c.tolist() == [1 << (37 - 33)]


@pytest.mark.parametrize(("n", "k", "together"), [(1, 1, 2), (3, 5, 2), (4, 8, 4), (5, 3, 4)])
def test_streams_have_whole_blocks(n: int, k: int, together: int) -> None:
    rng = np.random.default_rng(n)
    w = rng.integers(-5, 6, (n, k)).astype(np.int8)
    s = matmul_stream(w, np.zeros(n, np.int32), 0, requant_of(0.01), together)
    blocks = -(-n // together)
    assert s.words.shape == (blocks * together * (-(-k // 4) + 4),)
    assert s.words.dtype == np.uint32
