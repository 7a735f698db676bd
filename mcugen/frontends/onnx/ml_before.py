"""Handlers of what stands before a tree ensemble: steps on single columns, and the choice of columns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from mcugen.core.types import Array
from mcugen.frontends.onnx.call import Call
from mcugen.frontends.onnx.ml_columns import Column, Kind, Step
from mcugen.frontends.onnx.ml_trees import numbers
from mcugen.frontends.onnx.ml_values import ML, Table, Value
from mcugen.frontends.onnx.values import Constant

HINT = "do it in the application, before the call"


def _first(operands: list[Value]) -> tuple[Column, ...]:
    table = next(v for v in operands if isinstance(v, Table))
    return table.columns


def _singles(c: Call, columns: tuple[Column, ...]) -> tuple[Column, ...]:
    """Columns that float32 steps may follow."""
    if any(col.kind is not Kind.SINGLE for col in columns):
        c.refuse("works on other numbers than float32", "cast the input to float32 before it")
    return columns


def _same(c: Call, operands: list[Value]) -> tuple[Column, ...]:
    return _first(operands)


def _cast(c: Call, operands: list[Value]) -> tuple[Column, ...]:
    target = c.get_int("to", 1)
    columns = _first(operands)
    if target == 1:
        if any(col.kind is Kind.DOUBLE and col.steps for col in columns):
            c.refuse("casts computed doubles to float32", "cast the input to float32 first")
        return tuple(replace(col, kind=Kind.SINGLE) for col in columns)
    if target == 11:
        kinds = {Kind.SINGLE: Kind.WIDENED, Kind.INTEGER: Kind.DOUBLE}
        return tuple(replace(col, kind=kinds.get(col.kind, col.kind)) for col in columns)
    if target in (6, 7) and all(col.kind is Kind.INTEGER for col in columns):
        return columns
    c.refuse(f"casts to element type {target}", "cast to float32 only")


def _scaler(c: Call, operands: list[Value]) -> tuple[Column, ...]:
    columns = _singles(c, _first(operands))
    offset, scale = (_per_column(c, numbers(c, name, floats=True), len(columns), name) for name in ("offset", "scale"))
    _require_factor(c, scale)
    steps = zip(columns, offset.tolist(), scale.tolist(), strict=True)
    return tuple(col.then(Step("sub", o), Step("mul", s)) for col, o, s in steps)


def _imputer(c: Call, operands: list[Value]) -> tuple[Column, ...]:
    columns = _singles(c, _first(operands))
    if not np.isnan(c.get_float("replaced_value_float", 0.0)):
        c.refuse("replaces another value than NaN", "let NaN stand for missing values")
    filled = _per_column(c, numbers(c, "imputed_value_floats", floats=True), len(columns), "imputed_value_floats")
    return tuple(col.then(Step("impute", v)) for col, v in zip(columns, filled.tolist(), strict=True))


def _arithmetic(kind: str) -> Callable[[Call, list[Value]], tuple[Column, ...]]:
    def read(c: Call, operands: list[Value]) -> tuple[Column, ...]:
        columns = _singles(c, _first(operands))
        constants = [v for v in operands if isinstance(v, Constant)]
        if len(constants) != 1 or len(operands) != 2:
            c.refuse("computes with two columns", HINT)
        data = constants[0].data
        if data.dtype.kind != "f" or (data.ndim > 1 and data.shape[-1] != data.size):
            c.refuse(f"a constant of shape {list(data.shape)}", "use one number for each column")
        values = _per_column(c, data.astype(np.float64).reshape(-1), len(columns), "constant")
        step = kind
        if isinstance(operands[0], Constant):
            if kind == "div":
                c.refuse("divides by a column, which has no order of its own around zero", HINT)
            step = "rsub" if kind == "sub" else kind
        if kind in ("mul", "div"):
            _require_factor(c, values)
        return tuple(col.then(Step(step, v)) for col, v in zip(columns, values.tolist(), strict=True))

    return read


def _per_column(c: Call, values: Array | None, n: int, what: str) -> Array:
    """(n,) finite float32 numbers, one for all or one each."""
    if values is None or values.size not in (1, n):
        c.broken(f"{what} does not fit {n} columns")
    out = np.broadcast_to(values, (n,)).astype(np.float32)
    if not np.isfinite(out).all():
        c.broken(f"{what} holds NaN or infinity")
    return out.astype(np.float64)


def _require_factor(c: Call, values: Array) -> None:
    if (values == 0).any():
        c.refuse("a factor of zero", "leave the feature out of the model")


def _concat(c: Call, operands: list[Value]) -> tuple[Column, ...]:
    if c.get_int("axis", 1) not in (1, -1) or not all(isinstance(v, Table) for v in operands):
        c.refuse("joins something else than columns", HINT)
    return tuple(col for v in operands if isinstance(v, Table) for col in v.columns)


def _concat_floats(c: Call, operands: list[Value]) -> tuple[Column, ...]:
    """FeatureVectorizer: Concat, and a cast to float32."""
    columns = _concat(c, operands)
    return tuple(col if col.kind is Kind.SINGLE else replace(col, kind=Kind.SINGLE) for col in columns)


def _choose(c: Call, operands: list[Value]) -> tuple[Column, ...]:
    """ArrayFeatureExtractor, or Gather along the columns."""
    columns = _first(operands)
    index = operands[1] if len(operands) == 2 else None
    if not isinstance(index, Constant) or index.data.dtype.kind not in "iu":
        c.refuse("chooses columns by a value", HINT)
    if c.node.op == "Gather" and (c.get_int("axis", 0) not in (1, -1) or index.data.ndim != 1):
        c.refuse("gathers something else than columns", HINT)
    chosen = [int(k) for k in index.data.reshape(-1)]
    if any(not -len(columns) <= k < len(columns) for k in chosen):
        c.broken(f"a column that is not among {len(columns)}")
    return tuple(columns[k] for k in chosen)


#: op -> its handler, from operands to columns.
BEFORE_OPS: dict[tuple[str, str], Callable[[Call, list[Value]], tuple[Column, ...]]] = {
    ("", "Identity"): _same,
    ("", "Cast"): _cast,
    ("", "Concat"): _concat,
    (ML, "FeatureVectorizer"): _concat_floats,
    ("", "Gather"): _choose,
    (ML, "ArrayFeatureExtractor"): _choose,
    (ML, "Scaler"): _scaler,
    (ML, "Imputer"): _imputer,
    **{("", op): _arithmetic(op.lower()) for op in ("Add", "Sub", "Mul", "Div")},
}
REASONS = {
    (ML, "Normalizer"): "divides a row by its norm, which no threshold can absorb",
    (ML, "OneHotEncoder"): "one-hot columns are not supported before trees",
    ("", "MatMul"): "mixes columns, which no threshold can absorb",
}
