"""What a run of layers must know of each kind of layer: images, rows, the descriptor for a few rows, the call."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from mcugen.core.op import MachineOp, Names
from mcugen.core.types import DType
from mcugen.nn.ops.qadd import QAdd
from mcugen.nn.ops.qconv import QConv
from mcugen.nn.ops.qdepthwise import QDepthwise
from mcugen.nn.ops.qpool import QPool
from mcugen.nn.ops.qtable import QTable
from mcugen.nn.requant import Requant

Shape3 = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Image:
    """A value of the run: (C, H, W), and whether it lies in planes."""

    shape: Shape3
    planar: bool

    @property
    def row(self) -> int:
        """Bytes from a row to the next, in a plane or of all channels."""
        return self.shape[2] * (1 if self.planar else self.shape[0])

    def with_rows(self, rows: int) -> Shape3:
        """The shape with another height."""
        return (self.shape[0], rows, self.shape[2])


def image_of(shape: Shape3, planar: bool) -> Image:
    """One plane is as well interleaved."""
    return Image(shape, planar and shape[0] > 1)


@dataclass(frozen=True, slots=True)
class Room:
    """Rows that a layer finds: kept of its input and of its output, and the most that a call computes."""

    kept_in: int
    kept_out: int
    call: int


@dataclass(frozen=True, slots=True)
class LayerText:
    """``definition``: descriptor and assertions; ``calls``: the statements for the rows ``p``; headers."""

    definition: str
    calls: tuple[str, ...]
    includes: tuple[str, ...]


class LayerRows(ABC):
    """One layer. ``images``: input and output, None where the op knows elements only."""

    #: A call computes so many rows at least, if there are: kernels that compute rows in twos cannot do one.
    multiple = 1
    images: tuple[Image, Image] | None = None
    op: MachineOp

    def with_room(self, room: Room, scratch: int) -> MachineOp:
        """The layer in the form that is fastest with so much scratch for a call."""
        return self.op

    def geometry(self) -> tuple[int, int, int]:
        """Input rows of an output row, rows that they move on, rows of padding above."""
        return 1, 1, 0

    def fits(self) -> bool:
        """Whether the kernel may be called for some rows: what it does behind them must not meet other memory."""
        return True

    @abstractmethod
    def part(self, room: Room) -> MachineOp:
        """The op as the kernel sees it: with the strides of the memory at hand, and scratch for a call."""

    @abstractmethod
    def text(self, room: Room, prefix: str, names: Names) -> LayerText:
        """The C: descriptor and tables have ``prefix``; the call is made for the rows ``p``."""

    def _text(self, op: MachineOp, prefix: str, names: Names, adapter: tuple[str, str]) -> LayerText:
        """The op's own C, with a descriptor of its own for the rows. ``adapter``: the C struct, and what adapts it."""
        operands = ("p->x", "p->b")[: len(op.inputs)], ("p->y",)
        whole = op.emit(prefix, *operands, names)
        tables = {f"part{s.removeprefix(prefix)}": c for s, c in names.table.items() if s.startswith(f"{prefix}_")}
        part = op.emit("part", *operands, Names(tables, {}, "p->scratch"))
        struct, function = adapter
        declaration = f"const {struct} part_shape = {function}(&{prefix}_shape, p);"
        return LayerText(whole.definitions, (declaration, part.call), whole.includes)


def _narrow(r: Requant) -> bool:
    """Whether a kernel clamps what it wrote afterwards, all bytes from the first on."""
    return r.low > -128 or r.high < 127


class ConvRows(LayerRows):
    """QConv."""

    op: QConv

    def __init__(self, op: QConv) -> None:
        self.op = op
        self.images = image_of(op.in_shape, op.in_planar), image_of(op.out_shape, op.out_planar)

    def geometry(self) -> tuple[int, int, int]:
        return (int(self.op.weight.shape[1]) - 1) * self.op.dilation[0] + 1, self.op.stride[0], self.op.pads[0]

    def fits(self) -> bool:
        return not (self.op.out_planar and _narrow(self.op.requant))

    def with_room(self, room: Room, scratch: int) -> QConv:
        """With the largest tile."""
        (c, _, w), (oc, _, ow) = self.op.in_shape, self.op.out_shape
        op = replace(self.op, in_shape=(c, room.kept_in, w), out_shape=(oc, room.call, ow))
        return replace(self.op, tile=op.with_room(scratch).tile)

    def part(self, room: Room) -> QConv:
        """A tile has no more pixels than a call."""
        (c, _, w), (oc, _, ow) = self.op.in_shape, self.op.out_shape
        op = replace(self.op, in_shape=(c, room.kept_in, w), out_shape=(oc, room.call, ow))
        return replace(op, out_shape=(oc, room.kept_out, ow), tile=int(op.descriptor()["tile"]))

    def text(self, room: Room, prefix: str, names: Names) -> LayerText:
        return self._text(self.part(room), prefix, names, ("mcg_conv_t", "mcg_strips_conv"))


