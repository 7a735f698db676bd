"""QGruStep: a GRU layer that takes one step of its sequence a push."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from mcugen.core.op import Names, OpText, StateMember
from mcugen.core.types import Array, TensorType
from mcugen.nn.ops.kept import init_text, kept_in, kept_state, require_one_step
from mcugen.nn.ops.qgru import QGru


@dataclass(frozen=True, slots=True, eq=False)
class QGruStep(QGru):
    """QGru with ``steps`` 1 whose h lives in the state: x (1, I) -> h (1, H), h (H,) after this step."""

    kernel: ClassVar[tuple[str, str]] = ("mcg_gru_step_s8", "src/mcg_nn_recurrent.c")

    @property
    def state(self) -> tuple[StateMember, ...]:
        return kept_state("int32_t", self.gates.shape[1], "h in units of 2^-15")

    def check(self, types: Mapping[str, TensorType]) -> None:
        require_one_step(self, self.steps)
        QGru.check(self, types)

    def eval(self, *args: Array) -> tuple[Array, ...]:
        """(T, 1, I) -> (T, H) each: the leading axis is time."""
        h = self.sequence(self.input_steps(args[0])[None, :, 0])
        return self.results_of(h[0], h[0])

    def emit(self, prefix: str, args: tuple[str, ...], results: tuple[str, ...], names: Names) -> OpText:
        text = self.recurrent_call(prefix, "gru", args, results, names, kept_in(names))
        return init_text(self, text, names.table.get(f"{prefix}_start"), names)
