"""The output folder: what may be there before, what is there after a fault; and exports that were damaged later."""

from __future__ import annotations

import errno
import json
import os
import random
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cli_support import call, check_line, fails, tiny_model, tree

from mcugen.emit import files as writer


def export(model: Path, out: object, *more: object) -> tuple[object, ...]:
    return ("export", model, "-o", out, "--no-verify", *more)


@pytest.fixture
def copy(exported: Path, model: Path) -> Path:
    """An export of its own, beside tiny.txt."""
    return Path(shutil.copytree(exported, model.parent / "copy"))


# Before


def test_out_is_a_file(model: Path) -> None:
    Path("file").write_text("mine")
    assert "is not a folder" in fails(2, *export(model, "file"))
    assert "cannot be a folder" in fails(2, *export(model, "file/below/it"))
    assert Path("file").read_text() == "mine"
    assert "is not a folder" in fails(2, *export(model, "/dev/null"))


def test_out_holds_other_files(model: Path) -> None:
    Path("out").mkdir()
    for name in ("notes.txt", ".hidden", "tiny.c"):
        (Path("out") / name).write_text("mine")
        for more in ([], ["--force"]):
            assert "mcugen did not write" in fails(2, *export(model, "out", *more))
        assert tree(Path("out")) == {name: b"mine"}
        (Path("out") / name).unlink()
    assert call(*export(model, "out")).code == 0  # empty is fine


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "null", "{}", '{"schema": "other/1"}', '{"schema": 3}', "[" * 100_000, "\udcff"]
)
def test_out_holds_another_manifest(model: Path, text: str) -> None:
    Path("out").mkdir()
    Path("out/manifest.json").write_bytes(text.encode("utf-8", "surrogateescape"))
    assert "manifest.json" in fails(2, *export(model, "out", "--force"))
    assert list(tree(Path("out"))) == ["manifest.json"]


def test_out_is_the_current_folder_of_the_model(model: Path) -> None:
    assert "mcugen did not write" in fails(2, *export(model, "."))
    assert "mcugen did not write" in fails(2, *export(model, ""))


def test_out_through_links(model: Path) -> None:
    """A link to an export or to nothing yet is followed; a link inside it is not."""
    Path("link").symlink_to("real")
    assert call(*export(model, "link")).code == 0
    assert Path("real/tiny.c").exists()
    assert call(*export(model, "link")).code == 0
    Path("victim").write_text("mine")
    Path("real/tiny.c").unlink()
    Path("real/tiny.c").symlink_to("../victim")
    assert "link" in fails(2, *export(model, "link", "--force"))
    assert Path("victim").read_text() == "mine"
    Path("round").symlink_to("round")
    check_line(fails(2, *export(model, "round")))


@pytest.mark.parametrize("out", ["x" * 300, "a\0b", "/proc/nothing/here"])
def test_impossible_out(model: Path, out: str) -> None:
    fails(2, *export(model, out))
    assert [p.name for p in model.parent.iterdir()] == ["tiny.txt"]


def test_name_with_a_line_end(model: Path) -> None:
    done = call(*export(model, "a\nb[red]:smile:"))
    assert (done.code, done.err) == (0, "")
    assert done.out.splitlines()[-1].startswith("wrote     a\\nb[red]:smile: (")


# By hand


def test_changed_by_hand(copy: Path, model: Path) -> None:
    (copy / "tiny.h").write_text("/* mine */\n")
    before = tree(copy)
    line = fails(2, "export", model, "-o", copy)
    assert "changed by hand: tiny.h" in line
    assert "--force" in line
    assert tree(copy) == before
    assert "tiny.h" in fails(1, "export", model, "-o", copy, "--check")
    assert tree(copy) == before
    assert call("export", model, "-o", copy, "--force").code == 0
    assert call("verify", copy).code == 0


