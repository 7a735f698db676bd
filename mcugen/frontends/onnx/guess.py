"""Shapes behind a node that could not be translated, so that the rest of the graph can still be looked at."""

from __future__ import annotations

from collections.abc import Mapping

import onnx

from mcugen.frontends.onnx.shapes import Shape


def guess_shapes(data: bytes, given: Mapping[str, Shape]) -> dict[str, Shape]:
    """Full shapes as onnx.shape_inference sees them, with the inputs fixed; values without a fixed shape are left out.

    Never raises: whatever goes wrong, less is known, and less is reported.
    """
    try:
        model = onnx.load_from_string(data)
        for value in model.graph.input:
            if value.name in given:
                dims = value.type.tensor_type.shape.dim
                del dims[:]
                for n in given[value.name]:
                    dims.add().dim_value = n
        for value in model.graph.output:  # they may say "dynamic", which inference would keep
            value.type.tensor_type.ClearField("shape")
        inferred = onnx.shape_inference.infer_shapes(model, data_prop=True)
    except Exception:  # inference has no error class of its own
        return {}
    out = {}
    for value in (*inferred.graph.value_info, *inferred.graph.output):
        tensor = value.type.tensor_type
        shape = tuple(int(d.dim_value) for d in tensor.shape.dim)
        if tensor.HasField("shape") and min(shape, default=1) >= 1:
            out[value.name] = shape
    return out
