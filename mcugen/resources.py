"""Where the hand-written C, the linker templates and the board files are: in a checkout or in a wheel."""

from __future__ import annotations

from pathlib import Path

from mcugen.errors import InternalError

_PACKAGE = Path(__file__).resolve().parent


def resource_dir(name: str) -> Path:
    """The folder ``runtime_c``, ``linker`` or ``boards``."""
    for base in (_PACKAGE / "_resources", _PACKAGE.parent):
        if (base / name).is_dir():
            return base / name
    raise InternalError(name, "a folder of the installation is missing")
