"""Options: each wrong value is one line with exit code 2, said before anything is written."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import numpy as np
import pytest
from cli_support import call, chain_tree, fails, forest_text

from mcugen.version import VERSION

OPTIONS = [
    (["--bogus"], "--bogus"),
    (["--leaf"], "--leaf"),
    (["--leaf", "int7"], "'int7'"),
    (["--leaf", ""], "--leaf"),
    (["--input-dtype", "float16"], "mcugen: --input-dtype: 'float16' is not one of"),
    (["--output", "scores"], "'scores'"),
    (["--optimize", "most"], "'most'"),
    (["--max-error", "low"], "mcugen: --max-error: must be a valid number"),
    (["--max-error", "nan"], "--max-error: nan"),
    (["--max-error", "-1"], "--max-error: -1"),
    (["--max-error", "1e-9"], "above 1e-09"),
    (["--board", "stm32f4"], "stm32h743"),
    (["--board", "../boards/stm32h743"], "no board"),
    (["--board", ""], "no board"),
    (["--board", "a\nb"], "no board"),
    (["--num-iteration", "0"], "--num-iteration"),
    (["--num-iteration", "-3"], "--num-iteration"),
    (["--num-iteration", "two"], "mcugen: --num-iteration: must be a valid integer"),
    (["--num-iteration", "1.5"], "--num-iteration"),
    (["--start-iteration", "3"], "--start-iteration: 3 is outside of the model's 3 iterations"),
    (["--start-iteration", "-1"], "--start-iteration"),
    (["--start-iteration", "99999999999999999999"], "--start-iteration"),
    (["--place", "tiny_nodes"], "SYMBOL=REGION"),
    (["--place", "=dtcm"], "SYMBOL=REGION"),
    (["--place", "tiny_nodes="], "SYMBOL=REGION"),
    (["--place", ""], "SYMBOL=REGION"),
    (["--place", "tiny_keys=moon"], "no memory 'moon'"),
    (["--place", "tiny_nodse=dtcm"], "tiny_nodse"),
    (["--place", "tiny_keys=dtcm", "--place", "tiny_keys=axi"], "placed twice"),
    (["--place", "tiny_nodes=dtcm", "--board", "none"], "without a board"),
    (["--place", "[red]=dtcm"], "[red]"),
    (["--cc", "no-such-compiler"], "apt install"),
    (["--cc", ""], "empty"),
    (["--cc", "'"], "not a command"),
    (["--cc", "/"], "cannot be started"),
    (["--spec", "nope.toml"], "nope.toml"),
    (["--calib", "nope.csv"], "nope.csv"),
    (["--calib", "tiny.txt"], "tiny.txt"),
    (["--calib", "."], "."),
    (["another.txt"], "another.txt"),
]


@pytest.mark.parametrize(("words", "text"), OPTIONS)
def test_wrong_option(model: Path, words: list[str], text: str) -> None:
    assert text in fails(2, "export", model, "-o", "out", *words)
    assert [p.name for p in model.parent.iterdir()] == ["tiny.txt"]


@pytest.mark.parametrize(
    "words",
    [
        ["bogus"],
        ["export"],
        ["--bogus"],
        ["run"],
        ["run", "x"],
        ["verify"],
        ["compare"],
        ["compare", "x"],
        ["inspect"],
        ["inspect", "--jason", "x"],
        ["boards", "x"],
        ["EXPORT", "x"],
    ],
)
def test_wrong_command(words: list[str]) -> None:
    assert "--help" in fails(2, *words)


def test_help_and_version() -> None:
    assert call("--version") == call("--version")
    assert call("--version").out == f"mcugen {VERSION}\n"
    for words in (["--help"], *([c, "--help"] for c in ("export", "run", "verify", "compare", "inspect", "boards"))):
        done = call(*words)
        assert (done.code, done.err) == (0, "")
        assert "Usage" in done.out
    assert call().code == 2


def test_boards() -> None:
    listed = json.loads(call("boards", "--json").out)
    board = next(b for b in listed if b["name"] == "stm32h743")
    assert {"flash", "itcm", "dtcm"} <= {r["name"] for r in board["regions"]}
    assert "stm32h743" in call("boards").out


def test_bound_can_be_met(model: Path) -> None:
    for leaf in ("int32", "float64"):
        done = call("export", model, "--no-verify", "--max-error", "1e-6", "--leaf", leaf, "-o", leaf)
        assert done.code == 0, done


def test_iterations(model: Path) -> None:
    done = call("export", model, "--no-verify", "--num-iteration", "99", "--start-iteration", "1")
    assert done.code == 0
    assert "2 trees" in done.out


# --spec

SPECS = [
    ("", "has no [[input]] table"),
    ("not toml", "is not TOML"),
    ("[input]\nname = 'flow'\n", "write [[input]]"),
    ("input = 3\n", "input"),
    ("input = [3]\n", "[[input]] 1"),
    ("[[inputs]]\nname = 'flow'\n", "unknown key"),
    ("[[input]]\nscale = 1.0\n", "the key name is missing"),
    ("[[input]]\nname = 'flwo'\n", "did you mean flow"),
    ("[[input]]\nname = 'flow'\n[[input]]\nname = 'flow'\n", "entry 1"),
    ("[[input]]\nname = 'flow'\nscael = 1.0\n", "did you mean scale"),
    ("[[input]]\nname = 'flow'\nscale = 'x'\n", "scale"),
    ("[[input]]\nname = 'flow'\nscale = nan\n", "scale"),
    ("[[input]]\nname = 'flow'\nscale = 0.0\n", "scale"),
    ("[[input]]\nname = 'flow'\nscale = true\n", "scale"),
    ("[[input]]\nname = 'flow'\nscale = 0.5\n", "scale"),  # float32 inputs have no scale
    ("[[input]]\nname = 'flow'\ndtype = 'int24'\n", "int24"),
    ("[[input]]\nname = 'flow'\ndtype = 'int16'\nmissing = 40000\n", "outside of int16"),
    ("[[input]]\nname = 'flow'\ndtype = 'int16'\n[[input]]\nname = 'temp'\ndtype = 'int8'\n", "one type"),
    ("[[input]]\nname = 3\n", "name"),
    ("[[input]]\nname = '\\u001b'\n", "no feature"),
    ("a = " + "[" * 5000, "is not TOML"),
    ("a = " + "9" * 5000, "number"),
    ("\udcff", "UTF-8"),
]


@pytest.mark.parametrize(("text", "what"), SPECS)
def test_wrong_spec(model: Path, text: str, what: str) -> None:
    Path("s.toml").write_bytes(text.encode("utf-8", "surrogateescape"))
    line = fails(2, "export", model, "--spec", "s.toml")
    assert what in line
    assert "s.toml" in line
    assert sorted(p.name for p in model.parent.iterdir()) == ["s.toml", "tiny.txt"]


def test_spec_and_option_disagree(model: Path) -> None:
    Path("s.toml").write_text("[[input]]\nname = 'flow'\ndtype = 'int16'\nscale = 0.01\n")
    assert "--input-dtype says uint8" in fails(2, "export", model, "--spec", "s.toml", "--input-dtype", "uint8")


def test_integers_that_cannot_be_right(model: Path) -> None:
    """The model was trained on fractions: int16 inputs need a scale or data."""
    assert "flow" in fails(2, "export", model, "--input-dtype", "int16")


# --calib

TABLES = [
    ("x.csv", b"", "empty"),
    ("x.csv", b"1,2\n", "2 columns, the model has 4 features"),
    ("x.csv", b"flow,temp,level\n1,2,3\n", "no column for feature 'valve'"),
    ("x.csv", b"flow,temp,level,valve,extra\n1,2,3,4,5\n", "extra"),
    ("x.csv", b"flow,temp,level,valve\n", "no samples"),
    ("x.csv", b"1,2,3,4\n1,2,three,4\n", "'three' is not a number"),
    ("x.csv", b"1,2,3,4\n1,2,3\n", "3 cells"),
    ("x.csv", b"\xff\xfe1,2,3,4\n", "UTF-8"),
    ("x.csv", b'1,2,"3,4\n', "x.csv"),
    ("x.npy", b"\x93NUMPY", "numpy"),
    ("x.npy", b"hello", "numpy"),
    ("x.npz", b"PK\x03\x04", "numpy"),
    ("x.parquet", b"PAR1", ".csv"),
]


@pytest.mark.parametrize(("name", "data", "what"), TABLES)
def test_wrong_data(model: Path, name: str, data: bytes, what: str) -> None:
    Path(name).write_bytes(data)
    line = fails(2, "export", model, "--calib", name)
    assert what in line
    assert name in line
    assert sorted(p.name for p in model.parent.iterdir()) == ["tiny.txt", name]


@pytest.mark.parametrize(
    "array",
    [
        np.zeros((2, 5)),
        np.zeros((0, 4)),
        np.zeros((2, 4), complex),
        np.array([["a"] * 4]),
        np.zeros((2, 2, 4)),
        np.float64(1),
    ],
)
def test_wrong_array(model: Path, array: np.ndarray) -> None:
    np.save("x.npy", array)
    assert "x.npy" in fails(2, "export", model, "--calib", "x.npy")


def test_pickled_array(model: Path) -> None:
    np.save("x.npy", np.array([[None, {}, 1, 2]]), allow_pickle=True)
    assert "Python objects" in fails(2, "export", model, "--calib", "x.npy")


# The compiler


@pytest.fixture
def no_compiler(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A machine without any."""
    monkeypatch.setenv("PATH", str(tmp_path / "nowhere"))
    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *a: None if name == "ziglang" else found(name, *a))


