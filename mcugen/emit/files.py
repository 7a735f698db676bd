"""The only writer of the project: a folder or a file appears as a whole, or the old one stays.

All bytes are written beside their destination first, then moved by rename. A fault on the way, Ctrl-C included, is
rolled back. After a kill or a power cut a folder may hold files of two exports and a ``.mcugen-stage-*`` folder;
the next write of the same export repairs both. Two writers of one folder at one time are not supported.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import secrets
import shutil
import stat
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from mcugen.emit.artifact import MANIFEST, Artifact
from mcugen.emit.folder import STAGE, Folder, read_folder
from mcugen.errors import DiffersError, InputError

_HINTS = {
    errno.ENOSPC: "nothing was changed; free some space",
    errno.EDQUOT: "nothing was changed; free some space",
    errno.EACCES: "choose a place that you may write to",
    errno.EPERM: "choose a place that you may write to",
    errno.EROFS: "choose a place that you may write to",
}


@dataclass(frozen=True, slots=True)
class WriteResult:
    """Paths relative to the folder, sorted: new or changed, the same as before, and no longer produced."""

    written: tuple[str, ...]
    unchanged: tuple[str, ...]
    removed: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Change:
    """What has to happen to the folder, and which of its files were changed by hand."""

    result: WriteResult
    edited: tuple[str, ...]


def write(artifact: Artifact, out: Path, *, force: bool = False, check: bool = False) -> WriteResult:
    """Make the folder ``out`` hold ``artifact``; files that have the right bytes are left alone.

    ``out`` may be new, empty or hold an export. Files that are not of an export stay. ``force`` overwrites files
    that were changed by hand; one that is no longer produced is kept even then. ``check`` writes nothing. A file of
    ``artifact.once`` that exists stays as it is, even with ``force``.

    InputError: ``out`` is something else, holds hand-made changes, or cannot be written; it is then as before.
    DiffersError: ``check``, and ``out`` is not what would be written.
    """
    contents = artifact.contents()
    once = artifact.once_contents()
    with _one_line_errors(out):
        root = Path(os.path.realpath(out))
        # Before the manifest, which is the last; what the user has already stays.
        contents = {p: data for p, data in once.items() if not os.path.lexists(root / p)} | contents
        folder = read_folder(out, root, contents)
        change = _compare(contents, folder)
        if check:
            _refuse_difference(out, change.result)
            return change.result
        if change.edited and not force:
            raise InputError(str(out), f"changed by hand: {_names(change.edited)}", "--force overwrites them")
        if not folder.exists:
            _create(root, contents)
        elif change.result.written or change.result.removed:
            _update(root, contents, change.result)
    return change.result


def write_once(files: Mapping[str, str], out: Path) -> None:
    """Write those of ``files`` (text by path below ``out``) that are not there yet: the user's from then on."""
    for path, text in files.items():
        target = out / path
        if os.path.lexists(target):
            continue
        with _one_line_errors(target.parent):
            target.parent.mkdir(parents=True, exist_ok=True)
        write_file(target, text.encode("utf-8"))


def write_file(path: Path, data: bytes) -> None:
    """Write one result. A device or a pipe such as /dev/stdout is written to; a file is replaced as a whole.

    InputError if that is impossible; an old file is then as it was.
    """
    with _one_line_errors(path):
        # Of the path as given: the real path of a pipe behind /dev/stdout is not a file that can be opened.
        mode = path.stat().st_mode if path.exists() else stat.S_IFREG
        if stat.S_ISDIR(mode):
            raise InputError(str(path), "is a folder", "name a file")
        if not stat.S_ISREG(mode):
            with open(path, "wb") as stream:
                stream.write(data)
            return
        target = Path(os.path.realpath(path))
        if target.exists() and not os.access(target, os.W_OK):
            raise InputError(str(path), "cannot write: the file is read-only", _HINTS[errno.EACCES])
        stage = target.with_name(STAGE + secrets.token_hex(8))
        try:
            _write_new(stage, data)
            os.replace(stage, target)
        finally:
            stage.unlink(missing_ok=True)


def write_note(folder: Path, name: str, text: str) -> None:
    """Write a text for people into ``folder``, which is made if it is not there (--dump-ir)."""
    with _one_line_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
    write_file(folder / name, text.encode("utf-8"))


def _names(paths: Sequence[str], limit: int = 8) -> str:
    """``a, b, c`` or, of more than ``limit``, the first ones and the count of the rest."""
    more = f" and {len(paths) - limit} more" if len(paths) > limit else ""
    return ", ".join(paths[:limit]) + more


@contextlib.contextmanager
def _one_line_errors(path: Path) -> Iterator[None]:
    """Faults of the file system as InputError."""
    if "\0" in str(path):
        raise InputError(str(path), "is not a path", "it holds a NUL character")
    try:
        yield
    except OSError as error:
        what = f"cannot write: {error.strerror or error}"
        raise InputError(str(path), what, _HINTS.get(error.errno or 0, "")) from error


