"""Names that would break C, a comment, a terminal or a line: they are carried through, and change nothing."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest
from cli_support import call, chain_tree, fails, forest_text

HOSTILE = [
    "*/int/**/x;/*",
    "/*",
    "*/",
    "//",
    '"quoted"',
    "'",
    'a"b',
    "back\\",
    "\\",
    "\\u000a",
    "??/",
    "??",
    "%s%n",
    "#include",
    "@file",
    "[red]bold[/red]",
    "[/]",
    ":smile:",
    "a\tb",
    "bell\x07",
    "esc\x1b[31m",
    "nul\x01",
    "nel\x85line",
    "line\u2028sep",
    "no\u00a0break",
    "wide\u3000blank",
    "\u202eright-to-left",
    "\u2066isolate\u2069",
    "zero\u200bwidth",
    "\ufeffbom",
    "Größe",
    "温度",
    "🌡",
    "e\u0301",
    "é",
    "int",
    "while",
    "class",
    "main",
    "NULL",
    "I",
    "TINY_H",
    "x",
    "_Bool",
    "__attribute__",
    "a-b",
    "a.b",
    "a_b",
    "a+b",
    "a_b_2",
    "A_b",
    "3rd",
    "-",
    "_",
    "=",
    "==",
    "Tree=0",
    "a" * 500,
    "a" * 499 + "b",
    "$(reboot)",
    "`id`",
    "{{",
    "{%x%}",
    "${x}",
]


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("names")
    n = len(HOSTILE)
    path = folder / "tiny.txt"
    path.write_bytes(forest_text([chain_tree(n + 1, 0, n)], n, HOSTILE))
    done = call("export", path, "-o", folder / "out")  # compiles with -Wall -Wextra -Werror and verifies
    assert (done.code, done.err) == (0, ""), done
    return folder


def test_names_survive(hostile: Path) -> None:
    """Manifest, inspect and a table of samples know the names as they are."""
    manifest = json.loads((hostile / "out/manifest.json").read_text(encoding="ascii"))
    assert [f["name"] for f in manifest["inputs"][0]["features"]] == HOSTILE
    done = call("inspect", "--json", hostile / "tiny.txt")
    assert json.loads(done.out)["features"] == HOSTILE
    assert call("verify", hostile / "out").code == 0


def test_text_is_plain(hostile: Path) -> None:
    """All that is C or CMake is printable ASCII, and no line is joined to the next or is a trigraph."""
    for path in sorted((hostile / "out").rglob("*")):
        if path.suffix in (".c", ".h", ".ld", ".txt"):
            text = path.read_bytes().decode("ascii")
            assert all(c == "\n" or " " <= c <= "~" for c in text), path
            assert "??/" not in text
            if path.parent.name == "out":
                assert not any(line.rstrip().endswith("\\") for line in text.split("\n")), path


@pytest.mark.parametrize("compiler", ["gcc", "clang", "arm-none-eabi-gcc", "g++"])
def test_header_compiles(hostile: Path, tmp_path: Path, compiler: str) -> None:
    """On its own, by every compiler there is, with all that may be said about comments and trigraphs."""
    if shutil.which(compiler) is None:
        pytest.skip(f"no {compiler}")
    source = tmp_path / ("use.cpp" if compiler == "g++" else "use.c")
    uses = "tiny_run(x, y) == 0 && TINY_INPUTS > TINY_x_int"
    source.write_text(
        '#include "tiny.h"\nint use(const float *x, int32_t *y);\n'
        f"int use(const float *x, int32_t *y) {{ return {uses}; }}\n"
    )
    kind = ["-x", "c++", "-std=c++17"] if compiler == "g++" else ["-std=c11"]
    flags = [*kind, "-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Wcomment", "-Wtrigraphs", "-Werror", "-pedantic"]
    if compiler == "clang":
        flags += ["-Wdocumentation"]
    done = subprocess.run(
        [compiler, *flags, "-I", hostile / "out", "-c", source, "-o", tmp_path / "use.o"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[:2000]


@pytest.mark.parametrize(
    "file_name",
    [
        "x[red]y[b].txt",
        ":smile:.txt",
        "a\nb.txt",
        "*.txt",
        "int.txt",
        "??.txt",
        "ü\u202e.txt",
        "-x.txt",
        " .txt",
        "é" * 80,
        "a\\",
    ],
)
def test_file_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file_name: str) -> None:
    """The name of the model's file becomes that of the export, and appears in comments and on the terminal."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / file_name).write_bytes(forest_text([chain_tree(3, 0, 2)], 2))
    done = call("export", "--no-verify", "--", file_name)
    assert (done.code, done.err) == (0, ""), done
    assert not any(c in done.out for c in "\x1b\u202e\r")
    (out,) = (p for p in tmp_path.iterdir() if p.is_dir())
    assert out.name.isascii()
    header = (out / f"{out.name}.h").read_bytes().decode("ascii")
    assert header.count("/*") == header.count("*/")
    assert "\\\n" not in header


@pytest.mark.parametrize(
    "name",
    [
        "",
        " ",
        "a b",
        "../x",
        "/tmp/x",
        ".",
        "..",
        "3d",
        "_x",
        "x_",
        "a__b",
        "int",
        "class",
        "main",
        "printf()",
        "a-b",
        "a\nb",
        "é",
        "x" * 41,
        "mcg",
        "mcg_x",
        "MCG",
        "con",
        "CON",
        "nul",
        "math",
        "string",
        "std",
        "a;b",
        "a*/b",
        "*/",
        "$x",
        "\\",
        "[x]",
    ],
)
def test_bad_prefix(model: Path, name: str) -> None:
    line = fails(2, "export", model, f"--name={name}")
    assert line.startswith("mcugen: --name: ")
    assert "for example" in line
    assert [p.name for p in model.parent.iterdir()] == ["tiny.txt"]


def test_suggested_prefix_works(model: Path) -> None:
    suggestion = fails(2, "export", model, "--name", "2 fast*/").rpartition("for example ")[2].rstrip(")\n")
    done = call("export", model, "--name", suggestion, "--no-verify")
    assert done.code == 0
    assert (model.parent / suggestion / f"{suggestion}.c").exists()


def test_missing_feature_message(model: Path) -> None:
    """Names from a file end up in one line of an error."""
    (model.parent / "x.csv").write_text("flow,te\x1bmp,level,valve\n1,2,3,4\n")
    assert "\\x1b" in fails(2, "export", model, "--calib", "x.csv")
