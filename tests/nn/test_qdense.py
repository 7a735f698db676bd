"""QDense: meaning, checks and emitted C."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from kernel_cases import dense, random_input
from op_checks import run_emitted, scaled, types_of

from mcugen.core.types import frozen_array
from mcugen.errors import InternalError
from mcugen.nn.ops.qdense import QDense
from mcugen.nn.requant import requant_of

SHAPES = [
    dense(1, 7, 5),
    dense(2, 1, 1),
    dense(3, 64, 4, in_zp=-128, zero_point=-128),
    dense(4, 30, 9, low=-4, high=99),
]


@pytest.mark.parametrize("op", SHAPES)
def test_reference_is_the_definition(op: QDense) -> None:
    x = np.stack([random_input(op, s) for s in (1, 2)])
    y = op.eval(x)[0]
    for i, n in np.ndindex(*y.shape):
        acc = int(op.bias[n]) + sum(
            int(a) * (int(b) - op.in_zp) for a, b in zip(op.weight[n].tolist(), x[i].tolist(), strict=True)
        )
        assert int(y[i, n]) == scaled(acc, op, n)


@pytest.mark.parametrize("op", SHAPES)
def test_emitted_c(op: QDense, tmp_path: Path) -> None:
    op.check(types_of(op))
    x = random_input(op, 5)
    np.testing.assert_array_equal(run_emitted(op, x, tmp_path), op.eval(x[None])[0][0])


def test_which_kernel() -> None:
    op = dense(5, 640, 8)
    assert op.function(op.stream()) == "mcg_dense_s8"
    wide = replace(op, weight=frozen_array(np.full(op.weight.shape, 127), np.int8))
    assert wide.function(wide.stream()) == "mcg_dense_s8_any"
    assert SHAPES[3].function(SHAPES[3].stream()) == "mcg_dense_s8"  # narrow clamps
    assert op.scratch_bytes == 1280
    assert op.cost().macs == 5120


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"weight": frozen_array(np.zeros((5, 8)), np.int8)}, "expected int8"),
        ({"bias": frozen_array(np.full(5, -(1 << 31)), np.int32)}, "leaves int32"),
        ({"bias": frozen_array(np.zeros(5), np.int64)}, "bias"),
        ({"requant": requant_of(0.1, 5)}, "zero point"),
    ],
)
def test_broken_fields_are_our_bug(change: dict[str, object], message: str) -> None:
    op = SHAPES[0]
    with pytest.raises(InternalError, match=message):
        replace(op, **change).check(types_of(op))
