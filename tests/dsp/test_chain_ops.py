"""ConvertUnits, RealSamples, QuantizeReals, FrameSamples: against exact numbers, C against the reference."""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from push_rig import LOC, Case, check_board, check_c

from mcugen.core.op import MachineOp
from mcugen.core.types import DType, QParams, TensorType
from mcugen.dsp.ops import ConvertUnits, FrameSamples, QuantizeReals, RealSamples
from mcugen.dsp.ops.convert_units import units_of
from mcugen.errors import InternalError, UnsupportedError

ENDS = {DType.I16: (-32768, -32767, -1, 0, 1, 32766, 32767), DType.I32: (-(2**31), -1, 0, 1, 77, 2**31 - 1)}
UNITS = ((1e-9, 0.0), (-0.003, 0.25), (1.0, -1e6), (0.5, 0.0), (1e-30, 1.0), (2.0**20, 3.0))


def convert(source: DType, target: DType, scale: float, offset: float, q: QParams) -> ConvertUnits:
    return ConvertUnits(("x",), ("y",), LOC, source, target, *units_of((scale, scale), (offset, offset), q, "test"))


def samples(dtype: DType, rows: int = 60) -> np.ndarray:
    """(T, 2): the ends of the type, and numbers of all sizes."""
    rng = np.random.default_rng(4)
    if dtype is DType.F32:
        odd = [0.0, -0.0, np.nan, np.inf, -np.inf, 1e-45, 3e38, 0.5, 1.5, 2.5, -2.5]
        more = rng.normal(size=2 * rows) * 10.0 ** rng.integers(-3, 4, 2 * rows)
        return np.concatenate([np.repeat(odd, 2), more]).astype(np.float32).reshape(-1, 2)
    small = np.rint(rng.normal(size=2 * rows) * 2.0 ** rng.integers(0, 8 * dtype.size - 2, 2 * rows))
    return np.concatenate([np.repeat(ENDS[dtype], 2), small]).astype(dtype.np).reshape(-1, 2)


def cases() -> list[Case]:
    found = []
    for source in (DType.I16, DType.I32):
        for scale, offset in UNITS:
            for target in (DType.I8, DType.I16):
                q = QParams(0.01, 5 if target is DType.I8 else 0)
                found.append(Case(convert(source, target, scale, offset, q), samples(source)))
            numbers = (np.full(2, v, np.float32) for v in (scale, offset))
            found.append(Case(RealSamples(("x",), ("y",), LOC, source, *numbers), samples(source)))
    for target, zero in ((DType.I8, -128), (DType.I8, 7), (DType.I16, 0)):
        op = QuantizeReals(("x",), ("y",), LOC, target, 2, float(np.float32(0.1)), zero)
        found.append(Case(op, samples(DType.F32)))
    return found


def frame(dtype: DType, width: int, length: int, step: int, planar: bool) -> FrameSamples:
    return FrameSamples(("x",), ("y",), LOC, dtype, width, length, step, planar)


def test_c_equals_reference(tmp_path: Path) -> None:
    check_c(cases(), tmp_path)


def test_board_equals_reference(tmp_path: Path) -> None:
    check_board(cases(), tmp_path)


@given(
    st.integers(-(2**31), 2**31 - 1),
    st.floats(1e-12, 1e3) | st.floats(-1e3, -1e-12),
    st.floats(-1e4, 1e4),
    st.floats(1e-6, 1e2),
    st.integers(-128, 127),
)
@settings(deadline=None)
def test_units_are_exact_to_a_small_part(x: int, scale: float, offset: float, unit: float, zero: int) -> None:
    """Against exact rationals: off by one only where the exact value is within 2^-8 of a tie."""
    q = QParams(unit, zero)
    try:
        op = convert(DType.I32, DType.I8, scale, offset, q)
    except UnsupportedError:
        factor, base = abs(Fraction(scale) / Fraction(unit)), abs(Fraction(offset) / Fraction(unit) + zero)
        assert factor >= 2**29 or base >= 2**58
        return
    exact = (Fraction(scale) * x + Fraction(offset)) / Fraction(unit) + zero
    found = int(op.eval(np.full((1, 2), x, np.int32))[0][0, 0])
    slack = Fraction(1, 256) + abs(exact) / 2**29
    low, high = (max(-128, min(127, math.floor(exact + Fraction(1, 2) + s))) for s in (-slack, slack))
    assert low <= found <= high


