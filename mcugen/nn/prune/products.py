"""Trimmers of the ops with weights: rows go with their results, columns with constants, which move into the bias."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mcugen.core.types import Array
from mcugen.nn.ops.qconv import QConv
from mcugen.nn.ops.qdense import QDense
from mcugen.nn.ops.qdepthwise import QDepthwise
from mcugen.nn.ops.window import padded_windows
from mcugen.nn.prune.masks import Bounds, Gone, as_memory, by_channel
from mcugen.nn.prune.trimmer import Trimmer
from mcugen.nn.requant import Requant, requantize

#: Rows of a dense layer that are looked at together.
_ROWS = 256


def _rows_of(r: Requant, kept: Array) -> Requant:
    """The requantization of the rows that are left."""
    if r.multiplier.size == 1:
        return r
    return replace(r, multiplier=r.multiplier[kept], shift=r.shift[kept])


def _image(flat: Array, op: QConv | QDepthwise) -> Array:
    """(count,) to (1, C, H, W) without the zero point."""
    image = by_channel(flat, op.in_shape, op.in_planar).reshape(1, *op.in_shape)
    return image.astype(np.float64) - op.in_zp


class TrimConv(Trimmer[QConv]):
    """Output channels that nobody reads, input channels that are constant or meet zeros only."""

    def bounds(self) -> tuple[Bounds, ...]:
        op, weight = self.op, self.op.weight
        ends = [padded_windows(_image(v, op), weight.shape[1:3], op) for v in (self.known[0].low, self.known[0].high)]
        acc = np.zeros((2, op.out_shape[0], op.out_shape[1] * op.out_shape[2]))
        for (kh, kw, low), (_, _, high) in zip(*ends, strict=True):
            at_low, at_high = (v.reshape(op.in_shape[0], -1) for v in (low, high))
            rising, falling = (f(weight[:, kh, kw].astype(np.float64), 0.0) for f in (np.maximum, np.minimum))
            acc[0] += rising @ at_low + falling @ at_high
            acc[1] += rising @ at_high + falling @ at_low
        low, high = acc.astype(np.int64) + op.bias[:, None]
        y_low, y_high = requantize(low, op.requant, 0), requantize(high, op.requant, 0)
        # A row whose result never changes needs no weights: an accumulator that gives it stands in the bias.
        self.pinned = ((y_low == y_high) & (y_low == y_low[:, :1])).all(axis=1)
        self.pinned_bias = low[:, 0]
        self._find_constants()
        return self.between(*(as_memory(v.reshape(op.out_shape), op.out_planar) for v in (y_low, y_high)))

    def _find_constants(self) -> None:
        """``foldable`` (OC, C): input c adds the same to every pixel of output o, ``amount`` (OC, C) int64.

        At the border a constant other than the zero point meets padding, which is the zero point: then the sums differ
        from pixel to pixel, unless the weights that reach out are zero.
        """
        op, weight, known = self.op, self.op.weight, self.known[0]
        self.foldable = np.asarray((weight == 0).all(axis=(1, 2)))
        self.amount = np.zeros(self.foldable.shape, np.int64)
        constant = by_channel(known.constant, op.in_shape, op.in_planar).all(axis=1)
        image = _image(known.low, op)
        self.foldable[:, constant & ~image[0].any(axis=(1, 2))] = True
        views = padded_windows(image, weight.shape[1:3], op)
        for c in np.flatnonzero(constant & ~self.foldable.all(axis=0)):
            sums = np.zeros((op.out_shape[0], op.out_shape[1] * op.out_shape[2]))
            for kh, kw, view in views:
                sums += weight[:, kh, kw, c].astype(np.float64)[:, None] * view[0, c].reshape(1, -1)
            same = (sums == sums[:, :1]).all(axis=1)
            self.foldable[same, c] = True
            self.amount[same, c] = sums[same, 0].astype(np.int64)

    def keep(self, gone: Gone) -> None:
        op = self.op
        rows = ~gone.channels(self.y, op.out_shape, op.out_planar)
        gone.restore_channels(self.y, rows, op.out_shape, op.out_planar)
        columns = ~gone.channels(self.x, op.in_shape, op.in_planar)
        columns |= (~self.foldable[rows & ~self.pinned]).any(axis=0)
        columns[0] |= not columns.any()  # a kernel reads something
        gone.restore_channels(self.x, columns, op.in_shape, op.in_planar)

    def trimmed(self, gone: Gone) -> QConv:
        op = self.op
        rows = ~gone.channels(self.y, op.out_shape, op.out_planar)
        columns = ~gone.channels(self.x, op.in_shape, op.in_planar)
        bias = np.where(self.pinned, self.pinned_bias, op.bias + self.amount[:, ~columns].sum(axis=1))
        weight = np.where(self.pinned[:, None, None, None], 0, op.weight)[rows][:, :, :, columns]
        return replace(
            op,
            in_shape=(int(columns.sum()), *op.in_shape[1:]),
            out_shape=(int(rows.sum()), *op.out_shape[1:]),
            weight=np.ascontiguousarray(weight, np.int8),
            bias=bias[rows].astype(np.int32),
            requant=_rows_of(op.requant, rows),
        )


class TrimDepthwise(Trimmer[QDepthwise]):
    """An input channel goes together with all outputs that are made of it."""

    def bounds(self) -> tuple[Bounds, ...]:
        op = self.op
        ends = []
        for v in (self.known[0].low, self.known[0].high):
            each = np.repeat(_image(v, op), op.multiplier, axis=1)
            ends.append(padded_windows(each, op.weight.shape[1:], op))
        acc = np.zeros((2, *op.out_shape))
        for (kh, kw, low), (_, _, high) in zip(*ends, strict=True):
            w = op.weight[:, kh, kw].astype(np.float64)[:, None, None]
            acc[0] += np.minimum(w * low[0], w * high[0])
            acc[1] += np.maximum(w * low[0], w * high[0])
        y = [requantize(a, op.requant, 0) for a in acc.astype(np.int64) + op.bias[:, None, None]]
        return self.between(*(as_memory(v, op.out_planar) for v in y))

    def _kept(self, gone: Gone) -> tuple[Array, Array]:
        """Channels of the input and of the output that are left."""
        op = self.op
        outs = ~gone.channels(self.y, op.out_shape, op.out_planar).reshape(-1, op.multiplier)
        ins = ~gone.channels(self.x, op.in_shape, op.in_planar) | outs.any(axis=1)
        return ins, np.repeat(ins, op.multiplier)

    def keep(self, gone: Gone) -> None:
        ins, outs = self._kept(gone)
        gone.restore_channels(self.x, ins, self.op.in_shape, self.op.in_planar)
        gone.restore_channels(self.y, outs, self.op.out_shape, self.op.out_planar)

    def trimmed(self, gone: Gone) -> QDepthwise:
        op = self.op
        ins, outs = self._kept(gone)
        return replace(
            op,
            in_shape=(int(ins.sum()), *op.in_shape[1:]),
            out_shape=(int(outs.sum()), *op.out_shape[1:]),
            weight=np.ascontiguousarray(op.weight[outs]),
            bias=op.bias[outs],
            requant=_rows_of(op.requant, outs),
        )


class TrimDense(Trimmer[QDense]):
    """Single rows and columns."""

    def bounds(self) -> tuple[Bounds, ...]:
        op = self.op
        low, high = (v.astype(np.float64) - op.in_zp for v in (self.known[0].low, self.known[0].high))
        acc = np.zeros((2, len(op.weight)))
        for i in range(0, len(op.weight), _ROWS):
            w = op.weight[i : i + _ROWS].astype(np.float64)
            rising, falling = np.maximum(w, 0.0), np.minimum(w, 0.0)
            acc[:, i : i + _ROWS] = rising @ low + falling @ high, rising @ high + falling @ low
        sums = acc.astype(np.int64) + op.bias
        y_low, y_high = (requantize(s, op.requant, 0) for s in sums)
        self.pinned, self.pinned_bias = y_low == y_high, sums[0]
        return self.between(y_low, y_high)

    def keep(self, gone: Gone) -> None:
        rows = ~gone.of(self.y)
        columns = ~gone.of(self.x)
        columns |= (self.op.weight[rows & ~self.pinned] != 0).any(axis=0) & ~self.known[0].constant
        columns[0] |= not columns.any()  # a kernel reads something
        gone.restore(self.x, columns)

    def trimmed(self, gone: Gone) -> QDense:
        op = self.op
        rows, columns = ~gone.of(self.y), ~gone.of(self.x)
        # What is gone and no constant meets zeros in every row that needs weights at all.
        fixed = np.where(self.known[0].constant, self.known[0].low - op.in_zp, 0)[~columns]
        folded = op.bias + op.weight[:, ~columns].astype(np.int64) @ fixed
        weight = np.where(self.pinned[:, None], 0, op.weight)[rows][:, columns]
        return replace(
            op,
            weight=np.ascontiguousarray(weight, np.int8),
            bias=np.where(self.pinned, self.pinned_bias, folded)[rows].astype(np.int32),
            requant=_rows_of(op.requant, rows),
        )
