"""Input vectors: what they reach is what can be reached, and what is called impossible is impossible."""

from __future__ import annotations

from functools import cache

import lightgbm as lgb
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcugen.core.passes import run_passes
from mcugen.core.types import Array, DType, Feature, Loc, Model, Source, TensorType
from mcugen.frontends.lightgbm import load_text
from mcugen.trees.forest import Forest, ForestBuilder
from mcugen.trees.lower import TREE_PASSES, TreeOptions
from mcugen.trees.ops import RankInputs, SumLeaves
from mcugen.trees.paths import paths_of, rows_by_side, visits
from mcugen.trees.signals import InputSpec, Signal
from mcugen.trees.source import Link, TreeEnsemble
from mcugen.trees.tables import TreeTables
from mcugen.trees.vectors import Coverage, coverage_of, make_vectors, select_golden

BAND = float(np.float32(1e-35))


def _lowered(model: Model, spec: InputSpec) -> tuple[RankInputs, TreeTables]:
    machine = run_passes(model, TREE_PASSES, TreeOptions(spec, "raw", DType.F64))
    rank, total = machine.ops[:2]
    assert isinstance(rank, RankInputs)
    assert isinstance(total, SumLeaves)
    return rank, total.tables


def _model(forest: Forest) -> Model:
    types = {
        "x": TensorType((forest.n_features,), DType.F64),
        "raw": TensorType((1,), DType.F64),
        "prediction": TensorType((1,), DType.F64),
    }
    ops = (
        TreeEnsemble(("x",), ("raw",), Loc("test", ""), forest, np.zeros(1)),
        Link(("raw",), ("prediction",), Loc("test", ""), "identity"),
    )
    features = tuple(Feature(f"f{i}") for i in range(forest.n_features))
    return Model("m", "source", ("x",), ("raw", "prediction"), types, ops, Source("test", "test", ""), features)


@cache
def _booster(kind: str) -> str:
    rng = np.random.default_rng(5)
    n, categorical = 1500, "auto"
    x = rng.normal(size=(n, 5))
    y = x[:, 0] * x[:, 1] + np.sin(3 * x[:, 2]) + 0.1 * rng.normal(size=n)
    if kind == "missing":
        x[rng.random(x.shape) < 0.15] = np.nan
        y = y + np.isnan(x[:, 3])
    if kind == "zeros":
        x[rng.random(x.shape) < 0.3] = 0.0
    if kind == "categories":
        x[:, 0], x[:, 3] = rng.integers(0, 70, n), rng.integers(0, 9, n)
        y = rng.normal(size=70)[x[:, 0].astype(int)] + (x[:, 3] % 3) * x[:, 1]
        categorical = [0, 3]
    if kind == "counts":
        x = np.round(x * 20).clip(-128, 127)
    options = {"num_leaves": 24, "min_data_in_leaf": 3, "verbose": -1, "num_threads": 1, "deterministic": True}
    options |= {"zero_as_missing": kind == "zeros", "cat_smooth": 1, "min_data_per_group": 1}
    data = lgb.Dataset(x, y, categorical_feature=categorical, params={"min_data_per_group": 1, "verbose": -1})
    return str(lgb.train(options, data, 20).model_to_string())


def _trained(kind: str, dtype: DType = DType.F32) -> tuple[RankInputs, TreeTables]:
    model = load_text(_booster(kind).encode(), "model.txt", kind)
    return _lowered(model, InputSpec(dtype, (Signal(),) * 5))


