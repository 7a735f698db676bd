"""What the float32 ops that treat each element by itself share."""

from __future__ import annotations

from collections.abc import Mapping

from mcugen.core.op import Cost, Item, MachineOp
from mcugen.core.types import DType, TensorType
from mcugen.errors import InternalError
from mcugen.nn.ops.plain_call import misfit


class FElement(MachineOp):
    """float32 tensors of ``elements`` elements to one of as many; the result may lie where an operand lay."""

    __slots__ = ()

    @property
    def elements(self) -> int:
        """Elements of each operand."""
        raise NotImplementedError

    @property
    def in_place(self) -> tuple[int, ...]:
        return tuple(range(len(self.inputs)))

    def own_problem(self) -> str:
        """What is wrong with the fields; empty if nothing."""
        return ""

    def check(self, types: Mapping[str, TensorType]) -> None:
        name = type(self).__name__
        problems = [misfit(types, v, self.elements, DType.F32, name) for v in (*self.inputs, *self.outputs)]
        problem = next(filter(None, (*problems, self.own_problem())), "")
        if problem:
            raise InternalError(str(self.loc), f"{name}: {problem}")

    def items(self, prefix: str) -> tuple[Item, ...]:
        return ()

    def cost(self) -> Cost:
        n = self.elements
        return Cost(0.0, n, float(n), n)
