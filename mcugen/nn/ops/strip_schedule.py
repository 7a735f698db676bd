"""In what order layers that are computed together take their rows, and what memory that needs.

The same steps as ``mcg_strips_s8``. What the last layer computes next says which rows of the layers before are wanted,
and so on to the first; each layer that is wanted and finds its rows computes the next few. So no layer is ahead of its
readers by more than one call. A window drops rows only when it needs the room.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache


@dataclass(frozen=True, slots=True)
class StripLayer:
    """Rows of one layer. Row r is computed from rows ``r * stride - pad_top`` on, ``reach`` of them, of each value in
    ``reads`` (indices: the inputs of the run, then the output of each layer). A call takes ``rows`` rows, the last one
    what is left; not fewer than ``least`` are ever left."""

    reads: tuple[int, ...]
    height: int
    reach: int
    stride: int
    pad_top: int
    rows: int
    least: int = 1

    def row_from(self, row: int, height: int) -> int:
        """The first row that ``row`` is computed from, in a value of so many rows."""
        return min(max(row * self.stride - self.pad_top, 0), height)

    def row_to(self, end: int, height: int) -> int:
        """The end of the rows that all before row ``end`` are computed from."""
        return min(max((end - 1) * self.stride - self.pad_top + self.reach, 0), height)

    def call_to(self, end: int) -> int:
        """Where the call ends that begins at row ``end``."""
        to = end + self.rows
        return self.height if self.height - to < self.least else to


@dataclass(frozen=True, slots=True)
class Call:
    """Rows ``first`` to ``end``, exclusive, of a layer; before it ``moved`` rows of its window go up."""

    layer: int
    first: int
    end: int
    moved: int


@dataclass(frozen=True, slots=True)
class Schedule:
    """``calls`` in order; ``rows``: by layer, rows that its output keeps; ``behind[i]``: for each call of the last
    layer, where it ends, and the first row of input i that is read afterwards."""

    calls: tuple[Call, ...]
    rows: tuple[int, ...]
    behind: tuple[tuple[tuple[int, int], ...], ...]

    def most_rows(self, layer: int) -> int:
        """The rows of the largest call of a layer; 1 where all that its readers see is padding."""
        return max((c.end - c.first for c in self.calls if c.layer == layer), default=1)


@lru_cache(maxsize=4096)
def schedule_of(heights: tuple[int, ...], layers: tuple[StripLayer, ...]) -> Schedule:
    """``heights``: rows of the inputs."""
    inputs, count = len(heights), len(layers)
    last = inputs + count - 1
    tall = [*heights, *(s.height for s in layers)]
    end = [*heights, *([0] * count)]
    readers = [[k for k, s in enumerate(layers) if v in s.reads] for v in range(last + 1)]

    def kept(v: int) -> int:
        """The first row of a value that a layer still reads."""
        going = [c for c in readers[v] if end[inputs + c] < tall[inputs + c]]
        return min([end[v], *(layers[c].row_from(end[inputs + c], tall[v]) for c in going)])

    calls: list[tuple[int, int, int, int]] = []
    rows = [1] * count
    behind: list[list[tuple[int, int]]] = [[] for _ in heights]
    while end[last] < tall[last]:
        for k, to in _wanted(layers, inputs, tall, end):
            s, v = layers[k], inputs + k
            if all(end[x] >= s.row_to(to, tall[x]) for x in s.reads):
                keep = kept(v)
                rows[k] = max(rows[k], to - keep)
                calls.append((k, end[v], to, keep))
                end[v] = to
        for x in range(inputs):
            behind[x].append((end[last], kept(x)))
    return Schedule(_moving(calls, rows), (*rows[:-1], tall[last]), tuple(map(tuple, behind)))


def _wanted(layers: Sequence[StripLayer], inputs: int, tall: list[int], end: list[int]) -> list[tuple[int, int]]:
    """The layers whose next rows are wanted, and where those end, from the first to the last."""
    need = list(end)
    need[-1] += 1
    found = []
    for k in range(len(layers) - 1, -1, -1):
        s, v = layers[k], inputs + k
        if need[v] > end[v]:
            to = s.call_to(end[v])
            found.append((k, to))
            for x in s.reads:
                need[x] = max(need[x], s.row_to(to, tall[x]))
    return found[::-1]


def _moving(calls: list[tuple[int, int, int, int]], rows: list[int]) -> tuple[Call, ...]:
    """With how far windows of so many rows move: (layer, first, end, first that is kept)."""
    at, made = [0] * len(rows), []
    for k, first, to, keep in calls:
        moved = 0
        if k < len(rows) - 1 and to - at[k] > rows[k]:
            moved, at[k] = keep - at[k], keep
        made.append(Call(k, first, to, moved))
    return tuple(made)