@pytest.mark.usefixtures("no_compiler")
def test_no_compiler(model: Path, exported: Path) -> None:
    line = fails(2, "export", model, "-o", "out")
    assert "apt install gcc" in line
    assert [p.name for p in model.parent.iterdir()] == ["tiny.txt"]
    np.save("x.npy", np.zeros((1, 4), np.float32))
    assert "apt install gcc" in fails(2, "verify", exported)
    assert "apt install gcc" in fails(2, "run", exported, "--input", "x.npy", "--output", "y.npy")
    assert not Path("y.npy").exists()


@pytest.mark.usefixtures("no_compiler")
def test_no_verify_is_stamped(model: Path, exported: Path) -> None:
    done = call("export", model, "-o", "out", "--no-verify")
    assert (done.code, done.err) == (0, "")
    assert "NOT VERIFIED" in done.out
    assert "NOT VERIFIED" in Path("out/tiny.h").read_text()
    assert json.loads(Path("out/manifest.json").read_text())["verification"]["host"] == "not verified"
    assert "NOT VERIFIED" not in (exported / "tiny.h").read_text()
    assert json.loads((exported / "manifest.json").read_text())["verification"]["host"] == "equal"


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ("echo broken; exit 1", "cannot be started"),
        ("exit 0", "cannot be started"),
        ('case "$1" in --version) echo gcc 1.0;; *) echo "error: no brain" >&2; exit 1;; esac', "no brain"),
        ('case "$1" in --version) echo gcc 1.0;; *) kill -9 $$;; esac', "exit code"),
        (
            'case "$1" in --version) printf "gcc\\377\\033[31m";; *) printf "error: \\377\\033[31m\\n"; exit 1;; esac',
            "error",
        ),
    ],
)
def test_broken_compiler(model: Path, body: str, text: str) -> None:
    script = Path("cc.sh")
    script.write_text(f"#!/bin/sh\n{body}\n")
    script.chmod(0o755)
    assert text in fails(2, "export", model, "-o", "out", "--cc", "./cc.sh")
    assert not Path("out").exists()


# A model that is too large


def test_does_not_fit(model: Path) -> None:
    """Exit code 4, one line, and a table of what fills the memory; before anything is written."""
    model.write_bytes(forest_text([chain_tree(120, s, 4) for s in range(120)], 4))
    before = sorted(model.parent.iterdir())
    done = call("export", model, "-o", "out", "--leaf", "float64", "--place", "tiny_leaf=sram4")
    assert (done.code, done.out) == (4, "")
    first, *table = done.err.splitlines()
    assert first.startswith("mcugen: ")
    assert "sram4" in first
    assert any("tiny_leaf" in row for row in table)
    assert any("available" in row for row in table)
    assert sorted(model.parent.iterdir()) == before