def _walked_sides(tables: TreeTables, rank: Array) -> Array:
    """(N, 2) bool, one row and one tree at a time."""
    seen = np.zeros((tables.column.size, 2), np.bool_)
    first = np.concatenate([[0], np.cumsum(tables.sizes)])
    for r in rank:
        for t, size in enumerate(tables.sizes.tolist()):
            node, left_over = int(first[t]), size
            while left_over:
                code, operand, distance = (int(v) for v in (r[tables.column[node]], tables.operand[node], 0))
                distance = int(tables.distance[node])
                left = code <= operand
                if tables.column[node] >= tables.first_set:
                    left = bool(int(tables.set_words[operand + code // 32]) >> code % 32 & 1)
                seen[node, 0 if left else 1] = True
                left_over = distance - 1 if left else left_over - distance
                node += 1 if left else distance
    return seen


KINDS = [
    ("plain", DType.F32),
    ("plain", DType.F64),
    ("missing", DType.F32),
    ("zeros", DType.F32),
    ("categories", DType.F32),
    ("counts", DType.I8),
    ("counts", DType.I16),
    ("categories", DType.I32),
]


@pytest.mark.parametrize(("kind", "dtype"), KINDS)
def test_trained_models_are_covered_completely(kind: str, dtype: DType) -> None:
    rank, tables = _trained(kind, dtype)
    found = make_vectors(rank, tables)
    c = found.coverage
    assert c.nodes == tables.column.size > 100
    assert (c.one_way, c.never) == (0, 0)
    assert c.both_ways + c.unreachable == c.nodes
    assert found.x.dtype == dtype.np
    assert found.x.shape[1] == 5
    assert len(found.x) < 2500
    assert coverage_of(found.x, rank, tables) == c
    if dtype.is_float:
        assert c.unreachable == 0


@pytest.mark.parametrize(("kind", "dtype"), KINDS)
def test_visits_are_those_of_the_walk(kind: str, dtype: DType) -> None:
    rank, tables = _trained(kind, dtype)
    paths = paths_of(tables)
    x = make_vectors(rank, tables).x
    for rows in (1, 63, 65):
        ranks = rank.eval(x[-rows:])[0]
        expected = _walked_sides(tables, ranks)
        assert np.array_equal(visits(paths, ranks), expected)
        nodes = np.arange(0, tables.column.size, 3)
        bits = np.unpackbits(rows_by_side(paths, ranks, nodes), axis=1, bitorder="little")
        assert np.array_equal(bits.any(axis=1).reshape(2, -1).T, expected[nodes])
        assert not bits[:, rows:].any()


def test_blocks_of_rows_add_up(monkeypatch: pytest.MonkeyPatch) -> None:
    rank, tables = _trained("missing")
    paths = paths_of(tables)
    ranks = rank.eval(make_vectors(rank, tables).x[:200])[0]
    nodes = np.arange(tables.column.size)
    whole, bits = visits(paths, ranks), rows_by_side(paths, ranks, nodes)
    monkeypatch.setattr("mcugen.trees.paths._BLOCK_BYTES", 1)
    assert np.array_equal(visits(paths, ranks), whole)
    assert np.array_equal(rows_by_side(paths, ranks, nodes), bits)


def test_same_call_same_bits() -> None:
    rank, tables = _trained("missing")
    first, second = make_vectors(rank, tables), make_vectors(rank, tables)
    assert first.x.tobytes() == second.x.tobytes()
    assert make_vectors(rank, tables, seed=1).x.tobytes() != first.x.tobytes()
    chosen = select_golden(first.x, 40, rank, tables)
    assert np.array_equal(chosen, select_golden(first.x, 40, rank, tables))


def test_every_threshold_comes_with_its_neighbours() -> None:
    rank, tables = _trained("plain")
    x = make_vectors(rank, tables).x
    key_start = np.concatenate([[0], np.cumsum(rank.columns.count)])
    for c, f in enumerate(rank.columns.feature.tolist()):
        keys = rank.columns.keys[key_start[c] : key_start[c + 1]]
        bits = np.where(keys < 0, keys ^ 0x7FFFFFFF, keys).astype(np.int32)
        at = bits.view(np.float32)
        for wanted in (at, np.nextafter(at, np.float32(np.inf)), np.nextafter(at, np.float32(-np.inf))):
            assert np.isin(wanted, x[:, f]).all()


def test_values_that_floating_point_gets_wrong_are_there() -> None:
    rank, tables = _trained("categories")
    x = make_vectors(rank, tables).x
    band = np.float32(1e-35)
    wanted = [np.inf, -np.inf, np.finfo("f4").max, 1e-36, -1e-36, 1e-34, band, -band, np.nextafter(band, np.float32(1))]
    wanted += [np.nextafter(band, np.float32(0)), np.finfo("f4").smallest_subnormal]
    for f in range(5):
        column = np.ascontiguousarray(x[:, f])
        assert np.isin(np.array(wanted, "f4"), column).all()
        assert len(set(column[np.isnan(column)].view("u4").tolist())) >= 4
        assert {0, 0x80000000} <= set(column.view("u4").tolist())
    # categories: all known ones, an unseen one, fractions, negatives, beyond int32
    assert np.isin(np.arange(70, dtype="f4"), x[:, 0]).all()
    assert np.isin(np.array([70, -1, -0.5, -0.9, 0.9, 1.5, 2**31, 1e18], "f4"), x[:, 0]).all()


def test_sentinels_and_ends_of_integer_types() -> None:
    model = load_text(_booster("missing").encode(), "model.txt", "m")
    signals = tuple(Signal(scale=0.02, offset=-1.0 * i, missing=-32768 if i % 2 else None) for i in range(5))
    rank, tables = _lowered(model, InputSpec(DType.I16, signals))
    found = make_vectors(rank, tables)
    assert (found.coverage.one_way, found.coverage.never) == (0, 0)
    for f in range(5):
        assert np.isin(np.array([-32768, -32767, 0, 32766, 32767], "i2"), found.x[:, f]).all()


def test_the_limit_is_kept_and_gaps_are_reported() -> None:
    rank, tables = _trained("plain")
    for limit in (1, 7, 30):
        found = make_vectors(rank, tables, limit=limit)
        c = found.coverage
        assert len(found.x) == limit
        assert c.one_way + c.never > 0
        assert c.both_ways + c.one_way + c.never + c.unreachable == c.nodes
        seen = _walked_sides(tables, rank.eval(found.x)[0]).sum(axis=1)
        assert (c.both_ways, c.one_way, c.never) == tuple(np.count_nonzero(seen == k) for k in (2, 1, 0))


def test_golden_rows_keep_coverage_and_extremes() -> None:
    rank, tables = _trained("missing")
    found = make_vectors(rank, tables)
    chosen = select_golden(found.x, 256, rank, tables)
    assert len(set(chosen.tolist())) == len(chosen) <= 256
    assert coverage_of(found.x[chosen], rank, tables) == found.coverage
    few = select_golden(found.x, 24, rank, tables)
    assert len(few) == 24
    rows = found.x[few]
    assert np.isnan(rows).all(axis=1).any()
    assert (rows == np.inf).all(axis=1).any()
    assert (rows == -np.inf).all(axis=1).any()
    by_chance = coverage_of(found.x[-24:], rank, tables).both_ways
    assert coverage_of(rows, rank, tables).both_ways > by_chance


def test_golden_rows_of_a_sampled_forest(monkeypatch: pytest.MonkeyPatch) -> None:
    rank, tables = _trained("plain")
    x = make_vectors(rank, tables).x
    monkeypatch.setattr("mcugen.trees.vectors._GOLDEN_SIDES", 50)
    chosen = select_golden(x, 100, rank, tables)
    assert len(set(chosen.tolist())) == 100
    assert coverage_of(x[chosen], rank, tables).both_ways > 0.7 * tables.column.size


def _single(nodes: dict[str, Array], leaves: int, n_features: int = 1, **build: object) -> Forest:
    builder = ForestBuilder()
    builder.add_tree(leaf_value=np.arange(float(leaves)), **nodes)
    return builder.build(n_features=n_features, outputs=1, zero_band=0.0, **build)  # type: ignore[arg-type]


def test_no_nodes() -> None:
    forest = _single({k: np.zeros(0) for k in ("feature", "threshold", "left", "right")}, 1, 3)
    rank, tables = _lowered(_model(forest), InputSpec(DType.F32, (Signal(),) * 3))
    found = make_vectors(rank, tables)
    assert found.coverage == Coverage(0, 0, 0, 0, 0)
    assert np.isnan(found.x[select_golden(found.x, 8, rank, tables)]).any()


def test_a_contradiction_is_named() -> None:
    # x <= 3, and on its left x <= 3.5: for integers both are the same question.
    nodes = {"feature": np.zeros(2), "threshold": np.array([3.2, 3.5]), "left": [1, -1], "right": [-3, -2]}
    rank, tables = _lowered(_model(_single({k: np.array(v) for k, v in nodes.items()}, 3)), _spec(DType.I8, 1))
    c = make_vectors(rank, tables).coverage
    assert c == Coverage(2, 1, 0, 0, 1)
    assert c.text() == "1 of 2 nodes went both ways; 1 cannot (its path contradicts itself)"
    rank, tables = _lowered(_model(_single({k: np.array(v) for k, v in nodes.items()}, 3)), _spec(DType.F32, 1))
    # With fractions it is the left child's right side that no input takes.
    assert make_vectors(rank, tables).coverage == Coverage(2, 1, 0, 0, 1)


def test_a_tree_that_is_one_long_chain() -> None:
    n = 600
    nodes = {
        "feature": np.arange(n) % 2,
        "threshold": np.arange(n) / 2.0,
        "left": ~np.arange(n),
        "right": np.append(np.arange(1, n), ~n),
    }
    rank, tables = _lowered(_model(_single(nodes, n + 1, 2)), _spec(DType.F32, 2))
    found = make_vectors(rank, tables)
    assert found.coverage == Coverage(n, n, 0, 0, 0)
    assert len(found.x) < 4096


def test_text_counts_everything() -> None:
    text = Coverage(15_000, 14_000, 500, 498, 2).text()
    assert text == (
        "14,000 of 15,000 nodes went both ways; 500 one way only; 498 not at all; "
        "2 cannot (their path contradicts itself)"
    )


def _spec(dtype: DType, n: int, *signals: Signal) -> InputSpec:
    return InputSpec(dtype, signals or (Signal(),) * n)


def _random_tree(draw: st.DrawFn, builder: ForestBuilder, n_features: int, categorical: list[bool], wide: bool) -> None:
    """A tree of random shape whose tests often contradict each other."""
    n = draw(st.integers(0, 9))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    left, right, leaves = np.zeros(n, np.int64), np.zeros(n, np.int64), 0
    slots: list[tuple[int, int]] = []
    for i in range(n):
        if slots:
            parent, side = slots.pop(int(rng.integers(len(slots))))
            (left, right)[side][parent] = i
        slots += [(i, 0), (i, 1)]
    for parent, side in slots:
        (left, right)[side][parent] = ~leaves
        leaves += 1
    feature = rng.integers(0, n_features, n)
    near = rng.choice([-129.0, -128.0, -3.0, -0.5, -0.0, 0.0, 1e-36, 0.5, 2.0, 3.0, 126.5, 127.0, 128.0], n)
    cat = np.array(categorical, np.bool_)[feature]
    sets = np.full(n, -1)
    for i in np.flatnonzero(cat):
        members = rng.choice(100 if wide else 6, int(rng.integers(0, 4)), replace=False)
        sets[i] = builder.add_set(np.sort(members))
    builder.add_tree(
        leaf_value=np.arange(max(leaves, 1), dtype=np.float64),
        feature=feature,
        threshold=np.where(rng.random(n) < 0.7, near, np.round(rng.normal(0, 40, n), 1)),
        left=left,
        right=right,
        missing=rng.integers(0, 3, n).astype(np.uint8),
        default_left=rng.random(n) < 0.5,
        categorical=cat,
        category_set=sets,
    )


@st.composite
def _random_case(draw: st.DrawFn, dtypes: tuple[DType, ...]) -> tuple[RankInputs, TreeTables]:
    dtype = draw(st.sampled_from(dtypes))
    n_features = draw(st.integers(1, 2))
    categorical = draw(st.lists(st.booleans(), min_size=n_features, max_size=n_features))
    builder = ForestBuilder()
    wide = draw(st.booleans())
    for _ in range(draw(st.integers(1, 4))):
        _random_tree(draw, builder, n_features, categorical, wide)
    known = None
    if draw(st.booleans()):
        known = tuple(np.arange(100) if c else None for c in categorical)
    forest = builder.build(
        n_features=n_features,
        outputs=1,
        zero_band=draw(st.sampled_from([0.0, BAND])),
        category_match=draw(st.sampled_from(["trunc", "exact"])),
        known_categories=known,
    )
    signals = []
    for c in categorical:
        missing = draw(st.sampled_from([None, 0, 3, 127])) if not dtype.is_float else None
        scale = draw(st.sampled_from([None, 0.5, -0.25])) if not dtype.is_float and not c else None
        signals.append(Signal(scale, 0.25 if scale else 0.0, missing))
    return _lowered(_model(forest), InputSpec(dtype, tuple(signals)))


@settings(max_examples=150, deadline=None)
@given(_random_case((DType.I8, DType.U8)))
def test_all_inputs_of_a_byte_agree(case: tuple[RankInputs, TreeTables]) -> None:
    """Brute force over all 256 or 65,536 inputs: reachable is what is called so, and the vectors reach all of it."""
    rank, tables = case
    f = rank.has_sentinel.size
    values = np.arange(rank.dtype.min, rank.dtype.max + 1).astype(rank.dtype.np)
    x = np.stack([a.ravel() for a in np.meshgrid(*[values] * f)], axis=1)
    everything = visits(paths_of(tables), rank.eval(x)[0])
    found = make_vectors(rank, tables)
    assert np.array_equal(visits(paths_of(tables), rank.eval(found.x)[0]), everything)
    ways = everything.sum(axis=1)
    both, less = int(np.count_nonzero(ways == 2)), int(np.count_nonzero(ways < 2))
    assert found.coverage == Coverage(tables.column.size, both, 0, 0, less)


@settings(max_examples=150, deadline=None)
@given(_random_case((DType.F32, DType.F64, DType.I16, DType.I32, DType.U32)), st.integers(0, 2**32 - 1))
def test_no_input_takes_a_side_called_impossible(case: tuple[RankInputs, TreeTables], seed: int) -> None:
    """The vectors take every possible side, and random inputs no other."""
    rank, tables = case
    f, rng = rank.has_sentinel.size, np.random.default_rng(seed)
    found = make_vectors(rank, tables)
    assert (found.coverage.one_way, found.coverage.never) == (0, 0)
    seen = visits(paths_of(tables), rank.eval(found.x)[0])
    if rank.dtype.is_float:
        bits = rng.integers(0, 256, (4000, f * rank.dtype.size), dtype=np.uint8).view(rank.dtype.np)
        real = np.concatenate([rng.normal(0, 40, (4000, f)), rng.integers(-130, 130, (4000, f))])
        x = np.concatenate([bits, real.astype(rank.dtype.np)])
    else:
        x = np.concatenate(
            [rng.integers(rank.dtype.min, rank.dtype.max + 1, (4000, f)), rng.integers(0, 128, (4000, f))]
        )
    random = visits(paths_of(tables), rank.eval(x.astype(rank.dtype.np))[0])
    assert not (random & ~seen).any()
