"""The tables of docs/testing.md name tests that exist."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_every_test_that_is_named_exists() -> None:
    text = (ROOT / "docs" / "testing.md").read_text(encoding="utf-8")
    named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", text)
    assert len(named) >= 12
    for path, name in named:
        tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
        assert name in {n.name for n in tree.body if isinstance(n, ast.FunctionDef)}, f"{path}::{name}"


def test_every_case_of_the_linker_has_a_row() -> None:
    text = (ROOT / "docs" / "testing.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (L\d+) \|", text, re.MULTILINE)
    assert rows == ["L1", "L3", "L6", "L8", "L11", "L12", "L13", "L14", "L16"]
