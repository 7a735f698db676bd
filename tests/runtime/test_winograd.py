"""Convolutions by minimal filtering: the bits of QConv, which sums products as they stand, on every build."""

from __future__ import annotations

import shutil
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kernel_cases import conv, inputs_of, random_input, with_extremes
from kernel_rigs import SANITIZE, board, host, hosts

from mcugen.core.types import DType, QParams, TensorType, frozen_array
from mcugen.errors import InternalError
from mcugen.nn.estimate import instructions
from mcugen.nn.ops.qconv import QConv
from mcugen.nn.ops.qwinograd import QWinograd, can_filter, filtered
from mcugen.nn.requant import requant_of

CROSS = pytest.mark.skipif(shutil.which("arm-none-eabi-gcc") is None, reason="no arm-none-eabi-gcc")
QUICK = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
SAME = (1, 1, 1, 1)


@st.composite
def layers(draw: st.DrawFn) -> QWinograd:
    """Any shape that the kernel takes, weights at random or all at their ends."""
    size = (4 * draw(st.integers(1, 9)), draw(st.integers(1, 11)), draw(st.integers(1, 11)))
    pads = tuple(draw(st.integers(0, 3)) for _ in range(4))
    pads = tuple(max(p, 1) if min(size[1:]) < 3 else p for p in pads)
    op = conv(
        draw(st.integers(0, 2**32 - 1)),
        size,
        draw(st.integers(1, 9)),
        (3, 3),
        pads=pads,
        out_planar=draw(st.booleans()),
        in_zp=draw(st.sampled_from([-128, -3, 0, 127])),
        low=draw(st.sampled_from([-128, -20])),
    )
    if draw(st.booleans()):
        op = with_extremes(op, np.random.default_rng(1))
    return filtered(op, draw(st.integers(1, -(-op.out_shape[1] // 2))))


def expected(op: QWinograd, x: np.ndarray) -> np.ndarray:
    """By the plain convolution that the layer comes from."""
    return QConv.eval(op, x[None])[0][0]


@QUICK
@given(layers(), st.integers(0, 2**32 - 1), st.integers(0, 3))
def test_every_bit_on_the_host(op: QWinograd, seed: int, shift: int) -> None:
    rigs = hosts()
    for i, x in enumerate(inputs_of(op, seed)):
        for name in ("sanitized",) if i else rigs:
            np.testing.assert_array_equal(rigs[name].run(op, x, shift)[0], expected(op, x), err_msg=name)


@CROSS
@QUICK
@given(layers(), st.integers(0, 2**32 - 1), st.integers(0, 3))
def test_every_bit_on_the_board(op: QWinograd, seed: int, shift: int) -> None:
    for x in inputs_of(op, seed)[::3]:
        np.testing.assert_array_equal(board().run(op, x, shift)[0], expected(op, x))


@CROSS
@pytest.mark.slow
@pytest.mark.parametrize(
    "build",
    [("arm-none-eabi-gcc", "-O0"), ("arm-none-eabi-gcc", "-Os"), ("arm-none-eabi-gcc", "-O3"),
     ("arm-none-eabi-gcc", "-O2", "-DMCG_PLAIN"), ("arm-none-eabi-gcc", "-O2", "-DMCG_NO_ASM"),
     ("clang", "-O2", "--target=arm-none-eabi")],
    ids=" ".join,
)  # fmt: skip
def test_every_bit_by_other_builds(build: tuple[str, ...]) -> None:
    b = board(*build)

    @settings(QUICK, max_examples=100)
    @given(layers(), st.integers(0, 2**32 - 1))
    def check(op: QWinograd, seed: int) -> None:
        for x in inputs_of(op, seed)[::3]:
            np.testing.assert_array_equal(b.run(op, x)[0], expected(op, x))

    check()


@QUICK
@given(layers(), st.integers(0, 2**32 - 1), st.integers(0, 3))
def test_outputs_behind_their_inputs(op: QWinograd, seed: int, more: int) -> None:
    """What `lag` promises to the arena."""
    if op.lag is not None:
        x = random_input(op, seed)
        y, _ = host("gcc", *SANITIZE).run(op, x, lag=op.lag + more)
        np.testing.assert_array_equal(y, expected(op, x))


@pytest.mark.parametrize("rows", [1, 2, 3])
def test_the_least_lag_is_the_least(rows: int) -> None:
    op = filtered(conv(3, (8, 10, 9), 12, (3, 3), pads=SAME), rows)
    x, lag = random_input(op, 3), op.lag
    assert lag
    np.testing.assert_array_equal(host("gcc").run(op, x, lag=lag)[0], expected(op, x))
    assert not np.array_equal(host("gcc").run(op, x, lag=lag - 1)[0], expected(op, x))


@pytest.mark.parametrize(("size", "rows"), [((4, 1, 1), 1), ((8, 7, 5), 1), ((12, 8, 8), 4), ((16, 16, 16), 2)])
def test_scratch_is_as_large_as_it_is_used(size: tuple[int, int, int], rows: int) -> None:
    op = filtered(conv(1, size, 3, (3, 3), pads=SAME), rows)
    assert host("gcc").run(op, random_input(op, 1))[1] == op.scratch_bytes


def test_what_the_kernel_takes() -> None:
    """Everything else keeps the plain kernel."""
    op = conv(1, (8, 6, 6), 4, (3, 3), pads=SAME)
    assert can_filter(op)
    assert not can_filter(conv(1, (6, 6, 6), 4, (3, 3), pads=SAME))
    assert not can_filter(conv(1, (8, 6, 6), 4, (3, 3), pads=SAME, in_planar=True))
    assert not can_filter(conv(1, (8, 6, 6), 4, (3, 3), (2, 2), SAME))
    assert not can_filter(conv(1, (8, 6, 6), 4, (3, 3), (1, 1), (2, 2, 2, 2), (2, 2)))
    assert not can_filter(conv(1, (8, 6, 6), 4, (1, 3), pads=(0, 1, 0, 1)))
    assert not can_filter(with_extremes(op, np.random.default_rng(1), at_limit=True))
    far = requant_of(np.full(4, 100.0), 4)  # 256 times a sum is too large for it
    assert not can_filter(replace(op, requant=far))
    with pytest.raises(InternalError, match="does not take"):
        filtered(conv(1, (6, 6, 6), 4, (3, 3), pads=SAME), 1).check(
            {
                "x": TensorType((6, 6, 6), DType.I8, q=QParams(1.0, -3)),
                "y": TensorType((6, 6, 4), DType.I8, q=QParams(1.0, 4)),
            }
        )


def test_a_weight_table_by_hand() -> None:
    """One kernel of ones: (2G) g (2G)^T is the outer product of (2, 3, 1, 2) with itself."""
    op = conv(1, (4, 4, 4), 1, (3, 3), pads=SAME, in_zp=0)
    ones = replace(op, weight=frozen_array(np.ones(op.weight.shape), np.int8), bias=frozen_array([7], np.int32))
    words = filtered(ones, 1).stream().words
    first = words[2:-6].reshape(16, 2, 2)  # position, step, channel of the pair
    row = np.array([2, 3, 1, 2])
    np.testing.assert_array_equal(first[:, :, 0], np.repeat(np.outer(row, row).reshape(-1, 1) * 0x10001, 2, axis=1))
    assert (first[:, :, 1] == 0).all()
    assert words[0] == 4 * 7


@CROSS
@pytest.mark.parametrize(
    ("size", "outputs", "most"), [((16, 32, 32), 16, 0.69), ((32, 16, 16), 32, 0.51), ((64, 8, 8), 64, 0.42)]
)
def test_instructions_stay_low(size: tuple[int, int, int], outputs: int, most: float) -> None:
    """Ceilings 5 % above what was measured, a multiply-accumulate of the convolution; the estimate is within 1 %."""
    op = filtered(conv(1, size, outputs, (3, 3), pads=SAME), 1)
    _, counted = board().run(op, random_input(op, 2))
    assert counted <= most * op.cost().macs
    plain = conv(1, size, outputs, (3, 3), pads=SAME)
    assert counted < 0.8 * board().run(plain, random_input(op, 2))[1]
    assert instructions(op) == pytest.approx(counted, rel=0.01)
    assert op.floor < counted
