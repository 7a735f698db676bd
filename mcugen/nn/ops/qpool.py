"""QPool: maximum or mean of windows of int8 or int16."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mcugen.core.op import Cost, Item, MachineOp, Names, OpText
from mcugen.core.passes import value_type
from mcugen.core.types import Array, DType, Loc, QParams, TensorType, frozen_array
from mcugen.errors import InternalError
from mcugen.nn.ops.plain_call import SUFFIX, described_call, misfit, range_misfit, rounding_of
from mcugen.nn.ops.pool_window import POOL_FIELDS, PoolWindow, Shape3, Windows, pool_values
from mcugen.nn.ops.window import physical, same_memory
from mcugen.nn.requant import Requant, requant_of
from mcugen.nn.requant64 import requantize64


@dataclass(frozen=True, slots=True, eq=False)
class QPool(PoolWindow, MachineOp):
    """x (C, H, W), in memory planar or interleaved, to (C, OH, OW) in the same layout.

    ``kind`` max: padding is minus infinity; scale and zero point stay; ``counts`` is empty, ``requant`` None.
    ``kind`` avg: ``requantize(sum(x - in_zp))`` over the elements inside, with multiplier i of ``requant`` for a window
    that counts ``counts[i]`` elements (padding counts with ``count_include_pad``; what a window reaches beyond the
    padded input never does). ``out_shape`` says how many windows there are. ``dtype``: int8 or int16.
    """

    kernel: ClassVar[tuple[str, str]] = ("mcg_max_pool_s8", "src/mcg_nn_pool.c")

    kind: str
    in_shape: Shape3
    out_shape: Shape3
    kernel_size: tuple[int, int]
    stride: tuple[int, int]
    pads: tuple[int, int, int, int]
    dilation: tuple[int, int]
    count_include_pad: bool
    planar: bool
    in_zp: int
    counts: Array
    requant: Requant | None
    dtype: DType = DType.I8

    def check(self, types: Mapping[str, TensorType]) -> None:
        problem = next(filter(None, self._problems(types)), "")
        if problem:
            raise InternalError(str(self.loc), f"QPool: {problem}")

    def _problems(self, types: Mapping[str, TensorType]) -> list[str]:
        x, y = self.inputs[0], self.outputs[0]
        zp = self.in_zp if self.requant is None else self.requant.zero_point
        problems = [self.window_problem()]
        for value, shape, zero_point in ((x, self.in_shape, self.in_zp), (y, self.out_shape, zp)):
            problems.append(misfit(types, value, int(np.prod(shape)), self.dtype, "QPool", zero_point))
            if not same_memory(value_type(types, value, "QPool").shape, physical(shape, self.planar)):
                problems.append(f"{value} has another layout")
        if self.dtype not in (DType.I8, DType.I16) or (self.kind == "avg") != (self.requant is not None):
            problems.append(f"a {self.kind} pool of {self.dtype.label}")
        if self.requant is not None:
            problems.append(range_misfit(self.requant, self.dtype, self.counts.size))
            if self.requant.multiplier.size != self.counts.size:
                problems.append("another number of multipliers than of counts")
            if not problems[0] and not np.isin(self.elements(), self.counts).all():
                problems.append("a window counts a number of elements that has no multiplier")
        return problems

    def eval(self, *args: Array) -> tuple[Array, ...]:
        """(N, *physical) -> (N, *physical)."""
        x = self.image(args[0]).astype(np.int64)
        if self.requant is None:
            return (self.layout(self.maximum(x, self.dtype.min)).astype(self.dtype.np),)
        which = np.searchsorted(self.counts, self.elements())
        r, acc = self.requant, self.sums(x - self.in_zp)
        y = np.zeros_like(acc)
        for i in np.unique(which):
            one = Requant(r.multiplier[i : i + 1], r.shift[i : i + 1], r.zero_point, r.low, r.high)
            y = np.where(which == i, requantize64(acc, one), y)
        return (self.layout(y).astype(self.dtype.np),)

    def items(self, prefix: str) -> tuple[Item, ...]:
        if self.requant is None:
            return ()
        r = self.requant
        c = [rounding_of(int(s)) for s in r.shift]
        data = frozen_array(np.column_stack([self.counts, r.multiplier, r.shift, c]), np.int32)
        about = "requantization by the number of elements in a window"
        reads = 4.0 * self.out_shape[1] * self.out_shape[2]
        return (Item(f"{prefix}_counts", "table", "mcg_pool_count_t", len(data), data.nbytes, 4, reads, about, data),)

    def emit(self, prefix: str, args: tuple[str, ...], results: tuple[str, ...], names: Names) -> OpText:
        r = self.requant
        numbers = (0, 0, 0) if r is None else (r.zero_point, r.low, r.high)
        values = pool_values(self, self.counts.size, self.in_zp, numbers)
        shape = ("mcg_pool_t", f"{prefix}_shape", POOL_FIELDS, values)
        tables = () if r is None else (names.table[f"{prefix}_counts"],)
        function = f"mcg_{self.kind}_pool_{SUFFIX[self.dtype]}"
        return described_call("mcg_nn_pool.h", function, shape, (*tables, args[0], results[0]))

    def cost(self) -> Cost:
        return self.window_cost()


def pool_of(
    values: tuple[tuple[str, ...], tuple[str, ...], Loc],
    kind: str,
    w: Windows,
    planar: bool,
    q_in: QParams,
    q_out: QParams,
    dtype: DType = DType.I8,
    limits: tuple[int, int] | None = None,
) -> QPool:
    """The op from ``q_in`` to ``q_out``, which a maximum does not look at. ``values``: inputs, outputs, place.
    ``limits``: clamps of an average, those of the type by default."""
    shape = (w.in_shape, w.out_shape, w.kernel_size, w.stride, w.pads, w.dilation, w.count_include_pad)
    head = (*values, kind, *shape, planar, q_in.zero_point)
    if kind == "max":
        return QPool(*head, frozen_array(np.zeros(0), np.int32), None, dtype)
    counts = np.unique(PoolWindow.elements_of(*shape)).astype(np.int32)
    factors = q_in.scale / (counts.astype(np.float64) * q_out.scale)
    low, high = limits or (dtype.min, dtype.max)
    return QPool(*head, frozen_array(counts), requant_of(factors, q_out.zero_point, low, high, where="QPool"), dtype)
