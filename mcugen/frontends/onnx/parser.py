"""ONNX, second step: a plain graph to a Model of net source ops.

Every shape is fixed here, so shapes and what is computed from them are constants. What mcugen cannot translate is
gathered over the whole graph and reported in one error.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from mcugen.core.types import DType, Loc, Model, Source
from mcugen.errors import InputError
from mcugen.frontends.onnx.call import Call, Refused, Skipped
from mcugen.frontends.onnx.faults import Fault, node_text, unsupported
from mcugen.frontends.onnx.fold import can_fold, fold
from mcugen.frontends.onnx.guess import guess_shapes
from mcugen.frontends.onnx.ml_graph import has_trees, load_trees
from mcugen.frontends.onnx.ops import ANY, OPS
from mcugen.frontends.onnx.ops_elementwise import FLOAT_TYPES
from mcugen.frontends.onnx.ops_ml import LABEL_OPS
from mcugen.frontends.onnx.scanner import Foreign, Graph, Node, scan, short
from mcugen.frontends.onnx.shapes import Shape, input_shapes, sample_shape
from mcugen.frontends.onnx.values import Activated, ClassLabel, Compared, Constant, Program, Unknown, Value
from mcugen.nn.source import ArgMax, Reshape

_DEQUANTIZE = "end the model with a DequantizeLinear"


def load_onnx(data: bytes, file: str, name: str, shapes: Mapping[str, Shape] | None = None) -> Model:
    """The model of an ONNX file, float32; values are named as in the file.

    ``file`` is a name for messages. ``shapes``: full shapes (with batch axis) of inputs, for dynamic axes other than
    the first. InputError: a damaged file, a shape that is missing or wrong. UnsupportedError: everything that cannot
    be translated, in one line.
    """
    graph = scan(data, file)
    if has_trees(graph):
        return load_trees(graph, data, file, name, shapes or {})
    given = input_shapes(graph, shapes or {}, file)
    program = Program(file)
    values: dict[str, Value] = {"": Unknown("which is not there")}
    for key, value in graph.initializers.items():
        values[key] = Unknown(f"which is {value.what}") if isinstance(value, Foreign) else Constant(value)
    faults = _declare_inputs(graph, given, program, values)
    used = {v for n in graph.nodes for v in n.inputs} | set(graph.outputs)
    guessed: Mapping[str, Shape] | None = None
    for node in graph.nodes:
        call = Call(node, graph.opset, program, values)
        try:
            fault = _translate(call, used)
        except InputError:
            if not faults:
                raise
            break  # perhaps only because of the stand-in for something that was not translated
        if fault is not None:
            faults.append(fault)
        if fault is not None and guessed is None:
            guessed = guess_shapes(data, given)
        for out in filter(None, node.outputs):
            values[out] = call.results.get(out) or _stand_in(out, guessed or {}, program)
    if faults:
        raise unsupported(file, faults)
    outputs, faults = _finish(graph, values, program)
    if faults:
        raise unsupported(file, faults)
    source = Source(file, "onnx", hashlib.sha256(data).hexdigest())
    inputs = tuple(i.name for i in graph.inputs)
    notes = tuple(dict.fromkeys(program.notes))
    ops = tuple(program.ops)
    return Model(name, "source", inputs, outputs, program.types, ops, source, labels=program.labels, notes=notes)


def _declare_inputs(
    graph: Graph, given: Mapping[str, Shape], program: Program, values: dict[str, Value]
) -> list[Fault]:
    faults = []
    for i in graph.inputs:
        shape = given[i.name]
        program.declare(i.name, sample_shape(shape))
        program.inputs.add(i.name)
        if i.dims and not isinstance(i.dims[0], int) and shape[0] == 1:
            axis = f" ({i.dims[0]})" if i.dims[0] else ""
            program.notes.append(f"input {short(i.name)}: axis 0{axis} is taken for the batch, and is 1")
        values[i.name] = Activated(i.name, sample_shape(shape), shape)
        if i.dtype in FLOAT_TYPES.values() and i.dtype != "FLOAT":
            program.notes.append(f"input {short(i.name)} is {i.dtype} in the file: computed in float32")
        elif i.dtype != "FLOAT":
            what = f"input {short(i.name)}"
            faults.append(Fault(what, f"is {i.dtype}, not FLOAT", "let the model take float32 inputs"))
    return faults


def _translate(c: Call, used: set[str]) -> Fault | None:
    """One node: its results, or what is wrong with it. Silent where it reads the result of a refused one."""
    node = c.node
    what = node_text(node)
    try:
        if can_fold(c):
            fold(c)
            return None
        _dispatch(c, node)
        for k, out in enumerate(node.outputs):
            if out and out in used and out not in c.results:
                c.refuse(f"its output {k} ({short(out)}) is used", "only the main output is supported")
    except Refused as e:
        return Fault(what, e.reason, e.workaround)
    except Skipped:
        return None
    return None


def _dispatch(c: Call, node: Node) -> None:
    labels = [v for k in node.inputs if isinstance(v := c.values[k], ClassLabel)]
    if labels and node.op in LABEL_OPS:
        c.give(labels[0])
        return
    row = OPS.get((node.domain, node.op))
    if row is None:
        domain = f" of domain {short(node.domain)}" if node.domain else ""
        c.refuse(f"op {node.op}{domain} is not supported", "replace it, or run this part outside of the model")
    operands = len(node.inputs)
    least, most = row.operands
    if operands < least:
        c.broken(f"{operands} operands; at least {least} are needed")
    if operands > most:
        c.refuse(f"{operands} operands; {most} are known", "export the model with an older opset")
    stray = sorted(set(node.attributes) - row.attributes) if row.attributes is not ANY else []
    if stray:
        c.refuse(f"attribute {short(stray[0])} is not known", "export the model without it")
    row.handler(c)


def _stand_in(name: str, guessed: Mapping[str, Shape], program: Program) -> Value:
    """What an output that was not translated stands for, so that what follows can be looked at as well."""
    shape = guessed.get(name)
    if shape is None or name in program.types:
        return Unknown()
    program.declare(name, sample_shape(shape))
    return Activated(name, sample_shape(shape), shape)


def _finish(graph: Graph, values: Mapping[str, Value], program: Program) -> tuple[tuple[str, ...], list[Fault]]:
    """The model's outputs, named and shaped as in the file, without batch axis."""
    faults: list[Fault] = []
    outputs: list[str] = []
    for out in graph.outputs:
        value = values[out]
        what = f"output {short(out)}"
        if isinstance(value, Constant):
            faults.append(Fault(what, "does not depend on an input", "leave it out of the model"))
        elif isinstance(value, Unknown):
            continue
        elif isinstance(value, ClassLabel):
            if any(isinstance(values[v], Activated) for v in graph.outputs):
                program.notes.append(f"{what} holds class labels: --output class gives their index")
            else:
                outputs.append(_index(program, value, out))
        elif not isinstance(value, Activated):
            compared = isinstance(value, Compared)
            reason = ("is a comparison", "Cast it to float") if compared else ("is quantized", _DEQUANTIZE)
            faults.append(Fault(what, *reason))
        elif out in program.inputs:
            faults.append(Fault(what, "is an input", "leave it out of the model"))
        elif value.name == out and value.raw == sample_shape(value.shape):
            outputs.append(out)
        elif value.dtype is not DType.F32:
            faults.append(Fault(what, "is another name of an index", "let ArgMax be the last node of the model"))
        else:
            # Another name or shape than the op's result has: a Reshape, which the passes take away where they can.
            name = program.vacate(out, value.name)
            program.append(Reshape((name,), (out,), Loc(program.file, what), sample_shape(value.shape)))
            outputs.append(out)
    if len(set(outputs)) < len(outputs):
        raise InputError(program.file, "an output is listed twice", "the file contradicts itself")
    return tuple(outputs), faults


def _index(program: Program, label: ClassLabel, out: str) -> str:
    """The index of a class label as an output."""
    if program.types[label.source].dtype is not DType.F32:
        return label.source
    name = program.fresh(out)
    program.append(ArgMax((label.source,), (name,), Loc(program.file, f"output {short(out)}"), axis=0, keepdims=True))
    return name
