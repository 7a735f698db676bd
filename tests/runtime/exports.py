"""Tiny exports of every kind, made once a session, for the tests that compile them."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import numpy as np
from tree_models import (
    WAITING,
    Export,
    Leaf,
    Split,
    export_text,
    forest_of,
    model_of,
    nans,
    spec_of,
    ways,
)

from mcugen.core.types import DType
from mcugen.trees.forest import Missing
from mcugen.trees.signals import InputSpec, Signal

WARNINGS = ("-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Wpedantic", "-Werror")


def _mixed(shift: float = 0.0) -> list[Split | Leaf]:
    """Three trees over three features, all kinds of missing values, one tree of a single leaf."""
    deep = Split(1, -2.5, Leaf(-0.75 + shift), Split(2, 0.0, Leaf(0.125), Leaf(0.5), Missing.ZERO, True))
    return [
        Split(0, 0.5, deep, Leaf(1.25), Missing.NAN, True),
        Leaf(0.375 + shift),
        Split(2, 1e-30, Leaf(-1.0), Split(0, 100.0, Leaf(0.1), Leaf(0.2), Missing.NONE)),
    ]


def _categories() -> list[Split | Leaf]:
    inner = Split(1, 0.0, Leaf(0.5), Leaf(-0.25), categories=(1, 31, 32, 33))
    return [
        Split(1, 0.0, inner, Leaf(-1.0), categories=(0, 1, 2, 31, 33, 40)),
        Split(0, 10.0, Leaf(0.0), Split(1, 0.0, Leaf(0.75), Leaf(0.25), categories=(2, 100))),
    ]


def _linear() -> list[Split | Leaf]:
    return [
        Split(0, 0.1, Leaf(0.5, (0.1, ((0, 0.3), (1, -0.7)))), Leaf(0.25, (1 / 3, ((1, 0.1),)))),
        Split(1, -1.0, Leaf(1.0, (0.7, ())), Leaf(-1.0, (-0.2, ((0, 1e-3), (1, 1 / 7)))), Missing.NAN, True),
    ]


def _full(depth: int, low: float, high: float) -> Split | Leaf:
    if depth == 0:
        return Leaf(low + 0.1 * high)
    middle = (low + high) / 2
    left, right = _full(depth - 1, low, middle), _full(depth - 1, middle, high)
    return Split(depth % 3, middle, left, right, Missing.NAN, depth % 2 == 0)


def _wide_leaves() -> list[Split | Leaf]:
    return [Split(0, float(t), Leaf((0.2, 0.3, 0.5)), Leaf((0.6, 0.1, 0.3))) for t in range(5)]


def _make(kind: str) -> Export:
    labels3 = ("a", "b", "c")
    if kind == "float32":
        return export_text(model_of(forest_of(_mixed(), 3), name=kind), spec_of(DType.F32, 3), leaf=DType.I16)
    if kind == "float64":
        return export_text(model_of(forest_of(_mixed(), 3), name=kind), spec_of(DType.F64, 3), leaf=DType.F32)
    if kind == "sentinel":
        signals = (Signal(0.1, -40.0, -32768), Signal(missing=-1), Signal(-0.01, 0.0, None, True))
        return export_text(model_of(forest_of(_mixed(), 3), name=kind), InputSpec(DType.I16, signals), leaf=DType.I32)
    if kind == "category":
        model = model_of(forest_of(_categories(), 2), name=kind, labels=("no", "yes"))
        odd = np.array(
            [[0, v] for v in (0.5, -0.5, -1.0, 40.9, 2**31, 2147483520.0, 1e30, np.inf, -np.inf)], np.float32
        )
        some = np.stack([np.zeros(6, np.float32), nans(DType.F32)], axis=1)
        return export_text(model, spec_of(DType.F32, 2), "class", DType.I16, extra=np.concatenate([odd, some]))
    if kind == "linear":
        model = model_of(forest_of(_linear(), 2), name=kind, base=[0.1])
        rows = np.random.default_rng(0).normal(0, 3, (300, 2))
        rows[:9] = [
            [0.1, -1.0],
            [1e-36, 2e-35],
            [np.nan, 1.0],
            [1.0, np.nan],
            [1e300, 1e300],
            [0, 0],
            [-0.0, 1],
            [5, -9],
            [7, 1],
        ]
        return export_text(model, spec_of(DType.F64, 2), extra=rows)
    if kind == "linear_counts":
        signals = (Signal(0.1, 0.3, -32768), Signal())
        rows = np.random.default_rng(0).integers(-300, 300, (300, 2)).astype(np.int16)
        return export_text(model_of(forest_of(_linear(), 2), name=kind), InputSpec(DType.I16, signals), extra=rows)
    if kind == "classes":
        model = model_of(forest_of(_mixed() + _mixed(0.5), 3, 3), name=kind, labels=labels3)
        return export_text(model, spec_of(DType.U8, 3), "class", DType.I16)
    if kind == "softmax":
        model = model_of(forest_of(_mixed() + _mixed(0.5), 3, 3), name=kind, link=("softmax", 1.0), labels=labels3)
        return export_text(model, spec_of(DType.F32, 3), "proba", DType.I16)
    if kind == "sigmoid":
        model = model_of(forest_of(_mixed(), 3), name=kind, link=("sigmoid", 0.7), labels=("no", "yes"))
        return export_text(model, spec_of(DType.F32, 3), "proba", DType.F64, board="stm32h743")
    if kind == "mean":
        model = model_of(forest_of(_wide_leaves(), 1, 3), name=kind, average=5)
        return export_text(model, spec_of(DType.I8, 1), "raw", DType.F32, board="stm32h743")
    if kind == "no_category":  # the only category of the only set is the sentinel: a column without codes
        tree = Split(0, 0.0, Leaf(0.5), Leaf(-0.5), categories=(7,))
        return export_text(model_of(forest_of([tree], 1), name=kind), spec_of(DType.U8, 1, Signal(missing=7)))
    if kind == "constant":
        return export_text(
            model_of(forest_of([Leaf(0.5), Leaf(-2.0)], 2), name=kind), spec_of(DType.F32, 2), leaf=DType.I16
        )
    return _make_rows(kind)


def _make_rows(kind: str) -> Export:
    """Batches go tree by tree."""
    labels3 = ("a", "b", "c")
    if kind == "rows_packed":  # two rows side by side
        model = model_of(forest_of([*_mixed(), Leaf(0.5), *_mixed(0.5)], 3), name=kind)
        way = ways("search", "packed")
        return export_text(model, spec_of(DType.F32, 3), leaf=DType.I16, choose=way, memory=WAITING)
    if kind == "rows_mixed":  # code beside words whose columns have codes, so that leaves are long
        model = model_of(forest_of([_full(3, -4.0, 4.0 + i) for i in range(4)], 3), name=kind)
        way = ways("search", "mixed", 3e-4)
        return export_text(model, spec_of(DType.F32, 3), leaf=DType.I16, choose=way, memory=WAITING)
    if kind == "rows_linear":
        signals = (Signal(0.1, 0.3, -32768), Signal())
        rows = np.random.default_rng(0).integers(-300, 300, (300, 2)).astype(np.int16)
        model = model_of(forest_of(_linear(), 2), name=kind)
        return export_text(model, InputSpec(DType.I16, signals), extra=rows, memory=WAITING)
    if kind == "rows_tables":  # floats keep their order in each row; ops follow
        model = model_of(forest_of(_mixed() + _mixed(0.5), 3, 3), name=kind, link=("softmax", 1.0), labels=labels3)
        return export_text(model, spec_of(DType.I16, 3), "proba", memory=WAITING)
    if kind == "rows_branches":
        model = model_of(forest_of(_categories(), 2), name=kind, labels=("no", "yes"))
        way = ways("coarse", "branches")
        return export_text(model, spec_of(DType.F32, 2), "class", DType.I16, choose=way, memory=WAITING)
    raise KeyError(kind)


KINDS = (
    "float32 float64 sentinel category linear linear_counts classes softmax sigmoid mean constant no_category "
    "rows_packed rows_mixed rows_linear rows_tables rows_branches"
).split()
get = cache(_make)


def put(export: Export, folder: Path) -> Path:
    """The files on disk."""
    for name, content in export.files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    return folder


def run(command: Sequence[str | Path], folder: Path) -> str:
    """Output of a command that must succeed."""
    done = subprocess.run([str(c) for c in command], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{' '.join(map(str, command))}\n{done.stdout[-1500:]}\n{done.stderr[:1500]}"
    return done.stdout
