"""What the int16 ops share: the table of channels, bounds of sums, operands."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from mcugen.core.op import Item
from mcugen.core.passes import value_type
from mcugen.core.types import Array, DType, TensorType
from mcugen.nn.ops.kernel_call import Fields
from mcugen.nn.ops.plain_call import misfit, range_misfit
from mcugen.nn.ops.window import same_memory
from mcugen.nn.requant import Requant
from mcugen.nn.requant64 import ACC_BITS

HEADER = "mcg_nn_wide.h"
#: Bits of a word: with larger shifts the upper word of a product is enough.
_WORD = 32
#: mcg_wide_range_t
RANGE_FIELDS: Fields = (("zp", "<i4"), ("low", "<i4"), ("high", "<i4"), ("quick", "<i4"))


def range_values(r: Requant, weight: Array, bias: Array) -> dict[str, int]:
    """The fields of mcg_wide_range_t of a layer."""
    quick = bool(_largest_sums(weight, bias).max() < 1 << 31) and int(r.shift.min()) > _WORD
    return {"zp": r.zero_point, "low": r.low, "high": r.high, "quick": int(quick)}


def _largest_sums(weight: Array, bias: Array) -> Array:
    """A bound of each output's sum in magnitude: float64 (N,), exact below 2^53."""
    reach = np.abs(weight.astype(np.int64)).reshape(len(weight), -1).sum(axis=1) * 32768.0
    sums: Array = reach + np.abs(bias.astype(np.float64))
    return sums


def channel_item(prefix: str, bias: Array, r: Requant, reads: float) -> Item:
    """The table ``prefix_channels``: bias and requantization of each output."""
    n = len(bias)
    multiplier, shift = r.per_channel(n)
    c = np.where(shift > 32, np.int64(1) << np.maximum(shift - 33, 0), 0)
    rows = [bias.astype(np.int64), multiplier, shift, c, np.zeros(n, np.int64)]
    data = np.stack(rows, axis=1)
    data.flags.writeable = False
    about = "bias and requantization of each output"
    return Item(f"{prefix}_channels", "table", "mcg_wide_channel_t", n, 24 * n, 8, reads, about, data)


def wide_words(rows: Array) -> Array:
    """int8 weights (N, K) as mcg_conv_s16 reads them: for each pair of outputs {word of the first, word of the second}
    for each four of K, bytes 0, 2, 1, 3, missing ones zero: uint32 (pairs * groups * 2,)."""
    n, k = rows.shape
    w = np.zeros((n + n % 2, -(-k // 4) * 4), np.int8)
    w[:n, :k] = rows
    words = np.ascontiguousarray(w.reshape(len(w), -1, 4)[:, :, [0, 2, 1, 3]]).view("<u4")[:, :, 0]
    return np.ascontiguousarray(words.reshape(len(w) // 2, 2, -1).transpose(0, 2, 1)).reshape(-1)


def wide_problem(weight: Array, bias: Array, in_zp: int, r: Requant) -> str:
    """Why int8 weights (outputs first), int64 bias and requantization do not make an int16 layer; empty if they do."""
    n = len(weight)
    if weight.dtype != np.int8 or bias.dtype != np.int64 or bias.shape != (n,) or in_zp != 0:
        return f"weights {weight.dtype} {weight.shape}, bias {bias.dtype} {bias.shape}, zero point {in_zp}"
    if _largest_sums(weight, bias).max() >= 1 << ACC_BITS:
        return f"a sum leaves {ACC_BITS} bits"
    return range_misfit(r, DType.I16, n)


def i16_misfit(types: Mapping[str, TensorType], value: str, shape: tuple[int, ...], op: str) -> str:
    """Why a value is no int16 tensor of this physical shape with the zero point 0; empty if it is."""
    problem = misfit(types, value, int(np.prod(shape)), DType.I16, op, 0)
    found = value_type(types, value, op).shape
    return problem or ("" if same_memory(found, shape) else f"{value} is {found}, expected {shape}")
