"""Exported C against LightGBM itself: leaves, raw scores and predictions, on the user's rows and where faults hide.

Nothing of mcugen's own evaluation stands between: the folder that export wrote is compiled, run, and compared with
Booster.predict on the values that its inputs mean.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import lightgbm as lgb
import numpy as np

import mcugen
from mcugen.build import ExportResult
from mcugen.core.types import DType
from mcugen.exported import open_folder
from mcugen.trees.proof import summing_op
from mcugen.trees.signals import InputSpec, Signal
from mcugen.verify.compiler import HostCompiler, find_host_compiler
from mcugen.verify.hostbuild import HostModel, build_shared

QUICK = ("-O1", "-DMCG_TRACE")
TRAIN = {"verbose": -1, "num_threads": 1, "deterministic": True, "seed": 1, "min_data_in_leaf": 1, "min_data_in_bin": 1}


def train(x, y, rounds: int = 5, categorical: Any = "auto", **params) -> lgb.Booster:
    """A booster on one thread; ``params`` beside TRAIN."""
    data = lgb.Dataset(x, y, categorical_feature=categorical, free_raw_data=False)
    return lgb.train({**TRAIN, **params}, data, rounds)


@dataclass
class Checked:
    """What the checks saw: the export, the inputs (of the C type) and the C output for them."""

    result: ExportResult
    x: np.ndarray
    y: np.ndarray
    leaf: np.ndarray


@dataclass
class Truth:
    """LightGBM's answers. ``chosen``: arguments of predict, such as num_iteration."""

    booster: lgb.Booster
    chosen: dict[str, int] = field(default_factory=dict)

    def raw(self, real: np.ndarray) -> np.ndarray:
        return np.asarray(self.booster.predict(real, raw_score=True, **self.chosen)).reshape(len(real), -1)

    def prediction(self, real: np.ndarray) -> np.ndarray:
        return np.asarray(self.booster.predict(real, **self.chosen)).reshape(len(real), -1)

    def leaf(self, real: np.ndarray) -> np.ndarray:
        return np.asarray(self.booster.predict(real, pred_leaf=True, **self.chosen)).reshape(len(real), -1)


@contextmanager
def built(
    result: ExportResult, flags: Sequence[str] = QUICK, compiler: HostCompiler | None = None
) -> Iterator[HostModel]:
    """The C of an export, with NAME_leaves."""
    folder = open_folder(result.out)
    machine = result.model
    tables = summing_op(machine).tables
    wide = DType.U32 if tables.name_ctype == "uint32_t" else DType.U16
    # What the model calls and no more: tests of the whole folder stand elsewhere, and these are many.
    text = folder.files[f"{folder.name}.c"]
    sources = [f"{folder.name}.c"] + ["mcugen/mcg_scores.c"] * (b"mcg_scores.h" in text)
    kinds = (folder.name, folder.inputs, folder.outputs)
    with (
        build_shared(folder.files, sources, compiler or find_host_compiler(), flags) as library,
        HostModel(library, *kinds, leaf_type=wide, trees=tables.n_trees) as host,
    ):
        yield host


def exported(source: Any, out: Path, dtype: str, leaf: str, output: str, **options) -> ExportResult:
    """Without a board, and not compiled: ``check_model`` compiles."""
    options = {"board": "none", "verify": False, "name": "m", **options}
    return mcugen.export(source, out, input_dtype=dtype, leaf=leaf, output=output, **options)


