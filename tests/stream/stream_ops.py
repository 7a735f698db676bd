"""Machine ops with state for the tests of streams, written by hand, and models of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from tree_models import Leaf, Split, forest_of, lower, model_of, spec_of

from mcugen.core.op import Cost, Item, MachineOp, Names, OpText, StateMember
from mcugen.core.stream import respond
from mcugen.core.types import Array, DType, Loc, Model, Source, TensorType
from mcugen.emit.selftest import Vectors
from mcugen.recipes.prepared import Prepared
from mcugen.target.arena import plan_arena
from mcugen.trees.forest import Missing

LOC = Loc("test", "op")


@dataclass(frozen=True, slots=True, eq=False)
class SumEvery(MachineOp):
    """int16 or int32 (C,) -> int32 (C,): the sum since the start modulo 2^32, at every ``every``-th push.

    ``scratch``: bytes of scratch that the C fills for nothing.
    """

    kernel: ClassVar[tuple[str, str]] = ("none", "none")

    dtype: DType
    channels: int
    every: int
    scratch: int = 0

    def check(self, types: Mapping[str, TensorType]) -> None:
        assert types[self.inputs[0]].dtype is self.dtype
        assert types[self.outputs[0]] == TensorType((self.channels,), DType.I32)

    @property
    def scratch_bytes(self) -> int:
        return self.scratch

    @property
    def state(self) -> tuple[StateMember, ...]:
        n = self.channels
        return (
            StateMember("seen", "uint8_t", 0, 1, 1, "pushes since the last result"),
            StateMember("total", "int32_t", n, 4 * n, 4, "sum of each channel"),
        )

    def due(self, pushes: int) -> Array:
        return np.arange(1, pushes + 1) % self.every == 0

    def eval(self, *args: Array) -> tuple[Array, ...]:
        total = np.cumsum(args[0].astype(np.int64), axis=0).astype(np.int32)
        return (total[self.every - 1 :: self.every],)

    def items(self, prefix: str) -> tuple[Item, ...]:
        return ()

    def emit(self, prefix: str, args: tuple[str, ...], results: tuple[str, ...], names: Names) -> OpText:
        n, x = self.channels, self.dtype.ctype
        use = f"for (uint32_t i = 0; i < {self.scratch}u; ++i) {{\n        scratch[i] = 0xEEu;\n    }}"
        text = (
            f"static MCG_NOINLINE int {prefix}_sum(uint8_t *seen, int32_t *total, const {x} *x, int32_t *y, "
            "uint8_t *scratch)\n{\n"
            f"    {use if self.scratch else '(void)scratch;'}\n"
            f"    for (uint32_t i = 0; i < {n}u; ++i) {{\n"
            "        total[i] = (int32_t)((uint32_t)total[i] + (uint32_t)x[i]);\n    }\n"
            f"    *seen = (uint8_t)(*seen + 1u);\n    if (*seen != {self.every}u) {{\n        return 0;\n    }}\n"
            "    *seen = 0u;\n"
            f"    for (uint32_t i = 0; i < {n}u; ++i) {{\n        y[i] = total[i];\n    }}\n    return 1;\n}}\n"
        )
        seen, total = names.state["seen"], names.state["total"]
        call = (
            f"if (!{prefix}_sum(&{seen}, {total}, {args[0]}, {results[0]}, {names.scratch})) {{ return MCG_PENDING; }}"
        )
        init = f"{seen} = 0u;\nfor (uint32_t i = 0; i < {n}u; ++i) {{ {total}[i] = 0; }}"
        return OpText(("mcg.h",), text, call, init=init)

    def cost(self) -> Cost:
        return Cost(0.0, 0, float(self.channels), self.channels)


@dataclass(frozen=True, slots=True, eq=False)
class Before(MachineOp):
    """float32 (C,) -> float32 (C,): the sample before, NaN at first. Its state has a type of a runtime header."""

    kernel: ClassVar[tuple[str, str]] = ("none", "none")

    channels: int

    def check(self, types: Mapping[str, TensorType]) -> None:
        assert types[self.inputs[0]] == types[self.outputs[0]] == TensorType((self.channels,), DType.F32)

    @property
    def state(self) -> tuple[StateMember, ...]:
        return (
            StateMember("any", "mcg_status_t", 0, 4, 4, "whether there was a sample */"),
            StateMember("last", "float", self.channels, 4 * self.channels, 4, "the sample before"),
        )

    def eval(self, *args: Array) -> tuple[Array, ...]:
        first = np.full((1, self.channels), np.nan, np.float32)
        return (np.concatenate([first, args[0]])[: len(args[0])],)

    def items(self, prefix: str) -> tuple[Item, ...]:
        return ()

    def emit(self, prefix: str, args: tuple[str, ...], results: tuple[str, ...], names: Names) -> OpText:
        known, last = names.state["any"], names.state["last"]
        loop = f"for (uint32_t i = 0; i < {self.channels}u; ++i)"
        call = (
            f"{loop} {{ {results[0]}[i] = {known} ? {last}[i] : (float)NAN; {last}[i] = {args[0]}[i]; }}\n{known} = 1;"
        )
        return OpText(("mcg.h",), "#include <math.h>\n", call, init=f"{known} = 0;")

    def cost(self) -> Cost:
        return Cost(0.0, 0, float(self.channels), self.channels)


def _model(name: str, ops: tuple[MachineOp, ...], types: dict[str, TensorType]) -> Model:
    first, last = ops[0].inputs[0], ops[-1].outputs[0]
    return Model(name, "machine", (first,), (last,), types, ops, Source("test.toml", "test", "0" * 64))


def sums(name: str, every: tuple[int, ...], channels: int = 2, scratch: int = 0) -> Model:
    """Sums of sums: the first over int16 samples."""
    types = {"v0": TensorType((channels,), DType.I16)}
    ops: list[MachineOp] = []
    for i, n in enumerate(every):
        types[f"v{i + 1}"] = TensorType((channels,), DType.I32)
        ops.append(SumEvery((f"v{i}",), (f"v{i + 1}",), LOC, types[f"v{i}"].dtype, channels, n, scratch))
    return _model(name, tuple(ops), types)


def before(name: str) -> Model:
    """The sample before."""
    kind = TensorType((3,), DType.F32)
    return _model(name, (Before(("a b",), ("c d",), LOC, 3),), {"a b": kind, "c d": kind})


def summed_trees(name: str, output: str = "raw") -> Model:
    """Trees over sums of three samples each."""
    forest = [
        Split(0, 10.0, Leaf(-1.5), Split(1, -3.0, Leaf(0.25), Leaf(4.0), Missing.NONE), Missing.NONE),
        Split(1, 5.0, Leaf(0.5), Split(0, -20.0, Leaf(1.0), Leaf(2.0), Missing.NONE), Missing.NONE),
    ]
    trees = lower(model_of(forest_of(forest, 2), name=name), spec_of(DType.I32, 2), output, DType.I16)
    first = SumEvery(("sample",), trees.inputs, LOC, DType.I16, 2, 3)
    types = {**trees.types, "sample": TensorType((2,), DType.I16)}
    ops = (first, *(op for op in trees.ops if isinstance(op, MachineOp)))
    return Model(name, "machine", ("sample",), trees.outputs, types, ops, trees.source)


def samples(model: Model, count: int, seed: int = 0) -> Array:
    """``count`` samples, the ends of the type among them."""
    t = model.types[model.inputs[0]]
    rng = np.random.default_rng(seed)
    if t.dtype.is_float:
        x = rng.normal(size=(count, *t.shape)).astype(t.dtype.np)
        x.reshape(-1)[::7] = [np.inf, -0.0, 1e-45, -np.inf][seed % 4]
        return x
    x = rng.integers(-20, 20, (count, *t.shape)).astype(t.dtype.np)
    x[count // 2 : count // 2 + 3] = t.dtype.max
    return x


def prepared(model: Model, count: int = 50, arena: bool = False, seed: int = 0) -> Prepared:
    """A model as a recipe hands it on."""
    ops = tuple(op for op in model.ops if isinstance(op, MachineOp))
    x = samples(model, count, seed)
    (y,), status = respond(model, {model.inputs[0]: x})
    return Prepared(
        machine=model,
        arena=plan_arena(model, ops) if arena else None,
        x=x,
        y=y,
        trace=None,
        golden=Vectors(x, y, status),
        stored=b"",
        proof=None,
        coverage=None,
        verification={"vectors": len(x)},
        recorded={},
        spend_ram=False,
        title="a stream",
        facts=(),
        status=status,
    )