def _compare(contents: dict[str, bytes], folder: Folder) -> _Change:
    digests = {path: hashlib.sha256(data).hexdigest() for path, data in contents.items()}
    written = [p for p in digests if folder.present.get(p) != digests[p]]
    gone = [p for p in folder.listed if p not in contents and p in folder.present]
    # A file that is in the way and not of the last export was made by hand as well.
    edited = [
        p for p in {*written, *gone} - {MANIFEST} if p in folder.present and folder.present[p] != folder.listed.get(p)
    ]
    result = WriteResult(
        tuple(sorted(written)),
        tuple(sorted(p for p in digests if p not in written)),
        tuple(sorted(p for p in gone if p not in edited)),
    )
    return _Change(result, tuple(sorted(edited)))


def _refuse_difference(out: Path, result: WriteResult) -> None:
    parts = []
    if result.written:
        parts.append(f"would change {_names(result.written)}")
    if result.removed:
        parts.append(f"would remove {_names(result.removed)}")
    if parts:
        raise DiffersError(str(out), "; ".join(parts), "run without --check")


def _create(root: Path, contents: dict[str, bytes]) -> None:
    """A new folder: written under another name beside it, then renamed as a whole."""
    with _Undo() as undo:
        for parent in reversed([p for p in root.parents if not p.exists()]):
            parent.mkdir()
            undo.made.append(parent)
        stage = root.with_name(STAGE + secrets.token_hex(8))
        try:
            _write_all(stage, contents, tuple(contents))
            os.rename(stage, root)
        finally:
            shutil.rmtree(stage, ignore_errors=True)


def _update(root: Path, contents: dict[str, bytes], result: WriteResult) -> None:
    """Replace, add and remove files of a folder; the manifest last, so that an interrupted write is seen as one."""
    for stale in root.glob(STAGE + "*"):
        shutil.rmtree(stale, ignore_errors=True)
    # Inside the folder, which may be a file system of its own or stand in one that is read-only.
    stage = root / (STAGE + secrets.token_hex(8))
    undo = _Undo()
    try:
        with undo:
            _write_all(stage / "new", contents, result.written)
            for path in (*result.written, *result.removed):
                if os.path.lexists(root / path):
                    _back_up(root / path, stage / "old" / path)
            for path in sorted(result.written, key=lambda p: p == MANIFEST):
                undo.make_parents(root, path)
                undo.replaces(root / path, stage / "old" / path)
                os.replace(stage / "new" / path, root / path)
            for path in result.removed:
                undo.replaces(root / path, stage / "old" / path)
                (root / path).unlink()
    except OSError as error:
        if undo.failed:
            hint = f"the old files are in {stage / 'old'}"
            raise InputError(str(root), "cannot write, and cannot restore what was there", hint) from error
        raise
    finally:
        if not undo.failed:
            shutil.rmtree(stage, ignore_errors=True)
    for path in result.removed:
        _remove_empty_parents(root, path)


class _Undo:
    """Takes back what was done to a folder when the block ends with an exception of any kind."""

    def __init__(self) -> None:
        self.made: list[Path] = []
        self.failed = False
        self._moved: list[tuple[Path, Path]] = []

    def make_parents(self, root: Path, path: str) -> None:
        """The folders between ``root`` and ``path``."""
        for parent in reversed([p for p in (root / path).parents if p != root and root in p.parents]):
            if not parent.exists():
                parent.mkdir()
                self.made.append(parent)

    def replaces(self, path: Path, backup: Path) -> None:
        """``path`` is about to change; its old state is ``backup``, or nothing if there is no such file."""
        self._moved.append((path, backup))

    def __enter__(self) -> _Undo:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if error is None:
            return
        for path, backup in reversed(self._moved):
            try:
                if backup.exists():
                    os.replace(backup, path)
                else:
                    path.unlink(missing_ok=True)
            except OSError:
                self.failed = True  # the backups stay on the disk
        for made in reversed(self.made):
            with contextlib.suppress(OSError):
                made.rmdir()


def _write_all(stage: Path, contents: dict[str, bytes], paths: Sequence[str]) -> None:
    stage.mkdir(parents=True)
    for path in paths:
        (stage / path).parent.mkdir(parents=True, exist_ok=True)
        _write_new(stage / path, contents[path])


def _write_new(path: Path, data: bytes) -> None:
    """A new file with the permissions that the user's umask leaves; never through a link, never over a file."""
    with open(path, "xb") as stream:
        stream.write(data)


def _back_up(path: Path, backup: Path) -> None:
    """A second name for the file, or a copy where the file system has no hard links."""
    backup.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.link(path, backup, follow_symlinks=False)
    except OSError:
        shutil.copy2(path, backup, follow_symlinks=False)


def _remove_empty_parents(root: Path, path: str) -> None:
    for parent in (root / path).parents:
        if parent == root:
            return
        try:
            parent.rmdir()
        except OSError:  # not empty
            return
