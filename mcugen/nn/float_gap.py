"""How far a float32 net in C is from the float net of the file, whose sums have double precision."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mcugen.core.passes import evaluate
from mcugen.core.types import Array, Model

#: The least magnitude that a difference is held against: the smallest normal float32.
_SMALLEST = 2.0**-126


@dataclass(frozen=True, slots=True)
class FloatGap:
    """On ``vectors`` inputs: the largest difference, as it is and relative to the largest output of its vector.

    For outputs that are indices: ``flips``, how many differ; else None. Vectors that overflow, in
    either net, are not counted.
    """

    vectors: int
    largest: float
    relative: float
    flips: int | None

    def text(self) -> str:
        """One line."""
        if self.flips is not None:
            return f"on {self.vectors} vectors: {self.flips} indices differ from the float net"
        return f"on {self.vectors} vectors: worst relative difference to the float net {self.relative:.2g}"


def float_gaps(source: Model, x: Sequence[Array], y: Sequence[Array]) -> FloatGap:
    """The float net on inputs ``x`` against outputs ``y``, (N, *shape) for each: the worst of the outputs."""
    with np.errstate(over="ignore", invalid="ignore"):
        real = evaluate(source, dict(zip(source.inputs, x, strict=True)))
    return worst_gap([gap_between(real[v], found) for v, found in zip(source.outputs, y, strict=True)])


def worst_gap(gaps: Sequence[FloatGap]) -> FloatGap:
    """The largest differences of several outputs."""
    flips = [g.flips for g in gaps if g.flips is not None]
    values = [g for g in gaps if g.flips is None]
    largest, relative = (max((getattr(g, k) for g in values), default=0.0) for k in ("largest", "relative"))
    return FloatGap(min(g.vectors for g in gaps), largest, relative, None if values else sum(flips))


def gap_between(real: Array, y: Array) -> FloatGap:
    """What the float net gives, ``real`` (N, *shape), against ``y``, what the C gives."""
    n = len(real)
    real, found = (v.reshape(n, -1).astype(np.float64) for v in (real, y))
    if y.dtype.kind == "i":
        return FloatGap(n, 0.0, 0.0, int(np.count_nonzero(real != found)))
    fine = (np.isfinite(real) & np.isfinite(found)).all(axis=1)
    gap = np.abs(found[fine] - real[fine]).max(axis=1, initial=0.0)
    size = np.abs(real[fine]).max(axis=1, initial=0.0)
    relative = gap / np.maximum(size, _SMALLEST)
    return FloatGap(int(fine.sum()), float(gap.max(initial=0.0)), float(relative.max(initial=0.0)), None)
