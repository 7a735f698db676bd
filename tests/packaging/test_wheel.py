"""The wheel holds all that an export needs: built, installed into a fresh environment, used from another folder."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "quickstart"

pytestmark = pytest.mark.skipif(
    any(importlib.util.find_spec(m) is None for m in ("build", "hatchling", "pip")),
    reason="build, hatchling or pip is missing",
)


def run(*command: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    env = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "VIRTUAL_ENV", "PYTHONHOME")}
    done = subprocess.run([str(c) for c in command], cwd=cwd, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]
    return done


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", folder, ROOT, cwd=folder)
    (found,) = folder.glob("*.whl")
    return found


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bin folder of an environment with the wheel; its dependencies are those of this one, so no network."""
    home = tmp_path_factory.mktemp("venv")
    venv.create(home, with_pip=False)
    python = home / "bin" / "python"
    run(sys.executable, "-m", "pip", "--python", python, "install", "--no-deps", "--no-index", wheel, cwd=home)
    site = run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", cwd=home).stdout.strip()
    # .pth files of a folder that is added like this are not read: a clone installed with -e stays out.
    (Path(site) / "dependencies.pth").write_text(f"{sysconfig.get_path('purelib')}\n", encoding="utf-8")
    return home / "bin"


def test_everything_that_is_not_python_travels(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    for folder in ("runtime_c", "linker", "boards"):
        for path in (ROOT / folder).rglob("*"):
            if path.is_file():
                assert f"mcugen/_resources/{path.relative_to(ROOT)}" in names
    for path in (ROOT / "mcugen").rglob("*"):
        if path.is_file() and path.suffix != ".pyc":
            assert str(path.relative_to(ROOT)) in names
    assert any(name.endswith("licenses/LICENSE") for name in names)
    assert not [n for n in names if n.startswith(("tests", "examples", "benchmarks"))]


def test_it_is_the_wheel_that_is_imported(installed: Path, tmp_path: Path) -> None:
    code = "import mcugen, mcugen.resources as r; print(mcugen.__file__); print(r.resource_dir('boards'))"
    for line in run(installed / "python", "-c", code, cwd=tmp_path).stdout.splitlines():
        assert Path(line).is_relative_to(installed.parent)


def test_export_from_another_folder(installed: Path, tmp_path: Path) -> None:
    model, spec = EXAMPLE / "furnace.txt", EXAMPLE / "spec.toml"
    assert "stm32h743" in run(installed / "mcugen", "boards", cwd=tmp_path).stdout
    run(installed / "mcugen", "export", model, "--spec", spec, cwd=tmp_path)
    assert "golden vectors equal" in run(installed / "mcugen", "verify", "furnace", cwd=tmp_path).stdout
    # The same files as from the clone, whatever the folder and the way of installing.
    here = tmp_path / "clone"
    run(sys.executable, "-m", "mcugen", "export", model, "--spec", spec, "-o", here, cwd=ROOT)
    manifest = (tmp_path / "furnace" / "manifest.json").read_bytes()
    assert manifest == (here / "manifest.json").read_bytes()
    assert (tmp_path / "furnace" / "mcugen" / "mcugen.ld").is_file()


def test_module_and_command_are_the_same(installed: Path, tmp_path: Path) -> None:
    first = run(installed / "mcugen", "--version", cwd=tmp_path).stdout
    assert first == run(installed / "python", "-m", "mcugen", "--version", cwd=tmp_path).stdout
