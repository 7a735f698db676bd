"""A float net with its scales to machine ops, op by op in the order of the net."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from mcugen.core.op import MachineOp
from mcugen.core.types import DType, Loc, Model, QParams, TensorType
from mcugen.errors import UnsupportedError
from mcugen.nn.ops.move import Move, strided_copy
from mcugen.nn.ops.qtable import QTable, table_of
from mcugen.nn.quantize.scheme import Fused
from mcugen.nn.quantize.stored import Shape, Stored, plain, same_order

#: Physical order of an image: rows, columns, channels.
HWC = (1, 2, 0)
CHW = (0, 1, 2)

Rule = Callable[["Lowering", Fused], None]


class Lowering:
    """The machine model as it grows. ``stored`` says where each source value is; ``params`` how it is quantized;
    ``planar`` which values convolutions write as planes."""

    def __init__(
        self, model: Model, params: Mapping[str, QParams], planar: frozenset[str], interleaved: bool = False
    ) -> None:
        self.model, self.params, self.planar = model, params, planar
        #: Depthwise layers read and write interleaved channels: slower, but in place.
        self.interleaved = interleaved
        self.stored: dict[str, Stored] = {}
        #: Values that exist in int16, too.
        self.wide: dict[str, Stored] = {}
        self.ops: list[MachineOp] = []
        self.types: dict[str, TensorType] = {}
        for value in model.inputs:
            self.new_value(value, plain(value, model.types[value].shape), DType.I8)

    # Values

    def new_value(self, value: str, stored: Stored, dtype: DType = DType.I8, q: QParams | None = None) -> None:
        """Declares that ``value`` lies as ``stored`` says, with its own scale or ``q``."""
        self.stored[value] = stored
        self.types[stored.name] = TensorType(stored.physical, dtype, q or self.params.get(value))

    def arranged(self, value: str, order: tuple[int, ...]) -> Stored:
        """A value with its axes in ``order``, moved there if it lies otherwise."""
        stored = self.stored[value]
        if stored.logical == stored.shape and same_order(stored, order):
            return replace(stored, order=order)
        return self.moved(value, order)

    def in_sequence(self, value: str) -> Stored:
        """A value in its logical sequence."""
        stored = self.stored[value]
        return stored if stored.is_plain else self.moved(value, tuple(range(len(stored.logical))))

    def moved(self, value: str, order: tuple[int, ...]) -> Stored:
        """A copy of a value with its axes in ``order``. One copy serves every reader."""
        source = self.stored[value]
        if source.logical != source.shape and order != tuple(range(len(source.logical))):
            flat = self.moved(value, tuple(range(len(source.logical))))
            self.stored[value] = flat
            return self.moved(value, order)
        target_shape = source.shape if source.logical == source.shape else source.logical
        name = f"{source.name}_{''.join(map(str, order))}"
        base = source.shape
        base_order = order if source.logical == source.shape else tuple(range(len(base)))
        if name not in self.types:
            move = strided_copy((source.name,), (name,), self.loc_of(value), base, source.order, base_order)
            self.ops.append(move)
            kind = self.types[source.name]
            shape = tuple(target_shape[a] for a in order)
            self.types[name] = TensorType(shape, kind.dtype, kind.q)
        return Stored(name, target_shape, target_shape, order)

    def loc_of(self, value: str) -> Loc:
        """The place in the user's file that a value came from."""
        for op in self.model.ops:
            if value in op.outputs:
                return op.loc
        return Loc(self.model.source.name, value)

    # Ops

    def add(self, op: MachineOp) -> None:
        """Appends an op whose results were declared with new_value."""
        self.ops.append(op)

    def rescaled(self, stored: Stored, q_from: QParams, q_to: QParams, loc: Loc) -> Stored:
        """The same numbers with another scale and zero point."""
        if q_from == q_to:
            return stored
        name = f"{stored.name}_s{len(self.ops)}"
        count = self.types[stored.name].count
        table = table_of(lambda x: x, q_from, q_to)
        self.ops.append(QTable((stored.name,), (name,), loc, count, table))
        self.types[name] = TensorType(self.types[stored.name].shape, DType.I8, q_to)
        return replace(stored, name=name)

    def alias(self, result: str, stored: Stored) -> None:
        """``result`` is the memory that ``stored`` names, with the scale of the result where that differs."""
        have = self.types[stored.name].q
        want = self.params.get(result)
        if have is not None and want is not None and have != want:
            stored = self.rescaled(stored, have, want, self.loc_of(result))
        self.stored[result] = stored

    def q(self, value: str) -> QParams:
        """The scale of a value."""
        return self.params[value]

    def unsupported(self, step: Fused, what: str, hint: str = "") -> UnsupportedError:
        """The error for an op that has no integer form."""
        return UnsupportedError(str(step.op.loc), f"{type(step.op).__name__}: {what}", hint or "use --float32")

    def finish(self) -> Model:
        """The machine model: every output in the sequence of the file, under the output's own name."""
        outputs: list[str] = []
        for value in self.model.outputs:
            wide = self.wide.get(value)
            name = wide.name if wide is not None and wide.is_plain else self.in_sequence(value).name
            if name in outputs or name in self.model.inputs:
                name = self._copied(name, value)
            outputs.append(name)
        self._drop_unread(set(outputs))
        return replace(
            self.model,
            level="machine",
            types=self.types,
            ops=tuple(self.ops),
            outputs=tuple(outputs),
        )

    def _copied(self, name: str, value: str) -> str:
        """A copy of a machine value: inputs and outputs are the caller's, and apart."""
        kind = self.types[name]
        copy = f"{name}_copy{len(self.ops)}"
        flat = (kind.count,)
        self.ops.append(strided_copy((name,), (copy,), self.loc_of(value), flat, (0,), (0,), kind.dtype))
        self.types[copy] = kind
        return copy

    def _drop_unread(self, needed: set[str]) -> None:
        """Removes ops whose results nobody reads: int8 copies beside int16 values."""
        kept: list[MachineOp] = []
        for op in reversed(self.ops):
            if needed.intersection(op.outputs):
                kept.append(op)
                needed |= set(op.inputs)
        self.ops = kept[::-1]


def shape3(shape: Shape) -> tuple[int, int, int]:
    """(C, H, W) of an image."""
    c, h, w = shape
    return c, h, w


__all__ = ["CHW", "HWC", "Lowering", "Move", "Rule", "shape3"]
