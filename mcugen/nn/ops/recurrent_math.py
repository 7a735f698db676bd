"""The fixed-point numbers of LSTM and GRU layers: gates, tanh, sigmoid, as runtime_c/src/mcg_nn_recurrent.c has them.

State h in units of 2^-15 (int16), cell c in 2^-20 (int32), gates in 2^-15 (0..32768), arguments of tanh and sigmoid in
2^-16. tanh is linear between 513 entries 1/64 apart, and 32767 from 8 on: off by at most 1.8 units of 2^-15 (half a
unit of an entry, 0.77 between entries, half a unit at the end); sigmoid by at most 1.5.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mcugen.core.types import Array, QParams, frozen_array
from mcugen.errors import UnsupportedError
from mcugen.nn.requant import Requant, requant_of, requantize

ONE = 32768
STATE_SCALE, CELL_SCALE, ARGUMENT_SCALE = 2.0**-15, 2.0**-20, 2.0**-16
#: Clamp of each of the four terms of an argument.
LIMIT = 1 << 28
_TANH_END = 8 << 16
#: int16 (513,)
TANH_TABLE = frozen_array(np.minimum(np.rint(np.tanh(np.arange(513) / 64.0) * ONE), ONE - 1), np.int16)


def tanh_fixed(v: Array) -> Array:
    """Argument in units of 2^-16 to tanh in units of 2^-15, within +-32767."""
    table, a = TANH_TABLE.astype(np.int64), np.abs(v)
    inside = np.minimum(a, _TANH_END - 1)
    low, high = table[inside >> 10], table[(inside >> 10) + 1]
    y = low + (((high - low) * (inside & 1023) + 512) >> 10)
    y = np.where(a < _TANH_END, y, ONE - 1)
    return np.where(v < 0, -y, y)


def sigmoid_fixed(v: Array) -> Array:
    """Argument in units of 2^-16 to sigmoid in units of 2^-15, in 1..32768."""
    half = np.abs(v) >> 1
    return (ONE + tanh_fixed(np.where(v < 0, -half, half)) + 1) >> 1


def rounded15(product: Array) -> Array:
    """``product / 2^15``, half up."""
    return (product + (1 << 14)) >> 15


@dataclass(frozen=True, slots=True, eq=False)
class Gates:
    """Weights of G gates of H units.

    ``w`` int8 (G, H, I), ``r`` int8 (G, H, H); ``scale_x`` and ``scale_h``: Requants with G * H multipliers from the
    products with x and h to units of 2^-16, clamped at +-2^28; ``bias_x``, ``bias_h`` int32 (G, H) in the same units.
    """

    w: Array
    r: Array
    scale_x: Requant
    scale_h: Requant
    bias_x: Array
    bias_h: Array

    @property
    def shape(self) -> tuple[int, int, int]:
        """(G, H, I)"""
        g, h, i = self.w.shape
        return g, h, i

    def problem(self, in_zp: int) -> str:
        """Why the fields do not fit together; empty if they do."""
        g, h, _ = self.shape
        if self.w.dtype != np.int8 or self.r.dtype != np.int8 or self.r.shape != (g, h, h):
            return f"weights {self.w.dtype} {self.w.shape} and {self.r.dtype} {self.r.shape}"
        for bias, scale in ((self.bias_x, self.scale_x), (self.bias_h, self.scale_h)):
            if bias.dtype != np.int32 or bias.shape != (g, h) or np.abs(bias.astype(np.int64)).max(initial=0) > LIMIT:
                return f"a bias {bias.dtype} {bias.shape}"
            if scale.multiplier.shape != (g * h,) or (scale.low, scale.high) != (-LIMIT, LIMIT) or scale.zero_point:
                return "scales of gates"
        from_x = np.abs(self.w.astype(np.int64)).sum(axis=2) * max(127 - in_zp, 128 + in_zp)
        from_h = np.abs(self.r.astype(np.int64)).sum(axis=2) * ONE
        return "" if max(from_x.max(), from_h.max()) < 1 << 31 else "an accumulator leaves int32"

    def from_x(self, x: Array, gate: int) -> Array:
        """x (N, I) int64 without zero point -> (N, H) in units of 2^-16."""
        return np.asarray(self._term(x, self.w[gate], self.scale_x, gate) + self.bias_x[gate])

    def from_h(self, h: Array, gate: int) -> Array:
        """h (N, H) int64 -> (N, H) in units of 2^-16."""
        return np.asarray(self._term(h, self.r[gate], self.scale_h, gate) + self.bias_h[gate])

    def _term(self, v: Array, weight: Array, scale: Requant, gate: int) -> Array:
        acc = v.astype(np.int64) @ weight.astype(np.int64).T
        units = slice(gate * len(weight), (gate + 1) * len(weight))
        one = Requant(scale.multiplier[units], scale.shift[units], 0, scale.low, scale.high)
        return requantize(acc, one, 1)

    def blocks(self, gates: tuple[int, ...]) -> Array:
        """uint32: for each unit the words that the kernel reads for these gates."""
        _, h, _ = self.shape
        parts = []
        for weight in (self.w, self.r):
            four = np.zeros((len(gates), h, -(-weight.shape[2] // 4) * 4), np.int8)
            four[:, :, : weight.shape[2]] = weight[list(gates)]
            words = four.view("<u4").transpose(1, 2, 0)  # (H, groups, gates)
            parts.append(np.ascontiguousarray(words).reshape(h, -1))
        tail = np.stack([self._ends(g) for g in gates], axis=1).reshape(h, -1)
        return np.concatenate([*parts, tail.astype("<i4").view("<u4")], axis=1).reshape(-1)

    def _ends(self, gate: int) -> Array:
        """(H, 8) int64: biases and scales."""
        _, h, _ = self.shape
        units = slice(gate * h, (gate + 1) * h)
        columns = [self.bias_x[gate].astype(np.int64), self.bias_h[gate].astype(np.int64)]
        for s in (self.scale_x, self.scale_h):
            shift = s.shift[units].astype(np.int64)
            c = np.where(shift > 32, np.int64(1) << np.maximum(shift - 33, 0), 0)
            columns += [s.multiplier[units].astype(np.int64), shift, c]
        return np.stack(columns, axis=1)


def gates_of(w: Array, r: Array, bias_x: Array, bias_h: Array, x_scale: float, where: str) -> Gates:
    """Float weights (G * H, I), (G * H, H) and biases (G * H,) to int8 per row, symmetric."""
    hidden = r.shape[1]
    count = len(r) // hidden
    # A row of r as fine as int8 allows, and as coarse as the int32 sum with a full int16 state needs.
    wq, w_scale = _rows(w, (1 << 31) // 256)
    rq, r_scale = _rows(r, ((1 << 31) - 1) // ONE)
    scales = []
    for factor in (x_scale * w_scale / ARGUMENT_SCALE, STATE_SCALE * r_scale / ARGUMENT_SCALE):
        s = requant_of(np.where(factor < 2.0**-31, 0.0, factor), where=where)
        scales.append(Requant(s.multiplier, s.shift, 0, -LIMIT, LIMIT))
    biases = [_argument(b, where).reshape(count, hidden) for b in (bias_x, bias_h)]
    shape_w, shape_r = (count, hidden, w.shape[1]), (count, hidden, hidden)
    return Gates(wq.reshape(shape_w), rq.reshape(shape_r), scales[0], scales[1], biases[0], biases[1])


def _argument(bias: Array, where: str) -> Array:
    units = np.rint(np.asarray(bias, np.float64) / ARGUMENT_SCALE)
    if units.size and np.abs(units).max() > LIMIT:
        raise UnsupportedError(where, f"a bias of {np.abs(bias).max():.3g}", "biases of gates up to 4096 are possible")
    return frozen_array(units, np.int32)


def _rows(weight: Array, largest_sum: int) -> tuple[Array, Array]:
    """int8 rows and their scales; the magnitudes of a row add up to at most ``largest_sum``."""
    rows = np.asarray(weight, np.float64)
    scale = np.abs(rows).max(axis=1) / 127.0
    # Rounding adds at most half a step an element.
    room = largest_sum - rows.shape[1] / 2
    if room <= 0:
        raise UnsupportedError("recurrent layer", f"{rows.shape[1]} elements in a sum", "make the layer smaller")
    scale = np.maximum(scale, np.abs(rows).sum(axis=1) / room)
    scale = np.where(scale < 1e-30, 0.0, scale)
    q = np.rint(rows / np.where(scale > 0, scale, 1.0)[:, None]) * (scale > 0)[:, None]
    return frozen_array(q, np.int8), scale


def start_words(h0: Array, c0: Array | None, where: str) -> Array | None:
    """int32: h in units of 2^-15, then c in 2^-20; None where all are 0."""
    h = np.rint(np.asarray(h0, np.float64) / STATE_SCALE)
    c = np.zeros(0) if c0 is None else np.rint(np.asarray(c0, np.float64) / CELL_SCALE)
    if np.abs(h).max() > ONE or (c.size and np.abs(c).max() > 1 << 30):
        raise UnsupportedError(where, "an initial state outside of -1..1, or a cell beyond 1024")
    words = np.concatenate([np.clip(h, 1 - ONE, ONE - 1), c])
    return frozen_array(words, np.int32) if words.any() else None


def result_requant(unit: float, q: QParams | None, where: str) -> Requant | None:
    """From a state in units of ``unit`` to int8; None where nobody wants the result."""
    return None if q is None else requant_of([unit / q.scale], q.zero_point, where=where)
