"""QWinograd: the int8 convolution of QConv with 3 x 3 kernels, in 4 instead of 9 multiplications an output."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import ClassVar

import numpy as np

from mcugen.core.op import Cost, Item, Names, OpText
from mcugen.core.types import Array, TensorType
from mcugen.errors import InternalError
from mcugen.nn.ops.kernel_call import Fields, kernel_text, record, weight_item
from mcugen.nn.ops.qconv import QConv
from mcugen.nn.packing import Stream, accumulator_range, folded_bias, halves, packed_requant

#: Twice G of F(2, 3): how a kernel row or column becomes four factors.
_G = np.array([[2, 0, 0], [1, 1, 1], [1, -1, 1], [0, 0, 2]], np.int64)
#: Tiles in a block, sums of a block in bytes: see mcg_nn_winograd.c.
_TILES, _SUMS = 4, 512
#: Four times a sum must fit int32.
_MOST_SUM = 1 << 29

#: mcg_winograd_t
_FIELDS: Fields = (
    ("out_channel", "<u4"),
    ("out_pixel", "<u4"),
    *((n, "<u2") for n in ("in_h", "in_w", "in_c", "out_h", "out_w", "out_c", "pad_top", "pad_left", "rows")),
    *((n, "<i2") for n in ("in_zp", "low", "high")),
)


@dataclass(frozen=True, slots=True, eq=False)
class QWinograd(QConv):
    """QConv with another kernel, whose table is larger and whose results are the same (``eval`` is inherited): 3 x 3
    kernels, strides and dilations of 1, interleaved input of a multiple of 4 channels, requantization in the packed
    form. ``tile`` has no meaning."""

    kernel: ClassVar[tuple[str, str]] = ("mcg_conv_winograd_s8", "src/mcg_nn_winograd.c")

    #: Rows of tiles of 2 x 2 outputs that are transformed before the weights are read.
    rows: int = 1

    def check(self, types: Mapping[str, TensorType]) -> None:
        # No super(): a dataclass with slots is another class than the one that the name stood for.
        QConv.check(self, types)
        if not can_filter(self):
            raise InternalError(str(self.loc), "QWinograd: a convolution that its kernel does not take")

    def _blocks_of(self, rows: int) -> int:
        return -(-rows * -(-self.out_shape[2] // 2) // _TILES)

    @property
    def passes(self) -> int:
        """How often an inference reads the table."""
        return -(-self._down // self.rows)

    @property
    def blocks(self) -> int:
        """Blocks of four tiles of an inference."""
        full = self._down // self.rows
        return full * self._blocks_of(self.rows) + self._blocks_of(self._down - full * self.rows)

    @property
    def _down(self) -> int:
        return -(-self.out_shape[1] // 2)

    @property
    def lag(self) -> int | None:
        """The rows of tiles of a pass are read before their outputs are written, front to back."""
        if self.out_planar:
            return None
        (channels, _, width), (outputs, height, across) = self.in_shape, self.out_shape
        written = np.arange(2 * self.rows, height, 2 * self.rows)
        behind = written * across * outputs - np.maximum(written - self.pads[0], 0) * width * channels
        return int(max(behind, default=0))

    @property
    def scratch_bytes(self) -> int:
        return self._blocks_of(self.rows) * 128 * self.in_shape[0] + _SUMS

    def with_room(self, scratch: int) -> QConv:
        """The same: rows are chosen with the kernel."""
        return self

    def stream(self) -> Stream:
        """The weight table of the kernel: 16 int16 factors for each 9 weights."""
        oc, channels = len(self.weight), self.in_shape[0]
        u = np.einsum("ih,ohwc,jw->oijc", _G, self.weight.astype(np.int64), _G).reshape(oc, 16, channels // 4, 4)
        body = np.stack([halves(u[..., 0], u[..., 2]), halves(u[..., 1], u[..., 3])], axis=-1).reshape(oc, -1)
        ends = packed_requant(self.requant, accumulator_range(self.weight, self.bias, self.in_zp))
        assert ends is not None  # can_filter
        start = ((4 * folded_bias(self.weight, self.bias, self.in_zp)) & 0xFFFFFFFF).astype(np.uint32)
        odd = oc % 2
        body = np.pad(body, ((0, odd), (0, 0)))
        start = np.pad(start, (0, odd))
        tails = np.concatenate([ends.rows(), np.tile(np.array([[0, 0, 1]], np.uint32), (odd, 1))])
        parts = [
            part
            for i in range(0, oc + odd, 2)
            for part in (start[i : i + 2], body[i : i + 2].T.reshape(-1), tails[i : i + 2].reshape(-1))
        ]
        return Stream(np.concatenate(parts).astype(np.uint32), True)

    def descriptor(self) -> Array:
        """The record mcg_winograd_t."""
        (c, h, w), (oc, oh, ow) = self.in_shape, self.out_shape
        channel, pixel = (oh * ow, 1) if self.out_planar else (1, oc)
        values = {"out_channel": channel, "out_pixel": pixel, "in_h": h, "in_w": w, "in_c": c}
        values |= {"out_h": oh, "out_w": ow, "out_c": oc, "pad_top": self.pads[0], "pad_left": self.pads[1]}
        values |= {"rows": self.rows, "in_zp": self.in_zp, "low": self.requant.low, "high": self.requant.high}
        return record(_FIELDS, values)

    def function(self, stream: Stream) -> str:
        """The kernel that reads this table."""
        return self.kernel[0]

    def items(self, prefix: str) -> tuple[Item, ...]:
        about = f"convolution {'x'.join(map(str, self.weight.shape))}: 16 factors for 9 weights, pairs of channels"
        return (weight_item(prefix, self.stream().words, self.blocks, about),)

    def emit(self, prefix: str, args: tuple[str, ...], results: tuple[str, ...], names: Names) -> OpText:
        (c, _, _), (_, _, ow) = self.in_shape, self.out_shape
        scratch = (f"MCG_WINOGRAD_SCRATCH({self.rows}u, {ow}u, {c}u)", self.scratch_bytes, "uint32_t")
        text = kernel_text(
            prefix,
            self.kernel[0],
            "mcg_winograd_t",
            self.descriptor(),
            scratch,
            (args[0], results[0]),
            names,
        )
        return OpText(("mcg_nn_winograd.h",), text.definitions, text.call)

    @property
    def floor(self) -> float:
        """11 instructions for 16 products, 4 products an output and input channel; 24 adds and 4 outputs of 4 a tile;
        64 adds and 32 stores for each 4 x 4 inputs of 4 channels."""
        tiles = -(-self.out_shape[1] // 2) * -(-self.out_shape[2] // 2)
        oc, channels = self.out_shape[0], self.in_shape[0]
        return tiles * (11.0 * oc * channels + 40.0 * oc + 24.0 * channels)

    def cost(self) -> Cost:
        pixels, macs = self.out_shape[1] * self.out_shape[2], self.out_shape[1] * self.out_shape[2] * self.weight.size
        words = self.out_shape[0] * self.in_shape[0] * 8 * -(-pixels // 16)
        return Cost(float(words), macs, words, words)


def can_filter(op: QConv) -> bool:
    """Whether the kernel of QWinograd takes this convolution."""
    if op.in_planar or op.weight.shape[1:3] != (3, 3) or op.in_shape[0] % 4 or op.stride != (1, 1):
        return False
    reach = accumulator_range(op.weight, op.bias, op.in_zp)
    small = int(reach.low.min()) >= -_MOST_SUM and int(reach.high.max()) < _MOST_SUM
    return op.dilation == (1, 1) and small and packed_requant(op.requant, reach) is not None


def filtered(op: QConv, rows: int) -> QWinograd:
    """The same layer by this kernel, so many rows of tiles a pass."""
    values = {f.name: getattr(op, f.name) for f in fields(QConv)}
    return QWinograd(**{**values, "tile": 0}, rows=rows)
