"""QConv: meaning, checks and emitted C."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from kernel_cases import HERE, conv, random_input, weights
from op_checks import run_emitted, scaled, types_of

from mcugen.core.types import DType, QParams, TensorType, frozen_array
from mcugen.errors import InternalError
from mcugen.nn.ops.qconv import QConv, side_by_side
from mcugen.nn.requant import requant_of


def by_loops(op: QConv, x: np.ndarray) -> np.ndarray:
    """(C, H, W) to (OC, OH, OW), one product after the other."""
    c, h, w = op.in_shape
    out = np.zeros(op.out_shape, np.int8)
    for oc, oy, ox in np.ndindex(*op.out_shape):
        acc = int(op.bias[oc])
        for kh, kw, ic in np.ndindex(*op.weight.shape[1:3], c):
            y = oy * op.stride[0] - op.pads[0] + kh * op.dilation[0]
            z = ox * op.stride[1] - op.pads[1] + kw * op.dilation[1]
            if 0 <= y < h and 0 <= z < w:
                acc += int(op.weight[oc, kh, kw, ic]) * (int(x[ic, y, z]) - op.in_zp)
        out[oc, oy, ox] = scaled(acc, op, oc)
    return out


SHAPES = [
    conv(1, (3, 5, 6), 4, (3, 3), (2, 1), (1, 0, 1, 2)),
    conv(2, (2, 6, 5), 3, (2, 3), (1, 2), (0, 2, 1, 1), (2, 2), in_planar=True),
    conv(3, (5, 3, 2), 2, (1, 1), out_planar=True),
    conv(4, (1, 2, 2), 3, (4, 4), (1, 1), (2, 1, 2, 3), in_planar=True, out_planar=True, in_zp=-128, zero_point=127),
]


@pytest.mark.parametrize("op", SHAPES)
def test_reference_is_the_definition(op: QConv) -> None:
    x = np.stack([random_input(op, s) for s in (1, 2)])
    y = op.eval(x)[0]
    assert y.dtype == np.int8
    for i in (0, 1):
        chw = x[i] if op.in_planar else x[i].transpose(2, 0, 1)
        expected = by_loops(op, chw)
        np.testing.assert_array_equal(y[i] if op.out_planar else y[i].transpose(2, 0, 1), expected)


def test_odd_padding_at_either_end() -> None:
    """SAME_UPPER and SAME_LOWER of [1, 2, 3, 4] with [1, 10, 100] and stride 2, scaled down by 8 to fit int8."""
    w = frozen_array([[[[1], [10], [100]]]], np.int8)
    x = np.array([[[[1], [2], [3], [4]]]], np.int8)
    for pads, sums in (((0, 0, 0, 1), [321, 43]), ((0, 1, 0, 0), [210, 432])):
        op = QConv(
            ("x",), ("y",), HERE, (1, 1, 4), (1, 1, 2), w, frozen_array([0], np.int32), 0, requant_of(0.125),
            (1, 2), pads, (1, 1), False, False,
        )  # fmt: skip
        op.check(types_of(op))
        assert op.eval(x)[0].reshape(-1).tolist() == [int(np.floor(s / 8 + 0.5)) for s in sums]


@pytest.mark.parametrize("op", SHAPES)
def test_emitted_c(op: QConv, tmp_path: Path) -> None:
    op.check(types_of(op))
    x = random_input(op, 5)
    np.testing.assert_array_equal(run_emitted(op, x, tmp_path), op.eval(x[None])[0][0])


def test_which_kernel() -> None:
    op = SHAPES[0]
    assert op.function(op.stream()) == "mcg_conv_s8"
    shared = conv(1, (4, 5, 6), 4, (2, 3), (2, 1), (1, 0, 1, 2))
    assert shared.function(shared.stream()) == "mcg_conv_nx3_s8"
    for change in (
        {"size": (6, 5, 6)},
        {"window": (3, 2)},
        {"stride": (1, 2)},
        {"dilation": (1, 2)},
        {"in_planar": True},
    ):
        other = conv(1, **({"size": (4, 5, 6), "outputs": 4, "window": (3, 3)} | change))
        assert other.function(other.stream()) == "mcg_conv_s8", change
    minus = replace(op, weight=frozen_array(np.full(op.weight.shape, -128), np.int8))
    assert minus.function(minus.stream()) == "mcg_conv_s8_any"
    minus.check(types_of(minus))


@pytest.mark.parametrize("planes", range(1, 9))
def test_runs_of_three_side_by_side(planes: int) -> None:
    """Each weight once, in the pairs that mcg_conv_t describes: outer bytes of runs, then middle bytes of each two."""
    runs = np.arange(1, 3 * planes + 1, dtype=np.int8).reshape(1, planes, 3)
    groups = side_by_side(runs).reshape(-1, 4)
    assert len(groups) == -(-3 * planes // 4)
    pairs = [p for g in groups.tolist() for p in ((g[1], g[3]), (g[0], g[2]))]
    outer = [(int(r[0]), int(r[2])) for r in runs[0]]
    middle = [int(r[1]) for r in runs[0]] + [0]
    expected = outer + [(middle[i], middle[i + 1]) for i in range(0, planes, 2)]
    assert pairs == expected + [(0, 0)] * (len(pairs) - len(expected))


def test_costs_and_scratch() -> None:
    op = conv(1, (16, 8, 8), 32, (3, 3), (1, 1), (1, 1, 1, 1))
    assert op.cost().macs == 64 * 16 * 32 * 9
    assert op.scratch_bytes == 4 * 36 * 8
    assert [i.count for i in op.items("n_0")] == [16 * (36 * 2 + 8)]
    rgb = conv(1, (3, 8, 8), 8, (3, 3), (1, 1), (1, 1, 1, 1), in_planar=True)
    assert [i.count for i in rgb.items("n_0")] == [4 * (7 * 2 + 8)]  # 27 weights in 7 groups, not in 9
    large = conv(1, (64, 8, 8), 64, (3, 3), (1, 1), (1, 1, 1, 1))
    assert large.scratch_bytes == 4 * 144 * 8
    many = conv(1, (128, 6, 6), 128, (1, 1))
    assert many.scratch_bytes == 16 * 32 * 8


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"weight": frozen_array(np.zeros((4, 3, 3, 2)), np.int8)}, "weights"),
        ({"weight": frozen_array(np.zeros((4, 3, 3, 3)), np.int16)}, "weights"),
        ({"bias": frozen_array(np.zeros(3), np.int32)}, "bias"),
        ({"bias": frozen_array(np.full(4, (1 << 31) - 1), np.int32)}, "leaves int32"),
        ({"in_zp": 5}, "zero point"),
        ({"out_shape": (4, 3, 5)}, "expected int8"),
        ({"stride": (1, 1)}, "axis 0"),
        ({"pads": (-1, 0, 1, 2)}, "pads"),
        ({"requant": requant_of(0.1, 4, -200, 127)}, "clamps"),
        ({"requant": requant_of([0.1, 0.2], 4)}, "channels"),
    ],
)
def test_broken_fields_are_our_bug(change: dict[str, object], message: str) -> None:
    op = SHAPES[0]
    with pytest.raises(InternalError, match=message):
        replace(op, **change).check(types_of(op))


def test_operands_must_be_int8() -> None:
    op = SHAPES[0]
    types = types_of(op) | {"x": TensorType(op.in_physical, DType.U8, QParams(0.1, op.in_zp))}
    with pytest.raises(InternalError, match="uint8"):
        op.check(types)


def test_sums_at_the_ends_of_int32() -> None:
    """The largest bias that the range allows is accepted, one more is not."""
    op = conv(7, (3, 4, 4), 2, (2, 2), in_zp=11)
    w = weights(np.random.default_rng(1), op.weight.shape, 99.0)
    most = [
        int(np.where(v > 0, 127 - 11, -128 - 11).astype(np.int64).reshape(-1) @ v.reshape(-1).astype(np.int64))
        for v in w
    ]
    bias = [(1 << 31) - 1 - m for m in most]
    op = replace(op, weight=w, bias=frozen_array(bias, np.int32))
    op.check(types_of(op))
    with pytest.raises(InternalError, match="leaves int32"):
        replace(op, bias=frozen_array([bias[0], bias[1] + 1], np.int32)).check(types_of(op))
