"""DivideScores: correctly rounded quotients."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tree_models import LOC, Leaf, Split, forest_of, lower, model_of, spec_of

from mcugen.core.types import DType
from mcugen.trees.ops import DivideScores


@pytest.mark.parametrize("dtype", [DType.F32, DType.F64])
@settings(max_examples=200, deadline=None)
@given(data=st.data(), divisor=st.integers(1, 100_000))
def test_nearest(dtype: DType, data: st.DataObject, divisor: int) -> None:
    """No other number of the type is nearer to the exact quotient."""
    width = 32 if dtype is DType.F32 else 64
    x = data.draw(st.floats(allow_nan=False, allow_infinity=False, width=width))
    got = DivideScores(("x",), ("y",), LOC, dtype, divisor, 1).eval(np.array([[x]], dtype.np))[0]
    assert got.dtype == dtype.np
    exact = Fraction(x) / divisor
    gap = abs(Fraction(float(got[0, 0])) - exact)
    for side in (np.inf, -np.inf):
        with np.errstate(over="ignore"):
            other = float(np.nextafter(got[0, 0], dtype.np.type(side)))
        assert np.isinf(other) or gap <= abs(Fraction(other) - exact)


@pytest.mark.parametrize("leaf", [DType.I16, DType.I32, DType.F32, DType.F64])
@pytest.mark.parametrize("output", ["raw", "proba"])
def test_mean_of_a_forest(leaf: DType, output: str) -> None:
    """Every type of leaf gives the mean within the bound that the model states."""
    forest_trees: list[Split | Leaf] = [Split(0, float(t), Leaf(0.1 * t), Leaf(1.0 / (t + 3))) for t in range(7)]
    model = model_of(forest_of(forest_trees, 1), average=7)
    machine = lower(model, spec_of(DType.I8, 1), output, leaf)
    env = {"x": np.arange(-2, 9, dtype=np.int8)[:, None]}
    for op in machine.ops:
        env.update(zip(op.outputs, op.eval(*(env[v] for v in op.inputs)), strict=True))
    y, kind = env[machine.outputs[0]], machine.types[machine.outputs[0]]
    want = model.ops[1].eval(*model.ops[0].eval(env["x"].astype(np.float64)))[0]
    got = y.astype(np.float64) * (1.0 if kind.q is None else kind.q.scale)
    bound = machine.bounds["mean" if "mean" in machine.bounds else "score"].error
    assert np.abs(got - want).max() <= bound + (np.abs(want).max() * 2.0**-23 if output == "proba" else 1e-16)
