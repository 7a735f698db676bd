"""Random forests as LightGBM text: LightGBM itself against the float IR, the integer reference and the C.

Texts are drawn, not trained, so that they hold what training seldom gives: infinities, denormals and the zero band in
thresholds, every mix of missing types, empty and wide sets of categories, features that are never used.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable

import lightgbm as lgb
import lightgbm_text as lt
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from oracle import same_rows

from mcugen.core.passes import evaluate, run_passes
from mcugen.core.types import DType, Model
from mcugen.emit.model import items_of, model_files, runtime_files
from mcugen.emit.selftest import Vectors
from mcugen.frontends.lightgbm import load_text
from mcugen.target.placement import place
from mcugen.trees.lower import TREE_PASSES, TreeOptions, ensemble_of
from mcugen.trees.proof import Reference, reference, walked
from mcugen.trees.signals import InputSpec, Signal
from mcugen.trees.vectors import make_vectors
from mcugen.trees.walk import leaf_index
from mcugen.verify.compiler import find_host_compiler
from mcugen.verify.export_check import check_host

BAND = float(np.float32(1e-35))
CLOSE_TO_ZERO = [0.0, -0.0, 1e-36, -1e-36, 1e-35, -1e-35, BAND, -BAND, -1.0000000180025095e-35, 1.0000000180025095e-35]
DENORMAL = [5e-324, -5e-324, 1e-310, -1e-310, 1e-45, -1e-45, 1.1754943508222875e-38, -1e-40]
LARGE = [float("inf"), float("-inf"), 1e300, -1e300, 1e39, -1e39, 3.4028234663852886e38, -3.4028235677973366e38]
TYPE_ENDS = [-128.0, 127.0, -128.5, 127.5, 128.0, -129.0, 255.0, 255.5, -32768.0, -32768.5, 32767.0, 32767.5, 32768.0]
PLAIN = [0.5, -0.5, 1.0, -1.0, 2.5, 16777216.5, 2147483647.0, 2147483648.0, -2147483649.0, 0.1, 0.30000000000000004]
THRESHOLDS = st.one_of(
    st.sampled_from(CLOSE_TO_ZERO),
    st.sampled_from([*CLOSE_TO_ZERO, *DENORMAL, *LARGE, *TYPE_ENDS, *PLAIN]),
    st.floats(-200.0, 200.0),
    st.integers(-140, 260).map(lambda i: i / 2.0),
    st.floats(allow_nan=False),
)
# LightGBM's reader ends the process where a linear model has a denormal.
COEFFICIENTS = st.one_of(
    st.sampled_from([0.0, -0.0, 1.0, -1e-300, 1e300]), st.floats(-10.0, 10.0, allow_subnormal=False)
)
LEAVES = st.one_of(st.floats(-100.0, 100.0), st.sampled_from([0.0, -0.0, 1.0, 1e-9, -0.125, 1e-300]))
CATEGORIES = st.one_of(
    st.lists(st.integers(0, 40), min_size=1, max_size=6),
    st.lists(st.sampled_from([0, 31, 32, 63, 64, 127, 300]), min_size=1),
)


@st.composite
def trees(draw, features: int, categorical: tuple[bool, ...], linear: bool) -> lt.Tree:
    """Leaves split at random, as LightGBM does: node i splits a leaf, which stays left; the new leaf is i + 1."""
    count = draw(st.integers(0, 6))
    nodes, left, right = [], [], []
    places: list[tuple[list[int], int] | None] = [None]
    for i in range(count):
        split = draw(st.integers(0, i))
        place = places[split]
        if place is not None:
            place[0][place[1]] = i
        left.append(~split)
        right.append(~(i + 1))
        places[split] = (left, i)
        places.append((right, i))
        feature = draw(st.integers(0, features - 1))
        if categorical[feature]:
            nodes.append(lt.Node(feature, members=tuple(draw(CATEGORIES)), missing=draw(st.sampled_from([0, 2]))))
        else:
            nodes.append(lt.Node(feature, draw(THRESHOLDS), draw(st.integers(0, 2)), draw(st.booleans())))
    values = draw(st.lists(LEAVES, min_size=count + 1, max_size=count + 1))
    if not linear:
        return lt.Tree(nodes, left, right, values)
    term = st.tuples(st.integers(0, features - 1), COEFFICIENTS)
    leaf = st.tuples(COEFFICIENTS, st.lists(term, max_size=3, unique_by=lambda t: t[0]))
    return lt.Tree(nodes, left, right, values, draw(st.lists(leaf, min_size=count + 1, max_size=count + 1)))


@st.composite
def forests(draw, linear: bool = False, categories: bool = True) -> lt.Text:
    features = draw(st.integers(1, 3))
    flags = tuple(categories and draw(st.integers(0, 3)) == 0 for _ in range(features))
    outputs = draw(st.sampled_from([1, 1, 2, 3]))
    count = outputs * draw(st.integers(1, 3))
    members = [draw(trees(features, flags, linear and (i >= outputs or draw(st.booleans())))) for i in range(count)]
    objective = "regression" if outputs == 1 else f"multiclass num_class:{outputs}"
    infos = ["0:1:2:3" if c else "[-1e9:1e9]" for c in flags]
    return lt.Text(members, features, objective, outputs, infos=infos)


@np.errstate(over="ignore")
def edges(text: lt.Text, feature: int) -> np.ndarray:
    """Reals at which something may change, found from the text, not by the product."""
    found = [*CLOSE_TO_ZERO, *DENORMAL, *LARGE, float("nan"), 1.0, -1.0, -0.5, 1.5]
    for node in (n for t in text.trees for n in t.nodes if n.feature == feature):
        if node.members is None:
            t = node.threshold
            found += [t, np.nextafter(t, -np.inf), np.nextafter(t, np.inf), np.floor(t), np.ceil(t)]
        else:
            found += [float(m + d) for m in node.members for d in (-1, 0, 1)]
    return np.array(found)


def as_inputs(reals: np.ndarray, dtype: DType, signal: Signal) -> np.ndarray:
    """Inputs of the type at and next to the values."""
    with np.errstate(over="ignore", invalid="ignore"):
        if dtype.is_float:
            near = reals.astype(dtype.np)
            step = [np.nextafter(near, dtype.np.type(way)) for way in (-np.inf, np.inf)]
            return np.concatenate([near, *step])
        counts = reals if signal.scale is None else (reals - signal.offset) / signal.scale
        counts = np.clip(np.nan_to_num(counts, nan=0.0), dtype.min, dtype.max).astype(np.int64)
    near = np.concatenate([counts + d for d in (-2, -1, 0, 1, 2)] + [np.array([dtype.min, dtype.max, 0])])
    near = np.append(near, near[:1] if signal.missing is None else signal.missing)
    return np.clip(near, dtype.min, dtype.max).astype(dtype.np)


def rows_of(text: lt.Text, spec: InputSpec, seed: int = 0, count: int = 400) -> np.ndarray:
    rng = np.random.default_rng(seed)
    pools = [as_inputs(edges(text, f), spec.dtype, s) for f, s in enumerate(spec.signals)]
    return np.stack([rng.permutation(np.resize(p, max(count, len(p))))[:count] for p in pools], axis=1)


def meaning(x: np.ndarray, spec: InputSpec) -> np.ndarray:
    """What inputs mean to the model, written out once more."""
    columns = []
    for i, s in enumerate(spec.signals):
        with np.errstate(invalid="ignore", over="ignore"):
            value = x[:, i].astype(np.float64)
            if s.scale is not None and s.single:
                value = np.float32(s.scale) * x[:, i].astype(np.float32) + np.float32(s.offset)
            elif s.scale is not None:
                value = s.scale * value + s.offset
        columns.append(np.where(x[:, i] == s.missing, np.nan, value) if s.missing is not None else value)
    return np.stack(columns, axis=1).astype(np.float64)


def lowered(source: Model, spec: InputSpec, leaf: DType) -> Model:
    return run_passes(source, TREE_PASSES, TreeOptions(spec, "raw", leaf))


def check(text: lt.Text, spec: InputSpec, leaf: DType, extra: Callable[..., None] | None = None) -> None:
    """LightGBM == float IR == integer reference on vectors of the product and of this test."""
    data = text.text()
    booster = lgb.Booster(model_str=data)
    source = load_text(data.encode(), "model.txt", "m")
    machine = lowered(source, spec, leaf)
    rank, tables = walked(machine)
    x = np.concatenate([make_vectors(rank, tables, limit=300).x, rows_of(text, spec)])
    real = meaning(x, spec)
    raw = np.asarray(booster.predict(real, raw_score=True, num_threads=1)).reshape(len(x), -1)
    leaves = np.asarray(booster.predict(real, pred_leaf=True, num_threads=1)).reshape(len(x), -1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # inf - inf and inf * 0 in linear leaves
        same_rows(leaf_index(ensemble_of(source).forest, real).astype(int), leaves.astype(int), x, "leaves")
        same_rows(evaluate(source, {"x": real})["raw"], raw, x, "float model")
        ref = reference(source, machine, spec, x)
        if leaf is DType.F64:
            same_rows(ref.y, raw, x, "integer reference")
        if extra is not None:
            extra(machine, ref)


def host_check(machine: Model, ref: Reference) -> None:
    plan = place(items_of(machine), None, {}, {}, spend_ram=False)
    golden = Vectors(ref.x[:8], ref.y[:8])
    files = model_files(machine, plan, "raw", golden, "") | runtime_files(plan)
    check_host(files, machine, ref.x, ref.y, ref.trace, find_host_compiler())


def plain(dtype: DType, n: int) -> InputSpec:
    return InputSpec(dtype, (Signal(),) * n)


TYPES = [DType.F64, DType.F32, DType.I8, DType.U8, DType.I16, DType.U16, DType.I32]
QUIET = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]
SEARCH = {"deadline": None, "suppress_health_check": QUIET, "database": None}
RUN = {**SEARCH, "derandomize": True}  # the slow sweep looks further, with other examples each time


@pytest.mark.parametrize("dtype", TYPES, ids=lambda t: t.label)
@settings(max_examples=30, **RUN)
@given(text=forests())
def test_every_type_of_input(dtype, text):
    check(text, plain(dtype, text.n_features), DType.F64)


@settings(max_examples=30, **RUN)
@given(text=forests(), dtype=st.sampled_from(TYPES), leaf=st.sampled_from([DType.I16, DType.I32, DType.F32]))
def test_every_type_of_leaf(text, dtype, leaf):
    check(text, plain(dtype, text.n_features), leaf)


@settings(max_examples=30, **RUN)
@given(text=forests(linear=True), dtype=st.sampled_from(TYPES))
def test_linear_leaves(text, dtype):
    check(text, plain(dtype, text.n_features), DType.F64)


SCALES = st.one_of(
    st.sampled_from([0.1, 0.01, -0.1, 1.0, -1.0, 1 / 3, 0.5, 1e-36, -1e-36, 1e-35, 1e-30, 2.5, 1e10]),
    st.floats(1e-3, 1e3),
)
OFFSETS = st.one_of(st.sampled_from([0.0, -0.0, -40.0, 0.1, 25.6, -12.8]), st.floats(-100.0, 100.0))


@st.composite
def sensors(draw, dtype: DType, text: lt.Text, single: bool = True) -> InputSpec:
    sentinel = st.one_of(st.none(), st.sampled_from([dtype.min, dtype.max, 0, 1, 5]))
    numbers = {n.feature for t in text.trees for n in t.nodes if n.members is None}
    sets = {n.feature for t in text.trees for n in t.nodes if n.members is not None}
    signals = []
    for f in range(text.n_features):
        if f in sets or (f not in numbers and draw(st.booleans())):
            signals.append(Signal(missing=draw(sentinel)))
            continue
        scaled = draw(st.booleans())
        scale = draw(SCALES) if scaled else None
        use_single = scaled and single and abs(scale) > 1e-30 and draw(st.booleans())
        signals.append(Signal(scale, draw(OFFSETS) if scaled else 0.0, draw(sentinel), use_single))
    return InputSpec(dtype, tuple(signals))


@settings(max_examples=100, **RUN)
@given(data=st.data())
def test_sensor_counts(data):
    text = data.draw(forests())
    dtype = data.draw(st.sampled_from([DType.I8, DType.U8, DType.I16, DType.U16, DType.I32]))
    check(text, data.draw(sensors(dtype, text)), DType.F64)


@settings(max_examples=30, **RUN)
@given(data=st.data())
def test_sensor_counts_in_linear_leaves(data):
    text = data.draw(forests(linear=True))
    dtype = data.draw(st.sampled_from([DType.I8, DType.U8, DType.I16]))
    check(text, data.draw(sensors(dtype, text, single=False)), DType.F64)


@settings(max_examples=10, **RUN)
@given(data=st.data())
def test_the_c_as_well(data):
    linear = data.draw(st.booleans())
    text = data.draw(forests(linear=linear))
    dtype = data.draw(st.sampled_from(TYPES))
    spec = plain(dtype, text.n_features) if dtype.is_float else data.draw(sensors(dtype, text, single=not linear))
    leaf = DType.F64 if linear else data.draw(st.sampled_from([DType.F64, DType.F32, DType.I16]))
    check(text, spec, leaf, host_check)


@pytest.mark.slow
@settings(max_examples=1000, **SEARCH)
@given(data=st.data())
def test_long_sweep(data):
    text = data.draw(forests(linear=data.draw(st.booleans())))
    dtype = data.draw(st.sampled_from(TYPES))
    linear = any(t.linear is not None for t in text.trees)
    spec = plain(dtype, text.n_features) if dtype.is_float else data.draw(sensors(dtype, text, single=not linear))
    check(text, spec, DType.F64 if linear else data.draw(st.sampled_from([DType.F64, DType.F32, DType.I16, DType.I32])))
