"""The verbs of the package, in whatever order things are imported."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import mcugen
from mcugen.errors import InputError

ORDERS = [
    "import mcugen",
    "import mcugen.verify.compare",
    "from mcugen.verify.golden import read_golden; import mcugen",
    "import mcugen; mcugen.export; import mcugen.verify.compiler as c; c.find_host_compiler",
    "import mcugen.exported",
]


@pytest.mark.parametrize("order", ORDERS)
def test_every_verb_can_be_called(order: str) -> None:
    """mcugen.verify is a verb, and a package with modules."""
    code = f"{order}\nassert all(callable(getattr(mcugen, v)) for v in mcugen._VERBS)\n"
    code += "try: mcugen.verify(__import__('pathlib').Path('/nowhere'))\n"
    code += "except mcugen.errors.InputError as e: print(e)\n"
    code += "import mcugen.verify.compare; print(mcugen.verify.compare.compare_bits.__name__)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.splitlines() == [
        "/nowhere: there is no such folder (give the folder that mcugen export wrote)",
        "compare_bits",
    ], done.stderr


def test_the_package_itself_is_light() -> None:
    code = "import sys, mcugen; print(sorted(m for m in ('numpy', 'lightgbm', 'typer', 'unicorn') if m in sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(
    "call",
    [
        "run('/nowhere', 'x.npy', 'y.npy')",
        "verify('/nowhere')",
        "verify('/nowhere', data='x.npy')",
        "profile('/nowhere')",
        "profile('/nowhere', 'x.npy')",
        "compare('/nowhere', 'device.bin')",
        "check_ld('/nowhere')",
        "check_elf('/nowhere', exports=['/nowhere'])",
        "export('/nowhere')",
        "inspect('/nowhere')",
    ],
)
def test_paths_may_be_strings(call: str) -> None:
    with pytest.raises(InputError, match=r"^/nowhere: "):
        eval(f"mcugen.{call}", {"mcugen": mcugen})


def test_every_file_may_be_a_string(tmp_path: Path) -> None:
    chain = {"signal": {"rate": 1.0}, "channel": [{"name": "a"}], "filter": [{"kind": "median", "length": 3}]}
    out = str(tmp_path / "m")
    mcugen.export(chain, out)
    np.save(tmp_path / "x.npy", np.arange(6, dtype=np.int16)[:, None])
    y, _ = mcugen.run(out, str(tmp_path / "x.npy"), str(tmp_path / "y.npy"))
    assert (y == np.load(tmp_path / "y.npy")).all()
    assert "6 rows equal" in " ".join(mcugen.verify(out, data=str(tmp_path / "x.npy")))
