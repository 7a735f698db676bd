"""Packages of the extra ``board``, imported only when a board is used."""

from __future__ import annotations

import importlib
from typing import Any

from mcugen.errors import InputError


def optional(module: str) -> Any:
    """The module; InputError with the command that installs it."""
    try:
        return importlib.import_module(module)
    except ImportError as e:
        name = module.partition(".")[0]
        package = "pyelftools" if name == "elftools" else name
        raise InputError(
            "emulated board", f"the package {package} cannot be imported: {e}", "pip install 'mcugen[board]'"
        ) from None
