"""Which of the exported C files a model needs."""

from __future__ import annotations

import re
from collections.abc import Mapping

#: Functions of the runtime: where they are named, and where a file defines them (at the start of a line, with a body).
_NAMED = re.compile(r"\bmcg_\w+(?=\s*\()")
_DEFINED = re.compile(
    r"^(?:MCG_\w+(?:\([^)]*\))?\s+)*(?!static\b)[A-Za-z_][\w\s*]*?\b(mcg_\w+)\s*\([^;{}]*\)\s*\{", re.MULTILINE
)
#: Inside of a body, in a header: calls of inline functions, but no declarations, which start at the margin.
_BODIES = re.compile(r"^[ \t]+.*$", re.MULTILINE)
_INCLUDED = re.compile(r'^#include "(?:mcugen/)?(\w+\.h)"', re.MULTILINE)


def sources_of(files: Mapping[str, str | bytes]) -> list[str]:
    """The C files of an export that this model needs: its own, and the parts of the runtime that they call.

    The folder carries the whole runtime; a firmware's linker drops what is not called, and a host build need not
    compile it.
    """
    runtime = {path: _text(files[path]) for path in files if path.startswith("mcugen/") and path.endswith(".c")}
    headers = {path.rsplit("/", 1)[-1]: _text(files[path]) for path in files if path.endswith(".h")}
    owner = {name: path for path, text in runtime.items() for name in _DEFINED.findall(text)}
    own = [path for path in files if path.endswith(".c") and path not in runtime]
    called: set[str] = set()
    for path in own:
        called |= _calls(_text(files[path]), headers)
    # Every firmware calls mcg_sections_init, though no generated file does.
    needed = {path for path in runtime if path.endswith("/mcg_sections.c")}
    while called:
        found = {owner[name] for name in called if name in owner} - needed
        needed |= found
        called = {name for path in found for name in _calls(runtime[path], headers)}
    return sorted([*own, *needed])


def _calls(text: str, headers: Mapping[str, str]) -> set[str]:
    """Functions of the runtime that a file names, and those that inline functions of its headers call."""
    names, waiting, seen = set(_NAMED.findall(text)), _INCLUDED.findall(text), set()
    while waiting:
        header = waiting.pop()
        if header in headers and header not in seen:
            seen.add(header)
            names |= {name for line in _BODIES.findall(headers[header]) for name in _NAMED.findall(line)}
            waiting += _INCLUDED.findall(headers[header])
    return names


def _text(content: str | bytes) -> str:
    return content.decode("utf-8", "replace") if isinstance(content, bytes) else content
