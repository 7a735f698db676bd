"""The writer where something goes wrong: a full disk, a kill, a place that cannot be written; and single files."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from written_folders import FIRST, SECOND, artifact, snapshot, tree

from mcugen.emit import files
from mcugen.emit.artifact import MANIFEST
from mcugen.emit.files import write, write_file
from mcugen.errors import InputError


class FailingStream:
    """A file that takes some bytes, then reports a full disk."""

    def __init__(self, stream: Any) -> None:
        self.stream = stream

    def __enter__(self) -> FailingStream:
        return self

    def __exit__(self, *args: object) -> None:
        self.stream.close()

    def write(self, data: bytes) -> int:
        self.stream.write(data[:1])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.fixture
def disk_full(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Lets the given number of files be written; the next one finds the disk full."""

    def arm(after: int) -> None:
        count = 0

        def fake(path: Any, mode: str = "r", *args: Any, **kwargs: Any) -> Any:
            nonlocal count
            stream = open(path, mode, *args, **kwargs)  # noqa: SIM115
            if mode != "xb":
                return stream
            count += 1
            return FailingStream(stream) if count > after else stream

        monkeypatch.setattr(files, "open", fake, raising=False)

    return arm


@pytest.mark.parametrize("after", [0, 2])
def test_disk_full(out: Path, tmp_path: Path, disk_full: Callable[[int], None], after: int) -> None:
    disk_full(after)
    with pytest.raises(InputError, match="No space left") as caught:
        write(artifact(FIRST), out)
    assert "\n" not in str(caught.value)
    assert tree(tmp_path) == {}  # the parent that was made is gone too


@pytest.mark.parametrize("after", [0, 1])
def test_disk_full_in_update(written: Path, disk_full: Callable[[int], None], after: int) -> None:
    before = snapshot(written)
    disk_full(after)
    with pytest.raises(InputError, match="No space left"):
        write(artifact(SECOND), written)
    assert snapshot(written) == before


def steps_that_fail(monkeypatch: pytest.MonkeyPatch, step: int, error: BaseException) -> Iterator[None]:
    """os.replace and Path.unlink fail once, at the given call."""
    count = 0

    def wrap(real: Callable[..., Any]) -> Callable[..., Any]:
        def fake(*args: Any, **kwargs: Any) -> Any:
            nonlocal count
            count += 1
            if count == step:
                raise error
            return real(*args, **kwargs)

        return fake

    with monkeypatch.context() as m:
        m.setattr(os, "replace", wrap(os.replace))
        m.setattr(Path, "unlink", wrap(Path.unlink))
        yield


@pytest.mark.parametrize("step", [1, 2, 3, 4])
@pytest.mark.parametrize("links", [True, False])
@pytest.mark.parametrize("error", [OSError(errno.EIO, "I/O error"), KeyboardInterrupt()])
def test_interrupted_update_is_rolled_back(
    written: Path, monkeypatch: pytest.MonkeyPatch, step: int, links: bool, error: BaseException
) -> None:
    """Three files are renamed and one is removed: whichever fails, the old state is back."""
    if not links:

        def no_links(*args: Any, **kwargs: Any) -> None:
            raise OSError(errno.EPERM, "no hard links here")

        monkeypatch.setattr(os, "link", no_links)
    before = snapshot(written)
    for _ in steps_that_fail(monkeypatch, step, error):
        with pytest.raises(InputError if isinstance(error, OSError) else KeyboardInterrupt):
            write(artifact(SECOND), written)
    assert snapshot(written) == before
    write(artifact(SECOND), written)
    assert (written / "m.c").read_text() == "int changed;\n"


