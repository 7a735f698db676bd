"""Tiny ONNX files made on the spot, and the comparison of their import with onnxruntime."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

from mcugen.core.passes import check_model, evaluate
from mcugen.core.types import Array, Model
from mcugen.frontends.onnx import load_onnx
from mcugen.nn.passes import simplify

Dims = Sequence[int | str | None]
F, I64 = TensorProto.FLOAT, TensorProto.INT64


def node(op: str, inputs: str, outputs: str, domain: str = "", **attributes: Any) -> onnx.NodeProto:
    """``inputs`` and ``outputs``: names separated by blanks, ``-`` for none."""
    names = [["" if v == "-" else v for v in text.split()] for text in (inputs, outputs)]
    return helper.make_node(op, *names, name=f"n_{outputs.split(maxsplit=1)[0]}", domain=domain, **attributes)


def net(
    nodes: Sequence[onnx.NodeProto],
    x: Dims | Mapping[str, Dims],
    constants: Mapping[str, Any] | None = None,
    opset: int = 17,
    outputs: str = "y",
    dtype: int = F,
) -> onnx.ModelProto:
    """A model. ``x``: the shape of the input x, or of each input. Constants that are float64 become float32."""
    shapes = x if isinstance(x, Mapping) else {"x": x}
    inputs = [helper.make_tensor_value_info(k, dtype, list(v)) for k, v in shapes.items()]
    data = {k: np.asarray(v) for k, v in (constants or {}).items()}
    data = {k: v.astype(np.float32) if v.dtype == np.float64 else v for k, v in data.items()}
    tensors = [numpy_helper.from_array(v, k) for k, v in data.items()]
    results = [helper.make_empty_tensor_value_info(k) for k in outputs.split()]
    graph = helper.make_graph(list(nodes), "net", inputs, results, tensors)
    domains = {n.domain for n in nodes} - {""}
    opsets = [helper.make_opsetid("", opset), *(helper.make_opsetid(d, 1) for d in sorted(domains))]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def load(model: onnx.ModelProto, **options: Any) -> Model:
    """The import, checked."""
    out = load_onnx(model.SerializeToString(), "net.onnx", "net", **options)
    check_model(out, "import")
    return out


def runtime(model: onnx.ModelProto, feeds: Mapping[str, Array]) -> list[Array]:
    """What onnxruntime gives, optimizations off. Output types are free in ``net``: onnxruntime infers them."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    full = onnx.shape_inference.infer_shapes(model)
    session = onnxruntime.InferenceSession(full.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return list(session.run(None, dict(feeds)))


def feeds_of(
    model: onnx.ModelProto, seed: int = 0, shapes: Mapping[str, tuple[int, ...]] | None = None
) -> dict[str, Array]:
    """Random inputs in their full shapes, dynamic axes 1."""
    rng = np.random.default_rng(seed)
    out = {}
    for v in model.graph.input:
        dims = tuple(d.dim_value or 1 for d in v.type.tensor_type.shape.dim)
        out[v.name] = rng.normal(0, 2, (shapes or {}).get(v.name, dims)).astype(np.float32)
    return out


def values_of(model: Model, feeds: Mapping[str, Array]) -> list[Array]:
    """All outputs of one sample, without the batch axis of ``eval``."""
    env = evaluate(model, {k: v.reshape(1, *model.types[k].shape) for k, v in feeds.items()})
    return [env[name][0] for name in model.outputs]


def same_as_runtime(
    model: onnx.ModelProto, feeds: Mapping[str, Array] | None = None, tolerance: float = 1e-5, **options: Any
) -> Model:
    """Import, and import with all float passes, agree with onnxruntime on values, shapes and names; the import."""
    feeds = feeds or feeds_of(model, shapes=options.get("shapes"))
    expected = runtime(model, feeds)
    loaded = load(model, **options)
    simple = simplify(loaded)
    check_model(simple, "float passes")
    assert simple.outputs == loaded.outputs == tuple(o.name for o in model.graph.output)
    for form in (loaded, simple):
        for name, found, want in zip(form.outputs, values_of(form, feeds), expected, strict=True):
            shape = want.shape[1:] if want.ndim > 1 and want.shape[0] == 1 else want.shape or (1,)
            assert found.shape == form.types[name].shape == shape
            limit = tolerance * max(1.0, float(np.abs(want).max()))
            np.testing.assert_allclose(found, want.reshape(found.shape), rtol=0, atol=limit)
    return loaded


def kinds(model: Model) -> list[str]:
    """The classes of the ops."""
    return [type(op).__name__ for op in model.ops]
