"""Move: a strided copy. Transposes, slices and padding are this one op."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mcugen.core.op import Cost, Item, MachineOp, Names, OpText
from mcugen.core.types import Array, DType, Loc, TensorType
from mcugen.errors import InternalError, UnsupportedError
from mcugen.nn.ops.kernel_call import Fields
from mcugen.nn.ops.plain_call import described_call, misfit

MAX_DIMS = 5
#: mcg_move_t
_FIELDS: Fields = (
    *((f"dim{i}", "<u4") for i in range(MAX_DIMS)),
    *((f"in{i}", "<i4") for i in range(MAX_DIMS)),
    *((f"out{i}", "<i4") for i in range(MAX_DIMS)),
    ("in_offset", "<u4"),
    ("out_offset", "<u4"),
    ("fill_count", "<u4"),
    ("fill", "<i4"),
)


@dataclass(frozen=True, slots=True, eq=False)
class Move(MachineOp):
    """x (in_count elements) -> y (out_count): for each index of ``dims`` (outermost first, at most 5) one element.

    Strides and offsets in elements, strides of either sign. ``fill``: what y holds where nothing is copied, for float32
    its bits (``fill_bits``); None: every element is written. ``dtype`` is that of x and y.
    """

    kernel: ClassVar[tuple[str, str]] = ("mcg_move_8", "src/mcg_nn_move.c")

    in_count: int
    out_count: int
    dims: tuple[int, ...]
    in_strides: tuple[int, ...]
    out_strides: tuple[int, ...]
    in_offset: int = 0
    out_offset: int = 0
    fill: int | None = None
    dtype: DType = DType.I8

    def check(self, types: Mapping[str, TensorType]) -> None:
        problem = misfit(types, self.inputs[0], self.in_count, self.dtype, "Move")
        problem = problem or misfit(types, self.outputs[0], self.out_count, self.dtype, "Move") or self._problem()
        if problem:
            raise InternalError(str(self.loc), f"Move: {problem}")

    def _problem(self) -> str:
        if (
            not len(self.dims) == len(self.in_strides) == len(self.out_strides) <= MAX_DIMS
            or min(self.dims, default=1) < 1
        ):
            return f"dimensions {self.dims}, strides {self.in_strides} and {self.out_strides}"
        at, to = self._indices()
        if min(at.min(), to.min()) < 0 or at.max() >= self.in_count or to.max() >= self.out_count:
            return "an index outside of its array"
        written = len(np.unique(to))
        if written != to.size or (self.fill is None and written != self.out_count):
            return f"{written} elements written of {self.out_count}, {to.size} copied"
        if self.fill is not None and not _as_int(self.dtype).min <= self.fill <= _as_int(self.dtype).max:
            return f"fill {self.fill} of {self.dtype.label}"
        return ""

    def _indices(self) -> tuple[Array, Array]:
        """Elements of x and of y, in the order of the loops."""
        at, to = (np.array([start], np.int64) for start in (self.in_offset, self.out_offset))
        for n, i, o in zip(self.dims, self.in_strides, self.out_strides, strict=True):
            step = np.arange(n)
            at, to = (at[:, None] + step * i).reshape(-1), (to[:, None] + step * o).reshape(-1)
        return at, to

    def eval(self, *args: Array) -> tuple[Array, ...]:
        """(N, ...) -> (N, out_count)."""
        x = args[0].reshape(len(args[0]), -1)
        y = np.full((len(x), self.out_count), self.fill or 0, _as_int(self.dtype).np).view(x.dtype)
        at, to = self._indices()
        y[:, to] = x[:, at]
        return (y,)

    def items(self, prefix: str) -> tuple[Item, ...]:
        return ()

    def emit(self, prefix: str, args: tuple[str, ...], results: tuple[str, ...], names: Names) -> OpText:
        idle = MAX_DIMS - len(self.dims)
        values: dict[str, int] = {"in_offset": self.in_offset, "out_offset": self.out_offset}
        values |= {"fill_count": 0 if self.fill is None else self.out_count, "fill": self.fill or 0}
        for name, given, default in (("dim", self.dims, 1), ("in", self.in_strides, 0), ("out", self.out_strides, 0)):
            values |= {f"{name}{i}": v for i, v in enumerate((*[default] * idle, *given))}
        shape = ("mcg_move_t", f"{prefix}_shape", _FIELDS, values)
        return described_call("mcg_nn_move.h", f"mcg_move_{8 * self.dtype.size}", shape, (args[0], results[0]))

    def cost(self) -> Cost:
        n = int(np.prod(self.dims))
        return Cost(0.0, 0, float(n), n)


def _as_int(dtype: DType) -> DType:
    """The type in whose numbers ``fill`` is given."""
    return DType.I32 if dtype is DType.F32 else dtype


def fill_bits(value: float) -> int:
    """``fill`` for a float32 value."""
    return int(np.float32(value).view(np.int32))


def row_major(shape: tuple[int, ...]) -> list[int]:
    """Strides of an array without gaps."""
    return [int(np.prod(shape[i + 1 :], dtype=np.int64)) for i in range(len(shape))]


def made(
    names: tuple[tuple[str, ...], tuple[str, ...], Loc],
    counts: tuple[int, int],
    loops: list[tuple[int, int, int]],
    offsets: tuple[int, int],
    fill: int | None,
    dtype: DType,
) -> Move:
    """A Move of ``loops`` (size, input stride, output stride), outermost first; those that run on in both arrays become
    one."""
    merged: list[tuple[int, int, int]] = []
    for n, i, o in loops:
        if n == 1:
            continue
        if merged and merged[-1][1] == n * i and merged[-1][2] == n * o:
            merged[-1] = (merged[-1][0] * n, i, o)
        else:
            merged.append((n, i, o))
    if len(merged) > MAX_DIMS:
        raise UnsupportedError(str(names[2]), f"a copy in {len(merged)} dimensions", f"at most {MAX_DIMS} can be moved")
    dims, ins, outs = (tuple(v) for v in zip(*(merged or [(1, 1, 1)]), strict=True))
    inputs, outputs, loc = names
    return Move(inputs, outputs, loc, *counts, dims, ins, outs, *offsets, fill, dtype)


def strided_copy(
    inputs: tuple[str, ...],
    outputs: tuple[str, ...],
    loc: Loc,
    shape: tuple[int, ...],
    from_order: tuple[int, ...],
    to_order: tuple[int, ...],
    dtype: DType = DType.I8,
) -> Move:
    """The array of ``shape`` whose axes lie in memory in ``from_order``, to the same with its axes in ``to_order``."""
    strides = row_major(tuple(shape[a] for a in from_order))
    loops = [(shape[a], strides[from_order.index(a)]) for a in to_order]
    out = row_major(tuple(shape[a] for a in to_order))
    n = int(np.prod(shape, dtype=np.int64))
    return made(
        (inputs, outputs, loc), (n, n), [(k, i, o) for (k, i), o in zip(loops, out, strict=True)], (0, 0), None, dtype
    )


def repeated_copy(
    inputs: tuple[str, ...], outputs: tuple[str, ...], loc: Loc, in_shape: tuple[int, ...], out_shape: tuple[int, ...]
) -> Move:
    """An array of ``in_shape`` with its axes of length 1 repeated to ``out_shape``: they are read with stride 0."""
    ins = [0 if n == 1 else i for n, i in zip(in_shape, row_major(in_shape), strict=True)]
    loops = list(zip(out_shape, ins, row_major(out_shape), strict=True))
    counts = (int(np.prod(in_shape, dtype=np.int64)), int(np.prod(out_shape, dtype=np.int64)))
    return made((inputs, outputs, loc), counts, loops, (0, 0), None, DType.I8)


def strided_slice(
    inputs: tuple[str, ...],
    outputs: tuple[str, ...],
    loc: Loc,
    in_shape: tuple[int, ...],
    starts: tuple[int, ...],
    steps: tuple[int, ...],
    out_shape: tuple[int, ...],
    dtype: DType = DType.I8,
) -> Move:
    """Element ``starts + index * steps`` of an array of ``in_shape`` for each index of ``out_shape`` (as in memory)."""
    ins = row_major(in_shape)
    loops = [(n, step * i, o) for n, step, i, o in zip(out_shape, steps, ins, row_major(out_shape), strict=True)]
    offset = sum(s * i for s, i in zip(starts, ins, strict=True))
    counts = (int(np.prod(in_shape, dtype=np.int64)), int(np.prod(out_shape, dtype=np.int64)))
    return made((inputs, outputs, loc), counts, loops, (offset, 0), None, dtype)


def padded_copy(
    inputs: tuple[str, ...],
    outputs: tuple[str, ...],
    loc: Loc,
    in_shape: tuple[int, ...],
    out_shape: tuple[int, ...],
    before: tuple[int, ...],
    fill: int,
    dtype: DType = DType.I8,
) -> Move:
    """An array of ``in_shape`` at ``before`` inside one of ``out_shape`` (as in memory) that is full of ``fill``."""
    outs = row_major(out_shape)
    loops = list(zip(in_shape, row_major(in_shape), outs, strict=True))
    offset = sum(b * o for b, o in zip(before, outs, strict=True))
    counts = (int(np.prod(in_shape, dtype=np.int64)), int(np.prod(out_shape, dtype=np.int64)))
    return made((inputs, outputs, loc), counts, loops, (0, offset), fill, dtype)
