"""The command line in this process, and the small models that its tests use."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli_support import Call, call, multi_model, tiny_model

from mcugen.verify import hostbuild


@pytest.fixture(autouse=True)
def quick_builds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the optimizer: here it is about what is said, and the numbers are compared all the same."""
    monkeypatch.setattr(hostbuild, "SHARED_FLAGS", (*hostbuild.SHARED_FLAGS, "-O0"))


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """tiny.txt in the current folder, which is ``tmp_path``."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "tiny.txt"
    path.write_bytes(tiny_model())
    return path


@pytest.fixture
def multi(tmp_path: Path) -> Path:
    path = tmp_path / "multi.txt"
    path.write_bytes(multi_model())
    return path


@pytest.fixture(scope="session")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An export of tiny.txt; not to be changed."""
    folder = tmp_path_factory.mktemp("exported")
    source = folder / "tiny.txt"
    source.write_bytes(tiny_model())
    done = call("export", source, "-o", folder / "out")
    assert done == Call(0, done.out, ""), done
    return folder / "out"
