"""Exports models from 1.4 to 100 MB and measures time and memory: is the whole pipe linear in the size of the file?

    python benchmarks/large_model.py                       sizes of the report, about three minutes
    python benchmarks/large_model.py --sizes 1.4 12.5      others, in MB of model.txt (1 MB = 1,000,000 bytes)
    python benchmarks/large_model.py --any-machine         without the limit in seconds: ratios and memory only

Each model is LightGBM's text format: trees of 31 leaves over 12 features of 255 bins, every node reachable; a pool of
1,000 random trees, repeated. Each export is a process of its own with `--board none`; CPU seconds and peak memory are
those of the process and of the compiler that it calls. The largest model is then exported for the STM32H743, which it
cannot fit: exit code 4, and nothing written.

Results: benchmarks/results/large_model.{json,md}. Exit code 1 where a limit is broken.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

RESULTS = Path(__file__).resolve().parent / "results"
FEATURES, BINS, LEAVES, POOL = 12, 255, 31, 1000

# The limits that the project promises.
SMALL_MB, SMALL_CPU_SECONDS = 1.4, 5.0
MEMORY_FACTOR = 10.0
LINEAR_FACTOR = 1.5  # CPU a MB of the largest model against that of the smallest of at least 10 MB


@dataclass(frozen=True, slots=True)
class Row:
    """One export. Bytes are bytes; ``peak_bytes`` is the largest resident set of the process or its compiler."""

    mb: float
    file_bytes: int
    trees: int
    exit_code: int
    cpu_seconds: float
    wall_seconds: float
    peak_bytes: int
    source_bytes: int

    @property
    def memory_factor(self) -> float:
        return self.peak_bytes / self.file_bytes


def random_tree(rng: np.random.Generator, thresholds: np.ndarray) -> str:
    """A block of model.txt: leaf-wise growth, each split inside the bins that its leaf still has."""
    span = {0: np.tile([0, BINS], (FEATURES, 1))}
    parent: dict[int, tuple[int, int]] = {}
    feature, threshold = [], []
    children: list[list[int]] = [[], []]
    for node in range(LEAVES - 1):
        leaf = int(rng.integers(len(span)))
        box = span[leaf]
        f = int(rng.choice(np.flatnonzero(box[:, 1] - box[:, 0] > 1)))
        cut = int(rng.integers(box[f, 0], box[f, 1] - 1))
        if leaf in parent:
            above, side = parent[leaf]
            children[side][above] = node
        children[0].append(~leaf)
        children[1].append(~(node + 1))
        parent[leaf], parent[node + 1] = (node, 0), (node, 1)
        left, right = box.copy(), box.copy()
        left[f, 1], right[f, 0] = cut + 1, cut + 1
        span[leaf], span[node + 1] = left, right
        feature.append(f)
        threshold.append(thresholds[f, cut])
    counts = rng.integers(20, 2000, LEAVES)
    inner = rng.integers(40, 20000, LEAVES - 1)
    fields = {
        "num_leaves": LEAVES,
        "num_cat": 0,
        "split_feature": feature,
        "split_gain": [f"{v:.6g}" for v in rng.uniform(1e6, 1e9, LEAVES - 1)],
        "threshold": [repr(float(t)) for t in threshold],
        "decision_type": [2] * (LEAVES - 1),
        "left_child": children[0],
        "right_child": children[1],
        "leaf_value": [repr(float(v)) for v in rng.normal(0.0, 100.0, LEAVES)],
        "leaf_weight": counts,
        "leaf_count": counts,
        "internal_value": [f"{v:.6g}" for v in rng.normal(0.0, 50.0, LEAVES - 1)],
        "internal_weight": inner,
        "internal_count": inner,
        "is_linear": 0,
        "shrinkage": 0.05,
    }
    lines = (f"{k}={' '.join(map(str, v)) if np.iterable(v) else v}" for k, v in fields.items())
    return "\n".join(lines) + "\n\n\n"


def write_model(path: Path, size: int, pool: list[str]) -> int:
    """A model file of about ``size`` bytes; gives the number of trees."""
    header = "tree\nversion=v4\nnum_class=1\nnum_tree_per_iteration=1\nlabel_index=0\n"
    header += f"max_feature_idx={FEATURES - 1}\nobjective=regression\n"
    header += f"feature_names={' '.join(f'x{i}' for i in range(FEATURES))}\n"
    header += f"feature_infos={' '.join(['[0:10000]'] * FEATURES)}\n"
    sizes: list[int] = []
    left = size
    while left > 0:
        sizes.append(len(f"Tree={len(sizes)}\n{pool[len(sizes) % len(pool)]}"))
        left -= sizes[-1]
    header += f"tree_sizes={' '.join(map(str, sizes))}\n"
    with open(path, "w", encoding="ascii") as f:
        f.write(header + "\n")
        for i in range(len(sizes)):
            f.write(f"Tree={i}\n{pool[i % len(pool)]}")
        f.write("end of trees\n\nfeature_importances:\n\nparameters:\n[objective: regression]\nend of parameters\n")
        f.write("\npandas_categorical:null\n")
    return len(sizes)


def export(model: Path, out: Path, board: str) -> tuple[subprocess.CompletedProcess[str], dict[str, float]]:
    """One export in a process of its own, which reports what it used when it ends."""
    report = out.with_suffix(".used.json")
    code = (
        "import atexit, json, resource, time\n"
        "def tell():\n"
        "    own, kids = (resource.getrusage(w) for w in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))\n"
        "    cpu = own.ru_utime + own.ru_stime + kids.ru_utime + kids.ru_stime\n"
        "    peak = max(own.ru_maxrss, kids.ru_maxrss) * 1024\n"
        f"    with open({str(report)!r}, 'w') as f:\n"
        "        json.dump({'cpu': cpu, 'peak': peak, 'wall': time.monotonic() - start}, f)\n"
        "start = time.monotonic()\n"
        "atexit.register(tell)\n"
        "from mcugen.cli import main\n"
        f"main(['export', {str(model)!r}, '-o', {str(out)!r}, '--board', {board!r}])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    used = json.loads(report.read_text(encoding="utf-8"))
    return done, used


def measure(model: Path, mb: float, trees: int, folder: Path) -> Row:
    """Export for no board."""
    out = folder / f"out_{mb}"
    done, used = export(model, out, "none")
    if done.returncode:
        print(done.stderr.strip(), file=sys.stderr)
    source = out / f"{model.stem}.c"
    return Row(
        mb=mb,
        file_bytes=model.stat().st_size,
        trees=trees,
        exit_code=done.returncode,
        cpu_seconds=round(used["cpu"], 2),
        wall_seconds=round(used["wall"], 2),
        peak_bytes=int(used["peak"]),
        source_bytes=source.stat().st_size if source.is_file() else 0,
    )


def broken_limits(rows: list[Row], fit: dict[str, object], seconds: bool) -> list[str]:
    """The promises that do not hold, a line each; those in ``seconds`` hold for a machine like that of the results."""
    found = [f"{r.mb} MB: exit code {r.exit_code}" for r in rows if r.exit_code]
    for r in rows:
        if seconds and r.mb <= SMALL_MB and r.cpu_seconds >= SMALL_CPU_SECONDS:
            found.append(f"{r.mb} MB: {r.cpu_seconds} s of CPU, {SMALL_CPU_SECONDS} is the limit")
        if r.mb >= 100 and r.memory_factor >= MEMORY_FACTOR:
            found.append(f"{r.mb} MB: peak memory is {r.memory_factor:.1f} times the file")
    large = [r for r in rows if r.mb >= 10]
    if len(large) > 1:
        rate = [r.cpu_seconds / r.file_bytes for r in (large[0], large[-1])]
        if rate[1] > LINEAR_FACTOR * rate[0]:
            found.append(f"CPU a MB grows {rate[1] / rate[0]:.2f}-fold from {large[0].mb} to {large[-1].mb} MB")
    if fit and fit != {**fit, "exit_code": 4, "written": False}:
        found.append(f"the model that does not fit: {fit}")
    return found


def report(rows: list[Row], fit: dict[str, object]) -> str:
    """The table for people."""
    lines = [
        "# Large models",
        "",
        "Made by `python benchmarks/large_model.py`. Trees of 31 leaves, 12 features, float32 inputs, int16 leaves,",
        "`--board none`. CPU and peak memory are those of mcugen and of the C compiler that it calls for verification.",
        "",
        "| model.txt, MB | trees | CPU, s | CPU, s/MB | wall, s | peak memory, MB | times the file | NAME.c, MB |",
        "|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for r in rows:
        mb = r.file_bytes / 1e6
        lines.append(
            f"| {mb:.1f} | {r.trees:,} | {r.cpu_seconds:.1f} | {r.cpu_seconds / mb:.2f} | {r.wall_seconds:.1f} "
            f"| {r.peak_bytes / 1e6:,.0f} | {r.memory_factor:.1f} | {r.source_bytes / 1e6:.1f} |"
        )
    if fit:
        lines += [
            "",
            f"The largest for `--board stm32h743`: exit code {fit['exit_code']} after {fit['cpu_seconds']} s of CPU, "
            f"{'something' if fit['written'] else 'nothing'} written.",
        ]
    return "\n".join(lines) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", nargs="+", type=float, default=[1.4, 12.5, 25, 50, 100], metavar="MB")
    parser.add_argument("--no-save", action="store_true", help="leave benchmarks/results as it is")
    parser.add_argument("--any-machine", action="store_true", help="the limit in seconds is none")
    options = parser.parse_args()
    rng = np.random.default_rng(743)
    thresholds = np.sort(rng.choice(20000, (FEATURES, BINS - 1)), axis=1) / 2 + 0.5
    pool = [random_tree(rng, thresholds) for _ in range(POOL)]
    rows: list[Row] = []
    fit: dict[str, object] = {}
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        for mb in sorted(options.sizes):
            model = folder / f"model_{str(mb).replace('.', '_')}.txt"
            trees = write_model(model, round(mb * 1e6), pool)
            rows.append(measure(model, mb, trees, folder))
            r = rows[-1]
            print(f"{mb:6.1f} MB {r.cpu_seconds:7.1f} s CPU, peak {r.memory_factor:.1f} times the file", flush=True)
        if rows[-1].mb >= 50:
            done, used = export(model, folder / "board", "stm32h743")
            written = (folder / "board").exists()
            fit = {"exit_code": done.returncode, "cpu_seconds": round(used["cpu"], 1), "written": written}
    broken = broken_limits(rows, fit, seconds=not options.any_machine)
    if not options.no_save:
        RESULTS.mkdir(exist_ok=True)
        machine = {"python": platform.python_version(), "machine": platform.machine(), "cores": os.cpu_count()}
        data = {"machine": machine, "rows": [asdict(r) for r in rows], "does_not_fit": fit, "broken": broken}
        (RESULTS / "large_model.json").write_text(json.dumps(data, indent=2) + "\n", encoding="utf-8")
        (RESULTS / "large_model.md").write_text(report(rows, fit), encoding="utf-8")
    for line in broken:
        print(line, file=sys.stderr)
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
