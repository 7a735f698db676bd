"""What can go wrong, as values a user can act on. One subclass per exit code; nothing else lives here."""

from __future__ import annotations

from typing import ClassVar


class McugenError(Exception):
    """A fault with a place, a reason and a remedy: ``where: what (hint)`` on one line.

    ``where`` names a file, a line or an item of it; ``hint`` says what the user can do and may be empty.
    """

    exit_code: ClassVar[int] = 70

    def __init__(self, where: str, what: str, hint: str = "") -> None:
        self.where = one_line(where)
        self.what = one_line(what)
        self.hint = one_line(hint)
        text = f"{self.where}: {self.what}" if self.where else self.what
        super().__init__(f"{text} ({self.hint})" if self.hint else text)


class DiffersError(McugenError):
    """The C and its reference give other bits, or a check failed."""

    exit_code = 1


class InputError(McugenError):
    """A file, an option or an argument that is wrong."""

    exit_code = 2


class UnsupportedError(McugenError):
    """A model that is well formed and that mcugen cannot translate."""

    exit_code = 3


class DoesNotFitError(McugenError):
    """The plan needs more memory than the board has."""

    exit_code = 4


class InternalError(McugenError):
    """A fault of mcugen itself."""

    exit_code = 70

    def __init__(self, where: str, what: str) -> None:
        super().__init__(where, what, "this is a fault in mcugen, please report it")


def one_line(text: str) -> str:
    """``text`` with control characters and line ends made visible, so that an error stays on one line."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)
