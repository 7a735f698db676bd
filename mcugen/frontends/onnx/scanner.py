"""ONNX, first step: bytes to a plain graph. Knows the container and its types, not what an op means.

Nodes come out in an order in which every input is written before it is read. Files with external data, cycles,
undefined or doubly written values are refused here. Element types and attributes that are not plain numbers or text
become ``Foreign``: whoever needs them reports them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import onnx
from google.protobuf.message import DecodeError
from onnx import numpy_helper

from mcugen.core.types import Array, frozen_array
from mcugen.errors import InputError, UnsupportedError

MAX_BYTES = 1 << 29
MAX_NODES = 100_000
MAX_RANK = 8
#: Opsets of the domain ai.onnx that the table of ops was written for.
OPSETS = range(7, 24)


@dataclass(frozen=True, slots=True)
class Foreign:
    """Something that is not read: a subgraph, a tensor of strings or of 4-bit numbers."""

    what: str


Attribute = int | float | str | tuple[int, ...] | tuple[float, ...] | tuple[str, ...] | Array | Foreign


@dataclass(frozen=True, slots=True, eq=False)
class Node:
    """``name``: the file's, or the name of the first output. ``domain`` is empty for ai.onnx."""

    name: str
    op: str
    domain: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: Mapping[str, Attribute]


@dataclass(frozen=True, slots=True)
class GraphInput:
    """``dtype`` as ONNX names it (FLOAT); per axis a size, the name of a dynamic axis, or None for no name."""

    name: str
    dtype: str
    dims: tuple[int | str | None, ...] | None


@dataclass(frozen=True, slots=True, eq=False)
class Graph:
    """A file without its container. ``opsets`` maps domain to version. Only nodes that an output needs are kept."""

    inputs: tuple[GraphInput, ...]
    outputs: tuple[str, ...]
    initializers: Mapping[str, Array | Foreign]
    nodes: tuple[Node, ...]
    opsets: Mapping[str, int]

    @property
    def opset(self) -> int:
        """Version of the domain ai.onnx."""
        return self.opsets[""]


def scan(data: bytes, file: str) -> Graph:
    """The graph of a file; InputError where it is damaged, UnsupportedError for opsets outside of OPSETS."""
    if len(data) > MAX_BYTES:
        raise InputError(file, f"{len(data)} bytes; the limit is {MAX_BYTES}")
    proto = onnx.ModelProto()
    try:
        proto.ParseFromString(data)
    except (DecodeError, RecursionError):
        raise InputError(file, "is not an ONNX model, or is damaged") from None
    if not proto.HasField("graph") or not proto.opset_import:
        raise InputError(file, "is not an ONNX model: no graph or no opset", "export the model again")
    graph = proto.graph
    opsets = {("" if o.domain == "ai.onnx" else o.domain): int(o.version) for o in proto.opset_import}
    if opsets.setdefault("", OPSETS[-1]) not in OPSETS:
        hint = "convert it with onnx.version_converter.convert_version(model, 17)"
        raise UnsupportedError(file, f"opset {opsets['']}; {OPSETS[0]} to {OPSETS[-1]} are supported", hint)
    if proto.functions:
        hint = "inline them with onnx.inliner.inline_local_functions(model)"
        raise UnsupportedError(file, f"the file defines functions, such as {proto.functions[0].name}", hint)
    if graph.sparse_initializer:
        raise UnsupportedError(file, "sparse initializers", "store the weights as dense tensors")
    if len(graph.node) > MAX_NODES:
        raise InputError(file, f"{len(graph.node)} nodes; the limit is {MAX_NODES}")
    initializers = {t.name: _tensor(t, file) for t in graph.initializer}
    nodes = [_node(n, file) for n in graph.node]
    inputs = tuple(_graph_input(v, file) for v in graph.input if v.name not in initializers)
    outputs = tuple(v.name for v in graph.output)
    if not outputs:
        raise InputError(file, "the graph has no outputs")
    ordered = _order(nodes, [i.name for i in inputs], list(initializers), outputs, file)
    return Graph(inputs, outputs, initializers, ordered, opsets)


def short(name: str) -> str:
    """A name for a message: quoted, and not longer than a line."""
    return f"'{name if len(name) <= 60 else name[:57] + '...'}'"


def _tensor(t: onnx.TensorProto, file: str) -> Array | Foreign:
    where = f"{file}: tensor {short(t.name)}"
    if t.data_location == onnx.TensorProto.EXTERNAL or t.external_data:
        hint = "give the path of the model, or load it with onnx.load: that reads the other file"
        raise InputError(where, "its values are in another file", hint)
    if any(d < 0 for d in t.dims) or len(t.dims) > MAX_RANK:
        raise InputError(where, f"dimensions {list(t.dims)[: MAX_RANK + 1]}")
    try:
        kind = onnx.TensorProto.DataType.Name(t.data_type)
    except ValueError:
        return Foreign(f"a tensor of element type {t.data_type}")
    if kind not in _TYPES:
        return Foreign(f"a tensor of {kind}")
    try:
        a = numpy_helper.to_array(t)
    except (ValueError, TypeError, OverflowError, MemoryError) as e:
        raise InputError(where, f"is damaged: {e}") from None
    return frozen_array(a.astype(np.float32) if kind == "BFLOAT16" else a)


