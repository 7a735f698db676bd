"""QDepthwise: meaning, checks and emitted C."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from kernel_cases import depthwise, random_input
from op_checks import run_emitted, scaled, types_of

from mcugen.core.types import frozen_array
from mcugen.errors import InternalError
from mcugen.nn.ops.qdepthwise import QDepthwise
from mcugen.nn.requant import requant_of


def by_loops(op: QDepthwise, x: np.ndarray) -> np.ndarray:
    """(C, H, W) to (C * m, OH, OW), one product after the other."""
    _, h, w = op.in_shape
    out = np.zeros(op.out_shape, np.int8)
    for oc, oy, ox in np.ndindex(*op.out_shape):
        acc = int(op.bias[oc])
        for kh, kw in np.ndindex(*op.weight.shape[1:]):
            y = oy * op.stride[0] - op.pads[0] + kh * op.dilation[0]
            z = ox * op.stride[1] - op.pads[1] + kw * op.dilation[1]
            if 0 <= y < h and 0 <= z < w:
                acc += int(op.weight[oc, kh, kw]) * (int(x[oc // op.multiplier, y, z]) - op.in_zp)
        out[oc, oy, ox] = scaled(acc, op, oc)
    return out


SHAPES = [
    depthwise(1, (3, 5, 7), 1, (3, 3), (1, 1), (1, 1, 1, 1)),
    depthwise(2, (2, 6, 5), 3, (3, 3), (1, 2), (0, 0, 1, 1), in_planar=False, out_planar=True),
    depthwise(3, (2, 7, 6), 2, (2, 5), (2, 1), (1, 2, 0, 3), (1, 2)),
    depthwise(4, (1, 2, 1), 1, (4, 3), (1, 1), (2, 2, 3, 1), in_zp=127, zero_point=-128),
]


@pytest.mark.parametrize("op", SHAPES)
def test_reference_is_the_definition(op: QDepthwise) -> None:
    x = np.stack([random_input(op, s) for s in (1, 2)])
    y = op.eval(x)[0]
    assert y.dtype == np.int8
    for i in (0, 1):
        chw = x[i] if op.in_planar else x[i].transpose(2, 0, 1)
        np.testing.assert_array_equal(y[i] if op.out_planar else y[i].transpose(2, 0, 1), by_loops(op, chw))


@pytest.mark.parametrize("op", SHAPES)
def test_emitted_c(op: QDepthwise, tmp_path: Path) -> None:
    op.check(types_of(op))
    x = random_input(op, 5)
    np.testing.assert_array_equal(run_emitted(op, x, tmp_path), op.eval(x[None])[0][0])


def test_which_kernel() -> None:
    op = SHAPES[0]
    minus = replace(op, weight=frozen_array(np.full(op.weight.shape, -128), np.int8))
    narrow, large = replace(op, requant=requant_of(0.01, 4, 0, 127)), replace(op, requant=requant_of(0.3, 4))
    for fast in (op, minus, narrow, large):
        assert fast.function(fast.stream()) == "mcg_depthwise_3x3_s8_p16"
    assert SHAPES[2].function(SHAPES[2].stream()) == "mcg_depthwise_s8"
    for width, name in ((14, "3x3_s8_p16"), (15, "3x3_s8_p32"), (62, "3x3_s8_p64"), (63, "s8")):
        wide = depthwise(1, (1, 4, width), 1, (3, 3), (1, 1), (1, 1, 1, 1))
        assert wide.function(wide.stream()) == f"mcg_depthwise_{name}"
    for other in (
        replace(op, requant=requant_of(100.0, 4)),
        replace(op, bias=frozen_array([1 << 23] * 3, np.int32), requant=requant_of(1e-5, 4)),
    ):
        assert other.function(other.stream()) == "mcg_depthwise_s8_any"


def test_scratch_stays_small() -> None:
    """Large images are computed in strips; one output row must fit whatever it takes."""
    for size in ((2, 96, 96), (2, 200, 40), (1, 25, 5)):
        op = depthwise(1, size, 1, (3, 3), (1, 1), (1, 1, 1, 1))
        assert op.scratch_bytes <= 2048
    assert depthwise(1, (1, 8, 700), 1, (3, 3), (1, 1), (1, 1, 1, 1)).scratch_bytes == 3 * 704 * 2


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"multiplier": 2}, "times 2"),
        ({"bias": frozen_array(np.full(3, (1 << 31) - 1), np.int32)}, "leaves int32"),
        ({"bias": frozen_array(np.zeros(2), np.int32)}, "bias"),
        ({"in_zp": 5}, "zero point"),
        ({"dilation": (2, 1)}, "axis 0"),
        ({"stride": (1, 0)}, "strides"),
    ],
)
def test_broken_fields_are_our_bug(change: dict[str, object], message: str) -> None:
    op = SHAPES[0]
    with pytest.raises(InternalError, match=message):
        replace(op, **change).check(types_of(op))
