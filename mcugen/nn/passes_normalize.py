"""Normalizations: those that a file spells out as one op, and scale and offset of channels into their tables."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod

import numpy as np

from mcugen.core.op import Op
from mcugen.core.types import Array, Model, frozen_array
from mcugen.nn.passes_edit import Editor, joined, rewrite
from mcugen.nn.source import Activation, Affine, Binary, GlobalPool, Normalize, Reduce, Reshape


def join_normalize(model: Model, context: object = None) -> Model:
    """``(x - mean) / sqrt(mean((x - mean)^2) + epsilon)``, means over the last axes, as a Normalize."""
    return rewrite(model, _spelled_out)


@dataclass(frozen=True, slots=True, eq=False)
class _Table:
    """float64 (C,), or (1,) for all elements; ``inner``: elements in a row that share a number."""

    scale: Array
    offset: Array
    inner: int


def fold_affine_after_normalize(e: Editor, place: int, op: Op) -> bool:
    """An Affine of a normalization, a Reshape in between or not: into its tables."""
    found = e.writer(op.inputs[0]) if isinstance(op, Affine) else None
    if not isinstance(op, Affine) or found is None or not e.read_once(op.inputs[0]):
        return False
    if isinstance(found[1], Reshape):
        found = e.writer(found[1].inputs[0]) if e.read_once(found[1].inputs[0]) else None
    norm = None if found is None else found[1]
    if found is None or not isinstance(norm, Normalize):
        return False
    shape = e.types[op.inputs[0]].shape
    row = prod(shape) // norm.rows
    own = _table(norm.scale, norm.offset, norm.inner)
    then = _table(op.scale, op.offset, prod(shape[op.axis + 1 :]))
    inner = {t.inner for t in (own, then) if t.scale.size > 1} or {row}
    sizes = {t.scale.size for t in (own, then)} - {1}
    if len(inner) > 1 or len(sizes) > 1 or row % min(inner):
        return False
    with np.errstate(over="ignore"):
        scale = (own.scale * then.scale).astype(np.float32)
        offset = (own.offset * then.scale + then.offset).astype(np.float32)
    if not (np.isfinite(scale).all() and np.isfinite(offset).all()):
        return False
    new = replace(
        norm, scale=frozen_array(scale), offset=frozen_array(offset), inner=min(inner), loc=joined(norm.loc, op.loc)
    )
    e.put(found[0], new)
    return e.bypass(place, op)


def _table(scale: Array, offset: Array, inner: int) -> _Table:
    s, o = scale.astype(np.float64), offset.astype(np.float64)
    same = bool((s == s[0]).all() and (o == o[0]).all())
    return _Table(s[:1], o[:1], inner) if same else _Table(s, o, inner)


def _spelled_out(e: Editor, place: int, op: Op) -> bool:
    if not isinstance(op, Binary) or op.kind != "mul":
        return False
    for d, factor in (op.inputs, op.inputs[::-1]):
        centred, root = _centred(e, d), _under_root(e, factor)
        if centred is None or root is None:
            continue
        (x, rows), (squares, epsilon) = centred, root
        if not _repeats_rows(e, factor, d, rows) or not _is_variance(e, squares, x, rows):
            continue
        one, zero = (frozen_array(np.full(1, v, np.float32)) for v in (1.0, 0.0))
        inner = prod(e.types[d].shape) // rows
        minus = e.writer(d)
        assert minus is not None
        e.put(place, Normalize(minus[1].inputs[:1], op.outputs, op.loc, rows, epsilon, one, zero, inner))
        return True
    return False


def _flat(e: Editor, value: str) -> str:
    """``value`` before any Reshape: the same elements in the same sequence."""
    found = e.writer(value)
    while found is not None and isinstance(found[1], Reshape):
        value = found[1].inputs[0]
        found = e.writer(value)
    return value


def _mean(e: Editor, value: str) -> tuple[str, int] | None:
    """What ``value`` holds the means of, row by row in its sequence, and how many rows."""
    found = e.writer(_flat(e, value))
    op = None if found is None else found[1]
    if not isinstance(op, GlobalPool | Reduce) or op.kind not in ("avg", "mean"):
        return None
    shape = e.types[op.inputs[0]].shape
    first = 1 if isinstance(op, GlobalPool) else len(shape) - len(op.axes)
    if isinstance(op, Reduce) and min(op.axes) != first:
        return None  # not the last axes
    return _flat(e, op.inputs[0]), prod(shape[:first])


def _repeats_rows(e: Editor, value: str, of: str, rows: int) -> bool:
    """Whether ``value``, one number a row, meets each element of its row in ``of``."""
    own, shape = e.types[value].shape, e.types[of].shape
    cuts = (a for a in range(len(shape) + 1) if prod(shape[:a]) == rows)
    return any(own == (*shape[:a], *(1,) * (len(shape) - a)) for a in cuts)


def _centred(e: Editor, value: str) -> tuple[str, int] | None:
    """x, as ``_flat`` names it, and the number of rows, where ``value`` is x minus the mean of its row."""
    found = e.writer(value)
    op = None if found is None else found[1]
    if not isinstance(op, Binary) or op.kind != "sub":
        return None
    mean = _mean(e, op.inputs[1])
    if mean is None or mean[0] != _flat(e, op.inputs[0]) or not _repeats_rows(e, op.inputs[1], value, mean[1]):
        return None
    return mean


def _under_root(e: Editor, value: str) -> tuple[str, float] | None:
    """y and epsilon, where ``value`` is one over the root of y plus epsilon."""
    power = _function(e, value, "power")
    if power is None or power.alpha not in (-1.0, -0.5):
        return None
    value = power.inputs[0]
    if power.alpha == -1.0:
        root = _function(e, value, "sqrt")
        if root is None:
            return None
        value = root.inputs[0]
    found = e.writer(_flat(e, value))
    op = None if found is None else found[1]
    if not isinstance(op, Affine):
        return _flat(e, value), 0.0
    if not op.per_tensor or op.scale[0] != 1 or op.offset[0] < 0:
        return None
    return _flat(e, op.inputs[0]), float(op.offset[0])


def _function(e: Editor, value: str, kind: str) -> Activation | None:
    found = e.writer(_flat(e, value))
    op = None if found is None else found[1]
    return op if isinstance(op, Activation) and op.kind == kind else None


def _is_variance(e: Editor, value: str, x: str, rows: int) -> bool:
    """Whether ``value`` holds the mean squares of x minus its means."""
    mean = _mean(e, value)
    found = None if mean is None else e.writer(mean[0])
    square = None if found is None else found[1]
    if mean is None or mean[1] != rows or not isinstance(square, Binary) or square.kind != "mul":
        return False
    return all(_centred(e, v) == (x, rows) for v in square.inputs)
