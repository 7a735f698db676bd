"""Models that saw fractions are refused for plain integers; scales are found in data, and told."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcugen.core.types import DType, Feature
from mcugen.errors import InputError
from mcugen.frontends.calibrate import bind_signals
from mcugen.frontends.data import as_input
from mcugen.frontends.objects import load_object
from mcugen.frontends.scales import check_integer_inputs, find_scales
from mcugen.frontends.spec import load_spec
from mcugen.trees.signals import InputSpec, Signal

lgb = pytest.importorskip("lightgbm")

PARAMS = {"min_data_in_leaf": 1, "min_data_in_bin": 1, "verbose": -1, "num_threads": 1, "num_leaves": 8, "seed": 1}
R = np.random.default_rng(3)


def trained(x, y, rounds=4, **params):
    x = np.asarray(x, float)
    return load_object(lgb.train({**PARAMS, **params}, lgb.Dataset(x, np.asarray(y, float)), rounds), "m")


def check(model, dtype, confirmed=(), signals=None):
    spec = InputSpec(dtype, signals or (Signal(),) * len(model.features))
    check_integer_inputs(model.ops[0].forest, model.features, spec, set(confirmed))


def complaint(model, dtype, **kw):
    with pytest.raises(InputError) as e:
        check(model, dtype, **kw)
    return str(e.value)


COUNT = np.repeat(np.arange(20.0), 10)[:, None]


@pytest.mark.parametrize("shift", [0, -10, -30, 100])
def test_whole_numbers_pass(shift):  # T16
    for x in (COUNT + shift, (COUNT // 10) + shift):
        check(trained(x, x[:, 0] * R.random(len(x))), DType.I16)
    check(trained(COUNT, COUNT[:, 0] >= 10), DType.U8)


def test_whole_numbers_pass_with_many_bins_and_nan():
    x = R.integers(-30000, 30000, (3000, 2)).astype(float)
    check(trained(x, x[:, 0] + R.random(3000), 40, num_leaves=31), DType.I16)
    x[::7] = np.nan
    for zero in (False, True):
        check(trained(x, np.nan_to_num(x[:, 1]), 10, zero_as_missing=zero), DType.I16)
    check(trained(R.integers(0, 2, (300, 1)), R.random(300)), DType.I8)


FRACTIONS = {
    "0 to 1": R.random((300, 1)),
    "0 to 1 with both ends": np.linspace(0, 1, 101)[:, None],
    "tenths": np.round(R.random((300, 1)) * 10, 1),
    "three values": R.integers(0, 3, (300, 1)) / 2,
    "half steps": R.integers(-100, 100, (3000, 1)) / 2,
    "wide": R.normal(size=(300, 1)) * 1000,
    "wide with whole ends": np.clip(R.normal(size=(300, 1)) * 1000, -500, 500),
}


@pytest.mark.parametrize("x", FRACTIONS.values(), ids=FRACTIONS)
def test_fractions_are_refused(x):  # T17
    model = trained(x, x[:, 0] > np.median(x[:, 0]) if len(x) < 1000 else x[:, 0], 10)
    for dtype in (DType.I8, DType.I32):
        text = complaint(model, dtype)
        assert "feature 'Column_0'" in text
        assert "--spec" in text
    check(model, DType.F32)
    check(model, DType.I16, confirmed={0})
    check(model, DType.I16, signals=(Signal(2**-15),))


def test_features_that_are_not_read_are_not_asked():
    x = np.hstack([COUNT, R.random((200, 1))])
    model = trained(x, COUNT[:, 0] >= 10, 1, num_leaves=2)
    check(model, DType.I16)
    used = trained(x[:, ::-1], x[:, 1] + 0.001 * x[:, 0])
    assert "Column_0" in complaint(used, DType.I16)


def test_linear_leaves_read_features_too():
    x = np.hstack([COUNT, R.random((200, 1))])
    model = trained(x, 10.0 * (COUNT[:, 0] >= 10) + x[:, 1], linear_tree=True)
    assert "Column_1" in complaint(model, DType.I16)


def test_one_threshold_by_hand_passes():
    model = trained(COUNT - 10, COUNT[:, 0] >= 10, 1, num_leaves=2)
    forest = model.ops[0].forest
    for t in (-0.5, -2.7, 12.0):
        edited = replace(forest, threshold=np.full_like(forest.threshold, t))
        check_integer_inputs(edited, model.features, InputSpec(DType.I16, (Signal(),)), set())


def test_beyond_the_type():  # T26
    x = R.integers(0, 10, (300, 1)) * 1e10
    model = trained(x, x[:, 0] >= 3e10)
    for dtype in (DType.I32, DType.U32):
        text = complaint(model, dtype)
        assert "Column_0" in text
        assert "float64" in text
    check(model, DType.F64)
    check(model, DType.I32, signals=(Signal(1e10),))
    edge = trained(R.integers(-128, 128, (3000, 1)), R.random(3000))
    check(edge, DType.I8)
    assert "-128 to 127" in complaint(edge, DType.U8) or "0 to 255" in complaint(edge, DType.U8)


def test_scikit_learn_has_no_range():
    tree = pytest.importorskip("sklearn.tree")
    x = R.random((300, 1))
    one = tree.DecisionTreeClassifier(max_depth=1).fit(x, x[:, 0] > 0.5)
    assert "half way" in complaint(load_object(one, "m"), DType.I16)
    whole = tree.DecisionTreeRegressor(random_state=0).fit(np.floor(x * 200), R.random(300))
    check(load_object(whole, "m"), DType.U8)
    assert "outside of int8" in complaint(load_object(whole, "m"), DType.I8)


# ---- find_scales


def found(column, dtype, **kw):
    x = np.asarray(column, float)[:, None]
    signals, lines = find_scales(x, dtype, (Feature("t"),), {}, **kw)
    assert len(lines) == 1
    assert lines[0].startswith("t: ")
    back, _ = as_input(x, InputSpec(dtype, (signals[0],)), "x")
    return signals[0], lines[0], InputSpec(dtype, (signals[0],)).values(back)[:, 0]


C = np.unique(R.integers(-2000, 2000, 500))
I16, U16, U8 = DType.I16, DType.U16, DType.U8
LATTICES = {
    "tenths, computed": (0.1 * C, I16, Signal(0.1)),
    "tenths, from text": ([float(f"{c / 10:.1f}") for c in C], I16, Signal(0.1)),
    "halves": (C * 0.5, I16, Signal(0.5)),
    "2**-8": (C * 2.0**-8, I16, Signal(2.0**-8)),
    "adc": (np.abs(C) * (3.3 / 4096), U16, Signal(3.3 / 4096)),
    "accelerometer": (C * (9.81 / 16384), I16, Signal(9.81 / 16384)),
    "offset": (0.0123 * C - 40.0, I16, Signal(0.0123, -40.0)),
    "bytes": (np.arange(250) * 0.37 + 11.3, U8, Signal(0.37, 11.3)),
    "float32": (np.float32(0.1) * C.astype(np.float32), I16, Signal(0.1, 0.0, None, True)),
    "float32 from text": (np.array([f"{c / 10:.1f}" for c in C], np.float32), I16, Signal(0.1, 0.0, None, True)),
    "Kelvin in Celsius": ((0.01 * (27315 + C)) - 273.15, I16, Signal(0.01)),
    "far from 0": (np.round(1000 + np.arange(2001) / 100, 2), I16, Signal(0.01, 1000.0)),
    "whole, far": (100000.0 + C, I16, Signal(1.0, 100000.0)),
    "whole, huge": (np.arange(10) * 1e10, I16, Signal(1e10)),
}


@pytest.mark.parametrize(("x", "dtype", "expected"), LATTICES.values(), ids=LATTICES)
def test_lattices(x, dtype, expected):
    signal, line, back = found(x, dtype)
    assert (signal.scale, signal.single, signal.missing) == (expected.scale, expected.single, None)
    assert signal.offset == expected.offset
    unit = np.spacing(np.abs(np.asarray(x)).max().astype(np.float32 if signal.single else float))
    assert np.abs(back - x).max() <= 64 * unit
    assert repr(signal.scale) in line


def test_whole_numbers_need_no_map():
    for dtype in (I16, DType.I32):
        assert found(C, dtype)[0] == Signal()
    assert found([0, 255], U8)[0] == Signal()
    assert found([-128, 127], DType.I8)[0] == Signal()
    signal, _, back = found(C, U16)
    assert signal.scale == 1.0
    assert (back == C).all()


@pytest.mark.parametrize("dtype", [t for t in DType if not t.is_float])
@pytest.mark.parametrize("low", [0.0, -1.0, 1e5, -3e-9, -1e12])
@pytest.mark.parametrize("span", [1.0, 1e-9, 1e9])
def test_ranges(dtype, low, span):
    x = low + R.random(300) * span
    if len(np.unique(x)) < 50:
        return
    signal, line, back = found(x, dtype)
    worst = np.abs(back - x).max()
    assert worst <= signal.scale / 2 + np.spacing(abs(low))
    assert worst == 0 or f"{worst:.3g}" in line
    # At most two bits of the type are left unused.
    assert worst == 0 or signal.scale * (dtype.max - dtype.min) <= 8.1 * np.ptp(x)


def test_missing_values_get_a_code():
    for dtype, code in ((I16, -32768), (U8, 255)):
        for x in ([0, 1.0, np.nan, 2, 3], np.append(R.random(100), np.nan)):
            signal, line, back = found(x, dtype)
            assert signal.missing == code
            assert str(code) in line
            assert np.isnan(back[np.isnan(x)]).all()
            assert np.isfinite(back[~np.isnan(x)]).all()
    # The end of the type is data: the code may not cover it.
    signal, _, back = found([-32768, 5, np.nan, 32767], I16)
    assert signal.missing == -32768
    assert signal.scale is not None
    assert np.isfinite(back).sum() == 3


def test_the_users_code_is_kept():
    signal, _, _ = found([0.5, 1.5, np.nan], I16, codes={0: -999})
    assert (signal.missing, signal.scale) == (-999, 0.5)
    signal, _, back = found([-5, 7, np.nan, -1], I16, codes={0: -1})
    assert signal.missing == -1
    assert back[3] == -1.0
    assert found([0, 9, 3], U8, codes={0: 255})[0] == Signal(missing=255)


def test_known_signals_and_float_types_come_back():
    x = R.random((50, 2))
    features = (Feature("p"), Feature("q"))
    known = {0: Signal(0.25, 1.0, 3)}
    signals, lines = find_scales(x, I16, features, known)
    assert signals[0] == known[0]
    assert len(lines) == 1
    assert find_scales(x, DType.F32, features, {}) == ({0: Signal(), 1: Signal()}, [])


@pytest.mark.parametrize(
    "bad", [[1.0, 1, 1], [0.0, -0.0], [np.nan, np.nan], [1, np.inf], [-np.inf, 2], [3, np.nan, 3], [0, 5e-324]]
)
def test_columns_that_say_nothing(bad):
    x = np.array([bad, range(len(bad))], float).T
    features = (Feature("dull"), Feature("good"))
    with pytest.raises(InputError, match="'dull'"):
        find_scales(x, I16, features, {})
    signals, lines = find_scales(x, I16, features, {}, used={1})
    assert signals[0].scale is None
    assert (signals[0].missing is not None) == bool(np.isnan(bad).any())
    assert "not used" in lines[0]


@settings(max_examples=150, deadline=None)
@given(
    st.sampled_from([t for t in DType if not t.is_float]),
    st.lists(st.floats(-1e290, 1e290, allow_subnormal=False), min_size=2, max_size=30, unique=True),
)
def test_any_data(dtype, values):
    x = np.array(values)
    if np.unique(x + 0.0).size < 2 or np.ptp(x) < 1e-300:
        return
    signal, _, back = found(x, dtype)
    step = 1.0 if signal.scale is None else signal.scale
    assert np.abs(back - x).max() <= step * (0.5 + 2**-20) + np.spacing(np.abs(x).max())


@settings(max_examples=80, deadline=None)
@given(st.integers(1, 9999), st.integers(-6, 3), st.booleans(), st.integers(-300, 300), st.integers(0, 2**32))
def test_any_decimal_lattice_is_found(digits, exponent, shifted, offset, seed):
    """With neighbouring counts in the data, its step is found, or a whole part of it."""
    scale, b = float(f"{digits}e{exponent}"), float(offset) if shifted else 0.0
    counts = np.unique(np.append(np.random.default_rng(seed).integers(-9000, 9000, 60), [0, 1, 2]))
    x = scale * counts + b
    signal, line, back = found(x, I16)
    if np.spacing(np.abs(x).max()) > scale / 1e6:
        return
    parts = scale / (1.0 if signal.scale is None else signal.scale)
    assert abs(parts - round(parts)) < 1e-9
    assert np.abs(back - x).max() <= max(1e-9 * scale, 2 * np.spacing(np.abs(x).max() + abs(signal.offset))), line


def test_data_in_another_unit_is_told(tmp_path):
    """Counts for a model in degrees: a note names feature and range; data in the model's unit has none."""
    rng = np.random.default_rng(3)
    degrees = np.round(rng.uniform(20, 80, (400, 2)), 1)
    model = trained(degrees, degrees[:, 0] - degrees[:, 1])
    forest = model.ops[0].forest

    def notes(x, spec=None):
        np.save(tmp_path / "x.npy", x)
        return [n for n in bind_signals(model, forest, spec, "auto", tmp_path / "x.npy").lines if "trained" in n]

    assert notes(degrees) == []
    half = degrees.copy()
    half[:200] += 1000.0  # a half is not most
    assert notes(half) == []
    (line,) = notes(degrees * 100)
    assert "Column_0 and 1 more: 400 of 400 values are outside of 20" in line
    one = degrees.copy()
    one[:, 1] = np.where(rng.random(400) < 0.9, np.nan, -1.0)
    (line,) = notes(one)
    assert "Column_1: " in line
    (tmp_path / "s.toml").write_text(
        "".join(f"[[input]]\nname = 'Column_{i}'\ndtype = 'int16'\nscale = 0.01\n" for i in (0, 1))
    )
    spec = load_spec(tmp_path / "s.toml")
    assert notes((degrees * 100).astype(np.int16), spec) == []
    assert len(notes(degrees.astype(np.int16), spec)) == 1
