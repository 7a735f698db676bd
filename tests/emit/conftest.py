"""A folder to write to, and one that holds an export."""

from __future__ import annotations

from pathlib import Path

import pytest
from written_folders import FIRST, artifact

from mcugen.emit.files import write


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "work" / "out"


@pytest.fixture
def written(out: Path) -> Path:
    write(artifact(FIRST), out)
    return out
