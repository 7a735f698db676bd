"""Files that the user named, as bytes: what may be wrong with one, in one line."""

from __future__ import annotations

from pathlib import Path

from mcugen.errors import InputError


def read_bytes(path: Path) -> bytes:
    """The content of a file the user named."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise InputError(str(path), "there is no such file") from None
    except IsADirectoryError:
        raise InputError(str(path), "this is a folder, not a file") from None
    except OSError as e:
        raise InputError(str(path), f"cannot be read: {e.strerror or e}") from None
