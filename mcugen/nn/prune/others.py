"""Trimmers of the ops without weights."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from mcugen.core.types import Array
from mcugen.nn.ops.move import MAX_DIMS, Move
from mcugen.nn.ops.qadd import QAdd
from mcugen.nn.ops.qconcat import QConcat
from mcugen.nn.ops.qgate import QGate
from mcugen.nn.ops.qmul import QMul
from mcugen.nn.ops.qpool import QPool
from mcugen.nn.ops.qscale import QScale
from mcugen.nn.ops.qtable import QTable
from mcugen.nn.prune.masks import Bounds, Gone
from mcugen.nn.prune.trimmer import AnyOp, Trimmer
from mcugen.nn.requant import requantize


class _ByElement(Trimmer[AnyOp]):
    """Element i of every operand goes together with element i of the result."""

    def keep(self, gone: Gone) -> None:
        values = (*self.op.inputs, *self.op.outputs)
        kept = np.logical_or.reduce([~gone.of(v) for v in values])
        for value in values:
            gone.restore(value, kept)

    def left(self, gone: Gone) -> int:
        """How many elements are left."""
        return int(np.count_nonzero(~gone.of(self.y)))


class TrimTable(_ByElement[QTable]):
    """Any elements."""

    def bounds(self) -> tuple[Bounds, ...]:
        low, high = _table_ends(self.op.table, self.known[0])
        return self.between(low, high)

    def trimmed(self, gone: Gone) -> QTable:
        return replace(self.op, count=self.left(gone))


class TrimAdd(_ByElement[QAdd]):
    """Any elements."""

    def bounds(self) -> tuple[Bounds, ...]:
        op, (a, b) = self.op, self.known
        unit = -(1 << 20) if op.negate else 1 << 20
        ends = np.sort([(v - op.in_zp) * unit for v in (a.low, a.high)], axis=0)
        low, high = _table_ends(op.table, b)
        return self.between(requantize(ends[0] + low, op.requant), requantize(ends[1] + high, op.requant))

    def trimmed(self, gone: Gone) -> QAdd:
        return replace(self.op, count=self.left(gone))


class TrimMul(_ByElement[QMul]):
    """Any elements."""

    def bounds(self) -> tuple[Bounds, ...]:
        op, (a, b) = self.op, self.known
        ends = [(u - op.zp_a) * (v - op.zp_b) for u in (a.low, a.high) for v in (b.low, b.high)]
        return self.between(*(requantize(f(ends, axis=0), op.requant) for f in (np.min, np.max)))

    def trimmed(self, gone: Gone) -> QMul:
        return replace(self.op, count=self.left(gone))


def _table_ends(table: Array, x: Bounds) -> tuple[Array, Array]:
    """The least and the largest entry that x may reach, element by element."""
    pairs, which = np.unique(np.stack([x.low, x.high]), axis=1, return_inverse=True)
    parts = [table[a + 128 : b + 129].astype(np.int64) for a, b in pairs.T]
    which = which.reshape(-1)
    return np.array([p.min() for p in parts])[which], np.array([p.max() for p in parts])[which]


class TrimScale(Trimmer[QScale]):
    """Whole channels."""

    def bounds(self) -> tuple[Bounds, ...]:
        op = self.op
        shape = (op.outer, op.channels, op.inner)
        m, add = (v.astype(np.int64)[None, :, None] for v in (op.multiplier, op.add))
        ends = [(v.reshape(shape) - op.in_zp) * m + add for v in (self.known[0].low, self.known[0].high)]
        return self.between(*(requantize(f(ends, axis=0), op.requant) for f in (np.min, np.max)))

    def _kept(self, gone: Gone) -> Array:
        op = self.op
        kept = ~(gone.of(self.x) & gone.of(self.y)).reshape(op.outer, op.channels, op.inner)
        return np.asarray(kept.any(axis=(0, 2)))

    def keep(self, gone: Gone) -> None:
        op = self.op
        kept = np.broadcast_to(self._kept(gone)[None, :, None], (op.outer, op.channels, op.inner)).reshape(-1)
        gone.restore(self.x, kept)
        gone.restore(self.y, kept)

    def trimmed(self, gone: Gone) -> QScale:
        kept = self._kept(gone)
        return replace(self.op, channels=int(kept.sum()), multiplier=self.op.multiplier[kept], add=self.op.add[kept])


class TrimGate(Trimmer[QGate]):
    """Whole channels, with their gates."""

    def bounds(self) -> tuple[Bounds, ...]:
        op, (x, g) = self.op, self.known
        sides = [v.reshape(op.outer, op.gates, op.inner) - op.zp_x for v in (x.low, x.high)]
        ends = [v * (w - op.zp_g)[None, :, None] for v in sides for w in (g.low, g.high)]
        return self.between(*(requantize(f(ends, axis=0), op.requant) for f in (np.min, np.max)))

    def _kept(self, gone: Gone) -> Array:
        op = self.op
        kept = ~(gone.of(self.x) & gone.of(self.y)).reshape(op.outer, op.gates, op.inner)
        return np.asarray(kept.any(axis=(0, 2)) | ~gone.of(op.inputs[1]))

    def keep(self, gone: Gone) -> None:
        op, channels = self.op, self._kept(gone)
        kept = np.broadcast_to(channels[None, :, None], (op.outer, op.gates, op.inner)).reshape(-1)
        gone.restore(self.x, kept)
        gone.restore(self.y, kept)
        gone.restore(op.inputs[1], channels)

    def trimmed(self, gone: Gone) -> QGate:
        return replace(self.op, gates=int(self._kept(gone).sum()))


class TrimPool(Trimmer[QPool]):
    """Whole channels."""

    def bounds(self) -> tuple[Bounds, ...]:
        return self.monotonic()

    def _kept(self, gone: Gone) -> Array:
        op = self.op
        gone_x, gone_y = gone.channels(self.x, op.in_shape, op.planar), gone.channels(self.y, op.out_shape, op.planar)
        return np.asarray(~(gone_x & gone_y))

    def keep(self, gone: Gone) -> None:
        kept = self._kept(gone)
        gone.restore_channels(self.x, kept, self.op.in_shape, self.op.planar)
        gone.restore_channels(self.y, kept, self.op.out_shape, self.op.planar)

    def trimmed(self, gone: Gone) -> QPool:
        c = int(self._kept(gone).sum())
        return replace(self.op, in_shape=(c, *self.op.in_shape[1:]), out_shape=(c, *self.op.out_shape[1:]))


class TrimConcat(Trimmer[QConcat]):
    """Elements of a row, in all rows; a part of which nothing is left goes."""

    def bounds(self) -> tuple[Bounds, ...]:
        return self.monotonic()

    def _kept(self, gone: Gone) -> list[Array]:
        """For each part (inner,) bool."""
        outer, inners, order = self.op.outer, self.op.inners, self._order
        ends = np.cumsum([inners[i] for i in order])[:-1]
        split = np.split(~gone.of(self.y).reshape(outer, -1), ends, axis=1)
        of_result = [split[order.index(i)] for i in range(len(order))]
        of_parts = [~gone.of(v).reshape(outer, n) for v, n in zip(self.op.inputs, inners, strict=True)]
        return [np.asarray((a | b).any(axis=0)) for a, b in zip(of_result, of_parts, strict=True)]

    @property
    def _order(self) -> tuple[int, ...]:
        return self.op.order or tuple(range(len(self.op.inners)))

    def keep(self, gone: Gone) -> None:
        parts = self._kept(gone)
        for value, kept in zip(self.op.inputs, parts, strict=True):
            gone.restore(value, np.tile(kept, self.op.outer))
        gone.restore(self.y, np.tile(np.concatenate([parts[i] for i in self._order]), self.op.outer))

    def trimmed(self, gone: Gone) -> QConcat:
        sizes = [int(kept.sum()) for kept in self._kept(gone)]
        left = [i for i, n in enumerate(sizes) if n]
        order = tuple(left.index(i) for i in self._order if i in left)
        inputs, inners = tuple(self.op.inputs[i] for i in left), tuple(sizes[i] for i in left)
        return replace(self.op, inputs=inputs, inners=inners, order=order)


class TrimMove(Trimmer[Move]):
    """Whatever leaves a strided copy; where that is none, all stays."""

    def bounds(self) -> tuple[Bounds, ...]:
        return self.monotonic()

    def keep(self, gone: Gone) -> None:
        op = self.op
        at, to = self._indices(op.dims, op.in_strides, op.out_strides)
        copied = ~gone.of(self.x)[at] | ~gone.of(self.y)[to]
        for value, places in ((self.x, at), (self.y, to)):
            kept = np.zeros(self.types[value].count, bool)
            kept[places[copied]] = True
            gone.restore(value, kept)
        if gone.any((self.x, self.y)) and self._smaller(gone) is None:
            gone.restore(self.x, np.ones(op.in_count, bool))
            gone.restore(self.y, np.ones(op.out_count, bool))

    def trimmed(self, gone: Gone) -> Move:
        smaller = self._smaller(gone)
        assert smaller is not None
        return smaller

    def _indices(self, *loops: tuple[int, ...]) -> tuple[Array, Array]:
        """Elements of x and of y, in the order of the loops (sizes, strides in x, strides in y)."""
        at, to = (np.array([start], np.int64) for start in (self.op.in_offset, self.op.out_offset))
        for n, i, o in zip(*loops, strict=True):
            step = np.arange(n)
            at, to = (at[:, None] + step * i).reshape(-1), (to[:, None] + step * o).reshape(-1)
        return at, to

    def _smaller(self, gone: Gone) -> Move | None:
        """The copy between what is left of x and y, if it is a strided one."""
        left = [~gone.of(v) for v in (self.x, self.y)]
        places = [np.cumsum(kept) - 1 for kept in left]
        for dims, ins, outs in self._loops():
            at, to = self._indices(dims, ins, outs)
            copied = left[1][to].reshape(dims)
            axes = range(len(dims))
            sides = [np.flatnonzero(copied.any(axis=tuple(a for a in axes if a != d))) for d in axes]
            box = copied[np.ix_(*sides)]
            if not box.size or not box.all():
                continue
            x, y = (_affine(p[v].reshape(dims)[np.ix_(*sides)]) for p, v in zip(places, (at, to), strict=True))
            if x is None or y is None:
                continue
            (in_offset, in_strides), (out_offset, out_strides) = x, y
            return replace(
                self.op,
                in_count=int(left[0].sum()),
                out_count=int(left[1].sum()),
                dims=box.shape,
                in_strides=in_strides,
                out_strides=out_strides,
                in_offset=in_offset,
                out_offset=out_offset,
            )
        return None

    def _loops(self) -> Iterator[tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]]:
        """The loops of the op, and the same with one of them split in two: channels may hide inside of it."""
        op = self.op
        yield op.dims, op.in_strides, op.out_strides
        for d, n in enumerate(op.dims):
            for p in range(2, n if len(op.dims) < MAX_DIMS else 0):
                if n % p == 0:
                    yield (
                        (*op.dims[:d], n // p, p, *op.dims[d + 1 :]),
                        (*op.in_strides[:d], p * op.in_strides[d], *op.in_strides[d:]),
                        (*op.out_strides[:d], p * op.out_strides[d], *op.out_strides[d:]),
                    )


def _affine(places: Array) -> tuple[int, tuple[int, ...]] | None:
    """Offset and strides of an array of indices, if each axis has one stride."""
    origin = int(places.reshape(-1)[0])
    first = (0,) * places.ndim
    strides = []
    made = np.full(places.shape, origin, np.int64)
    for axis, n in enumerate(places.shape):
        one = (*first[:axis], 1, *first[axis + 1 :])
        stride = int(places[one]) - origin if n > 1 else 0
        strides.append(stride)
        made += (np.arange(n) * stride).reshape([n if a == axis else 1 for a in range(places.ndim)])
    return (origin, tuple(strides)) if (made == places).all() else None
