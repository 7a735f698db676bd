"""Runs passes and checks the spec after each. A pass is a function ``Model, PassContext -> Model``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np

from mcugen.core.op import MachineOp
from mcugen.core.types import Array, Model, TensorType
from mcugen.errors import InternalError

Context = TypeVar("Context")
Pass = Callable[[Model, Context], Model]


@dataclass(frozen=True, slots=True)
class Step(Generic[Context]):
    """A pass and the name that dumps and errors use."""

    name: str
    run: Pass[Context]


def run_passes(
    model: Model,
    steps: tuple[Step[Context], ...],
    context: Context,
    watch: Callable[[str, Model], None] = lambda name, model: None,
) -> Model:
    """``model`` after all steps. ``watch`` sees the model before the first and after each."""
    check_model(model, "front end")
    watch("source", model)
    for step in steps:
        model = step.run(model, context)
        check_model(model, f"pass {step.name}")
        watch(step.name, model)
    return model


def check_model(model: Model, after: str) -> None:
    """Raise InternalError unless the model is well formed and every op accepts its operands."""

    def require(ok: bool, what: str) -> None:
        if not ok:
            raise InternalError(f"{model.name} after {after}", what)

    known = set(model.inputs) | {c.name for c in model.consts} | {s.name for s in model.states}
    for value in known:
        require(value in model.types, f"value {value} has no type")
    for op in model.ops:
        require(op.level == model.level, f"{type(op).__name__} does not belong to level {model.level}")
        for value in op.inputs:
            require(value in known, f"{type(op).__name__} reads {value} before it is written")
        for value in op.outputs:
            require(value not in known, f"{value} is written twice")
            require(value in model.types, f"value {value} has no type")
            known.add(value)
        op.check(model.types)
    for value in model.outputs:
        require(value in known, f"output {value} is never written")


def evaluate(model: Model, inputs: Mapping[str, Array]) -> dict[str, Array]:
    """All values of the model for a batch of inputs (leading axis: batch).

    For a model with state the leading axis is time, from a fresh state. Where an op is not due, the push ends, and
    every value has rows for the pushes that go on: the values that are returned are those of pushes with a result.
    """
    env: dict[str, Array] = dict(inputs)
    for const in model.consts:
        env[const.name] = const.data
    # Overflow and NaN are results here, as they are in the library and in C; whoever reads them decides.
    with np.errstate(over="ignore", invalid="ignore"):
        for op in model.ops:
            results = op.eval(*(env[v] for v in op.inputs))
            if isinstance(op, MachineOp) and op.state:
                _keep_due(model, op, env)
            for name, value in zip(op.outputs, results, strict=True):
                # A kernel that copies or concatenates knows a count only; the model knows the axes.
                env[name] = value.reshape(len(value), *model.types[name].shape)
    return env


def _keep_due(model: Model, op: MachineOp, env: dict[str, Array]) -> None:
    """Takes the rows of pushes at which ``op`` is not due out of all values there are."""
    constant = {c.name for c in model.consts}
    due = op.due(len(env[op.inputs[0]]))
    if not due.all():
        for name in env.keys() - constant:
            env[name] = env[name][due]


def value_type(types: Mapping[str, TensorType], name: str, op: str) -> TensorType:
    """The type of a value, or InternalError."""
    if name not in types:
        raise InternalError(op, f"value {name} has no type")
    return types[name]
