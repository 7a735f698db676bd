"""Names that a user wrote, looked up among those the model knows."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence

from mcugen.core.types import Feature

_POSITION = re.compile(r"(?:Column_|[xf])?([0-9]{1,6})", re.IGNORECASE)


def nearest(word: str, known: Iterable[str]) -> str:
    """A hint: the known name that ``word`` resembles, else the first few known names."""
    names = list(known)
    close = difflib.get_close_matches(word, names, 1)
    if not close:
        folded = {n.casefold(): n for n in reversed(names)}
        close = [folded[w] for w in difflib.get_close_matches(word.casefold(), folded, 1)]
    if close:
        return f"did you mean {close[0]}?"
    shown = ", ".join(names[:8]) + (", ..." if len(names) > 8 else "")
    return f"known: {shown}" if names else ""


def feature_positions(features: Sequence[Feature]) -> dict[str, int]:
    """Name -> position; of two features with one name the first."""
    return {f.name: i for i, f in reversed(list(enumerate(features)))}


def find_feature(name: str, positions: dict[str, int]) -> int | None:
    """The position of the feature called ``name``, or None. LightGBM stores a blank in a name as ``_``."""
    found = positions.get(name)
    return positions.get(re.sub(r"\s", "_", name)) if found is None else found


def feature_hint(name: str, features: Sequence[Feature]) -> str:
    """What the user may have meant by ``name``, which no feature has."""
    match = _POSITION.fullmatch(name)
    if match and int(match[1]) < len(features):
        return f"feature {int(match[1])} of the model is called '{features[int(match[1])].name}'"
    return nearest(name, (f.name for f in features))