def test_check(copy: Path, model: Path) -> None:
    before = tree(copy)
    assert call("export", model, "-o", copy, "--check").code == 0
    fails(1, "export", model, "-o", copy, "--check", "--leaf", "int32")
    fails(1, "export", model, "-o", "new", "--check")
    (copy / "tiny.c").unlink()
    assert "tiny.c" in fails(1, "export", model, "-o", copy, "--check")
    shutil.copy(model, copy / "tiny.c")
    fails(1, "export", model, "-o", copy, "--check")
    assert {k: v for k, v in tree(copy).items() if k != "tiny.c"} == {k: v for k, v in before.items() if k != "tiny.c"}
    assert not Path("new").exists()


def test_again_leaves_files_alone(copy: Path, model: Path) -> None:
    for path in copy.rglob("*"):
        os.utime(path, ns=(10**18, 10**18))
    done = call("export", model, "-o", copy)
    assert "(0 files" in done.out
    assert {p.stat().st_mtime_ns for p in copy.rglob("*")} == {10**18}


def test_another_model_into_the_same_folder(copy: Path, multi: Path) -> None:
    """Files of the old model go, and what the user put there stays."""
    (copy / "notes.txt").write_text("mine")
    done = call(*export(multi, copy))
    assert done.code == 0
    names = set(tree(copy))
    assert {"multi.c", "notes.txt", "golden/multi.golden.bin"} <= names
    assert not any("tiny" in n for n in names)


