"""Instructions that int8 layers take on a Cortex-M7, estimated: good enough to compare plans of memory.

The factors were fitted to the kernels (GCC -O2) on the emulated board, with an error of 4 % for convolutions, 3 % for
3 x 3 depthwise layers and 15 % for other depthwise ones. What no plan changes is roughly right.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from mcugen.core.op import MachineOp
from mcugen.core.types import Array
from mcugen.nn.ops.qadd import QAdd
from mcugen.nn.ops.qconv import QConv
from mcugen.nn.ops.qdense import QDense
from mcugen.nn.ops.qdepthwise import QDepthwise
from mcugen.nn.ops.qpool import QPool
from mcugen.nn.ops.qtable import QTable
from mcugen.nn.ops.row_chain import RowChain

#: A call of a kernel by mcg_strips_s8; a layer that is looked at before it; a byte by which a window moves.
_CALL, _LOOK, _MOVE = 230.0, 35.0, 0.75


def instructions(op: MachineOp) -> float:
    """Of one inference."""
    if isinstance(op, RowChain):
        return _chain(op)
    return _OF.get(type(op), _other)(op)


def _conv(op: QConv) -> float:
    return conv_rows(op.descriptor(), op.out_shape[1])


def _depthwise(op: QDepthwise) -> float:
    return depthwise_rows(op.descriptor(), op.out_shape[1])


def conv_rows(d: Array, rows: int) -> float:
    """``rows`` output rows of a convolution in one call; ``d``: mcg_conv_t."""
    groups, pairs, tile = int(d["groups"]), -(-int(d["out_c"]) // 2), int(d["tile"])
    pixels = rows * int(d["out_w"])
    blocks = -(-pixels // 3)
    tiles = pixels // tile + (pixels % tile >= 3) + (pixels % tile % 3 > 0)
    flat = int(d["kernel_h"]) == 1 and int(d["stride_h"]) == 1
    runs = int(d["kernel_h"]) * int(d["planes"])
    if flat and int(d["planes"]) == 1:
        pack = 6.0 * groups
    elif runs > 9 or int(d["planes"]) > 1:
        pack = 5.0 * groups + 20.0 + 10.0 * runs
    else:
        pack = 3.6 * groups + 94.0 * runs
    return 350.0 + pixels * pack + tiles * (71.0 + 21.0 * pairs) + pairs * blocks * (42.0 + 18.3 * groups)


def depthwise_rows(d: Array, rows: int) -> float:
    """``rows`` output rows of a depthwise layer in one call; ``d``: mcg_depthwise_t."""
    channels, width, kernel = int(d["channels"]), int(d["out_w"]), int(d["kernel_h"])
    strip = min(int(d["strip"]), rows)
    strips = -(-rows // strip)
    expanded = (strip - 1) * int(d["stride_h"]) + (kernel - 1) * int(d["dilation_h"]) + 1
    read = channels * strips * min(expanded, int(d["in_h"])) * int(d["in_w"])
    planar = int(d["in_col"]) == 1
    outputs = channels * int(d["multiplier"]) * width * rows
    if _is_3x3(d):
        outputs += channels * width * strips * (strip % 2)
        rest = channels * strips * (42.0 + 16.8 * expanded) + read * (2.2 if planar else 5.7)
        return 200.0 + 3.2 * expanded * int(d["pitch"]) + rest + outputs * (14.5 if int(d["stride_w"]) == 1 else 16.3)
    pairs = kernel * -(-int(d["kernel_w"]) // 2)
    rest = 198.0 * channels * strips + read * (1.0 if planar else 2.5)
    return 200.0 + 2.1 * expanded * int(d["pitch"]) + rest + outputs * (23.0 + 1.5 * kernel + 3.1 * pairs)


def _is_3x3(d: Array) -> bool:
    """Whether a 3 x 3 kernel takes the layer, or nearly always."""
    shape = tuple(int(d[f]) for f in ("kernel_h", "kernel_w", "dilation_h", "dilation_w"))
    return shape == (3, 3, 1, 1) and int(d["stride_h"]) == int(d["stride_w"]) <= 2 and int(d["pitch"]) in (16, 32, 64)


def _elements(factor: float) -> Callable[[Any], float]:
    return lambda op: factor * op.count


def _dense(op: QDense) -> float:
    return 1.05 * op.weight.size + 9.0 * len(op.weight)


def _pool(op: QPool) -> float:
    return 5.0 * op.cost().steps + 15.0 * op.out_shape[0] * op.out_shape[1] * op.out_shape[2]


def _other(op: MachineOp) -> float:
    return 10.0 * op.cost().steps


_OF: Mapping[type[MachineOp], Callable[[Any], float]] = {
    QConv: _conv,
    QDepthwise: _depthwise,
    QAdd: _elements(9.0),
    QTable: _elements(3.0),
    QDense: _dense,
    QPool: _pool,
}


def _chain(op: RowChain) -> float:
    """Each call as a layer of its own, what finds the next one, and windows that move on."""
    schedule = op.schedule
    kinds = Counter((c.layer, c.end - c.first) for c in schedule.calls)
    total = len(schedule.calls) * (_CALL + _LOOK * len(op.layers))
    for k, part in enumerate(op.parts):
        if isinstance(part, QConv):
            d = part.descriptor()
            total += sum(n * conv_rows(d, rows) for (layer, rows), n in kinds.items() if layer == k)
        elif isinstance(part, QDepthwise):
            d = part.descriptor()
            total += sum(n * depthwise_rows(d, rows) for (layer, rows), n in kinds.items() if layer == k)
        else:
            total += instructions(op.layers[k])
    row = [op.images[v.outputs[0]].shape for v in op.layers]
    moved = sum(
        (schedule.rows[c.layer] - c.moved) * row[c.layer][0] * row[c.layer][2] for c in schedule.calls if c.moved
    )
    return total + _MOVE * moved
