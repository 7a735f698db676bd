"""Instructions that int8 layers take on a Cortex-M7, estimated: good enough to compare plans of memory.

The factors were fitted to the kernels (GCC -O2) on the emulated board. Of random layers that had no part in it and take
more than 50,000 instructions, nine of ten convolutions are within 4 % (pointwise 1 %, with shared columns 2 %) and all
within 17 %; nine of ten depthwise layers are within 2 % and all within 8 %. Of smaller layers nine of ten are within
10 %, convolutions, and 4 %, depthwise. The reference nets kws, vww, ic and ad are within 1.1 % in every plan that was
counted. That is for the packed form of a table and for sums in units of the output. What no plan changes is roughly
right.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from mcugen.core.op import MachineOp
from mcugen.core.types import Array
from mcugen.nn.ops.qadd import QAdd
from mcugen.nn.ops.qconv import QConv
from mcugen.nn.ops.qdense import QDense
from mcugen.nn.ops.qdepthwise import QDepthwise
from mcugen.nn.ops.qgate import QGate
from mcugen.nn.ops.qmul import QMul
from mcugen.nn.ops.qpool import QPool
from mcugen.nn.ops.qtable import QTable
from mcugen.nn.ops.qwinograd import QWinograd
from mcugen.nn.ops.row_chain import RowChain

#: A call of a kernel by mcg_strips_s8, most of it for a descriptor copied twice; a byte of a window that moves.
_CALL, _MOVE = 1150.0, 0.8
#: Pixels that share the weights that they read.
_BLOCK = 4


def instructions(op: MachineOp) -> float:
    """Of one inference."""
    if isinstance(op, RowChain):
        return _chain(op)
    return _OF.get(type(op), _other)(op)


def _conv(op: QConv) -> float:
    return conv_rows(op.descriptor(), op.out_shape[1], border_of(op))


def _winograd(op: QWinograd) -> float:
    """Fitted to 16, 32 and 64 channels."""
    pairs, steps, groups = -(-op.out_shape[0] // 2), op.in_shape[0] // 2, op.in_shape[0] // 4
    down, across = (-(-n // 2) for n in op.out_shape[1:])
    tiles = down * across
    inside = _inside(op.pads[0], op.in_shape[1], down) * _inside(op.pads[1], op.in_shape[2], across)
    multiply = pairs * op.blocks * (190.0 + 176.0 * steps + 48.0 * ((steps - 1) // 15 + 1))
    transform = 25.0 * tiles + inside * 192.0 * groups + (tiles - inside) * (260.0 + 380.0 * groups)
    outputs = op.out_shape[0] * op.out_shape[1] * op.out_shape[2]
    clamp = 1.9 * outputs * (op.requant.low > -128 or op.requant.high < 127)
    return 200.0 + multiply + transform + 108.5 * tiles * 2 * pairs + clamp


def _inside(pad: int, size: int, tiles: int) -> int:
    """Tiles of a row that do not reach over an end of the input."""
    return sum(2 * i >= pad and 2 * i - pad + 4 <= size for i in range(tiles))


def _depthwise(op: QDepthwise) -> float:
    return depthwise_rows(op.descriptor(), op.out_shape[1])


@dataclass(frozen=True, slots=True)
class Border:
    """How much of a convolution lies at the border: shares of output rows and columns whose windows reach over it, and
    of kernel rows that are inside."""

    rows: float
    cols: float
    kept: float


def border_of(op: QConv) -> Border:
    """Of the whole layer, even where it is computed a few rows at a time."""
    inside = []
    for i in (0, 1):
        first = np.arange(op.out_shape[1 + i]) * op.stride[i] - op.pads[i]
        at = first[:, None] + np.arange(op.weight.shape[1 + i]) * op.dilation[i]
        inside.append((at >= 0) & (at < op.in_shape[1 + i]))
    rows, cols = inside
    return Border(1.0 - float(rows.all(1).mean()), 1.0 - float(cols.all(1).mean()), float(rows.mean()))


def conv_rows(d: Array, rows: int, border: Border) -> float:
    """``rows`` output rows of a convolution in one call; ``d``: mcg_conv_t."""
    groups, pairs, tile = int(d["groups"]), -(-int(d["out_c"]) // 2), int(d["tile"])
    pixels = rows * int(d["out_w"])
    clamp = _clamp(d) * pixels * int(d["out_c"])
    if pixels < _BLOCK:  # one by one
        return clamp + 400.0 + pixels * (220.0 + 8.0 * groups + pairs * (31.0 + 13.0 * groups))
    blocks = -(-pixels // _BLOCK)
    tiles = pixels // tile + (pixels % tile >= _BLOCK) + (pixels % tile % _BLOCK > 0)
    if _is_flat(d):
        pack = 200.0 + 30.0 * tiles + blocks * (6.0 + 20.0 * groups)
    elif _shares_columns(d):
        pack = 250.0 + 80.0 * tiles + _columns(d, rows, border)
    else:
        inside = (1.0 - border.rows) * (1.0 - border.cols)
        edges = _edges(d, 1.0 - inside, border.kept - inside, border.kept * border.cols)
        pack = 400.0 + 170.0 * tiles + pixels * (inside * _patch(d) + edges)
    return clamp + pack + tiles * (45.0 + 18.0 * pairs) + pairs * blocks * (46.0 + 23.25 * groups)


def _clamp(d: Array) -> float:
    """An output, clamped inside of its type."""
    return 1.9 * (int(d["low"]) > -128 or int(d["high"]) < 127)


def _is_flat(d: Array) -> bool:
    """A pointwise layer of whole groups: see mcg_nn_matmul.c."""
    ones = (int(d[f]) for f in ("planes", "kernel_h", "col_runs", "cols", "stride_h", "stride_w"))
    return all(n == 1 for n in ones) and int(d["unit"]) == 4 * int(d["run_groups"])


def _shares_columns(d: Array) -> bool:
    """Whether mcg_conv_nx3_s8 takes the layer: see QConv."""
    return (int(d["col_runs"]), int(d["cols"]), int(d["stride_w"]), int(d["unit"]) % 4) == (1, 3, 1, 0)


def _columns(d: Array, rows: int, border: Border) -> float:
    """Patches of four neighbours at a time; alone where these do not fit a row, or reach over an end of the input."""
    groups, kernel, width = int(d["groups"]), int(d["kernel_h"]), int(d["out_w"])
    pixels, rest = rows * width, rows * min(width, _BLOCK - math.gcd(_BLOCK, width))
    at_ends = min(2.0 + border.rows * rows, (pixels - rest) / _BLOCK) if int(d["pad_left"]) else 0.0
    alone = rest + _BLOCK * at_ends
    at_border = min(at_ends + (rows if int(d["pad_left"]) and rest else 0), alone)
    in_blocks = max(border.cols * pixels - at_border, 0.0)
    total = (pixels - alone) / _BLOCK * (104.0 + 10.0 * kernel + 13.3 * groups) + 64.0 * border.rows * pixels
    total += in_blocks * (135.0 + 43.0 * kernel) + (alone - at_border) * _patch(d)
    return total + _edges(d, at_border, at_border, at_border)


def _patch(d: Array) -> float:
    """One patch inside the input."""
    planes, groups = int(d["planes"]), int(d["groups"])
    runs, run = planes * int(d["kernel_h"]) * int(d["col_runs"]), int(d["run_groups"])
    if run > 1:
        return 22.0 + 28.0 * planes * (planes > 1) + 9.0 * runs + 7.0 * groups
    if run == 1:
        return 40.0 + 12.0 * planes + 8.8 * runs
    return 70.0 if (planes, runs) == (3, 9) else 60.0 + 12.0 * planes + 17.0 * runs


def _edges(d: Array, patches: float, kept: float, sides: float) -> float:
    """Patches at the border. ``kept``: these times the share of their kernel rows that are in the input; ``sides``: of
    ``kept``, what is at the left or right border."""
    planes, groups, unit = int(d["planes"]), int(d["groups"]), int(d["unit"])
    runs = planes * int(d["kernel_h"]) * int(d["col_runs"])
    if int(d["run_groups"]) <= 1 and unit == 1:
        return patches * (150.0 + 20.0 * planes + 30.0 * runs)
    # Runs that are no whole groups of padding or input are put together byte by byte, or with masks.
    mixed = sides * (unit % 4 > 0) + (kept - sides) * (unit * int(d["cols"]) % 4 > 0)
    return patches * (100.0 + 35.0 * planes + 20.0 * runs + 5.0 * groups) + 45.0 * kept * runs + 23.0 * mixed * groups


def depthwise_rows(d: Array, rows: int) -> float:
    """``rows`` output rows of a depthwise layer in one call; ``d``: mcg_depthwise_t."""
    channels, width, kernel = int(d["channels"]), int(d["out_w"]), int(d["kernel_h"])
    strip = min(int(d["strip"]), rows)
    strips = channels * -(-rows // strip)
    expanded = (strip - 1) * int(d["stride_h"]) + (kernel - 1) * int(d["dilation_h"]) + 1
    calls = strips * int(d["multiplier"])
    several = strips > channels or calls > strips
    total = 80.0 + 4.0 * expanded * int(d["pitch"]) + strips * (40.0 + 50.0 * several) + 40.0 * calls
    total += strips * min(expanded, int(d["in_h"])) * _line(d) + _clamp(d) * calls * strip * width
    if _is_3x3(d):
        each = 52.3 if int(d["stride_w"]) == 1 else 59.0
        return total + calls * -(-strip // 2) * (13.0 + width // 2 * each + width % 2 * 27.0)
    pairs = -(-int(d["kernel_w"]) // 2)
    if width < _BLOCK or int(d["dilation_w"]) > 1:
        fours, ones = 0, width
    else:
        fours, ones = width // _BLOCK + (width % _BLOCK > 1), width % _BLOCK == 1
    four = 55.0 + kernel * (20.0 + 5.8 * pairs) if pairs in (2, 3) else kernel * (39.0 + 7.9 * pairs)
    return total + calls * strip * (45.0 + fours * four + ones * (48.0 + 11.0 * kernel * pairs))


def _line(d: Array) -> float:
    """One input row of a channel to int16."""
    width = int(d["in_w"])
    if int(d["in_col"]) > 1:
        return 9.0 + 5.9 * width
    if width <= 8:
        return 13.0 if width == 5 else 19.0
    return 18.0 + 1.8 * width


def _is_3x3(d: Array) -> bool:
    """Whether a 3 x 3 kernel takes the layer, or nearly always."""
    shape = tuple(int(d[f]) for f in ("kernel_h", "kernel_w", "dilation_h", "dilation_w"))
    strides, least = (int(d["stride_h"]), int(d["stride_w"])), min(int(d["out_h"]), int(d["out_w"]))
    return shape == (3, 3, 1, 1) and strides in ((1, 1), (2, 2)) and least > 1 and int(d["pitch"]) in (16, 32, 64)


def _add(op: QAdd) -> float:
    """The scaled form, which nearly all sums have."""
    return (6.8 + 1.9 * (op.requant.low > -128 or op.requant.high < 127)) * op.count


def _elements(factor: float) -> Callable[[Any], float]:
    return lambda op: factor * op.count


def _dense(op: QDense) -> float:
    rows, cols = (int(n) for n in op.weight.shape)
    return 86.0 + 4.0 * cols + 11.3 * rows + 0.927 * op.weight.size


def _pool(op: QPool) -> float:
    return 5.0 * op.cost().steps + 15.0 * op.out_shape[0] * op.out_shape[1] * op.out_shape[2]


def _other(op: MachineOp) -> float:
    return 10.0 * op.cost().steps


_OF: Mapping[type[MachineOp], Callable[[Any], float]] = {
    QConv: _conv,
    QWinograd: _winograd,
    QDepthwise: _depthwise,
    QAdd: _add,
    QTable: _elements(6.0),
    QMul: _elements(12.0),
    QGate: _elements(12.0),
    QDense: _dense,
    QPool: _pool,
}


def _chain(op: RowChain) -> float:
    """Each call as a layer of its own, what finds the next one, and windows that move on."""
    schedule = op.schedule
    kinds = Counter((c.layer, c.end - c.first) for c in schedule.calls)
    total = _CALL * len(schedule.calls)
    for k, part in enumerate(op.parts):
        if isinstance(part, QConv):
            whole = op.layers[k]
            assert isinstance(whole, QConv)
            d, border = part.descriptor(), border_of(whole)
            total += sum(n * conv_rows(d, rows, border) for (layer, rows), n in kinds.items() if layer == k)
        elif isinstance(part, QDepthwise):
            d = part.descriptor()
            total += sum(n * depthwise_rows(d, rows) for (layer, rows), n in kinds.items() if layer == k)
        else:
            total += instructions(op.layers[k])
    images = [op.images[v.outputs[0]] for v in op.layers]
    full = [rows * v.shape[0] * v.shape[2] for rows, v in zip(schedule.rows, images, strict=True)]
    moved = sum(full[c.layer] - c.moved * images[c.layer].row for c in schedule.calls if c.moved)
    return total + _MOVE * moved