# Faults while writing


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EIO, errno.EMFILE])
@pytest.mark.parametrize("fresh", [True, False])
def test_fault_at_any_file(model: Path, copy: Path, monkeypatch: pytest.MonkeyPatch, code: int, fresh: bool) -> None:
    """The disk fails at the first, a middle and the last file: the folder is as it was."""
    out = Path("new") if fresh else copy
    before = tree(model.parent)
    real = writer._write_new
    for fail_at in (1, 4, 8):
        count = 0

        def fault(path: Path, data: bytes, fail_at: int = fail_at) -> None:
            nonlocal count
            count += 1
            if count == fail_at:
                path.write_bytes(data[: len(data) // 2])
                raise OSError(code, os.strerror(code), str(path))
            real(path, data)

        monkeypatch.setattr(writer, "_write_new", fault)
        line = fails(2, *export(model, out, "--leaf", "float64", "--name", "other"))
        assert os.strerror(code) in line
        assert tree(model.parent) == before


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 16 kB."""
    yield from _mounted(tmp_path / "disk", "size=16k")


@pytest.fixture
def read_only(tmp_path: Path) -> Iterator[Path]:
    """A folder that cannot be written to, by root neither."""
    if os.geteuid() != 0:
        folder = tmp_path / "disk"
        folder.mkdir()
        folder.chmod(0o555)
        yield folder
        folder.chmod(0o755)
        return
    yield from _mounted(tmp_path / "disk", "size=16k,ro")


def _mounted(folder: Path, options: str) -> Iterator[Path]:
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)]
    if shutil.which("mount") is None or subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("cannot mount here")
    try:
        yield folder
    finally:
        subprocess.run(["umount", folder], check=True)


def test_full_disk(model: Path, small_disk: Path) -> None:
    line = fails(2, *export(model, small_disk / "out"))
    assert "No space left" in line
    assert "free some space" in line
    assert tree(small_disk) == {}
    check_line(fails(2, *export(model, small_disk)))
    assert tree(small_disk) == {}


def test_full_temporary_folder(model: Path, small_disk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(small_disk))
    assert "TMPDIR" in fails(2, "export", model, "-o", "out")
    monkeypatch.setattr("tempfile.tempdir", str(small_disk / "nowhere"))
    assert "TMPDIR" in fails(2, "export", model, "-o", "out")
    assert not Path("out").exists()


def test_read_only(model: Path, read_only: Path, exported: Path) -> None:
    assert "choose a place that you may write to" in fails(2, *export(model, read_only / "out"))
    assert "choose a place that you may write to" in fails(2, *export(model, read_only))
    np.save("x.npy", np.zeros((1, 4), np.float32))
    assert "may write" in fails(2, "run", exported, "--input", "x.npy", "--output", read_only / "y.npy")
    assert "write" in fails(2, *export(model, "out", "--dump-ir", read_only / "ir"))
    assert tree(read_only) == {}


# An export that was damaged later


def _damage(data: bytes, kind: str) -> bytes:
    half = len(data) // 2
    return {"empty": b"", "half": data[:half]}[kind]


FILES = ["tiny.c", "tiny.h", "tiny_selftest.c", "mcugen/mcg.h", "mcugen/mcg_sections.c", "mcugen/mcugen.ld"]
FILES += ["golden/tiny.golden.bin", "golden/tiny.reference.bin", "CMakeLists.txt"]


@pytest.mark.parametrize("file", FILES)
def test_damaged_file(copy: Path, file: str) -> None:
    np.save("x.npy", np.zeros((1, 4), np.float32))
    path = copy / file
    data = path.read_bytes()
    calls: list[list[object]] = [["verify", copy], ["run", copy, "--input", "x.npy", "--output", "y.npy"]]
    harmless = {"CMakeLists.txt", "mcugen/mcugen.ld"}
    for kind in ("half", "empty") if file.endswith((".c", ".h")) else ("half",):
        path.write_bytes(_damage(data, kind))
        for words in calls if kind == "half" else calls[:1]:
            done = call(*words)
            used = file not in harmless and not (words[0] == "verify" and "reference" in file)
            used = used and not (words[0] == "run" and "golden.bin" in file)
            if done.code == 0:
                assert not used or (file.endswith("sections.c") and kind == "empty"), (kind, words)
                assert words[0] == "run" or f"changed after the export: {file}" in done.out
            else:
                assert done.code == 2, done
                check_line(done.err)
                assert str(copy) in done.err
    path.unlink()
    assert "no such file" in fails(2, "verify", copy)
    path.mkdir()
    assert "folder" in fails(2, *calls[1])


def _mutated(value: Any, rng: random.Random) -> Any:
    """``value`` (JSON) with one thing in it replaced or gone."""
    if isinstance(value, dict) and value and rng.random() < 0.85:
        key = rng.choice(sorted(value))
        rest = {k: v for k, v in value.items() if k != key}
        return rest if rng.random() < 0.2 else {**rest, key: _mutated(value[key], rng)}
    if isinstance(value, list) and value and rng.random() < 0.85:
        at = rng.randrange(len(value))
        return [*value[:at], *([] if rng.random() < 0.3 else [_mutated(value[at], rng)]), *value[at + 1 :]]
    return rng.choice(
        [None, True, -1, 0, 3, 2**70, 1.5, float("inf"), "", "x", "../../etc/passwd", "float64", [], [1], {}, {"a": 1}]
    )


def test_damaged_manifest(copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the manifest says: one line, or the right answer."""
    np.save("x.npy", np.zeros((3, 4), np.float32))
    monkeypatch.setattr("mcugen.exported.build_shared", _refuse_to_build)
    path = copy / "manifest.json"
    manifest = json.loads(path.read_text())
    parts = {k: manifest[k] for k in ("files", "inputs", "outputs", "name", "schema", "tool")}
    rng = random.Random(1)
    for _ in range(80):
        found = _mutated(parts, rng)
        path.write_text(json.dumps({**manifest, **found} if isinstance(found, dict) else found))
        for words in (["verify", copy], ["run", copy, "--input", "x.npy", "--output", "y.npy"]):
            try:
                done = call(*words)
            except _BuiltError:
                continue
            assert done.code in (2, 70), (path.read_text(), done)
            if done.code == 70:
                assert "BuiltError" in done.err, (path.read_text(), done)
            else:
                check_line(done.err)
    for text in ("", "{", "[]", "null", "3", '"x"', "[" * 100_000, "{}", "\ufeff{}"):
        path.write_text(text)
        assert "manifest.json" in fails(2, "verify", copy)


class _BuiltError(Exception):
    """The folder was good enough to be compiled."""


def _refuse_to_build(*_: object) -> None:
    raise _BuiltError


def test_no_export(model: Path) -> None:
    Path("empty").mkdir()
    for words in (["verify", "{}"], ["run", "{}", "--input", "x.npy", "--output", "y.npy"]):
        assert "no such folder" in fails(2, *(w.format("nowhere") for w in words))
        assert "no such folder" in fails(2, *(w.format("tiny.txt") for w in words))
        assert "not a folder that mcugen exported" in fails(2, *(w.format("empty") for w in words))


def test_changed_numbers_are_found(copy: Path) -> None:
    """A number that was changed by hand compiles, and differs."""
    text = (copy / "tiny.c").read_text()
    at = text.index("{", text.index("tiny_keys_image[")) + 1
    end = text.index("}", at)
    (copy / "tiny.c").write_text(text[:at] + re.sub(r"-?\d+", "0", text[at:end]) + text[end:])
    line = fails(1, "verify", copy)
    assert "expected" in line
    assert "found" in line


# compare


def _outputs(exported: Path) -> tuple[Path, bytes]:
    golden = exported / "golden/tiny.golden.bin"
    data = golden.read_bytes()
    count = int.from_bytes(data[48:52], "little")
    return golden, data[len(data) - -(-count * 4 // 8) * 8 :][: count * 4]


def test_compare(exported: Path, model: Path) -> None:
    golden, y = _outputs(exported)
    Path("d.bin").write_bytes(y)
    done = call("compare", golden, "d.bin")
    assert (done.code, done.err) == (0, ""), done
    assert "equal" in done.out
    bad = bytearray(y)
    bad[9] ^= 1
    Path("d.bin").write_bytes(bad)
    line = fails(1, "compare", golden, "d.bin")
    assert "vector 2" in line
    assert "1 of" in line
    for data in (b"", y[:-1], y + b"\0", y * 2):
        Path("d.bin").write_bytes(data)
        assert f"expected {len(y)} bytes" in fails(2, "compare", golden, "d.bin")
    assert "no such file" in fails(2, "compare", golden, "nope.bin")
    assert "no such file" in fails(2, "compare", "nope.bin", "d.bin")
    assert "folder" in fails(2, "compare", ".", "d.bin")
    assert "golden" in fails(2, "compare", "tiny.txt", "d.bin")


def test_compare_damaged_golden(exported: Path, model: Path) -> None:
    golden, y = _outputs(exported)
    data = golden.read_bytes()
    Path("d.bin").write_bytes(y)
    rng = random.Random(2)
    for i in range(150):
        bad = bytearray(data)
        if i % 3:
            bad[rng.randrange(min(len(bad), 300))] = rng.randrange(256)
        else:
            del bad[rng.randrange(len(bad)) :]
        Path("g.bin").write_bytes(bad)
        done = call("compare", "g.bin", "d.bin")
        assert done.code in (0, 1, 2), done
        if done.code:
            check_line(done.err)


# run


def test_run(exported: Path, model: Path) -> None:
    np.save("x.npy", np.zeros((3, 4), np.float32))
    done = call("run", exported, "--input", "x.npy", "--output", "y.npy")
    assert (done.code, done.err) == (0, "")
    assert np.load("y.npy").shape == (3, 1)
    for words, text in (
        (["--output", "."], "folder"),
        (["--output", "nowhere/y.npy"], "nowhere"),
        (["--output", "y.npy", "--target", "moon"], "known"),
        (["--input", "nope.npy", "--output", "y.npy"], "nope.npy"),
        (["--input", "tiny.txt", "--output", "y.npy"], "tiny.txt"),
    ):
        assert text in fails(2, "run", exported, "--input", "x.npy", *words)
    np.save("x.npy", np.zeros((3, 5), np.float32))
    assert "5 columns" in fails(2, "run", exported, "--input", "x.npy", "--output", "z.npy")
    assert "5 columns" in fails(2, "verify", exported, "--data", "x.npy")
    assert not Path("z.npy").exists()


def test_run_warns_in_one_line(exported: Path, model: Path) -> None:
    np.save("x.npy", np.full((3, 4), 0.1))
    done = call("run", exported, "--input", "x.npy", "--output", "y.npy")
    assert done.code == 0
    assert done.err.startswith("warning: ")
    assert len(done.err.splitlines()) == 1


def test_source_is_not_touched(model: Path) -> None:
    assert call(*export(model, "out")).code == 0
    assert model.read_bytes() == tiny_model()
