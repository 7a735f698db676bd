"""Handlers of LayerNormalization, InstanceNormalization and GroupNormalization."""

from __future__ import annotations

from math import prod

import numpy as np

from mcugen.core.types import Array
from mcugen.frontends.onnx.call import Call
from mcugen.frontends.onnx.values import Activated, as_float32
from mcugen.nn.source import Normalize


def layer_normalization(c: Call) -> None:
    x = c.x(0)
    axis = c.axis(c.get_int("axis", -1), len(x.shape))
    if any(c.node.outputs[1:]):
        c.refuse("gives mean and deviation, too", "use only its first result")
    row = x.shape[axis:]
    rows = prod(x.shape[:axis])
    scale, offset = _repeated(c, 1, "the scale", row), _repeated(c, 2, "the offset", row)
    _add(c, x, rows, scale, offset, 1)


def _repeated(c: Call, index: int, what: str, row: tuple[int, ...]) -> Array:
    """A table for each element of a row; zeros where the optional offset is absent."""
    if index == 2 and not c.has(2):
        return np.zeros(prod(row))
    values = c.weights(index, what)
    if values.ndim > len(row) or any(n not in (1, m) for n, m in zip(values.shape[::-1], row[::-1], strict=False)):
        c.broken(f"{what} has the shape {list(values.shape)}, rows are {list(row)}")
    return np.broadcast_to(values, row).reshape(-1)


def instance_normalization(c: Call) -> None:
    _of_channels(c, None)


def group_normalization(c: Call) -> None:
    _of_channels(c, c.get_int("num_groups", 0))


def _of_channels(c: Call, groups: int | None) -> None:
    """Channels of an image, or ``groups`` of channels; tables of channels (of groups before opset 21)."""
    x = c.x(0)
    if len(x.shape) < 3 or x.shape[0] != 1:
        c.refuse(f"works on shape {list(x.shape)}", "only one sample with channels and pixels is supported")
    channels, pixels = x.shape[1], prod(x.shape[2:])
    rows = channels if groups is None else groups
    if rows < 1 or channels % rows:
        c.broken(f"{channels} channels in {rows} groups")
    tables = []
    for index, what in ((1, "the scale"), (2, "the offset")):
        table = c.weights(index, what)
        if table.shape == (rows,):
            table = np.repeat(table, channels // rows)
        if table.shape != (channels,):
            c.broken(f"{what} has the shape {list(table.shape)} for {channels} channels in {rows} groups")
        tables.append(table)
    _add(c, x, rows, tables[0], tables[1], pixels)


def _add(c: Call, x: Activated, rows: int, scale: Array, offset: Array, inner: int) -> None:
    epsilon = c.get_float("epsilon", 1e-5)
    if not 0 <= epsilon < np.inf:
        c.broken(f"epsilon is {epsilon}")
    tables = (as_float32(np.array(table), c.where) for table in (scale, offset))
    first, second = tables
    c.give_raw(c.add(Normalize, x.name, rows=rows, epsilon=epsilon, scale=first, offset=second, inner=inner), x.shape)
