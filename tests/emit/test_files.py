"""The writer: a folder appears as a whole or stays as it was, and nothing of the user's is lost."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from mcugen.emit import files
from mcugen.emit.artifact import MANIFEST, Artifact
from mcugen.emit.files import write, write_file
from mcugen.errors import DiffersError, InputError, InternalError

FIRST = {
    "m.h": "#pragma once\n",
    "m.c": "int m;\n",
    "mcugen/mcg.h": "/* é */\n",
    "golden/m.golden.bin": b"\x00\xff\r\n",
}
SECOND = {"m.h": "#pragma once\n", "m.c": "int changed;\n", "extra/new.c": "int n;\n", "mcugen/mcg.h": "/* é */\n"}


def artifact(content: dict[str, Any], **manifest: Any) -> Artifact:
    return Artifact(content, {"model": "m", **manifest})


def tree(folder: Path) -> dict[str, bytes | None]:
    """Everything below ``folder``: bytes of files, None for folders."""
    return {str(p.relative_to(folder)): p.read_bytes() if p.is_file() else None for p in sorted(folder.rglob("*"))}


def snapshot(folder: Path) -> dict[str, tuple[bytes | None, int]]:
    return {k: (v, (folder / k).stat().st_mtime_ns if v is not None else 0) for k, v in tree(folder).items()}


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "work" / "out"


@pytest.fixture
def written(out: Path) -> Path:
    write(artifact(FIRST), out)
    return out


# What is written


def test_new_folder(out: Path) -> None:
    result = write(artifact(FIRST), out)
    assert result.written == tuple(sorted([*FIRST, MANIFEST]))
    assert result.unchanged == result.removed == ()
    assert (out / "m.c").read_bytes() == b"int m;\n"
    assert (out / "mcugen/mcg.h").read_bytes() == "/* é */\n".encode()
    assert (out / "golden/m.golden.bin").read_bytes() == b"\x00\xff\r\n"
    assert os.listdir(out.parent) == ["out"]
    umask = os.umask(0)
    os.umask(umask)
    assert out.stat().st_mode & 0o777 == 0o777 & ~umask
    assert (out / "m.c").stat().st_mode & 0o777 == 0o666 & ~umask


def test_manifest(written: Path) -> None:
    text = (written / MANIFEST).read_text(encoding="ascii")
    data = json.loads(text)
    assert data["schema"] == "mcugen-manifest/1"
    assert data["files"] == {p: hashlib.sha256((written / p).read_bytes()).hexdigest() for p in FIRST}
    assert text.endswith("}\n")
    assert list(data) == sorted(data)
    assert list(data["files"]) == sorted(data["files"])


def test_manifest_does_not_depend_on_order() -> None:
    a = Artifact(FIRST, {"a": 1, "b": {"x": 1, "y": "ü"}})
    b = Artifact(dict(reversed(FIRST.items())), {"b": {"y": "ü", "x": 1}, "a": 1})
    assert a.contents() == b.contents()


def test_update(written: Path) -> None:
    before = (written / "m.h").stat()
    (written / "notes.txt").write_text("mine")
    (written / "extra").mkdir()
    result = write(artifact(SECOND), written)
    assert result.written == ("extra/new.c", "m.c", MANIFEST)
    assert result.unchanged == ("m.h", "mcugen/mcg.h")
    assert result.removed == ("golden/m.golden.bin",)
    after = (written / "m.h").stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    expected = {"notes.txt", "extra", "extra/new.c", "m.c", "m.h", "mcugen", "mcugen/mcg.h", MANIFEST}
    assert set(tree(written)) == expected  # the empty folder golden went with its last file


def test_same_again_touches_nothing(written: Path) -> None:
    before = snapshot(written)
    stamp = written.stat().st_mtime_ns
    result = write(artifact(FIRST), written)
    assert result.written == result.removed == ()
    assert snapshot(written) == before
    assert written.stat().st_mtime_ns == stamp


def test_missing_file_comes_back(written: Path) -> None:
    (written / "m.c").unlink()
    assert write(artifact(FIRST), written).written == ("m.c",)


def test_empty_folder_and_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    inode = tmp_path.stat().st_ino
    write(artifact(FIRST), Path())
    assert (tmp_path / "m.c").exists()
    assert tmp_path.stat().st_ino == inode  # a shell that stands in it stays in it


def test_relative_and_missing_parents(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write(artifact(FIRST), Path("a/b/out"))
    assert (tmp_path / "a/b/out/m.c").exists()


# What is refused


@pytest.mark.parametrize("force", [False, True])
@pytest.mark.parametrize("check", [False, True])
def test_foreign_places(tmp_path: Path, force: bool, check: bool) -> None:
    a_file = tmp_path / "file"
    a_file.write_text("x")
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "thesis.tex").write_text("years")
    for place in (a_file, a_file / "below", folder):
        with pytest.raises(InputError) as caught:
            write(artifact(FIRST), place, force=force, check=check)
        assert str(place) in str(caught.value)
        assert "\n" not in str(caught.value)
    assert tree(tmp_path) == {"file": b"x", "folder": None, "folder/thesis.tex": b"years"}


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"{",
        b"\xff\xfe",
        b"[" * 100_000,
        b"[]",
        b"{}",
        b'{"schema": 1}',
        b'{"schema": "other/1", "files": {}}',
        b'{"schema": "mcugen-manifest/2", "files": {}}',
        b'{"schema": "mcugen-manifest/1"}',
        b'{"schema": "mcugen-manifest/1", "files": ["m.c"]}',
        b'{"schema": "mcugen-manifest/1", "files": {"m.c": 1}}',
        b'{"schema": "mcugen-manifest/1", "files": {"m.c": "ABC"}}',
    ],
)
def test_foreign_manifest(out: Path, text: bytes) -> None:
    out.mkdir(parents=True)
    (out / MANIFEST).write_bytes(text)
    for force in (False, True):
        with pytest.raises(InputError, match=r"manifest\.json"):
            write(artifact(FIRST), out, force=force)
    assert tree(out) == {MANIFEST: text}


@pytest.mark.parametrize("path", ["../victim", "/etc/victim", "a/../../victim", ".", "a//b", "manifest.json"])
def test_manifest_that_reaches_outside(written: Path, path: str) -> None:
    victim = written.parent / "victim"
    victim.write_text("x")
    manifest = json.loads((written / MANIFEST).read_bytes())
    manifest["files"][path] = hashlib.sha256(b"x").hexdigest()
    (written / MANIFEST).write_text(json.dumps(manifest))
    with pytest.raises(InputError, match="damaged"):
        write(artifact(SECOND), written, force=True)
    assert victim.exists()


def test_changed_by_hand(written: Path) -> None:
    (written / "m.c").write_text("int mine;\n")
    (written / "golden/m.golden.bin").write_bytes(b"mine")
    before = snapshot(written)
    with pytest.raises(InputError, match=r"changed by hand: golden/m\.golden\.bin, m\.c.*--force"):
        write(artifact(SECOND), written)
    assert snapshot(written) == before
    result = write(artifact(SECOND), written, force=True)
    assert (written / "m.c").read_text() == "int changed;\n"
    assert result.removed == ()
    assert (written / "golden/m.golden.bin").read_bytes() == b"mine"  # not ours any more, so not ours to delete


def test_hand_made_file_in_the_way(written: Path) -> None:
    (written / "extra").mkdir()
    (written / "extra/new.c").write_text("mine")
    with pytest.raises(InputError, match=r"extra/new\.c"):
        write(artifact(SECOND), written)
    assert (written / "extra/new.c").read_text() == "mine"


def test_hand_made_change_that_is_the_new_content(written: Path) -> None:
    """Nothing would be lost. A write that was killed half way leaves this too, and the next one repairs it."""
    (written / "m.c").write_text("int changed;\n")
    result = write(artifact(SECOND), written)
    assert "m.c" in result.unchanged


def test_links_are_not_followed(written: Path) -> None:
    outside = written.parent / "outside"
    outside.mkdir()
    (outside / "mcg.h").write_bytes((written / "mcugen/mcg.h").read_bytes())
    (written / "mcugen/mcg.h").unlink()
    (written / "mcugen").rmdir()
    (written / "mcugen").symlink_to(outside, target_is_directory=True)
    with pytest.raises(InputError, match="link"):
        write(artifact({"m.c": "x"}), written, force=True)
    assert (outside / "mcg.h").exists()
    (written / "mcugen").unlink()
    target = written.parent / "target"
    target.write_bytes((written / "m.c").read_bytes())
    (written / "m.c").unlink()
    (written / "m.c").symlink_to(target)
    with pytest.raises(InputError, match="link"):
        write(artifact(SECOND), written, force=True)
    (written / "m.c").unlink()
    os.mkfifo(written / "m.c")  # opening it would wait for ever
    with pytest.raises(InputError, match=r"m\.c"):
        write(artifact(SECOND), written, force=True)
    assert target.read_text() == "int m;\n"


def test_manifest_as_link(out: Path, tmp_path: Path) -> None:
    write(artifact(FIRST), tmp_path / "other")
    out.mkdir(parents=True)
    (out / MANIFEST).symlink_to(tmp_path / "other" / MANIFEST)
    with pytest.raises(InputError, match="link"):
        write(artifact(FIRST), out)


def test_out_as_link_to_a_folder(written: Path, tmp_path: Path) -> None:
    """The user chose the link, so it is followed, and stays a link."""
    link = tmp_path / "link"
    link.symlink_to(written, target_is_directory=True)
    write(artifact(SECOND), link)
    assert link.is_symlink()
    assert (written / "m.c").read_text() == "int changed;\n"


def test_file_and_folder_swapped(written: Path) -> None:
    with pytest.raises(InputError, match="folder"):
        write(artifact({"mcugen": "x"}), written)
    with pytest.raises(InputError, match="file"):
        write(artifact({"m.c/x": "x"}), written)


BAD_PATHS = [
    "",
    "/a",
    "../a",
    "a/../b",
    "./a",
    "a//b",
    "a/",
    "a\\b",
    "C:a",
    "a\0",
    "a\n",
    "é",
    "a.",
    "a b",
    "Manifest.json",
]


@pytest.mark.parametrize("path", BAD_PATHS)
def test_bad_artifact_path(out: Path, path: str) -> None:
    with pytest.raises(InternalError):
        write(artifact({path: "x"}), out)
    assert not out.exists()


@pytest.mark.parametrize(
    "bad",
    [
        artifact({"a.h": "", "A.h": ""}),
        artifact({"a": "", "a/b": ""}),
        artifact({"a": "\ud800"}),
        artifact({}, x=float("nan")),
        artifact({}, x={1, 2}),
        artifact({}, files={}),
        artifact({}, schema="x"),
    ],
)
def test_bad_artifact(out: Path, bad: Artifact) -> None:
    with pytest.raises(InternalError):
        write(bad, out)
    assert not out.exists()


# --check


def test_check(written: Path) -> None:
    before = snapshot(written)
    assert write(artifact(FIRST), written, check=True).written == ()
    with pytest.raises(DiffersError, match=r"would change extra/new\.c, m\.c.*would remove golden"):
        write(artifact(SECOND), written, check=True)
    (written / "m.h").write_text("mine")
    with pytest.raises(DiffersError, match=r"m\.h"):
        write(artifact(FIRST), written, check=True, force=True)
    (written / "m.h").write_text(FIRST["m.h"])
    assert tree(written) == {k: v for k, (v, _) in before.items()}


def test_check_of_nothing(out: Path) -> None:
    with pytest.raises(DiffersError):
        write(artifact(FIRST), out, check=True)
    assert not out.parent.exists()


# Faults on the way


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
