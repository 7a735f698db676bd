"""The command as a process of its own: entry points, streams, signals, pipes; and the same bytes every time."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from cli_support import call, check_line, fails, tiny_model, tree

import mcugen
from mcugen import build
from mcugen.version import VERSION

ROOT = str(Path(mcugen.__file__).parents[1])


def environment(**more: str) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": ROOT, **more}


def process(*words: object, **more: str) -> subprocess.CompletedProcess[bytes]:
    argv = [sys.executable, "-m", "mcugen", *(w if isinstance(w, bytes) else str(w) for w in words)]
    return subprocess.run(argv, capture_output=True, env=environment(**more), check=False)


def test_module(model: Path) -> None:
    done = process("--version")
    assert (done.returncode, done.stdout, done.stderr) == (0, f"mcugen {VERSION}\n".encode(), b"")
    done = process("export", "nope.txt")
    assert (done.returncode, done.stdout) == (2, b"")
    check_line(done.stderr.decode())


def test_bytes_that_are_no_text(model: Path) -> None:
    """A path that is not UTF-8, and streams that can only show ASCII."""
    odd = os.fsencode(model.parent) + b"/\xff\xfe\x1b.txt"
    done = process("inspect", odd)
    assert done.returncode == 2
    check_line(done.stderr.decode())
    Path(os.fsdecode(odd)).write_bytes(tiny_model().replace(b"=flow ", "=é\u202e ".encode()))
    done = process("export", odd, "--no-verify", PYTHONIOENCODING="ascii")
    assert (done.returncode, done.stderr) == (0, b""), done
    assert done.stdout.isascii()
    done = process("inspect", "--json", odd, PYTHONIOENCODING="ascii", COLUMNS="20")
    assert (done.returncode, done.stderr) == (0, b""), done


def test_reader_that_stops(model: Path) -> None:
    """``mcugen ... | head -1`` is no fault."""
    for words in (["boards", "--json"], ["export", str(model), "--no-verify", "-o", "out"]):
        read, write = os.pipe()
        os.close(read)
        argv = [sys.executable, "-m", "mcugen", *words]
        done = subprocess.run(argv, stdout=write, stderr=subprocess.PIPE, env=environment(), check=False)
        os.close(write)
        assert (done.returncode, done.stderr) == (0, b""), done
    assert Path("out/manifest.json").exists()


def test_interrupt(model: Path) -> None:
    """Ctrl-C while the compiler runs: one word, exit code 130, nothing left behind."""
    script = Path("slow.sh")
    script.write_text(
        '#!/bin/sh\ncase "$1" in --version) echo gcc 1.0;; *) : > started; exec sleep 30;; esac\n'.replace(
            ": > started", f": > {model.parent}/started"
        )
    )
    script.chmod(0o755)
    Path("tmp").mkdir()
    argv = [sys.executable, "-m", "mcugen", "export", str(model), "-o", "out", "--cc", str(script.resolve())]
    child = subprocess.Popen(
        argv, stderr=subprocess.PIPE, env=environment(TMPDIR=str(Path("tmp").resolve())), start_new_session=True
    )
    deadline = time.monotonic() + 60
    while not Path("started").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    os.killpg(child.pid, signal.SIGINT)  # the terminal sends it to the compiler as well
    _, err = child.communicate(timeout=60)
    assert child.returncode == 130, err
    assert err.split() == [b"stopped"]
    assert not Path("out").exists()
    assert tree(Path("tmp")) == {}


@pytest.mark.parametrize(
    ("error", "code", "text"), [(KeyboardInterrupt(), 130, "stopped"), (MemoryError(), 2, "memory")]
)
def test_stopped_in_the_middle(
    model: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException, code: int, text: str
) -> None:
    def stop(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(build, "write", stop)
    done = call("export", model, "-o", "out", "--no-verify")
    assert done.code == code
    assert text in done.err
    assert len(done.err.split("\n")) <= 3
    assert not Path("out").exists()


def test_our_own_fault_is_one_line(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fault(*_: object, **__: object) -> None:
        raise ZeroDivisionError("a\nb\x1b[31m[red]")

    monkeypatch.setattr(build, "write", fault)
    done = call("export", model, "-o", "out", "--no-verify")
    assert done.code == 70
    assert done.err == "mcugen: ZeroDivisionError: a\\nb\\x1b[31m[red] (this is a fault in mcugen, please report it)\n"


def test_quiet_without_a_terminal(model: Path) -> None:
    done = process("export", model, "-o", "out", "--no-verify")
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"\x1b" not in done.stdout
    assert b"\r" not in done.stdout


def test_progress_on_a_terminal(model: Path) -> None:
    """Steps on stderr only, and the terminal is clean at the end."""
    pty = pytest.importorskip("pty")
    mine, theirs = pty.openpty()
    argv = [sys.executable, "-m", "mcugen", "export", str(model), "-o", "out", "--no-verify"]
    child = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=theirs, env=environment(TERM="xterm"))
    out, _ = child.communicate(timeout=120)
    os.close(theirs)
    shown = b""
    try:
        while chunk := os.read(mine, 65536):
            shown += chunk
    except OSError:  # Linux says the other end is closed
        pass
    os.close(mine)
    assert child.returncode == 0
    assert b"\x1b" in shown
    assert b"\x1b" not in out
    assert b"wrote" in out


# The same input gives the same bytes

_ON_ANOTHER_DAY = """
import datetime, os, random, sys, time
shift = int(sys.argv.pop(1))
for name in ("time", "time_ns", "monotonic"):
    real = getattr(time, name)
    setattr(time, name, lambda real=real, name=name: real() + shift * (10**9 if name == "time_ns" else 1))
