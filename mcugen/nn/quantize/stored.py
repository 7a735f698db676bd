"""How values lie in memory: a value's physical axes are its logical ones in some order.

Reshapes and transposes that only change the reading cost nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np

from mcugen.core.types import Array

Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Stored:
    """``name``: the machine value. Its memory is the array of shape ``shape`` with the axes in ``order``.

    ``logical``: what the source calls the shape; it has the elements of ``shape`` in the same row-major sequence.
    """

    name: str
    logical: Shape
    shape: Shape
    order: tuple[int, ...]

    @property
    def physical(self) -> Shape:
        """The shape in memory."""
        return tuple(self.shape[a] for a in self.order)

    @property
    def is_plain(self) -> bool:
        """Whether memory has the elements in the logical sequence. Axes of length 1 don't matter."""
        axes = [a for a in self.order if self.shape[a] != 1]
        return axes == sorted(axes)

    def sequence(self) -> Array:
        """(K,) for each place in memory the index of its element in the logical sequence."""
        return np.arange(prod(self.shape)).reshape(self.shape).transpose(self.order).reshape(-1)

    def reshaped(self, logical: Shape) -> Stored:
        """The same memory, read with another logical shape."""
        if self.is_plain:
            return Stored(self.name, logical, logical, tuple(range(len(logical))))
        squeezed = _regroup(self.shape, self.order, logical)
        if squeezed is not None:
            return Stored(self.name, logical, logical, squeezed)
        return Stored(self.name, logical, self.shape, self.order)

    def transposed(self, perm: tuple[int, ...]) -> Stored | None:
        """The same memory with logical axes permuted (new axis i is old axis perm[i]); None for a flattened value."""
        if self.logical != self.shape:
            return None
        new = tuple(self.shape[p] for p in perm)
        return Stored(self.name, new, new, tuple(perm.index(a) for a in self.order))


def _regroup(shape: Shape, order: tuple[int, ...], logical: Shape) -> tuple[int, ...] | None:
    """The order of ``logical`` where it differs from ``shape`` by axes of length 1 only."""
    old = [a for a in range(len(shape)) if shape[a] != 1]
    new = [a for a in range(len(logical)) if logical[a] != 1]
    if [shape[a] for a in old] != [logical[a] for a in new]:
        return None
    place = dict(zip(old, new, strict=True))
    kept = [place[a] for a in order if a in place]
    ones = [a for a in range(len(logical)) if a not in kept]
    return (*ones, *kept)


def plain(name: str, shape: Shape) -> Stored:
    """A value in its logical order."""
    return Stored(name, shape, shape, tuple(range(len(shape))))


def same_order(a: Stored, order: tuple[int, ...]) -> bool:
    """Whether memory already has the axes in ``order``, axes of length 1 apart."""
    if a.logical != a.shape:
        return False
    have = [x for x in a.order if a.shape[x] != 1]
    return have == [x for x in order if a.shape[x] != 1]
