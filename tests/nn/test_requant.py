"""Requantization against arithmetic on big integers."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcugen.errors import InternalError, UnsupportedError
from mcugen.nn.requant import Requant, requant_of, requantize

INT32_MIN, INT32_MAX = -(1 << 31), (1 << 31) - 1


def exact(acc: int, m: int, s: int, zero_point: int, low: int, high: int) -> int:
    """Round half up of acc * m / 2^s, on integers without a width."""
    return min(max(math.floor(Fraction(acc * m, 1 << s) + Fraction(1, 2)) + zero_point, low), high)


def one(m: int, s: int, zero_point: int = 0, low: int = -32768, high: int = 32767) -> Requant:
    return Requant(np.array([m], np.int32), np.array([s], np.int32), zero_point, low, high)


@pytest.mark.parametrize("shift", range(1, 63))
@pytest.mark.parametrize("m", [1 << 30, (1 << 30) + 1, 0x5A82799A, INT32_MAX, 0])
def test_every_shift_at_the_ends_and_at_ties(shift: int, m: int) -> None:
    """N1: CMSIS-NN 177 and 214."""
    acc = {INT32_MIN, INT32_MIN + 1, -1, 0, 1, INT32_MAX - 1, INT32_MAX}
    for target in (-129, -128, -3, -1, 0, 1, 2, 126, 127, 32767):
        if m:  # sums next to the point where the result turns from target to target + 1
            tie = math.floor(Fraction((2 * target + 1) << shift, 2 * m))
            acc |= {a for a in range(tie - 2, tie + 3) if INT32_MIN <= a <= INT32_MAX}
    values = sorted(acc)
    for zero_point, low, high in ((0, -32768, 32767), (-128, -128, 127), (127, -128, 127), (5, 5, 90)):
        got = requantize(np.array(values), one(m, shift, zero_point, low, high))
        assert got.tolist() == [exact(a, m, shift, zero_point, low, high) for a in values]


def test_a_tie_rounds_up_once() -> None:
    """Exactly half, and just above a half that rounding twice would carry."""
    assert requantize(np.array([1, -1, 3, -3]), one(1 << 30, 31)).tolist() == [1, 0, 2, -1]
    assert requantize(np.array([4, 5, -5]), one(1 << 30, 33)).tolist() == [1, 1, -1]


@given(st.floats(min_value=2.0**-31, max_value=2.0**29))
def test_multipliers_are_nearest(factor: float) -> None:
    r = requant_of(factor)
    m, s = int(r.multiplier[0]), int(r.shift[0])
    assert 1 << 30 <= m < 1 << 31
    assert 1 <= s <= 62
    assert abs(Fraction(m, 1 << s) - Fraction(factor)) <= Fraction(1, 1 << (s + 1))


def test_the_largest_fraction_becomes_one() -> None:
    """round(q * 2^31) is 2^31: the multiplier is halved and the shift lowered."""
    r = requant_of([1 - 2.0**-40, 0.5 - 2.0**-41, 0.5])
    assert r.multiplier.tolist() == [1 << 30] * 3
    assert r.shift.tolist() == [30, 31, 31]


def test_a_factor_of_zero_is_a_constant() -> None:
    r = requant_of([0.0, 0.25], zero_point=7)
    assert r.multiplier.tolist()[0] == 0
    assert requantize(np.array([[INT32_MAX, 4], [INT32_MIN, 8]]), r).tolist() == [[7, 8], [7, 9]]


@pytest.mark.parametrize("factor", [-1.0, math.nan, math.inf, 2.0**30])
def test_factors_without_a_shift_are_refused(factor: float) -> None:
    with pytest.raises(UnsupportedError, match="layer3"):
        requant_of([0.5, factor], where="layer3")


def test_channels_lie_along_the_axis() -> None:
    r = requant_of([1.0, 0.5, 0.25])
    acc = np.arange(24).reshape(2, 3, 4)
    got = requantize(acc, r, 1)
    for c, s in enumerate((1, 2, 4)):
        assert got[:, c].tolist() == np.floor(acc[:, c] / s + 0.5).astype(int).tolist()


def test_accumulators_must_fit_int32() -> None:
    with pytest.raises(InternalError, match="int32"):
        requantize(np.array([1 << 31]), one(1 << 30, 31))


def test_problems_are_named() -> None:
    good = requant_of([0.5, 0.25])
    assert good.problem(2) == ""
    assert "channels" in good.problem(3)
    assert requant_of(0.5).problem(3) == ""
    assert "multiplier" in one(12345, 40).problem(1)
    assert "shift" in one(1 << 30, 63).problem(1)
    assert "clamps" in one(1 << 30, 40, 0, 5, 4).problem(1)


@pytest.mark.parametrize("factor", [math.nextafter(2.0**-32, 0), 2.0**-33, 5e-324])
@pytest.mark.parametrize("acc", [-(2**31), 2**31 - 1, 0])
def test_a_factor_too_small_for_any_accumulator(factor: float, acc: int) -> None:
    """No int32 comes to half a unit: the output is the zero point, exactly."""
    assert math.floor(Fraction(acc) * Fraction(factor) + Fraction(1, 2)) == 0
    assert requantize(np.array([acc]), requant_of([factor], 7)).tolist() == [7]
