"""RowChain: layers that are computed together, a few rows of each at a time, with windows of rows between them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import groupby
from typing import ClassVar

from mcugen.core.op import Cost, Item, MachineOp, Names, OpText
from mcugen.core.types import Array, TensorType
from mcugen.ctext.comments import comment_text
from mcugen.errors import InternalError
from mcugen.nn.ops.strip_layers import Image, LayerRows, Room, layer_rows
from mcugen.nn.ops.strip_schedule import Schedule, StripLayer, schedule_of

#: MCG_STRIPS_MOST_LAYERS, MCG_STRIPS_MOST_VALUES
MOST_LAYERS, MOST_VALUES = 20, 24
_ALIGN = 8


@dataclass(frozen=True, slots=True, eq=False)
class RowChain(MachineOp):
    """int8 images -> the image that the last of ``layers`` gives; the others' outputs exist as windows of rows only.

    ``inner``: the types of the values between the layers. ``images``: shape and layout of each value, inputs included.
    ``pixels``: as many rows of a layer are computed at a time as hold so many output pixels. Each row of each layer is
    computed once, by the kernel of the layer: the results are those of the layers one after the other.
    """

    kernel: ClassVar[tuple[str, str]] = ("mcg_strips_s8", "src/mcg_nn_strips.c")

    layers: tuple[MachineOp, ...]
    inner: Mapping[str, TensorType]
    images: Mapping[str, Image]
    pixels: int

    def check(self, types: Mapping[str, TensorType]) -> None:
        known = {v: types[v] for v in (*self.inputs, *self.outputs) if v in types} | dict(self.inner)
        for op in self.layers:
            op.check(known)
        problem = self._problem()
        if problem:
            raise InternalError(str(self.loc), f"RowChain: {problem}")

    def _problem(self) -> str:
        made = [op.outputs[0] for op in self.layers]
        if len(made) > MOST_LAYERS or len(self.values) > MOST_VALUES or len(made) < 1 or self.pixels < 1:
            return f"{len(made)} layers, {len(self.values)} values, {self.pixels} pixels"
        if made[-1:] != list(self.outputs) or set(made[:-1]) != set(self.inner):
            return f"outputs {made} for {self.outputs} and {sorted(self.inner)}"
        for k, op in enumerate(self.layers):
            rows = layer_rows(op)
            if rows is None or not rows.fits() or not set(op.inputs) <= {*self.inputs, *made[:k]}:
                return f"{type(op).__name__} cannot take part"
            own = rows.images
            found = tuple(self.images[v] for v in (*op.inputs, *op.outputs))
            if own is not None and found != own:
                return f"{op.outputs[0]}: {found}, expected {own}"
            if own is None and (len(set(found)) > 1 or found[0].planar):
                return f"{op.outputs[0]}: rows of {found} do not match"
        return ""

    def eval(self, *args: Array) -> tuple[Array, ...]:
        env = dict(zip(self.inputs, args, strict=True))
        for op in self.layers:
            (value,) = op.outputs
            (y,) = op.eval(*(env[v] for v in op.inputs))
            env[value] = y.reshape(len(y), *self.inner[value].shape) if value in self.inner else y
        return (env[self.outputs[0]],)

    @property
    def title(self) -> str:
        """RowChain of the classes of its layers; equal neighbours once, with their number."""
        runs = [(n, len(list(same))) for n, same in groupby(type(op).__name__ for op in self.layers)]
        return f"RowChain of {', '.join(f'{n} {kind}' if n > 1 else kind for kind, n in runs)}"

    @property
    def values(self) -> tuple[str, ...]:
        """Inputs, then the output of each layer, as the kernel numbers them."""
        return (*self.inputs, *(op.outputs[0] for op in self.layers))

    @property
    def strip_layers(self) -> tuple[StripLayer, ...]:
        """The layers as the schedule sees them, with the rows that are read in the end (a stride may leave some)."""
        values, made = self.values, list[StripLayer]()
        read = dict.fromkeys(values, 0) | {v: self.images[v].shape[1] for v in (*self.inputs, *self.outputs)}
        for op in reversed(self.layers):
            rows = _rows_of(op)
            _, full, width = self.images[op.outputs[0]].shape
            least = min(rows.multiple, full)
            height = max(read[op.outputs[0]], least)
            at_once = -(-self.pixels // (width * rows.multiple)) * rows.multiple
            reads = tuple(values.index(v) for v in op.inputs)
            layer = StripLayer(reads, height, *rows.geometry(), min(at_once, height), least)
            made.append(layer)
            for v in op.inputs:
                read[v] = max(read[v], layer.row_to(height, self.images[v].shape[1]))
        return tuple(reversed(made))

    @property
    def schedule(self) -> Schedule:
        """The calls of the kernels in order, and the rows that are kept."""
        return _layout(self).schedule

    @property
    def parts(self) -> tuple[MachineOp, ...]:
        """The layers as their kernels see them."""
        return _layout(self).parts

    def with_room(self, scratch: int) -> RowChain:
        """The same chain with larger tiles, as far as they pay and it needs at most so much scratch."""
        layout = _layout(self)
        room = layout.kernels + max(scratch - layout.size, 0)
        layers = tuple(_rows_of(op).with_room(r, room) for op, r in zip(self.layers, layout.rooms, strict=True))
        return replace(self, layers=layers)

    @property
    def scratch_bytes(self) -> int:
        return _layout(self).size

    @property
    def lag(self) -> int | None:
        """Rows are read and written from the first to the last; each is written behind the rows that are still read.

        Of an input in planes those of the first plane count: what is still read of the others lies behind them. A layer
        of single elements that is the last one may write what it has just read.
        """
        x, y = self.images[self.inputs[0]], self.images[self.outputs[0]]
        if y.planar:
            return None
        last = self.layers[-1]
        direct = self.inputs[0] in last.inputs and _rows_of(last).images is not None
        schedule, rows = self.schedule, self.strip_layers[-1]
        behind = [end * y.row - first * x.row for end, first in schedule.behind[0]]
        if direct:
            ends = [
                (c.end, rows.row_from(c.first, x.shape[1])) for c in schedule.calls if c.layer == len(self.layers) - 1
            ]
            behind += [end * y.row - first * x.row for end, first in ends]
        return max([0, *behind])

    def items(self, prefix: str) -> tuple[Item, ...]:
        return tuple(item for k, op in enumerate(self.layers) for item in op.items(f"{prefix}_{k}"))

    def emit(self, prefix: str, args: tuple[str, ...], results: tuple[str, ...], names: Names) -> OpText:
        texts = [
            _rows_of(op).text(room, f"{prefix}_{k}", names)
            for k, (op, room) in enumerate(zip(self.layers, _layout(self).rooms, strict=True))
        ]
        cases = [
            "\n".join([f"    case {k}u: {{", *(f"        {c}" for c in text.calls), "        break;", "    }"])
            for k, text in enumerate(texts)
        ]
        function = "\n".join(
            [
                f"static void {prefix}_layer(uint32_t layer, const mcg_strips_part_t *p)",
                "{",
                "    switch (layer) {",
                *cases,
                "    default:",
                "        break;",
                "    }",
                "}",
            ]
        )
        definitions = "".join(t.definition for t in texts) + self._tables(prefix) + function + "\n"
        inputs = ", ".join(args)
        operands = f"{names.scratch}, (const int8_t *const[]){{{inputs}}}, {results[0]}"
        call = f"mcg_strips_s8(&{prefix}_strips, {prefix}_layer, {operands});"
        includes = {"mcg_nn_strips.h", *(i for t in texts for i in t.includes)}
        return OpText(tuple(sorted(includes)), definitions, call)

    def _tables(self, prefix: str) -> str:
        """Values, layers and the run as C."""
        layout, strips = _layout(self), self.strip_layers
        n = len(self.inputs)
        heights = [*(self.images[v].shape[1] for v in self.inputs), *(s.height for s in strips)]
        values = []
        for i, v in enumerate(self.values):
            image = self.images[v]
            rows = image.shape[1] if i < n else layout.schedule.rows[i - n]
            numbers = (0 if i < n else layout.offsets[i - n], _bytes(image, rows), image.row, rows, heights[i])
            values.append(f"    {{{', '.join(f'{k}u' for k in numbers)}}}, /* {comment_text(v)} */")
        layers = []
        for s in strips:
            geometry = (s.reads[0], s.reads[-1], s.reach, s.stride, s.pad_top, s.rows, s.least)
            layers.append(f"    {{{', '.join(f'{k}u' for k in geometry)}}},")
        fields = f".values = {prefix}_values, .layers = {prefix}_layers, .inputs = {n}u, .count = {len(layers)}u"
        return "\n".join(
            [
                f"static const mcg_strips_value_t {prefix}_values[] = {{",
                *values,
                "};",
                f"static const mcg_strips_layer_t {prefix}_layers[] = {{",
                *layers,
                "};",
                f"static const mcg_strips_t {prefix}_strips = {{{fields}}};\n",
            ]
        )

    @property
    def floor(self) -> float | None:
        """Those of the layers together, if all are known."""
        floors = [op.floor for op in self.layers]
        return None if None in floors else sum(f for f in floors if f is not None)

    def cost(self) -> Cost:
        costs = [op.cost() for op in self.layers]
        return Cost(
            sum(c.reads for c in costs),
            sum(c.macs for c in costs),
            sum(c.steps for c in costs),
            sum(c.worst_steps for c in costs),
        )


@dataclass(frozen=True, slots=True, eq=False)
class _Layout:
    """What follows from the fields of a chain: ``rooms`` and ``parts`` by layer; ``kernels``: bytes of scratch of the
    kernels, in front of the windows, which start at ``offsets``; ``size``: bytes of all."""

    schedule: Schedule
    rooms: tuple[Room, ...]
    parts: tuple[MachineOp, ...]
    kernels: int
    offsets: tuple[int, ...]
    size: int


@lru_cache(maxsize=64)
def _layout(chain: RowChain) -> _Layout:
    values, n = chain.values, len(chain.inputs)
    heights = tuple(chain.images[v].shape[1] for v in chain.inputs)
    schedule = schedule_of(heights, chain.strip_layers)
    kept = [*heights, *schedule.rows]
    rooms = tuple(
        Room(kept[values.index(op.inputs[0])], kept[n + k], schedule.most_rows(k)) for k, op in enumerate(chain.layers)
    )
    parts = tuple(_rows_of(op).part(room) for op, room in zip(chain.layers, rooms, strict=True))
    at = kernels = _rounded(max(p.scratch_bytes for p in parts))
    offsets = []
    for op, rows in zip(chain.layers[:-1], schedule.rows, strict=False):
        offsets.append(at)
        at = _rounded(at + _bytes(chain.images[op.outputs[0]], rows))
    return _Layout(schedule, rooms, parts, kernels, (*offsets, 0), at)


def _rows_of(op: MachineOp) -> LayerRows:
    rows = layer_rows(op)
    if rows is None:
        raise InternalError(str(op.loc), f"{type(op).__name__} cannot take part")
    return rows


def _bytes(image: Image, rows: int) -> int:
    c, h, w = image.with_rows(rows)
    return c * h * w


def _rounded(size: int) -> int:
    return -(-size // _ALIGN) * _ALIGN
