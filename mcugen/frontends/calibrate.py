"""What goes into x: the spec, the input type and the user's data together give the signal of every feature."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from mcugen.core.types import Array, DType, Feature, Model
from mcugen.frontends.data import as_input, load_table
from mcugen.frontends.scales import check_integer_inputs, find_scales
from mcugen.frontends.spec import SpecFile, mapped_features, resolve_spec
from mcugen.trees.forest import Forest
from mcugen.trees.signals import InputSpec


@dataclass(frozen=True, slots=True, eq=False)
class Calibration:
    """``spec`` of the inputs; the user's rows as the C sees them (``x``) and as the model does (``real``, float64).

    ``x`` and ``real`` are None without data. ``lines``: what was found out about the data, for the user.
    """

    spec: InputSpec
    x: Array | None = None
    real: Array | None = None
    lines: tuple[str, ...] = ()


def bind_signals(
    model: Model, forest: Forest, spec_file: SpecFile | None, input_dtype: str, calib: Path | None
) -> Calibration:
    """The signals of all features; InputError where integers cannot carry what the model was trained on.

    Data of a float type is in the model's units: for integer inputs without a map in the spec, it gives the scales.
    Data of an integer type is what the C will get.
    """
    dtype = None if input_dtype == "auto" else DType.of(input_dtype)
    spec = resolve_spec(model.features, spec_file, dtype)
    confirmed = set(mapped_features(model.features, spec_file))
    if calib is None:
        check_integer_inputs(forest, model.features, spec, confirmed)
        return Calibration(spec)
    table = load_table(calib, model.features)
    lines: list[str] = []
    used = np.unique(forest.feature)
    physical = table.x.dtype.kind == "f"
    if physical and not spec.dtype.is_float:
        known = {i: spec.signals[i] for i in confirmed}
        codes = {i: s.missing for i, s in enumerate(spec.signals) if s.missing is not None}
        found, lines = find_scales(
            table.x, spec.dtype, model.features, known, codes=codes, used=set(used.tolist()), where=str(calib)
        )
        signals = tuple(found.get(i, s) for i, s in enumerate(spec.signals))
        spec = replace(spec, signals=signals)
    check_integer_inputs(forest, model.features, spec, confirmed)
    x, warnings = as_input(table.x, spec, str(calib), model.features)
    real = np.asarray(table.x, np.float64) if physical else spec.values(x)
    strange = _strange(real, model.features, used, str(calib))
    return Calibration(spec, x, real, (*table.notes, *lines, *warnings, *strange))


def _strange(real: Array, features: Sequence[Feature], used: Array, where: str) -> tuple[str, ...]:
    """A line where most values of a feature that the trees read lie outside of what the model was trained on.

    ``real`` (N, F): in the model's unit, or so the user thinks; ``used``: the numbers of these features.
    """
    found = []
    for i in used.tolist():
        low, high = features[i].low, features[i].high
        values = real[:, i][np.isfinite(real[:, i])]
        if low is None or high is None or not values.size:
            continue
        outside = int(np.count_nonzero((values < low) | (values > high)))
        if 2 * outside > values.size:
            found.append((features[i].name, outside, values.size, low, high))
    if not found:
        return ()
    name, outside, count, low, high = found[0]
    more = f" and {len(found) - 1} more" if len(found) > 1 else ""
    what = f"{outside:,} of {count:,} values are outside of {low:g} to {high:g}, where the model was trained"
    return (f"{where}: {name}{more}: {what} (are they in the model's unit? --spec gives scale and offset)",)
