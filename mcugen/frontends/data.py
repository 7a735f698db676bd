"""Files of samples: .npy, .npz and text tables to one array, a sample a row; and samples to the C input type.

Text tables are read in ``csv_table``. Pickled arrays are refused: loading one runs code.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mcugen.core.types import Array, DType, Feature
from mcugen.errors import InputError
from mcugen.frontends.csv_table import TARGETS, codes_of_labels, read_text
from mcugen.trees.signals import InputSpec, Signal

TEXT = (".csv", ".tsv", ".txt")
BINARY = (".npy", ".npz")
_X_KEYS = ("x", "X", "data")


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """``x`` (N, F) in the file's own type, native byte order; ``y`` (N,) labels or targets, if the file has them.

    Text without a fraction, an exponent or an empty cell is int64, other text float64. ``notes``: what was read in one
    of two possible ways.
    """

    x: Array
    y: Array | None
    notes: tuple[str, ...] = ()

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of x."""
        return self.x.dtype


def load_table(path: Path, features: Sequence[Feature]) -> Table:
    """The samples in ``path``, columns in the model's order.

    .npy: (N, F), or one sample (F,). .npz: key x, X or data, or the only array; y, label or target beside it.
    Text: ``csv_table.read_text``. InputError, in one line, for anything else: wrong width, text, complex, no rows.
    """
    file, kind = str(path), path.suffix.lower()
    if kind not in TEXT + BINARY:
        raise InputError(file, "not a kind of data file that is read here", f"give one of {', '.join(TEXT + BINARY)}")
    if path.is_dir():
        raise InputError(file, "this is a folder, not a file")
    if not path.exists():
        raise InputError(file, "there is no such file")
    try:
        if not path.stat().st_size:
            raise InputError(file, "is empty")
        x, y = read_text(path, features) if kind in TEXT else _read_numpy(path)
    except OSError as e:
        raise InputError(file, f"cannot be read: {e.strerror or e}") from None
    x = _as_samples(x, len(features), file)
    if y is not None:
        y = _as_labels(y, len(x), file)
    notes: tuple[str, ...] = ()
    if kind in TEXT:
        x, notes = codes_of_labels(x, features, file)
    return Table(x, y, notes)


def _read_numpy(path: Path) -> tuple[Array, Array | None]:
    file = str(path)
    try:
        loaded = np.load(path, allow_pickle=False)
        if isinstance(loaded, np.ndarray):
            return loaded, None
        with loaded:
            keys = list(loaded.keys())
            x_key, y_key = _choose(keys, file)
            return loaded[x_key], loaded[y_key] if y_key else None
    except (OSError, InputError):
        raise
    except Exception as e:  # numpy, zipfile and zlib each have errors of their own for a damaged file
        # Of what is no array file at all numpy says "pickled data" too.
        if "Object arrays" in str(e):
            what, hint = "holds Python objects, which are not loaded", "save an array of numbers"
            raise InputError(file, what, hint) from None
        raise InputError(file, f"is not a file of numpy arrays: {e}", "write it with numpy.save") from None


def _choose(keys: list[str], file: str) -> tuple[str, str | None]:
    """The keys of x and of y."""
    y_key = next((k for k in keys if k.casefold() in TARGETS), None)
    x_key = next((k for k in _X_KEYS if k in keys), None)
    if x_key is None:
        others = [k for k in keys if k != y_key]
        if len(others) != 1:
            found = ", ".join(keys) or "no array"
            raise InputError(file, f"holds {found}", "call the array of samples x")
        x_key = others[0]
    return x_key, y_key


def _as_samples(x: Array, n_features: int, file: str) -> Array:
    """(N, F) numbers in native byte order."""
    if x.dtype.kind not in "biuf":
        kinds = {"c": "complex numbers", "U": "text", "S": "text", "V": "records", "M": "dates", "m": "time spans"}
        raise InputError(file, f"holds {kinds.get(x.dtype.kind, str(x.dtype))}, not real numbers")
    if x.ndim == 1 and n_features in (1, x.size):
        x = x.reshape(-1, n_features)
    if x.ndim != 2:
        shape = f"shape {x.shape}" if x.ndim else "a single number"
        raise InputError(file, f"{shape}, the model needs (N, {n_features})", "one row a sample, one column a feature")
    if x.shape[1] != n_features:
        raise InputError(file, f"{x.shape[1]} columns, the model has {n_features} features")
    if not len(x):
        raise InputError(file, "holds no samples")
    if x.dtype.kind == "b":
        return x.astype(np.uint8)
    if x.dtype.kind == "f" and x.dtype.itemsize > 8:
        return x.astype(np.float64)
    return np.ascontiguousarray(x, x.dtype.newbyteorder("="))


def _as_labels(y: Array, rows: int, file: str) -> Array:
    if y.ndim == 2 and y.shape[1] == 1:
        y = y[:, 0]
    if y.ndim != 1 or len(y) != rows:
        raise InputError(file, f"the labels have shape {y.shape}, the samples have {rows} rows")
    if y.dtype.kind not in "biufU":
        raise InputError(file, f"labels of type {y.dtype} are not read")
    return y


