"""Every tree model of a folder on the emulated boards, with both compilers: golden vectors, every bit.

    python benchmarks/board_matrix.py MODELS

All models on the H743 at -O2; reg12_small and cancer_nan at -Os and -O3 too, and on the strict checker (mps2_an500).
Writes ``results/board_matrix.md`` beside this file; exit code 1 if a bit differs.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

import mcugen
from mcugen import exported
from mcugen.errors import McugenError

RESULT = Path(__file__).parent / "results" / "board_matrix.md"
THOROUGH = ("reg12_small", "cancer_nan")
COMPILERS = {"gcc": None, "zig (clang)": "zig"}


def main() -> None:
    """Export, verify everywhere, write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", type=Path)
    folder = parser.parse_args().models
    rows = []
    seconds: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as work:
        for path in sorted(p for p in folder.iterdir() if (p / "model.txt").is_file()):
            out = Path(work) / path.name
            mcugen.export(path / "model.txt", out, name=path.name)
            started = time.monotonic()
            exported.profile(out)
            seconds[path.name] = time.monotonic() - started
            for target, opt in runs_of(path.name):
                for label, compiler in COMPILERS.items():
                    result = verified(out, target, compiler, opt)
                    rows.append(f"| {path.name} | {target} | {label} | {opt} | {result} |")
                    print(rows[-1], flush=True)
    lines = [
        "# Tree models on the emulated boards",
        "",
        "Made by `python benchmarks/board_matrix.py MODELS`: float32 inputs, int16 leaves, default placement, golden",
        "vectors against the integer reference.",
        "",
        "| model | board | compiler | | result |",
        "|---|---|---|---|---|",
        *rows,
        "",
        "Wall clock of `mcugen profile` (noisy; compare ratios): "
        + ", ".join(f"{name} {s:.1f} s" for name, s in seconds.items())
        + ".",
    ]
    RESULT.write_text("\n".join(lines) + "\n", encoding="utf-8")
    sys.exit(0 if rows and all("every bit" in r for r in rows) else 1)


def runs_of(model: str) -> list[tuple[str, str]]:
    """Boards and optimization levels for a model."""
    if model not in THOROUGH:
        return [("stm32h743", "-O2")]
    return [(board, opt) for board in ("stm32h743", "mps2_an500") for opt in ("-O2", "-Os", "-O3")]


def verified(out: Path, target: str, compiler: str | None, opt: str) -> str:
    """What verify says, in a few words."""
    try:
        return exported.verify(out, None, target, compiler=compiler, opt=opt)[0].partition(": ")[2]
    except McugenError as e:
        return f"FAILS: {e}"


if __name__ == "__main__":
    main()
