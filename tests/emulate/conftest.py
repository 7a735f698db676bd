"""Exports that the board tests share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from board_models import export_kind


@pytest.fixture(scope="session")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The folder of a kind of ``board_models.KINDS``, exported when first asked for."""
    made: dict[str, Path] = {}

    def folder(kind: str) -> Path:
        if kind not in made:
            made[kind] = export_kind(kind, tmp_path_factory.mktemp(kind) / "out")
        return made[kind]

    return folder
