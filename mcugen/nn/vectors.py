"""Inputs on which the C of a net must repeat its reference: the user's, random ones, and the ends of the type."""

from __future__ import annotations

import numpy as np

from mcugen.core.types import Array, TensorType

#: Rows of the user's that are taken, and rows of noise.
MOST_OWN, _RANDOM = 24, 12


def net_vectors(kind: TensorType, own: Array | None, seed: int = 0) -> Array:
    """(N, *shape) inputs of the net's type: at most a few dozen, for nets take long in numpy.

    Uniform noise reaches clamps that real data never reach; rows of one extreme, of both in turn, and single peaks show
    overflow, padding and index faults.
    """
    rng = np.random.default_rng(seed)
    dtype, shape = kind.dtype, kind.shape
    rows: list[Array] = []
    if dtype.is_float:
        rows += [rng.normal(0.0, 1.0, (_RANDOM, *shape)), np.zeros((1, *shape)), np.ones((1, *shape))]
        # Large ones as well, for clamps and for the ends of sigmoid and tanh.
        rows += [-np.ones((1, *shape)), rng.normal(0.0, 30.0, (2, *shape))]
    else:
        low, high = dtype.min, dtype.max
        zero = kind.q.zero_point if kind.q is not None else 0
        rows.append(rng.integers(low, high + 1, (_RANDOM, *shape)))
        rows += [np.full((1, *shape), v) for v in (low, high, zero)]
        turns = np.where(np.arange(kind.count) % 2 == 0, low, high).reshape(1, *shape)
        peaks = np.full((2, kind.count), zero)
        peaks[0, 0], peaks[1, -1] = high, low
        rows += [turns, peaks.reshape(2, *shape)]
    if own is not None:
        rows.insert(0, own[:MOST_OWN])
    return np.concatenate(rows).astype(dtype.np)
