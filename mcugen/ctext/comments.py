"""Foreign text inside C comments: names and paths that users chose must not end a comment or trip a compiler."""

from __future__ import annotations

import re

#: Places where two characters may not meet: the ends of a comment, an opening inside one (-Wcomment), trigraphs.
_APART = re.compile(r"(?<=\*)(?=/)|(?<=/)(?=\*)|(?<=\?)(?=\?)")


def comment_text(text: str, limit: int | None = None) -> str:
    """``text`` as one line of printable ASCII that is safe inside ``/* */`` and after ``//``.

    Not for doc comments, where ``@`` and backslash are commands.

    Control characters, line ends and all that is not ASCII become escapes such as ``\\n`` and ``\\u00fc``. UTF-8
    would be valid, but some compilers read sources in the code page of the machine, where the bytes of a letter may
    swallow the line end; and gcc rejects bidirectional controls under -Werror. The manifest keeps the names as they
    are. ``limit``: the longest result in characters, an ellipsis included.
    """
    safe = "".join(c if " " <= c <= "~" else _escape(c) for c in text)
    safe = _APART.sub(" ", safe).strip()
    if safe.startswith(("*", "/")):  # "/" or "*" may stand before it
        safe = " " + safe
    if safe.endswith(("*", "/")):  # "/" or "*" may stand after it
        safe += " "
    if safe.endswith("\\"):  # before a line end, spaces or not, it would join the next line to this one
        safe = safe[:-1] + "\\x5c"
    if limit is not None and len(safe) > limit:
        safe = safe[: max(0, limit - 3)] + "..."
    return safe


def _escape(c: str) -> str:
    """``c`` as Python would write it; a lone surrogate too."""
    return c.encode("unicode_escape").decode("ascii")
