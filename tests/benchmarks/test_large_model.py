"""The promises on time and memory, on sizes that a test can afford; `benchmarks/large_model.py` goes up to 100 MB."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "benchmarks" / "large_model.py"


@pytest.mark.slow
def test_limits_hold_up_to_25_megabytes() -> None:
    """CPU that grows linearly, and memory; seconds are promised by the saved results alone: they vary by machine."""
    command = [sys.executable, str(SCRIPT), "--sizes", "1.4", "12.5", "25", "--no-save", "--any-machine"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_saved_results_keep_the_promises() -> None:
    saved = json.loads((ROOT / "benchmarks" / "results" / "large_model.json").read_text(encoding="utf-8"))
    rows = {r["mb"]: r for r in saved["rows"]}
    assert saved["broken"] == []
    assert rows[1.4]["cpu_seconds"] < 5
    assert rows[100]["peak_bytes"] < 10 * rows[100]["file_bytes"]
    assert saved["does_not_fit"]["exit_code"] == 4
    assert not saved["does_not_fit"]["written"]
