"""Handlers of comparisons, Not and Where: conditions on one value, as gates of 0 and 1."""

from __future__ import annotations

from collections.abc import Callable

from mcugen.frontends.onnx.call import Call
from mcugen.frontends.onnx.ops_functions import scaled
from mcugen.frontends.onnx.values import Activated, Compared, Constant
from mcugen.nn.source import Activation, Select

#: From the op to the same one with its operands exchanged.
_EXCHANGED = {"Greater": "Less", "Less": "Greater", "GreaterOrEqual": "LessOrEqual", "LessOrEqual": "GreaterOrEqual"}


def compare(kind: str) -> Callable[[Call], None]:
    """A handler of Greater and the like: of an activation and one number."""

    def handle(c: Call) -> None:
        first, second = c.is_constant(0), c.is_constant(1)
        if not first and not second:
            c.refuse("compares two activations", "compare with a constant")
        limit = c.weights(0 if first else 1, "the limit")
        if limit.size != 1:
            c.refuse(f"limits of shape {list(limit.shape)}", "compare with one number")
        x, alpha = c.x(1 if first else 0), float(limit.reshape(-1)[0])
        how = _EXCHANGED[kind] if first else kind
        # x <= a is not x > a, x < a is not x >= a.
        step = "step" if how in ("Greater", "LessOrEqual") else "step_from"
        gate = c.add(Activation, x.name, hint="gate", kind=step, alpha=alpha)
        if how.startswith("Less"):
            gate = scaled(c, gate, -1.0, 1.0, hint="other")
        c.give(Compared(Activated(gate, x.raw, x.shape)))

    return handle


def negated(c: Call) -> None:
    """Not."""
    gate = c.condition(0)
    name = scaled(c, gate.name, -1.0, 1.0, hint="other")
    c.give(Compared(Activated(name, gate.raw, gate.shape)))


def where(c: Call) -> None:
    """One of two values: activations of the condition's shape, or numbers."""
    gate = c.condition(0)
    both = []
    for index in (1, 2):
        value = c.operand(index)
        if isinstance(value, Constant):
            number = c.weights(index, "the constant")
            if number.size != 1:
                c.refuse(f"a constant of shape {list(number.shape)}", "use one number")
            both.append(scaled(c, gate.name, 0.0, float(number.reshape(-1)[0]), hint=f"constant{index}"))
        else:
            x = c.x(index)
            if x.shape != gate.shape:
                what = f"a condition of shape {list(gate.shape)} for values of shape {list(x.shape)}"
                c.refuse(what, "use values of one shape")
            both.append(c.program.reshape(x.name, gate.raw, c.loc))
    c.give_raw(c.add(Select, gate.name, *both), gate.shape)
