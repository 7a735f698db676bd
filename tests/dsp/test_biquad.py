"""BiquadQ15, BiquadQ31, BiquadQ63, BiquadF32: bit for bit as CMSIS-DSP and as the C, sample by sample."""

from __future__ import annotations

from pathlib import Path

import cmsisdsp as dsp
import numpy as np
import pytest
from filter_cases import Biquad, biquad_op, channels_of, quantized, sections, signals
from hypothesis import given, settings
from hypothesis import strategies as st
from push_rig import Case, check_board, check_c, same_bits
from scipy import signal

from mcugen.dsp.ops import BiquadF32, BiquadQ15, BiquadQ31, BiquadQ63

KINDS = (BiquadQ15, BiquadQ31, BiquadQ63)
BITS = {BiquadQ15: 15, BiquadQ31: 31, BiquadQ63: 31}


def cmsis_biquad(op: Biquad, x: np.ndarray, block: int) -> np.ndarray:
    """CMSIS-DSP on one channel, a cascade for each section: it knows one post shift only."""
    for row, post in zip(op.coefficients, op.post_shift, strict=True):
        b, a = row[:3], (-row[3:]).astype(row.dtype)
        if isinstance(op, BiquadQ15):
            filter_, run = dsp.arm_biquad_casd_df1_inst_q15(), dsp.arm_biquad_cascade_df1_q15
            c = np.array([b[0], 0, b[1], b[2], *a], np.int16)
            dsp.arm_biquad_cascade_df1_init_q15(filter_, 1, c, np.zeros(4, np.int16), post)
        elif isinstance(op, BiquadQ31):
            filter_, run = dsp.arm_biquad_casd_df1_inst_q31(), dsp.arm_biquad_cascade_df1_q31
            c = np.array([*b, *a], np.int32)
            dsp.arm_biquad_cascade_df1_init_q31(filter_, 1, c, np.zeros(4, np.int32), post)
        else:
            filter_, run = dsp.arm_biquad_cas_df1_32x64_ins_q31(), dsp.arm_biquad_cas_df1_32x64_q31
            c = np.array([*b, *a], np.int32)
            dsp.arm_biquad_cas_df1_32x64_init_q31(filter_, 1, c, np.zeros(4, np.int64), post)
        whole = len(x) // block * block
        x = np.concatenate([run(filter_, x[i : i + block].copy()) for i in range(0, whole, block)])
    return x


def designs(bits: int) -> list[tuple[np.ndarray, tuple[int, ...]]]:
    found = [quantized(sections(8, 0.2), bits), quantized(sections(3, 0.02), bits)]
    found.append(quantized(signal.tf2sos(*signal.iirnotch(50, 10, fs=125)), bits))
    rng, top = np.random.default_rng(bits), 2**bits - 1
    found.append((rng.integers(-top, top + 1, (2, 5)), (0, 4)))  # unstable: everything saturates or wraps
    found.append((rng.integers(-top, top + 1, (3, 5)), (12, 1, 8)))
    return found


def response_signs(coefficients: np.ndarray, post: tuple[int, ...], bits: int) -> np.ndarray:
    """Signs of what SciPy gives for an impulse, 64 samples: turned round they are the worst case (L1) of a cascade."""
    rows = coefficients / 2.0 ** (bits - np.array(post)[:, None])
    sos = np.insert(rows, 3, 1.0, axis=1)
    return np.sign(np.nan_to_num(signal.sosfilt(sos, np.eye(1, 64)[0])))


@pytest.mark.parametrize("block", [1, 2, 3, 4, 7, 16, 64])
@pytest.mark.parametrize("kind", KINDS)
def test_equals_cmsis(kind: type[Biquad], block: int) -> None:
    """Random, step, impulse, full-scale and worst-case (L1) inputs."""
    for coefficients, post in designs(BITS[kind]):
        op = biquad_op(kind, coefficients, post)
        response = response_signs(coefficients, post, BITS[kind])
        for name, x in signals(op.dtype.np.type, 5, 192, response).items():
            y = op.eval(x[:, None])[0][:, 0]
            expected = cmsis_biquad(op, x, block)
            same_bits(y[: len(expected)], expected, f"{post}, {name}")


def cases(kind: type[Biquad]) -> list[Case]:
    found = []
    for order in (1, 2, 3, 4, 5, 8, 10):
        sos = sections(order, 0.1)
        if kind is BiquadF32:
            designed = [(sos[:, [0, 1, 2, 4, 5]], (0,) * len(sos))]
        else:
            designed = [quantized(sos, BITS[kind])] + (designs(BITS[kind])[3:] if order == 1 else [])
        for coefficients, post in designed:
            x = channels_of(signals(biquad_op(kind, coefficients, post).dtype.np.type, order, 60))
            found.append(Case(biquad_op(kind, coefficients, post, x.shape[1]), x))
            found.append(Case(biquad_op(kind, coefficients, post, x.shape[1], (4, 0)), x[:10]))
    return found


@pytest.mark.parametrize("kind", [*KINDS, BiquadF32])
def test_c_equals_reference(kind: type[Biquad], tmp_path: Path) -> None:
    check_c(cases(kind), tmp_path)


@pytest.mark.parametrize("kind", [*KINDS, BiquadF32])
def test_board_equals_reference(kind: type[Biquad], tmp_path: Path) -> None:
    check_board(cases(kind), tmp_path)


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.integers(-32767, 32767), min_size=5, max_size=5),
    st.integers(0, 12),
    st.lists(st.integers(-32768, 32767), max_size=20),
)
def test_q15_is_the_difference_equation(c: list[int], post: int, x: list[int]) -> None:
    y = biquad_op(BiquadQ15, np.array([c]), (post,)).eval(np.array(x, np.int16).reshape(-1, 1))[0][:, 0].tolist()
    past = [0, 0, *x], [0, 0, *y]
    for n in range(len(x)):
        (x2, x1, x0), (y2, y1, _) = past[0][n : n + 3], past[1][n : n + 3]
        total = c[0] * x0 + c[1] * x1 + c[2] * x2 - c[3] * y1 - c[4] * y2
        assert y[n] == max(-32768, min(32767, total >> 15 - post))


def test_f32_is_near_scipy() -> None:
    sos = sections(6, 0.05)
    op = biquad_op(BiquadF32, sos[:, [0, 1, 2, 4, 5]], (0,) * len(sos), 2)
    x = np.random.default_rng(7).standard_normal((2000, 2)).astype(np.float32)
    np.testing.assert_allclose(op.eval(x)[0], signal.sosfilt(sos, x.astype(np.float64), axis=0), atol=2e-5)
