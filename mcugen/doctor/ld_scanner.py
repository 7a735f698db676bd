"""Characters of a GNU ld script to words: comments, files that are included, and where one is, for messages.

ld has no single list of tokens: ``.text*`` is a name in one place and a product in another. So the parsers ask for the
kind of word that may stand where they are.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from mcugen.errors import InputError

#: As deep as ld itself goes.
_MAX_DEPTH = 10
_MAX_BYTES = 4_000_000
_BLANK = re.compile(r"(?:\s+|/\*.*?\*/|#[^\n]*)+", re.DOTALL)


@dataclass(slots=True)
class _Text:
    """One file: its name for messages, its text, and how far it has been read."""

    name: str
    text: str
    at: int = 0


@dataclass(slots=True)
class Scanner:
    """Reads a script and what it includes. ``folders``: where included files are looked for.

    ``given``: texts by name that stand for files, for tests and for scripts that are not on a disk.
    """

    folders: Sequence[Path]
    given: Mapping[str, str] = field(default_factory=dict)
    included: list[str] = field(default_factory=list)
    _stack: list[_Text] = field(default_factory=list)

    def enter(self, name: str, text: str) -> None:
        """Read ``text`` from here on; leave() goes back."""
        if len(self._stack) >= _MAX_DEPTH:
            raise InputError(self.where(), f"INCLUDE {name} is nested too deeply", "does a file include itself?")
        self._stack.append(_Text(name, text))

    def leave(self) -> None:
        """Go back to the file that included this one."""
        self._stack.pop()

    def include(self, name: str) -> None:
        """Read the file ``name`` from here on. InputError if it is in none of the folders."""
        if name in self.given:
            self.enter(name, self.given[name])
        else:
            path = next((f / name for f in self.folders if (f / name).is_file()), None)
            if path is None:
                raise InputError(self.where(), f"INCLUDE {name}: no such file", "name its folder with -L")
            self.enter(name, read_script(path))
        self.included.append(name)

    def where(self) -> str:
        """``file:line``."""
        if not self._stack:
            return "linker script"
        t = self._stack[-1]
        return f"{t.name}:{t.text.count(chr(10), 0, t.at) + 1}"

    def fail(self, what: str, hint: str = "") -> InputError:
        """An error at this place."""
        return InputError(self.where(), what, hint)

    def skip(self) -> None:
        """Over blanks and comments."""
        t = self._stack[-1]
        found = _BLANK.match(t.text, t.at)
        if found:
            t.at = found.end()
        if t.text.startswith("/*", t.at):
            raise self.fail("a comment has no end")

    @property
    def at_end(self) -> bool:
        """Whether the current file is used up."""
        self.skip()
        return self._stack[-1].at >= len(self._stack[-1].text)

    def rest(self) -> str:
        """A few characters from here on, for messages."""
        t = self._stack[-1]
        return t.text[t.at : t.at + 24].split("\n")[0].strip() or "the end of the file"

    def peek(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """What ``pattern`` matches here, behind blanks; nothing is consumed."""
        self.skip()
        t = self._stack[-1]
        return pattern.match(t.text, t.at)

    def take(self, pattern: re.Pattern[str]) -> str | None:
        """The text that ``pattern`` matches here, consumed; None if it does not match."""
        found = self.peek(pattern)
        if found is None:
            return None
        self._stack[-1].at = found.end()
        return found.group()

    def accept(self, mark: str) -> bool:
        """Consume ``mark`` if it stands here."""
        self.skip()
        t = self._stack[-1]
        if not t.text.startswith(mark, t.at):
            return False
        t.at += len(mark)
        return True

    def expect(self, mark: str, what: str) -> None:
        """Consume ``mark``, which must stand here; ``what`` is being read."""
        if not self.accept(mark):
            raise self.fail(f"{what}: {mark!r} is expected, not {self.rest()!r}")

    def balanced(self, what: str) -> str:
        """The text inside a pair of parentheses or braces that opens here, comments left out."""
        self.skip()
        t = self._stack[-1]
        pairs = {"(": ")", "{": "}"}
        closing = pairs.get(t.text[t.at : t.at + 1])
        if closing is None:
            raise self.fail(f"{what}: a parenthesis is expected, not {self.rest()!r}")
        opening, depth, parts = t.text[t.at], 0, []
        while True:
            found = _BLANK.match(t.text, t.at)
            if found:
                t.at = found.end()
                parts.append(" ")
                continue
            c = t.text[t.at : t.at + 1]
            if not c:
                raise self.fail(f"{what}: {closing!r} is missing")
            if c == '"':
                end = t.text.find('"', t.at + 1)
                if end < 0:
                    raise self.fail(f"{what}: a quote has no end")
                parts.append(t.text[t.at : end + 1])
                t.at = end + 1
                continue
            t.at += 1
            depth += (c == opening) - (c == closing)
            if depth == 0:
                return "".join(parts)[1:].strip()
            parts.append(c)


def read_script(path: Path) -> str:
    """The text of a script. InputError if it is not one: too large, not text, or written for a preprocessor."""
    try:
        data = path.read_bytes()
    except OSError as e:
        raise InputError(str(path), f"cannot be read: {e.strerror or e}") from None
    if len(data) > _MAX_BYTES or b"\0" in data:
        hint = "check-elf reads linked programs" if data.startswith(b"\x7fELF") else "give the .ld file"
        raise InputError(str(path), "is not a linker script", hint)
    text = data.decode("utf-8", "replace").removeprefix("\ufeff")
    directive = re.search(r"^[ \t]*#[ \t]*(?:include|define|if|ifdef|ifndef|elif|else|endif)\b", text, re.MULTILINE)
    if directive:
        line = text.count("\n", 0, directive.start()) + 1
        hint = "give what it becomes: gcc -E -P -x c with the flags of your build"
        raise InputError(f"{path}:{line}", "this script is written for the C preprocessor", hint)
    return text
