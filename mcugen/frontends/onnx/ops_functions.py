"""Handlers of functions of one element that are made of others, and of Max, Min, Sum and Mean of several operands."""

from __future__ import annotations

from collections.abc import Callable
from math import inf, pi, sqrt

import numpy as np

from mcugen.frontends.onnx.call import Call
from mcugen.frontends.onnx.ops_elementwise import two
from mcugen.frontends.onnx.shapes import Shape
from mcugen.frontends.onnx.values import Activated
from mcugen.nn.source import Activation, Affine, Binary

#: Selu's own constants where the attributes are absent.
_SELU = (1.67326319217681884765625, 1.05070102214813232421875)


def scaled(c: Call, x: str, scale: float, offset: float = 0.0, hint: str = "") -> str:
    """``scale * x + offset``."""
    row, shift = (np.array([v], np.float32) for v in (scale, offset))
    for a in (row, shift):
        a.flags.writeable = False
    return c.add(Affine, x, hint=hint, scale=row, offset=shift)


def _product(c: Call, a: str, b: str, hint: str = "") -> str:
    return c.add(Binary, a, b, hint=hint, kind="mul")


def negated(c: Call) -> None:
    x = c.x(0)
    c.give_raw(scaled(c, x.name, -1.0), x.shape)


def reciprocal(c: Call) -> None:
    x = c.x(0)
    c.give_raw(c.add(Activation, x.name, kind="power", alpha=-1.0), x.shape)


def power(c: Call) -> None:
    """A constant exponent; 2 and 3 are products."""
    if c.is_constant(0) or not c.is_constant(1):
        c.refuse("the exponent is not constant", "only x to the power of a constant is supported")
    x, exponent = c.x(0), c.constant(1, "the exponent").data.astype(np.float64)
    if exponent.size != 1:
        c.refuse(f"exponents of shape {list(exponent.shape)}", "use one exponent for all elements")
    n = float(exponent.reshape(-1)[0])
    if n == 0.5:
        out = c.add(Activation, x.name, kind="sqrt")
    elif n == 2.0:
        out = _product(c, x.name, x.name)
    elif n == 3.0:
        out = _product(c, _product(c, x.name, x.name, hint="square"), x.name)
    else:
        out = c.add(Activation, x.name, kind="power", alpha=n)
    c.give_raw(out, x.shape)


def selu(c: Call) -> None:
    x = c.x(0)
    alpha, gamma = c.get_float("alpha", _SELU[0]), c.get_float("gamma", _SELU[1])
    c.give_raw(scaled(c, c.add(Activation, x.name, hint="elu", kind="elu", alpha=alpha), gamma), x.shape)


def celu(c: Call) -> None:
    """alpha * elu(x / alpha)."""
    x, alpha = c.x(0), c.get_float("alpha", 1.0)
    if not alpha > 0:
        c.refuse(f"alpha is {alpha:g}", "use an alpha above 0")
    narrow = scaled(c, x.name, 1.0 / alpha, hint="scaled")
    c.give_raw(scaled(c, c.add(Activation, narrow, hint="elu", kind="elu", alpha=1.0), alpha), x.shape)


def swish(c: Call) -> None:
    """x * sigmoid(alpha * x)."""
    x, alpha = c.x(0), c.get_float("alpha", 1.0)
    inner = x.name if alpha == 1.0 else scaled(c, x.name, alpha, hint="scaled")
    c.give_raw(_product(c, x.name, c.add(Activation, inner, hint="gate", kind="sigmoid")), x.shape)


def mish(c: Call) -> None:
    """x * tanh(softplus(x))."""
    x = c.x(0)
    soft = c.add(Activation, x.name, hint="softplus", kind="softplus")
    c.give_raw(_product(c, x.name, c.add(Activation, soft, hint="gate", kind="tanh")), x.shape)


