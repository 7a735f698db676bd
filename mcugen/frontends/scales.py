"""Integer inputs: whether whole numbers can be what a model saw, and scales for data in physical units.

A scale that is wrong costs accuracy without a word, so every one that is found is stated, and a model that saw
fractions is refused until the user gives a scale. How lattices are found is in ``lattice``.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence

import numpy as np

from mcugen.core.types import Array, DType, Feature
from mcugen.errors import InputError
from mcugen.frontends.data import nearest_count
from mcugen.frontends.lattice import Span, find_lattice, power_of_two
from mcugen.trees.forest import Forest
from mcugen.trees.signals import InputSpec, Signal

_HINT = "give a scale in --spec (1.0: the model was trained on these integers), or data in physical units in --calib"
_WIDE_HINT = "use --input-dtype float64, or give a scale in --spec"


def check_integer_inputs(
    forest: Forest, features: Sequence[Feature], spec: InputSpec, confirmed: Container[int]
) -> None:
    """Refuse integer inputs without a scale where the model cannot have been trained on such integers.

    Signs of fractions: a training range without whole ends, more than two thresholds between two neighbouring whole
    numbers (split points lie on whole numbers or half way between), thresholds elsewhere. And a training range, or
    thresholds, beyond the type. ``confirmed``: features that are not asked. InputError names the first feature.
    """
    if spec.dtype.is_float:
        return
    for i, feature in enumerate(features):
        if spec.signals[i].scale is not None or i in confirmed:
            continue
        rows = ~forest.categorical & (forest.feature == i)
        linear = forest.linear is not None and bool((forest.linear.feature == i).any())
        if not rows.any() and not linear:
            continue
        # inf splits off missing values and says nothing about the others.
        t = np.unique(forest.threshold[rows])
        t = t[np.isfinite(t)]
        fraction = _fraction(t, feature, forest.zero_band)
        if fraction:
            what = f"{fraction}; as plain {spec.dtype.label} its fractions would be lost"
            raise InputError(f"feature '{feature.name}'", what, _HINT)
        beyond = _beyond(t, feature, spec.dtype)
        if beyond:
            raise InputError(f"feature '{feature.name}'", beyond, _WIDE_HINT)


def _fraction(t: Array, feature: Feature, band: float) -> str:
    """Why the training data of a feature with distinct thresholds ``t`` were not whole; empty if they can be."""
    low, high = feature.low, feature.high
    ranged = low is not None and high is not None
    if low is not None and high is not None and not (low.is_integer() and high.is_integer()):
        return f"its training data range from {low:.9g} to {high:.9g}"
    inner = t[np.abs(t) > 2 * band]
    cells, counts = np.unique(np.floor(inner), return_counts=True)
    if counts.max(initial=0) > 2:
        k = int(np.argmax(counts))
        return f"{counts[k]} of its thresholds lie between {cells[k]:.0f} and {cells[k] + 1:.0f}"
    # LightGBM splits next to 0 within the zero band: of 0 and 1 it never makes 0.5.
    if band and ranged and max(abs(low or 0.0), abs(high or 0.0)) <= 1.0 and inner.size:
        return f"its training data range from {low:.9g} to {high:.9g}, and it has a threshold at {inner[0]:.9g}"
    # scikit-learn casts inputs to float32, which moves thresholds by half a place of that format.
    twice = 2.0 * inner
    places = np.spacing(np.maximum(np.abs(twice), 1.0).astype(np.float64 if band else np.float32))
    off = inner[np.abs(twice - np.rint(twice)) > 8.0 * places]
    # One such threshold may have been written by hand; where no range speaks for whole numbers it is enough.
    if off.size >= (3 if band else 1):
        return f"its threshold {off[0]:.9g} is not half way between two whole numbers"
    return ""


def _beyond(t: Array, feature: Feature, dtype: DType) -> str:
    """How the training data were beyond the type, if decisions depend on it."""
    outside = t[(t < dtype.min) | (t >= dtype.max)]
    low, high = feature.low, feature.high
    if not outside.size or (low is not None and high is not None and low >= dtype.min and high <= dtype.max):
        return ""
    ends = f"{dtype.label}, {dtype.min} to {dtype.max}"
    if low is None or high is None:
        return f"its threshold {outside[0]:.9g} is outside of {ends}"
    return f"its training data range from {low:.9g} to {high:.9g}, outside of {ends}"


def find_scales(
    x: Array,
    dtype: DType,
    features: Sequence[Feature],
    known: Mapping[int, Signal],
    *,
    codes: Mapping[int, int] | None = None,
    used: Container[int] | None = None,
    where: str = "--calib",
) -> tuple[dict[int, Signal], list[str]]:
    """The signal of every feature, for data ``x`` (N, F) in physical units, and a line for each that was found.

    ``known``: signals that the user gave; they come back as they are. ``codes``: codes for missing values that the
    user gave; where the data has NaN and there is none, one is reserved. ``used``: features that the model reads
    (default all); the others never cause an error. Float types need no scale. InputError with the feature's name for
    columns without values, with infinities, or with one value only.
    """
    found: dict[int, Signal] = {}
    lines: list[str] = []
    for i, feature in enumerate(features):
        if dtype.is_float or i in known:
            found[i] = known.get(i, Signal())
            continue
        code = (codes or {}).get(i)
        try:
            found[i], text = _find(x[:, i].astype(np.float64), dtype, code, f"{where}: feature '{feature.name}'")
        except InputError:
            if used is None or i in used:
                raise
            code = _code(dtype) if code is None and np.isnan(x[:, i]).any() else code
            found[i], text = Signal(missing=code), "not used by the model"
        lines.append(f"{feature.name}: {text}")
    return found, lines


def _code(dtype: DType) -> int:
    return dtype.min if dtype.min else dtype.max


def _find(column: Array, dtype: DType, code: int | None, place: str) -> tuple[Signal, str]:
    """The signal of one column (N,), and what to tell of it."""
    nan = np.isnan(column)
    values = np.unique(column[~nan]) + 0.0
    if not values.size:
        raise InputError(place, "has no values in this data", "give data with values, or a scale in --spec")
    if np.isinf(values).any():
        raise InputError(place, "has infinite values", "remove these rows, or give a scale in --spec")
    if values.size == 1:
        what = f"is {values[0]:.9g} in every row, which says nothing of its scale"
        raise InputError(place, what, "give data that varies, or a scale in --spec")
    if np.abs(values).max() > 1e290 or values[-1] - values[0] < np.finfo(np.float64).tiny:
        raise InputError(place, "has values that no scale can hold", "give a scale in --spec")
    if code is None and nan.any():
        code = _code(dtype)
        reserved = f"; {code} stands for a missing value"
    else:
        reserved = ""
    span = _usable(dtype, code)
    whole = bool((values == np.rint(values)).all())
    if whole and span.low <= values[0] and values[-1] <= span.high:
        return Signal(missing=code), f"{dtype.label} integers as they are{reserved}"
    signal = find_lattice(values, span) or power_of_two(values, span)
    signal = Signal(signal.scale, signal.offset, code, signal.single)
    return signal, _described(values, signal, dtype, span) + reserved


def _usable(dtype: DType, code: int | None) -> Span:
    """The counts that data may have: those on the larger side of the code for missing values."""
    if code is None or not dtype.min <= code <= dtype.max:
        return Span(dtype.min, dtype.max)
    if code - dtype.min > dtype.max - code:
        return Span(dtype.min, code - 1)
    return Span(code + 1, dtype.max)


def _described(values: Array, signal: Signal, dtype: DType, span: Span) -> str:
    """The map, its range and its worst rounding over the data."""
    bare = Signal(signal.scale, signal.offset, None, signal.single)
    worst = float(np.abs(bare.value(nearest_count(values, dtype, bare)) - values).max())
    ends = sorted(float(v) for v in bare.value(np.array([span.low, span.high])))
    offset = f" {'-' if signal.offset < 0 else '+'} {abs(signal.offset)!r}" if signal.offset else ""
    kind = " in float32" if signal.single else ""
    rounding = f"rounds the data by at most {worst:.3g}" if worst else "exact for all data"
    if 0.0 < worst < 1e-3 * abs(signal.scale or 1.0):
        rounding = f"fits all data to within {worst:.3g}"
    return f"value = {signal.scale!r} * {dtype.label}{offset}{kind}, from {ends[0]:.6g} to {ends[1]:.6g}, {rounding}"