class DepthwiseRows(LayerRows):
    """QDepthwise. Its 3 x 3 kernels compute rows in twos."""

    multiple = 2

    op: QDepthwise

    def __init__(self, op: QDepthwise) -> None:
        self.op = op
        self.images = image_of(op.in_shape, op.in_planar), image_of(op.out_shape, op.out_planar)

    def geometry(self) -> tuple[int, int, int]:
        return (int(self.op.weight.shape[1]) - 1) * self.op.dilation[0] + 1, self.op.stride[0], self.op.pads[0]

    def fits(self) -> bool:
        return not (self.op.out_planar and _narrow(self.op.requant))

    def part(self, room: Room) -> QDepthwise:
        """Where planes do not matter, with as many rows as a call has."""
        (c, _, w), (oc, _, ow) = self.op.in_shape, self.op.out_shape
        rows = room.kept_out if self.op.out_planar else room.call
        return replace(self.op, in_shape=(c, room.kept_in, w), out_shape=(oc, rows, ow), whole=False)

    def text(self, room: Room, prefix: str, names: Names) -> LayerText:
        return self._text(self.part(room), prefix, names, ("mcg_depthwise_t", "mcg_strips_depthwise"))


class AddRows(LayerRows):
    """QAdd, of rows that stand one after the other."""

    op: QAdd

    def __init__(self, op: QAdd) -> None:
        self.op = op

    def part(self, room: Room) -> QAdd:
        return self.op

    def text(self, room: Room, prefix: str, names: Names) -> LayerText:
        return self._text(self.op, prefix, names, ("mcg_add_t", "mcg_strips_add"))


class TableRows(LayerRows):
    """QTable, of rows that stand one after the other."""

    op: QTable

    def __init__(self, op: QTable) -> None:
        self.op = op

    def part(self, room: Room) -> QTable:
        return self.op

    def text(self, room: Room, prefix: str, names: Names) -> LayerText:
        call = f"mcg_table_s8({names.table[f'{prefix}_table']}, p->x, p->y, p->elements);"
        return LayerText("", (call,), ("mcg_nn_elementwise.h",))


class PoolRows(LayerRows):
    """QPool, if it is no pool of the whole height."""

    op: QPool

    def __init__(self, op: QPool) -> None:
        self.op = op
        self.images = image_of(op.in_shape, op.planar), image_of(op.out_shape, op.planar)

    def geometry(self) -> tuple[int, int, int]:
        return (self.op.kernel_size[0] - 1) * self.op.dilation[0] + 1, self.op.stride[0], self.op.pads[0]

    def fits(self) -> bool:
        """A window beyond the input would have to know by how much."""
        return self.op.dtype is DType.I8 and bool(self.op.elements(False).min() > 0)

    def part(self, room: Room) -> QPool:
        (c, _, w), (_, _, ow) = self.op.in_shape, self.op.out_shape
        return replace(self.op, in_shape=(c, room.kept_in, w), out_shape=(c, room.kept_out, ow))

    def text(self, room: Room, prefix: str, names: Names) -> LayerText:
        return self._text(self.part(room), prefix, names, ("mcg_pool_t", "mcg_strips_pool"))


_KINDS: Mapping[type[MachineOp], Callable[[Any], LayerRows]] = {
    QConv: ConvRows,
    QDepthwise: DepthwiseRows,
    QAdd: AddRows,
    QTable: TableRows,
    QPool: PoolRows,
}


def layer_rows(op: MachineOp) -> LayerRows | None:
    """How a layer takes part in a run; None if its kind does not."""
    kind = _KINDS.get(type(op))
    return None if kind is None else kind(op)