def gelu(c: Call) -> None:
    """x / 2 * (1 + erf(x / sqrt(2))), or its approximation by tanh, as the ONNX operator defines both."""
    x, how = c.x(0), c.get_str("approximate", "none")
    if how not in ("none", "tanh"):
        c.broken(f"approximate is {how}")
    if how == "none":
        gate = c.add(Activation, scaled(c, x.name, sqrt(0.5), hint="scaled"), hint="erf", kind="erf")
    else:
        cube = _product(c, _product(c, x.name, x.name, hint="square"), x.name, hint="cube")
        bent = c.add(Binary, x.name, scaled(c, cube, 0.044715, hint="bend"), hint="bent", kind="add")
        gate = c.add(Activation, scaled(c, bent, sqrt(2.0 / pi), hint="scaled"), hint="tanh", kind="tanh")
    c.give_raw(_product(c, x.name, scaled(c, gate, 0.5, 0.5, hint="gate")), x.shape)


def limit(kind: str) -> Callable[[Call], None]:
    """A handler of Max or Min: of an activation and constants a clip, of two activations a sum with a ReLU."""

    def handle(c: Call) -> None:
        places = range(len(c.node.inputs))
        known = [c.constant(i, "a limit").data.astype(np.float64) for i in places if c.is_constant(i)]
        xs = [c.x(i) for i in places if not c.is_constant(i)]
        if any(v.size != 1 for v in known):
            c.refuse("a limit that differs from element to element", "use one number")
        out, shape = xs[0].name, xs[0].shape
        for x in xs[1:]:
            out, shape = _larger(c, kind, Activated(out, c.program.types[out].shape, shape), x)
        if known:
            best = (max if kind == "max" else min)(float(v.reshape(-1)[0]) for v in known)
            low, high = (best, inf) if kind == "max" else (-inf, best)
            out = c.add(Activation, out, kind="clip", low=low, high=high)
        c.give_raw(out, shape)

    return handle


def _larger(c: Call, kind: str, a: Activated, b: Activated) -> tuple[str, Shape]:
    """max(a, b) = b + relu(a - b); min(a, b) = b - relu(b - a)."""
    first, second = (a, b) if kind == "max" else (b, a)
    gap, shape = two(c, "sub", first, second, hint="gap")
    more = c.add(Activation, gap, hint="more", kind="relu")
    rest = Activated(more, c.program.types[more].shape, shape)
    return two(c, "add" if kind == "max" else "sub", b, rest)


def total(kind: str) -> Callable[[Call], None]:
    """A handler of Sum or Mean of any number of operands."""

    def handle(c: Call) -> None:
        n = len(c.node.inputs)
        out, shape = c.x(0).name, c.x(0).shape
        for i in range(1, n):
            if c.is_constant(i):
                c.refuse("adds a constant", "use Add nodes")
            out, shape = two(c, "add", Activated(out, c.program.types[out].shape, shape), c.x(i))
        if kind == "mean" and n > 1:
            out = scaled(c, out, 1.0 / n)
        c.give_raw(out, shape)

    return handle


def prelu(c: Call) -> None:
    """One slope; or one a channel: relu(x) + slope * min(x, 0)."""
    x, slope = c.x(0), c.weights(1, "the slope")
    if slope.size == 1:
        c.give_raw(c.add(Activation, x.name, kind="leaky_relu", alpha=float(slope.reshape(-1)[0])), x.shape)
        return
    along = [k - slope.ndim for k, n in enumerate(slope.shape) if n != 1]
    if len(along) != 1 or x.shape[along[0]] != slope.size:
        c.refuse(f"slopes of shape {list(slope.shape)}", "train with one slope a channel (num_parameters=channels)")
    name, _, places = c.program.located(x, (len(x.shape) + along[0],), c.loc)
    row = np.ascontiguousarray(slope.reshape(-1))
    zero = np.zeros_like(row)
    for a in (row, zero):
        a.flags.writeable = False
    below = c.add(Activation, name, hint="below", kind="clip", high=0.0)
    bent = c.add(Affine, below, hint="bent", axis=places[0], scale=row, offset=zero)
    above = c.add(Activation, name, hint="above", kind="relu")
    c.give_raw(c.add(Binary, above, bent, kind="add"), x.shape)
