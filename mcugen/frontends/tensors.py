"""Samples for nets from .npz and .npy files: one sample a row, shaped as in the model file without its batch axis."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from mcugen.core.types import Array, TensorType
from mcugen.errors import InputError
from mcugen.frontends.named_file import read_bytes

_KEYS = ("x", "X", "input", "data")


def load_samples(path: Path, shape: tuple[int, ...]) -> Array:
    """(N, *shape) of the file's own element type. InputError where it holds something else."""
    where = str(path)
    read_bytes(path)
    try:
        loaded = np.load(path, allow_pickle=False)
    except (ValueError, OSError, EOFError) as e:
        raise InputError(
            where, f"is no numpy file of plain numbers ({type(e).__name__})", "save it with numpy.savez"
        ) from None
    if isinstance(loaded, np.lib.npyio.NpzFile):
        with loaded:
            keys = [k for k in _KEYS if k in loaded.files] or list(loaded.files)
            if not keys:
                raise InputError(where, "holds no array", "save the samples under the key x")
            if keys[0] not in _KEYS and len(keys) > 1:
                raise InputError(where, f"holds {', '.join(keys)}", "save the samples under the key x")
            data = np.asarray(loaded[keys[0]])
    else:
        data = np.asarray(loaded)
    if data.dtype.kind not in "fiub":
        raise InputError(where, f"holds {data.dtype}, not numbers")
    return _shaped(data, shape, where)


def load_samples_of(
    path: Path, keys: Sequence[tuple[str, ...]], shapes: Sequence[tuple[int, ...]]
) -> tuple[Array, ...]:
    """(N, *shape) for each of several inputs from an npz; ``keys``: the names that each may have there.

    InputError where one is missing, or they differ in their count of samples.
    """
    where = str(path)
    read_bytes(path)
    try:
        loaded = np.load(path, allow_pickle=False)
    except (ValueError, OSError, EOFError) as e:
        what = f"is no numpy file of plain numbers ({type(e).__name__})"
        raise InputError(where, what, "save it with numpy.savez") from None
    names = ", ".join(k[0] for k in keys)
    if not isinstance(loaded, np.lib.npyio.NpzFile):
        raise InputError(where, "holds one array", f"save an npz with a key for each input: {names}")
    found = []
    with loaded:
        for options, shape in zip(keys, shapes, strict=True):
            key = next((k for k in options if k in loaded.files), None)
            if key is None:
                raise InputError(where, f"has no key {options[0]}", f"save an npz with a key for each input: {names}")
            data = np.asarray(loaded[key])
            if data.dtype.kind not in "fiub":
                raise InputError(where, f"{key} holds {data.dtype}, not numbers")
            found.append(_shaped(data, shape, f"{where}, {key}"))
    counts = sorted({len(x) for x in found})
    if len(counts) > 1:
        raise InputError(where, f"holds {' and '.join(map(str, counts))} samples", "give every input as many")
    return tuple(found)


def _shaped(data: Array, shape: tuple[int, ...], where: str) -> Array:
    if data.shape == shape:
        data = data[None]
    if data.ndim == len(shape) + 2 and data.shape[1] == 1 and data.shape[2:] == shape:
        data = data[:, 0]  # saved with the batch axis of 1 that the model file has
    if data.shape[1:] != shape and data.ndim == 2 and data.shape[1] == int(np.prod(shape)):
        data = data.reshape(-1, *shape)
    if data.ndim < 1 or data.shape[1:] != shape:
        raise InputError(where, f"samples have the shape {data.shape[1:]}, the net takes {shape}")
    if not len(data):
        raise InputError(where, "holds no samples", "give a few dozen that are typical")
    return data


def as_net_input(x: Array, kind: TensorType, where: str) -> Array:
    """Samples in the C type: that type as it is, floats by the input's scale; anything else is refused."""
    if x.dtype == kind.dtype.np:
        return x
    if x.dtype.kind == "f" and kind.dtype.is_float:
        return x.astype(kind.dtype.np)
    if x.dtype.kind == "f" and kind.q is not None:
        if np.isnan(x).any():
            raise InputError(where, "holds NaN, which has no integer", "remove it")
        q = np.rint(x.astype(np.float64) / kind.q.scale) + kind.q.zero_point
        return np.asarray(np.clip(q, kind.dtype.min, kind.dtype.max)).astype(kind.dtype.np)
    fits = x.dtype.kind in "iu" and not kind.dtype.is_float
    if fits and x.min() >= kind.dtype.min and x.max() <= kind.dtype.max:
        return x.astype(kind.dtype.np)
    raise InputError(
        where, f"holds {x.dtype}, the net takes {kind.dtype.label}", "give floats or the integers themselves"
    )