local = time.localtime
time.localtime = lambda seconds=None: local(time.time() if seconds is None else seconds)
random.seed(shift)
os.umask(0o22)
from mcugen.cli import main
main(sys.argv[1:])
"""


def test_same_bytes_in_other_places_and_times(tmp_path: Path) -> None:
    """Another folder, working folder, hash seed, time zone, locale, day, and a relative path."""
    found = []
    places = [
        ("a", "0", "UTC", "C", 0, "tiny.txt", "out"),
        ("b/c d", "12345", "Asia/Tokyo", "C.UTF-8", 10**8, "../tiny.txt", "../x/y"),
    ]
    for folder, seed, zone, language, shift, source, out in places:
        cwd = tmp_path / folder
        (cwd / "x").mkdir(parents=True)
        (cwd / source).write_bytes(tiny_model())
        argv = [
            sys.executable,
            "-c",
            _ON_ANOTHER_DAY,
            str(shift),
            "export",
            source,
            "-o",
            out,
            "--no-verify",
            "--input-dtype",
            "float32",
        ]
        done = subprocess.run(
            argv,
            cwd=cwd,
            capture_output=True,
            env=environment(PYTHONHASHSEED=seed, TZ=zone, LC_ALL=language),
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, b""), done
        found.append(tree(cwd / out))
    assert found[0].keys() == found[1].keys()
    assert [p for p in found[0] if found[0][p] != found[1][p]] == []
    text = b"".join(v for v in found[0].values() if v is not None)
    assert os.fsencode(tmp_path) not in text


def test_same_bytes_for_any_compiler(model: Path, exported: Path) -> None:
    """The host's compiler leaves no trace."""
    if call("export", model, "-o", "out", "--cc", "clang").code != 0:
        pytest.skip("no clang")
    assert tree(Path("out")) == tree(exported)


def test_python_api_raises_the_same(model: Path) -> None:
    """The verbs in Python: the error of the command line as an exception."""
    with pytest.raises(mcugen.errors.InputError, match="no such file"):
        mcugen.export("nope.txt")
    line = fails(2, "export", "nope.txt")
    with pytest.raises(mcugen.errors.McugenError) as e:
        mcugen.load("nope.txt")
    assert line == f"mcugen: {e.value}\n"