@given(st.lists(st.floats(width=32, allow_nan=True), min_size=1, max_size=8), st.integers(-128, 127))
@settings(deadline=None)
def test_quantize_reals_is_round_half_even(values: list[float], zero: int) -> None:
    scale = np.float32(0.37)
    x = np.array(values, np.float32)[:, None]
    op = QuantizeReals(("x",), ("y",), LOC, DType.I8, 1, float(scale), zero)
    with np.errstate(over="ignore", invalid="ignore"):
        ratio = (x / scale)[:, 0]
    for r, y in zip(np.clip(ratio, -1e6, 1e6).tolist(), op.eval(x)[0][:, 0].tolist(), strict=True):
        assert y == (zero if math.isnan(r) else max(-128, min(127, round(r) + zero)))


FRAMES = [(1, 1, 1), (1, 5, 2), (2, 3, 1), (3, 4, 4), (5, 7, 9)]


@pytest.mark.parametrize("planar", [False, True])
def test_frames_are_the_last_samples(planar: bool) -> None:
    for width, length, step in FRAMES:
        x = np.arange(40 * width, dtype=np.int32).reshape(40, width)
        op = frame(DType.I32, width, length, step, planar)
        found = list(op.eval(x)[0])
        wanted = [x[e - length : e] for e in range(length, 41, step)]
        assert len(found) == len(wanted) == op.due(40).sum()
        for a, b in zip(found, wanted, strict=True):
            np.testing.assert_array_equal(a, b.T if planar else b)


def test_frames_in_c(tmp_path: Path) -> None:
    """Both layouts, every size of element, rings that wrap, steps beyond the window."""
    rng = np.random.default_rng(0)
    found = []
    for dtype in (DType.I8, DType.I16, DType.I32, DType.F32):
        for width, length, step in FRAMES:
            for planar in (False, True):
                x = rng.integers(0, 256, 40 * width * dtype.size, np.uint8).view(dtype.np).reshape(40, width)
                x = np.nan_to_num(x) if dtype.is_float else x
                found.append(Case(Flat(frame(dtype, width, length, step, planar)), x))  # type: ignore[arg-type]
    check_c(found, tmp_path)
    check_board(found, tmp_path)


class Flat:
    """A frame with its results as rows, as the rig wants them."""

    def __init__(self, op: FrameSamples) -> None:
        self.op = op

    def __getattr__(self, name: str) -> object:
        return getattr(self.op, name)

    def eval(self, *args: np.ndarray) -> tuple[np.ndarray, ...]:
        (y,) = self.op.eval(*args)
        return (y.reshape(len(y), -1),)


def test_specs_are_checked() -> None:
    i16, i8 = TensorType((2,), DType.I16), TensorType((2,), DType.I8)
    f32 = TensorType((2,), DType.F32)
    right: list[tuple[MachineOp, TensorType, TensorType]] = [
        (convert(DType.I16, DType.I8, 0.1, 0.0, QParams(1.0)), i16, i8),
        (RealSamples(("x",), ("y",), LOC, DType.I16, np.ones(2, np.float32), np.ones(2, np.float32)), i16, f32),
        (QuantizeReals(("x",), ("y",), LOC, DType.I8, 2, 0.5, 3), f32, i8),
        (frame(DType.I16, 2, 3, 1, False), i16, TensorType((1, 3, 2), DType.I16)),
    ]
    for op, x, y in right:
        op.check({"x": x, "y": y})
        for wrong in ({"x": y, "y": x}, {"x": x, "y": TensorType((3,), y.dtype)}):
            with pytest.raises(InternalError):
                op.check(wrong)
        assert op.cost().worst_steps > 0


def test_units_that_do_not_suit() -> None:
    with pytest.raises(UnsupportedError, match="do not suit an input of unit"):
        units_of((1e20,), (0.0,), QParams(1e-6), "net")