def as_input(x: Array, spec: InputSpec, where: str, features: Sequence[Feature] = ()) -> tuple[Array, tuple[str, ...]]:
    """(N, F) samples -> the same in the C input type, (N, F), and warnings. ``features``: names for messages.

    The C type passes as it is. For an integer type, integers are counts and pass if the type holds them; floats are the
    model's values: the nearest count is taken (ties to the even one), and NaN becomes the ``missing`` code. For a float
    type all is rounded to nearest. InputError with feature and row (from 0) for a value that the type has no count for.
    """
    if x.dtype == spec.dtype.np:
        return np.ascontiguousarray(x), ()
    names = [f.name for f in features] or [str(i) for i in range(x.shape[1])]
    if spec.dtype.is_float:
        return _to_float(x, spec.dtype, where)
    if x.dtype.kind == "f":
        return _to_counts(np.asarray(x, np.float64), spec, names, where)
    bad = (x < spec.dtype.min) | (x > spec.dtype.max)
    _refuse(bad, x, names, where, f"is outside of {_range(spec.dtype)}")
    out = np.ascontiguousarray(x, spec.dtype.np)
    if any(s.scale is not None for s in spec.signals):
        text = f"{where}: {x.dtype.name} samples are taken as {spec.dtype.label} counts, not as scaled values"
        return out, (f"{text} (write scaled values as floats)",)
    return out, ()


def _to_float(x: Array, dtype: DType, where: str) -> tuple[Array, tuple[str, ...]]:
    with np.errstate(over="ignore", under="ignore"):
        out = np.ascontiguousarray(x, dtype.np)
    if x.dtype.kind == "f":
        changed = (out != x) & ~np.isnan(x)
    elif x.dtype.itemsize == 8 and np.abs(out).max() >= 2.0**53:  # numpy would compare these as floats
        changed = np.array([int(a) != b for a, b in zip(out.ravel(), x.ravel().tolist(), strict=True)])
    else:
        changed = out != x.astype(np.float64)
    if not changed.any():
        return out, ()
    beyond = int((np.isinf(out) & changed).sum())
    text = f"{where}: {int(changed.sum())} of {x.size} values were rounded to {dtype.label}"
    return out, (f"{text}, {beyond} of them to infinity" if beyond else text,)


def _range(dtype: DType) -> str:
    return f"{dtype.label}, {dtype.min} to {dtype.max}"


def _to_counts(x: Array, spec: InputSpec, names: Sequence[str], where: str) -> tuple[Array, tuple[str, ...]]:
    dtype = spec.dtype
    out = np.empty(x.shape, np.int64)
    rounded = 0
    for i, signal in enumerate(spec.signals):
        value = x[:, i]
        nan = np.isnan(value)
        if nan.any() and signal.missing is None:
            hint = "give a missing code in --spec"
            _refuse(nan, value, names[i : i + 1], where, f"has no {dtype.label} that stands for it", hint)
        count = nearest_count(np.where(nan, 0.0, value), dtype, signal)
        beyond = ((count < dtype.min) | (count > dtype.max)) & ~nan
        what = f"needs a count outside of {_range(dtype)}"
        _refuse(beyond, value, names[i : i + 1], where, what)
        if signal.missing is not None:
            what = f"becomes {signal.missing}, the code for a missing value"
            _refuse((count == signal.missing) & ~nan, value, names[i : i + 1], where, what)
        if signal.scale is None:
            rounded += int(((count != value) & ~nan).sum())
        out[:, i] = np.where(nan, signal.missing or 0, count)
    warnings = (f"{where}: {rounded} of {x.size} values were rounded to whole numbers",) if rounded else ()
    return out.astype(dtype.np), warnings


def nearest_count(value: Array, dtype: DType, signal: Signal) -> Array:
    """int64 counts whose value is nearest to ``value`` (any shape, no NaN); of two equally near ones the even one.

    A value beyond the ends of the type gives ``dtype.min - 1`` or ``dtype.max + 1``. Where several counts have the
    same value, any of them is returned.
    """
    low_end, high_end = dtype.min - 1, dtype.max + 1
    if signal.scale is None:
        return np.clip(np.rint(value), low_end, high_end).astype(np.int64)
    bare = Signal(signal.scale, signal.offset, None, signal.single)
    falling = signal.scale < 0

    def below(count: Array, target: Array) -> Array:
        v = bare.value(count.astype(np.float64))
        return v > target if falling else v < target

    # Bisected, not divided: (value - offset) / scale is off by whole counts where the map's own rounding is coarse.
    low = np.full(value.shape, low_end, np.int64)
    high = np.full(value.shape, high_end, np.int64)
    while np.any(low < high):
        middle = (low + high) >> 1
        less = below(middle, value) & (low < high)
        low = np.where(less, middle + 1, low)
        high = np.where(less, high, middle)
    before = np.maximum(low - 1, low_end)
    with np.errstate(over="ignore", invalid="ignore"):
        up = np.abs(bare.value(low.astype(np.float64)) - value)
        down = np.abs(value - bare.value(before.astype(np.float64)))
    take_before = (down < up) | ((down == up) & (before % 2 == 0))
    return np.where(take_before, before, low)


def _refuse(bad: Array, x: Array, names: Sequence[str], where: str, what: str, hint: str = "") -> None:
    """InputError for the first bad sample: ``bad`` and ``x`` (N, F), or (N,) of the one feature."""
    if not bad.any():
        return
    row, column = (int(k) for k in np.argwhere(bad.reshape(len(bad), -1))[0])
    value = x.reshape(len(x), -1)[row, column]
    place = f"{where}: feature '{names[column]}', row {row}"
    more = int(bad.sum()) - 1
    also = f" (and {more} more)" if more else ""
    raise InputError(place, f"{value.item()!r} {what}{also}", hint)
