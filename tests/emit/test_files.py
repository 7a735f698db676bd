"""The writer: a folder appears as a whole or stays as it was, and nothing of the user's is lost."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

import pytest
from written_folders import FIRST, SECOND, artifact, snapshot, tree

from mcugen.emit.artifact import MANIFEST, Artifact
from mcugen.emit.files import write
from mcugen.errors import DiffersError, InputError, InternalError

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
