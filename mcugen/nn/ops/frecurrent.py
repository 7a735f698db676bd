"""FLstm and FGru: recurrent layers over a whole sequence in float32."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mcugen.core.float_math import sigmoid_f32
from mcugen.core.op import Cost, Item, MachineOp, Names, OpText
from mcugen.core.types import Array, DType, TensorType
from mcugen.errors import InternalError
from mcugen.nn.ops.float_math import dot_f32, finite, quiet, tanh_f32
from mcugen.nn.ops.kernel_call import Fields
from mcugen.nn.ops.plain_call import described_call, misfit, plain_table

#: mcg_wide_recurrent_t
_FIELDS: Fields = tuple((n, "<u4") for n in ("steps", "inputs", "hidden", "reset_after"))


class _Recurrent(MachineOp):
    """Weights ``w`` (G * H, I), ``r`` (G * H, H), ``start`` float32, gates in ONNX's order.

    ``wanted``: which of the results are outputs, in the order all steps, last h, last c.
    """

    __slots__ = ()

    steps: int
    w: Array
    r: Array
    start: Array
    wanted: tuple[bool, ...]

    @property
    def hidden(self) -> int:
        """H."""
        return int(self.r.shape[1])

    def biases(self) -> Array:
        """The biases as the kernel reads them."""
        raise NotImplementedError

    def check_parts(self, types: Mapping[str, TensorType], gates: int, states: int) -> None:
        """Raises InternalError where fields and operands do not fit."""
        name, h = type(self).__name__, self.hidden
        ok = self.r.shape == (gates * h, h) and self.w.shape[0] == gates * h and self.start.shape == (states * h,)
        ok = ok and finite(self.w, self.r, self.start, self.biases()) and self.biases().size in (4 * h, 6 * h)
        ok = ok and sum(self.wanted) == len(self.outputs) > 0 and len(self.wanted) == 1 + states and self.steps > 0
        problems = [] if ok else [f"weights {self.w.shape} and {self.r.shape}, {len(self.outputs)} outputs"]
        problems.append(misfit(types, self.inputs[0], self.steps * self.w.shape[1], DType.F32, name))
        sizes = [n for n, w in zip((self.steps * h, h, h), self.wanted, strict=False) if w]
        problems += [misfit(types, v, n, DType.F32, name) for v, n in zip(self.outputs, sizes, strict=False)]
        problem = next(filter(None, problems), "")
        if problem:
            raise InternalError(str(self.loc), f"{name}: {problem}")

    @property
    def scratch_bytes(self) -> int:
        return 12 * self.hidden

    def items(self, prefix: str) -> tuple[Item, ...]:
        tables = {"w": self.w, "r": self.r, "bias": self.biases()}
        reads = {k: float(self.steps * v.size) for k, v in tables.items()}
        about = "weights of a recurrent layer"
        items = [plain_table(f"{prefix}_{k}", v, reads[k], about) for k, v in tables.items()]
        if self.start.any():
            items.append(plain_table(f"{prefix}_start", self.start, self.start.size, "state before the first step"))
        return tuple(items)

    def call(
        self,
        prefix: str,
        kernel: str,
        args: tuple[str, ...],
        results: tuple[str, ...],
        names: Names,
        state: str | None = None,
    ) -> OpText:
        """The call of mcg_``kernel``_f32, or of its step. ``state``: where a step reads and leaves the state."""
        values = {"steps": self.steps, "inputs": int(self.w.shape[1]), "hidden": self.hidden}
        values["reset_after"] = int(getattr(self, "linear_before_reset", False))
        left = list(results)
        pointers = [left.pop(0) if w else "NULL" for w in self.wanted]
        start = names.table[f"{prefix}_start"] if self.start.any() else "NULL"
        tables = (*(names.table[f"{prefix}_{k}"] for k in ("w", "r", "bias")), state or start)
        function = f"mcg_{kernel}_f32" if state is None else f"mcg_{kernel}_step_f32"
        shape = ("mcg_wide_recurrent_t", f"{prefix}_shape", _FIELDS, values)
        scratch = f"(float *)(void *)({names.scratch})"
        size = (f"MCG_RECURRENT_F32_SCRATCH({self.hidden}u)", self.scratch_bytes)
        arguments = (*tables, scratch, args[0], *pointers)
        return described_call("mcg_nn_float.h", function, shape, arguments, size)

    def input_steps(self, x: Array) -> Array:
        """(N, T, I) float32."""
        return x.reshape(len(x), self.steps, self.w.shape[1]).astype(np.float32)

    def results_of(self, *values: Array) -> tuple[Array, ...]:
        """Those that are wanted."""
        return tuple(v for v, w in zip(values, self.wanted, strict=True) if w)

    def cost(self) -> Cost:
        macs = self.steps * int(self.w.size + self.r.size)
        return Cost(float(macs), macs, float(macs), macs)


@dataclass(frozen=True, slots=True, eq=False)
class FLstm(_Recurrent):
    """x (T, I) -> all steps (T, H), last h (H,), last c (H,), float32. Gates i, o, f, g.

    ``bias`` (4H,), ``start`` (2H,) h and c before the first step. A sum is bias, products with x, products with h.
    """

    kernel: ClassVar[tuple[str, str]] = ("mcg_lstm_f32", "src/mcg_nn_float_recurrent.c")

    steps: int
    w: Array
    r: Array
    bias: Array
    start: Array
    wanted: tuple[bool, ...] = (True, True, True)

    def biases(self) -> Array:
        return self.bias

    def check(self, types: Mapping[str, TensorType]) -> None:
        self.check_parts(types, 4, 2)

    @quiet
    def eval(self, *args: Array) -> tuple[Array, ...]:
        """(N, T, I) -> (N, T, H), (N, H), (N, H)."""
        every, cells = self.sequence(self.input_steps(args[0]))
        return self.results_of(every, every[:, -1], cells[:, -1])

    def sequence(self, x: Array) -> tuple[Array, Array]:
        """(N, T, I) to h and c after every step, (N, T, H)."""
        h, c = (np.tile(v, (len(x), 1)) for v in np.split(self.start, 2))
        every, cells = (np.zeros((*x.shape[:2], self.hidden), np.float32) for _ in range(2))
        for t in range(x.shape[1]):
            gates = dot_f32(dot_f32(self.bias, self.w, x[:, t]), self.r, h)
            i, o, f, g = np.split(gates, 4, axis=1)
            c = sigmoid_f32(f, 1.0) * c + sigmoid_f32(i, 1.0) * tanh_f32(g)
            h = sigmoid_f32(o, 1.0) * tanh_f32(c)
            every[:, t], cells[:, t] = h, c
        return every, cells

    def emit(self, prefix: str, args: tuple[str, ...], results: tuple[str, ...], names: Names) -> OpText:
        return self.call(prefix, "lstm", args, results, names)


@dataclass(frozen=True, slots=True, eq=False)
class FGru(_Recurrent):
    """x (T, I) -> all steps (T, H), last h (H,), float32. Gates z, r, n.

    ``bias_x``, ``bias_h`` (3H,), ``start`` (H,). Each sum starts with its bias.
    """

    kernel: ClassVar[tuple[str, str]] = ("mcg_gru_f32", "src/mcg_nn_float_recurrent.c")

    steps: int
    w: Array
    r: Array
    bias_x: Array
    bias_h: Array
    start: Array
    linear_before_reset: bool
    wanted: tuple[bool, ...] = (True, True)

    def biases(self) -> Array:
        return np.concatenate([self.bias_x, self.bias_h])

    def check(self, types: Mapping[str, TensorType]) -> None:
        self.check_parts(types, 3, 1)

    @quiet
    def eval(self, *args: Array) -> tuple[Array, ...]:
        """(N, T, I) -> (N, T, H), (N, H)."""
        every = self.sequence(self.input_steps(args[0]))
        return self.results_of(every, every[:, -1])

    def sequence(self, x: Array) -> Array:
        """(N, T, I) to h after every step, (N, T, H)."""
        k = self.hidden
        h = np.tile(self.start, (len(x), 1))
        every = np.zeros((*x.shape[:2], k), np.float32)
        for t in range(x.shape[1]):
            from_x = dot_f32(self.bias_x, self.w, x[:, t])
            from_h = dot_f32(self.bias_h, self.r, h)
            z, r = (sigmoid_f32(from_x[:, s] + from_h[:, s], 1.0) for s in (slice(k), slice(k, 2 * k)))
            if self.linear_before_reset:
                value = from_x[:, 2 * k :] + r * from_h[:, 2 * k :]
            else:
                value = from_x[:, 2 * k :] + dot_f32(self.bias_h[2 * k :], self.r[2 * k :], r * h)
            h = z * h + (np.float32(1.0) - z) * tanh_f32(value)
            every[:, t] = h
        return every

    def emit(self, prefix: str, args: tuple[str, ...], results: tuple[str, ...], names: Names) -> OpText:
        return self.call(prefix, "gru", args, results, names)
