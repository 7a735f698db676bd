"""FrameSamples: samples into a ring, and the last ones out of it as an array."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from mcugen.core.op import Cost, Item, MachineOp, Names, OpText, StateMember
from mcugen.core.passes import value_type
from mcugen.core.types import Array, DType, TensorType
from mcugen.dsp.ops.base import zeroed
from mcugen.dsp.source.features import MAX_LENGTH, due_pushes
from mcugen.dsp.source.frames import frame_shape, frames_of
from mcugen.errors import InternalError


@dataclass(frozen=True, slots=True, eq=False)
class FrameSamples(MachineOp):
    """x (C,) -> the last ``length`` samples, due when they are there, then at each ``step``-th push. Any type.

    The result is (length, C), or (C, length) where ``planar``: the memory of the net's input, whatever its axes of 1.
    """

    kernel: ClassVar[tuple[str, str]] = ("mcg_frame_push", "src/mcg_chain.c")

    dtype: DType
    width: int
    length: int
    step: int
    planar: bool

    def check(self, types: Mapping[str, TensorType]) -> None:
        x, y = (value_type(types, v, "FrameSamples") for v in (self.inputs[0], self.outputs[0]))
        shape = frame_shape(self.width, self.length, self.planar)
        ok = x.dtype is y.dtype is self.dtype and x.shape == (self.width,) and y.count == shape[0] * shape[1]
        if not ok or not 1 <= self.length <= MAX_LENGTH or not 1 <= self.step < 1 << 31:
            raise InternalError(str(self.loc), f"FrameSamples: {x} to {y}, {self.length} samples, step {self.step}")

    @property
    def state(self) -> tuple[StateMember, ...]:
        n, size = self.width * self.length, self.dtype.size
        order = "channel by channel" if self.planar else "instant by instant"
        return (
            StateMember("wait", "uint32_t", 0, 4, 4, "pushes to the next result"),
            StateMember("at", "uint32_t", 0, 4, 4, "where the next sample goes in the ring"),
            StateMember("ring", self.dtype.ctype, n, n * size, size, f"the samples, {order}"),
        )

    def due(self, pushes: int) -> Array:
        return due_pushes(pushes, self.length, self.step)

    def eval(self, *args: Array) -> tuple[Array, ...]:
        """x (T, C) -> (T', length, C) or (T', C, length)."""
        return (frames_of(args[0], self.length, self.step, self.planar),)

    def items(self, prefix: str) -> tuple[Item, ...]:
        return ()

    def emit(self, prefix: str, args: tuple[str, ...], results: tuple[str, ...], names: Names) -> OpText:
        rows, unit = (self.width, self.dtype.size) if self.planar else (1, self.width * self.dtype.size)
        text = (
            f"static const mcg_frame_t {prefix}_frame = {{.rows = {rows}u, .length = {self.length}u, "
            f".unit = {unit}u, .step = {self.step}u}};\n"
        )
        s, frame = names.state, f"&{prefix}_frame"
        call = (
            f"if (mcg_frame_push({frame}, {s['ring']}, &{s['at']}, &{s['wait']}, {args[0]}) == 0u) {{\n"
            f"    return MCG_PENDING;\n}}\nmcg_frame_copy({frame}, {s['ring']}, {s['at']}, {results[0]});"
        )
        init = f"{s['wait']} = {self.length}u;\n{s['at']} = 0;\n{zeroed(s, 'ring')}"
        return OpText(("mcg_chain.h", "mcg_filter.h"), text, call, init=init)

    def cost(self) -> Cost:
        bytes_ = self.width * self.dtype.size
        copied = bytes_ * self.length // 4
        return Cost(0, 0, 4 * bytes_ + copied / self.step, 4 * bytes_ + copied)
