"""README.md is true: its commands are run in a copy, and what they print is what it shows.

    ```console    lines with `$ ` are run, in order, in one folder; the lines below each are its output
    ```python     is run; the ```text block behind it is its output
    ```c          compiles without a warning against the folder that was exported
    ```toml       stands like this in the example's spec
    ```sh         is not run here (it runs these tests), but by .ci/run

`pytest tests/docs --update` writes the output of today into README.md.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
README = ROOT / "README.md"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
BIN = Path(sys.executable).parent
FLAGS = ["-std=c11", "-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Werror"]


class Copy:
    """A folder in which the commands run, and what they printed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        shutil.copytree(ROOT / "examples", folder / "examples")
        # The set-up of examples/run.sh is done: it uses an active environment as it is.
        hidden = ("COLUMNS", "FORCE_COLOR", "CC", "PYTHONPATH")
        self.env = {k: v for k, v in os.environ.items() if k not in hidden}
        self.env |= {"VIRTUAL_ENV": str(BIN.parent), "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}"}

    def run(self, *command: str) -> str:
        """Output and errors of a command, without blanks at line ends."""
        done = subprocess.run(
            command, cwd=self.folder, env=self.env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, f"{command}\n{done.stdout[-4000:]}"
        return "".join(f"{line.rstrip()}\n" for line in done.stdout.splitlines())

    def console(self, block: str) -> str:
        """A block with the output of today."""
        commands = [line for line in block.splitlines() if line.startswith("$ ")]
        return "".join(f"{c}\n{self.run('sh', '-c', c[2:])}" for c in commands)


def true_text(text: str, copy: Copy) -> str:
    """README.md with the output of today."""
    printed: list[str] = []

    def block(found: re.Match[str]) -> str:
        kind, body = found.groups()
        if kind == "console":
            body = copy.console(body)
        elif kind == "python":
            printed.append(copy.run(sys.executable, "-c", body))
        elif kind == "text":
            body = printed.pop(0)
        return f"```{kind}\n{body}```"

    result = BLOCK.sub(block, text)
    assert not printed, "a python block that prints has no text block behind it"
    return result


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Copy:
    if not (BIN / "mcugen").is_file() or shutil.which("cc") is None:
        pytest.skip("mcugen is not installed as a command, or there is no C compiler")
    return Copy(tmp_path_factory.mktemp("readme"))


def test_readme_shows_what_its_commands_print(copy: Copy, request: pytest.FixtureRequest) -> None:
    shown = README.read_text(encoding="utf-8")
    true = true_text(shown, copy)
    if request.config.getoption("--update"):
        README.write_text(true, encoding="utf-8")
        return
    assert shown.splitlines() == true.splitlines(), "pytest tests/docs --update writes what is printed today"


def test_readme_c_compiles(copy: Copy, tmp_path: Path) -> None:
    folder = copy.folder / "build" / "furnace"
    if not folder.is_dir():  # this test runs alone
        copy.run("sh", "examples/quickstart/job.sh")
    blocks = [body for kind, body in BLOCK.findall(README.read_text(encoding="utf-8")) if kind == "c"]
    assert blocks
    for body in blocks:
        (tmp_path / "t.c").write_text(body, encoding="utf-8")
        copy.run("cc", *FLAGS, "-fsyntax-only", "-Wno-missing-prototypes", f"-I{folder}", str(tmp_path / "t.c"))
    main = ROOT / "examples" / "quickstart" / "main.c"
    copy.run("cc", *FLAGS, "-fsyntax-only", f"-I{folder}", str(main))


def test_readme_excerpts_and_commands_are_those_of_the_repository() -> None:
    text = README.read_text(encoding="utf-8")
    kinds = dict(BLOCK.findall(text))
    assert set(kinds) == {"console", "sh", "c", "toml", "python", "text"}
    assert kinds["toml"] in (ROOT / "examples" / "quickstart" / "spec.toml").read_text(encoding="utf-8")
    ci = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert kinds["sh"].strip() in ci
    assert "sh examples/run.sh" in ci


PAGES = ["README.md", "DESIGN.md", "linker/README.md", "examples/README.md"]
PAGES += [f"examples/{n}/README.md" for n in ("quickstart", "motion", "thermo_life", "ecg")]


@pytest.mark.parametrize(
    "page", PAGES + [f"examples/{n}/README.md" for n in ("quickstart", "motion", "thermo_life", "ecg")]
)
def test_links_lead_somewhere(page: str) -> None:
    folder = (ROOT / page).parent
    for target in re.findall(r"\]\(([^)#]+)", (ROOT / page).read_text(encoding="utf-8")):
        assert "://" in target or (folder / target).exists(), target
