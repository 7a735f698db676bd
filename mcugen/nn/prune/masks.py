"""Which elements of each value are gone, and what is known of every element: the two things that trimmers share."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from mcugen.core.types import Array

Shape3 = tuple[int, int, int]


@dataclass(frozen=True, slots=True, eq=False)
class Bounds:
    """``low`` and ``high``: int64 (count,), element by element as in memory; every value lies between them."""

    low: Array
    high: Array

    @property
    def constant(self) -> Array:
        """(count,) bool: elements that have one value whatever the input is."""
        return np.asarray(self.low == self.high)


class Gone:
    """For each value (count,) bool: elements that the smaller net does without. Elements come back, never leave.

    So the order in which trimmers restore elements does not matter: the end is the largest set that all allow.
    """

    def __init__(self, masks: dict[str, Array]) -> None:
        self._masks = masks
        self.changed = False

    def of(self, value: str) -> Array:
        """The mask of a value."""
        return self._masks[value]

    def all(self, values: Iterable[str]) -> bool:
        """Whether nothing is left of these values."""
        return all(bool(self._masks[v].all()) for v in values)

    def any(self, values: Iterable[str]) -> bool:
        """Whether something of these values is gone."""
        return any(bool(self._masks[v].any()) for v in values)

    def restore(self, value: str, kept: Array) -> None:
        """Elements where ``kept`` (count,) is true are not gone."""
        mask = self._masks[value]
        if (mask & kept).any():
            self._masks[value] = mask & ~kept
            self.changed = True

    def restore_channels(self, value: str, kept: Array, shape: Shape3, planar: bool) -> None:
        """The same for whole channels (C,) of an image."""
        _, h, w = shape
        pixels = np.repeat(kept, h * w) if planar else np.tile(kept, h * w)
        self.restore(value, pixels)

    def channels(self, value: str, shape: Shape3, planar: bool) -> Array:
        """(C,) bool: channels of an image of which nothing is left."""
        return np.asarray(by_channel(self._masks[value], shape, planar).all(axis=1))


def by_channel(flat: Array, shape: Shape3, planar: bool) -> Array:
    """(count,) as in memory to (C, H * W)."""
    c, h, w = shape
    return flat.reshape(c, h * w) if planar else flat.reshape(h * w, c).T


def as_memory(image: Array, planar: bool) -> Array:
    """(C, H, W) to (count,) as in memory."""
    return image.reshape(-1) if planar else image.transpose(1, 2, 0).reshape(-1)


def kept_shape(shape: tuple[int, ...], gone: Array) -> tuple[int, ...]:
    """The shape of what is left: one axis shorter where the mask is the same along all others, else a sequence."""
    mask = gone.reshape(shape)
    for axis, n in enumerate(shape):
        one = np.moveaxis(mask, axis, 0).reshape(n, -1)
        if (one == one[:, :1]).all():
            return (*shape[:axis], int(n - one[:, 0].sum()), *shape[axis + 1 :])
    return (int(gone.size - gone.sum()),)
