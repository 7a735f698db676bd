"""Every model of a folder, every input type and leaf type that fits it: the exported C against LightGBM itself.

    python benchmarks/exactness.py MODELS

MODELS holds a folder a model with ``model.txt`` and ``expected.npz`` (x, raw, leaf). The C is compiled on this machine
and run on the rows of x and on boundary vectors; Booster.predict on dense float64 arrays says what is right. Writes
``results/exactness.json`` and ``results/exactness.md`` beside this file; exit code 1 if anything differs.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path

import lightgbm
import numpy as np

import mcugen
from mcugen.build import ExportResult
from mcugen.core.types import Array, DType
from mcugen.emit.parts import ports_of
from mcugen.emit.sources import sources_of
from mcugen.exported import open_folder
from mcugen.trees.proof import summing_op
from mcugen.trees.signals import InputSpec, Signal
from mcugen.verify.compiler import find_host_compiler
from mcugen.verify.hostbuild import HostModel, build_shared

RESULTS = Path(__file__).parent / "results"
LEAVES = ("int16", "int32", "float32", "float64")
#: The mark for int16 leaves, in % of the span of the scores on the rows of the model's folder.
MOST_PERCENT = 0.03


@dataclass(frozen=True)
class Row:
    """One export. Errors and bounds in % of the span of the raw scores on the data."""

    model: str
    dtype: str
    leaf: str
    rows: int
    edges: int
    coverage: str
    leaves_equal: bool
    bits_equal: bool
    bound_percent: float
    worst_percent: float
    as_expected: bool

    @property
    def right(self) -> bool:
        """Whether everything that was promised holds."""
        ok = self.leaves_equal and self.as_expected and self.worst_percent <= self.bound_percent
        if self.leaf == "float64":
            return ok and self.bits_equal
        return ok and (self.leaf != "int16" or self.bound_percent <= MOST_PERCENT)


def main() -> None:
    """Measure, write, and judge."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", type=Path)
    folder = parser.parse_args().models
    rows = []
    for path in sorted(p for p in folder.iterdir() if (p / "model.txt").is_file()):
        data = np.load(path / "expected.npz")
        whole = np.isfinite(data["x"]).all() and (data["x"] == np.rint(data["x"])).all()
        fits = whole and np.abs(data["x"]).max() <= DType.I16.max
        for dtype in ("float32", "int16") if fits else ("float32",):
            for leaf in LEAVES:
                rows.append(measure(path, data, dtype, leaf))
                print(("ok    " if rows[-1].right else "WRONG ") + str(rows[-1]), flush=True)
    write(rows)
    sys.exit(0 if rows and all(r.right for r in rows) else 1)


def measure(path: Path, data: dict[str, Array], dtype: str, leaf: str) -> Row:
    """Export one model, run it on its rows and on boundary vectors, and ask LightGBM."""
    booster = lightgbm.Booster(model_file=path / "model.txt")
    with tempfile.TemporaryDirectory() as out:
        result = mcugen.export(path / "model.txt", Path(out) / "m", name="m", board=None, input_dtype=dtype, leaf=leaf)
        given = data["x"].astype(DType.of(dtype).np)
        edges = result.reference.x
        x = np.concatenate([given, edges])
        y, leaves = run_c(Path(out) / "m", result, x)
    values = InputSpec(DType.of(dtype), (Signal(),) * x.shape[1]).values(x)
    raw = booster.predict(values, raw_score=True).reshape(len(x), -1)
    expected_raw = data["raw"].reshape(len(given), -1)
    q = result.model.types[result.model.outputs[0]].q
    score = y.astype(np.float64) * (q.scale if q is not None else 1.0)
    span = float(expected_raw.max() - expected_raw.min())
    return Row(
        model=path.name,
        dtype=dtype,
        leaf=leaf,
        rows=len(given),
        edges=len(edges),
        coverage=result.coverage.text(),
        leaves_equal=bool((leaves == booster.predict(values, pred_leaf=True)).all())
        and bool((leaves[: len(given)] == data["leaf"]).all()),
        bits_equal=bool((score.view(np.int64) == raw.view(np.int64)).all()),
        bound_percent=100 * result.model.bounds["score"].error / span,
        worst_percent=100 * float(np.abs(score - raw).max()) / span,
        as_expected=bool((raw[: len(given)] == expected_raw).all()),
    )


def run_c(folder: Path, result: ExportResult, x: Array) -> tuple[Array, Array]:
    """Outputs and leaves of the exported C."""
    export = open_folder(folder)
    model, trace = result.model, result.reference.trace
    trees = summing_op(model).tables.n_trees
    with (
        build_shared(export.files, sources_of(export.files), find_host_compiler(), ("-DMCG_TRACE",)) as library,
        HostModel(library, export.name, *ports_of(model), leaf_type=DType.of(str(trace.dtype)), trees=trees) as host,
    ):
        return host.run(x), host.leaves(x)


def write(rows: list[Row]) -> None:
    """The table and the figures behind it."""
    RESULTS.mkdir(exist_ok=True)
    head = f"LightGBM {lightgbm.__version__}, mcugen {mcugen.__version__}."
    lines = [
        "# Exactness on the tree models",
        "",
        f"Made by `python benchmarks/exactness.py MODELS`. {head} The exported C, compiled on the host, against",
        "Booster.predict on dense float64 arrays: on the rows of each model, and on boundary vectors (thresholds and",
        "one step to either side, ends of the type, zeros, NaN). Bound and worst error in % of the span of the scores.",
        "",
        "| model | inputs | leaves | rows | vectors | same leaf everywhere | same bits | proven bound, % | worst, % |",
        "|---|---|---|---:|---:|---|---|---:|---:|",
    ]
    for r in rows:
        same = "yes" if r.leaves_equal else "NO"
        bits = "yes" if r.bits_equal else "-"
        lines.append(
            f"| {r.model} | {r.dtype} | {r.leaf} | {r.rows} | {r.edges} | {same} | {bits} "
            f"| {r.bound_percent:.2g} | {r.worst_percent:.2g} |"
        )
    right = sum(r.right for r in rows)
    lines += ["", f"{right} of {len(rows)} exports keep every promise."]
    (RESULTS / "exactness.md").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (RESULTS / "exactness.json").write_text(json.dumps([asdict(r) for r in rows], indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
