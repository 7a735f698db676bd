"""Nodes whose operands are all known, computed by onnx.reference at once; weights keep the integers they came from."""

from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from mcugen.core.types import Array
from mcugen.frontends.onnx.call import Call
from mcugen.frontends.onnx.ops import FOLDABLE, GROWS
from mcugen.frontends.onnx.scanner import Foreign, Node
from mcugen.frontends.onnx.values import Constant, QuantizedConst

MAX_ELEMENTS = 1 << 26


def can_fold(c: Call) -> bool:
    """Whether ``fold`` applies: an op of the list, and every operand known."""
    known = all(isinstance(c.values[v], Constant) for v in c.node.inputs if v)
    return not c.node.domain and c.node.op in FOLDABLE and known


def fold(c: Call) -> None:
    """The results as constants. What onnx.reference does not accept is a fault of the file."""
    if c.node.op == "Constant":
        c.give_constant(_literal(c))
        return
    operands = [c.values[v] for v in c.node.inputs if v]
    data = [v.data for v in operands if isinstance(v, Constant)]
    _check_size(c, data)
    try:
        results = _run(c.node, c.opset, data)
    except Exception as e:  # the reference has no error class of its own
        c.broken(f"cannot be computed: {e}"[:200], "simplify the model before the export")
    for index, result in enumerate(results):
        first = operands[0] if operands else None
        quantized = _integers(c, first.quantized) if isinstance(first, Constant) and first.quantized else None
        out = np.array(result)
        out.flags.writeable = False
        c.give(Constant(out, quantized), index)


def _literal(c: Call) -> Array:
    for name in ("value", "value_float", "value_floats", "value_int", "value_ints"):
        value = c.attribute(name)
        if value is not None:
            if isinstance(value, np.ndarray):
                return value
            return np.array(value, np.float32 if "float" in name else np.int64)
    c.refuse("is not a number or a tensor of numbers", "leave it out of the model")


def _check_size(c: Call, data: list[Array]) -> None:
    """Refuse what would give far more than it gets: a file of a few bytes must not fill the memory."""
    op, count = c.node.op, 0
    if op in GROWS and len(data) > GROWS[op]:
        count = prod(int(n) for n in data[GROWS[op]].reshape(-1))
    elif op == "Range" and len(data) == 3 and all(d.size == 1 for d in data) and float(data[2].reshape(-1)[0]):
        start, limit, step = (float(d.reshape(-1)[0]) for d in data)
        count = int(min(abs((limit - start) / step), 1e18))
    elif op in ("MatMul", "Gemm") and all(d.ndim and d.size for d in data[:2]):
        inner = data[0].shape[-1] if op == "MatMul" else max(data[0].shape)
        count = (data[0].size // inner) * (data[1].size // inner)
    elif op == "Gather" and len(data) == 2:
        count = data[1].size * data[0].size if data[1].size > 1 else 0
        count = count // max(data[0].shape, default=1)  # at least, whatever the axis
    elif len(data) > 1:
        try:
            count = prod(np.broadcast_shapes(*(d.shape for d in data)))
        except ValueError:  # no op on single elements, or a fault that the reference will find
            count = 0
    if count > MAX_ELEMENTS:
        c.refuse(f"a constant of {count} elements", "make it smaller, or compute it outside of the model")


def _run(node: Node, opset: int, data: list[Array]) -> list[Any]:
    from onnx.reference import ReferenceEvaluator  # noqa: PLC0415  slow to import, and rarely needed

    attributes = {k: _attribute(v) for k, v in node.attributes.items()}
    names = iter(f"i{k}" for k in range(len(data)))
    inputs = [next(names) if v else "" for v in node.inputs]
    outputs = [f"o{k}" for k in range(len(node.outputs))]
    made = helper.make_node(node.op, inputs, outputs, **attributes)
    fed = [v for v in inputs if v]
    infos = [helper.make_tensor_value_info(n, _elem(d), d.shape) for n, d in zip(fed, data, strict=True)]
    results = [helper.make_empty_tensor_value_info(n) for n in outputs]
    version = min(opset, onnx.defs.onnx_opset_version())
    model = helper.make_model(
        helper.make_graph([made], "fold", infos, results), opset_imports=[helper.make_opsetid("", version)]
    )
    with np.errstate(all="ignore"):
        return list(ReferenceEvaluator(model).run(None, dict(zip(fed, data, strict=True))))


def _elem(a: Array) -> int:
    return int(helper.np_dtype_to_tensor_dtype(a.dtype))


def _attribute(value: Any) -> Any:
    if isinstance(value, Foreign):
        raise ValueError(f"an attribute is {value.what}")
    if isinstance(value, np.ndarray):
        return numpy_helper.from_array(value)
    return list(value) if isinstance(value, tuple) else value


def _integers(c: Call, found: QuantizedConst) -> QuantizedConst | None:
    """The integers of weights that were only moved, or None."""
    if c.node.op in ("Identity", "Dropout"):
        return found
    if c.node.op == "Transpose":
        rank = found.q.ndim
        perm = c.get_ints("perm", tuple(reversed(range(rank)))) or ()
        axis = None if found.axis is None else perm.index(found.axis)
        return replace(found, q=found.q.transpose(perm), axis=axis)
    if c.node.op in ("Reshape", "Squeeze", "Unsqueeze", "Flatten") and found.axis is None:
        (q,) = _run(c.node, c.opset, [found.q, *(v.data for v in _rest(c))])
        return replace(found, q=np.asarray(q))
    return None


def _rest(c: Call) -> list[Constant]:
    values = [c.values[v] for v in c.node.inputs[1:] if v]
    return [v for v in values if isinstance(v, Constant)]
