"""Strided copies that make images larger, as a Move: for any order of the axes in memory."""

from __future__ import annotations

from math import prod

from mcugen.core.types import DType, Loc
from mcugen.nn.ops.move import Move, made, row_major

Values = tuple[tuple[str, ...], tuple[str, ...], Loc]


def repeated_elements(values: Values, shape: tuple[int, ...], factors: tuple[int, ...], dtype: DType) -> Move:
    """Each element of an array of ``shape`` (as in memory) ``factors`` times in a row, per axis."""
    outs = row_major(tuple(n * f for n, f in zip(shape, factors, strict=True)))
    loops = []
    for n, f, i, o in zip(shape, factors, row_major(shape), outs, strict=True):
        loops += [(n, i, f * o), (f, 0, o)]
    return made(values, (prod(shape), prod(shape) * prod(factors)), loops, (0, 0), None, dtype)


def depth_to_space(
    values: Values, shape: tuple[int, int, int], block: tuple[int, int], order: tuple[int, ...], dtype: DType
) -> Move:
    """Channels of x ``shape`` (C * BH * BW, H, W) to pixels; x and y lie in memory with their axes in ``order``."""
    rows, columns = block
    whole = (shape[0] // (rows * columns), shape[1] * rows, shape[2] * columns)
    ins, outs = [0, 0, 0], [0, 0, 0]
    for strides, size in ((ins, shape), (outs, whole)):
        for axis, stride in zip(order, row_major(tuple(size[a] for a in order)), strict=True):
            strides[axis] = stride
    loops = [
        (whole[0], rows * columns * ins[0], outs[0]),
        (shape[1], ins[1], rows * outs[1]),
        (rows, columns * ins[0], outs[1]),
        (shape[2], ins[2], columns * outs[2]),
        (columns, ins[0], outs[2]),
    ]
    # The loop that writes the nearest elements is the innermost.
    loops.sort(key=lambda loop: -loop[2])
    return made(values, (prod(shape), prod(shape)), loops, (0, 0), None, dtype)
