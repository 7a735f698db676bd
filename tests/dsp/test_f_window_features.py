"""FWindowFeatures: float32 features come close to float64, have a fixed order, and the C gives every bit."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from bare_core import RUNTIME
from feature_cases import LOC, specs
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from window_rig import Case, check_board, check_host, run_text

from mcugen.core.types import DType, TensorType
from mcugen.dsp.float_features import FLOAT_KINDS
from mcugen.dsp.ops.f_window_features import FWindowFeatures
from mcugen.dsp.source.features import MIN_LENGTH, Features, FeatureSpec
from mcugen.errors import InternalError

QUICK = settings(deadline=None, suppress_health_check=list(HealthCheck))
BATCHES = settings(QUICK, phases=[Phase.generate], report_multiple_bugs=False)
HOSTILE = [0.0, -0.0, np.nan, np.inf, -np.inf, 1e-45, -1e-45, 3.4e38, -3.4e38, 1.0, 1e-20]


@st.composite
def cases(draw: st.DrawFn) -> tuple[FWindowFeatures, np.ndarray]:
    """An op, and samples: plain noise, large offsets, or values where floats are hostile."""
    channels, length = draw(st.integers(1, 3)), draw(st.one_of(st.integers(1, 9), st.integers(10, 40)))
    step = draw(st.sampled_from([1, 2, 3, length, length + 2]))
    features = draw(specs(length, channels, 0.5))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    times = length + draw(st.integers(0, 2 * step + 2))
    x = rng.normal(draw(st.sampled_from([0.0, 1000.0])), 1.0, (times, channels)).astype(np.float32)
    if draw(st.booleans()):
        spots = rng.random(x.shape) < draw(st.sampled_from([0.05, 0.6]))
        x[spots] = rng.choice(HOSTILE, spots.sum()).astype(np.float32)
    return FWindowFeatures(("x",), ("y",), LOC, channels, length, step, features), x


BATCH = st.lists(cases(), min_size=40, max_size=40)


@settings(BATCHES, max_examples=2)
@given(batch=BATCH)
def test_c_on_the_host(
    batch: list[tuple[FWindowFeatures, np.ndarray]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    check_host([Case(op, x) for op, x in batch], tmp_path_factory.mktemp("host"))


@settings(BATCHES, max_examples=2)
@given(batch=BATCH)
def test_c_on_the_board(
    batch: list[tuple[FWindowFeatures, np.ndarray]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    check_board([Case(op, x) for op, x in batch], tmp_path_factory.mktemp("board"))


@pytest.mark.slow
@settings(BATCHES, max_examples=12)
@given(batch=BATCH)
def test_many_by_every_build(
    batch: list[tuple[FWindowFeatures, np.ndarray]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    many = [Case(op, x) for op, x in batch]
    check_host(many, tmp_path_factory.mktemp("host"))
    check_board(many, tmp_path_factory.mktemp("board"))


@settings(QUICK, max_examples=60)
@given(st.integers(2, 60), st.integers(1, 7), st.integers(0, 2**32 - 1))
def test_comes_close_to_float64(length: int, step: int, seed: int) -> None:
    features = tuple(FeatureSpec(k, k, 0, lag=1, bins=(0, length // 2), level=0.25) for k in MIN_LENGTH)
    x = np.random.default_rng(seed).normal(0.0, 1.0, (length + 20, 1)).astype(np.float32)
    (y,) = FWindowFeatures(("x",), ("y",), LOC, 1, length, step, features).eval(x)
    (want,) = Features(("x",), ("y",), LOC, length, step, features).eval(x)
    assert y.dtype == np.float32
    np.testing.assert_allclose(y, want, rtol=2e-4, atol=2e-5)


def test_order_of_operations() -> None:
    """A sum that depends on its order: from the oldest sample on, each product rounded."""
    x = np.array([1e8, 1.0, -1e8, 1.0, 3.0], np.float32)[:, None]
    features = (FeatureSpec("m", "mean", 0), FeatureSpec("r", "rms", 0))
    (y,) = FWindowFeatures(("x",), ("y",), LOC, 1, 4, 1, features).eval(x)
    total = [np.float32(0), np.float32(0)]
    for k in range(2):
        for v in x[k : k + 4, 0]:
            total[k] = np.float32(total[k] + v)
    np.testing.assert_array_equal(y[:, 0], [t / np.float32(4) for t in total])
    assert y[0, 0] == 0.25  # in real numbers 0.5: one of the ones is lost beside 1e8


def test_nan_and_ties() -> None:
    kinds = ("min", "max", "mean", "zero_crossings", "last")
    features = tuple(FeatureSpec(k, k, 0) for k in kinds)
    op = FWindowFeatures(("x",), ("y",), LOC, 1, 3, 3, features)
    x = np.array([[np.nan], [-1], [1], [0.0], [-0.0], [0.0], [-0.0], [0.0], [0.0]], np.float32)
    (y,) = op.eval(x)
    assert np.isnan(y[0, :3]).all()
    assert y[0, 3:].tolist() == [2.0, 1.0]  # NaN is not below 0, -1 is
    assert np.signbit(y[1:, 0]).tolist() == [False, True]  # the first of equals
    assert y[1:, 3].tolist() == [0.0, 0.0]  # -0.0 is not below 0


def test_square_root_of_the_host(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Every mantissa's neighbourhood, every exponent, subnormals: as numpy rounds."""
    rng = np.random.default_rng(3)
    bits = np.concatenate([rng.integers(0, 2**32, 200_000), np.arange(2000), np.arange(0x7F7FFF00, 0x7F800100)])
    exponents = np.arange(256, dtype=np.int64) << 23
    bits = np.concatenate([bits, exponents, exponents + 1, exponents + 0x7FFFFF]).astype("<u4")
    text = (
        '#include "mcg_features_float.h"\n#include <stdio.h>\nint main(void)\n{\nfloat v;\n'
        "while (fread(&v, 4, 1, stdin) == 1) { const float r = mcg_sqrt_f32(v); fwrite(&r, 4, 1, stdout); }\n"
        "return 0;\n}\n"
    )
    found = np.frombuffer(run_text(text, bits.tobytes(), tmp_path_factory.mktemp("root")), np.float32)
    with np.errstate(invalid="ignore"):
        want = np.sqrt(bits.view(np.float32))
    wrong = (found.view("<u4") != want.view("<u4")) & ~(np.isnan(found) & np.isnan(want))
    assert not wrong.any(), (bits[wrong][:5], found[wrong][:5], want[wrong][:5])


def test_kinds_are_those_of_the_header() -> None:
    """One list on each side, in the same order."""
    text = (RUNTIME / "include" / "mcg_features_float.h").read_text(encoding="utf-8")
    assert [k.lower() for k in re.findall(r"\bMCG_FLOAT_(\w+),? +/\*", text)] == list(FLOAT_KINDS)


@pytest.mark.parametrize(
    ("fields", "types"),
    [
        ({"step": 0}, {}),
        ({"length": 1}, {}),
        ({"channels": 2}, {}),
        ({"features": (FeatureSpec("m", "mean", 1),)}, {}),
        ({}, {"x": TensorType((1,), DType.I16)}),
        ({}, {"y": TensorType((2,), DType.F32)}),
    ],
)
def test_spec_check(fields: dict[str, object], types: dict[str, TensorType]) -> None:
    good = FWindowFeatures(("x",), ("y",), LOC, 1, 10, 1, (FeatureSpec("s", "std", 0),))
    right = {"x": TensorType((1,), DType.F32), "y": TensorType((1,), DType.F32)}
    good.check(right)
    with pytest.raises(InternalError):
        replace(good, **fields).check({**right, **types})  # type: ignore[arg-type]
