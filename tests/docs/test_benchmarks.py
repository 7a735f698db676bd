"""The tables of benchmarks/README.md are those that the scripts wrote."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
README = (BENCHMARKS / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("section", "file"),
    [
        ("Trees", "trees.md"),
        ("Batches of trees", "batches.md"),
        ("Nets", "net_marks.md"),
        ("Filters", "filters.md"),
        ("Signal chains", "pipelines.md"),
    ],
)
def test_tables_are_those_of_the_results(section: str, file: str) -> None:
    """Row by row, so that nobody edits a figure by hand."""
    text = README.split(f"## {section}\n")[1].split("\n## ")[0]
    rows = [line for line in text.splitlines() if line.startswith("|")]
    written = (BENCHMARKS / "results" / file).read_text(encoding="utf-8").splitlines()
    assert len(rows) > 3
    assert [r for r in rows if r not in written] == []


def test_every_result_is_named() -> None:
    """Each table of results/ has a link."""
    named = set(re.findall(r"\(results/([\w.]+)\)", README))
    assert {p.name for p in (BENCHMARKS / "results").glob("*.md")} <= named