def test_rollback_that_fails_keeps_the_old_files(written: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real, count = os.replace, 0

    def fake(source: Any, target: Any) -> None:
        nonlocal count
        count += 1
        if count > 2:
            raise OSError(errno.EIO, "I/O error")
        real(source, target)

    monkeypatch.setattr(os, "replace", fake)
    with pytest.raises(InputError, match="cannot restore") as caught:
        write(artifact(SECOND), written)
    kept = Path(caught.value.hint.removeprefix("the old files are in "))
    assert (kept / "m.c").read_text() == "int m;\n"


@pytest.mark.parametrize("error", [OSError(errno.EIO, "I/O error"), KeyboardInterrupt()])
def test_interrupted_new_folder(out: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    def fake(*args: Any, **kwargs: Any) -> None:
        raise error

    monkeypatch.setattr(os, "rename", fake)
    with pytest.raises(InputError if isinstance(error, OSError) else KeyboardInterrupt):
        write(artifact(FIRST), out)
    assert not out.parent.exists()


KILL = """
import os, sys
from pathlib import Path
from mcugen.emit.artifact import Artifact
from mcugen.emit.files import write
real, left = os.replace, int(sys.argv[2])
def replace(a, b):
    global left
    if left == 0:
        os._exit(9)
    left -= 1
    real(a, b)
os.replace = replace
write(Artifact({SECOND!r}, {{"model": "m"}}), Path(sys.argv[1]))
"""


@pytest.mark.parametrize("left", [0, 1, 2])
def test_killed_update_is_repaired(written: Path, left: int) -> None:
    """Every file is whole, old or new; the same write again finishes the work and tidies up."""
    code = KILL.format(SECOND=SECOND)
    done = subprocess.run([sys.executable, "-c", code, str(written), str(left)], check=False, cwd=os.getcwd())
    assert done.returncode == 9
    assert (written / "m.c").read_text() in ("int m;\n", "int changed;\n")
    write(artifact(SECOND), written)
    assert set(tree(written)) == {"extra", "extra/new.c", "m.c", "m.h", "mcugen", "mcugen/mcg.h", MANIFEST}


def test_killed_first_write_into_empty_folder(out: Path) -> None:
    (out / ".mcugen-stage-0123" / "new").mkdir(parents=True)
    (out / ".mcugen-stage-0123" / "new" / "m.c").write_text("half")
    write(artifact(FIRST), out)
    assert ".mcugen-stage-0123" not in os.listdir(out)


@pytest.mark.skipif(not Path("/proc/version").exists(), reason="needs /proc, which nobody can write to")
def test_place_that_cannot_be_written() -> None:
    for place in (Path("/proc/out"), Path("/proc/a/b")):
        with pytest.raises(InputError, match="cannot write"):
            write(artifact(FIRST), place)


def test_read_only_folder(written: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("root may write everywhere")
    before = snapshot(written)
    written.chmod(0o555)
    try:
        with pytest.raises(InputError, match=r"Permission denied.*may write"):
            write(artifact(SECOND), written)
        with pytest.raises(InputError, match="Permission denied"):
            write(artifact(FIRST), written / "below")
    finally:
        written.chmod(0o755)
    assert snapshot(written) == before


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 64 KiB."""
    place = tmp_path / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(place)]
    if os.geteuid() != 0 or subprocess.run(mount, check=False, capture_output=True).returncode != 0:
        pytest.skip("needs the right to mount")
    yield place
    subprocess.run(["umount", str(place)], check=True)


def test_real_small_disk(small_disk: Path) -> None:
    big = artifact({**FIRST, "big.bin": bytes(200_000)})
    with pytest.raises(InputError, match="No space left"):
        write(big, small_disk / "out")
    assert tree(small_disk) == {}
    write(artifact(FIRST), small_disk)  # a mount point itself: cannot be renamed
    before = snapshot(small_disk)
    with pytest.raises(InputError, match="No space left"):
        write(big, small_disk)
    with pytest.raises(InputError, match="No space left"):
        write_file(small_disk / "m.c", bytes(200_000))
    assert snapshot(small_disk) == before
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    for place in (small_disk, small_disk / "new"):
        with pytest.raises(InputError, match=r"Read-only.*may write"):
            write(artifact(SECOND), place)
    with pytest.raises(InputError, match="read-only"):
        write_file(small_disk / "m.c", b"x")
    assert snapshot(small_disk) == before


@pytest.mark.parametrize("name", ["x" * 5000, "a\0b", "a\nb" * 200])
def test_odd_names(tmp_path: Path, name: str) -> None:
    for call in (lambda: write(artifact(FIRST), tmp_path / name), lambda: write_file(tmp_path / name, b"")):
        with pytest.raises(InputError) as caught:
            call()
        assert "\n" not in str(caught.value)
    assert tree(tmp_path) == {}


# Single files


def test_write_file(tmp_path: Path) -> None:
    path = tmp_path / "y.npy"
    write_file(path, b"1")
    write_file(path, b"22")
    assert tree(tmp_path) == {"y.npy": b"22"}
    link = tmp_path / "link"
    link.symlink_to(path)
    write_file(link, b"3")
    assert link.is_symlink()
    assert path.read_bytes() == b"3"


def test_write_file_refuses(tmp_path: Path, disk_full: Callable[[int], None]) -> None:
    (tmp_path / "old").write_bytes(b"old")
    for path in (tmp_path, tmp_path / "missing" / "y", tmp_path / "old" / "y"):
        with pytest.raises(InputError):
            write_file(path, b"x")
    disk_full(0)
    with pytest.raises(InputError, match="No space left"):
        write_file(tmp_path / "old", b"new")
    assert tree(tmp_path) == {"old": b"old"}


def test_write_file_to_device_and_pipe(tmp_path: Path) -> None:
    write_file(Path("/dev/null"), b"x")
    assert Path("/dev/null").is_char_device()
    code = "import pathlib, mcugen.emit.files as f; f.write_file(pathlib.Path('/dev/stdout'), b'hi')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert done.stdout == b"hi"
    if Path("/dev/full").exists():
        with pytest.raises(InputError, match="No space left"):
            write_file(Path("/dev/full"), b"x")
