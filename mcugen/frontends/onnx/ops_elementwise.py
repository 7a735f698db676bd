"""Handlers of what treats each element by itself: activations, arithmetic, Cast, and the quantization pair."""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import Any

import numpy as np

from mcugen.core.types import Array, DType
from mcugen.frontends.onnx.call import Call
from mcugen.frontends.onnx.shapes import Shape, broadcast, sample_shape
from mcugen.frontends.onnx.values import Activated, Compared, Constant, Quantized, QuantizedConst, as_float32
from mcugen.nn.source import Activation, Affine, Binary, FakeQuant

#: Element types of floats: all are computed as the first.
FLOAT_TYPES = {1: "FLOAT", 10: "FLOAT16", 11: "DOUBLE", 16: "BFLOAT16"}


def activation(kind: str, **defaults: float) -> Callable[[Call], None]:
    """A handler of one Activation; ``defaults`` of the attributes that it takes over."""

    def handle(c: Call) -> None:
        x = c.x(0)
        fields: dict[str, Any] = {name: c.get_float(name, value) for name, value in defaults.items()}
        c.give_raw(c.add(Activation, x.name, kind=kind, **fields), x.shape)

    return handle


def clip(c: Call) -> None:
    x = c.x(0)
    if c.opset < 11:
        low, high = c.get_float("min", -inf), c.get_float("max", inf)
    else:
        low, high = (_limit(c, 1, -inf), _limit(c, 2, inf))
    if not low <= high:
        c.broken(f"clips from {low} to {high}")
    c.give_raw(c.add(Activation, x.name, kind="clip", low=low, high=high), x.shape)


def _limit(c: Call, index: int, default: float) -> float:
    if not c.has(index):
        return default
    data = c.constant(index, "the limits").data
    if data.size != 1:
        c.broken("a limit that is not a number")
    return float(data.reshape(-1)[0])


def identity(c: Call) -> None:
    """Identity, Dropout in inference and the like: another name."""
    c.give(c.operand(0))


def dropout(c: Call) -> None:
    if c.opset >= 12 and c.has(2) and bool(np.any(c.constant(2, "training_mode").data)):
        c.refuse("is in training mode", "call model.eval() before the export")
    identity(c)


def cast(c: Call) -> None:
    value, target = c.operand(0), c.get_int("to", 1)
    x = value.gate if isinstance(value, Compared) and target in FLOAT_TYPES else c.activation(0)
    if (target in FLOAT_TYPES) != (x.dtype is DType.F32):
        c.refuse(
            f"turns floats to integers or back (element type {target})", "let the model work on float32 throughout"
        )
    if x.dtype is DType.F32 and target != 1:
        c.program.notes.append(f"{c.where}: computed in float32, not in {FLOAT_TYPES[target]}")
    if x.dtype is not DType.F32 and target not in (6, 7):
        c.refuse(f"turns an index to element type {target}", "leave the index as int64 or int32")
    c.give(x)


def arithmetic(kind: str) -> Callable[[Call], None]:
    """A handler of Add, Sub, Mul or Div."""

    def handle(c: Call) -> None:
        first, second = c.is_constant(0), c.is_constant(1)
        if first or second:
            if kind == "div" and first:
                _with_constant(c, "mul", _reciprocal(c, c.x(1)), 0)
            else:
                _with_constant(c, kind, c.x(1 if first else 0), 0 if first else 1)
        elif kind == "div":
            c.give_raw(*two(c, "mul", c.x(0), _reciprocal(c, c.x(1))))
        else:
            c.give_raw(*two(c, kind, c.x(0), c.x(1)))

    return handle


def _reciprocal(c: Call, x: Activated) -> Activated:
    name = c.add(Activation, x.name, hint="reciprocal", kind="power", alpha=-1.0)
    return Activated(name, x.raw, x.shape)


def _with_constant(c: Call, kind: str, x: Activated, index: int) -> None:
    values = c.weights(index, "the constant")
    shape = broadcast(x.shape, tuple(values.shape))
    if shape is None:
        c.broken(f"shapes {list(x.shape)} and {list(values.shape)}")
    if np.prod(shape) != np.prod(x.shape):
        c.refuse("repeats the activation along an axis of the constant", "expand it where the model is trained")
    v = values.astype(np.float64)
    if kind == "div" and (v == 0).any():
        c.broken("divides by zero")
    one, zero = np.ones_like(v), np.zeros_like(v)
    scale, offset = {
        "add": (one, v),
        "sub": (-one, v) if index == 0 else (one, -v),
        "mul": (v, zero),
        "div": (1.0 / np.where(v == 0, 1.0, v), zero),
    }[kind]
    c.give_raw(_affine(c, x, scale, offset, shape), shape)


def _affine(c: Call, x: Activated, scale: Array, offset: Array, shape: Shape) -> str:
    """An Affine along one axis if the constant varies along one at most, else on the flat sample."""
    varying = [k - scale.ndim for k, n in enumerate(scale.shape) if n != 1]  # counted from the back
    if len(varying) <= 1:
        axis = 0
        if varying:
            axis = c.program.located(x, (len(x.shape) + varying[0],), c.loc)[2][0]
        row, shift = (as_float32(a.reshape(-1), c.where) for a in (scale, offset))
        return c.add(Affine, x.name, axis=axis, scale=row, offset=shift)
    flat = [as_float32(np.broadcast_to(a, shape).reshape(-1), c.where) for a in (scale, offset)]
    name = c.program.view(x, (flat[0].size,), c.loc)
    return c.add(Affine, name, hint="flat", scale=flat[0], offset=flat[1], axis=0)


