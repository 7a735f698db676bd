"""The arena: nothing that lives together overlaps, and plans are as low as can be."""

from __future__ import annotations

from itertools import permutations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from mcugen.core.op import Cost, Item, MachineOp, Names, OpText
from mcugen.core.types import Array, DType, Loc, Model, Source, TensorType
from mcugen.target.arena import ALIGN, ArenaPlan, plan_arena


class Layer(MachineOp):
    """A layer with the memory behaviour that a test asks for."""

    __slots__ = ("_alias", "_scratch")
    kernel = ("none", "none")

    def __init__(
        self, inputs: tuple[str, ...], outputs: tuple[str, ...], scratch: int = 0, alias: tuple[int, ...] = ()
    ):
        for name, value in (("inputs", inputs), ("outputs", outputs), ("loc", Loc("t", ""))):
            object.__setattr__(self, name, value)
        object.__setattr__(self, "_scratch", scratch)
        object.__setattr__(self, "_alias", alias)

    @property
    def scratch_bytes(self) -> int:
        return self._scratch

    @property
    def in_place(self) -> tuple[int, ...]:
        return self._alias

    def check(self, types: object) -> None: ...
    def eval(self, *args: Array) -> tuple[Array, ...]:
        return args

    def items(self, prefix: str) -> tuple[Item, ...]:
        return ()

    def emit(self, prefix: str, args: tuple[str, ...], results: tuple[str, ...], names: Names) -> OpText:
        return OpText((), "", "")

    def cost(self) -> Cost:
        return Cost(0.0, 0, 0.0, 0)


def plan(layers: list[Layer], sizes: dict[str, int], outputs: tuple[str, ...] = ("y",)) -> ArenaPlan:
    types = {v: TensorType((n,), DType.I8) for v, n in sizes.items()}
    model = Model("m", "machine", ("x",), outputs, types, tuple(layers), Source("t", "t", ""))
    return plan_arena(model, layers)


def test_a_chain_needs_two_neighbours() -> None:
    layers = [Layer(("x",), ("a",)), Layer(("a",), ("b",)), Layer(("b",), ("c",)), Layer(("c",), ("y",))]
    result = plan(layers, {"x": 8, "a": 64, "b": 32, "c": 64, "y": 8})
    assert result.size == result.lower_bound == 96


def test_inputs_and_outputs_are_the_callers() -> None:
    result = plan([Layer(("x",), ("y",))], {"x": 800, "y": 800})
    assert (result.size, result.slots) == (0, ())


def test_a_residual_value_stays_alive() -> None:
    layers = [
        Layer(("x",), ("a",)),
        Layer(("a",), ("b",)),
        Layer(("b",), ("c",)),
        Layer(("a", "c"), ("d",), alias=(0, 1)),
        Layer(("d",), ("y",)),
    ]
    result = plan(layers, {"x": 8, "a": 64, "b": 64, "c": 64, "d": 64, "y": 8})
    assert result.size == 192
    assert result.offset("d") in (result.offset("a"), result.offset("c"))


def test_memory_is_taken_over_only_from_a_value_nobody_reads_any_more() -> None:
    layers = [Layer(("x",), ("a",)), Layer(("a",), ("b",), alias=(0,)), Layer(("a", "b"), ("y",))]
    result = plan(layers, {"x": 8, "a": 64, "b": 64, "y": 8})
    assert result.offset("a") != result.offset("b")


def test_taken_over_twice_and_read_late() -> None:
    layers = [
        Layer(("x",), ("a",)),
        Layer(("a",), ("b",), alias=(0,)),
        Layer(("b",), ("c",), alias=(0,)),
        Layer(("x",), ("d",)),
        Layer(("c", "d"), ("y",)),
    ]
    result = plan(layers, {"x": 8, "a": 64, "b": 64, "c": 64, "d": 64, "y": 8})
    assert result.offset("a") == result.offset("b") == result.offset("c")
    assert abs(result.offset("d") - result.offset("c")) >= 64


def test_scratch_is_apart_from_the_operands() -> None:
    layers = [Layer(("x",), ("a",)), Layer(("a",), ("b",), scratch=100), Layer(("b",), ("y",))]
    result = plan(layers, {"x": 8, "a": 64, "b": 64, "y": 8})
    assert result.size == 64 + 64 + 104
    assert result.scratch[0] is None
    assert result.scratch[1] is not None


@st.composite
def nets(draw: st.DrawFn) -> tuple[list[Layer], dict[str, int]]:
    count = draw(st.integers(1, 7))
    values, layers = ["x"], []
    for i in range(count):
        inputs = tuple(draw(st.lists(st.sampled_from(values), min_size=1, max_size=3, unique=True)))
        output = "y" if i == count - 1 else f"v{i}"
        alias = tuple(range(len(inputs))) if draw(st.booleans()) else ()
        layers.append(Layer(inputs, (output,), draw(st.sampled_from([0, 0, 5, 40])), alias))
        values.append(output)
    return layers, {v: draw(st.integers(1, 100)) for v in [*values, "y"]}


@settings(max_examples=200, deadline=None)
@given(nets())
def test_nothing_that_lives_together_overlaps(net: tuple[list[Layer], dict[str, int]]) -> None:
    """Simulated: every value is filled when it is made, and must be unharmed whenever it is read."""
    layers, sizes = net
    result = plan(layers, sizes)
    memory = np.full(result.size + 1, -1, np.int64)
    mark = {v: i for i, v in enumerate(sizes)}
    for i, layer in enumerate(layers):
        inside = [v for v in layer.inputs if v not in ("x", "y")]
        for value in inside:
            at = result.offset(value)
            assert (memory[at : at + sizes[value]] == mark[value]).all(), value
        place = result.scratch[i]
        if place is not None:
            memory[place : place + layer.scratch_bytes] = -2
            for value in inside:
                at = result.offset(value)
                assert (memory[at : at + sizes[value]] == mark[value]).all(), "scratch hits an input"
        for value in layer.outputs:
            if value != "y":
                at = result.offset(value)
                assert at % ALIGN == 0
                memory[at : at + sizes[value]] = mark[value]
                if place is not None:
                    assert not (place < at + sizes[value] and at < place + layer.scratch_bytes)


def test_small_plans_are_optimal() -> None:
    """Against every order of placement, which for these sizes contains the optimum."""
    rng = np.random.default_rng(1)
    for _ in range(30):
        sizes = {f"v{i}": int(rng.integers(1, 9)) * 8 for i in range(5)} | {"x": 8, "y": 8}
        order = [f"v{i}" for i in range(5)]
        layers = [Layer(("x",), (order[0],))]
        layers += [Layer((order[i], order[max(0, i - int(rng.integers(1, 3)))]), (order[i + 1],)) for i in range(4)]
        layers.append(Layer((order[4],), ("y",)))
        result = plan(layers, sizes)
        assert result.size == best_height(result), result


def best_height(result: ArenaPlan) -> int:
    best = 10**9
    for order in permutations(result.slots):
        placed: list[tuple[int, int, int, int]] = []
        for s in order:
            at = 0
            for offset, size, first, last in sorted(placed):
                if first <= s.last and s.first <= last and offset < at + s.size:
                    at = max(at, offset + size)
            placed.append((at, s.size, s.first, s.last))
        best = min(best, max(a + n for a, n, *_ in placed))
    return best
