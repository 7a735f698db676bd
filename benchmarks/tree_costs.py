"""Measures what each way of ranking and each way of summing costs, and fits the cost model of mcugen/trees/costs.py.

    python benchmarks/tree_costs.py MODELS [--rows N] [--only MODEL,...]   measure, write results/tree_costs.json
    python benchmarks/tree_costs.py --fit                                   fit what was measured

MODELS holds a folder a model with ``model.txt`` and ``expected.npz`` (x, raw); small models are trained here, on data
of scikit-learn. Every op is measured alone: instructions and bytes are split by function. The constants that the fit
prints are those in ``mcugen/trees/costs.py``.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import lightgbm
import numpy as np
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_iris

from mcugen.core.passes import run_passes
from mcugen.core.ports import one_each
from mcugen.core.types import DType, Model
from mcugen.emit.model import items_of, model_files, runtime_files
from mcugen.emit.selftest import Vectors
from mcugen.emulate.cycles import estimate
from mcugen.emulate.image import BoardModel, build_image
from mcugen.emulate.isa import Decoder
from mcugen.emulate.machine import EmulatedBoard
from mcugen.emulate.toolchain import find_cross_compiler
from mcugen.frontends.load import load_source
from mcugen.report.attribution import Owners
from mcugen.target.board import load_board
from mcugen.target.placement import place
from mcugen.trees.choose import FINE_ERROR, Choices, choices_of
from mcugen.trees.costs import features
from mcugen.trees.lower import TREE_PASSES, TreeOptions
from mcugen.trees.narrow import score_spread
from mcugen.trees.parts import Parts
from mcugen.trees.proof import reference
from mcugen.trees.signals import InputSpec, Signal

RESULTS = Path(__file__).parent / "results" / "tree_costs.json"
MODELS = (
    ("reg12_small", "float32"),
    ("reg12_small", "int16"),
    ("reg12_large", "float32"),
    ("digits", "float32"),
    ("cancer", "float32"),
    ("cancer_nan", "float32"),
    ("diabetes", "float32"),
    ("cat", "float32"),
)
#: Each way once: the parts of a prediction do not depend on each other. Then whether leaves are as fine as without
#: ``--optimize size``.
WAYS = (
    ("search", "tables", False),
    ("lookup", "packed", False),
    ("coarse", "branches", False),
    ("search", "packed", True),
)
#: Small models: data, trees for each output, leaves, features.
SMALL = (
    ("diabetes", 1, 2, 1),
    ("diabetes", 3, 2, 3),
    ("diabetes", 10, 4, 4),
    ("diabetes", 5, 8, 10),
    ("cancer", 20, 2, 10),
    ("cancer", 10, 8, 5),
    ("iris", 5, 4, 4),
    ("digits", 3, 4, 64),
)
_RECORDED = 1_000_000
#: Start-up and calls.
_BESIDE = {"instructions": 35.0, "bytes": 550.0}


@dataclass(frozen=True)
class Row:
    """One model, ranked and summed in one way. Bytes and instructions of the two ops alone; cycles of all."""

    model: str
    dtype: str
    ranking: str
    summing: str
    rank_features: dict[str, float]
    sum_features: dict[str, float]
    rank_bytes: int
    sum_bytes: int
    rank_instructions: float
    sum_instructions: float
    instructions: float
    low: float
    high: float
    memory: dict[str, int]


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("models", type=Path, nargs="?")
    arguments.add_argument("--rows", type=int, default=200)
    arguments.add_argument("--only", default="")
    arguments.add_argument("--fit", action="store_true")
    given = arguments.parse_args()
    if given.models is not None and not given.fit:
        with tempfile.TemporaryDirectory() as scratch:
            folders = [(given.models / name, dtype) for name, dtype in MODELS]
            folders += [(_train(Path(scratch), *small), "float32") for small in SMALL]
            for folder, dtype in folders:
                if not given.only or folder.name in given.only.split(","):
                    _measure_all(folder, dtype, given.rows)
    fit(json.loads(RESULTS.read_text()))


def _measure_all(folder: Path, dtype: str, rows: int) -> None:
    for *way, fine in WAYS:
        row = measure(folder, dtype, (way[0], way[1]), fine, rows)
        if row is not None:
            _keep(row)


def _train(folder: Path, data: str, trees: int, leaves: int, features: int) -> Path:
    """A small model, in a folder as those of MODELS."""
    loaders = {"diabetes": load_diabetes, "cancer": load_breast_cancer, "iris": load_iris, "digits": load_digits}
    x, y = loaders[data](return_X_y=True)
    x, classes = x[:, :features], len(set(y.tolist()))
    goal = {"objective": "regression"} if data == "diabetes" else {"objective": "binary"}
    goal = {"objective": "multiclass", "num_class": classes} if 2 < classes <= 10 else goal
    options = {**goal, "num_leaves": leaves, "verbose": -1, "seed": 1, "num_threads": 1, "deterministic": True}
    booster = lightgbm.train(options, lightgbm.Dataset(x, y), trees)
    found = folder / f"{data}_{trees}x{leaves}x{features}"
    found.mkdir()
    booster.save_model(str(found / "model.txt"))
    np.savez(found / "expected.npz", x=x)
    return found


def _keep(row: Row) -> None:
    old = json.loads(RESULTS.read_text()) if RESULTS.exists() else []
    same = ("model", "dtype", "ranking", "summing")
    new = asdict(row)
    rows = [r for r in old if any(r[k] != new[k] for k in same)] + [new]
    rows.sort(key=lambda r: [r[k] for k in same])
    RESULTS.write_text(json.dumps(rows, indent=1) + "\n")
    print(f"{row.model:12} {row.dtype:8} {row.ranking:7} {row.summing:9} {row.instructions:9,.0f}", flush=True)


def measure(folder: Path, dtype: str, way: tuple[str, str], fine: bool, rows: int) -> Row | None:
    """None where the model cannot have it."""
    compiler, board = find_cross_compiler(), load_board("stm32h743")
    source = load_source(str(folder / "model.txt"), "m")
    seen: list[tuple[Parts, Choices]] = []

    def forced(parts: Parts) -> Choices:
        limit = FINE_ERROR * score_spread(parts.source, parts.count) if fine else None
        found = choices_of(parts, *way, limit)
        seen.append((parts, found))
        return found

    machine, spec = _lower(source, DType.of(dtype), forced)
    parts, choices = seen[0]
    if (choices.ranking, choices.summing) != way:
        return None
    x = np.load(folder / "expected.npz")["x"][:rows].astype(DType.of(dtype).np)
    ref = reference(source, machine, spec, x)
    items = items_of(machine)
    plan = place(items, board, {}, {"flash": 600})
    texts = model_files(machine, plan, "raw", Vectors(ref.x[:2], ref.y[:2]), "measured") | runtime_files(plan)
    files = {k: v.encode() if isinstance(v, str) else v for k, v in texts.items()}
    x_type, y_type = machine.types[machine.inputs[0]], machine.types[machine.outputs[0]]
    regions = {a.item.symbol: a.region for a in plan.assignments}
    model = BoardModel(
        "m", files, *one_each(x_type.dtype, x_type.count, y_type.dtype, y_type.count), "stm32h743", regions
    )
    image = build_image(model, board, compiler, "-O2")
    emulated = EmulatedBoard(image, board)
    _, counts = emulated.run(model, x)
    executions = [e for e in emulated.record(model, x[: max(20, int(_RECORDED / counts.mean()))]) if e is not None]
    decoder = Decoder(tuple((s.address, s.data) for s in image.elf.segments))
    cycles = estimate(executions, decoder, board)
    rank, total = machine.ops[:2]
    functions = [tuple(i.symbol for i in op.items("m") if i.role == "code") for op in (rank, total)]
    split = Owners(image.elf, (*functions, ("m_run", "m_compute"))).split(executions)
    spent = [sum(len(decoder.block(*b)) for run in part for b in run) / len(executions) for part in split]
    size = [_bytes(image.elf.functions(), op.items("m")) for op in (rank, total)]
    found = features(parts, {way[1]: choices.leaves})
    return Row(
        folder.name,
        dtype,
        *way,
        found.ranking[way[0]],
        found.summing[way[1]],
        *size,
        *spent[:2],
        float(counts.mean()),
        cycles.low,
        cycles.high,
        dict(image.model_bytes),
    )


def _lower(source: Model, dtype: DType, choose: Callable[[Parts], Choices]) -> tuple[Model, InputSpec]:
    spec = InputSpec(dtype, (Signal(),) * source.types["x"].count)
    return run_passes(source, TREE_PASSES, TreeOptions(spec, "raw", DType.I16, choose)), spec


def _bytes(functions: object, items: object) -> int:
    """Tables as planned, code as compiled."""
    names = {i.symbol for i in items if i.role == "code"}  # type: ignore[attr-defined]
    code = sum(f.size for f in functions if f.name.split(".")[0] in names)  # type: ignore[attr-defined]
    return code + sum(i.size for i in items if i.role == "table")  # type: ignore[attr-defined]


def fit(rows: list[dict[str, object]]) -> None:
    """Least squares, without negative parts, of errors as a share of the whole; prints constants and how far off.

    The whole of a part is it and what every model has beside it (``_BESIDE``): of one tree nothing else counts.
    """
    from scipy.optimize import nnls  # noqa: PLC0415

    for part, key in (("rank", "ranking"), ("sum", "summing")):
        for way in dict.fromkeys(str(r[key]) for r in rows):
            chosen = [r for r in rows if r[key] == way]
            for what in ("instructions", "bytes"):
                names = [n for n in chosen[0][f"{part}_features"] if n.startswith(what[0])]  # type: ignore[union-attr,attr-defined]
                matrix = np.array([[r[f"{part}_features"][n] for n in names] for r in chosen])  # type: ignore[index]
                target = np.array([float(r[f"{part}_{what}"]) for r in chosen])  # type: ignore[arg-type]
                whole = target + _BESIDE[what]
                found = nnls(matrix / whole[:, None], target / whole)[0]
                off = (matrix @ found - target) / whole
                text = ", ".join(f"{n}: {v:.2f}" for n, v in zip(names, found, strict=True))
                print(f"{way:9} {what:12} {text}; off by {100 * np.abs(off).max():.0f} % at most")


if __name__ == "__main__":
    main()