def check_model(
    source: Any,
    rows: Any,
    *,
    booster: lgb.Booster | None = None,
    dtype: str = "float64",
    leaf: str = "float64",
    output: str = "raw",
    signals: dict[int, Signal] | None = None,
    chosen: dict[str, int] | None = None,
    options: dict[str, Any] | None = None,
    flags: Sequence[str] = QUICK,
    compiler: HostCompiler | None = None,
) -> Checked:
    """Export ``source`` (a Booster, a wrapper, or a path with ``booster`` to judge it) and compare.

    ``rows`` are inputs of the C; the vectors of the export are added. ``signals``: what a spec in ``options`` says,
    told a second time.
    """
    truth = Truth(booster or getattr(source, "booster_", source), chosen or {})
    with tempfile.TemporaryDirectory() as folder:
        result = exported(source, Path(folder) / "m", dtype, leaf, output, **(chosen or {}), **(options or {}))
        kind = result.model.types["x"].dtype
        count = result.model.types["x"].count
        mine = np.asarray(rows, kind.np).reshape(-1, count)
        x = np.concatenate([mine, result.reference.x])
        with built(result, flags, compiler) as host:
            y, leaves = host.run(x), host.leaves(x)
    spec = InputSpec(kind, tuple((signals or {}).get(i, Signal()) for i in range(count)))
    real = spec.values(x)
    same_rows(leaves.astype(np.int64), truth.leaf(real).astype(np.int64), x, "leaves")
    require_output(result, y, truth, real, output, x)
    return Checked(result, x, y, leaves)


def require_output(result: ExportResult, y, truth: Truth, real, output: str, x) -> None:
    """Raw scores of float64 leaves bit by bit, others within the proven bound; classes and predictions."""
    raw = truth.raw(real)
    if output == "class":
        want = (raw[:, :1] > 0.0) if raw.shape[1] == 1 else raw.argmax(axis=1)[:, None]
        clear = certain(raw, 0.0 if exact(result) else result.model.bounds["score"].error)
        same_rows(y[clear].astype(int), want[clear].astype(int), x[clear], "class")
        return
    if output == "proba":
        want = truth.prediction(real)
        tolerance = 3e-6 if exact(result) else 3e-6 + 2.0 * result.model.bounds["score"].error
        with np.errstate(over="ignore"):
            single = want.astype(np.float32)
        close = np.isclose(y, want, rtol=tolerance, atol=tolerance) | (y == single) | np.isnan(y) & np.isnan(want)
        assert close.all(), f"prediction {y[~close][:3]}, {want[~close][:3]} expected"
        return
    if exact(result):
        same_rows(y, raw, x, "raw score")
        return
    bound = result.model.bounds["score"].error
    q = result.model.types[result.model.outputs[0]].q
    gap = np.abs(y.astype(np.float64) * (q.scale if q else 1.0) - raw)
    assert gap.max(initial=0.0) <= bound, f"off by {gap.max()}, proven {bound}"


def exact(result: ExportResult) -> bool:
    return result.model.types["score"].dtype is DType.F64


def certain(raw: np.ndarray, error: float) -> np.ndarray:
    """Rows whose class no error of this size changes. Ties count as certain where nothing is lost."""
    if error == 0.0:
        return np.ones(len(raw), bool)
    if raw.shape[1] == 1:
        return np.abs(raw[:, 0]) > error
    top = np.sort(raw, axis=1)
    return top[:, -1] - top[:, -2] > 2 * error


def same_rows(found: np.ndarray, want: np.ndarray, x: np.ndarray, what: str) -> None:
    """Equal, bit by bit for floats, NaN as NaN."""
    assert found.shape == want.shape, f"{what}: {found.shape}, {want.shape} expected"
    nan = np.isnan(found) & np.isnan(want)
    wrong = ~((found == want) & (np.signbit(found) == np.signbit(want)) | nan)
    if wrong.any():
        row = int(np.argmax(wrong.any(axis=1)))
        raise AssertionError(f"{what}: {wrong.any(axis=1).sum()} rows differ: x={x[row]} {found[row]} != {want[row]}")


def sweep(source: Any, rows: Any, dtypes=("float64", "float32"), leaves=("float64", "int16"), **options) -> None:
    """check_model for every type of inputs and leaves."""
    for dtype in dtypes:
        for leaf in leaves:
            check_model(source, rows, dtype=dtype, leaf=leaf, **options)