def two(c: Call, kind: str, a: Activated, b: Activated, hint: str = "") -> tuple[str, Shape]:
    """A Binary of two activations, each repeated where the other is wider: the name and the file's shape."""
    shape = broadcast(a.shape, b.shape)
    if shape is None:
        c.broken(f"shapes {list(a.shape)} and {list(b.shape)}")
    if a.raw == b.raw and a.shape == b.shape:
        return c.add(Binary, a.name, b.name, hint=hint, kind=kind), shape
    # Align both at the last axis, without the batch axis.
    sample = sample_shape(shape)
    names = []
    for x in (a, b):
        padded = ((1,) * (len(shape) - len(x.shape)) + x.shape)[len(shape) - len(sample) :]
        names.append(c.program.view(x, padded or (1,), c.loc))
    return c.add(Binary, *names, hint=hint, kind=kind), shape


# Quantization.


def _parameters(c: Call) -> tuple[Array, Array]:
    """scale and zero point, the second with the type of the integers."""
    scale = c.weights(1, "the scale")
    if (scale <= 0).any():
        c.broken("a scale that is not above 0")
    if c.get_int("block_size", 0):
        c.refuse("is quantized in blocks", "quantize per tensor or per channel")
    if c.has(2):
        zero = c.constant(2, "the zero point").data
    else:
        zero = np.zeros((), {0: "u1", 2: "u1", 3: "i1", 4: "u2", 5: "i2"}.get(c.get_int("output_dtype", 0), "u1"))
    if zero.dtype.kind not in "iu" or zero.size not in (1, scale.size):
        c.broken(f"a zero point of type {zero.dtype}, shape {list(zero.shape)}")
    return scale, zero


_SIGNED = {"int8": (DType.I8, 0), "uint8": (DType.I8, 128), "int16": (DType.I16, 0), "uint16": (DType.I16, 32768)}


def quantize(c: Call) -> None:
    """QuantizeLinear: unsigned integers are re-based, so that only int8 and int16 remain."""
    scale, zero = _parameters(c)
    if c.is_constant(0):
        data = c.weights(0, "the values")
        s, z = (_along(a, c.get_int("axis", 1), data.ndim) for a in (scale, zero))
        limits = np.iinfo(zero.dtype)
        q = np.clip(np.rint(data / s.astype(np.float32)) + z, limits.min, limits.max)
        c.give_constant(q.astype(zero.dtype))
        return
    if scale.size != 1:
        c.refuse("quantizes an activation per channel", "quantize activations per tensor")
    if zero.dtype.name not in _SIGNED:
        c.refuse(f"quantizes an activation to {zero.dtype}", "quantize activations to int8 or uint8")
    dtype, offset = _SIGNED[zero.dtype.name]
    scalar = float(scale.reshape(-1)[0]), int(zero.reshape(-1)[0]) - offset
    c.give(Quantized(c.x(0), *scalar, dtype))


def dequantize(c: Call) -> None:
    """DequantizeLinear: of constants, a constant that knows its integers; of a QuantizeLinear, a FakeQuant."""
    value = c.operand(0)
    scale = c.weights(1, "the scale")
    if isinstance(value, Constant):
        _dequantize_constant(c, value, scale)
        return
    if not isinstance(value, Quantized):
        c.refuse("reads integers that are not those of a QuantizeLinear", "give the model a float32 input")
    _, zero = _parameters(c)
    if zero.dtype.name not in _SIGNED or scale.size != 1 or zero.size != 1:
        c.refuse("other parameters than its QuantizeLinear has", "use the same scale and zero point in both")
    dtype, offset = _SIGNED[zero.dtype.name]
    found = float(scale.reshape(-1)[0]), int(zero.reshape(-1)[0]) - offset, dtype
    if found != (value.scale, value.zero_point, value.dtype):
        c.refuse("other parameters than its QuantizeLinear has", "use the same scale and zero point in both")
    source = value.source
    c.give_raw(c.fake_quant(FakeQuant, source.name, found), source.shape)


def _dequantize_constant(c: Call, value: Constant, scale: Array) -> None:
    q = value.data
    if q.dtype.kind not in "iu":
        c.broken(f"integers of type {q.dtype}")
    if c.get_int("block_size", 0):
        c.refuse("is quantized in blocks", "quantize per tensor or per channel")
    zero = c.constant(2, "the zero point").data if c.has(2) else np.zeros(scale.shape, q.dtype)
    if zero.size not in (1, scale.size):
        c.broken("a zero point and a scale of two shapes")
    axis = c.axis(c.get_int("axis", 1), q.ndim) if scale.size > 1 else None
    if axis is not None and q.shape[axis] != scale.size:
        c.broken(f"{scale.size} scales along axis {axis} of {list(q.shape)}")
    s, z = (_along(a, axis or 0, q.ndim) for a in (scale, zero))
    real = np.asarray((q.astype(np.int64) - z.astype(np.int64)).astype(np.float32) * s, np.float32)
    real.flags.writeable = False
    zeros = np.broadcast_to(zero.reshape(-1), (scale.size,))
    c.give(Constant(real, QuantizedConst(q, scale.reshape(-1), zeros, axis)))


def _along(a: Array, axis: int, rank: int) -> Array:
    """A row of numbers along one axis of ``rank``; a single one fits everywhere."""
    if a.size == 1:
        return a.reshape(())
    shape = [1] * rank
    shape[axis] = -1
    return a.reshape(shape)
