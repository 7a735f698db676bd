"""FLstmStep and FGruStep: recurrent layers in float32 that take one step of their sequence a push."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from mcugen.core.op import Names, OpText, StateMember
from mcugen.core.types import Array, TensorType
from mcugen.nn.ops.float_math import quiet
from mcugen.nn.ops.frecurrent import FGru, FLstm
from mcugen.nn.ops.kept import init_text, kept_in, kept_state, require_one_step


@dataclass(frozen=True, slots=True, eq=False)
class FLstmStep(FLstm):
    """FLstm with ``steps`` 1 whose h and c live in the state: x (1, I) -> h (1, H), h (H,), c (H,) after this step."""

    kernel: ClassVar[tuple[str, str]] = ("mcg_lstm_step_f32", "src/mcg_nn_float_recurrent.c")

    @property
    def state(self) -> tuple[StateMember, ...]:
        return kept_state("float", 2 * self.hidden, "h, then c")

    def check(self, types: Mapping[str, TensorType]) -> None:
        require_one_step(self, self.steps)
        FLstm.check(self, types)

    @quiet
    def eval(self, *args: Array) -> tuple[Array, ...]:
        """(T, 1, I) -> (T, H) each: the leading axis is time."""
        h, c = self.sequence(self.input_steps(args[0])[None, :, 0])
        return self.results_of(h[0], h[0], c[0])

    def emit(self, prefix: str, args: tuple[str, ...], results: tuple[str, ...], names: Names) -> OpText:
        text = self.call(prefix, "lstm", args, results, names, kept_in(names))
        return init_text(self, text, names.table.get(f"{prefix}_start"), names)


@dataclass(frozen=True, slots=True, eq=False)
class FGruStep(FGru):
    """FGru with ``steps`` 1 whose h lives in the state: x (1, I) -> h (1, H), h (H,) after this step."""

    kernel: ClassVar[tuple[str, str]] = ("mcg_gru_step_f32", "src/mcg_nn_float_recurrent.c")

    @property
    def state(self) -> tuple[StateMember, ...]:
        return kept_state("float", self.hidden, "h")

    def check(self, types: Mapping[str, TensorType]) -> None:
        require_one_step(self, self.steps)
        FGru.check(self, types)

    @quiet
    def eval(self, *args: Array) -> tuple[Array, ...]:
        """(T, 1, I) -> (T, H) each: the leading axis is time."""
        h = self.sequence(self.input_steps(args[0])[None, :, 0])
        return self.results_of(h[0], h[0])

    def emit(self, prefix: str, args: tuple[str, ...], results: tuple[str, ...], names: Names) -> OpText:
        text = self.call(prefix, "gru", args, results, names, kept_in(names))
        return init_text(self, text, names.table.get(f"{prefix}_start"), names)
