"""The promise on the time that nets take; `benchmarks/net_speed.py` measures it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.slow
def test_a_net_of_ten_megabytes() -> None:
    command = [sys.executable, str(ROOT / "benchmarks" / "net_speed.py"), "--no-save"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_saved_results_keep_the_promises() -> None:
    rows = json.loads((ROOT / "benchmarks" / "results" / "net_speed.json").read_text(encoding="utf-8"))
    assert {r["net"] for r in rows} == {"large", "vww"}
    assert max(r["file_bytes"] for r in rows) > 10_000_000
    assert all(r["exit_code"] == 0 and r["cpu_seconds"] < 60 for r in rows)
