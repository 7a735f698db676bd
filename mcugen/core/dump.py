"""A model as text, for --dump-ir: one op a line with its place in the user's file, arrays by shape and first values."""

from __future__ import annotations

import hashlib
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any

import numpy as np

from mcugen.core.op import Op
from mcugen.core.types import Model

_HEAD_VALUES = 6
_BASE = ("inputs", "outputs", "loc")


def dump_text(model: Model, step: str) -> str:
    """The model after ``step``."""
    lines = [f"model {model.name} level={model.level} after={step}", f"source {model.source}"]
    lines += [f"feature {i} {f}" for i, f in enumerate(model.features)]
    lines += [f"value {name}: {t.dtype.label}{list(t.shape)} {t.q or ''}".rstrip() for name, t in model.types.items()]
    for op in model.ops:
        lines.append(f"op {', '.join(op.outputs)} = {type(op).__name__}({', '.join(op.inputs)})  # {op.loc}")
        for f in fields(op):
            if f.name not in _BASE:
                lines += _lines(f.name, getattr(op, f.name), "    ")
    lines += [f"bound {name}: {b}" for name, b in model.bounds.items()]
    lines.append(f"outputs {', '.join(model.outputs)}")
    return "\n".join(lines) + "\n"


def _lines(name: str, value: Any, indent: str) -> list[str]:
    if isinstance(value, np.ndarray):
        return [f"{indent}{name}: {_array(value)}"]
    if is_dataclass(value) and not isinstance(value, type):
        inner = [line for f in fields(value) for line in _lines(f.name, getattr(value, f.name), indent + "    ")]
        return [f"{indent}{name}: {type(value).__name__}", *inner]
    if isinstance(value, tuple) and value and all(isinstance(v, Op) for v in value):
        return [line for i, op in enumerate(value) for line in _lines(f"{name}[{i}]", op, indent)]
    if isinstance(value, tuple) and len(value) > _HEAD_VALUES:
        return [f"{indent}{name}: {len(value)} of {value[:2]} ..."]
    return [f"{indent}{name}: {value.name if isinstance(value, Enum) else value}"]


def _array(value: np.ndarray[Any, Any]) -> str:
    digest = hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()[:12]
    head = " ".join(str(v) for v in value.reshape(-1)[:_HEAD_VALUES].tolist())
    more = " ..." if value.size > _HEAD_VALUES else ""
    return f"{value.dtype}{list(value.shape)} [{head}{more}] sha256={digest}"
