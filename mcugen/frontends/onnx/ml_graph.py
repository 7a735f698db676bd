"""Graphs with a tree ensemble of ai.onnx.ml to a Model of tree source ops: steps on columns, the ensemble, the rest.

Before the ensemble (ml_before.py) only steps that fold into thresholds, each on one column: Scaler, Imputer, arithmetic
with constants, casts, and choosing and joining columns. After it (ml_after.py): transforms that the tree family has,
the division that makes a mean, and what only names or packs results. Everything else is reported at once.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from mcugen.core.types import DType, Feature, Loc, Model, Source, TensorType
from mcugen.errors import InputError
from mcugen.frontends.onnx import ml_after, ml_before
from mcugen.frontends.onnx.call import Call, Refused, Skipped
from mcugen.frontends.onnx.faults import Fault, node_text, unsupported
from mcugen.frontends.onnx.fold import can_fold, fold
from mcugen.frontends.onnx.ml_after import AFTER_OPS, LABEL_OPS
from mcugen.frontends.onnx.ml_before import BEFORE_OPS, REASONS
from mcugen.frontends.onnx.ml_columns import Column, Kind
from mcugen.frontends.onnx.ml_ensembles import Parts, read_ensemble
from mcugen.frontends.onnx.ml_trees import ATTRIBUTES
from mcugen.frontends.onnx.ml_values import ML, Label, Scores, Table, Value
from mcugen.frontends.onnx.scanner import Foreign, Graph, GraphInput, Node, short
from mcugen.frontends.onnx.shapes import Shape, input_shapes
from mcugen.frontends.onnx.values import Constant, Program, Unknown
from mcugen.frontends.onnx.values import Value as NetValue
from mcugen.trees.source import Average, Link, TreeEnsemble

MAX_FEATURES = 65535
_KINDS = {
    "FLOAT": Kind.SINGLE,
    "DOUBLE": Kind.DOUBLE,
    "INT64": Kind.INTEGER,
    "INT32": Kind.INTEGER,
}


def has_trees(graph: Graph) -> bool:
    """Whether a graph is of this kind."""
    return any(n.domain == ML and n.op in ATTRIBUTES for n in graph.nodes)


def load_trees(graph: Graph, data: bytes, file: str, name: str, shapes: Mapping[str, Shape]) -> Model:
    """The Model of a scanned file; values as the other front ends of trees name them: x, raw, mean, prediction."""
    walker = _Walker(graph, file)
    features = walker.declare(input_shapes(graph, shapes, file))
    for node in graph.nodes:
        walker.step(node, len(features))
    parts, loc = walker.result()
    source = Source(file, "onnx", hashlib.sha256(data).hexdigest())
    return _model(name, file, loc, parts, features, source)


def _model(name: str, file: str, loc: Loc, parts: Parts, features: tuple[Feature, ...], source: Source) -> Model:
    scores = TensorType((parts.forest.outputs,), DType.F64)
    types = {"x": TensorType((len(features),), DType.F64), "raw": scores}
    ops: tuple[TreeEnsemble | Average | Link, ...] = (TreeEnsemble(("x",), ("raw",), loc, parts.forest, parts.base),)
    score, notes = "raw", parts.notes
    if parts.average is not None:
        ops += (Average(("raw",), ("mean",), Loc(file, "mean"), parts.average),)
        types["mean"] = scores
        score = "mean"
    if parts.single_error:
        off = parts.single_error / (parts.average or 1)
        notes += (f"the score is the sum of the leaves; onnxruntime adds them in float32, and may be off by {off:.2g}",)
    if parts.double:
        notes += ("the file compares doubles: --input-dtype float64 gives the C doubles, otherwise it takes float32",)
    outputs: tuple[str, ...] = (score,)
    if parts.link is not None:
        ops += (Link((score,), ("prediction",), Loc(file, "transform"), parts.link),)
        types["prediction"] = scores
        outputs = (score, "prediction")
    else:
        notes += (f"no --output proba: {parts.no_link}",)
    return Model(
        name=name,
        level="source",
        inputs=("x",),
        outputs=outputs,
        types=types,
        ops=ops,
        source=source,
        features=features,
        labels=parts.labels,
        notes=notes,
        class_above=parts.class_above,
    )


class _Walker:
    """Goes through the nodes in order; ``values`` holds what each name of the file stands for."""

    def __init__(self, graph: Graph, file: str) -> None:
        self._graph, self._file = graph, file
        self._program = Program(file)
        self.values: dict[str, Value] = {"": Unknown("which is not there")}
        for key, value in graph.initializers.items():
            self.values[key] = Unknown(f"which is {value.what}") if isinstance(value, Foreign) else Constant(value)
        self._faults: list[Fault] = []
        self.ensemble: Loc | None = None

    def declare(self, shapes: Mapping[str, Shape]) -> tuple[Feature, ...]:
        """The inputs as columns, one input behind the other."""
        names: list[str] = []
        for i in self._graph.inputs:
            shape = shapes[i.name]
            if len(shape) != 2 or shape[0] != 1 or i.dtype not in _KINDS:
                self._faults.append(_input_fault(i, shape))
                self.values[i.name] = Unknown()
                continue
            first = len(names)
            kind = _KINDS[i.dtype]
            self.values[i.name] = Table(tuple(Column(first + k, kind) for k in range(shape[1])))
            alone = len(self._graph.inputs) == 1
            names += [i.name] if shape[1] == 1 and not alone else [_name(i.name, k, alone) for k in range(shape[1])]
        if len(names) > MAX_FEATURES:
            raise InputError(self._file, f"{len(names)} features; the limit is {MAX_FEATURES}")
        return tuple(Feature(name=n) for n in names)

    def step(self, node: Node, n_features: int) -> None:
        """One node."""
        constants: dict[str, NetValue] = {}
        for operand in node.inputs:
            known = self.values[operand]
            constants[operand] = known if isinstance(known, Constant | Unknown) else Unknown("which is no constant")
        c = Call(node, self._graph.opset, self._program, constants)
        results: list[Value] = []
        try:
            if can_fold(c):
                fold(c)
                results = [v if isinstance(v := c.results.get(o), Constant) else Unknown() for o in node.outputs]
            else:
                results = self._read(c, n_features)
        except Refused as e:
            self._faults.append(Fault(node_text(node), e.reason, e.workaround))
        except Skipped:
            pass
        results += [Unknown()] * (len(node.outputs) - len(results))
        for out, value in zip(node.outputs, results, strict=False):
            if out:
                self.values[out] = value

    def _read(self, c: Call, n_features: int) -> list[Value]:
        node = c.node
        operands = [self.values[v] for v in node.inputs if v]
        for name, v in zip((v for v in node.inputs if v), operands, strict=True):
            if isinstance(v, Unknown) and not (v.why and node.op == "ArrayFeatureExtractor"):
                if v.why:
                    c.refuse(f"reads {short(name)}, {v.why}", "leave it out of the model")
                raise Skipped
        if node.domain == ML and node.op in ATTRIBUTES:
            return self._ensemble(c, operands, n_features)
        key = (node.domain, node.op)
        tables = [v for v in operands if isinstance(v, Table)]
        scores = [v for v in operands if isinstance(v, Scores)]
        if any(isinstance(v, Label) for v in operands):
            if node.op in LABEL_OPS:
                return [Label()]
            c.refuse("works on the class label", ml_after.HINT)
        if len(scores) > 1 or (scores and tables):
            c.refuse("mixes results of tree ensembles", "export one model for each ensemble")
        if scores:
            if key not in AFTER_OPS:
                c.refuse(f"op {node.op} is not supported after a tree ensemble", ml_after.HINT)
            return [Scores(AFTER_OPS[key](c, scores[0].parts))]
        if key not in BEFORE_OPS or not tables:
            reason = REASONS.get(key, f"op {node.op} is not supported before a tree ensemble")
            c.refuse(reason, ml_before.HINT)
        return [Table(BEFORE_OPS[key](c, operands))]

    def _ensemble(self, c: Call, operands: list[Value], n_features: int) -> list[Value]:
        stray = sorted(set(c.node.attributes) - ATTRIBUTES[c.node.op])
        if stray:
            c.refuse(f"attribute {short(stray[0])} is not known", "export the model without it")
        if self.ensemble is not None:
            c.refuse("is a second tree ensemble", "export one model for each ensemble")
        self.ensemble = c.loc
        if len(operands) != 1 or not isinstance(operands[0], Table):
            c.refuse("does not read a table of numbers", "give the ensemble the inputs of the model")
        scores = Scores(read_ensemble(c, operands[0].columns, n_features))
        return [Label(), scores] if c.node.op == "TreeEnsembleClassifier" else [scores]

    def result(self) -> tuple[Parts, Loc]:
        """The ensemble that the outputs show; UnsupportedError with all faults."""
        shown: list[Parts] = []
        for out in self._graph.outputs:
            value = self.values[out]
            if isinstance(value, Scores):
                shown.append(value.parts)
            elif isinstance(value, Table | Constant):
                self._faults.append(Fault(f"output {short(out)}", "is no result of the ensemble", "leave it out"))
        if not shown and not self._faults:
            shown = [v.parts for v in self.values.values() if isinstance(v, Scores)][:1]
        if len({id(p) for p in shown}) > 1:
            what = f"outputs {', '.join(short(o) for o in self._graph.outputs)[:120]}"
            self._faults.append(Fault(what, "are scores before and after a transform", "keep one of them"))
        if self._faults:
            raise unsupported(self._file, self._faults)
        if not shown or self.ensemble is None:
            raise InputError(self._file, "no output shows a result of the tree ensemble", "export the model again")
        return shown[0], self.ensemble


def _input_fault(i: GraphInput, shape: Shape) -> Fault:
    what = f"input {short(i.name)}"
    if i.dtype not in _KINDS:
        hint = "encode it as numbers in the application" if i.dtype == "STRING" else "give the model float32 inputs"
        return Fault(what, f"is {i.dtype}", hint)
    return Fault(what, f"has the shape {list(shape)}", "give the model one row of features, [N, features]")


def _name(name: str, k: int, alone: bool) -> str:
    return f"x{k}" if alone else f"{name}_{k}"
