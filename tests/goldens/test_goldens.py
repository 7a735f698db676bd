"""Generated text, kept to be read: a change of it is seen in review. ``pytest --update`` rewrites the folders beside.

Each golden is NAME.c and NAME.h of a tiny LightGBM model; export compiles them, compares every bit, and runs the
self-test before it writes. Together they show every machine op (tests/contracts/test_ops.py).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mcugen import build

HERE = Path(__file__).parent

#: Folder -> model file and options.
GOLDENS: dict[str, tuple[str, dict[str, Any]]] = {
    "nan_proba": ("nan.txt", {"output": "proba", "board": "none", "ways": "search+tables"}),
    "nan_class": ("nan.txt", {"output": "class", "board": "stm32h743", "ways": "search+tables"}),
    "classes": ("classes.txt", {"output": "class", "board": "none", "leaf": "int32", "ways": "search+tables"}),
    "softmax": (
        "classes.txt",
        {"output": "proba", "board": "none", "input_dtype": "float64", "ways": "search+tables"},
    ),
    "linear": ("linear.txt", {"output": "raw", "board": "none", "leaf": "float64", "input_dtype": "float64"}),
    "mean": ("mean.txt", {"output": "proba", "board": "none", "leaf": "float32", "ways": "search+tables"}),
    "fast": ("nan.txt", {"output": "raw", "board": "stm32h743", "ways": "coarse+branches"}),
    "mixed": ("mean.txt", {"output": "raw", "board": "none", "ways": "search+mixed"}),
    "small": ("mean.txt", {"output": "raw", "board": "none", "ways": "lookup+packed"}),
}


def export_golden(name: str, out: Path, *, verify: bool = True) -> build.ExportResult:
    """The export that a golden shows."""
    model, options = GOLDENS[name]
    return build.export(HERE / "models" / model, out, name=name, verify=verify, **options)


@pytest.mark.parametrize("name", GOLDENS)
def test_generated_text(name: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    export_golden(name, tmp_path / name)
    assert "Verified: the C equals" in (tmp_path / name / f"{name}.h").read_text(encoding="utf-8")
    for file in (f"{name}.h", f"{name}.c"):
        text = (tmp_path / name / file).read_bytes()
        golden = HERE / name / file
        if request.config.getoption("--update"):
            golden.parent.mkdir(exist_ok=True)
            golden.write_bytes(text)
        assert golden.is_file(), f"no golden {name}/{file}: run pytest --update and read it"
        assert text.decode() == golden.read_text(encoding="utf-8"), (
            f"{name}/{file}: read the change, then pytest --update"
        )


def test_no_other_folders() -> None:
    """Nothing stale lies beside the goldens, and each is small enough to read."""
    folders = {p.name for p in HERE.iterdir() if p.is_dir() and not p.name.startswith((".", "_"))}
    assert folders == {*GOLDENS, "models"}
    for name in GOLDENS:
        assert {p.name for p in (HERE / name).iterdir()} == {f"{name}.c", f"{name}.h"}
        assert len((HERE / name / f"{name}.c").read_text().splitlines()) < 250
