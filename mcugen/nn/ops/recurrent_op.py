"""What QLstm and QGru share: operands, descriptor, items, emission."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from mcugen.core.op import Cost, Item, MachineOp, Names, OpText
from mcugen.core.types import Array, DType, TensorType
from mcugen.errors import InternalError
from mcugen.nn.ops.kernel_call import Fields, weight_item
from mcugen.nn.ops.plain_call import described_call, misfit, plain_table, range_misfit, requant_values
from mcugen.nn.ops.recurrent_math import TANH_TABLE, Gates
from mcugen.nn.requant import Requant, requantize

_RESULTS = ("every", "last", "cell")
_PARTS = ("m", "shift", "c", "zp", "low", "high")
#: mcg_recurrent_t
_FIELDS: Fields = (
    *((n, "<u4") for n in ("steps", "inputs", "hidden")),
    ("zp_in", "<i4"),
    ("reset_after", "<u4"),
    *((f"{r}.{p}", "<i4") for r in _RESULTS for p in _PARTS),
)


class RecurrentOp(MachineOp):
    """An op over a sequence with a state."""

    __slots__ = ()

    if TYPE_CHECKING:  # declared as fields by the ops
        steps: int
        gates: Gates
        in_zp: int
        start: Array | None
        every: Requant | None
        last: Requant | None

    @property
    def wanted(self) -> tuple[Requant | None, ...]:
        """Requantization of each possible result; those that are not None are the outputs, in this order."""
        return (self.every, self.last)

    @property
    def scratch_bytes(self) -> int:
        _, hidden, inputs = self.gates.shape
        return -(-inputs // 4) * 8 + -(-hidden // 4) * 16 + hidden * 4

    def words(self) -> Array:
        """uint32: weights as the kernel reads them."""
        return self.gates.blocks(tuple(range(self.gates.shape[0])))

    def check_parts(self, types: Mapping[str, TensorType], gates: int, start: int) -> None:
        """Raises InternalError where fields and operands do not fit; ``start``: words of the initial state."""
        name = type(self).__name__
        count, hidden, inputs = self.gates.shape
        problems = [misfit(types, self.inputs[0], self.steps * inputs, DType.I8, name, self.in_zp)]
        problems.append(self.gates.problem(self.in_zp))
        results = [r for r in self.wanted if r is not None]
        if len(results) != len(self.outputs) or not results or count != gates or self.steps < 1:
            problems.append(f"{len(self.outputs)} outputs, {count} gates, {self.steps} steps")
        elif self.start is not None and (self.start.dtype != np.int32 or self.start.shape != (start,)):
            problems.append(f"a start {self.start.dtype} {self.start.shape}")
        else:
            sizes = [
                n for n, r in zip((self.steps * hidden, hidden, hidden), self.wanted, strict=False) if r is not None
            ]
            for value, n, r in zip(self.outputs, sizes, results, strict=True):
                problems += [misfit(types, value, n, DType.I8, name, r.zero_point), range_misfit(r, DType.I8)]
        problem = next(filter(None, problems), "")
        if problem:
            raise InternalError(str(self.loc), f"{name}: {problem}")

    def items(self, prefix: str) -> tuple[Item, ...]:
        about = "weights, biases and scales of the gates, unit by unit"
        tanh = plain_table(f"{prefix}_tanh", TANH_TABLE, 0.0, "tanh at multiples of 1/64 in units of 2^-15")
        weights = weight_item(prefix, self.words(), self.steps, about)
        if self.start is None:
            return weights, tanh
        return weights, tanh, plain_table(f"{prefix}_start", self.start, self.start.size, "state before the first step")

    def recurrent_call(
        self,
        prefix: str,
        kernel: str,
        args: tuple[str, ...],
        results: tuple[str, ...],
        names: Names,
        state: str | None = None,
    ) -> OpText:
        """The call; ``kernel`` is lstm or gru. ``state``: where a step reads and leaves the state."""
        _, hidden, inputs = self.gates.shape
        values = {"steps": self.steps, "inputs": inputs, "hidden": hidden, "zp_in": self.in_zp, "reset_after": 0}
        values["reset_after"] = int(getattr(self, "linear_before_reset", False))
        wanted = (*self.wanted, None, None)[: len(_RESULTS)]
        for name, r in zip(_RESULTS, wanted, strict=True):
            parts = dict.fromkeys(_PARTS, 0) if r is None else requant_values(r)
            values |= {f"{name}.{k.removeprefix('requant.')}": v for k, v in parts.items()}
        left = list(results)
        pointers = [left.pop(0) if r is not None else "NULL" for r in self.wanted]
        start = "NULL" if self.start is None else names.table[f"{prefix}_start"]
        tables = (names.table[f"{prefix}_weights"], names.table[f"{prefix}_tanh"], state or start)
        function = f"mcg_{kernel}_s8" if state is None else f"mcg_{kernel}_step_s8"
        scratch = f"(uint32_t *)(void *)({names.scratch})"
        size = (f"MCG_{kernel.upper()}_SCRATCH({inputs}u, {hidden}u)", self.scratch_bytes)
        shape = ("mcg_recurrent_t", f"{prefix}_shape", _FIELDS, values)
        arguments = (*tables, scratch, args[0], *pointers)
        return described_call("mcg_nn_recurrent.h", function, shape, arguments, size)

    def input_steps(self, x: Array) -> Array:
        """(N, T * I) or (N, T, I) int8 -> (N, T, I) int64 without the zero point."""
        return x.reshape(len(x), self.steps, self.gates.shape[2]).astype(np.int64) - self.in_zp

    def start_state(self, n: int, part: int) -> Array:
        """(N, H) int64: h (part 0) or c (part 1) before the first step."""
        hidden = self.gates.shape[1]
        if self.start is None:
            return np.zeros((n, hidden), np.int64)
        return np.tile(self.start[part * hidden : (part + 1) * hidden].astype(np.int64), (n, 1))

    def results_of(self, every: Array, *last: Array) -> tuple[Array, ...]:
        """States in their own units to the int8 results that are wanted."""
        pairs = zip((every, *last), self.wanted, strict=True)
        return tuple(requantize(v, r).astype(np.int8) for v, r in pairs if r is not None)

    def cost(self) -> Cost:
        gates, hidden, inputs = self.gates.shape
        macs = self.steps * gates * hidden * (inputs + hidden)
        steps = -(-macs // 4)
        return Cost(macs / 4, macs, steps, steps)
