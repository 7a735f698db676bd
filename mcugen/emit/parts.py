"""What the emitters of both kinds of models share."""

from __future__ import annotations

from mcugen.core.op import MachineOp
from mcugen.core.types import Model
from mcugen.errors import InternalError

#: Raised when generated files and runtime files of different versions must not be mixed; the same as in mcg.h.
ABI = 1


def machine_ops(model: Model) -> tuple[MachineOp, ...]:
    """The ops of a machine model, typed."""
    ops = tuple(op for op in model.ops if isinstance(op, MachineOp))
    if len(ops) != len(model.ops):
        raise InternalError(model.name, "a source op has not been lowered")
    return ops


def size_assertions(model: Model) -> list[str]:
    """Assumptions of the generator that the C compiler checks again."""
    lines = []
    for value in (model.inputs[0], model.outputs[0]):
        dtype = model.types[value].dtype
        lines.append(f'_Static_assert(sizeof({dtype.ctype}) == {dtype.size}, "{dtype.ctype} has another size here");')
    return sorted(set(lines))