_TYPES = frozenset("FLOAT DOUBLE FLOAT16 BFLOAT16 INT8 INT16 INT32 INT64 UINT8 UINT16 UINT32 UINT64 BOOL".split())


def _attribute(a: onnx.AttributeProto, file: str) -> Attribute:
    kinds = onnx.AttributeProto
    match a.type:
        case kinds.INT:
            return int(a.i)
        case kinds.FLOAT:
            return float(a.f)
        case kinds.STRING:
            return a.s.decode("utf-8", "replace")
        case kinds.INTS:
            return tuple(int(v) for v in a.ints)
        case kinds.FLOATS:
            return tuple(float(v) for v in a.floats)
        case kinds.STRINGS:
            return tuple(s.decode("utf-8", "replace") for s in a.strings)
        case kinds.TENSOR:
            return _tensor(a.t, file)
        case _:
            return Foreign("a subgraph" if a.type in (kinds.GRAPH, kinds.GRAPHS) else f"attribute type {a.type}")


def _node(n: onnx.NodeProto, file: str) -> Node:
    name = n.name or next((o for o in n.output if o), n.op_type)
    attributes = {a.name: _attribute(a, file) for a in n.attribute}
    domain = "" if n.domain == "ai.onnx" else n.domain
    return Node(name, n.op_type, domain, tuple(n.input), tuple(n.output), attributes)


def _graph_input(v: onnx.ValueInfoProto, file: str) -> GraphInput:
    if not v.type.HasField("tensor_type"):
        raise UnsupportedError(f"{file}: input {short(v.name)}", "is not a tensor", "export the model with a tensor")
    t = v.type.tensor_type
    try:
        dtype = onnx.TensorProto.DataType.Name(t.elem_type)
    except ValueError:
        dtype = f"type {t.elem_type}"
    if not t.HasField("shape"):
        return GraphInput(v.name, dtype, None)
    dims = tuple(int(d.dim_value) if d.HasField("dim_value") else d.dim_param or None for d in t.shape.dim)
    if len(dims) > MAX_RANK:
        raise InputError(f"{file}: input {short(v.name)}", f"{len(dims)} axes; the limit is {MAX_RANK}")
    return GraphInput(v.name, dtype, dims)


def _order(
    nodes: list[Node], inputs: list[str], constants: list[str], outputs: tuple[str, ...], file: str
) -> tuple[Node, ...]:
    """The nodes that the outputs need, each after those that it reads, else in the order of the file."""
    if len(set(inputs)) < len(inputs):
        raise InputError(file, "two inputs of the graph have one name")
    sources = {*inputs, *constants}
    writer: dict[str, int] = {}
    for i, n in enumerate(nodes):
        for value in filter(None, n.outputs):
            if value in writer or value in sources:
                raise InputError(f"{file}: node {short(n.name)}", f"writes {short(value)}, which is written before")
            writer[value] = i
    needed: set[int] = set()
    queue = deque((value, "the graph's outputs") for value in outputs)
    while queue:
        value, reader = queue.popleft()
        if value in sources or not value:
            continue
        if value not in writer:
            raise InputError(f"{file}: {reader}", f"{short(value)} is read, and nothing writes it")
        if writer[value] not in needed:
            needed.add(writer[value])
            node = nodes[writer[value]]
            queue.extend((v, f"node {short(node.name)}") for v in node.inputs)
    return _sorted(nodes, needed, writer, file)


def _sorted(nodes: list[Node], needed: set[int], writer: Mapping[str, int], file: str) -> tuple[Node, ...]:
    waits = {i: {writer[v] for v in nodes[i].inputs if v in writer} for i in sorted(needed)}
    readers: dict[int, list[int]] = {}
    for i, before in waits.items():
        for j in before:
            readers.setdefault(j, []).append(i)
    ready = deque(i for i, before in waits.items() if not before)
    order: list[int] = []
    while ready:
        i = ready.popleft()
        order.append(i)
        for reader in readers.get(i, ()):
            waits[reader].discard(i)
            if not waits[reader]:
                ready.append(reader)
    if len(order) < len(needed):
        stuck = nodes[min(i for i, before in waits.items() if before)]
        raise InputError(f"{file}: node {short(stuck.name)}", "is part of a cycle")
    if all(j < i for i in needed for j in {writer[v] for v in nodes[i].inputs if v in writer}):
        order.sort()  # the file's own order is good: keep it
    return tuple(nodes[i] for i in order)
