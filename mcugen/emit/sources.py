"""Which of the exported C files a model needs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import PurePosixPath

_INCLUDE = re.compile(r'^\s*#\s*include\s+"(?:mcugen/)?([A-Za-z0-9_.]+)"', re.MULTILINE)


def sources_of(files: Mapping[str, str | bytes]) -> list[str]:
    """The C files of an export that this model needs: its own, and the parts of the runtime whose headers they reach.

    The folder carries the whole runtime; a firmware's linker drops what is not called, and a host build need not
    compile it.
    """
    includes = {PurePosixPath(path).name: _includes(files[path]) for path in files if path.endswith((".c", ".h"))}
    runtime = [path for path in files if path.startswith("mcugen/") and path.endswith(".c")]
    # A runtime file's first include is the header that declares its functions.
    declares = {path: includes[PurePosixPath(path).name][0] for path in runtime}
    own = [path for path in files if path.endswith(".c") and path not in runtime]
    reached: set[str] = set()
    waiting = [PurePosixPath(path).name for path in own]
    while waiting:
        name = waiting.pop()
        for header in includes.get(name, []):
            if header not in reached:
                reached.add(header)
                waiting += [header, *(PurePosixPath(p).name for p, h in declares.items() if h == header)]
    return sorted([*own, *(path for path in runtime if declares[path] in reached)])


def _includes(text: str | bytes) -> list[str]:
    content = text.decode("utf-8", "replace") if isinstance(text, bytes) else text
    return _INCLUDE.findall(content)
