"""The saved table of the MLPerf Tiny nets meets its marks; "missed by" would stand beside a figure that does not."""

from __future__ import annotations

from pathlib import Path

RESULTS = Path(__file__).resolve().parents[2] / "benchmarks" / "results" / "net_marks.md"


def number(cell: str) -> float:
    return float(cell.split(maxsplit=1)[0].replace(",", ""))


def test_marks_are_met() -> None:
    """Instructions, RAM with input and output, and flash of the fast plan; RAM of the small one at most 25 % dearer."""
    lines = RESULTS.read_text(encoding="utf-8").splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("| net | instructions | mark |"))
    rows = [line.strip("| ").split(" | ") for line in lines[start : start + 6]]
    found = {r[0]: r[1:] for r in rows if r[0] in ("kws", "vww", "ic", "ad") and len(r) == 10}
    assert len(found) == 4
    for name, cells in found.items():
        assert not any("missed" in cell for cell in cells), name
        for value, mark in zip(cells[0:8:2], cells[1:8:2], strict=True):
            assert number(value) <= number(mark), name
        assert number(cells[8]) <= 1.25 * number(cells[0]), name
